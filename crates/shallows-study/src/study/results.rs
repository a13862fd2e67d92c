//! The results of a study, by combination of points and by seed: finished runs, or what is recorded
//! of them.

use std::sync::Arc;

use shallows_results::interval::Interval;

use super::Study;
use super::verdict::Bounded;
use crate::measured::Measured;
use crate::metric::Metric;

#[derive(Debug)]
pub(crate) struct Results<'s> {
    pub(crate) study: &'s Study,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// By combination, then seed. Those that failed are missing; there may be none at all.
    Runs(Vec<Option<Arc<Measured>>>),
    Recorded(Vec<RecordedValue>),
}

/// A metric of a run that was made before.
#[derive(Debug)]
pub(crate) struct RecordedValue {
    pub(crate) combination: usize,
    pub(crate) seed: u64,
    pub(crate) metric: Metric,
    pub(crate) value: Option<Bounded>,
}

impl<'s> Results<'s> {
    /// `runs` in the order of the study's jobs, or none if none were made.
    pub(crate) fn new(study: &'s Study, runs: Vec<Option<Arc<Measured>>>) -> Self {
        let source = Source::Runs(runs);
        Self { study, source }
    }

    /// Results of runs that were made before.
    pub(crate) fn recorded(study: &'s Study, mut values: Vec<RecordedValue>) -> Self {
        values.sort_by_key(|value| (value.combination, value.seed));
        let source = Source::Recorded(values);
        Self { study, source }
    }

    /// Returns whether single values are all that there is.
    pub(crate) fn are_recorded(&self) -> bool {
        matches!(self.source, Source::Recorded(_))
    }

    /// The runs of a combination, one for each seed; none if there are no such.
    pub(crate) fn runs(&self, combination: usize) -> &[Option<Arc<Measured>>] {
        let Source::Runs(runs) = &self.source else {
            return &[];
        };
        let seeds = self.study.seeds.len();
        let first = combination * seeds;
        runs.get(first..first + seeds).unwrap_or_default()
    }

    /// A metric of a combination, for each seed.
    pub(crate) fn bounded(&self, metric: &Metric, combination: usize) -> Vec<Option<Bounded>> {
        match &self.source {
            Source::Runs(_) => {
                let runs = self.runs(combination).iter();
                runs.map(|run| metric.bounded(run.as_ref()?)).collect()
            }
            Source::Recorded(values) => {
                let is =
                    |of: &&RecordedValue| of.combination == combination && of.metric == *metric;
                values.iter().filter(is).map(|of| of.value).collect()
            }
        }
    }

    /// The same without what is known only as a bound.
    pub(crate) fn exact(&self, metric: &Metric, combination: usize) -> Vec<Option<f64>> {
        let values = self.bounded(metric, combination).into_iter();
        let exact = |value: Bounded| value.is_exact().then_some(value.least);
        values.map(|value| value.and_then(exact)).collect()
    }

    /// A metric of a combination over the seeds; `to` is the combination that it is divided by, seed
    /// by seed.
    pub(crate) fn interval(
        &self,
        metric: &Metric,
        combination: usize,
        to: Option<usize>,
    ) -> Option<Interval> {
        let values = self.exact(metric, combination);
        match to {
            None => mean(&values),
            Some(to) => ratio(&values, &self.exact(metric, to)),
        }
    }
}

/// The mean over the seeds whose runs have a value.
pub(crate) fn mean(values: &[Option<f64>]) -> Option<Interval> {
    let values: Vec<f64> = values.iter().copied().flatten().collect();
    Interval::of(&values)
}

/// The mean over the seeds of one value over another: equal seeds have equal flows. Nothing over
/// nothing is 1; a seed with something over nothing leaves no ratio, because that of the other seeds
/// would be too small.
pub(crate) fn ratio(of: &[Option<f64>], to: &[Option<f64>]) -> Option<Interval> {
    let mut ratios = Vec::new();
    for pair in of.iter().zip(to) {
        match pair {
            (Some(0.0), Some(0.0)) => ratios.push(1.0),
            (Some(_), Some(0.0)) => return None,
            (Some(of), Some(to)) => ratios.push(of / to),
            _ => {}
        }
    }
    Interval::of(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_seed_is_left_out_of_a_ratio_because_its_baseline_is_zero() {
        let mean = |of: [Option<f64>; 2], to: [Option<f64>; 2]| {
            ratio(&of, &to).map(|ratio| (ratio.mean, ratio.count))
        };
        assert_eq!(
            mean([Some(6.0), Some(0.0)], [Some(2.0), Some(0.0)]),
            Some((2.0, 2))
        );
        assert_eq!(mean([Some(6.0), Some(1.0)], [Some(2.0), Some(0.0)]), None);
        assert_eq!(
            mean([Some(0.0), Some(6.0)], [Some(2.0), Some(2.0)]),
            Some((1.5, 2))
        );
        // A failed run is in neither.
        assert_eq!(
            mean([Some(6.0), None], [Some(2.0), Some(0.0)]),
            Some((3.0, 1))
        );
    }
}
