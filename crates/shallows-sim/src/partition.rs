//! Partition of a fabric among threads.
//!
//! Racks go to parts in their order, a switch above them to the part that most of its cables lead
//! to. A packet that crosses from one part to another is at least the *lookahead* on its way, so a
//! part may run that far ahead of the others. Where hosts have much longer cables than switches
//! have to each other, hosts are parts of their own: threads then wait for each other far less.
//!
//! In [layers](crate::layers) lookaheads do not matter, but how many packets cross, and in how many
//! layers. So ports go with the hosts below them, those that lead down too: in a leaf-spine and in
//! a fat-tree packets cross once, at the top.

use std::collections::BTreeMap;

use shallows_core::port::pause::PAUSE_FRAME;
use shallows_core::units::{Bytes, Time};
use shallows_model::{HostId, Id as _, IdVec, LinkId};

use crate::ids::{PortId, ShardId};
use crate::ports::PortSetup;
use crate::topology::{Fabric, HostLocation, Link, Node};

/// A fabric in parts.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    hosts: IdVec<HostId, ShardId>,
    switches: Vec<ShardId>,
    /// The links that leave the nodes of each part.
    links: IdVec<ShardId, IdVec<PortId, LinkId>>,
    /// Part of each link and its position there.
    places: IdVec<LinkId, (ShardId, PortId)>,
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
            let hosts = fabric
                .host_ids()
                .map(|host| switch_parts + share(fabric, host, parts - switch_parts).0)
                .map(ShardId);
            (place_switches(fabric, switch_parts), hosts.collect())
        } else {
            let switches = place_switches(fabric, parts);
            let racks = fabric
                .host_ids()
                .map(|host| fabric.place(host).rack as usize);
            let hosts: IdVec<HostId, ShardId> = racks.map(|rack| switches[rack]).collect();
            (switches, hosts)
        };
        let part_of = |_: LinkId, link: &Link| match link.from {
            Node::Host(host) => hosts[host],
            Node::Switch(switch) => switches[switch as usize],
        };
        let (links, places) = place_links(fabric, parts, part_of);
        Self {
            hosts,
            switches,
            links,
            places,
        }
    }

    /// At most `most` parts with about the same work, for windows and layers: both links of a host
    /// are in its part.
    pub(crate) fn in_layers(fabric: &Fabric, most: u32) -> Self {
        let parts = most.clamp(1, fabric.hosts().max(1));
        let hosts = divide_hosts(fabric, parts);
        let homes = homes(fabric, &hosts);
        let part_of = |number: LinkId, link: &Link| match (link.from, link.to) {
            (Node::Host(host), _) | (_, Node::Host(host)) => hosts[host],
            (Node::Switch(from), Node::Switch(to)) => {
                let home = homes[from as usize].or(homes[to as usize]);
                let all = fabric.links().len() as u64;
                home.unwrap_or(ShardId(
                    (u64::from(number.0) * u64::from(parts) / all) as u32,
                ))
            }
        };
        let (links, places) = place_links(fabric, parts, part_of);
        Self {
            switches: homes.into_iter().map(Option::unwrap_or_default).collect(),
            hosts,
            links,
            places,
        }
    }

    /// Number of parts.
    pub(crate) fn parts(&self) -> u32 {
        self.links.len() as u32
    }

    /// The shards.
    pub(crate) fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        self.links.ids()
    }

    /// The part of a node.
    pub(crate) fn part_of(&self, node: Node) -> ShardId {
        match node {
            Node::Host(host) => self.hosts[host],
            Node::Switch(switch) => self.switches[switch as usize],
        }
    }

    /// The links that leave the nodes of a part.
    pub(crate) fn links(&self, part: ShardId) -> &IdVec<PortId, LinkId> {
        &self.links[part]
    }

    /// The part of a link's port, and its number there.
    pub(crate) fn place(&self, link: LinkId) -> (ShardId, PortId) {
        self.places[link]
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
        for (number, link) in fabric.links().numbered() {
            let (from, to) = (self.part_of(link.from), self.part_of(link.to));
            if from != to {
                let config = ports.config(fabric, number);
                // A pause frame is small, and no host takes time to hand it on.
                let (smallest, told) = if ports.pause.is_some() {
                    (smallest.min(PAUSE_FRAME), link.propagation)
                } else {
                    (smallest, ports.delay(fabric, number))
                };
                let wire_size = Bytes::new(u64::from(config.framing.wire_size(smallest)));
                // A transmission may be a picosecond shorter, for what the one before was longer.
                let flight = link.rate.transmission_time(wire_size) + told - Time::from_ps(1);
                let lookahead = &mut lookaheads[from.index()][to.index()];
                *lookahead = flight.min(*lookahead);
            }
        }
        lookaheads
    }
}

