//! Means and tails of a run, and how far two simulators are apart.

use serde::Serialize;
use shallows_model::workload::FlowSpec;
use shallows_results::size_class::{SizeClass, SizeClasses};
use shallows_results::statistics::mean;
use shallows_run::scenario::Report;

/// A mean agrees where ours is within this fraction of theirs.
const MEAN_GOAL: f64 = 0.05;
/// The same for a 99th percentile.
const TAIL_GOAL: f64 = 0.10;

/// Results of a run by the order of the flows.
pub(super) struct Sample {
    /// Completion times in microseconds.
    pub(super) fcts: Vec<f64>,
    /// Timeouts of each flow.
    pub(super) timeouts: Vec<u32>,
}

/// A flow of a run.
pub(super) struct Flow {
    pub(super) bytes: u64,
    pub(super) fct: f64,
    pub(super) timeouts: u32,
}

impl Sample {
    pub(super) fn without_timeouts(fcts: Vec<f64>) -> Self {
        let timeouts = vec![0; fcts.len()];
        Self { fcts, timeouts }
    }

    pub(super) fn of<'a>(&'a self, flows: &'a [FlowSpec]) -> impl Iterator<Item = Flow> + 'a {
        let results = self.fcts.iter().zip(&self.timeouts);
        flows
            .iter()
            .zip(results)
            .map(|(spec, (&fct, &timeouts))| Flow {
                bytes: spec.bytes,
                fct,
                timeouts,
            })
    }
}

/// Result of a run: completion times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Mean of all flows.
    pub all: f64,
    /// Mean of small flows.
    pub small: f64,
    /// The authors' 99th percentile of small flows, `sorted[99n/100]`.
    pub small_p99: f64,
    /// Mean of medium flows.
    pub medium: f64,
    /// Mean of large flows.
    pub large: f64,
    /// Small flows that took so long that they waited for a timeout, where the time tells.
    pub waited: Option<u32>,
    /// Timeouts of all flows.
    pub timeouts: u32,
}

impl Outcome {
    /// `report` has the classes; small flows that took longer than `timeout` microseconds have
    /// waited for a timeout.
    pub(super) fn of(
        flows: impl Iterator<Item = Flow>,
        report: &Report,
        timeout: Option<f64>,
    ) -> Self {
        let classes = SizeClasses::new(report.small_max, report.medium_max);
        let classes = classes.expect("the classes of a shipped scenario");
        let flows: Vec<Flow> = flows.collect();
        let of = |class: SizeClass| -> Vec<f64> {
            let wanted = flows
                .iter()
                .filter(|flow| classes.class_of(flow.bytes) == class);
            wanted.map(|flow| flow.fct).collect()
        };
        let all: Vec<f64> = flows.iter().map(|flow| flow.fct).collect();
        let mut small = of(SizeClass::Small);
        small.sort_unstable_by(f64::total_cmp);
        Self {
            all: mean(&all),
            small: mean(&small),
            small_p99: small[99 * small.len() / 100],
            medium: mean(&of(SizeClass::Medium)),
            large: mean(&of(SizeClass::Large)),
            waited: timeout.map(|least| small.iter().filter(|&&fct| fct > least).count() as u32),
            timeouts: flows.iter().map(|flow| flow.timeouts).sum(),
        }
    }

    /// The measures with their goals.
    fn measures(&self) -> Vec<(&'static str, f64, Option<f64>)> {
        let mut measures = vec![
            ("all, mean", self.all, Some(MEAN_GOAL)),
            ("small, mean", self.small, Some(MEAN_GOAL)),
            ("small, p99", self.small_p99, Some(TAIL_GOAL)),
            ("medium, mean", self.medium, Some(MEAN_GOAL)),
            ("large, mean", self.large, Some(MEAN_GOAL)),
        ];
        let waited = self.waited.map(f64::from);
        measures.extend(waited.map(|waited| ("small, waited", waited, None)));
        measures.push(("timeouts", f64::from(self.timeouts), None));
        measures
    }
}

/// One measure in both simulators.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the measure.
    pub measure: &'static str,
    /// Value of the authors' run.
    pub theirs: f64,
    /// Median of our runs.
    pub ours: f64,
    /// The least of our runs.
    pub least: f64,
    /// The most of our runs.
    pub most: f64,
    /// Difference that is agreed to be none, as a fraction of theirs.
    pub goal: Option<f64>,
}

impl Row {
    /// Ours over theirs, less 1.
    pub fn difference(&self) -> Option<f64> {
        (self.theirs != 0.0).then(|| self.ours / self.theirs - 1.0)
    }

    /// Returns whether the goal is met, if there is one.
    pub fn is_met(&self) -> Option<bool> {
        let difference = self.difference()?;
        self.goal.map(|goal| difference.abs() <= goal)
    }
}

/// The comparison of a run of theirs with runs of ours.
pub(super) fn rows(theirs: &Outcome, ours: &[Outcome]) -> Vec<Row> {
    let measures = theirs.measures().into_iter().enumerate();
    let row = |(place, (measure, theirs, goal)): (usize, _)| {
        let mut values: Vec<f64> = ours.iter().map(|run| run.measures()[place].1).collect();
        values.sort_unstable_by(f64::total_cmp);
        Row {
            measure,
            theirs,
            ours: values[values.len() / 2],
            least: values[0],
            most: values[values.len() - 1],
            goal,
        }
    };
    measures.map(row).collect()
}
