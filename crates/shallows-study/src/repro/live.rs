//! `shallows repro --live`: a figure's runs on this machine, beside the same runs simulated.
//!
//! Live runs are slower by a scale: rates are multiplied by it, times divided. What they show is
//! scaled back, so that figures and claims need not know.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use shallows_live::experiment::Observed;
use shallows_results::record::Completeness;
use shallows_results::report::LiveRuns;
use shallows_results::{Format, write_text};

use super::LIVE;
use super::plan::Plan;
use super::worlds::Live;
use crate::executor::{Executor, Job};
use crate::measured::{Kept, Measured, RunFidelity};
use crate::study::results::Results;
use shallows_run::live;
use shallows_run::measurements::{Measurements, scaled};
use shallows_run::{Failure, LIVE_BUILD_ID, World as _};

/// File of a live run's measurements beside its record.
const RESULT: &str = "result.json";

/// Number of repetitions of a run that the machine was too busy for.
const ATTEMPTS: usize = 3;

/// The live runs of a figure.
pub(super) struct LiveResults {
    scale: f64,
    runs: Vec<Arc<Measured>>,
}

/// Makes every run of a figure live that is not kept from before, one after the other.
pub(super) fn run(
    executor: &Executor<'_>,
    plan: &Plan,
    scale: Option<f64>,
) -> Result<LiveResults, Failure> {
    let of_figure = plan.config().live.as_ref().map(|live| live.scale);
    let scale = scale.or(of_figure).unwrap_or(1.0);
    let mut runs: BTreeMap<String, Arc<Measured>> = BTreeMap::new();
    let mut keys = Vec::new();
    for (number, job) in plan.jobs.iter().enumerate() {
        let job = Job {
            key: format!("{}{LIVE}-{scale}-{LIVE_BUILD_ID}", job.key),
            ..job.clone()
        };
        keys.push(job.key.clone());
        if runs.contains_key(&job.key) {
            continue;
        }
        let place = executor.place(&job);
        let kept = kept(&place).filter(|_| !executor.fresh);
        let measured = if let Some(measured) = kept {
            measured
        } else {
            let (number, all) = (number + 1, plan.jobs.len());
            let words = format!("{}: live run {number} of {all}", plan.id);
            executor.observer.note(&words);
            let measured = measure(executor, &job, scale)?;
            keep(&place, &measured)?;
            measured
        };
        runs.insert(job.key, Arc::new(measured));
    }
    let runs = keys.iter().map(|key| Arc::clone(&runs[key])).collect();
    Ok(LiveResults { scale, runs })
}

/// Measurements of a kept live run, if it is complete.
fn kept(place: &Path) -> Option<Measured> {
    let text = fs::read_to_string(place.join(RESULT)).ok()?;
    let measured: Measured = serde_json::from_str(&text).ok()?;
    Some(Measured {
        kept: Kept::Directory(place.to_owned()),
        ..measured
    })
}

fn keep(place: &Path, measured: &Measured) -> Result<(), Failure> {
    if let Some(record) = measured.record() {
        record.write(place, Format::Parquet)?;
    }
    let json = serde_json::to_string(measured).context("a result is plain data")?;
    // Last, because it says that the run is complete.
    Ok(write_text(&place.join(RESULT), &json)?)
}

/// Makes a run, again if the machine was too busy.
fn measure(executor: &Executor<'_>, job: &Job, scale: f64) -> Result<Measured, Failure> {
    let mut attempt = 1;
    loop {
        let world = live::Live { scale: Some(scale) };
        let plan = world.admit(job.scenario.build()?)?;
        let place = executor.place(job);
        // Of a run that came to nothing. All that is in it is the store's.
        _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let outputs = Some(place.join("commands"));
        let observed = live::observe(&plan, outputs, executor.interrupted)?;
        if executor.interrupted.load(Ordering::Relaxed) {
            let words = "finished runs are kept; the same command goes on from there";
            executor.observer.note(words);
            return Err(Failure::Interrupted);
        }
        match live::believe(&observed) {
            Ok(()) => return measured(job, &observed, scale),
            Err(error) if attempt == ATTEMPTS => return Err(error.into()),
            Err(error) => executor.observer.note(&format!("again: {error}")),
        }
        attempt += 1;
    }
}

