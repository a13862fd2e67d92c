//! Distributions of times as Prometheus has them: counts by upper bound, which can be added up over
//! machines and taken apart by time, as quantiles cannot.

use hdrhistogram::{Counter, Histogram};
use serde::{Deserialize, Serialize};

/// Upper bounds of the buckets, in nanoseconds. A last bucket has what is longer.
const BOUNDS: [u64; 19] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
];

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Buckets {
    /// The sum of all, in seconds, as exact as the histogram that it is of.
    pub sum_s: f64,
    /// Number of values in each bucket.
    pub counts: Vec<u64>,
}

impl Buckets {
    /// Of a histogram in nanoseconds.
    pub(crate) fn of<C: Counter>(histogram: &Histogram<C>) -> Self {
        let mut counts = vec![0; BOUNDS.len() + 1];
        let mut sum = 0.0;
        for value in histogram.iter_recorded() {
            let (ns, count) = (value.value_iterated_to(), value.count_at_value().as_u64());
            counts[BOUNDS.partition_point(|&bound| bound < ns)] += count;
            sum += ns as f64 * count as f64;
        }
        Self {
            sum_s: sum / 1e9,
            counts,
        }
    }

    /// Upper bounds in seconds, each with the count of its bucket.
    pub(crate) fn by_bound(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|&ns| ns as f64 / 1e9);
        let bounds = bounds.chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_in_the_first_bucket_that_has_them() {
        let mut histogram = Histogram::<u32>::new_with_bounds(1, 10_000_000_000, 3).unwrap();
        for ns in [1, 999, 1_000, 20_000, 5_000_000_000] {
            histogram.record(ns).unwrap();
        }
        let buckets = Buckets::of(&histogram);
        let by_bound = buckets.by_bound();
        let counted: Vec<_> = by_bound.iter().filter(|bucket| bucket.1 > 0).collect();
        assert_eq!(
            counted,
            [&(1e-6, 3), &(25e-6, 1), &(f64::INFINITY, 1)],
            "{by_bound:?}"
        );
        assert!((buckets.sum_s - 5.000_022).abs() < 0.01, "{buckets:?}");
    }
}
