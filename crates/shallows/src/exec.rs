//! `shallows exec`: a QJUMP level for the sockets of unmodified programs.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use shallows_bpf::mark::{self, Mark, Method};
use shallows_bpf::qjump::{self, Allotment, Status};
use shallows_core::host::qjump::{Excess, FULL_FRAME, mark_of, on_the_wire};
use shallows_core::units::Bytes;

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(
    override_usage = "shallows exec --level N|auto [OPTIONS] -- COMMAND...\n       \
                            shallows exec --show PID"
)]
pub(crate) struct ExecArgs {
    /// The level of its sockets, from 0, the lowest, to 7; or auto, for the level that `shallows
    /// qjump auto` chooses by what it sends.
    #[arg(long, value_name = "N|auto", required_unless_present = "show", value_parser = wanted_level)]
    level: Option<WantedLevel>,
    /// Their send buffer (by default what the level may send in an epoch, if a limiter is there).
    #[arg(long, value_name = "BYTES")]
    send_buffer: Option<Bytes>,
    /// Their DSCP (by default 0 for level 0, else 8 times the level and 3; a limiter goes by it only
    /// if it is for local use, with binary 11 at its end).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,
    /// Means of marking; by default a cgroup with BPF where that is possible, else LD_PRELOAD.
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Say nothing.
    #[arg(long, short)]
    quiet: bool,
    /// Show what the sockets of a process have.
    #[arg(long, value_name = "PID", conflicts_with_all = ["level", "command"])]
    show: Option<u32>,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, required_unless_present = "show")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedLevel {
    ByHand(u8),
    Automatic,
}

fn wanted_level(text: &str) -> Result<WantedLevel, String> {
    if text == "auto" {
        return Ok(WantedLevel::Automatic);
    }
    let level = text.parse().ok().filter(|level| *level <= 7);
    let level = level.ok_or("a level is a number from 0, the lowest, to 7, or auto")?;
    Ok(WantedLevel::ByHand(level))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Cgroup,
    Preload,
}

pub(crate) fn exec(args: &ExecArgs) -> Result<(), Failure> {
    if let Some(pid) = args.show {
        return Ok(output::print(&show(pid)?)?);
    }
    let (program, arguments) = args.command.split_first().context("give a command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    let level = match args.level.context("give a level")? {
        WantedLevel::ByHand(level) => level,
        WantedLevel::Automatic => return exec_automatic(args, &mut command),
    };
    // Without root nobody sees the limiters.
    let limiters = qjump::status().unwrap_or_default();
    check_level(level, &limiters)?;
    let limited = allotment(level, &limiters);
    let mark = Mark {
        level,
        dscp: args.dscp.unwrap_or(mark_of(level)),
        send_buffer: args.send_buffer.or(limited.map(|(bytes, _)| bytes)),
        window: limited.and_then(|(bytes, excess)| window(bytes, excess)),
    };
    let say = |by: &str| {
        if !args.quiet {
            let buffer = match mark.send_buffer {
                Some(bytes) => format!(", send buffer {bytes}"),
                None => String::new(),
            };
            output::note(format!(
                "level {level}, DSCP {}{buffer}, by {by}",
                mark.dscp
            ));
        }
    };
    if args.by != Some(By::Preload) {
        match mark::run(&mark, &mut command, || say("a cgroup")) {
            Ok(status) => exit_like(status),
            Err(error @ mark::Error::Program { .. }) => return Err(failure(error)),
            Err(error) if args.by == Some(By::Cgroup) => return Err(failure(error)),
            Err(error) => {
                if !args.quiet {
                    output::note(format!("no cgroup: {error}"));
                }
            }
        }
    }
    mark::preloaded(&mark, &mut command).map_err(failure)?;
    say("LD_PRELOAD, which static and Go programs escape");
    let source = command.exec();
    let program = program.clone();
    Err(failure(mark::Error::Program { program, source }))
}

/// Runs a command in a cgroup of its own, which is what `qjump auto` chooses levels for.
fn exec_automatic(args: &ExecArgs, command: &mut Command) -> Result<(), Failure> {
    if args.by == Some(By::Preload) {
        return Err(anyhow!("a chosen level takes a cgroup: leave out --by preload").into());
    }
    if args.dscp.is_some() || args.send_buffer.is_some() {
        let error =
            "a chosen level changes, and its DSCP with it: leave out --dscp and --send-buffer";
        return Err(anyhow!(error).into());
    }
    let limiters = qjump::status().map_err(anyhow::Error::from)?;
    if !limiters
        .iter()
        .any(|limiter| limiter.applications.is_some())
    {
        let error = "nobody chooses levels: run `shallows qjump auto --dev DEVICE` first";
        return Err(anyhow!(error).into());
    }
    let say = || {
        if !args.quiet {
            output::note(
                "level chosen by what it sends, in a cgroup of its own; `shallows qjump status` shows it",
            );
        }
    };
    exit_like(mark::run_apart(command, say).map_err(failure)?)
}

