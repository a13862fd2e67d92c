use crate::ids::LinkId;
use crate::topology::{Fabric, Node};

/// The ports of each switch towards other switches, in the order of their links.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    /// Those of switch `s` are `first[s]..first[s + 1]`.
    first: Vec<u32>,
    ports: Vec<Port>,
}

/// A port: its link and the switch at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Port {
    pub(super) link: LinkId,
    pub(super) to: u32,
}

impl Ports {
    pub(super) fn new(fabric: &Fabric) -> Self {
        let mut by_switch: Vec<(u32, Port)> = fabric
            .links()
            .numbered()
            .filter_map(|(number, link)| match (link.from, link.to) {
                (Node::Switch(from), Node::Switch(to)) => Some((from, Port { link: number, to })),
                _ => None,
            })
            .collect();
        by_switch.sort_by_key(|&(from, _)| from);
        let begins = |switch| by_switch.partition_point(|&(from, _)| from < switch) as u32;
        Self {
            first: (0..=fabric.switches()).map(begins).collect(),
            ports: by_switch.iter().map(|&(_, port)| port).collect(),
        }
    }

    pub(super) fn of(&self, switch: u32) -> &[Port] {
        let bound = |switch: u32| self.first[switch as usize] as usize;
        &self.ports[bound(switch)..bound(switch + 1)]
    }
}
