//! Suitability of a run for layers, and the order of its ports.

use std::collections::BTreeSet;
use std::{fmt, mem};

use shallows_core::port::PortConfig;
use shallows_core::units::{Bytes, Time};
use shallows_model::{HostId, Id as _, IdVec, LinkId};

use crate::ids::{PortId, ShardId};
use crate::partition::Partition;
use crate::paths::Paths;
use crate::routing::Selection;
use crate::setup::Setup;
use crate::topology::{Fabric, Node};
use crate::transport::Completion;
use crate::watch::Watch;

/// The longest way from a host to its switch or back, so that a time within a window fits into 32
/// bits.
const LONGEST: Time = Time::from_us(2_000);

/// Full packets that a host can send in a window below which an event queue is as fast.
const LEAST_PACKETS: u64 = 2;

/// Engine that runs a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Layers where they fit and pay, the event queue elsewhere.
    #[default]
    Automatic,
    /// The event queue.
    Events,
    /// Layers, even where they do not pay; a run that does not fit is refused.
    Layers,
}

/// The engine of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// One event after the other, for this reason.
    Events(NoLayers),
    /// Windows of this length, layer by layer.
    Layers {
        /// The least time from host to host.
        window: Time,
        /// Number of layers, that of the NICs included.
        layers: u32,
    },
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(reason) => write!(f, "event queue: {reason}"),
            Self::Layers { window, layers } => {
                write!(f, "{layers} layers, windows of {window}")
            }
        }
    }
}

/// The reason why a run has no layers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLayers {
    /// The setup demands the event queue.
    #[error("the setup demands it")]
    Demanded,
    /// The memory of ports.
    #[error("ports of a switch share memory")]
    SharedMemory,
    /// Pauses go against the direction of packets.
    #[error("links can be paused")]
    Pauses,
    /// A cycle of links.
    #[error("the paths of packets form a cycle")]
    Cycle,
    /// Links fail or go down.
    #[error("links fail or change")]
    Faults,
    /// A packet that arrives by one NIC makes its host send by another.
    #[error("hosts have several NICs")]
    SeveralNics,
    /// UDP senders look at their NICs.
    #[error("UDP senders follow what leaves their NIC")]
    Datagrams,
    /// Paced senders look at their NICs.
    #[error("paced senders follow what leaves their NIC")]
    Paced,
    /// Flows wait for flows at other hosts.
    #[error("flows wait for flows of other hosts")]
    Barriers,
    /// A flow may be stopped by its source and completed by its destination.
    #[error("flows are stopped at one host and complete at another")]
    Stops,
    /// Records of packets keep the order of time.
    #[error("packets are recorded on their way")]
    Watched,
    /// Switches copy packets.
    #[error("switches copy broadcasts")]
    Broadcasts,
    /// Messages between hosts that take no time.
    #[error("control messages take next to no time")]
    Immediate,
    /// Hosts are too near.
    #[error("a window of {window} has room for fewer than {LEAST_PACKETS} packets")]
    ShortWindow {
        /// The least time from host to host.
        window: Time,
    },
}

/// The order of a run's ports, and how far hosts and switches are apart.
#[derive(Debug)]
pub(crate) struct LayerPlan {
    /// The links of all NICs by host, then those that switches send on, layer by layer.
    layers: Vec<Vec<LinkId>>,
    times: Times,
}

/// Delays between hosts and switches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// No packet takes less time from a host to the first switch.
    pub(super) up: Time,
    /// No packet takes less time from the last switch to a host.
    pub(super) down: Time,
    /// No message out of band takes less time from host to host.
    pub(super) letters: Time,
}

/// The plan of one part: hosts and ports by their numbers there. Host 0 has ports 0 (its NIC) and 1
/// (which leads to it), host 1 ports 2 and 3, and so on.
#[derive(Debug)]
pub(crate) struct PartPlan {
    pub(super) hosts: u32,
    /// The link of each port.
    pub(super) links: IdVec<PortId, LinkId>,
    /// The NICs by host, then the ports of switches, layer by layer.
    pub(super) order: Vec<PortId>,
    /// Ends of a window's stages in that order. Parts meet after each but the last.
    pub(super) stages: Vec<usize>,
    pub(super) times: Times,
}

