//! `shallows run`: from a scenario to results.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use shallows_core::registry::Registry;
use shallows_model::workload::OfferedLoad;
use shallows_results::record::Completeness;
use shallows_results::summary::Summary;
use shallows_run::{
    FlowRecords, Interrupt, Observer, Options, RunPlan, Scenario, Setting, Simulated, World as _,
};
use shallows_study::trace::{Sampling, Tracer};

use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::notes::notes;
use crate::output;
use crate::progress::ProgressLine;

pub(crate) fn run(args: &RunArgs, registry: &Registry) -> Result<(), Failure> {
    let scenario = load(&args.scenario, &settings(args)?, registry)?;
    let interrupted = watch_for_ctrl_c()?;
    let interrupted = Interrupt::Flag(&interrupted);
    let plan = Simulated.admit(scenario.build_unless(interrupted)?)?;
    let out = out(args, &scenario);
    let options = Options {
        out: Some((&out, args.format.format())),
        threads: args.threads.unwrap_or(1),
        interrupted,
        flows: FlowRecords::OnDisk,
    };
    let mut line = ProgressLine::new(plan.workload.flows.len(), plan.until);
    let tracer = args.trace.as_ref().map(|path| Tracer::create(path, &plan));
    let mut tracer = tracer.transpose()?;
    let mut observers: Vec<&mut dyn Observer> = vec![&mut line];
    observers.extend(tracer.as_mut().map(|tracer| tracer as &mut dyn Observer));
    let finished = plan.run(&options, &mut observers);
    line.clear();
    let finished = finished?;
    let traced = tracer.map(Tracer::finish).transpose()?;
    let Some(summary) = &finished.record.summary else {
        return Ok(());
    };
    if args.json {
        output::print(&summary.to_json())?;
    } else {
        let (loads, out) = (loads(&plan, summary), out.display());
        let probes = match &finished.probes[..] {
            [] => String::new(),
            files => format!("probes: {}\n", files.join(", ")),
        };
        let notes = notes(&plan, summary);
        let explained = explained(args, summary);
        let trace = traced.map_or_else(String::new, |of| described(args, of));
        output::print(&format!(
            "{loads}{summary}{explained}{notes}results: {out}\n{probes}{trace}"
        ))?;
    }
    let none_finished = summary.classes.all.fct.is_none();
    match (summary.completeness, scenario.config.until) {
        (Completeness::Partial, _) => Err(Failure::Interrupted),
        (_, Some(until)) if none_finished && plan.has_finite_flows() => {
            Err(anyhow!("no flow finished before {until}; let the run last longer").into())
        }
        (_, None) if none_finished && plan.has_finite_flows() => {
            Err(anyhow!("no flow finished").into())
        }
        (Completeness::Complete, _) => Ok(()),
    }
}

/// The line about a trace, with its sampling.
fn described(args: &RunArgs, of: Sampling) -> String {
    let path = args.trace.as_deref().unwrap_or(Path::new("")).display();
    let size = of.bytes as f64 / 1e6;
    let mut text = format!(
        "trace: {path} ({size:.1} MB; samples at most {} apart",
        of.interval
    );
    if let Some(until) = of.until {
        let _ = write!(text, ", none after {until}");
    }
    if of.flows_left_out > 0 {
        let _ = write!(text, ", {} flows left out", of.flows_left_out);
    }
    text + ")\n"
}

/// The meaning of a summary's columns, and the engine with the reason for it, if the user asks.
pub(crate) fn explained(args: &RunArgs, summary: &Summary) -> String {
    if !args.explain {
        return String::new();
    }
    match &summary.facts.engine {
        Some(engine) => format!("{}engine: {engine}\n", summary.definitions()),
        None => summary.definitions(),
    }
}

/// Reads a scenario, and warns of one that another version of the program wrote.
pub(crate) fn load(
    path: &Path,
    settings: &[Setting],
    registry: &Registry,
) -> Result<Scenario, Failure> {
    let scenario = Scenario::read_with(path, settings, registry)?;
    let this = env!("CARGO_PKG_VERSION");
    if let Some(version) = &scenario.config.version
        && version != this
    {
        output::note(format!(
            "warning: the scenario was written by version {version}; results of version {this} \
             may differ"
        ));
    }
    Ok(scenario)
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

/// Settings given by `--set`.
pub(crate) fn set(assignments: &[String]) -> Vec<Setting> {
    let setting = |assignment: &String| Setting {
        shown: format!("--set {assignment}"),
        assignment: assignment.clone(),
    };
    assignments.iter().map(setting).collect()
}

/// Directory of the results.
pub(crate) fn out(args: &RunArgs, scenario: &Scenario) -> PathBuf {
    let name = scenario.config.name.as_deref().unwrap_or("scenario");
    let out = args.out.clone();
    out.unwrap_or_else(|| Path::new("out").join(name))
}

/// Lines about the loads that were asked for, if any were.
pub(crate) fn loads(plan: &RunPlan, summary: &Summary) -> String {
    let carried = summary.facts.loads.first().and_then(|of| of.carried);
    let carried = carried.map_or_else(String::new, |carried| {
        format!("; {:.1}% carried by the hosts' links", 100.0 * carried)
    });
    let line = |load: &OfferedLoad| {
        let (requested, offered) = (100.0 * load.requested, 100.0 * load.offered);
        let gbps = load.capacity / 1e9;
        format!("load: {requested:.1}% requested, {offered:.1}% offered of {gbps} Gbps{carried}\n")
    };
    match &plan.workload.offered[..] {
        [] => String::new(),
        loads => loads.iter().map(line).collect::<String>() + "\n",
    }
}
