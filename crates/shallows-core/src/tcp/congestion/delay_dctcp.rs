//! Delay-based DCTCP (Zeng et al., APNet 2017, §3.1): DCTCP whose signal is delay instead of marks.
//!
//! Eq. 2: an ACK is a congestion indicator if its delay exceeds the base by more than T. The
//! control law on the indicators is that of [`dctcp`](super::dctcp). The delay is one-way (§4.2), so
//! queues that ACKs wait in do not count; the base is the least delay that the connection has seen of
//! a full segment, because a shorter one takes less time on each link. It is that of the connection's
//! life, as in the authors' simulation, or expires ([`DelayDctcpConfig::base_lifetime`]).
//!
//! `repro/ear/deviations.toml` says where the paper leaves a choice.

use serde::{Deserialize, Serialize};

use super::super::ConfigError;
use super::dctcp::{DctcpConfig, Judge};
use super::{AckSample, Signal};
use crate::units::Time;

/// Parameters of delay-based DCTCP and of EAR, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DelayDctcpConfig {
    /// T: queueing delay that is not yet congestion. §4.2 has 144 us, 120 packets at 10 Gbps; the
    /// authors' script for the fat-tree has 108 us.
    pub t: Time,
    /// As in DCTCP.
    pub g: f64,
    /// As in DCTCP.
    pub initial_alpha: f64,
    /// Expiry of the base delay, for paths that become longer: where every full segment was late for
    /// this long, the least delay of that time becomes the base. Left out, the base never expires.
    pub base_lifetime: Option<Time>,
}

impl Default for DelayDctcpConfig {
    fn default() -> Self {
        let DctcpConfig { g, initial_alpha } = DctcpConfig::default();
        Self {
            t: Time::from_us(144),
            g,
            initial_alpha,
            base_lifetime: None,
        }
    }
}

impl DelayDctcpConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.base_lifetime == Some(Time::ZERO) {
            return Err(ConfigError::NoTime("base-lifetime"));
        }
        self.dctcp().validate()
    }

    pub(super) fn dctcp(&self) -> DctcpConfig {
        DctcpConfig {
            g: self.g,
            initial_alpha: self.initial_alpha,
        }
    }
}

/// Eq. 2: delay > base + T.
#[derive(Clone, Debug)]
pub(crate) struct DelayThreshold {
    t: Time,
    /// Bytes of data in a full segment.
    segment: u64,
    /// The least delay of a full segment so far.
    base: Time,
    expiry: Option<Box<Expiry>>,
}

/// Full segments that have all been late since some time: the base may be that of another path.
#[derive(Clone, Debug)]
struct Expiry {
    lifetime: Time,
    /// Start of the late segments, and the least delay among them.
    late: Option<(Time, Time)>,
}

impl DelayThreshold {
    pub(super) fn new(config: &DelayDctcpConfig, segment: u64) -> Self {
        let expiry = |lifetime| Expiry {
            lifetime,
            late: None,
        };
        Self {
            t: config.t,
            segment,
            base: Time::MAX,
            expiry: config.base_lifetime.map(expiry).map(Box::new),
        }
    }

    /// Judges the delay of the last of `acked` bytes.
    #[inline]
    fn exceeded(&mut self, now: Time, delay: Time, acked: u64) -> bool {
        let full = acked >= self.segment;
        if full {
            self.base = self.base.min(delay);
        }
        let late = delay.saturating_sub(self.base) > self.t;
        match &mut self.expiry {
            Some(expiry) if full => match expiry.base_after(now, delay, late) {
                None => late,
                Some(base) => {
                    self.base = base;
                    delay - base > self.t
                }
            },
            _ => late,
        }
    }
}

impl Expiry {
    /// The base to go on with, if the one before has expired.
    fn base_after(&mut self, now: Time, delay: Time, late: bool) -> Option<Time> {
        if !late {
            self.late = None;
            return None;
        }
        let (since, least) = self.late.unwrap_or((now, delay));
        let least = least.min(delay);
        let expired = now - since >= self.lifetime;
        self.late = (!expired).then_some((since, least));
        expired.then_some(least)
    }
}

