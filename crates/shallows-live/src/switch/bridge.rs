use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use shallows_core::units::Time;

use super::Forwarding;
use crate::frame::Mac;

/// Stations that were silent for this long are forgotten (802.1D's default).
const AGEING: Time = Time::from_secs(300);

/// Precision of the time at which a station was last heard. Refreshing an entry for every frame
/// would cost more than forwarding it.
const REFRESH: Time = Time::from_secs(1);

/// Destination of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Out of this link.
    Link(usize),
    /// Out of all links but the one it came from.
    Everywhere,
    /// Nowhere: its station is where it came from, it must not be forwarded, or nobody knows it.
    Nowhere,
}

/// Counters of the learned stations of a bridge or of a whole switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StationCounters {
    /// Stations in the table now.
    pub known: u64,
    /// Entries made.
    pub learned: u64,
    /// Stations that appeared at another port than before.
    pub moved: u64,
    /// Entries removed because the station was silent for 300 s.
    pub aged: u64,
    /// Entries removed because their port had as many as it may: somebody sends from more addresses
    /// than `stations-per-port` allows.
    pub evicted: u64,
}

/// The forwarding table of one bridge.
///
/// Every link has a share of the table to itself. A link that is full forgets the station it has not
/// heard of for longest, so a sender that makes up addresses displaces its own neighbours only.
#[derive(Debug)]
pub(super) struct Bridge {
    forwarding: Forwarding,
    /// Egress links of this bridge.
    pub(super) links: Vec<usize>,
    stations: FxHashMap<Mac, Station>,
    /// Learned stations by link and age, oldest first; by the number of the link.
    ages: Vec<BTreeSet<(Time, Mac)>>,
    /// Stations that may be learned on each link.
    limits: Vec<usize>,
    counters: StationCounters,
}

#[derive(Clone, Copy, Debug)]
struct Station {
    link: usize,
    /// Time at which it was last heard, to within [`REFRESH`]; `None` if it was placed by hand.
    heard: Option<Time>,
}

impl Bridge {
    pub(super) fn new(forwarding: Forwarding) -> Self {
        Self {
            forwarding,
            links: Vec::new(),
            stations: FxHashMap::default(),
            ages: Vec::new(),
            limits: Vec::new(),
            counters: StationCounters::default(),
        }
    }

    /// Adds an egress link, behind which `limit` stations may be learned.
    pub(super) fn add_link(&mut self, link: usize, limit: usize) {
        self.links.push(link);
        if self.ages.len() <= link {
            self.ages.resize_with(link + 1, BTreeSet::new);
            self.limits.resize(link + 1, 0);
        }
        self.limits[link] = limit;
    }

    /// Puts a station behind a link for good.
    pub(super) fn place(&mut self, station: Mac, link: usize) {
        self.stations.insert(station, Station { link, heard: None });
    }

    /// Destination of a frame that came over the link whose other direction is `back`.
    pub(super) fn way(&mut self, now: Time, source: Mac, destination: Mac, back: usize) -> Way {
        if self.forwarding == Forwarding::Learning && !source.is_group() {
            self.learn(now, source, back);
        }
        if destination.is_link_local() {
            return Way::Nowhere;
        }
        if destination.is_group() {
            return Way::Everywhere;
        }
        let found = self.stations.get(&destination);
        match found.filter(|station| !station.is_stale(now)) {
            Some(station) if station.link == back => Way::Nowhere,
            Some(station) => Way::Link(station.link),
            None if self.forwarding == Forwarding::Learning => Way::Everywhere,
            None => Way::Nowhere,
        }
    }

    #[inline]
    fn learn(&mut self, now: Time, source: Mac, link: usize) {
        match self.stations.get(&source) {
            Some(station) if station.link == link && !station.is_due(now) => {}
            _ => self.update(now, source, link),
        }
    }

    #[cold]
    fn update(&mut self, now: Time, source: Mac, link: usize) {
        self.age_link(now, link);
        match self.forget(source) {
            Some(before) => self.counters.moved += u64::from(before != link),
            None => self.counters.learned += 1,
        }
        if self.ages[link].len() >= self.limits[link]
            && let Some((_, oldest)) = self.ages[link].pop_first()
        {
            self.stations.remove(&oldest);
            self.counters.evicted += 1;
        }
        let heard = Some(now);
        self.stations.insert(source, Station { link, heard });
        self.ages[link].insert((now, source));
    }

    /// Removes a learned station; the link that it was behind.
    fn forget(&mut self, station: Mac) -> Option<usize> {
        let Station { link, heard } = self.stations.remove(&station)?;
        if let Some(heard) = heard {
            self.ages[link].remove(&(heard, station));
        }
        Some(link)
    }

    fn age_link(&mut self, now: Time, link: usize) {
        while let Some(&(heard, station)) = self.ages[link].first() {
            if now < heard.saturating_add(AGEING) {
                break;
            }
            self.ages[link].pop_first();
            self.stations.remove(&station);
            self.counters.aged += 1;
        }
    }

