//! `shallows sonic`: SONiC's `config_db.json`, checked, imported and exported.

mod check;
mod export;
mod import;

use std::path::Path;

use anyhow::anyhow;
use clap::Subcommand;
use shallows_core::units::{Bytes, Rate, Time};
use shallows_operate::sonic::ConfigDb;
use shallows_run::{Scenario, Setting, read_file};

use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum SonicCommand {
    /// Say what a configuration will do to packets, and what is wrong with it.
    ///
    /// Exit codes: 0 there is no error among the findings; 1 there is one; 2 the file cannot be
    /// read or the command line is wrong.
    Check(check::CheckArgs),
    /// Print the `[ports]` part of a scenario whose switches behave as a configuration says.
    ///
    /// Comments say line by line what has no equal in a scenario.
    Import(import::ImportArgs),
    /// Print the smallest change that makes a switch behave as a scenario's ports, as a JSON patch
    /// for `config apply-patch`.
    ///
    /// How each part is met, exactly or by the nearest that a switch can do, goes to standard error.
    Export(export::ExportArgs),
}

pub(crate) fn sonic(command: &SonicCommand) -> Result<(), Failure> {
    match command {
        SonicCommand::Check(args) => check::check(args),
        SonicCommand::Import(args) => import::import(args),
        SonicCommand::Export(args) => export::export(args),
    }
}

/// Reads a configuration.
fn read(path: &Path) -> Result<ConfigDb, Failure> {
    let name = path.display().to_string();
    let text =
        read_file(path).map_err(|error| Failure::File(anyhow!("cannot read {name}: {error}")))?;
    ConfigDb::parse(&name, &text).map_err(|error| Failure::File(error.into()))
}

/// Reads a scenario with some of its keys set anew.
pub(crate) fn load(path: &Path, assignments: &[String]) -> Result<Scenario, Failure> {
    let setting = |assignment: &String| Setting {
        shown: format!("--set {assignment}"),
        assignment: assignment.clone(),
    };
    let settings: Vec<Setting> = assignments.iter().map(setting).collect();
    Ok(Scenario::read(path, &settings)?)
}

/// The base round-trip time of a scenario's longest path: a full packet there, an ACK back, and
/// what both hosts take.
fn base_rtt(scenario: &Scenario) -> Result<Time, Failure> {
    let fabric = scenario.fabric()?;
    let config = &scenario.config;
    let transport = &config.transport;
    let hop = |rate: Rate, bytes: u64| rate.transmission_time(Bytes::new(bytes));
    let header = u64::from(transport.header);
    let full = header + u64::from(transport.segment);
    let there = fabric.longest_path(|link| link.propagation + hop(link.rate, full));
    let back = fabric.longest_path(|link| link.propagation + hop(link.rate, header));
    let delays = config
        .ports
        .host_delay
        .each("host-delay", fabric.hosts() as usize);
    let delays = delays.map_err(|error| scenario.error("ports.host-delay", error.to_string()))?;
    let slowest = delays.into_iter().max().unwrap_or_default();
    Ok(there + back + slowest + slowest)
}