impl Judge for DelayThreshold {
    #[inline]
    fn judge(&mut self, ack: &AckSample) -> Signal {
        if self.exceeded(ack.now, ack.one_way_delay, ack.acked) {
            Signal::Delay
        } else {
            Signal::Clear
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Control as _;
    use super::super::dctcp::Dctcp;
    use super::super::dctcp::tests::ack;
    use super::*;

    fn threshold(base_lifetime: Option<Time>) -> DelayThreshold {
        let config = DelayDctcpConfig {
            base_lifetime,
            ..DelayDctcpConfig::default()
        };
        DelayThreshold::new(&config, 1_000)
    }

    #[test]
    fn late_means_more_than_t_over_the_least_delay() {
        let mut threshold = threshold(None);
        let mut late = |us, acked| threshold.exceeded(Time::ZERO, Time::from_us(us), acked);
        // Nothing is late before there is a base, which a short segment does not make.
        assert!(!late(900, 999));
        assert!(!late(300, 1_000));
        assert!(!late(444, 1_000));
        assert!(late(445, 1_000));
        assert!(!late(50, 999));
        assert!(late(445, 999));
        // A shorter delay moves the base: 58 + 144 = 202.
        assert!(!late(58, 2_000));
        assert!(!late(202, 1_000));
        assert!(late(203, 1_000));
    }

    #[test]
    fn a_base_expires_when_nothing_came_near_it_for_its_lifetime() {
        let late = |threshold: &mut DelayThreshold, ms, us, acked| {
            threshold.exceeded(Time::from_ms(ms), Time::from_us(us), acked)
        };
        let mut short = threshold(Some(Time::from_ms(100)));
        let mut never = threshold(None);
        for (ms, us, acked, expires, stays) in [
            (0, 58, 1_000, false, false),
            // The path becomes longer by 1 ms; a segment within T of the base starts the time anew.
            (10, 1_100, 1_000, true, true),
            (50, 202, 1_000, false, false),
            (60, 1_100, 1_000, true, true),
            (100, 1_058, 1_000, true, true),
            // A short segment neither makes a base nor lets one live on.
            (150, 90, 100, false, false),
            (159, 1_100, 1_000, true, true),
            // 100 ms after the first late one: the least of them, 1,058 us, is the base.
            (160, 1_100, 1_000, false, true),
            (170, 1_202, 1_000, false, true),
            (180, 1_203, 1_000, true, true),
            (190, 58, 1_000, false, false),
            (200, 203, 1_000, true, true),
        ] {
            assert_eq!(late(&mut short, ms, us, acked), expires, "at {ms} ms");
            assert_eq!(late(&mut never, ms, us, acked), stays, "at {ms} ms");
        }
    }

    #[test]
    fn marks_do_not_count_but_late_bytes_do() {
        let config = DctcpConfig {
            g: 0.5,
            initial_alpha: 0.0,
        };
        let mut controller = Dctcp::new(&config, threshold(None));
        let late = |end, ece, us| AckSample {
            one_way_delay: Time::from_us(us),
            ..ack(end, 3_000, ece)
        };
        assert_eq!(controller.observe(&late(1_000, true, 58)), Signal::Clear);
        assert_eq!(controller.observe(&late(2_000, true, 58)), Signal::Clear);
        assert_eq!(controller.observe(&late(3_000, false, 203)), Signal::Delay);
        assert_eq!(controller.alpha(), Some(0.0));
        // The ACK beyond 3000 ends the window with two of three late: alpha = 1/2 * 2/3.
        assert_eq!(controller.observe(&late(4_000, false, 250)), Signal::Delay);
        assert_eq!(controller.alpha(), Some(0.5 * (2.0 / 3.0)));
    }
}
