//! `shallows repro --live`: a figure's runs on this machine, beside the same runs simulated.
//!
//! Live runs are slower by a scale: rates are multiplied by it, times divided. What they show is
//! scaled back, so that figures and claims need not know.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use shallows_live::experiment::Observed;
use shallows_results::figure::{Curve, Extent, Origin, Panel, Plot, Row};
use shallows_results::record::Completeness;
use shallows_results::report::{FigureOutcome, LiveRuns, LiveValue, Paper};
use shallows_results::{Format, write_text};

use super::LIVE;
use super::plan::Plan;
use crate::executor::{Executor, Job};
use crate::measured::{Kept, Measured, RunFidelity};
use crate::study::claim;
use crate::study::results::Results;
use shallows_run::live;
use shallows_run::measurements::{Measurements, scaled};
use shallows_run::{Failure, LIVE_BUILD_ID, World as _};

/// File of a live run's measurements beside its record.
const RESULT: &str = "result.json";

/// Number of repetitions of a run that the machine was too busy for.
const ATTEMPTS: usize = 3;

/// The part of a live distribution that is drawn.
const DRAWN: f64 = 0.995;

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
    /// The figure with both worlds in it.
    pub(super) fn outcome(
        self,
        paper: &Paper,
        plan: &Plan,
        simulated: &Results<'_>,
    ) -> FigureOutcome {
        let count = self.runs.len();
        let of_runs = self.runs.iter().filter_map(|run| run.fidelity);
        let worst = |of: fn(&RunFidelity) -> f64| {
            let values = of_runs.clone().map(|fidelity| of(&fidelity));
            values.fold(0.0, f64::max)
        };
        let facts = LiveRuns {
            scale: self.scale,
            runs: count,
            late_share: worst(|of| of.late_share),
            late_p99_us: worst(|of| of.late_p99_us),
            steal: Some(worst(|of| of.steal.unwrap_or_default())),
        };
        let runs = self.runs.into_iter().map(Some);
        let live = Results::new(&plan.study, runs.collect());
        let mut drawn = super::outcome(paper, plan, &live).figure;
        drawn.panels.iter_mut().for_each(trim);
        let values = plan.config().claim.iter().map(|claim| {
            let outcome = claim::evaluate(claim, &live);
            LiveValue {
                ours: outcome.ours,
                spread: outcome.spread,
                values: outcome.values,
                verdict: outcome.verdict,
                note: outcome.note,
            }
        });
        let values: Vec<LiveValue> = values.collect();
        let only_live = plan.config().is_live_only();
        let mut outcome = super::outcome(paper, plan, simulated);
        for (claim, value) in outcome.claims.iter_mut().zip(values) {
            claim.live = Some(value);
        }
        let figure = &mut outcome.figure;
        let simulated = std::mem::take(&mut figure.panels);
        figure.name += LIVE;
        outcome.id += LIVE;
        if only_live {
            figure.panels = drawn.panels;
            outcome.title += ", live";
        } else {
            let pairs = simulated.into_iter().zip(drawn.panels);
            figure.panels = pairs.flat_map(|(one, other)| beside(one, other)).collect();
            let note = outcome.note.get_or_insert_default();
            *note += " Live, pings are ICMP.";
            outcome.title += ", simulated and live";
        }
        outcome.live = Some(facts);
        outcome
    }
}