/// The links of each part, and the part of each link with its position there.
type Links = (
    IdVec<ShardId, IdVec<PortId, LinkId>>,
    IdVec<LinkId, (ShardId, PortId)>,
);

fn place_links(fabric: &Fabric, parts: u32, part_of: impl Fn(LinkId, &Link) -> ShardId) -> Links {
    let mut links = IdVec::from(vec![IdVec::new(); parts as usize]);
    let mut places = Vec::with_capacity(fabric.links().len());
    for (number, link) in fabric.links().numbered() {
        let part = part_of(number, link);
        places.push((part, links[part].push(number)));
    }
    (links, places.into())
}

/// The part of each host, of about the same number each: by pods, if they are even enough, else by
/// racks, else one by one.
fn divide_hosts(fabric: &Fabric, parts: u32) -> IdVec<HostId, ShardId> {
    let groups: [fn(HostLocation) -> u32; 3] = [
        |place| place.upper_pod,
        |place| place.pod,
        |place| place.rack,
    ];
    for group in groups {
        let group = |host| group(fabric.place(host));
        let mut first = BTreeMap::new();
        let mut sizes = BTreeMap::new();
        fabric
            .host_ids()
            .for_each(|host| *sizes.entry(group(host)).or_insert(0) += 1);
        let mut before = 0;
        for (&group, size) in &sizes {
            first.insert(group, share(fabric, HostId(before), parts));
            before += size;
        }
        let hosts: IdVec<HostId, ShardId> =
            fabric.host_ids().map(|host| first[&group(host)]).collect();
        let mut weights = vec![0u64; parts as usize];
        for &part in &hosts {
            weights[part.index()] += 1;
        }
        let most = weights.into_iter().max().unwrap_or_default();
        if most * u64::from(parts) * 10 <= u64::from(fabric.hosts()) * 11 {
            return hosts;
        }
    }
    let one_by_one = fabric.host_ids().map(|host| share(fabric, host, parts));
    one_by_one.collect()
}

/// For each switch, the part that all hosts below it are in, if they are in one.
fn homes(fabric: &Fabric, hosts: &IdVec<HostId, ShardId>) -> Vec<Option<ShardId>> {
    /// The parts of those below a switch, as far as they are known.
    #[derive(Clone, Copy, PartialEq)]
    enum Below {
        Unknown,
        One(ShardId),
        Several,
    }
    let mut known = vec![Below::Unknown; fabric.switches() as usize];
    loop {
        let mut next = known.clone();
        for link in fabric.links() {
            let Node::Switch(to) = link.to else {
                continue;
            };
            let from = match link.from {
                Node::Host(host) => Below::One(hosts[host]),
                Node::Switch(from) => known[from as usize],
            };
            let is_new = known[to as usize] == Below::Unknown && from != Below::Unknown;
            let seen = &mut next[to as usize];
            if is_new && *seen == Below::Unknown {
                *seen = from;
            } else if is_new && *seen != from {
                *seen = Below::Several;
            }
        }
        if next == known {
            break;
        }
        known = next;
    }
    let home = |below| match below {
        Below::One(part) => Some(part),
        Below::Unknown | Below::Several => None,
    };
    known.into_iter().map(home).collect()
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
fn share(fabric: &Fabric, HostId(host): HostId, parts: u32) -> ShardId {
    ShardId((u64::from(host) * u64::from(parts) / u64::from(fabric.hosts())) as u32)
}

/// The part of each switch: racks in their order, the others where most of their cables lead.
fn place_switches(fabric: &Fabric, parts: u32) -> Vec<ShardId> {
    let mut switches: Vec<Option<ShardId>> = vec![None; fabric.switches() as usize];
    let mut weights = vec![0u64; parts as usize];
    for host in fabric.host_ids() {
        let rack = fabric.place(host).rack as usize;
        let part = *switches[rack].get_or_insert(share(fabric, host, parts));
        weights[part.index()] += 1;
    }
    place_others(fabric, &mut switches, &mut weights);
    let parts = switches.into_iter().map(Option::unwrap_or_default);
    parts.collect()
}

/// Places the switches without hosts: nearest to the hosts first, each with most of its
/// neighbours, and where those are even with the part that has the least.
fn place_others(fabric: &Fabric, switches: &mut [Option<ShardId>], weights: &mut [u64]) {
    loop {
        let mut votes = vec![vec![0u32; weights.len()]; switches.len()];
        for link in fabric.links() {
            if let (Node::Switch(from), Node::Switch(to)) = (link.from, link.to)
                && let Some(part) = switches[to as usize]
            {
                votes[from as usize][part.index()] += 1;
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
                    *switch = Some(ShardId(part as u32));
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
