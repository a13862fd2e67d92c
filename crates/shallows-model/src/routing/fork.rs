//! Paths of sprayed packets that part at one switch.

use super::{Choice, Router, Selection, below, mix};
use crate::ids::{HostId, LinkId};

/// The place where the paths between two hosts part, if there is one only: what [`Router::path`] finds
/// for a packet follows from one hash.
#[derive(Clone, Copy, Debug)]
pub struct Fork {
    /// Hash of the hosts.
    pair: u64,
    switch: u32,
    paths: u32,
}

impl Fork {
    /// The number of the path that a packet takes.
    #[inline]
    pub fn choose(&self, selector: u64) -> usize {
        let hash = mix(mix(self.pair, selector), u64::from(self.switch));
        below(hash, self.paths) as usize
    }
}

impl Router {
    /// The fork of the paths between two hosts and the paths, if packets are sprayed, there is a way,
    /// and it parts at no more than one switch.
    ///
    /// # Panics
    /// If one of the hosts does not exist.
    pub fn fork(&self, src: HostId, dst: HostId) -> Option<(Fork, Vec<Vec<LinkId>>)> {
        if self.choice != Choice::Hash(Selection::Packet) || self.nics.are_several() || src == dst {
            return None;
        }
        let (from, to) = (self.nics.first(src), self.nics.first(dst));
        if !self.is_up(from.up) || !self.is_up(to.down) {
            return None;
        }
        let mut switch = from.switch;
        // Each with the switch that it has come to. Shortest paths all have the same length.
        let mut paths = vec![(vec![from.up], from.switch)];
        while paths.iter().any(|&(_, at)| at != to.switch) {
            let mut longer = Vec::with_capacity(paths.len());
            for (path, at) in &paths {
                let ports = self.table.next_hops(*at, to.switch);
                match (ports.len(), paths.len()) {
                    (0, _) | (2.., 2..) => return None,
                    (2.., _) => switch = *at,
                    _ => {}
                }
                longer.extend(ports.iter().map(|port| {
                    let mut path = path.clone();
                    path.push(port.link);
                    (path, port.to)
                }));
            }
            paths = longer;
        }
        let end = |(mut path, _): (Vec<LinkId>, u32)| {
            path.push(to.down);
            path
        };
        let hosts = u64::from(src.0) << 32 | u64::from(dst.0);
        let fork = Fork {
            pair: mix(self.seed, hosts),
            switch,
            paths: paths.len() as u32,
        };
        Some((fork, paths.into_iter().map(end).collect()))
    }
}
