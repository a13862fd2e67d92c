//! The goal of a search and the metrics that must stay within bounds.

use shallows_results::interval::Interval;

use crate::study::config::NamedMetric;

/// Direction in which the goal improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Minimize,
    Maximize,
}

/// The metric that a search improves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Goal {
    pub(crate) metric: NamedMetric,
    pub(crate) direction: Direction,
}

/// A metric that must stay within a bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Keep {
    pub(crate) metric: NamedMetric,
    pub(crate) side: Side,
    pub(crate) bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    AtMost,
    AtLeast,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// Ratio to the scenario as it is: +2% is 1.02.
    Ratio(f64),
    /// In the metric's own unit.
    Value(f64),
}

impl Goal {
    pub(crate) fn new(metric: &str, direction: Direction) -> Result<Self, String> {
        let metric = NamedMetric::try_from(metric.to_owned())?;
        Ok(Self { metric, direction })
    }

    /// A cost that a search makes small, from the ratio to the scenario as it is.
    pub(crate) fn cost(&self, ratio: f64) -> f64 {
        match self.direction {
            Direction::Minimize => ratio,
            Direction::Maximize => 1.0 / ratio,
        }
    }

    /// Returns whether an interval of ratios is wholly on the better side of 1.
    pub(crate) fn is_better(&self, ratio: Interval) -> bool {
        match self.direction {
            Direction::Minimize => ratio.high < 1.0,
            Direction::Maximize => ratio.low > 1.0,
        }
    }
}

impl Keep {
    /// Reads `METRIC <= +2%`, or `METRIC >= 900` in the metric's unit.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let usage = "write METRIC <= +2% for a change, or METRIC <= 0.5 in the metric's unit";
        let wrong = || format!("--keep {text:?}: {usage}");
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, rest) = text.split_at(at);
        let (side, number) = match rest.split_at_checked(2) {
            Some(("<=", number)) => (Side::AtMost, number.trim()),
            Some((">=", number)) => (Side::AtLeast, number.trim()),
            _ => return Err(wrong()),
        };
        let metric = NamedMetric::try_from(name.trim().to_owned())
            .map_err(|problem| format!("--keep {text:?}: {problem}"))?;
        let finite = |text: &str| text.parse::<f64>().ok().filter(|of| of.is_finite());
        let bound = match number.strip_suffix('%') {
            Some(percent) if number.starts_with(['+', '-']) => {
                let percent = finite(percent.trim()).ok_or_else(wrong)?;
                Bound::Ratio(1.0 + percent / 100.0)
            }
            Some(_) => {
                let problem = "a change in percent has a sign, such as +2% or -5%";
                return Err(format!("--keep {text:?}: {problem}"));
            }
            None => Bound::Value(finite(number).ok_or_else(wrong)?),
        };
        if matches!(bound, Bound::Ratio(ratio) if ratio <= 0.0) {
            return Err(format!("--keep {text:?}: nothing falls by 100% or more"));
        }
        Ok(Self {
            metric,
            side,
            bound,
        })
    }

    /// Share by which a value breaks the bound; 0 if it keeps it.
    pub(crate) fn violation(&self, ratio: f64, value: f64) -> f64 {
        let (is, bound) = match self.bound {
            Bound::Ratio(bound) => (ratio, bound),
            Bound::Value(bound) => (value, bound),
        };
        let over = match self.side {
            Side::AtMost => is - bound,
            Side::AtLeast => bound - is,
        };
        let scale = if bound == 0.0 { 1.0 } else { bound.abs() };
        (over / scale).max(0.0)
    }

    /// The bound, as users write it.
    pub(crate) fn shown(&self) -> String {
        let sign = match self.side {
            Side::AtMost => "<=",
            Side::AtLeast => ">=",
        };
        match self.bound {
            Bound::Ratio(ratio) => {
                // 1.02 - 1 is not exactly 0.02.
                let percent = ((ratio - 1.0) * 1e8).round() / 1e6;
                format!("{} {sign} {percent:+}%", self.metric.name)
            }
            Bound::Value(value) => format!("{} {sign} {value}", self.metric.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_read_and_shown() {
        for text in [
            "large.mean <= +2%",
            "throughput.large >= -0.5%",
            "timeouts <= 0",
        ] {
            assert_eq!(Keep::parse(text).unwrap().shown(), text);
        }
        let keep = Keep::parse("large.mean<=+2%").unwrap();
        assert_eq!(keep.violation(1.02, 9.0), 0.0);
        assert!((keep.violation(1.122, 9.0) - 0.1).abs() < 1e-12);
        let keep = Keep::parse("throughput.large >= 800").unwrap();
        assert_eq!(keep.violation(0.1, 800.0), 0.0);
        assert!((keep.violation(2.0, 400.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn malformed_constraints_are_refused() {
        for text in [
            "",
            "large.mean",
            "large.mean < 2",
            "large.mean <= 2%",
            "large.mean <= +x%",
            "large.mean <= nan",
            "large.mean >= -100%",
            "huge.mean <= +2%",
            "<= +2%",
            "large.mean <=é",
        ] {
            assert!(Keep::parse(text).is_err(), "{text}");
        }
    }
}
