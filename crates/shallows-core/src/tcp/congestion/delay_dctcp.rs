//! Delay-based DCTCP (Zeng et al., APNet 2017, §3.1): DCTCP whose signal is delay instead of marks.
//!
//! Eq. 2: an ACK is a congestion indicator if its delay exceeds the base by more than T. The
//! control law on the indicators is that of [`dctcp`](super::dctcp). The delay is one-way (§4.2), so
//! queues that ACKs wait in do not count; the base is the least delay that the connection has seen of
//! a full segment, because a shorter one takes less time on each link.
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
}

impl Default for DelayDctcpConfig {
    fn default() -> Self {
        let DctcpConfig { g, initial_alpha } = DctcpConfig::default();
        Self {
            t: Time::from_us(144),
            g,
            initial_alpha,
        }
    }
}

impl DelayDctcpConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
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
}

impl DelayThreshold {
    pub(super) fn new(t: Time, segment: u64) -> Self {
        Self {
            t,
            segment,
            base: Time::MAX,
        }
    }

    /// Judges the delay of the last of `acked` bytes.
    #[inline]
    fn exceeded(&mut self, delay: Time, acked: u64) -> bool {
        if acked >= self.segment {
            self.base = self.base.min(delay);
        }
        delay.saturating_sub(self.base) > self.t
    }
}

impl Judge for DelayThreshold {
    #[inline]
    fn judge(&mut self, ack: &AckSample) -> Signal {
        if self.exceeded(ack.one_way_delay, ack.acked) {
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

    #[test]
    fn late_means_more_than_t_over_the_least_delay() {
        let mut threshold = DelayThreshold::new(Time::from_us(144), 1_000);
        let mut late = |us, acked| threshold.exceeded(Time::from_us(us), acked);
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
    fn marks_do_not_count_but_late_bytes_do() {
        let config = DctcpConfig {
            g: 0.5,
            initial_alpha: 0.0,
        };
        let mut controller = Dctcp::new(&config, DelayThreshold::new(Time::from_us(144), 1_000));
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
