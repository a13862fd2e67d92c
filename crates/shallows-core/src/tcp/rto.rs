//! The retransmission timeout (RFC 6298).
//!
//! Differences:
//! - Bounds are parameters: datacenters set a minimum of milliseconds where the RFC has a second.
//! - Samples come from the echoed timestamp, so Karn's rule needs no care: the echo says which
//!   transmission was answered (§3). The sender takes one in a window of data, for which the gains
//!   of §2 are made; the samples of every ACK would need smaller ones (RFC 7323 §4.2).
//! - A SYN that timed out does not set the timeout to 3 s (§5.7), for the same reason.

use super::RtoConfig;
use crate::units::Time;

#[derive(Clone, Debug)]
pub(crate) struct Rto {
    smoothed: Option<Smoothed>,
    /// With back-off, within the bounds.
    current: Time,
    minimum: Time,
    maximum: Time,
    granularity: Time,
}

#[derive(Clone, Copy, Debug)]
struct Smoothed {
    srtt: Time,
    rttvar: Time,
}

impl Rto {
    pub(crate) fn new(config: &RtoConfig) -> Self {
        Self {
            smoothed: None,
            current: config.initial,
            minimum: config.minimum,
            maximum: config.maximum,
            granularity: config.granularity,
        }
    }

    /// The timeout of what is sent now.
    #[inline]
    pub(crate) fn current(&self) -> Time {
        self.current
    }

    pub(crate) fn srtt(&self) -> Option<Time> {
        self.smoothed.map(|smoothed| smoothed.srtt)
    }

    /// Takes a round-trip time in (§2.2, §2.3) and ends any back-off (§5.7, note).
    pub(crate) fn sample(&mut self, rtt: Time) {
        let Smoothed { srtt, rttvar } = *self
            .smoothed
            .insert(self.smoothed.map_or(Smoothed::first(rtt), |s| s.with(rtt)));
        let spread = self.granularity.max(rttvar * 4);
        self.current = (srtt + spread).clamp(self.minimum, self.maximum);
    }

    /// Doubles the timeout (§5.5).
    pub(crate) fn back_off(&mut self) {
        self.current = self.current.saturating_add(self.current).min(self.maximum);
    }
}

impl Smoothed {
    fn first(rtt: Time) -> Self {
        Self {
            srtt: rtt,
            rttvar: rtt / 2,
        }
    }

    fn with(self, rtt: Time) -> Self {
        let error = self.srtt.max(rtt) - self.srtt.min(rtt);
        Self {
            srtt: (self.srtt * 7 + rtt) / 8,
            rttvar: (self.rttvar * 3 + error) / 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rto(initial_ms: u64, minimum_ms: u64, maximum_ms: u64) -> Rto {
        Rto::new(&RtoConfig {
            initial: Time::from_ms(initial_ms),
            minimum: Time::from_ms(minimum_ms),
            maximum: Time::from_ms(maximum_ms),
            granularity: Time::from_us(1),
        })
    }

    #[test]
    fn follows_the_equations() {
        let mut rto = rto(1_000, 0, 60_000);
        assert_eq!(rto.current(), Time::from_secs(1));
        assert_eq!(rto.srtt(), None);
        // SRTT = 80, RTTVAR = 40, RTO = 80 + 160.
        rto.sample(Time::from_us(80));
        assert_eq!(rto.srtt(), Some(Time::from_us(80)));
        assert_eq!(rto.current(), Time::from_us(240));
        // RTTVAR = 3/4 * 40 + 1/4 * 80 = 50, SRTT = 7/8 * 80 + 1/8 * 160 = 90, RTO = 290.
        rto.sample(Time::from_us(160));
        assert_eq!(rto.srtt(), Some(Time::from_us(90)));
        assert_eq!(rto.current(), Time::from_us(290));
    }

    #[test]
    fn granularity_keeps_a_steady_path_from_its_own_round_trip() {
        let mut rto = rto(1_000, 0, 60_000);
        for _ in 0..100 {
            rto.sample(Time::from_us(50));
        }
        assert_eq!(rto.current(), Time::from_us(51));
    }

    #[test]
    fn backs_off_to_the_maximum_until_a_sample() {
        let mut rto = rto(5, 5, 30);
        let mut doubled = || {
            rto.back_off();
            rto.current()
        };
        assert_eq!(doubled(), Time::from_ms(10));
        assert_eq!(doubled(), Time::from_ms(20));
        assert_eq!(doubled(), Time::from_ms(30));
        assert_eq!(doubled(), Time::from_ms(30));
        rto.sample(Time::from_us(80));
        assert_eq!(rto.current(), Time::from_ms(5));
    }
}
