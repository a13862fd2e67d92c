//! TIMELY (Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015).
//!
//! - §3.1: the round-trip time is that of a segment without its transmission by the NIC. Queues of
//!   ACKs count too.
//! - Algorithm 1 (§4.3): below T_low the rate grows by delta, beyond T_high it falls by
//!   beta (1 - T_high / rtt), and in between the gradient decides: the smoothed difference of
//!   round-trip times over the least one. A gradient of at most 0 lets the rate grow by N delta, a
//!   positive one reduces it by beta times the gradient.
//! - N is 5 once round-trip times have fallen five times in a row (hyperactive increase), else 1.
//!
//! The paper's text was not at hand. Checked against:
//! - the function that the first author published (timely-code-snippet.cc): the order of the cases,
//!   the five falls in a row with the present one, and the next two points of the list below;
//! - Zhu et al. (CoNEXT 2016, the source of the paper in github.com/jitupadhye-zz/rdma): Algorithm 1,
//!   line by line, and alpha, beta, delta, T_low, T_high and D_minRTT, which are the defaults here;
//! - a quotation of §6 in the comments of a public implementation, which also numbers §3.1 and §4.3:
//!   segments of 16 KB, T_low of 50 us, T_high of 500 us, delta of 10 Mbps, beta of 0.8;
//! - the simulator of HPCC (github.com/alibaba-edu/High-Precision-Congestion-Control): the same
//!   defaults, and a least rate of 100 Mbps. It counts increases instead of falls for N.
//!
//! Differences, and choices where the paper is silent:
//! - Several completions in a round-trip time tell of the same queue. As in the author's function, the
//!   increases and the reduction beyond T_high count in proportion to the time since the last update,
//!   up to the least round-trip time; the reduction by the gradient counts in full.
//! - An update leaves at least half of the rate, as there.
//! - Its segments are 16 to 64 KB, sent at line rate with gaps between them. Here packets are spaced
//!   evenly, and an update comes with the ACK of the last of each `completion` bytes.
//! - Alpha is 0.875 as in Zhu et al., whose model calls it "unsure"; the author's function recommends
//!   0.02, with a T_high of 1 ms.
//! - A new flow has the line rate over the number of the host's active flows. A sender knows of no
//!   others here and starts at `initial-rate`, or the line rate.
//! - A rate never falls below `minimum-rate`, nor rises beyond the line rate. Flows that start at the
//!   line rate collapse to it.

use serde::{Deserialize, Serialize};

use super::{Completion, RateControl};
use crate::tcp::ConfigError;
use crate::tcp::config::{refuse_no_rate, refuse_no_time};
use crate::units::{Bytes, Rate, Time};

/// Parameters of TIMELY, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TimelyConfig {
    /// Round-trip time below which the rate always grows.
    pub t_low: Time,
    /// Round-trip time beyond which the rate always falls.
    pub t_high: Time,
    /// Round-trip time without queues, which the gradient is relative to.
    pub min_rtt: Time,
    /// Weight of the newest difference in the gradient.
    pub alpha: f64,
    /// Multiplicative decrease.
    pub beta: f64,
    /// Additive increase.
    pub delta: Rate,
    /// N: falls of the round-trip time in a row from which on the rate grows by that many delta.
    pub n: u32,
    /// Bytes from one update of the rate to the next: a segment of the paper.
    pub completion: Bytes,
    /// Rate of a new connection; the line rate if not given.
    pub initial_rate: Option<Rate>,
    /// Lower bound of the rate.
    pub minimum_rate: Rate,
}

impl Default for TimelyConfig {
    fn default() -> Self {
        Self {
            t_low: Time::from_us(50),
            t_high: Time::from_us(500),
            min_rtt: Time::from_us(20),
            alpha: 0.875,
            beta: 0.8,
            delta: Rate::from_mbps(10),
            n: 5,
            completion: Bytes::new(16_000),
            initial_rate: None,
            minimum_rate: Rate::from_mbps(100),
        }
    }
}