    /// Forgets the stations that are silent, and says what has become of all.
    pub(super) fn counters(&mut self, now: Time) -> StationCounters {
        for link in 0..self.ages.len() {
            self.age_link(now, link);
        }
        StationCounters {
            known: self.stations.len() as u64,
            ..self.counters
        }
    }
}

impl Station {
    fn is_stale(self, now: Time) -> bool {
        let heard = self.heard;
        heard.is_some_and(|heard| now >= heard.saturating_add(AGEING))
    }

    fn is_due(self, now: Time) -> bool {
        let heard = self.heard;
        heard.is_some_and(|heard| now >= heard.saturating_add(REFRESH))
    }
}

impl std::iter::Sum for StationCounters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            known: a.known + b.known,
            learned: a.learned + b.learned,
            moved: a.moved + b.moved,
            aged: a.aged + b.aged,
            evicted: a.evicted + b.evicted,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(last: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, last])
    }

    /// A learning bridge with links 0, 1 and 2.
    fn learning(limit: usize) -> Bridge {
        let mut bridge = Bridge::new(Forwarding::Learning);
        for link in 0..3 {
            bridge.add_link(link, limit);
        }
        bridge
    }

    #[test]
    fn learning_and_forgetting() {
        let mut bridge = learning(10);
        let start = Time::from_secs(1);
        assert_eq!(bridge.way(start, mac(1), mac(2), 0), Way::Everywhere);
        assert_eq!(bridge.way(start, mac(2), mac(1), 1), Way::Link(0));
        assert_eq!(
            bridge.way(start, mac(3), mac(2), 1),
            Way::Nowhere,
            "same segment"
        );
        assert_eq!(bridge.way(start, mac(2), mac(1), 2), Way::Link(0));
        assert_eq!(
            bridge.way(start, mac(1), mac(2), 0),
            Way::Link(2),
            "it has moved"
        );
        let later = start + AGEING;
        assert_eq!(bridge.way(later, mac(2), mac(1), 2), Way::Everywhere);
        let broadcast = Mac([0xff; 6]);
        assert_eq!(bridge.way(later, mac(2), broadcast, 2), Way::Everywhere);
        let pause = Mac([1, 0x80, 0xc2, 0, 0, 1]);
        assert_eq!(bridge.way(later, mac(2), pause, 2), Way::Nowhere);
        // 2 spoke just now; 1 and 3 were silent for 300 s.
        let counters = bridge.counters(later);
        let expected = StationCounters {
            known: 1,
            learned: 4,
            moved: 1,
            aged: 3,
            evicted: 0,
        };
        assert_eq!(counters, expected);
    }

    #[test]
    fn a_static_table_neither_learns_nor_floods() {
        let mut bridge = Bridge::new(Forwarding::Static);
        bridge.place(mac(1), 0);
        let now = Time::from_secs(1_000_000);
        assert_eq!(bridge.way(now, mac(2), mac(1), 1), Way::Link(0));
        assert_eq!(bridge.way(now, mac(1), mac(2), 0), Way::Nowhere);
        assert_eq!(bridge.way(now, mac(1), Mac([0xff; 6]), 0), Way::Everywhere);
    }

    /// A sender at link 1 makes up 80,000 addresses. What was learned elsewhere before and what is
    /// learned afterwards is forwarded all the same.
    #[test]
    fn made_up_addresses_displace_nobody_elsewhere() {
        let mut bridge = learning(100);
        let now = Time::from_secs(1);
        bridge.way(now, mac(1), mac(2), 0);
        for made_up in 0..80_000_u32 {
            let [_, a, b, c] = made_up.to_be_bytes();
            bridge.way(now, Mac([6, 6, 6, a, b, c]), mac(1), 1);
        }
        assert_eq!(bridge.way(now, mac(2), mac(1), 2), Way::Link(0), "kept");
        assert_eq!(bridge.way(now, mac(1), mac(2), 0), Way::Link(2), "learned");
        let counters = bridge.counters(now);
        assert_eq!((counters.known, counters.evicted), (102, 79_900));
    }

    #[test]
    fn the_longest_silent_station_goes_first() {
        let mut bridge = learning(2);
        let at = Time::from_secs;
        bridge.way(at(1), mac(1), mac(9), 0);
        bridge.way(at(2), mac(2), mac(9), 0);
        bridge.way(at(3), mac(1), mac(9), 0);
        bridge.way(at(4), mac(3), mac(9), 0);
        assert_eq!(bridge.way(at(5), mac(8), mac(1), 1), Way::Link(0));
        assert_eq!(bridge.way(at(5), mac(8), mac(2), 1), Way::Everywhere);
        assert_eq!(bridge.way(at(5), mac(8), mac(3), 1), Way::Link(0));
    }

    #[test]
    fn a_station_that_speaks_is_not_forgotten() {
        let mut bridge = learning(2);
        for second in 1..1000 {
            bridge.way(Time::from_secs(second), mac(1), mac(9), 0);
        }
        let way = bridge.way(Time::from_secs(1_200), mac(2), mac(1), 1);
        assert_eq!(way, Way::Link(0));
        assert_eq!(bridge.counters(Time::from_secs(1_200)).learned, 2);
    }
}