/// The live values of a panel beside the simulated ones: in the same panel but for grids.
fn beside(simulated: Panel, live: Panel) -> Vec<Panel> {
    let is_ours = |curve: &Curve| curve.origin != Origin::Paper;
    let as_live = |curve: Curve| Curve {
        label: format!("{}, live", curve.label),
        origin: Origin::Live,
        ..curve
    };
    let mut panel = simulated;
    match (&mut panel.plot, live.plot) {
        (Plot::Points(curves), Plot::Points(others))
        | (Plot::Lines(curves), Plot::Lines(others)) => {
            curves.extend(others.into_iter().filter(is_ours).map(as_live));
        }
        (Plot::Rows(rows), Plot::Rows(others)) => {
            for other in others {
                let after = rows.iter().rposition(|row| row.label == other.label);
                let row = Row {
                    label: format!("{}, live", other.label),
                    origin: Origin::Live,
                    paper: None,
                    ..other
                };
                rows.insert(after.map_or(rows.len(), |after| after + 1), row);
            }
        }
        (_, plot) => {
            let title = format!("{}, live", panel.title);
            let live = Panel {
                title,
                plot,
                ..live
            };
            panel.title += ", simulated";
            return vec![panel, live];
        }
    }
    vec![panel]
}

/// Leaves out the last points of distributions: a single ping that met a busy machine would flatten
/// everything else.
fn trim(panel: &mut Panel) {
    if let (Extent::Unit, Plot::Lines(curves)) = (panel.y.extent, &mut panel.plot) {
        for curve in curves {
            curve.points.retain(|point| point.y <= DRAWN);
        }
    }
}

/// The claims as lines: paper, simulated, live.
pub fn three_ways(outcomes: &[FigureOutcome]) -> String {
    let head = ["figure", "claim", "paper", "simulated", "", "live", ""];
    let mut rows = vec![head.map(str::to_owned)];
    for outcome in outcomes {
        for claim in &outcome.claims {
            let live = claim.live.as_ref();
            let of_live = |of: fn(&LiveValue) -> String| live.map_or_else(String::new, of);
            rows.push([
                outcome.id.replace(LIVE, ""),
                claim.what.clone(),
                claim.paper.clone(),
                claim.ours.clone(),
                claim.verdict_text(),
                of_live(|live| live.ours.clone()),
                of_live(LiveValue::verdict_text),
            ]);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 7] = std::array::from_fn(|column| width(column).unwrap_or_default());
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            2 | 3 | 5 => format!("{cell:>width$}"),
            _ => format!("{cell:width$}"),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    for outcome in outcomes {
        if let Some(live) = &outcome.live {
            let _ = writeln!(text, "{}: {live}", outcome.id.replace(LIVE, ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use shallows_results::figure::Axis;
    use shallows_results::report::Size;

    use super::*;
    use crate::repro::library::Library;
    use crate::repro::plan::Wanted;

    #[test]
    fn live_values_stand_in_the_panel_of_the_simulated_ones() {
        let curve = |label: &str, origin| Curve {
            label: label.to_owned(),
            style: 0,
            points: Vec::new(),
            origin,
        };
        let row = |label: &str, value: f64| Row {
            label: label.to_owned(),
            value,
            low: value,
            high: value,
            origin: Origin::Simulated,
            paper: Some(2.0),
        };
        let panel = |plot: Plot| Panel {
            title: String::new(),
            x: Axis::new("", Extent::Data),
            y: Axis::new("", Extent::Data),
            plot,
        };
        let curves = || vec![curve("a", Origin::Simulated), curve("paper", Origin::Paper)];
        let both = beside(panel(Plot::Points(curves())), panel(Plot::Points(curves())));
        let labels = both[0].curves().iter().map(|of| (&*of.label, of.origin));
        let expected = [
            ("a", Origin::Simulated),
            ("paper", Origin::Paper),
            ("a, live", Origin::Live),
        ];
        assert_eq!(labels.collect::<Vec<_>>(), expected);
        let rows = |value| Plot::Rows(vec![row("a", value), row("b", value)]);
        let both = beside(panel(rows(1.0)), panel(rows(3.0)));
        let Plot::Rows(rows) = &both[0].plot else {
            panic!("{both:?}")
        };
        let labels: Vec<&str> = rows.iter().map(|row| &*row.label).collect();
        assert_eq!(labels, ["a", "a, live", "b", "b, live"]);
        assert_eq!((rows[1].value, rows[1].paper), (3.0, None));
    }

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
