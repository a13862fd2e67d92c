//! The clock of a host, as the controller can know it from reports.
//!
//! A report sent when the host's clock was H arrives when the controller's is C. It was on its way
//! for some time, so the host's clock is now H or later: C - H is an upper bound of how far the
//! controller's clock is ahead. A time of the controller minus this bound is a time of the host
//! that is never too late, whatever the network did to the report. Between reports the clocks can
//! drift apart, by which the bound grows.

use super::Protocol;
use crate::units::Time;

/// Bounds of the difference between two clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostClock {
    /// C - H in picoseconds, and when it was taken.
    ahead: Option<(i128, Time)>,
}

impl HostClock {
    /// Takes a report.
    pub(super) fn sample(&mut self, now: Time, clock: Time, protocol: &Protocol) {
        let sample = i128::from(now.ps()) - i128::from(clock.ps());
        let is_best = self.ahead.is_none_or(|(best, at)| {
            let drift = protocol.drift_in(now.saturating_sub(at));
            sample <= best + i128::from(drift.ps())
        });
        if is_best {
            self.ahead = Some((sample, now));
        }
    }

    /// A time of the controller in the clock of the host, or earlier.
    pub(super) fn convert(&self, now: Time, time: Time, protocol: &Protocol) -> Time {
        let Some((best, at)) = self.ahead else {
            return Time::ZERO;
        };
        let drift = protocol.drift_in(time.saturating_sub(at).max(now.saturating_sub(at)));
        let host = i128::from(time.ps()) - best - i128::from(drift.ps());
        Time::from_ps(u64::try_from(host.max(0)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_report_sets_the_clock() {
        let protocol = Protocol {
            drift: 0,
            ..Protocol::default()
        };
        let us = Time::from_us;
        let mut clock = HostClock::default();
        assert_eq!(
            clock.convert(us(0), us(10), &protocol),
            Time::ZERO,
            "nothing is known yet"
        );
        // The controller is 1000 us ahead; reports take 50, 20 and 90 us.
        for (host, delay) in [(100, 50), (200, 20), (300, 90)] {
            clock.sample(us(1000 + host + delay), us(host), &protocol);
        }
        assert_eq!(
            clock.convert(us(2000), us(3000), &protocol),
            us(3000 - 1020)
        );
    }

    #[test]
    fn an_old_report_counts_for_less() {
        let protocol = Protocol {
            drift: 100,
            ..Protocol::default()
        };
        let mut clock = HostClock::default();
        clock.sample(Time::from_secs(1), Time::from_secs(1), &protocol);
        // Two clocks drift apart by up to 200 us in a second.
        let second = Time::from_secs(2);
        assert_eq!(
            clock.convert(second, second, &protocol),
            second - Time::from_us(200)
        );
    }
}
