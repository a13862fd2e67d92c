//! The backlog groups B_x: which pairs there are, and in which order a host's are considered.

use super::{Pair, Routes, Schedule, Waits, bits};
use crate::units::Time;

impl<R: Routes> Schedule<R> {
    /// Adds `destination` to B_x. To be followed by [`Event::Backlogged`](super::Event::Backlogged) if the host is silent.
    /// False if the fabric cannot carry the pair, see [`CoordinatedFabric`](super::CoordinatedFabric).
    pub fn add(&mut self, now: Time, host: u32, destination: u32) -> bool {
        let Some(place) = self.vacancy(host, destination) else {
            return true;
        };
        let Some((path, rate)) = self.fabric.route(host, destination) else {
            return false;
        };
        let id = self.free.pop().unwrap_or(self.pairs.len() as u32);
        let pair = Pair {
            source: host,
            destination,
            path,
            rate,
            served: 0,
            since: now,
            waits: Waits::No,
            waits_at: None,
            filed_turn: 0,
        };
        if let Some(old) = self.pairs.get_mut(id as usize) {
            *old = pair;
        } else {
            self.pairs.push(pair);
        }
        let known = &mut self.hosts[host as usize].by_destination;
        known.insert(place, (destination, id));
        self.backlogged += 1;
        self.least = self.least.min(bits(rate));
        self.join_groups(id);
        self.start_waiting(now, id);
        self.file(id);
        true
    }

    /// Position at which a destination belongs in the host's list, if it is not there.
    fn vacancy(&self, host: u32, destination: u32) -> Option<usize> {
        let known = self
            .hosts
            .get(host as usize)
            .map(|host| &host.by_destination);
        let known = known.map_or(&[][..], |known| known);
        known
            .binary_search_by_key(&destination, |&(to, _)| to)
            .err()
    }

    /// Takes `destination` out of B_x where the host says that it is not backlogged. The one that
    /// it is sending to stays until [`Event::Returned`](super::Event::Returned).
    pub fn remove(&mut self, host: u32, destination: u32) {
        let Some(known) = self.hosts.get(host as usize) else {
            return;
        };
        let known = &known.by_destination;
        let Ok(place) = known.binary_search_by_key(&destination, |&(to, _)| to) else {
            return;
        };
        let (_, id) = known[place];
        if self.current(host) != Some(id) {
            self.discard(id);
        }
    }

    /// B_x in ascending order.
    pub(in crate::xco) fn destinations(
        &self,
        host: u32,
    ) -> impl ExactSizeIterator<Item = u32> + '_ {
        let known = &self.hosts[host as usize].by_destination;
        known.iter().map(|&(destination, _)| destination)
    }

    /// Puts a pair into B_x at its place in the order of line 30.
    fn file(&mut self, id: u32) {
        let order = |id: u32| {
            let pair = &self.pairs[id as usize];
            (pair.served, pair.destination)
        };
        let source = self.pairs[id as usize].source;
        let backlog = &self.hosts[source as usize].backlog;
        let at = backlog.partition_point(|&other| order(other) < order(id));
        self.hosts[source as usize].backlog.insert(at, id);
    }

    pub(super) fn unfile(&mut self, id: u32) {
        let source = self.pairs[id as usize].source;
        let backlog = &mut self.hosts[source as usize].backlog;
        if let Some(at) = backlog.iter().position(|&other| other == id) {
            backlog.remove(at);
        }
    }

    /// Forgets a pair that does not send.
    pub(super) fn discard(&mut self, id: u32) {
        self.leave_link(id);
        self.leave_groups(id);
        self.unfile(id);
        self.stop_waiting(id);
        let pair = &self.pairs[id as usize];
        let destination = pair.destination;
        let known = &mut self.hosts[pair.source as usize].by_destination;
        if let Ok(place) = known.binary_search_by_key(&destination, |&(to, _)| to) {
            known.remove(place);
        }
        self.backlogged -= 1;
        self.free.push(id);
    }
}
