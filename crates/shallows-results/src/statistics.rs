//! Exact statistics over all rows: no sketches, no sampling.
//!
//! The order of the rows never matters. Times are summed as integers; ratios are sorted before they
//! are summed, so that the roundings are the same for every order.

use std::convert::Infallible;

use serde::{Deserialize, Serialize};
use shallows_core::units::Time;

/// Rule that picks a percentile from n sorted values, without interpolation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PercentileRule {
    /// The p-th percentile is `sorted[ceil(p n) - 1]`: the least value that at least the fraction p
    /// of all values does not exceed.
    #[default]
    NearestRank,
    /// `sorted[floor(p n)]`, as the MQ-ECN authors' scripts have it with `sorted[99n/100]`: one
    /// value further up where p n is whole.
    Index,
}

impl PercentileRule {
    /// The percentile in values that are sorted; `None` if there are none.
    pub fn select<T: Copy>(self, sorted: &[T], percentile: Percentile) -> Option<T> {
        let share = sorted.len() as u128 * u128::from(percentile.per_mille);
        let index = match self {
            Self::NearestRank => share.div_ceil(1000).saturating_sub(1),
            Self::Index => share / 1000,
        };
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[last.min(index as usize)])
    }
}

/// A percentile in tenths of a percent, so that ranks are exact integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentile {
    per_mille: u16,
}

impl Percentile {
    /// The 10th percentile.
    pub const P10: Self = Self::from_per_mille(100);
    /// The 90th percentile.
    pub const P90: Self = Self::from_per_mille(900);
    /// The median.
    pub const P50: Self = Self::from_per_mille(500);
    /// The 95th percentile.
    pub const P95: Self = Self::from_per_mille(950);
    /// The 99th percentile.
    pub const P99: Self = Self::from_per_mille(990);
    /// The 99.9th percentile.
    pub const P99_9: Self = Self::from_per_mille(999);

    /// A percentile in tenths of a percent.
    ///
    /// # Panics
    /// If `per_mille` is above 1000.
    pub const fn from_per_mille(per_mille: u16) -> Self {
        assert!(per_mille <= 1000, "a percentile is at most 1000 per mille");
        Self { per_mille }
    }
}

/// Statistics of many values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statistics<T> {
    /// The arithmetic mean; of times, rounded to the nearest picosecond.
    pub mean: T,
    /// The median.
    pub p50: T,
    /// The 95th percentile.
    pub p95: T,
    /// The 99th percentile.
    pub p99: T,
    /// The 99.9th percentile.
    pub p99_9: T,
    /// The largest value.
    pub max: T,
}

impl Statistics<Time> {
    /// The statistics of some times; `None` if there are none.
    pub fn of_times(mut times: Vec<Time>, rule: PercentileRule) -> Option<Self> {
        times.sort_unstable();
        let sum: u128 = times.iter().map(|time| u128::from(time.ps())).sum();
        let count = times.len() as u128;
        let mean = (2 * sum + count).checked_div(2 * count)?;
        Self::of_sorted(&times, Time::from_ps(mean as u64), rule)
    }
}

impl Statistics<f64> {
    /// The statistics of some ratios; `None` if there are none.
    pub fn of_ratios(mut ratios: Vec<f64>, rule: PercentileRule) -> Option<Self> {
        ratios.sort_unstable_by(f64::total_cmp);
        let mean = mean(&ratios);
        Self::of_sorted(&ratios, mean, rule)
    }

    /// The statistics over time of a value that changes in steps: each holds from its time until
    /// the next one's, the last until `end`. A percentile is the least value that it did not exceed
    /// for at least that share of the time. `None` if no time passes.
    ///
    /// # Panics
    /// If a time is before the one in front of it.
    pub fn of_steps(steps: &[(Time, f64)], end: Time) -> Option<Self> {
        let until = steps.iter().skip(1).map(|&(time, _)| time).chain([end]);
        let held = steps.iter().zip(until).map(|(&(from, value), until)| {
            assert!(from <= until, "steps go on in time: {from}, then {until}");
            (value, u128::from((until - from).ps()))
        });
        let mut held: Vec<(f64, u128)> = held.filter(|&(_, time)| time > 0).collect();
        held.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        let total: u128 = held.iter().map(|(_, time)| time).sum();
        let area: f64 = held.iter().map(|&(value, time)| value * time as f64).sum();
        let at = |percentile: Percentile| {
            let needed = total * u128::from(percentile.per_mille);
            let mut passed = 0;
            let reached = held.iter().find(|(_, time)| {
                passed += time * 1000;
                passed >= needed
            });
            reached.map(|&(value, _)| value)
        };
        Some(Self {
            mean: area / total as f64,
            p50: at(Percentile::P50)?,
            p95: at(Percentile::P95)?,
            p99: at(Percentile::P99)?,
            p99_9: at(Percentile::P99_9)?,
            max: held.last()?.0,
        })
    }
}

