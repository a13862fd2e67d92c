//! The location of VMs on physical nodes (§3.1, input (ii)), learned from what hosts report.
//!
//! The paper takes the locations as given. Here a host claims the stations that it has seen behind
//! it, the last claim wins, and all hosts get the table, so that a virtual machine that has migrated
//! is scheduled for its new host as soon as it has sent a frame there. The table has versions: a
//! report has the one that its host knows, and a directive what has changed since. A new leader
//! begins with an empty table, which hosts fill again.

use std::collections::BTreeMap;

use super::{Controller, Routes};
use crate::units::Time;
use crate::xco::message::{Claims, Places, Station};

/// The most stations of a host: a host that makes up addresses displaces its own only.
const MOST_STATIONS: usize = 4096;

/// Stations and their hosts.
#[derive(Debug, Default)]
pub(super) struct PlaceTable {
    stations: BTreeMap<Station, Entry>,
    /// Entries in the order in which they changed.
    changes: BTreeMap<u64, Station>,
    /// Of each host the versions of its entries.
    of_host: BTreeMap<u32, BTreeMap<u64, Station>>,
    version: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    host: u32,
    version: u64,
    since: Time,
}

impl PlaceTable {
    /// Puts a station at a host; whether that is new. A station that has just moved stays where it
    /// is for `hold`: two hosts that both claim it do not keep everybody busy.
    fn claim(&mut self, now: Time, station: Station, host: u32, hold: Time) -> bool {
        if let Some(&entry) = self.stations.get(&station) {
            let is_held = now.saturating_sub(entry.since) < hold;
            if entry.host == host || is_held {
                return false;
            }
            self.remove(station, entry);
        }
        let own = self.of_host.entry(host).or_default();
        if own.len() >= MOST_STATIONS
            && let Some((_, oldest)) = own.pop_first()
            && let Some(entry) = self.stations.remove(&oldest)
        {
            self.changes.remove(&entry.version);
        }
        self.version += 1;
        let version = self.version;
        own.insert(version, station);
        self.changes.insert(version, station);
        let since = now;
        let entry = Entry {
            host,
            version,
            since,
        };
        self.stations.insert(station, entry);
        true
    }

    fn remove(&mut self, station: Station, entry: Entry) {
        self.stations.remove(&station);
        self.changes.remove(&entry.version);
        if let Some(own) = self.of_host.get_mut(&entry.host) {
            own.remove(&entry.version);
        }
    }

    /// Changes since a version, as far as there is room.
    fn since(&self, seen: u64, room: usize) -> Option<Places> {
        if seen >= self.version || room == 0 {
            return None;
        }
        let mut changes = self.changes.range(seen + 1..);
        let entry = |(_, station): (_, &Station)| (*station, self.stations[station].host);
        let places = changes.by_ref().take(room).map(entry).collect();
        let version = changes.next().map_or(self.version, |(next, _)| next - 1);
        Some(Places { version, places })
    }
}

impl<R: Routes> Controller<R> {
    /// The host that a virtual machine is at, as far as hosts have claimed it.
    pub fn place(&self, station: Station) -> Option<u32> {
        self.places.stations.get(&station).map(|entry| entry.host)
    }

    /// Takes the claims of a host. All hosts are told of what is new, and this one of what it does
    /// not know.
    pub(super) fn note_claims(&mut self, now: Time, host: u32, claims: &Claims) {
        self.members[host as usize].places_seen = Some(claims.seen);
        let hold = self.config.protocol.keepalive;
        let mut is_new = false;
        for &station in &claims.stations {
            is_new |= self.places.claim(now, station, host, hold);
        }
        if is_new {
            for other in 0..self.members.len() as u32 {
                let member = &self.members[other as usize];
                if member.heard.is_some() && member.places_seen.is_some() {
                    self.post(other);
                }
            }
        } else if claims.seen < self.places.version {
            self.post(host);
        }
    }

    /// Places that a host does not know yet, as far as there is room.
    pub(super) fn news_of_places(&self, host: u32, room: usize) -> Option<Places> {
        let seen = self.members[host as usize].places_seen?;
        self.places.since(seen, room)
    }

    /// Begins with an empty table, as every new term does.
    pub(super) fn forget_places(&mut self) {
        self.places = PlaceTable::default();
        for member in &mut self.members {
            member.places_seen = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Time = Time::from_ms(100);

    fn station(number: u16) -> Station {
        let [a, b] = number.to_be_bytes();
        Station([2, 0, 0, 0, a, b])
    }

    #[test]
    fn the_last_claim_wins_but_not_at_once() {
        let mut table = PlaceTable::default();
        let at = Time::from_ms;
        assert!(table.claim(at(0), station(1), 0, HOLD));
        assert!(!table.claim(at(1), station(1), 0, HOLD), "it is known");
        assert!(
            !table.claim(at(50), station(1), 1, HOLD),
            "it came just now"
        );
        assert!(table.claim(at(100), station(1), 1, HOLD));
        let news = table.since(0, 10).unwrap();
        assert_eq!(news.places, [(station(1), 1)], "only what is true");
        assert_eq!(news.version, 2);
        assert_eq!(table.since(2, 10), None);
    }

    #[test]
    fn news_come_in_parts() {
        let mut table = PlaceTable::default();
        for number in 0..5 {
            assert!(table.claim(Time::ZERO, station(number), 0, HOLD));
        }
        // The second moves, so that its old version is nobody's.
        assert!(table.claim(HOLD, station(1), 3, HOLD));
        let first = table.since(0, 2).unwrap();
        assert_eq!(first.places, [(station(0), 0), (station(2), 0)]);
        assert_eq!(first.version, 3);
        let second = table.since(3, 9).unwrap();
        assert_eq!(
            second.places,
            [(station(3), 0), (station(4), 0), (station(1), 3)]
        );
        assert_eq!(second.version, 6);
        assert_eq!(table.since(0, 0), None, "no room");
    }

    #[test]
    fn made_up_stations_displace_those_of_their_own_host() {
        let mut table = PlaceTable::default();
        assert!(table.claim(Time::ZERO, station(u16::MAX), 0, HOLD));
        for number in 0..2 * MOST_STATIONS as u16 {
            assert!(table.claim(Time::ZERO, station(number), 1, HOLD));
        }
        assert_eq!(table.stations.len(), MOST_STATIONS + 1);
        assert_eq!(table.changes.len(), MOST_STATIONS + 1);
        assert_eq!(table.stations[&station(u16::MAX)].host, 0);
        assert!(!table.stations.contains_key(&station(0)));
    }
}
