//! The finished runs of a figure, by variant, x and seed.

use std::sync::Arc;

use super::plan::Plan;
use super::verdict::Bounded;
use crate::measured::Measured;
use crate::metric::Metric;

#[derive(Debug)]
pub(super) struct Results {
    variants: Vec<String>,
    xs: Vec<f64>,
    seeds: usize,
    /// By variant, then x, then seed.
    runs: Vec<Arc<Measured>>,
}

impl Results {
    /// `runs` in the order of the plan's jobs, or none if none were made.
    pub(super) fn new(plan: &Plan, runs: Vec<Arc<Measured>>) -> Self {
        let variants = plan.spec.variant.iter();
        Self {
            variants: variants.map(|variant| variant.id.clone()).collect(),
            xs: plan.xs.clone(),
            seeds: plan.seeds as usize,
            runs,
        }
    }

    pub(super) fn xs(&self) -> &[f64] {
        &self.xs
    }

    /// The runs of a variant at an x, one for each seed; none if there are no such.
    pub(super) fn runs(&self, variant: &str, x: f64) -> &[Arc<Measured>] {
        let variant = self.variants.iter().position(|id| id == variant);
        let x = self.xs.iter().position(|&measured| measured == x);
        let (Some(variant), Some(x)) = (variant, x) else {
            return &[];
        };
        let first = (variant * self.xs.len() + x) * self.seeds;
        self.runs.get(first..first + self.seeds).unwrap_or_default()
    }

    /// A metric of a variant at an x, for each seed.
    pub(super) fn values(&self, metric: &Metric, variant: &str, x: f64) -> Vec<Option<Bounded>> {
        let runs = self.runs(variant, x).iter();
        runs.map(|run| metric.bounded(run)).collect()
    }

    /// The same without what is known only as a bound.
    pub(super) fn exact(&self, metric: &Metric, variant: &str, x: f64) -> Vec<Option<f64>> {
        let runs = self.runs(variant, x).iter();
        runs.map(|run| metric.of(run)).collect()
    }
}