impl LayerPlan {
    /// The plan of a run with these paths whose packets have at least `smallest` bytes, or why
    /// there is none.
    pub(crate) fn new(
        setup: &Setup,
        paths: &Paths<LinkId>,
        smallest: u32,
    ) -> Result<Self, NoLayers> {
        let (fabric, ports) = (&setup.fabric, &setup.ports);
        let mut times = Times {
            up: LONGEST,
            down: LONGEST,
            letters: Time::MAX,
        };
        for (number, link) in fabric.links().numbered() {
            let framing = ports.config(fabric, number).framing;
            let time = |size: u32| {
                let wire_size = Bytes::new(u64::from(framing.wire_size(size)));
                link.rate.transmission_time(wire_size)
            };
            // A transmission may be a picosecond shorter, for what the one before was longer.
            let on_wire = time(smallest).saturating_sub(Time::from_ps(1));
            let flight = on_wire + ports.delay(fabric, number);
            if host(link.from).is_some() {
                times.up = times.up.min(flight);
            }
            if host(link.to).is_some() {
                times.down = times.down.min(flight);
            }
        }
        let mut steps: Vec<(LinkId, LinkId)> = paths.steps().collect();
        if setup.router.selection() == Selection::Packet {
            steps.extend(setup.sprayed_steps());
        }
        Ok(Self {
            layers: layers(fabric.links().len(), nics(fabric), steps)?,
            times,
        })
    }

    /// The least time from host to host.
    pub(crate) fn window(&self) -> Time {
        self.times.up + self.times.down
    }

    /// The same plan where messages out of band take at least this time.
    pub(crate) fn with_letters(mut self, delay: Option<Time>) -> Self {
        self.times.letters = delay.unwrap_or(Time::MAX);
        self
    }

    /// The engine's description for the summary.
    pub(crate) fn engine(&self) -> Engine {
        Engine::Layers {
            window: self.window(),
            layers: self.layers.len() as u32,
        }
    }

    /// Refuses a run in which an event queue is as fast.
    pub(crate) fn pays(&self, setup: &Setup) -> Result<(), NoLayers> {
        let full = Bytes::new(u64::from(setup.transport.segment + setup.transport.header));
        // The shortest time of a full packet at a port of a host or switch.
        let shortest = |of_hosts: bool| {
            let links = setup.fabric.links().numbered();
            let links = links.filter(|(_, link)| host(link.from).is_some() == of_hosts);
            let times = links.map(|(number, link)| {
                let shaper = setup.ports.config(&setup.fabric, number).shaper.as_ref();
                let rate = shaper.map_or(link.rate, |shaper| shaper.rate.min(link.rate));
                rate.transmission_time(full)
            });
            times.min().unwrap_or(Time::ZERO)
        };
        let (window, packet) = (self.window(), shortest(true).max(shortest(false)));
        if window < packet * LEAST_PACKETS {
            return Err(NoLayers::ShortWindow { window });
        }
        Ok(())
    }

    /// The plan of each part.
    pub(crate) fn divide(&self, partition: &Partition, paths: &Paths<LinkId>) -> Vec<PartPlan> {
        let meetings = self.meetings(partition, paths);
        let part = |part: ShardId| {
            let links = partition.links(part).clone();
            let (mut order, mut stages) = (Vec::new(), Vec::new());
            for (number, layer) in self.layers.iter().enumerate() {
                if meetings.contains(&number) {
                    stages.push(order.len());
                }
                let places = layer.iter().map(|&link| partition.place(link));
                order.extend(places.filter(|place| place.0 == part).map(|place| place.1));
            }
            stages.push(order.len());
            let nics = self.layers[0].iter();
            PartPlan {
                hosts: nics.filter(|&&nic| partition.place(nic).0 == part).count() as u32,
                links,
                order,
                stages,
                times: self.times,
            }
        };
        partition.shards().map(part).collect()
    }