impl TimelyConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(ConfigError::OutOfRange {
                    name,
                    value,
                    range: "(0, 1]",
                });
            }
        }
        for (name, time) in [
            ("t-low", self.t_low),
            ("t-high", self.t_high),
            ("min-rtt", self.min_rtt),
        ] {
            refuse_no_time(name, time)?;
        }
        if self.t_low > self.t_high {
            return Err(ConfigError::Order {
                less: "t-low",
                more: "t-high",
            });
        }
        if self.n == 0 {
            return Err(ConfigError::Zero("n"));
        }
        if let Some(rate) = self.initial_rate {
            refuse_no_rate("initial-rate", rate)?;
        }
        refuse_no_rate("minimum-rate", self.minimum_rate)
    }
}

/// The rate of a connection, in bits per second.
#[derive(Debug)]
pub(crate) struct Timely {
    config: TimelyConfig,
    line_rate: f64,
    rate: f64,
    /// Bytes acknowledged since the last completion.
    acked: u64,
    /// Time and round-trip time in seconds of the last completion.
    previous: Option<(Time, f64)>,
    /// Smoothed difference of round-trip times, in seconds.
    difference: f64,
    /// Completions in a row whose round-trip time was less than the one before.
    falls: u32,
}

impl Timely {
    pub(super) fn new(config: TimelyConfig, line_rate: Rate) -> Self {
        let line_rate = line_rate.bps() as f64;
        let rate = config.initial_rate.map(|rate| rate.bps() as f64);
        Self {
            config,
            line_rate,
            rate: rate.map_or(line_rate, |rate| rate.min(line_rate)),
            acked: 0,
            previous: None,
            difference: 0.0,
            falls: 0,
        }
    }

    /// Algorithm 1.
    fn complete(&mut self, now: Time, rtt: Time) {
        let TimelyConfig {
            t_low,
            t_high,
            min_rtt,
            alpha,
            beta,
            n,
            ..
        } = self.config;
        let (seconds, min_rtt) = (rtt.as_secs_f64(), min_rtt.as_secs_f64());
        let (newest, share) = match self.previous {
            None => (0.0, 1.0),
            Some((then, previous)) => {
                let elapsed = now.saturating_sub(then).as_secs_f64();
                (seconds - previous, (elapsed / min_rtt).min(1.0))
            }
        };
        self.previous = Some((now, seconds));
        let delta = self.config.delta.bps() as f64 * share;
        self.difference = (1.0 - alpha) * self.difference + alpha * newest;
        let gradient = self.difference / min_rtt;
        self.falls = if newest < 0.0 {
            self.falls.saturating_add(1)
        } else {
            0
        };
        let rate = if rtt < t_low {
            self.rate + delta
        } else if rtt > t_high {
            self.rate * (1.0 - beta * share * (1.0 - t_high.as_secs_f64() / seconds))
        } else if gradient <= 0.0 {
            let steps = if self.falls >= n { n } else { 1 };
            self.rate + f64::from(steps) * delta
        } else {
            self.rate * (1.0 - beta * gradient)
        };
        let least = self.config.minimum_rate.bps() as f64;
        self.rate = rate.max(self.rate / 2.0).max(least).min(self.line_rate);
    }
}

impl RateControl for Timely {
    fn rate(&self) -> Rate {
        Rate::from_bps(self.rate as u64)
    }

