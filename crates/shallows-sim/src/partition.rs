//! Partition of a fabric among threads.
//!
//! Racks go to parts in their order, a switch above them to the part that most of its cables lead
//! to. A packet that crosses from one part to another is at least the *lookahead* on its way, so a
//! part may run that far ahead of the others. Where hosts have much longer cables than switches
//! have to each other, hosts are parts of their own: threads then wait for each other far less.

use shallows_core::units::{Bytes, Time};

use crate::network::lag;
use crate::ports::PortSetup;
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

/// Factor by which the cables of hosts must be longer.
const MUCH_LONGER: u64 = 8;

impl Partition {
    /// At most `most` parts with about the same work.
    pub(crate) fn new(fabric: &Fabric, most: u32) -> Self {
        let parts = most.clamp(1, fabric.switches().max(1));
        let (switches, hosts) = if parts > 1 && hosts_are_far(fabric) {
            // Switches have a little more to do.
            let switch_parts = parts.div_ceil(2);
            let hosts = (0..fabric.hosts())
                .map(|host| switch_parts + share(fabric, host, parts - switch_parts));
            (place_switches(fabric, switch_parts), hosts.collect())
        } else {
            let switches = place_switches(fabric, parts);
            let racks = (0..fabric.hosts()).map(|host| fabric.place(host).rack as usize);
            let hosts: Vec<u32> = racks.map(|rack| switches[rack]).collect();
            (switches, hosts)
        };
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

    /// Lookahead of every pair of shards: the shortest time from the start of a packet's
    /// transmission to its arrival. `smallest` is the size of the smallest packet.
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
                let delay = ports.delay(fabric, number);
                let told = delay - lag(delay, from == to);
                let flight = link.rate.transmission_time(wire_size) + told - Time::from_ps(1);
                let lookahead = &mut lookaheads[from as usize][to as usize];
                *lookahead = flight.min(*lookahead);
            }
        }
        lookaheads
    }
}

/// Returns whether the shortest cable of a host is much longer than the shortest between switches.
fn hosts_are_far(fabric: &Fabric) -> bool {
    let shortest = |of_hosts: bool| {
        let links = fabric.links().iter();
        links
            .filter(|link| of_hosts == matches!(link.from, Node::Host(_)))
            .filter(|link| !matches!(link.to, Node::Host(_)))
            .map(|link| link.propagation)
            .min()
    };
    match (shortest(true), shortest(false)) {
        (Some(hosts), Some(switches)) => hosts > switches * MUCH_LONGER,
        _ => false,
    }
}

/// The part of a host if `parts` parts have the same number of them.
fn share(fabric: &Fabric, host: u32, parts: u32) -> u32 {
    (u64::from(host) * u64::from(parts) / u64::from(fabric.hosts())) as u32
}

/// The part of each switch: racks in their order, the others where most of their cables lead.
fn place_switches(fabric: &Fabric, parts: u32) -> Vec<u32> {
    let mut switches: Vec<Option<u32>> = vec![None; fabric.switches() as usize];
    let mut weights = vec![0u64; parts as usize];
    for host in 0..fabric.hosts() {
        let rack = fabric.place(host).rack as usize;
        let part = *switches[rack].get_or_insert(share(fabric, host, parts));
        weights[part as usize] += 1;
    }
    place_others(fabric, &mut switches, &mut weights);
    let parts = switches.into_iter().map(Option::unwrap_or_default);
    parts.collect()
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
