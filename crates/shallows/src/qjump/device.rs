//! `shallows qjump apply`, `confirm` and `remove`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use shallows_bpf::qjump::{self, Device, Hook, Limits, Options, QueueChoice, Report, Side};
use shallows_core::units::Time;

use shallows_run::read_file;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct DeviceArgs {
    /// The network device, such as eth0.
    #[arg(long, value_name = "DEVICE")]
    dev: String,
    /// The named network namespace that it is in.
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    device: DeviceArgs,
    /// The limits, a TOML file such as `shallows qjump plan --write` makes.
    file: PathBuf,
    /// Attachment point of the program (the best that the kernel has, if not given).
    #[arg(long, value_enum)]
    hook: Option<HookName>,
    /// The device's own queue: keep it if it serves levels in strict priority, install one that
    /// does, or ignore what it does.
    #[arg(long, value_enum, default_value_t = QueueName::Keep)]
    qdisc: QueueName,
    /// Limit what comes in by the device, a tap or veth with a guest behind it.
    #[arg(long, conflicts_with = "qdisc")]
    guest: bool,
    /// Undo it after this time unless `shallows qjump confirm` comes first.
    #[arg(long = "for", value_name = "TIME")]
    trial: Option<Time>,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HookName {
    Tcx,
    Clsact,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum QueueName {
    Keep,
    Install,
    Ignore,
}

/// Arguments of the guard that undoes a trial: a process of its own, so that it does not end with
/// the shell that started it.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    #[command(flatten)]
    device: DeviceArgs,
    /// The end of the trial, in nanoseconds of the monotonic clock.
    #[arg(long)]
    until_ns: u64,
    /// The limits before, as TOML.
    #[arg(long)]
    before: Option<String>,
    #[arg(long)]
    guest: bool,
}

impl DeviceArgs {
    pub(super) fn device(&self) -> Device {
        Device {
            name: self.dev.clone(),
            netns: self.netns.clone(),
        }
    }
}

impl ApplyArgs {
    fn options(&self) -> Options {
        Options {
            hook: self.hook.map(|hook| match hook {
                HookName::Tcx => Hook::Tcx,
                HookName::Clsact => Hook::Clsact,
            }),
            queue: match self.qdisc {
                QueueName::Keep => QueueChoice::Keep,
                QueueName::Install => QueueChoice::Install,
                QueueName::Ignore => QueueChoice::Ignore,
            },
            side: side(self.guest),
            trial: self.trial,
        }
    }
}

fn side(guest: bool) -> Side {
    if guest { Side::Guest } else { Side::Egress }
}

pub(super) fn apply(args: &ApplyArgs) -> Result<String, Failure> {
    let device = args.device.device();
    let limits = read(&args.file).map_err(Failure::File)?;
    Ok(apply_limits(args, &device, &limits)?)
}

fn read(file: &Path) -> anyhow::Result<Limits> {
    let shown = file.display().to_string();
    let text = read_file(file).with_context(|| format!("cannot read {shown}"))?;
    let limits: Limits = toml::from_str(&text).with_context(|| shown.clone())?;
    limits.validate().with_context(|| shown.clone())?;
    Ok(limits)
}

fn apply_limits(args: &ApplyArgs, device: &Device, limits: &Limits) -> anyhow::Result<String> {
    let options = args.options();
    if args.dry_run {
        let report = qjump::check(device, limits, &options)?;
        let hook = match report.hook {
            Some(hook) => format!("at {hook}"),
            None => "at tcx, or clsact where the kernel has none".to_owned(),
        };
        let verb = match report.replaced {
            Some(_) => "would get these limits instead of those that it has",
            None => "would be limited by level",
        };
        let text = format!("{device} {verb}, {hook}; nothing was changed\n");
        return Ok(text + &details(limits, &report, options.side)?);
    }
    let report = qjump::apply(device, limits, &options)?;
    if let Some(until_ns) = report.until_ns
        && let Err(error) = guard(args, &report, until_ns)
    {
        // Nobody would undo it.
        qjump::remove(device)?;
        return Err(error);
    }
    let at = report.hook.map(|hook| format!(", at {hook}"));
    let verb = match report.replaced {
        Some(_) => "has new limits",
        None => "is limited by level from now on",
    };
    let mut text = format!("{device} {verb}{}\n", at.unwrap_or_default());
    match args.trial {
        Some(trial) => writeln!(
            text,
            "it ends in {trial} unless you run: shallows qjump confirm {}",
            device_options(device)
        )?,
        None => writeln!(
            text,
            "remove it: shallows qjump remove {}",
            device_options(device)
        )?,
    }
    Ok(text + &details(limits, &report, options.side)?)
}

/// Notes for operators on a device's queue and frames.
fn details(limits: &Limits, report: &Report, side: Side) -> anyhow::Result<String> {
    let mut text = String::new();
    if side == Side::Egress {
        writeln!(text, "its queue is {}", report.queue)?;
    }
    for (level, bytes) in limits.levels_below(report.frame) {
        writeln!(
            text,
            "note: level {level} may send {bytes} per epoch on the wire, so it drops frames of more \
             than {}B; the device sends up to {}",
            bytes.get() - 24,
            report.frame
        )?;
    }
    Ok(text)
}

/// Starts the process that undoes a trial. If it is killed, the limiter still ends: its program lets
/// everything pass from then on.
fn guard(args: &ApplyArgs, report: &Report, until_ns: u64) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["qjump", "guard", "--dev", &args.device.dev]);
    if let Some(netns) = &args.device.netns {
        command.args(["--netns", netns]);
    }
    command.args(["--until-ns", &until_ns.to_string()]);
    if let Some(before) = &report.replaced {
        command.args(["--before", &toml::to_string(before)?]);
    }
    if args.guest {
        command.arg("--guest");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null());
    let started = command.spawn();
    started.context("cannot start the process that undoes the trial")?;
    Ok(())
}

/// Waits for the end of a trial and undoes it.
pub(super) fn stand_guard(args: &GuardArgs) -> anyhow::Result<()> {
    let before = args.before.as_deref().map(toml::from_str).transpose()?;
    let options = Options {
        queue: QueueChoice::Ignore,
        side: side(args.guest),
        ..Options::default()
    };
    let device = args.device.device();
    Ok(qjump::guard(
        &device,
        args.until_ns,
        before.as_ref(),
        &options,
    )?)
}

pub(super) fn confirm(args: &DeviceArgs) -> anyhow::Result<String> {
    let device = args.device();
    qjump::confirm(&device)?;
    Ok(format!("{device} stays limited\n"))
}

pub(super) fn remove(args: &DeviceArgs) -> anyhow::Result<String> {
    let device = args.device();
    qjump::remove(&device)?;
    Ok(format!("{device} has no limiter any more\n"))
}

/// The options that name a device.
fn device_options(device: &Device) -> String {
    match &device.netns {
        Some(netns) => format!("--netns {netns} --dev {}", device.name),
        None => format!("--dev {}", device.name),
    }
}