/// Measurements of a live run, at the scale of its scenario.
fn measured(job: &Job, observed: &Observed, scale: f64) -> Result<Measured, Failure> {
    let scenario = &job.scenario;
    let plan = scenario.build()?;
    let ideal = live::ideal_fcts(&plan)?;
    let mut records = live::records(observed, &plan, &ideal);
    let mut facts = live::facts(observed, &plan, &records, Duration::ZERO);
    facts.simulated = scaled(facts.simulated, scale);
    for record in &mut records {
        record.start = scaled(record.start, scale);
        record.fct = record.fct.map(|fct| scaled(fct, scale));
    }
    let mut latencies = live::latencies(observed, scenario, &plan.fabric)?;
    for of in &mut latencies {
        of.start = scaled(of.start, scale);
        of.latency = scaled(of.latency, scale);
    }
    let complete = Completeness::Complete;
    let mut record = live::summarized(&plan, complete, records, facts, &latencies)?;
    let measurements = Measurements::of(observed, &plan.fabric).scaled(scale);
    live::add_tables(&mut record, &measurements, &plan)?;
    let of_flows = Measured::of_record(record, Some(scenario));
    let snapshot = &observed.report.snapshot;
    Ok(Measured {
        fidelity: Some(RunFidelity {
            late_share: snapshot.verdict.late_share,
            late_p99_us: snapshot.lateness.p99_us,
            steal: observed.steal,
        }),
        ..of_flows
    })
}

impl LiveResults {
    /// The runs, and how faithful they were.
    pub(super) fn of<'a>(&self, plan: &'a Plan) -> Live<'a> {
        let of_runs = self.runs.iter().filter_map(|run| run.fidelity);
        let worst = |of: fn(&RunFidelity) -> f64| {
            let values = of_runs.clone().map(|fidelity| of(&fidelity));
            values.fold(0.0, f64::max)
        };
        let facts = LiveRuns {
            scale: self.scale,
            runs: self.runs.len(),
            late_share: worst(|of| of.late_share),
            late_p99_us: worst(|of| of.late_p99_us),
            steal: Some(worst(|of| of.steal.unwrap_or_default())),
        };
        let runs = self.runs.iter().map(|run| Some(Arc::clone(run)));
        let results = Results::new(&plan.study, runs.collect());
        Live { facts, results }
    }
}

#[cfg(test)]
mod tests {
    use shallows_results::report::Size;

    use super::*;
    use crate::repro::library::Library;
    use crate::repro::plan::Wanted;

    #[test]
    fn every_figure_with_a_live_table_can_run_live() {
        let library = Library::new(None);
        let mut figures = 0;
        for paper in library.papers().unwrap() {
            let (paper, ids) = library.paper(&paper).unwrap();
            for id in ids {
                let Some(live) = library.figure(&paper.id, &id).unwrap().content.live else {
                    continue;
                };
                figures += 1;
                let wanted = Wanted {
                    size: Size::Live,
                    seeds: Some(1),
                    at: Vec::new(),
                    set: Vec::new(),
                    registry: shallows_core::registry::Registry::default(),
                };
                let plan = Plan::new(&library, &paper, &id, &wanted).unwrap();
                for job in plan.jobs {
                    let world = live::Live {
                        scale: Some(live.scale),
                    };
                    let scaled = job
                        .scenario
                        .build()
                        .map_err(Failure::from)
                        .and_then(|plan| world.admit(plan));
                    scaled.unwrap_or_else(|error| panic!("{}/{id}: {error}", paper.id));
                }
            }
        }
        assert!(figures > 15, "{figures}");
    }
}
