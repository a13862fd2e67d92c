//! Suitability of a run for layers, and the order of its ports.

use std::fmt;

use shallows_core::port::PortConfig;
use shallows_core::units::{Bytes, Time};

use crate::paths::Paths;
use crate::routing::Selection;
use crate::setup::Setup;
use crate::topology::Node;
use crate::transport::Completion;
use crate::watch::Watch;

/// The longest way from a host to its switch or back, so that a time within a window fits into 32
/// bits.
const LONGEST: Time = Time::from_us(2_000);

/// Full packets that a host can send in a window below which an event queue is as fast.
const LEAST_PACKETS: u64 = 2;

/// Threads from which on parts of the fabric side by side may be faster: two of them bring 1.2 to
/// 1.4, layers 2 and more.
const MANY_THREADS: u32 = 8;

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
    /// Paths are found packet by packet.
    #[error("packets are sprayed")]
    Sprayed,
    /// Links fail or go down.
    #[error("links fail or change")]
    Faults,
    /// UDP senders look at their NICs.
    #[error("UDP senders follow what leaves their NIC")]
    Datagrams,
    /// Flows wait for flows at other hosts.
    #[error("flows wait for flows of other hosts")]
    Barriers,
    /// A flow may be stopped by its source and completed by its destination.
    #[error("flows are stopped at one host and complete at another")]
    Stops,
    /// Records of packets keep the order of time.
    #[error("packets are recorded on their way")]
    Watched,
    /// Messages between hosts that take no time.
    #[error("control messages take next to no time")]
    Immediate,
    /// Hosts are too near.
    #[error("a window of {window} has room for fewer than {LEAST_PACKETS} packets")]
    ShortWindow {
        /// The least time from host to host.
        window: Time,
    },
    /// Many threads.
    #[error("{0} threads run parts of the fabric side by side")]
    Threads(u32),
}

/// The order of a run's ports, and how far hosts and switches are apart.
#[derive(Debug)]
pub(crate) struct LayerPlan {
    pub(crate) hosts: u32,
    /// The links of all NICs by host, then those that switches send on, layer by layer.
    pub(super) order: Vec<u32>,
    pub(super) layers: u32,
    /// For each link, the host that it leads to, if it does.
    pub(super) host: Vec<Option<u32>>,
    /// No packet takes less time from a host to the first switch.
    pub(super) up: Time,
    /// No packet takes less time from the last switch to a host.
    pub(super) down: Time,
    /// No message out of band takes less time from host to host.
    pub(super) letters: Time,
}

impl LayerPlan {
    /// The plan of a run with these paths whose packets have at least `smallest` bytes, or why
    /// there is none.
    pub(crate) fn new(setup: &Setup, paths: &Paths, smallest: u32) -> Result<Self, NoLayers> {
        let (fabric, ports) = (&setup.fabric, &setup.ports);
        let (order, layers) = layers(fabric.links().len(), fabric.hosts(), paths)?;
        let mut plan = Self {
            hosts: fabric.hosts(),
            order,
            layers,
            host: fabric.links().iter().map(|link| host(link.to)).collect(),
            up: LONGEST,
            down: LONGEST,
            letters: Time::MAX,
        };
        for (number, link) in (0..).zip(fabric.links()) {
            let framing = ports.config(fabric, number).framing;
            let time = |size: u32| {
                let wire_size = Bytes::new(u64::from(framing.wire_size(size)));
                link.rate.transmission_time(wire_size)
            };
            // A transmission may be a picosecond shorter, for what the one before was longer.
            let on_wire = time(smallest).saturating_sub(Time::from_ps(1));
            let flight = on_wire + ports.delay(fabric, number);
            if host(link.from).is_some() {
                plan.up = plan.up.min(flight);
            }
            if host(link.to).is_some() {
                plan.down = plan.down.min(flight);
            }
        }
        Ok(plan)
    }

    /// The least time from host to host.
    pub(crate) fn window(&self) -> Time {
        self.up + self.down
    }

