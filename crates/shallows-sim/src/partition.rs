//! Which thread simulates which part of a fabric.
//!
//! Racks go to parts in their order, a switch above them to the part that most of its cables lead
//! to. A packet that crosses from one part to another is at least the *lookahead* on its way, so a
//! part may run that far ahead of the others.

use shallows_core::units::{Bytes, Time};

use crate::network::PortSetup;
use crate::topology::{Fabric, Node};

/// A fabric in parts.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    hosts: Vec<u32>,
    switches: Vec<u32>,
    /// The links that leave the nodes of each part.
    links: Vec<Vec<u32>>,
    /// Part of each link and its position there.
    places: Vec<(u32, u32)>,
}

impl Partition {
    /// At most `most` parts of about the same number of hosts.
    pub(crate) fn new(fabric: &Fabric, most: u32) -> Self {
        let parts = most.clamp(1, fabric.switches().max(1));
        let mut switches: Vec<Option<u32>> = vec![None; fabric.switches() as usize];
        let mut weights = vec![0u64; parts as usize];
        for host in 0..fabric.hosts() {
            let rack = fabric.place(host).rack as usize;
            let part = u64::from(host) * u64::from(parts) / u64::from(fabric.hosts());
            let part = *switches[rack].get_or_insert(part as u32);
            weights[part as usize] += 1;
        }
        place_others(fabric, &mut switches, &mut weights);
        let switches: Vec<u32> = switches
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect();
        let racks = (0..fabric.hosts()).map(|host| fabric.place(host).rack as usize);
        let hosts: Vec<u32> = racks.map(|rack| switches[rack]).collect();
        let mut links = vec![Vec::new(); parts as usize];
        let mut places = Vec::with_capacity(fabric.links().len());
        for (number, link) in (0..).zip(fabric.links()) {
            let part = match link.from {
                Node::Host(host) => hosts[host as usize],
                Node::Switch(switch) => switches[switch as usize],
            };
            let of_part = &mut links[part as usize];
            places.push((part, of_part.len() as u32));
            of_part.push(number);
        }
        Self {
            hosts,
            switches,
            links,
            places,
        }
    }

    /// Number of parts.
    pub(crate) fn parts(&self) -> u32 {
        self.links.len() as u32
    }

    /// The part of a node.
    pub(crate) fn part_of(&self, node: Node) -> u32 {
        match node {
            Node::Host(host) => self.hosts[host as usize],
            Node::Switch(switch) => self.switches[switch as usize],
        }
    }

    /// The links that leave the nodes of a part.
    pub(crate) fn links(&self, part: u32) -> &[u32] {
        &self.links[part as usize]
    }

    /// The part of a link's port, and its number there.
    pub(crate) fn place(&self, link: u32) -> (u32, u32) {
        self.places[link as usize]
    }

    /// How long a packet from one part is at least on its way to another, for every pair: from the
    /// start of its transmission to its arrival. `smallest` is the size of the smallest packet.
    pub(crate) fn lookaheads(
        &self,
        fabric: &Fabric,
        ports: &PortSetup,
        smallest: u32,
    ) -> Vec<Vec<Time>> {
        let parts = self.links.len();
        let mut lookaheads = vec![vec![Time::MAX; parts]; parts];
        for (number, link) in (0..).zip(fabric.links()) {
            let (from, to) = (self.part_of(link.from), self.part_of(link.to));
            if from != to {
                let config = ports.config(fabric, number);
                let wire_size = Bytes::new(u64::from(config.framing.wire_size(smallest)));
                // A transmission may be a picosecond shorter, for what the one before was longer.
                let flight = link.rate.transmission_time(wire_size) + ports.delay(fabric, number)
                    - Time::from_ps(1);
                let lookahead = &mut lookaheads[from as usize][to as usize];
                *lookahead = flight.min(*lookahead);
            }
        }
        lookaheads
    }
}

/// Places the switches without hosts: nearest to the hosts first, each with most of its
/// neighbours, and where those are even with the part that has the least.
fn place_others(fabric: &Fabric, switches: &mut [Option<u32>], weights: &mut [u64]) {
    loop {
        let mut votes = vec![vec![0u32; weights.len()]; switches.len()];
        for link in fabric.links() {
            if let (Node::Switch(from), Node::Switch(to)) = (link.from, link.to)
                && let Some(part) = switches[to as usize]
            {
                votes[from as usize][part as usize] += 1;
            }
        }
        let mut placed = false;
        for (switch, votes) in switches.iter_mut().zip(&votes) {
            let most = votes.iter().copied().max().unwrap_or_default();
            if switch.is_none() && most > 0 {
                let part = (0..weights.len())
                    .filter(|&part| votes[part] == most)
                    .min_by_key(|&part| weights[part]);
                if let Some(part) = part {
                    *switch = Some(part as u32);
                    weights[part] += 1;
                    placed = true;
                }
            }
        }
        if !placed {
            return;
        }
    }
}
