//! `shallows qjump`: plan levels, and limit what the devices of this machine send by them.

#[cfg(live)]
mod automatic;
#[cfg(live)]
mod device;
mod plan;
#[cfg(live)]
mod status;
#[cfg(live)]
mod verify;

use clap::Subcommand;
use shallows_core::units::Rate;

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum QjumpCommand {
    /// Choose levels for a network: epoch, bytes an epoch, rates, latencies, and what breaks them.
    Plan(Box<plan::PlanArgs>),
    /// Limit what a device sends, or change its limits. Needs root.
    #[cfg(live)]
    Apply(device::ApplyArgs),
    /// Keep a limiter that was applied `--for` some time. Needs root.
    #[cfg(live)]
    Confirm(device::DeviceArgs),
    #[cfg(live)]
    #[command(hide = true)]
    Guard(device::GuardArgs),
    /// Choose the levels of the programs that have none, by what they send, until Ctrl-C. Needs
    /// root and a limiter at the device.
    #[cfg(live)]
    Auto(automatic::AutoArgs),
    /// Show what the limiters of this machine have counted. Needs root.
    #[cfg(live)]
    Status(status::StatusArgs),
    /// Probe whether hosts and switches on a path serve levels in strict priority.
    #[cfg(live)]
    Verify(verify::VerifyArgs),
    /// Remove the limiter of a device. Needs root.
    #[cfg(live)]
    Remove(device::DeviceArgs),
}

pub(crate) fn qjump(command: &QjumpCommand) -> Result<(), Failure> {
    let text = match command {
        QjumpCommand::Plan(args) => plan::plan(args)?,
        #[cfg(live)]
        QjumpCommand::Apply(args) => device::apply(args)?,
        #[cfg(live)]
        QjumpCommand::Confirm(device) => device::confirm(device)?,
        #[cfg(live)]
        QjumpCommand::Guard(args) => return Ok(device::stand_guard(args)?),
        #[cfg(live)]
        QjumpCommand::Auto(args) => return Ok(automatic::choose(args)?),
        #[cfg(live)]
        QjumpCommand::Status(args) => status::status(args)?,
        #[cfg(live)]
        QjumpCommand::Verify(args) => return Ok(verify::verify(args)?),
        #[cfg(live)]
        QjumpCommand::Remove(device) => device::remove(device)?,
    };
    Ok(output::print(&text)?)
}

/// With three digits.
fn shown_rate(rate: Rate) -> String {
    let bps = rate.bps() as f64;
    let (scale, unit) = match bps {
        bps if bps >= 1e9 => (1e9, "Gbps"),
        bps if bps >= 1e6 => (1e6, "Mbps"),
        bps if bps >= 1e3 => (1e3, "kbps"),
        _ => (1.0, "bps"),
    };
    let value = bps / scale;
    let decimals = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}
