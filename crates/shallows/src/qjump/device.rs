//! `shallows qjump apply` and `remove`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use shallows_bpf::qjump::{self, Device, Hook, Limits};

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
    /// Where to put the program (the best that the kernel has, if not given).
    #[arg(long, value_enum)]
    hook: Option<HookName>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HookName {
    Tcx,
    Clsact,
}

impl DeviceArgs {
    pub(super) fn device(&self) -> Device {
        Device {
            name: self.dev.clone(),
            netns: self.netns.clone(),
        }
    }
}

pub(super) fn apply(args: &ApplyArgs) -> anyhow::Result<String> {
    let device = args.device.device();
    let shown = args.file.display().to_string();
    let text = fs::read_to_string(&args.file).with_context(|| format!("cannot read {shown}"))?;
    let limits: Limits = toml::from_str(&text).with_context(|| shown.clone())?;
    limits.validate().with_context(|| shown.clone())?;
    let only = args.hook.map(|hook| match hook {
        HookName::Tcx => Hook::Tcx,
        HookName::Clsact => Hook::Clsact,
    });
    let report = qjump::apply(&device, &limits, only)?;
    let mut text = format!(
        "{device} is limited by level from now on, at {}\n\
         remove it: shallows qjump remove {}\n",
        report.hook,
        options(&device)
    );
    if let Some(segments) = report.most_segments {
        writeln!(
            text,
            "gso_max_segs is {segments} until then, so that no packet of several segments exceeds \
             a level"
        )?;
    }
    for (level, bytes) in limits.levels_below(report.frame) {
        writeln!(
            text,
            "note: level {level} drops packets of more than {bytes}; the device sends up to {}",
            report.frame
        )?;
    }
    Ok(text)
}

pub(super) fn remove(args: &DeviceArgs) -> anyhow::Result<String> {
    let device = args.device();
    qjump::remove(&device)?;
    Ok(format!("{device} has no limiter any more\n"))
}

/// The options that name a device.
fn options(device: &Device) -> String {
    match &device.netns {
        Some(netns) => format!("--netns {netns} --dev {}", device.name),
        None => format!("--dev {}", device.name),
    }
}