impl<T: Copy> Statistics<T> {
    /// Names of the [`values`](Self::values).
    pub const NAMES: [&'static str; 6] = ["mean", "p50", "p95", "p99", "p99_9", "max"];

    /// The values in the order of their names.
    pub fn values(&self) -> [T; 6] {
        [
            self.mean, self.p50, self.p95, self.p99, self.p99_9, self.max,
        ]
    }

    /// The same statistics in another unit.
    pub fn map<U>(&self, convert: impl Fn(T) -> U) -> Statistics<U> {
        let Ok(converted) = self.try_map(|value| Ok::<U, Infallible>(convert(value)));
        converted
    }

    /// The same statistics in another unit, if it has them all.
    pub fn try_map<U, E>(&self, convert: impl Fn(T) -> Result<U, E>) -> Result<Statistics<U>, E> {
        Ok(Statistics {
            mean: convert(self.mean)?,
            p50: convert(self.p50)?,
            p95: convert(self.p95)?,
            p99: convert(self.p99)?,
            p99_9: convert(self.p99_9)?,
            max: convert(self.max)?,
        })
    }

    fn of_sorted(sorted: &[T], mean: T, rule: PercentileRule) -> Option<Self> {
        Some(Self {
            mean,
            p50: rule.select(sorted, Percentile::P50)?,
            p95: rule.select(sorted, Percentile::P95)?,
            p99: rule.select(sorted, Percentile::P99)?,
            p99_9: rule.select(sorted, Percentile::P99_9)?,
            max: *sorted.last()?,
        })
    }
}

/// Mean of some values; not a number if there are none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Jain's fairness index of shares that are not negative: `(sum x)^2 / (n sum x^2)`, from 1/n where
/// one has all to 1 where all have the same. `None` where there is nothing to share.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let mut sorted = shares.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let sum: f64 = sorted.iter().sum();
    let squares: f64 = sorted.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (sorted.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(us: impl IntoIterator<Item = u64>) -> Vec<Time> {
        us.into_iter().map(Time::from_us).collect()
    }

    #[test]
    fn of_one_to_a_thousand_by_hand() {
        let all = Statistics::of_times(times(1..=1000), PercentileRule::NearestRank).unwrap();
        assert_eq!(all.mean, Time::from_ns(500_500));
        assert_eq!(all.p50, Time::from_us(500));
        assert_eq!(all.p95, Time::from_us(950));
        assert_eq!(all.p99, Time::from_us(990));
        assert_eq!(all.p99_9, Time::from_us(999));
        assert_eq!(all.max, Time::from_us(1000));
    }

    #[test]
    fn the_authors_index_is_one_further_where_the_rank_is_whole() {
        let all = Statistics::of_times(times(1..=1000), PercentileRule::Index).unwrap();
        assert_eq!(all.p50, Time::from_us(501));
        assert_eq!(all.p99, Time::from_us(991));
        assert_eq!(all.p99_9, Time::from_us(1000));
        // 99 * 150 / 100 = 148.5: index 148 by both rules.
        let p99 = |rule: PercentileRule| {
            let sorted: Vec<u32> = (0..150).collect();
            rule.select(&sorted, Percentile::P99)
        };
        assert_eq!(p99(PercentileRule::Index), Some(148));
        assert_eq!(p99(PercentileRule::NearestRank), Some(148));
    }

    #[test]
    fn one_value_is_every_percentile_and_the_ends_are_the_extremes() {
        for rule in [PercentileRule::NearestRank, PercentileRule::Index] {
            let one = Statistics::of_times(times([7]), rule).unwrap();
            assert_eq!(
                [one.mean, one.p50, one.p99_9, one.max],
                [Time::from_us(7); 4]
            );
            let sorted = [1, 2, 3];
            assert_eq!(rule.select(&sorted, Percentile::from_per_mille(0)), Some(1));
            assert_eq!(
                rule.select(&sorted, Percentile::from_per_mille(1000)),
                Some(3)
            );
            assert_eq!(rule.select::<u8>(&[], Percentile::P50), None);
            assert_eq!(Statistics::of_times(Vec::new(), rule), None);
            assert_eq!(Statistics::of_ratios(Vec::new(), rule), None);
        }
    }

    #[test]
    fn the_mean_is_rounded_to_the_nearest_picosecond_and_cannot_overflow() {
        let mean = |ps: &[u64]| {
            let times = ps.iter().copied().map(Time::from_ps).collect();
            Statistics::of_times(times, PercentileRule::NearestRank).map(|of| of.mean.ps())
        };
        assert_eq!(mean(&[1, 1, 2]), Some(1));
        assert_eq!(mean(&[1, 2]), Some(2));
        assert_eq!(mean(&[1, 2, 2]), Some(2));
        assert_eq!(mean(&[u64::MAX, u64::MAX, u64::MAX]), Some(u64::MAX));
    }

    #[test]
    fn ratios_by_hand() {
        let ratios = vec![4.0, 1.0, 1.5, 1.5];
        let of = Statistics::of_ratios(ratios, PercentileRule::NearestRank).unwrap();
        assert_eq!((of.mean, of.p50, of.p95, of.max), (2.0, 1.5, 4.0, 4.0));
    }

    #[test]
    fn jain_by_hand() {
        assert_eq!(jain_index(&[5.0; 4]), Some(1.0));
        assert_eq!(jain_index(&[0.0, 0.0, 3.0, 0.0]), Some(0.25));
        // (1 + 2 + 3)^2 / (3 (1 + 4 + 9))
        assert_eq!(jain_index(&[3.0, 1.0, 2.0]), Some(36.0 / 42.0));
        assert_eq!(jain_index(&[]), None);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }

    #[test]
    fn a_queue_over_time_by_hand() {
        let us = Time::from_us;
        // 10 for 940 us, 50 for 50 us, 100 for 9 us and 500 for 1 us, in some order.
        let steps = [
            (us(100), 10.0),
            (us(500), 500.0),
            (us(501), 100.0),
            (us(510), 50.0),
            (us(540), 10.0),
            (us(540), 7.0),
            (us(540), 10.0),
            (us(1_080), 50.0),
        ];
        let of = Statistics::of_steps(&steps, us(1_100)).unwrap();
        // (9,400 + 2,500 + 900 + 500) / 1,000
        assert_eq!(of.values(), [13.3, 10.0, 50.0, 50.0, 100.0, 500.0]);
        assert_eq!(Statistics::of_steps(&[], us(5)), None);
        assert_eq!(Statistics::of_steps(&[(us(5), 1.0)], us(5)), None);
    }

    #[test]
    #[should_panic(expected = "steps go on in time: 2us, then 1us")]
    fn steps_do_not_go_back() {
        let steps = [(Time::from_us(2), 1.0), (Time::from_us(1), 1.0)];
        Statistics::of_steps(&steps, Time::from_us(3));
    }

    fn any_rule() -> impl Strategy<Value = PercentileRule> {
        prop_oneof![
            Just(PercentileRule::NearestRank),
            Just(PercentileRule::Index)
        ]
    }

    proptest! {
        #[test]
        fn percentiles_grow_and_stay_within_the_values(
            ps in prop::collection::vec(any::<u64>(), 1..300),
            rule in any_rule(),
        ) {
            let times: Vec<Time> = ps.iter().copied().map(Time::from_ps).collect();
            let of = Statistics::of_times(times.clone(), rule).unwrap();
            let least = times.iter().copied().min().unwrap();
            let grown = [least, of.p50, of.p95, of.p99, of.p99_9, of.max];
            prop_assert!(grown.is_sorted());
            prop_assert!(least <= of.mean && of.mean <= of.max);
            for value in grown {
                prop_assert!(times.contains(&value));
            }
        }

        #[test]
        fn nearest_rank_is_the_least_value_that_covers_its_share(
            mut values in prop::collection::vec(0_u32..50, 1..200),
            per_mille in 1_u16..=1000,
        ) {
            values.sort_unstable();
            let percentile = Percentile::from_per_mille(per_mille);
            let value = PercentileRule::NearestRank.select(&values, percentile).unwrap();
            let needed = values.len() * usize::from(per_mille);
            let covered = |bound: u32| 1000 * values.iter().filter(|v| **v <= bound).count();
            prop_assert!(covered(value) >= needed);
            prop_assert!(value == values[0] || covered(value - 1) < needed);
        }

        #[test]
        fn order_never_matters(
            (ordered, shuffled) in prop::collection::vec(0.001_f64..1e6, 1..200)
                .prop_flat_map(|values| (Just(values.clone()), Just(values).prop_shuffle())),
            rule in any_rule(),
        ) {
            prop_assert_eq!(jain_index(&ordered), jain_index(&shuffled));
            prop_assert_eq!(
                Statistics::of_ratios(ordered, rule),
                Statistics::of_ratios(shuffled, rule)
            );
        }

        #[test]
        fn steps_of_one_length_are_plain_values(
            values in prop::collection::vec(0.0_f64..1e6, 1..200),
        ) {
            let steps = (0..).map(Time::from_ns).zip(values.iter().copied());
            let steps: Vec<(Time, f64)> = steps.collect();
            let end = Time::from_ns(values.len() as u64);
            let over_time = Statistics::of_steps(&steps, end).unwrap();
            let plain = Statistics::of_ratios(values, PercentileRule::NearestRank).unwrap();
            prop_assert_eq!(over_time.values()[1..].to_vec(), plain.values()[1..].to_vec());
            prop_assert!((over_time.mean - plain.mean).abs() <= 1e-9 * plain.mean);
        }

        #[test]
        fn jain_stays_between_one_nth_and_one(
            shares in prop::collection::vec(0.001_f64..1e6, 1..100),
        ) {
            let index = jain_index(&shares).unwrap();
            prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / shares.len() as f64 - 1e-12);
        }
    }
}
