//! Links that packets can take one after the other.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::Router;
use crate::ids::{HostId, LinkId};

/// The ends of all paths to the hosts of one switch.
#[derive(Default)]
struct Ends {
    /// The links up of the sources, and their switches.
    sources: Vec<(LinkId, u32)>,
    /// The links down to the destinations.
    destinations: Vec<LinkId>,
}

impl Router {
    /// The pairs of links that packets between these hosts may take one after the other on shortest
    /// paths, whatever their selectors, in order and each once. Sources and destinations of one
    /// switch are taken together, so that there may be pairs that no packet takes.
    pub fn steps(
        &self,
        hosts: impl IntoIterator<Item = (HostId, HostId)>,
    ) -> Vec<(LinkId, LinkId)> {
        let mut ends: BTreeMap<u32, Ends> = BTreeMap::new();
        for (src, dst) in hosts {
            for nic in self.nics.of(dst) {
                let ends = ends.entry(nic.switch).or_default();
                let sources = self.nics.of(src).map(|nic| (nic.up, nic.switch));
                ends.sources.extend(sources);
                ends.destinations.push(nic.down);
            }
        }
        let mut steps = Vec::new();
        // Links that lead to a switch, with the number of the set of ports after them.
        let mut known = FxHashSet::default();
        for (target, mut ends) in ends {
            ends.sources.sort_unstable();
            ends.sources.dedup();
            ends.destinations.sort_unstable();
            ends.destinations.dedup();
            let mut passed = FxHashSet::default();
            let mut links = ends.sources;
            let mut next = 0;
            while let Some(&(link, at)) = links.get(next) {
                next += 1;
                if at == target {
                    steps.extend(ends.destinations.iter().map(|&down| (link, down)));
                    continue;
                }
                let ports = self.table.next_hops(at, target);
                if known.insert((link, self.table.set(at, target))) {
                    steps.extend(ports.iter().map(|port| (link, port.link)));
                }
                if passed.insert(at) {
                    links.extend(ports.iter().map(|port| (port.link, port.to)));
                }
            }
        }
        steps.sort_unstable();
        steps.dedup();
        steps
    }
}
