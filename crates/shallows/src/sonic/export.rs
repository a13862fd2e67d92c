//! `shallows sonic export`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use shallows_core::port::SchemeConfig;
use shallows_core::units::Rate;
use shallows_operate::sonic::{
    self, ConfigDb, ExportOptions, Exported, Fidelity, ImportOptions, PortName,
};
use shallows_run::Scenario;

use super::import::links;
use super::{load, read};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The scenario, a TOML file.
    scenario: PathBuf,
    /// The present configuration of the switch, a config_db.json.
    #[arg(long, value_name = "CONFIG_DB")]
    base: PathBuf,
    /// Set a key of the scenario, such as ports.switch.marker.scheme.per-queue.threshold=62.5KB.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A port of the switch and the links of a `[[ports.special]]` that it stands for, such as
    /// 'Ethernet48=leaf*->spine*'; all ports like it at its speed change with it. Other ports become
    /// `ports.switch`.
    #[arg(long, value_name = "PORT=LINKS", value_parser = links)]
    links: Vec<(PortName, Vec<String>)>,
    /// Speed of ports whose speed the file does not give, such as 100Gbps.
    #[arg(long, value_name = "RATE")]
    speed: Option<Rate>,
    /// Print the rows that change, as a config_db.json for `config load`, instead of a patch.
    #[arg(long)]
    fragment: bool,
    /// Write both into a directory instead: patch.json and config_db.json, and the whole
    /// configuration as it will be, after.json.
    #[arg(long, value_name = "DIR", conflicts_with = "fragment")]
    out: Option<PathBuf>,
}

pub(super) fn export(args: &ExportArgs) -> Result<(), Failure> {
    let scenario = load(&args.scenario, &args.set)?;
    let db = read(&args.base)?;
    let ports = &scenario.config.ports;
    let mut options = ExportOptions {
        pool: ports.pool,
        special: Vec::new(),
        speed: args.speed,
    };
    for (port, links) in &args.links {
        let special = ports
            .special
            .iter()
            .find(|special| special.links.0 == *links);
        let special = special.ok_or_else(|| {
            let problem = format!("no [[ports.special]] has the links {links:?} of {port}");
            scenario.error("ports", problem)
        })?;
        options.special.push((port.clone(), special.port.clone()));
    }
    let change = sonic::export(&db, &ports.switch, &options);
    let change = change.map_err(|error| Failure::File(error.into()))?;
    for statement in &change.statements {
        output::note(statement);
    }
    if let Some(command) = cost(&args.scenario, &scenario, &change) {
        output::note(format!("to see what the nearest marker costs: {command}"));
    }
    let patch = pretty(&change.patch)?;
    let fragment = pretty(&change.fragment)?;
    match &args.out {
        Some(directory) => write(directory, &patch, &fragment, &pretty(&change.after)?),
        None if args.fragment => Ok(output::print(&fragment)?),
        None => Ok(output::print(&patch)?),
    }
}

fn pretty(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
    Ok(text + "\n")
}

fn write(directory: &Path, patch: &str, fragment: &str, after: &str) -> Result<(), Failure> {
    let files = [
        ("patch.json", patch),
        ("config_db.json", fragment),
        ("after.json", after),
    ];
    let result = fs::create_dir_all(directory).and_then(|()| {
        files
            .into_iter()
            .try_for_each(|(name, text)| fs::write(directory.join(name), text))
    });
    let directory = directory.display();
    result.with_context(|| format!("cannot write to {directory}"))?;
    Ok(output::print(&format!(
        "written to {directory}: patch.json, config_db.json, after.json\n"
    ))?)
}

/// The command that compares the scenario's marker with that of the switch, if they differ.
fn cost(path: &Path, scenario: &Scenario, change: &Exported) -> Option<String> {
    let nearest = change.statements.iter();
    let mut nearest = nearest.filter(|of| of.key == "marker" && of.fidelity != Fidelity::Exact);
    nearest.next()?;
    let after = ConfigDb::parse("after", &change.after.to_string()).ok()?;
    let ports = sonic::import(&after, &ImportOptions::default()).ok()?;
    let text = |scheme: &SchemeConfig| Some(toml::Value::try_from(scheme).ok()?.to_string());
    let wanted = text(&scenario.config.ports.switch.marker.scheme)?;
    let given = text(&ports.switch.marker.scheme)?;
    let path = path.display();
    (wanted != given).then(|| {
        format!(
            "shallows run {path} --seeds 5 --vary 'ports.switch.marker.scheme={wanted},{given}'"
        )
    })
}