    /// The layers before which parts meet, as few as possible: a packet that crosses from one part
    /// to another does so between its last layer and its next.
    fn meetings(&self, partition: &Partition, paths: &Paths<LinkId>) -> Vec<usize> {
        if partition.parts() == 1 {
            return Vec::new();
        }
        let mut layer_of = vec![
            0;
            self.layers
                .iter()
                .flatten()
                .max()
                .map_or(0, |max| max.index() + 1)
        ];
        for (number, layer) in self.layers.iter().enumerate() {
            for &link in layer {
                layer_of[link.index()] = number;
            }
        }
        let part = |link: LinkId| partition.place(link).0;
        let steps = paths.steps().filter(|&(from, to)| part(from) != part(to));
        let steps = steps.map(|(from, to)| (layer_of[to.index()], layer_of[from.index()]));
        let steps: BTreeSet<(usize, usize)> = steps.collect();
        let mut meetings: Vec<usize> = Vec::new();
        for (to, from) in steps {
            if meetings.last().is_none_or(|&last| last <= from) {
                meetings.push(to);
            }
        }
        if meetings.is_empty() {
            // Messages out of band cross as well.
            meetings.push(1);
        }
        meetings
    }
}

/// Refuses what windows and layers cannot run as the event queue does.
pub(crate) fn refuse(setup: &Setup) -> Result<(), NoLayers> {
    let ports = &setup.ports;
    let mut configs = ports
        .special
        .values()
        .chain([&ports.switches, &ports.hosts]);
    let is_stopped = !setup.workload.stops.is_empty() && setup.completion == Completion::Receiver;
    let reasons = [
        (
            ports.pool.is_some() || configs.any(PortConfig::uses_pool),
            NoLayers::SharedMemory,
        ),
        (ports.pause.is_some(), NoLayers::Pauses),
        (
            !setup.faults.is_empty() || !setup.changes.is_empty(),
            NoLayers::Faults,
        ),
        (setup.fabric.has_several_nics(), NoLayers::SeveralNics),
        (!setup.workload.datagrams.is_empty(), NoLayers::Datagrams),
        (setup.has_pace(), NoLayers::Paced),
        (!setup.workload.barriers.is_empty(), NoLayers::Barriers),
        (is_stopped, NoLayers::Stops),
        (setup.watch != Watch::default(), NoLayers::Watched),
        (setup.has_broadcasts, NoLayers::Broadcasts),
        (setup.control.is_immediate(), NoLayers::Immediate),
    ];
    match reasons.into_iter().find(|(applies, _)| *applies) {
        Some((_, reason)) => Err(reason),
        None => Ok(()),
    }
}

fn host(node: Node) -> Option<HostId> {
    match node {
        Node::Host(host) => Some(host),
        Node::Switch(_) => None,
    }
}

/// The links that hosts send on.
fn nics(fabric: &Fabric) -> Vec<LinkId> {
    fabric.uplinks().iter().copied().collect()
}

