use std::fmt::{self, Display, Formatter};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use shallows_core::units::Time;

use super::{Buckets, FidelityConfig};

/// The longest lateness that is told apart from longer ones: 10 s, in nanoseconds.
const LONGEST: u64 = 10_000_000_000;

/// Lateness of a switch's frames, and duration of its loop.
#[derive(Debug)]
pub struct Fidelity {
    config: FidelityConfig,
    lateness: Histogram<u64>,
    gaps: Histogram<u64>,
    late: u64,
}

/// A distribution in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Lateness {
    /// Number of values.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// Half of them are at most this.
    pub p50_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1000.
    pub p999_us: f64,
    /// The largest.
    pub max_us: f64,
}

/// Verdict on the timing of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// It can, or there are too few frames to judge.
    pub faithful: bool,
    /// There are enough frames to judge.
    #[serde(default = "yes")]
    pub judged: bool,
    /// Fraction of frames that were too late.
    pub late_share: f64,
    /// The fraction that is allowed.
    pub allowed_share: f64,
    /// Lateness limit, in microseconds.
    pub late_us: f64,
}

fn yes() -> bool {
    true
}

impl Fidelity {
    /// Nothing measured yet.
    ///
    /// # Panics
    /// Never: the bounds of the histograms are valid.
    pub fn new(config: FidelityConfig) -> Self {
        let histogram = || Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are valid");
        Self {
            config,
            lateness: histogram(),
            gaps: histogram(),
            late: 0,
        }
    }

    /// A frame that was due at `due` was sent at `sent`.
    #[inline]
    pub fn sent(&mut self, due: Time, sent: Time) {
        let late = sent.saturating_sub(due);
        self.late += u64::from(late > self.config.late);
        self.lateness.saturating_record(late.ps() / 1_000);
    }

    /// The loop took `gap` from one look at the devices to the next.
    #[inline]
    pub fn turned(&mut self, gap: Time) {
        self.gaps.saturating_record(gap.ps() / 1_000);
    }

    /// Lateness of frames.
    pub fn lateness(&self) -> Lateness {
        Lateness::of(&self.lateness)
    }

    /// Lateness of frames, as a histogram.
    pub(crate) fn late_buckets(&self) -> Buckets {
        Buckets::of(&self.lateness)
    }

    /// Duration of the loop; nothing while it sleeps.
    pub fn gaps(&self) -> Lateness {
        Lateness::of(&self.gaps)
    }

    /// Returns whether the run can be believed.
    pub fn verdict(&self) -> Verdict {
        let count = self.lateness.len().max(1);
        let late_share = self.late as f64 / count as f64;
        let judged = self.lateness.len() >= self.config.least;
        Verdict {
            faithful: !judged || late_share <= self.config.share,
            judged,
            late_share,
            allowed_share: self.config.share,
            late_us: self.config.late.as_secs_f64() * 1e6,
        }
    }
}

impl Lateness {
    fn of(histogram: &Histogram<u64>) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            count: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            p50_us: us(histogram.value_at_quantile(0.5)),
            p99_us: us(histogram.value_at_quantile(0.99)),
            p999_us: us(histogram.value_at_quantile(0.999)),
            max_us: us(histogram.max()),
        }
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let word = match (self.judged, self.faithful) {
            (false, _) => "too few frames to judge",
            (true, true) => "faithful",
            (true, false) => "TOO LATE",
        };
        write!(
            f,
            "{word}: {:.3}% of the frames were late by more than {} us, {}% may be",
            100.0 * self.late_share,
            self.late_us,
            100.0 * self.allowed_share,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_late_frames_decides() {
        let config = FidelityConfig {
            late: Time::from_us(10),
            share: 0.25,
            least: 5,
        };
        let mut fidelity = Fidelity::new(config);
        for late in [0, 10, 3, 11] {
            fidelity.sent(Time::from_us(5), Time::from_us(5 + late));
        }
        assert!(fidelity.verdict().faithful && !fidelity.verdict().judged);
        fidelity.sent(Time::ZERO, Time::from_us(50));
        let verdict = fidelity.verdict();
        assert!(!verdict.faithful && verdict.judged);
        assert_eq!(verdict.late_share, 0.4, "10 us is not more than 10 us");
        assert_eq!(
            verdict.to_string(),
            "TOO LATE: 40.000% of the frames were late by more than 10 us, 25% may be"
        );
    }
}