    fn on_ack(&mut self, sample: &Completion) {
        self.acked += sample.acked;
        if self.acked >= self.config.completion.get() {
            self.acked = 0;
            self.complete(sample.now, sample.rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timely(initial: u64) -> Timely {
        let config = TimelyConfig {
            alpha: 0.5,
            beta: 0.8,
            delta: Rate::from_mbps(10),
            initial_rate: Some(Rate::from_mbps(initial)),
            ..TimelyConfig::default()
        };
        Timely::new(config, Rate::from_gbps(10))
    }

    /// The rate after a completion `after_us` after the last one.
    fn mbps_after(timely: &mut Timely, after_us: u64, rtt_us: u64) -> f64 {
        let last = timely.previous.map_or(Time::ZERO, |(time, _)| time);
        timely.complete(last + Time::from_us(after_us), Time::from_us(rtt_us));
        timely.rate / 1e6
    }

    fn mbps(timely: &mut Timely, rtt_us: u64) -> f64 {
        mbps_after(timely, 20, rtt_us)
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn thresholds_decide_before_the_gradient() {
        let mut timely = timely(1_000);
        // Below 50 us, though it rises.
        assert_near(mbps(&mut timely, 20), 1_010.0);
        assert_near(mbps(&mut timely, 49), 1_020.0);
        // Beyond 500 us: 1020 (1 - 0.8 (1 - 500 / 1000)) = 612, also where it falls.
        assert_near(mbps(&mut timely, 1_000), 612.0);
        assert_near(mbps(&mut timely, 800), 612.0 * (1.0 - 0.8 * 0.375));
    }

    #[test]
    fn a_positive_gradient_reduces_the_rate() {
        let mut timely = timely(1_000);
        // The first has no difference: gradient 0.
        assert_near(mbps(&mut timely, 100), 1_010.0);
        // +8 us at weight 1/2 is 4 us, a fifth of 20 us: 1010 (1 - 0.8 x 0.2) = 848.4.
        assert_near(mbps(&mut timely, 108), 848.4);
        // 0 more: the difference halves to 2 us: 848.4 (1 - 0.8 x 0.1).
        assert_near(mbps(&mut timely, 108), 848.4 * 0.92);
        // -6 us: (2 - 6) / 2 = -2 us: growth.
        assert_near(mbps(&mut timely, 102), 848.4 * 0.92 + 10.0);
    }

    #[test]
    fn completions_within_a_round_trip_count_in_proportion() {
        let mut timely = timely(1_000);
        assert_near(mbps_after(&mut timely, 0, 40), 1_010.0);
        // A quarter of 20 us: 10 / 4.
        assert_near(mbps_after(&mut timely, 5, 40), 1_012.5);
        // Half: 1012.5 (1 - 0.4 (1 - 500 / 1000)).
        assert_near(mbps_after(&mut timely, 10, 1_000), 1_012.5 * 0.8);
        // Never less than half: 1 - 0.8 (1 - 500 / 2000) = 0.4.
        assert_near(mbps_after(&mut timely, 100, 2_000), 1_012.5 * 0.4);
    }

    #[test]
    fn a_gradient_counts_in_full_within_a_round_trip() {
        let mut timely = timely(1_000);
        assert_near(mbps(&mut timely, 100), 1_010.0);
        // +8 us at weight 1/2 is a fifth of 20 us, after 5 us as after 20.
        assert_near(mbps_after(&mut timely, 5, 108), 848.4);
    }

    #[test]
    fn five_falls_in_a_row_are_answered_by_larger_increases() {
        let mut timely = timely(1_000);
        assert_near(mbps(&mut timely, 100), 1_010.0);
        for (rtt, step) in [(99, 2), (98, 3), (97, 4), (96, 5)] {
            assert_near(mbps(&mut timely, rtt), 1_000.0 + 10.0 * f64::from(step));
        }
        // The fifth fall and the sixth.
        assert_near(mbps(&mut timely, 95), 1_100.0);
        assert_near(mbps(&mut timely, 94), 1_150.0);
        // The same time again is no fall, though the gradient is still negative.
        assert_near(mbps(&mut timely, 94), 1_160.0);
        assert_near(mbps(&mut timely, 93), 1_170.0);
    }

    #[test]
    fn rates_stay_between_the_minimum_and_the_line_rate() {
        let mut timely = timely(1_000);
        for _ in 0..100 {
            mbps(&mut timely, 60_000);
        }
        assert_eq!(timely.rate(), Rate::from_mbps(100));
        timely.rate = 9_995e6;
        assert_near(mbps(&mut timely, 10), 10_000.0);
    }

    #[test]
    fn a_completion_comes_after_its_bytes() {
        let mut timely = timely(1_000);
        let sample = Completion {
            now: Time::from_us(100),
            acked: 1_000,
            rtt: Time::from_us(20),
        };
        for _ in 0..15 {
            timely.on_ack(&sample);
        }
        assert_eq!(timely.rate(), Rate::from_mbps(1_000));
        timely.on_ack(&sample);
        assert_eq!(timely.rate(), Rate::from_mbps(1_010));
    }
}