/// The links that packets take, each in a layer after all that lead to it, NICs first. `steps` are
/// pairs of links that they take one after the other.
fn layers(
    links: usize,
    nics: Vec<LinkId>,
    mut steps: Vec<(LinkId, LinkId)>,
) -> Result<Vec<Vec<LinkId>>, NoLayers> {
    steps.sort_unstable();
    steps.dedup();
    let mut awaited = vec![0u32; links];
    for &(_, to) in &steps {
        awaited[to.index()] += 1;
    }
    let mut layers: Vec<Vec<LinkId>> = Vec::new();
    let mut layer = nics;
    while !layer.is_empty() {
        let mut next = Vec::new();
        for from in &layer {
            let begin = steps.partition_point(|step| step.0 < *from);
            for &(_, to) in steps[begin..].iter().take_while(|step| step.0 == *from) {
                awaited[to.index()] -= 1;
                if awaited[to.index()] == 0 {
                    next.push(to);
                }
            }
        }
        next.sort_unstable();
        layers.push(mem::replace(&mut layer, next));
    }
    if awaited.iter().any(|&count| count > 0) {
        return Err(NoLayers::Cycle);
    }
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use shallows_core::units::Rate;

    use super::*;
    use crate::ids::LocalHostId;
    use crate::routing::{Router, RoutingConfig};
    use crate::topology::TopologyConfig;

    /// Two hosts whose NICs are links 0 and 2 and whose cables end in links 1 and 3.
    fn steps(of: &[&[u32]]) -> Vec<(LinkId, LinkId)> {
        let mut paths = Paths::default();
        for links in of {
            let links: Vec<LinkId> = links.iter().copied().map(LinkId).collect();
            paths.intern(links.iter().copied(), LinkId(0));
        }
        paths.steps().collect()
    }

    #[test]
    fn a_link_comes_after_all_that_lead_to_it() {
        let steps = steps(&[&[0, 3], &[0, 8, 3], &[2, 8, 6, 1], &[2, 1]]);
        let layers = layers(10, vec![LinkId(0), LinkId(2)], steps).unwrap();
        let layers: Vec<Vec<u32>> = layers
            .iter()
            .map(|layer| layer.iter().map(|link| link.0).collect())
            .collect();
        assert_eq!(layers, [vec![0, 2], vec![8], vec![3, 6], vec![1]]);
    }

    #[test]
    fn a_cycle_has_no_layers() {
        let ring = steps(&[&[0, 4, 6, 3], &[2, 6, 4, 1]]);
        assert_eq!(
            layers(8, vec![LinkId(0), LinkId(2)], ring),
            Err(NoLayers::Cycle)
        );
    }

    /// The plan of a fabric with flows between all hosts, in parts, and its paths.
    fn divided(topology: &TopologyConfig, parts: u32) -> (LayerPlan, Partition, Paths<LinkId>) {
        let fabric = topology.build().unwrap();
        let router = Router::new(&fabric, &RoutingConfig::DestinationModulo, 1).unwrap();
        let (mut paths, mut links) = (Paths::default(), Vec::new());
        for (src, dst) in fabric
            .host_ids()
            .flat_map(|src| fabric.host_ids().map(move |dst| (src, dst)))
        {
            if src != dst {
                router.path(src, dst, 0, &mut links).unwrap();
                paths.intern(links.iter().copied(), fabric.uplink(dst));
            }
        }
        let plan = LayerPlan {
            layers: layers(fabric.links().len(), nics(&fabric), paths.steps().collect()).unwrap(),
            times: Times {
                up: Time::ZERO,
                down: Time::ZERO,
                letters: Time::MAX,
            },
        };
        (plan, Partition::in_layers(&fabric, parts), paths)
    }

    fn leaf_spine(leaves: u32) -> TopologyConfig {
        let (rate, delay) = (Rate::from_gbps(10), Time::from_us(1));
        TopologyConfig::LeafSpine {
            leaves,
            nics: 1,
            hosts_per_leaf: 3,
            spines: 2,
            host_rate: rate,
            host_delay: delay,
            fabric_rate: rate,
            fabric_delay: delay,
        }
    }

    /// Ports of spines are with the racks below them, so packets cross between the second layer and
    /// the third only.
    #[test]
    fn parts_of_a_leaf_spine_meet_once() {
        for parts in [2, 4] {
            let (plan, partition, paths) = divided(&leaf_spine(4), parts);
            assert_eq!(plan.meetings(&partition, &paths), [2]);
            let of_parts = plan.divide(&partition, &paths);
            assert_eq!(of_parts.len(), parts as usize);
            for part in of_parts {
                let hosts = 12 / parts;
                assert_eq!(part.hosts, hosts);
                let nics: Vec<PortId> = (0..hosts).map(|host| LocalHostId(host).nic()).collect();
                assert_eq!(part.order[..hosts as usize], nics);
                assert_eq!(part.stages.last(), Some(&part.order.len()));
            }
        }
    }

    /// Three racks in two parts: the one in the middle would make a part too large, so hosts are
    /// divided one by one, and those of a rack meet before its ports.
    #[test]
    fn parts_that_divide_a_rack_meet_more_often() {
        let (plan, partition, paths) = divided(&leaf_spine(3), 2);
        let fabric = leaf_spine(3).build().unwrap();
        let hosts: Vec<u32> = fabric
            .uplinks()
            .iter()
            .map(|&nic| partition.place(nic).0.0)
            .collect();
        assert_eq!(hosts, [0, 0, 0, 0, 0, 1, 1, 1, 1]);
        let meetings = plan.meetings(&partition, &paths);
        assert!(meetings.len() > 1, "{meetings:?}");
        let stages: Vec<usize> = plan
            .divide(&partition, &paths)
            .iter()
            .map(|part| part.stages.len())
            .collect();
        assert_eq!(stages, [meetings.len() + 1; 2]);
    }

    #[test]
    fn one_part_meets_nobody() {
        let (plan, partition, paths) = divided(&leaf_spine(2), 1);
        assert!(plan.meetings(&partition, &paths).is_empty());
        assert_eq!(plan.divide(&partition, &paths)[0].stages.len(), 1);
    }
}
