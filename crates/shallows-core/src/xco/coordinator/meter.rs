//! Meter of a host's rates to each destination, for coordination on demand (§6: "The local
//! coordinators can measure and report only the large V2V flows").
//!
//! A window begins with the first packet. A destination is reported as soon as a window has enough
//! bytes to make it large, because the bytes so far are a lower bound of its rate; at the end of the
//! window its rate is known, and reported if it has changed.

use rustc_hash::FxHashMap;

use crate::units::{Bytes, Rate, Time};
use crate::xco::config::OnDemand;
use crate::xco::message::MOST_RATES;

#[derive(Debug)]
pub(super) struct Meter {
    window: Time,
    /// The least rate that is reported, and the least change.
    large: Rate,
    /// Bytes per window of a destination that counts as large.
    large_bytes: u64,
    started: Option<Time>,
    /// Bytes on the wire of each destination in this window.
    bytes: FxHashMap<u32, u64>,
    /// Reported rates, by destination.
    rates: Vec<(u32, Rate)>,
}

impl Meter {
    pub(super) fn new(config: &OnDemand, link: Rate) -> Self {
        let large = link.scaled(u64::from(config.large), 100);
        Self {
            window: config.window,
            large,
            large_bytes: large.bytes_in(config.window).get(),
            started: None,
            bytes: FxHashMap::default(),
            rates: Vec::new(),
        }
    }

    /// Counts a packet; whether it makes its destination large, which is to be reported.
    pub(super) fn count(&mut self, now: Time, destination: u32, size: u64) -> bool {
        self.started.get_or_insert(now);
        let bytes = self.bytes.entry(destination).or_default();
        *bytes += size;
        if *bytes < self.large_bytes || *bytes >= self.large_bytes + size {
            return false;
        }
        let known = self.rates.binary_search_by_key(&destination, |&(to, _)| to);
        if let Err(place) = known
            && self.rates.len() < MOST_RATES
        {
            self.rates.insert(place, (destination, self.large));
            return true;
        }
        false
    }

    /// End of the window.
    pub(super) fn timeout(&self) -> Option<Time> {
        self.started.map(|started| started + self.window)
    }

    /// Ends a window that is over; whether there is something to report.
    pub(super) fn advance(&mut self, now: Time) -> bool {
        let Some(started) = self.started.filter(|&start| start + self.window <= now) else {
            return false;
        };
        let span = now - started;
        let rate = |(to, bytes)| (to, Rate::from_bytes_per(Bytes::new(bytes), span));
        let rates = self.bytes.drain().map(rate);
        let mut rates: Vec<_> = rates.filter(|&(_, rate)| rate >= self.large).collect();
        // The largest, and of equal ones the first.
        rates.sort_unstable_by_key(|&(to, rate)| (std::cmp::Reverse(rate), to));
        rates.truncate(MOST_RATES);
        rates.sort_unstable();
        self.started = (!rates.is_empty() || !self.rates.is_empty()).then_some(now);
        let is_same = |(old, new): (&(u32, Rate), &(u32, Rate))| {
            old.0 == new.0 && old.1.bps().abs_diff(new.1.bps()) < self.large.bps()
        };
        let unchanged =
            rates.len() == self.rates.len() && self.rates.iter().zip(&rates).all(is_same);
        if !unchanged {
            self.rates = rates;
        }
        !unchanged
    }

    /// Forgets a window that a jump of the clock has cut.
    pub(super) fn restart(&mut self, now: Time) {
        self.started = (!self.rates.is_empty()).then_some(now);
        self.bytes.clear();
    }

    /// Rates of large destinations, as last measured.
    pub(super) fn rates(&self) -> &[(u32, Rate)] {
        &self.rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host at 1 Gbps, where 5% of a window of 1 ms are 6250 bytes.
    fn meter() -> Meter {
        Meter::new(&OnDemand::default(), Rate::from_gbps(1))
    }

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    #[test]
    fn a_large_destination_is_reported_at_once_and_its_rate_when_it_is_known() {
        let mut meter = meter();
        assert_eq!(meter.timeout(), None);
        assert!(!meter.count(us(100), 7, 6_000));
        assert!(!meter.count(us(100), 8, 6_000));
        assert!(meter.count(us(150), 7, 500));
        assert_eq!(meter.rates(), [(7, Rate::from_mbps(50))]);
        assert!(!meter.count(us(160), 7, 6_250), "it is known");
        assert_eq!(meter.timeout(), Some(us(1_100)));
        assert!(!meter.advance(us(1_099)));
        // 12,750 bytes to host 7 are 102 Mbps, 6,000 to host 8 are 48 Mbps.
        assert!(meter.advance(us(1_100)));
        assert_eq!(meter.rates(), [(7, Rate::from_mbps(102))]);
    }

    #[test]
    fn only_changes_are_reported_until_there_is_nothing_left() {
        let mut meter = meter();
        meter.count(us(0), 7, 12_500);
        assert!(meter.advance(us(1_000)));
        // 149 Mbps, then 150: less and as much as 50 Mbps more than the 100 of before.
        meter.count(us(1_500), 7, 18_625);
        assert!(!meter.advance(us(2_000)));
        meter.count(us(2_500), 7, 18_750);
        assert!(meter.advance(us(3_000)));
        assert_eq!(meter.rates(), [(7, Rate::from_mbps(150))]);
        assert!(meter.advance(us(4_000)));
        assert_eq!((meter.rates(), meter.timeout()), (&[][..], Some(us(5_000))));
        assert!(!meter.advance(us(5_000)));
        assert_eq!(meter.timeout(), None, "an idle host does not wake");
    }

    #[test]
    fn a_message_has_room_for_the_largest() {
        let mut meter = meter();
        for destination in 0..30 {
            meter.count(us(0), destination, 7_000 + u64::from(destination) * 100);
        }
        meter.advance(us(1_000));
        let reported: Vec<u32> = meter.rates().iter().map(|&(to, _)| to).collect();
        assert_eq!(reported, (6..30).collect::<Vec<_>>());
    }
}
