use rustc_hash::FxHashMap;
use shallows_core::units::Time;

use super::Forwarding;
use crate::frame::Mac;

/// A station that was not heard of for so long is forgotten (802.1D's default).
const AGING: Time = Time::from_secs(300);

/// Most stations that are learned: a flood of made-up addresses must not take all memory.
const MOST_STATIONS: usize = 65_536;

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Out of this link.
    Link(usize),
    /// Out of all links but the one it came from.
    Everywhere,
    /// Nowhere: its station is where it came from, it must not be forwarded, or nobody knows it.
    Nowhere,
}

/// The forwarding table of one bridge.
#[derive(Debug)]
pub(super) struct Bridge {
    forwarding: Forwarding,
    /// Egress links of this bridge.
    pub(super) links: Vec<usize>,
    stations: FxHashMap<Mac, (usize, Time)>,
}

impl Bridge {
    pub(super) fn new(forwarding: Forwarding) -> Self {
        Self {
            forwarding,
            links: Vec::new(),
            stations: FxHashMap::default(),
        }
    }

    /// Puts a station behind a link for good.
    pub(super) fn place(&mut self, station: Mac, link: usize) {
        self.stations.insert(station, (link, Time::MAX));
    }

    /// Where to send a frame that came over the link whose other direction is `back`.
    pub(super) fn way(&mut self, now: Time, source: Mac, destination: Mac, back: usize) -> Way {
        if self.forwarding == Forwarding::Learning && !source.is_group() {
            let known = self.stations.contains_key(&source);
            if known || self.stations.len() < MOST_STATIONS {
                self.stations.insert(source, (back, now));
            }
        }
        if destination.is_link_local() {
            return Way::Nowhere;
        }
        if destination.is_group() {
            return Way::Everywhere;
        }
        match self.stations.get(&destination) {
            Some(&(link, _)) if link == back => Way::Nowhere,
            Some(&(link, heard)) if now < heard.saturating_add(AGING) => Way::Link(link),
            _ if self.forwarding == Forwarding::Learning => Way::Everywhere,
            _ => Way::Nowhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(last: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, last])
    }

    #[test]
    fn learning_and_forgetting() {
        let mut bridge = Bridge::new(Forwarding::Learning);
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
        let later = start + AGING;
        assert_eq!(bridge.way(later, mac(2), mac(1), 2), Way::Everywhere);
        let broadcast = Mac([0xff; 6]);
        assert_eq!(bridge.way(later, mac(2), broadcast, 2), Way::Everywhere);
        let pause = Mac([1, 0x80, 0xc2, 0, 0, 1]);
        assert_eq!(bridge.way(later, mac(2), pause, 2), Way::Nowhere);
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
}
