//! A scenario in both worlds, side by side.

mod chart;
mod simulated;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use serde::Serialize;
use shallows_live::switch::Verdict;
use shallows_results::figure::{Figure, Words};
use shallows_results::record::{Completeness, FlowRecord};
use shallows_results::summary::{RunFacts, Summary};
use shallows_results::write_text;

use shallows_run::Failure;
use shallows_run::live;
use shallows_run::live::Live;
use shallows_run::measurements::Measurements;
use shallows_run::{RunPlan, Scenario, World as _};
use table::Row;

/// Measurements of one world.
struct Side {
    measurements: Measurements,
    records: Vec<FlowRecord>,
    /// Of the flows, if there are any.
    summary: Option<Summary>,
}

/// `compare.json`.
#[derive(Serialize)]
struct Comparison {
    scenario: String,
    scale: f64,
    rows: Vec<Row>,
    /// Verdict on the live run's timing.
    live: Verdict,
    /// Share of CPU time that other virtual machines took.
    steal: Option<f64>,
}

/// A comparison that is made and written.
pub struct Compared {
    /// For a terminal.
    pub text: String,
    /// For programs.
    pub json: String,
    /// The reason why the live side is not to be believed, if it is not.
    pub believed: anyhow::Result<()>,
}

/// Runs a scenario live and simulated, both slower by `scale`, and writes both side by side into
/// `out`, or a directory with the scenario's name under it if none is given.
pub fn compare(
    scenario: &Scenario,
    scale: Option<f64>,
    out: Option<&Path>,
    interrupted: &AtomicBool,
) -> Result<Compared, Failure> {
    let plan = Live { scale }.admit(scenario.build()?)?;
    if plan.workload.flows.is_empty() && plan.applications.is_empty() {
        let problem = "nothing here can be simulated: compare needs flows or applications";
        return Err(Failure::Run(anyhow!(problem)));
    }
    let begun = Instant::now();
    let observed = live::observe(&plan, None, interrupted)?;
    let wall = begun.elapsed();
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let ideal = live::ideal_fcts(&plan)?;
    let records = live::records(&observed, &plan, &ideal);
    let facts = live::facts(&observed, &plan, &records, wall);
    let live = Side::new(
        Measurements::of(&observed, &plan.fabric),
        records,
        facts,
        &plan,
    )?;
    let simulated = simulated::run(&plan, interrupted.into())?;

    let comparison = Comparison {
        scenario: plan.scenario.config.name.clone().unwrap_or_default(),
        rows: table::rows(&simulated, &live),
        scale: scale.unwrap_or(1.0),
        live: observed.report.snapshot.verdict,
        steal: observed.steal,
    };
    let out = out.map_or_else(
        || Path::new("out").join(format!("compare-{}", comparison.scenario)),
        Path::to_owned,
    );
    let figure = chart::draw(&comparison.scenario, &simulated, &live);
    let files = write(&out, &comparison, &figure)?;
    Ok(Compared {
        text: table::text(&comparison, &files),
        json: json(&comparison)?,
        believed: live::believe(&observed),
    })
}

impl Side {
    fn new(
        measurements: Measurements,
        records: Vec<FlowRecord>,
        facts: RunFacts,
        plan: &RunPlan,
    ) -> anyhow::Result<Self> {
        let rule = plan.scenario.config.report.percentiles;
        let whole = Completeness::Complete;
        let summary = (!records.is_empty())
            .then(|| Summary::new(&records, whole, plan.size_classes, rule, facts));
        Ok(Self {
            measurements,
            records,
            summary: summary.transpose()?,
        })
    }

    /// Flow completion times in milliseconds, sorted.
    fn fcts_ms(&self) -> Vec<f64> {
        let fcts = self.records.iter().filter_map(|record| record.fct);
        let mut fcts: Vec<f64> = fcts.map(|fct| fct.as_secs_f64() * 1e3).collect();
        fcts.sort_by(f64::total_cmp);
        fcts
    }
}

fn json(comparison: &Comparison) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(comparison).context("cannot write JSON")?;
    Ok(text + "\n")
}

/// Writes everything; the directory it is in.
fn write(out: &Path, comparison: &Comparison, figure: &Figure) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    write_text(&out.join("compare.json"), &json(comparison)?)?;
    figure.write(out, "compare", &Words::default())?;
    Ok(out.to_owned())
}
