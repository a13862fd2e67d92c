//! The results of a figure, by variant, x and seed: finished runs, or what is recorded of them.

use std::sync::Arc;

use super::plan::Plan;
use super::recorded::Row;
use super::verdict::Bounded;
use crate::measured::Measured;
use crate::metric::Metric;

#[derive(Debug)]
pub(super) struct Results {
    variants: Vec<String>,
    xs: Vec<f64>,
    seeds: usize,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// By variant, then x, then seed.
    Runs(Vec<Arc<Measured>>),
    Recorded(Vec<Row>),
}

impl Results {
    /// `runs` in the order of the plan's jobs, or none if none were made.
    pub(super) fn new(plan: &Plan, runs: Vec<Arc<Measured>>) -> Self {
        Self::from_source(plan, Source::Runs(runs))
    }

    /// Results of runs that were made before.
    pub(super) fn recorded(plan: &Plan, rows: Vec<Row>) -> Self {
        Self::from_source(plan, Source::Recorded(rows))
    }

    fn from_source(plan: &Plan, source: Source) -> Self {
        let variants = plan.spec.variant.iter();
        Self {
            variants: variants.map(|variant| variant.id.clone()).collect(),
            xs: plan.xs.clone(),
            seeds: plan.seeds as usize,
            source,
        }
    }

    pub(super) fn xs(&self) -> &[f64] {
        &self.xs
    }

    /// Returns whether single values are all that there is.
    pub(super) fn are_recorded(&self) -> bool {
        matches!(self.source, Source::Recorded(_))
    }

    /// The runs of a variant at an x, one for each seed; none if there are no such.
    pub(super) fn runs(&self, variant: &str, x: f64) -> &[Arc<Measured>] {
        let variant = self.variants.iter().position(|id| id == variant);
        let x = self.xs.iter().position(|&measured| measured == x);
        let (Some(variant), Some(x), Source::Runs(runs)) = (variant, x, &self.source) else {
            return &[];
        };
        let first = (variant * self.xs.len() + x) * self.seeds;
        runs.get(first..first + self.seeds).unwrap_or_default()
    }

    /// A metric of a variant at an x, for each seed.
    pub(super) fn values(&self, metric: &Metric, variant: &str, x: f64) -> Vec<Option<Bounded>> {
        match &self.source {
            Source::Runs(_) => {
                let runs = self.runs(variant, x).iter();
                runs.map(|run| metric.bounded(run)).collect()
            }
            Source::Recorded(rows) => {
                let is = |row: &&Row| row.metric == *metric && row.variant == variant && row.x == x;
                let mut rows: Vec<&Row> = rows.iter().filter(is).collect();
                rows.sort_unstable_by_key(|row| row.seed);
                rows.iter().map(|row| row.value).collect()
            }
        }
    }

    /// The same without what is known only as a bound.
    pub(super) fn exact(&self, metric: &Metric, variant: &str, x: f64) -> Vec<Option<f64>> {
        let values = self.values(metric, variant, x).into_iter();
        let exact = |value: Bounded| value.is_exact().then_some(value.least);
        values.map(|value| value.and_then(exact)).collect()
    }
}
