//! From values to positions, and where the ticks are.

use super::{Extent, Spacing};

/// Most decades that all have a tick.
const MOST_DECADES: i32 = 7;

/// An axis' range and ticks.
#[derive(Debug, Clone)]
pub(super) struct AxisScale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) spacing: Spacing,
    /// Values at which there is a tick, with their texts.
    pub(super) ticks: Vec<(f64, String)>,
}

impl AxisScale {
    /// A scale for `values` that begins and ends with a tick, and has about `count` of them.
    pub(super) fn round(values: impl Iterator<Item = f64>, extent: Extent, count: usize) -> Self {
        let (low, high) = if extent == Extent::Unit {
            (0.0, 1.0)
        } else {
            let (low, high) = span(values.chain(extent.shown()));
            let room = (high - low) * 0.04;
            // No room below zero for what cannot be negative.
            let least = if low < 0.0 {
                low - room
            } else {
                (low - room).max(0.0)
            };
            (least, high + room)
        };
        let step = nice_step((high - low) / count as f64);
        let first = (low / step + 1e-9).floor() as i64;
        let last = (high / step - 1e-9).ceil() as i64;
        let ticks = (first..=last).map(|n| n as f64 * step);
        Self {
            low: first as f64 * step,
            high: last as f64 * step,
            spacing: Spacing::Linear,
            ticks: labelled(&ticks.collect::<Vec<_>>(), step),
        }
    }

    /// A scale that ends where the data does, with about `count` round ticks within.
    pub(super) fn tight(values: impl Iterator<Item = f64>, extent: Extent, count: usize) -> Self {
        let (low, high) = span(values.chain(extent.shown()));
        let step = nice_step((high - low) / count as f64);
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let ticks = (first..=last).map(|n| n as f64 * step);
        Self {
            low,
            high: high + (high - low) * 0.03,
            spacing: Spacing::Linear,
            ticks: labelled(&ticks.collect::<Vec<_>>(), step),
        }
    }

    /// A scale with its ticks at the measured values, with some room around them.
    pub(super) fn measured(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        if values.len() > 10 {
            return Self::round(values.into_iter(), Extent::Data, 5);
        }
        let (low, high) = span(values.iter().copied());
        let room = (high - low) * 0.06;
        let step = values.windows(2).map(|pair| pair[1] - pair[0]);
        let step = step.fold(f64::INFINITY, f64::min).min(1.0);
        Self {
            low: low - room,
            high: high + room,
            spacing: Spacing::Linear,
            ticks: labelled(&values, step),
        }
    }

    /// A logarithmic scale for the positive ones of `values`: whole decades, or from 1, 2 or 5 to
    /// 1, 2 or 5 times a power of ten where there are few.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>, extent: Extent) -> Self {
        let positive = values
            .chain(extent.shown())
            .filter(|value| value.is_finite() && *value > 0.0);
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in positive {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        let (first, last) = (decade(low), decade(high) + 1);
        let marks = |exponents: std::ops::RangeInclusive<i32>, factors: &'static [f64]| {
            exponents.flat_map(move |n| factors.iter().map(move |factor| factor * power(n)))
        };
        let factors: &[f64] = if last - first <= 2 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let all: Vec<f64> = marks(first..=last, factors).collect();
        let least = |&&tick: &&f64| tick <= low * (1.0 + 1e-9);
        let most = |&&tick: &&f64| tick >= high * (1.0 - 1e-9);
        let low = all.iter().rev().find(least).copied().unwrap_or(low);
        let mut high = all.iter().find(most).copied().unwrap_or(high);
        if high <= low {
            high = low * 10.0;
        }
        let every = ((last - first) / MOST_DECADES + 1) as usize;
        let shown = all
            .into_iter()
            .filter(|tick| (low..=high).contains(tick))
            .step_by(every);
        Self {
            low,
            high,
            spacing: Spacing::Logarithmic,
            ticks: shown.map(|tick| (tick, power_text(tick))).collect(),
        }
    }

    /// Position of a value, from 0 at the low end to 1.
    pub(super) fn position(&self, value: f64) -> f64 {
        match self.spacing {
            Spacing::Linear => (value - self.low) / (self.high - self.low),
            Spacing::Logarithmic => {
                (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
            }
        }
    }
}

/// The power of ten that a positive value has at least.
fn decade(value: f64) -> i32 {
    (value.log10() + 1e-9).floor() as i32
}

fn power(exponent: i32) -> f64 {
    10_f64.powi(exponent)
}

/// A value of a logarithmic axis.
fn power_text(value: f64) -> String {
    match value {
        small if small < 1e-4 => format!("{small:e}").replace('-', "\u{2212}"),
        fraction if fraction < 1.0 => {
            let decimals = -decade(fraction);
            format!("{fraction:.*}", decimals as usize)
        }
        plain if plain < 1e4 => format!("{plain:.0}"),
        thousand if thousand < 1e6 => format!("{:.0}k", thousand / 1e3),
        million if million < 1e9 => format!("{:.0}M", million / 1e6),
        large => format!("{large:e}"),
    }
}

impl Extent {
    /// Value that must be on the axis.
    fn shown(self) -> Option<f64> {
        match self {
            Self::Data | Self::Unit => None,
            Self::FromZero => Some(0.0),
            Self::Reference(value) => Some(value),
        }
    }
}

