//! Means over repeated runs, and how far they can be trusted.

use serde::{Deserialize, Serialize};

use crate::statistics;

/// The 97.5% quantiles of Student's distribution, by degrees of freedom from 1.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The quantile of the normal distribution, which Student's comes to.
const NORMAL: f64 = 1.960;

/// A mean and its 95% confidence interval by Student's t, for values that are about normal, such
/// as a metric over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Lower end; the mean itself where there is one value.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Of how many values.
    pub count: usize,
}

impl Interval {
    /// Of some values; nothing if there are none, or if the mean is no number.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        let mean = statistics::mean(values);
        if !mean.is_finite() {
            return None;
        }
        let half = if count < 2 {
            0.0
        } else {
            let freedom = count - 1;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let deviation = (squares / freedom as f64).sqrt();
            quantile(freedom) * deviation / (count as f64).sqrt()
        };
        Some(Self {
            mean,
            low: mean - half,
            high: mean + half,
            count,
        })
    }

    /// Half of its width.
    pub fn half(&self) -> f64 {
        self.high - self.mean
    }
}

/// Exact to three digits up to 30 degrees of freedom; above, the first term of the expansion around
/// the normal quantile, which is as exact there.
fn quantile(freedom: usize) -> f64 {
    match QUANTILES.get(freedom - 1) {
        Some(&quantile) => quantile,
        None => NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * freedom as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_values_by_hand() {
        // Mean 5; squares 9 + 1 + 1 + 9 = 20; deviation sqrt(20 / 3) = 2.58199;
        // half 3.182 * 2.58199 / 2 = 4.10795.
        let interval = Interval::of(&[2.0, 4.0, 6.0, 8.0]).unwrap();
        assert_eq!((interval.mean, interval.count), (5.0, 4));
        assert!((interval.half() - 4.10795).abs() < 1e-5, "{interval:?}");
        assert!((interval.low - 0.89205).abs() < 1e-5, "{interval:?}");
    }

    #[test]
    fn one_value_has_no_width_and_none_no_mean() {
        let one = Interval::of(&[3.5]).unwrap();
        assert_eq!((one.low, one.mean, one.high), (3.5, 3.5, 3.5));
        assert_eq!(Interval::of(&[]), None);
        assert_eq!(Interval::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn quantiles_fall_to_the_normal_one_without_a_step() {
        // As printed in tables: 40, 60 and 120 degrees of freedom.
        for (freedom, printed) in [(40, 2.021), (60, 2.000), (120, 1.980)] {
            assert!((quantile(freedom) - printed).abs() < 2e-3, "{freedom}");
        }
        for freedom in 1..1000 {
            assert!(quantile(freedom) > quantile(freedom + 1), "{freedom}");
        }
    }
}
