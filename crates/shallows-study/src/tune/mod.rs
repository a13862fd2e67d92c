//! Searches for values of keys that make a metric better and keep others within bounds.
//!
//! [`tune`] compares candidates with the scenario as it is, over the same seeds, and ends with runs
//! that the search has not seen: other seeds and, where they are given, other scenarios. [`Outcome`]
//! has the result as a sentence, a table, files and JSON. Runs go through the executor and the store
//! of sweeps, so an interrupted search continues and a second one finds its runs made.

mod front;
mod goal;
mod knob;
mod notes;
mod report;
mod search;
mod trials;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use shallows_core::registry::Registry;
use shallows_results::figure::Look;
use shallows_run::scenario::Setting;
use shallows_run::{Diagnostic, Failure};

use crate::executor::{Executor, Observer};
use crate::slurm::Cluster;
use crate::study::axis::Axis;
use crate::study::axis_of;
use crate::study::config::sets_seed;
use goal::{Direction, Goal, Keep};
use knob::Knob;
use search::{Candidate, Dimension, Pool};
use trials::{Case, Trials};

/// A search, as users describe it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The scenarios that candidates are tried in, all of them at once.
    pub scenarios: Vec<PathBuf>,
    /// Keys with values that cross the scenarios, such as `workload.poisson.load=0.3,0.6`.
    pub across: Vec<String>,
    /// Scenarios that the search does not see, for the end.
    pub held_out: Vec<PathBuf>,
    /// Keys with values that the search does not see, for the end.
    pub held_out_at: Vec<String>,
    /// Settings of all runs.
    pub set: Vec<Setting>,
    /// The metric to make smaller.
    pub minimize: Option<String>,
    /// Or the one to make larger.
    pub maximize: Option<String>,
    /// Constraints, such as `large.mean <= +2%`.
    pub keep: Vec<String>,
    /// Knobs, as `KEY=A..B`, `KEY=A..B:N` or `KEY=A,B,C`.
    pub knobs: Vec<String>,
    /// A file of knobs.
    pub knob_file: Option<PathBuf>,
    /// Seeds of the search, from 1; the same number after them is held out.
    pub seeds: u64,
    /// Directory of the results.
    pub out: PathBuf,
    /// Directory of the runs.
    pub store: PathBuf,
    /// Number of parallel runs.
    pub threads: usize,
    /// True if runs are made again that are kept from before.
    pub fresh: bool,
    /// The cluster that makes the runs; this machine if there is none.
    pub cluster: Option<Cluster>,
    /// Schemes of other crates that scenarios and knobs may name.
    pub registry: Registry,
    /// Look of the figure.
    pub look: Look,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Recommendation in one sentence, with intervals of the held-out seeds.
    pub sentence: String,
    /// Further sentences: limits of the knob, and where the choice does not carry over.
    pub notes: Vec<String>,
    /// A row for each case.
    pub table: String,
    /// The chosen settings, as `--set` takes them; none if the scenario stays as it is.
    pub set: Vec<String>,
    /// Runs of the search, without those that are held out.
    pub runs: usize,
    /// Runs that an exhaustive grid takes.
    pub grid: usize,
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// All of it.
    pub json: serde_json::Value,
}

/// A request, read and checked.
struct Plan {
    goal: Goal,
    keeps: Vec<Keep>,
    knobs: Vec<Knob>,
    cases: Vec<Case>,
    /// Cases that the search takes, from the first.
    searched: usize,
}

impl Plan {
    fn new(request: &Request) -> Result<Self, Failure> {
        let wrong = |problem: String| Failure::Scenario(Diagnostic::new(problem));
        let goal = match (&request.minimize, &request.maximize) {
            (Some(metric), None) => Goal::new(metric, Direction::Minimize),
            (None, Some(metric)) => Goal::new(metric, Direction::Maximize),
            _ => Err("write --minimize METRIC or --maximize METRIC".to_owned()),
        };
        let keeps: Result<Vec<Keep>, String> =
            request.keep.iter().map(|text| Keep::parse(text)).collect();
        let axes = |option: &str, texts: &[String]| -> Result<Vec<Axis>, Failure> {
            let axes = texts
                .iter()
                .map(|text| axis_of(option, text).map_err(wrong));
            axes.collect()
        };
        if let Some(setting) = request.set.iter().find(|one| sets_seed(&one.assignment)) {
            let problem = format!("{}: a search takes the seeds from 1 to N", setting.shown);
            return Err(wrong(problem));
        }
        if request.scenarios.is_empty() {
            return Err(wrong("there is no scenario".to_owned()));
        }
        let (cases, searched) = trials::cases(
            &request.scenarios,
            &axes("--across", &request.across)?,
            (
                &request.held_out,
                &axes("--held-out-at", &request.held_out_at)?,
            ),
            &request.set,
        )?;
        Ok(Self {
            goal: goal.map_err(wrong)?,
            keeps: keeps.map_err(wrong)?,
            knobs: knob::knobs(&request.knobs, request.knob_file.as_deref())?,
            cases,
            searched,
        })
    }

    fn space(&self) -> Vec<Dimension> {
        let dimension = |knob: &Knob| Dimension {
            points: knob.points().len(),
            is_ordered: knob.is_ordered(),
        };
        self.knobs.iter().map(dimension).collect()
    }

    fn trials<'a>(&'a self, request: &'a Request, executor: Executor<'a>) -> Trials<'a> {
        let cluster = request.cluster.as_ref();
        Trials::new(
            &self.goal,
            &self.keeps,
            &self.knobs,
            (&self.cases, self.searched),
            executor,
            cluster.map(|cluster| (cluster, request.out.join("slurm"))),
            &request.registry,
        )
    }
}

/// Searches, compares the choice on what was held out, and writes the results.
pub fn tune(
    request: &Request,
    interrupted: &AtomicBool,
    observer: &dyn Observer,
) -> Result<Outcome, Failure> {
    let plan = Plan::new(request)?;
    for directory in [&request.out, &request.store] {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let executor = Executor {
        store: &request.store,
        threads: request.threads,
        fresh: request.fresh,
        interrupted,
        observer,
    };
    let mut trials = plan.trials(request, executor);
    trials.check()?;
    let seeds = request.seeds.max(1);
    let pool = search::search(&plan.space(), seeds as usize, &mut trials)?;
    let runs = trials.runs();
    let chosen = choose(&trials, &pool, seeds);
    let chosen_only: Vec<Candidate> = chosen.iter().cloned().collect();
    trials.make_possible(&chosen_only, 0..plan.cases.len(), seeds + 1..=2 * seeds)?;
    report::report(request, &trials, &pool, chosen.as_ref(), runs)
}

/// The best candidate with all seeds, if it keeps the constraints and is better than the scenario as
/// it is.
fn choose(trials: &Trials<'_>, pool: &Pool, seeds: u64) -> Option<Candidate> {
    let full = pool.iter().filter(|(_, has)| **has as u64 >= seeds);
    let mut best: Option<(f64, &Candidate)> = None;
    for (candidate, _) in full {
        let Some(standing) = trials.standing(candidate, 0..trials.searched, 1..=seeds) else {
            continue;
        };
        let cost = trials.goal.cost(standing.goal.mean);
        let is_better = best.is_none_or(|(least, _)| cost < least);
        if standing.violation() == 0.0 && cost < 1.0 && is_better {
            best = Some((cost, candidate));
        }
    }
    best.map(|(_, candidate)| candidate.clone())
}

#[cfg(test)]
mod tests;
