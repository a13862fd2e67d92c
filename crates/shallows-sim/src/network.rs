//! Egress ports and the links behind them.

use std::collections::BTreeMap;

use shallows_core::port::{ConfigError, EgressPort, Forward, Passage, Pool, PortConfig, Transmit};
use shallows_core::units::{Bytes, Time};

use crate::engine::{Class, Key, Wheel};
use crate::packet::Packet;
use crate::partition::Partition;
use crate::topology::{Fabric, Node};

/// The ports of one part of a fabric, in the order of their links.
#[derive(Debug)]
pub(crate) struct Network {
    ports: Vec<Port>,
    /// Memory of each node.
    pools: Vec<Pool>,
    hops: u64,
}

#[derive(Debug)]
struct Port {
    egress: EgressPort<Packet>,
    /// From the last bit's departure until the receiver has the packet.
    delay: Time,
    pool: u32,
    link: u32,
    /// The part of the fabric that the link leads to, or [`WATCHED`].
    to: u32,
    /// Whether the event that the port is ready is set.
    awaited: bool,
}

/// In place of the part that a link leads to: something is to happen to its packets.
pub(crate) const WATCHED: u32 = u32::MAX;

/// How a packet has left a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) link: u32,
    /// The part of the fabric that it goes to, or [`WATCHED`].
    pub(crate) to: u32,
    /// The queue that it was in, and for how long.
    pub(crate) queue: usize,
    pub(crate) sojourn: Time,
    /// When it is at the end of the link.
    pub(crate) arrival: Time,
}

/// What became of a packet that a port was given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Forwarded {
    /// It stays in its node.
    Sent(Sent),
    /// The port has it, and its node is free.
    Queued,
    /// Its node is free, and packets are to be taken from the port by [`Network::take_dropped`].
    Dropped,
}

/// How the ports of a fabric are made.
#[derive(Clone, Debug)]
pub struct PortSetup {
    /// Ports of switches.
    pub switches: PortConfig,
    /// Ports of hosts.
    pub hosts: PortConfig,
    /// Ports of some links, in place of those.
    pub special: BTreeMap<u32, PortConfig>,
    /// Memory that the ports of one switch share, if their buffers do.
    pub pool: Option<Bytes>,
    /// Time that a host takes to hand an arrived packet to its transport.
    pub host_delay: Time,
}

impl PortSetup {
    /// From the last bit's departure on a link until its packet is where it goes on.
    pub(crate) fn delay(&self, fabric: &Fabric, link: u32) -> Time {
        let link = fabric.link(link);
        match link.to {
            Node::Switch(_) => link.propagation,
            Node::Host(_) => link.propagation + self.host_delay,
        }
    }

    /// What the port of a link is made of.
    pub fn config(&self, fabric: &Fabric, link: u32) -> &PortConfig {
        if let Some(special) = self.special.get(&link) {
            return special;
        }
        match fabric.link(link).from {
            Node::Switch(_) => &self.switches,
            Node::Host(_) => &self.hosts,
        }
    }

    /// All that ports are made of.
    fn configs(&self) -> impl Iterator<Item = &PortConfig> {
        [&self.switches, &self.hosts]
            .into_iter()
            .chain(self.special.values())
    }
}

impl Network {
    /// The ports of one part of a fabric; `watched` says which links are.
    pub(crate) fn new(
        part: u32,
        partition: &Partition,
        (fabric, setup, seed): (&Fabric, &PortSetup, u64),
        watched: impl Fn(u32) -> bool,
    ) -> Result<Self, ConfigError> {
        let switch_pool = || setup.pool.map_or_else(Pool::unlimited, Pool::new);
        let mut pools: Vec<_> = (0..fabric.switches()).map(|_| switch_pool()).collect();
        pools.extend((0..fabric.hosts()).map(|_| Pool::unlimited()));
        // A port that looks ahead does not keep the books of its pool.
        let shares_memory = setup.pool.is_some() || setup.configs().any(PortConfig::uses_pool);
        let port = |&number: &u32| {
            let link = fabric.link(number);
            let config = setup.config(fabric, number);
            let mut egress = EgressPort::new(link.rate, config, seed, u64::from(number))?;
            // What happens to a link happens at its time, not when a packet comes to its port.
            if !shares_memory && !watched(number) {
                egress.look_ahead();
            }
            Ok(Port {
                egress,
                delay: setup.delay(fabric, number),
                pool: match link.from {
                    Node::Switch(switch) => switch,
                    Node::Host(host) => fabric.switches() + host,
                },
                link: number,
                to: if watched(number) {
                    WATCHED
                } else {
                    partition.part_of(link.to)
                },
                awaited: false,
            })
        };
        let links = partition.links(part);
        Ok(Self {
            ports: links.iter().map(port).collect::<Result<_, _>>()?,
            pools,
            hops: 0,
        })
    }

