//! `shallows run`: from a scenario to results.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use shallows_results::record::Completeness;
use shallows_run::{Built, Loaded, Options, Setting};
use shallows_sim::workload::OfferedLoad;

use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;
use crate::progress::ProgressLine;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario, &settings(args)?)?;
    let built = loaded.build()?;
    let interrupted = watch_for_ctrl_c()?;
    let out = out(args, &loaded);
    let options = Options {
        out: &out,
        format: args.format.format(),
        threads: args.threads,
        interrupted: &interrupted,
    };
    let line = ProgressLine::new(built.workload.flows.len(), loaded.scenario.until);
    let finished = shallows_run::run(&loaded, &built, &options, |at| line.update(at));
    line.clear();
    let finished = finished?;
    let summary = &finished.summary;
    if args.json {
        output::print(&summary.to_json())?;
    } else {
        let (loads, out) = (loads(&built), out.display());
        let probes = match &finished.probes[..] {
            [] => String::new(),
            files => format!("probes: {}\n", files.join(", ")),
        };
        output::print(&format!("{loads}{summary}results: {out}\n{probes}"))?;
    }
    match finished.completeness {
        Completeness::Partial => Err(Failure::Interrupted),
        Completeness::Complete if summary.classes.all.fct.is_none() => {
            let until = loaded.scenario.until;
            Err(match until {
                Some(until) => anyhow!("no flow finished before {until}; let the run last longer"),
                None => anyhow!("no flow finished"),
            }
            .into())
        }
        Completeness::Complete => Ok(()),
    }
}

/// Reads a scenario, and warns of one that another version of the program wrote.
pub(crate) fn load(path: &Path, settings: &[Setting]) -> Result<Loaded, Failure> {
    let loaded = Loaded::read(path, settings)?;
    let this = env!("CARGO_PKG_VERSION");
    if let Some(version) = &loaded.scenario.version
        && version != this
    {
        eprintln!(
            "warning: the scenario was written by version {version}; results of version {this} \
             may differ"
        );
    }
    Ok(loaded)
}

/// The options that change the scenario; a later one wins.
pub(crate) fn settings(args: &RunArgs) -> Result<Vec<Setting>, Failure> {
    let mut settings = set(&args.set);
    let mut add = |shown: String, assignment: String| settings.push(Setting { shown, assignment });
    if let Some(seed) = args.seed {
        add(format!("--seed {seed}"), format!("seed={seed}"));
    }
    if let Some(until) = &args.until {
        add(format!("--until {until}"), format!("until={until:?}"));
    }
    if let Some(flows) = &args.flows {
        // Not relative to the scenario's directory, as what it says itself would be.
        let path = std::path::absolute(flows).context("cannot tell the current directory")?;
        let path = toml::Value::String(path.to_string_lossy().into_owned());
        add(
            format!("--flows {}", flows.display()),
            format!("workload={{ list = {path} }}"),
        );
    }
    Ok(settings)
}

/// What `--set` says.
pub(crate) fn set(assignments: &[String]) -> Vec<Setting> {
    let setting = |assignment: &String| Setting {
        shown: format!("--set {assignment}"),
        assignment: assignment.clone(),
    };
    assignments.iter().map(setting).collect()
}

/// Where the results go.
pub(crate) fn out(args: &RunArgs, loaded: &Loaded) -> PathBuf {
    let name = loaded.scenario.name.as_deref().unwrap_or("scenario");
    let out = args.out.clone();
    out.unwrap_or_else(|| Path::new("out").join(name))
}

/// Lines about the loads that were asked for, if any were.
pub(crate) fn loads(built: &Built) -> String {
    let line = |load: &OfferedLoad| {
        let (requested, offered) = (100.0 * load.requested, 100.0 * load.offered);
        let gbps = load.capacity / 1e9;
        format!("load: {requested:.1}% requested, {offered:.1}% offered of {gbps} Gbps\n")
    };
    match &built.workload.offered[..] {
        [] => String::new(),
        loads => loads.iter().map(line).collect::<String>() + "\n",
    }
}