/// The least and the most; a single value gets some room.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut span = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite()) {
        span = (span.0.min(value), span.1.max(value));
    }
    match span {
        (low, high) if low < high => span,
        (low, _) if low.is_finite() => (
            low - 0.1 * low.abs().max(0.5),
            low + 0.1 * low.abs().max(0.5),
        ),
        _ => (0.0, 1.0),
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0].into_iter();
    let fits = |factor: &f64| factor * power >= least * (1.0 - 1e-9);
    factors.clone().find(fits).unwrap_or(10.0) * power
}

/// Ticks with their texts, all in one unit: ones, thousands (k) or millions (M).
fn labelled(ticks: &[f64], step: f64) -> Vec<(f64, String)> {
    let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 6.0) as usize;
    let most = ticks
        .iter()
        .fold(0.0_f64, |most, tick| most.max(tick.abs()));
    let (unit, suffix) = match most {
        millions if millions >= 1e6 && decimals == 0 => (1e6, "M"),
        thousands if thousands >= 1e4 && decimals == 0 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let text = |tick: f64| {
        // No "-0".
        let tick = if tick.abs() < step / 1e6 { 0.0 } else { tick };
        let text = if unit > 1.0 && tick != 0.0 {
            format!("{}{suffix}", tick / unit)
        } else {
            format!("{tick:.decimals$}")
        };
        text.replace('-', "\u{2212}")
    };
    ticks.iter().map(|&tick| (tick, text(tick))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &AxisScale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_enclose_the_data() {
        let scale = AxisScale::round([0.87, 1.13].into_iter(), Extent::Reference(1.0), 5);
        assert_eq!(texts(&scale), ["0.8", "0.9", "1.0", "1.1", "1.2"]);
        assert!(scale.low == 0.8 && (scale.high - 1.2).abs() < 1e-12);
        let scale = AxisScale::round([403.0, 788.0].into_iter(), Extent::FromZero, 4);
        assert_eq!(texts(&scale), ["0", "500", "1000"]);
    }

    #[test]
    fn ticks_of_one_axis_share_a_unit() {
        let scale = AxisScale::round([0.0, 11_000.0].into_iter(), Extent::FromZero, 4);
        assert_eq!(texts(&scale), ["0", "5k", "10k", "15k"]);
        let scale = AxisScale::round([850_000.0, 1_150_000.0].into_iter(), Extent::Data, 4);
        assert_eq!(texts(&scale), ["0.8M", "0.9M", "1M", "1.1M", "1.2M"]);
    }

    #[test]
    fn an_axis_of_counts_has_no_negative_part() {
        let scale = AxisScale::round([1.0, 300.0].into_iter(), Extent::Data, 4);
        assert_eq!(scale.low, 0.0);
        let scale = AxisScale::round([-3.0, 3.0].into_iter(), Extent::Data, 4);
        assert!(scale.low < -3.0 + 1e-9);
    }

    #[test]
    fn a_tight_scale_has_its_ticks_inside() {
        let scale = AxisScale::tight([0.25, 2.15].into_iter(), Extent::FromZero, 4);
        assert_eq!(texts(&scale), ["0", "1", "2"]);
        assert!(scale.low == 0.0 && scale.high < 2.3);
    }

    #[test]
    fn measured_values_are_the_ticks() {
        let scale = AxisScale::measured([10.0, 50.0, 90.0, 10.0].into_iter());
        assert_eq!(texts(&scale), ["10", "50", "90"]);
        assert!((scale.position(50.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn decades_have_equal_distances_on_a_logarithmic_scale() {
        let scale = AxisScale::logarithmic([0.03, 700.0].into_iter(), Extent::Data);
        assert_eq!(texts(&scale), ["0.01", "0.1", "1", "10", "100", "1000"]);
        assert!((scale.position(1.0) - 0.4).abs() < 1e-12);
        assert!(scale.position(0.0) == 0.0 && scale.position(-3.0) == 0.0);
    }

    #[test]
    fn few_decades_have_ticks_within() {
        let scale = AxisScale::logarithmic([2.2, 18.0].into_iter(), Extent::Data);
        assert_eq!(texts(&scale), ["2", "5", "10", "20"]);
        let scale = AxisScale::logarithmic([3e4, 2e7].into_iter(), Extent::Data);
        assert_eq!(texts(&scale), ["10k", "100k", "1M", "10M", "100M"]);
    }

    #[test]
    fn a_logarithmic_scale_of_nothing_positive_is_a_decade() {
        let scale = AxisScale::logarithmic([0.0, -1.0, f64::NAN].into_iter(), Extent::FromZero);
        assert!(scale.low > 0.0 && scale.high > scale.low && !scale.ticks.is_empty());
        let scale = AxisScale::logarithmic([5.0].into_iter(), Extent::Data);
        assert!(scale.low < scale.high);
    }

    #[test]
    fn one_value_and_none_have_a_scale() {
        let scale = AxisScale::round([1.0].into_iter(), Extent::Data, 4);
        assert!(scale.low < 1.0 && scale.high > 1.0);
        let scale = AxisScale::round([f64::NAN].into_iter(), Extent::Data, 4);
        assert!(scale.low == 0.0 && scale.high >= 1.0 && scale.high.is_finite());
    }
}
