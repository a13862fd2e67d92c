//! Distances between the hosts of a fabric.

use std::collections::VecDeque;

use shallows_core::units::{Rate, Time};

use super::{Fabric, Link, Nic, Node};
use crate::ids::LinkId;

impl Fabric {
    /// The rate of the slowest link of a host, in either direction; none without hosts.
    pub fn slowest_edge(&self) -> Option<Rate> {
        let edge = self.links.iter().take(self.nics.links());
        edge.map(|link| link.rate).min()
    }

    /// The number of the slowest link between switches, if there are any.
    pub fn slowest_core(&self) -> Option<LinkId> {
        let slowest = self.core_links().min_by_key(|(_, link)| link.rate);
        slowest.map(|(number, _)| number)
    }

    /// The most that a shortest path from host to host costs, where `cost` is that of a link.
    pub fn longest_path(&self, cost: impl Fn(&Link) -> Time) -> Time {
        let mut leaving = vec![Vec::new(); self.switches() as usize];
        for link in &self.links {
            if let Node::Switch(switch) = link.from {
                leaving[switch as usize].push(link);
            }
        }
        let mut longest = Time::ZERO;
        let mut seen = vec![false; self.switches() as usize];
        let nics = || self.host_ids().flat_map(|host| self.nics(host));
        for Nic { switch: first, .. } in nics() {
            // The uplinks of a rack are alike but for their own cost.
            if std::mem::replace(&mut seen[first as usize], true) {
                continue;
            }
            let uplinks = nics().filter(|nic| nic.switch == first);
            let costs = uplinks.map(|nic| cost(self.link(nic.up)));
            let start = costs.max().unwrap_or_default();
            longest = longest.max(start + farthest(&leaving, first, &cost));
        }
        longest
    }
}

/// The most that it costs from a switch to a host on a path with the fewest links.
fn farthest(leaving: &[Vec<&Link>], first: u32, cost: &impl Fn(&Link) -> Time) -> Time {
    let mut reached: Vec<Option<(u32, Time)>> = vec![None; leaving.len()];
    reached[first as usize] = Some((0, Time::ZERO));
    let mut queue = VecDeque::from([first]);
    let mut farthest = Time::ZERO;
    while let Some(switch) = queue.pop_front() {
        let (hops, so_far) = reached[switch as usize].expect("only what was reached is queued");
        for link in &leaving[switch as usize] {
            let total = so_far + cost(link);
            match link.to {
                Node::Host(_) => farthest = farthest.max(total),
                Node::Switch(next) => match &mut reached[next as usize] {
                    Some((known, most)) if *known == hops + 1 => *most = total.max(*most),
                    Some(_) => {}
                    place @ None => {
                        *place = Some((hops + 1, total));
                        queue.push_back(next);
                    }
                },
            }
        }
    }
    farthest
}

#[cfg(test)]
mod tests {
    use super::super::TopologyConfig;
    use super::*;

    #[test]
    fn across_a_leaf_spine_there_are_four_links() {
        let config = TopologyConfig::LeafSpine {
            leaves: 3,
            hosts_per_leaf: 2,
            spines: 2,
            nics: 1,
            host_rate: Rate::from_gbps(10),
            host_delay: Time::from_us(20),
            fabric_rate: Rate::from_gbps(40),
            fabric_delay: Time::from_us(3),
        };
        let fabric = config.build().unwrap();
        assert_eq!(fabric.longest_path(|_| Time::from_us(1)), Time::from_us(4));
        assert_eq!(
            fabric.longest_path(|link| link.propagation),
            Time::from_us(46)
        );
        assert_eq!(fabric.slowest_edge(), Some(Rate::from_gbps(10)));
        let core = fabric.slowest_core().unwrap();
        assert_eq!(fabric.link(core).rate, Rate::from_gbps(40));
    }

    #[test]
    fn a_star_has_no_core() {
        let config = TopologyConfig::Star {
            hosts: 2,
            rate: Rate::from_gbps(1),
            delay: Time::from_us(1),
        };
        let fabric = config.build().unwrap();
        assert_eq!(fabric.slowest_core(), None);
        assert_eq!(
            fabric.longest_path(|link| link.propagation),
            Time::from_us(2)
        );
    }
}
