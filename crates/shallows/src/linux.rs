//! `shallows linux`: the ports and transport of a scenario as commands for a host.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use shallows_core::units::Rate;
use shallows_operate::linux::{self, Command};
use shallows_operate::sonic::Fidelity;

use crate::failure::Failure;
use crate::output;
use crate::sonic::load;

#[derive(Debug, Args)]
pub(crate) struct LinuxArgs {
    /// The scenario, a TOML file.
    scenario: PathBuf,
    /// Set a key of the scenario, such as transport.controller=cubic.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The device, such as eth0.
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// Rate of the device; that of the slowest link of a host if not given.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Destinations that the transport is for, in `ip route`.
    #[arg(long, value_name = "PREFIX", default_value = "10.0.0.0/8", value_parser = prefix)]
    prefix: String,
}

/// An address and a length: what is printed is run by a shell.
fn prefix(text: &str) -> Result<String, String> {
    let is_prefix = || {
        let (address, length) = text.split_once('/')?;
        let most = match address.parse().ok()? {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        let length: u8 = length.parse().ok()?;
        (length <= most).then_some(())
    };
    match is_prefix() {
        Some(()) => Ok(text.to_owned()),
        None => Err("write an address and a length such as 10.0.0.0/8".to_owned()),
    }
}

pub(crate) fn linux(args: &LinuxArgs) -> Result<(), Failure> {
    let scenario = load(&args.scenario, &args.set)?;
    let fabric = scenario.fabric()?;
    let rate = args.rate.or(fabric.slowest_edge());
    let rate = rate.context("the scenario has no hosts; use --rate")?;
    let port = &scenario.config.ports.switch;
    let qdiscs = linux::qdiscs(port, rate, &args.device);
    let qdiscs = qdiscs.map_err(|error| scenario.error("ports.switch", error.to_string()))?;
    let transport = linux::transport(&scenario.config.transport, &args.device, &args.prefix);
    // A line of its own would be a command.
    let name = args.scenario.to_string_lossy();
    let name = name.replace(char::is_control, "?");
    let mut text = format!("#!/bin/sh -e\n# {name} at {rate}, for {}\n", args.device);
    section(&mut text, "ports.switch", &qdiscs);
    section(&mut text, "transport", &transport);
    Ok(output::print(&text)?)
}

fn section(text: &mut String, name: &str, commands: &[Command]) {
    let _ = writeln!(text, "\n# {name}");
    let mut said = "";
    for command in commands {
        let fidelity = match command.fidelity {
            Fidelity::Exact => "exact",
            Fidelity::Nearest => "nearest",
            Fidelity::Missing => "missing",
        };
        if said != command.says {
            let _ = writeln!(text, "# {fidelity}: {}", command.says);
        }
        said = &command.says;
        if let Some(words) = &command.words {
            let _ = writeln!(text, "{words}");
        }
    }
}