/// Ends with the status of the command, as shells say it.
fn exit_like(status: ExitStatus) -> ! {
    let signal = status.signal().map(|signal| 128 + signal);
    std::process::exit(status.code().or(signal).unwrap_or(1))
}

fn failure(error: mark::Error) -> Failure {
    anyhow::Error::from(error).into()
}

/// Refuses a level that no limiter has: its packets would go at the lowest.
fn check_level(level: u8, limiters: &[Status]) -> anyhow::Result<()> {
    let has_it = |limiter: &Status| usize::from(level) < limiter.limits.levels.len();
    if limiters.is_empty() || limiters.iter().any(has_it) {
        return Ok(());
    }
    let levels = limiters.iter().map(|limiter| {
        let highest = limiter.limits.levels.len() - 1;
        format!("{} has levels 0 to {highest}", limiter.device)
    });
    let levels: Vec<String> = levels.collect();
    Err(anyhow!(
        "no limiter has level {level}, so its packets would go at level 0: {}",
        levels.join(", ")
    ))
}

/// Bytes per epoch that the first limiter grants to this level, and what happens to the excess.
fn allotment(level: u8, limiters: &[Status]) -> Option<(Bytes, Excess)> {
    limiters.iter().find_map(
        |limiter| match limiter.limits.levels.get(usize::from(level))? {
            Allotment::Bytes(bytes) => Some((*bytes, limiter.limits.excess)),
            Allotment::Unlimited => None,
        },
    )
}

/// The full frames that a level may send in an epoch, where what exceeds them is dropped: a packet
/// that stands for several segments (GSO) must not exceed them either. Where it waits, the queue
/// cuts it.
fn window(bytes: Bytes, excess: Excess) -> Option<u32> {
    let frames = (bytes.get() / on_the_wire(FULL_FRAME).get()).max(1);
    (excess == Excess::Drop).then(|| u32::try_from(frames).unwrap_or(u32::MAX))
}

/// The level of a cgroup, at the first device where it has one.
fn chosen_level(cgroup: &Path) -> Option<u8> {
    let limiters = qjump::status().unwrap_or_default();
    let applications = limiters
        .iter()
        .flat_map(|of| of.applications.iter().flatten());
    let mut levels = applications
        .filter(|of| of.cgroup == cgroup)
        .map(|of| of.level);
    levels.next()
}

/// Ours as class ids, which is how `tc` writes them.
fn shown_priority(priority: i32) -> String {
    match priority.cast_unsigned() {
        small if small < 1 << 16 => small.to_string(),
        id => format!("{:x}:{:x}", id >> 16, id & 0xFFFF),
    }
}

fn show(pid: u32) -> anyhow::Result<String> {
    let mut text = match mark::method(pid)? {
        Some(Method::Cgroup { level }) => format!("process {pid}: level {level}, by a cgroup\n"),
        Some(Method::Chosen { cgroup }) => match chosen_level(&cgroup) {
            Some(level) => format!("process {pid}: level {level}, chosen by what it sends\n"),
            None => format!("process {pid}: a level to be chosen, by nobody at present\n"),
        },
        Some(Method::Preload { level }) => format!("process {pid}: level {level}, by LD_PRELOAD\n"),
        None => format!("process {pid}: no level by shallows exec\n"),
    };
    let sockets = mark::sockets(pid)?;
    writeln!(
        text,
        "{:<24} {:<24} {:>8} {:>5} {:>11}",
        "local", "remote", "priority", "DSCP", "send buffer"
    )?;
    for socket in &sockets {
        let remote = socket
            .remote
            .map_or_else(|| "-".to_owned(), |remote| remote.to_string());
        writeln!(
            text,
            "{:<24} {remote:<24} {:>8} {:>5} {:>11}",
            socket.local.to_string(),
            shown_priority(socket.priority),
            socket.traffic_class >> 2,
            socket.send_buffer,
        )?;
    }
    Ok(text)
}
