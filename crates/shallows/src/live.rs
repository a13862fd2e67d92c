//! Scenarios on this machine, for `shallows run --live` and others.

mod controller;
mod plan;
mod results;
mod scale;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use shallows_live::experiment::{ExperimentError, Observed};
use shallows_live::io::{IoError, IoKind};
use shallows_live::switch::SwitchError;
use shallows_live::{bench, lab};
use shallows_results::flows::write_flows;
use shallows_results::record::Completeness;
use shallows_results::summary::Summary;

use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::output;
use crate::run::{
    loads, nothing, prepare_out, settings, warn_of_another_version, watch_for_ctrl_c,
    write_resolved,
};
use crate::scenario::{Built, Loaded};
use controller::Chosen;
pub(crate) use plan::{SAMPLE_EVERY, ideal_fcts};
pub(crate) use results::{facts, records};
use scale::Scale;

/// A run that lost more of its CPUs than this to other virtual machines shows nothing.
const MOST_STEAL: f64 = 0.03;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let (loaded, built) = load(args)?;
    let controller = Chosen::new(&loaded)?;
    let experiment = plan::experiment(&loaded, &built, &controller)?;
    let ideal = ideal_fcts(&loaded, &built)?;
    let interrupted = watch_for_ctrl_c()?;
    let out = prepare_out(args, &loaded)?;

    let begun = Instant::now();
    let observed = experiment.run(&interrupted).map_err(anyhow::Error::from)?;
    let wall = begun.elapsed();
    let stopped = interrupted.load(std::sync::atomic::Ordering::Relaxed);
    let completeness = if stopped {
        Completeness::Partial
    } else {
        Completeness::Complete
    };

    results::write(&out, &observed)?;
    write_resolved(&out, &loaded)?;
    let records = records(&observed, &built, &ideal);
    let mut text = String::new();
    if !records.is_empty() {
        let facts = facts(&observed, &records, wall);
        let rule = loaded.scenario.report.percentiles;
        let summary = Summary::new(&records, completeness, built.size_classes, rule, facts);
        let summary = summary.map_err(anyhow::Error::from)?;
        let extension = args.format.format().extension();
        let flows = out.join("flows").with_extension(extension);
        write_flows(&flows, &records, completeness).map_err(anyhow::Error::from)?;
        let json = summary.write_json(&out.join("summary.json"));
        json.map_err(anyhow::Error::from)?;
        text = if args.json {
            summary.to_json()
        } else {
            format!("{}{summary}", loads(&built))
        };
    } else if experiment.commands.is_empty() {
        return Err(nothing("started", &loaded).into());
    }
    if !args.json {
        let (report, out) = (results::report(&observed, &loaded), out.display());
        text = format!("{text}{report}results: {out}\n");
    }
    output::print(&text)?;
    if stopped {
        return Err(Failure::Interrupted);
    }
    Ok(believe(&observed)?)
}

/// The scenario as it will run.
fn load(args: &RunArgs) -> Result<(Loaded, Built), Failure> {
    let loaded = Loaded::read(&args.scenario, &settings(args)?)?;
    warn_of_another_version(&loaded);
    scaled(loaded, args.scale)
}

/// A scenario that can run live, with its rates and times scaled.
pub(crate) fn scaled(mut loaded: Loaded, factor: Option<f64>) -> Result<(Loaded, Built), Failure> {
    let built = loaded.build()?;
    plan::refuse(&loaded, &built, factor)?;
    let Some(factor) = factor else {
        return Ok((loaded, built));
    };
    let scale = Scale::new(factor).context("--scale")?;
    // Flows are those of the scenario itself, so that scaling changes when but never what.
    let workload = scale.workload(built.workload);
    loaded.scenario = scale.scenario(&loaded.scenario)?;
    let fabric = loaded.fabric()?;
    let built = loaded.build_with(fabric, workload)?;
    Ok((loaded, built))
}

/// Runs a scenario that [`scaled`] has let pass.
pub(crate) fn observe(
    loaded: &Loaded,
    built: &Built,
    interrupted: &AtomicBool,
) -> Result<Observed, Failure> {
    let controller = Chosen::new(loaded)?;
    let experiment = plan::experiment(loaded, built, &controller)?;
    Ok(experiment.run(interrupted).map_err(anyhow::Error::from)?)
}

/// Refuses results that the machine was too busy for.
pub(crate) fn believe(observed: &Observed) -> anyhow::Result<()> {
    let verdict = observed.report.snapshot.verdict;
    if !verdict.faithful {
        return Err(anyhow!(
            "the switch did not keep time, so these results are not to be believed ({verdict}); \
             use a lower --scale or a quieter machine"
        ));
    }
    match observed.steal {
        Some(steal) if steal > MOST_STEAL => Err(anyhow!(
            "other virtual machines took {:.1}% of the CPUs, so these results are not to be \
             believed; {:.0}% may be taken",
            100.0 * steal,
            100.0 * MOST_STEAL
        )),
        _ => Ok(()),
    }
}

/// `shallows lab clean`.
pub(crate) fn clean() -> Result<(), Failure> {
    let cleaned = lab::clean().map_err(anyhow::Error::from)?;
    let removed = cleaned.removed.iter().map(|name| format!("removed {name}"));
    let alive = cleaned
        .alive
        .iter()
        .map(|name| format!("left {name}: its program still runs"));
    let mut lines: Vec<String> = removed.chain(alive).collect();
    if lines.is_empty() {
        lines.push("nothing was left".to_owned());
    }
    let text = lines.join("\n") + "\n";
    output::print(&text)?;
    Ok(())
}

/// `shallows bench live`: the shortest and the longest frames, by each way into the kernel.
pub(crate) fn bench(json: bool, seconds: u64) -> Result<(), Failure> {
    let time = Duration::from_secs(seconds);
    let mut results = Vec::new();
    for io in [IoKind::Packet, IoKind::Xdp] {
        for length in [60, 1514] {
            match bench::throughput(io, length, time) {
                Ok(result) => results.push(result),
                Err(ExperimentError::Switch(SwitchError::Io(error @ IoError::NoXdp(_)))) => {
                    eprintln!("left out: {error}");
                }
                Err(error) => return Err(anyhow::Error::from(error).into()),
            }
        }
    }
    let text = if json {
        serde_json::to_string_pretty(&results).context("cannot write JSON")? + "\n"
    } else {
        let lines = results.iter().map(|result| format!("{result}\n"));
        lines.collect::<Vec<_>>().concat()
    };
    output::print(&text)?;
    Ok(())
}