    /// Packets that were put on a link.
    pub(crate) fn hops(&self) -> u64 {
        self.hops
    }

    /// Brings the lengths of all ports up to `now`.
    pub(crate) fn settle(&mut self, now: Time) {
        for port in &mut self.ports {
            port.egress.settle(now);
        }
    }

    /// A port.
    pub(crate) fn port(&self, port: u32) -> &EgressPort<Packet> {
        &self.ports[port as usize].egress
    }

    /// The link of a port.
    pub(crate) fn link(&self, port: u32) -> u32 {
        self.ports[port as usize].link
    }

    /// Hands the packet of a node to a port.
    #[inline(always)]
    pub(crate) fn forward(
        &mut self,
        events: &mut Wheel<Packet>,
        now: Time,
        number: u32,
        node: u32,
    ) -> Forwarded {
        let port = &mut self.ports[number as usize];
        let pool = &mut self.pools[port.pool as usize];
        match port.egress.forward(now, events.item(node), pool) {
            Forward::Sent(passage) => {
                self.hops += 1;
                Forwarded::Sent(port.sent(passage))
            }
            Forward::Queued => {
                events.release(node);
                if !port.awaited {
                    self.await_ready(events, now, number);
                }
                Forwarded::Queued
            }
            Forward::Dropped(_) => {
                events.release(node);
                Forwarded::Dropped
            }
        }
    }

    /// A port may send again: what it sends, in the node that is given; or nothing, and the node is
    /// free.
    #[inline]
    pub(crate) fn ready(
        &mut self,
        events: &mut Wheel<Packet>,
        now: Time,
        number: u32,
        node: u32,
    ) -> Option<Sent> {
        let port = &mut self.ports[number as usize];
        let key = Key::new(Class::PortReady, number);
        match port
            .egress
            .transmit(now, &mut self.pools[port.pool as usize])
        {
            Transmit::Packet(departure) => {
                self.hops += 1;
                *events.item(node) = departure.packet;
                if port.egress.bytes() > Bytes::ZERO {
                    let next = events.claim();
                    events.set(next, departure.finish, key);
                } else {
                    port.awaited = false;
                }
                Some(port.sent(Passage {
                    queue: departure.queue,
                    finish: departure.finish,
                    sojourn: departure.sojourn,
                }))
            }
            Transmit::Wait(at) => {
                events.set(node, at, key);
                None
            }
            Transmit::Idle => {
                events.release(node);
                port.awaited = false;
                None
            }
        }
    }

    /// Takes what a port has dropped.
    pub(crate) fn take_dropped(&mut self, port: u32) -> impl Iterator<Item = Packet> + '_ {
        self.ports[port as usize]
            .egress
            .take_dropped()
            .map(|(packet, _)| packet)
    }

    /// Sees to it that a port with packets is asked again.
    #[inline]
    fn await_ready(&mut self, events: &mut Wheel<Packet>, now: Time, number: u32) {
        let port = &mut self.ports[number as usize];
        port.awaited = true;
        let at = match port.egress.busy_until() {
            free if free > now => free,
            // The link is free but a shaper is not: ask it when.
            _ => match port
                .egress
                .transmit(now, &mut self.pools[port.pool as usize])
            {
                Transmit::Wait(at) => at,
                // The port has just said that it sends nothing now.
                Transmit::Packet(_) | Transmit::Idle => {
                    port.awaited = false;
                    return;
                }
            },
        };
        let node = events.claim();
        events.set(node, at, Key::new(Class::PortReady, number));
    }
}

impl Port {
    #[inline]
    fn sent(&self, passage: Passage) -> Sent {
        Sent {
            link: self.link,
            to: self.to,
            queue: passage.queue,
            sojourn: passage.sojourn,
            arrival: passage.finish + self.delay,
        }
    }
}