    /// The same plan where messages out of band take at least this time.
    pub(crate) fn with_letters(mut self, delay: Option<Time>) -> Self {
        self.letters = delay.unwrap_or(Time::MAX);
        self
    }

    /// The engine's description for the summary.
    pub(crate) fn engine(&self) -> Engine {
        Engine::Layers {
            window: self.window(),
            layers: self.layers,
        }
    }

    /// Refuses a run in which an event queue is as fast.
    pub(crate) fn pays(&self, setup: &Setup, threads: u32) -> Result<(), NoLayers> {
        if threads >= MANY_THREADS {
            return Err(NoLayers::Threads(threads));
        }
        let full = Bytes::new(u64::from(setup.transport.segment + setup.transport.header));
        // The shortest time of a full packet at a port of a host or switch.
        let shortest = |of_hosts: bool| {
            let links = (0..).zip(setup.fabric.links());
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
            setup.router.selection() == Selection::Packet,
            NoLayers::Sprayed,
        ),
        (
            !setup.faults.is_empty() || !setup.changes.is_empty(),
            NoLayers::Faults,
        ),
        (!setup.workload.datagrams.is_empty(), NoLayers::Datagrams),
        (!setup.workload.barriers.is_empty(), NoLayers::Barriers),
        (is_stopped, NoLayers::Stops),
        (setup.watch != Watch::default(), NoLayers::Watched),
        (setup.control.is_immediate(), NoLayers::Immediate),
    ];
    match reasons.into_iter().find(|(applies, _)| *applies) {
        Some((_, reason)) => Err(reason),
        None => Ok(()),
    }
}

fn host(node: Node) -> Option<u32> {
    match node {
        Node::Host(host) => Some(host),
        Node::Switch(_) => None,
    }
}

/// The links that packets take so that each comes after all that lead to it, NICs first; and the
/// number of layers.
fn layers(links: usize, hosts: u32, paths: &Paths) -> Result<(Vec<u32>, u32), NoLayers> {
    let mut steps: Vec<(u32, u32)> = paths.steps().collect();
    steps.sort_unstable();
    steps.dedup();
    let mut awaited = vec![0u32; links];
    for &(_, to) in &steps {
        awaited[to as usize] += 1;
    }
    let nics = (0..hosts).map(|host| 2 * host);
    let (mut order, mut count): (Vec<u32>, u32) = (nics.collect(), 0);
    let mut done = 0;
    while done < order.len() {
        let mut next = Vec::new();
        for from in &order[done..] {
            let begin = steps.partition_point(|step| step.0 < *from);
            for &(_, to) in steps[begin..].iter().take_while(|step| step.0 == *from) {
                awaited[to as usize] -= 1;
                if awaited[to as usize] == 0 {
                    next.push(to);
                }
            }
        }
        next.sort_unstable();
        done = order.len();
        order.extend(next);
        count += 1;
    }
    if awaited.iter().any(|&count| count > 0) {
        return Err(NoLayers::Cycle);
    }
    Ok((order, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hosts whose NICs are links 0 and 2 and whose cables end in links 1 and 3.
    fn paths(of: &[&[u32]]) -> Paths {
        let mut paths = Paths::default();
        for links in of {
            paths.intern(links, 0);
        }
        paths
    }

    #[test]
    fn a_link_comes_after_all_that_lead_to_it() {
        let paths = paths(&[&[0, 3], &[0, 8, 3], &[2, 8, 6, 1], &[2, 1]]);
        let (order, count) = layers(10, 2, &paths).unwrap();
        assert_eq!(order, [0, 2, 8, 3, 6, 1]);
        assert_eq!(count, 4);
    }

    #[test]
    fn a_cycle_has_no_layers() {
        let ring = paths(&[&[0, 4, 6, 3], &[2, 6, 4, 1]]);
        assert_eq!(layers(8, 2, &ring), Err(NoLayers::Cycle));
    }
}
