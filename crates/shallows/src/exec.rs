//! `shallows exec`: a QJUMP level for the sockets of unmodified programs.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::Command;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use shallows_bpf::mark::{self, Mark, Method};
use shallows_bpf::qjump::{self, Allotment};
use shallows_core::units::Bytes;

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(
    override_usage = "shallows exec --level N [OPTIONS] -- COMMAND...\n       \
                            shallows exec --show PID"
)]
pub(crate) struct ExecArgs {
    /// The level of its sockets, from 0, the lowest, to 7.
    #[arg(long, value_name = "N", required_unless_present = "show", value_parser = clap::value_parser!(u8).range(0..=7))]
    level: Option<u8>,
    /// Their send buffer (by default what the level may send in an epoch, if a limiter is there).
    #[arg(long, value_name = "BYTES")]
    send_buffer: Option<Bytes>,
    /// Their DSCP (by default 8 times the level).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,
    /// How to mark them; by default a cgroup with BPF where that is possible, else LD_PRELOAD.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Cgroup,
    Preload,
}

pub(crate) fn exec(args: &ExecArgs) -> Result<(), Failure> {
    if let Some(pid) = args.show {
        return Ok(output::print(&show(pid)?)?);
    }
    let level = args.level.context("give a level")?;
    let mark = Mark {
        level,
        dscp: args.dscp.unwrap_or(8 * level),
        send_buffer: args.send_buffer.or_else(|| send_buffer(level)),
    };
    let (program, arguments) = args.command.split_first().context("give a command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    let say = |by: &str| {
        if !args.quiet {
            let buffer = match mark.send_buffer {
                Some(bytes) => format!(", send buffer {bytes}"),
                None => String::new(),
            };
            eprintln!("level {level}, DSCP {}{buffer}, by {by}", mark.dscp);
        }
    };
    if args.by != Some(By::Preload) {
        match mark::run(&mark, &mut command, || say("a cgroup")) {
            Ok(status) => {
                // As shells say it.
                let signal = status.signal().map(|signal| 128 + signal);
                std::process::exit(status.code().or(signal).unwrap_or(1));
            }
            Err(error @ mark::Error::Program { .. }) => return Err(failure(error)),
            Err(error) if args.by == Some(By::Cgroup) => return Err(failure(error)),
            Err(error) => {
                if !args.quiet {
                    eprintln!("no cgroup: {error}");
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

fn failure(error: mark::Error) -> Failure {
    anyhow::Error::from(error).into()
}

/// What the level may send in an epoch, by the first limiter that limits it.
fn send_buffer(level: u8) -> Option<Bytes> {
    let limiters = qjump::status().unwrap_or_default();
    limiters.iter().find_map(
        |limiter| match limiter.limits.levels.get(usize::from(level))? {
            Allotment::Bytes(bytes) => Some(*bytes),
            Allotment::Unlimited => None,
        },
    )
}

fn show(pid: u32) -> anyhow::Result<String> {
    let mut text = match mark::method(pid)? {
        Some(Method::Cgroup { level }) => format!("process {pid}: level {level}, by a cgroup\n"),
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
            socket.priority,
            socket.traffic_class >> 2,
            socket.send_buffer,
        )?;
    }
    Ok(text)
}
