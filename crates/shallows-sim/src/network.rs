//! Egress ports and the links behind them.

use std::collections::BTreeMap;

use shallows_core::port::{
    ConfigError, Departure, EgressPort, Forward, Pool, PortConfig, Transmit,
};
use shallows_core::units::{Bytes, Time};

use crate::engine::{Class, Key, Wheel};
use crate::packet::{Packet, Ticket};
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
    egress: EgressPort<Ticket>,
    /// From the last bit's departure until the receiver has the packet.
    delay: Time,
    pool: u32,
    link: u32,
    /// The part of the fabric that the link leads to, or [`WATCHED`].
    to: u32,
    /// The node of the event that the port is ready.
    ready: u32,
    /// Whether that event is set.
    awaited: bool,
}

/// In place of the part that a link leads to: something is to happen to its packets.
pub(crate) const WATCHED: u32 = u32::MAX;

/// A packet that has left a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) ticket: Ticket,
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
    Sent(Sent),
    Queued,
    /// Packets are to be taken from the port by [`Network::take_dropped`].
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
}

impl PortSetup {
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
        events: &mut Wheel<Packet>,
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
                ready: events.claim(),
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
    pub(crate) fn port(&self, port: u32) -> &EgressPort<Ticket> {
        &self.ports[port as usize].egress
    }

    /// The link of a port.
    pub(crate) fn link(&self, port: u32) -> u32 {
        self.ports[port as usize].link
    }

    /// Hands a packet to a port.
    #[inline(always)]
    pub(crate) fn forward(
        &mut self,
        events: &mut Wheel<Packet>,
        now: Time,
        number: u32,
        ticket: Ticket,
    ) -> Forwarded {
        let port = &mut self.ports[number as usize];
        match port
            .egress
            .forward(now, ticket, &mut self.pools[port.pool as usize])
        {
            Forward::Sent(departure) => {
                self.hops += 1;
                Forwarded::Sent(port.sent(&departure))
            }
            Forward::Queued => {
                if port.awaited {
                    return Forwarded::Queued;
                }
                self.await_ready(events, now, number)
            }
            Forward::Dropped(_) => Forwarded::Dropped,
        }
    }

    /// A port may send again; what it sends.
    #[inline]
    pub(crate) fn ready(
        &mut self,
        events: &mut Wheel<Packet>,
        now: Time,
        number: u32,
    ) -> Option<Sent> {
        let port = &mut self.ports[number as usize];
        let key = Key::new(Class::PortReady, number);
        match port
            .egress
            .transmit(now, &mut self.pools[port.pool as usize])
        {
            Transmit::Packet(departure) => {
                self.hops += 1;
                if port.egress.bytes() > Bytes::ZERO {
                    events.set(port.ready, departure.finish, key);
                } else {
                    port.awaited = false;
                }
                return Some(port.sent(&departure));
            }
            Transmit::Wait(at) => events.set(port.ready, at, key),
            Transmit::Idle => port.awaited = false,
        }
        None
    }

    /// Takes what a port has dropped.
    pub(crate) fn take_dropped(&mut self, port: u32) -> impl Iterator<Item = Ticket> + '_ {
        self.ports[port as usize]
            .egress
            .take_dropped()
            .map(|(ticket, _)| ticket)
    }

    /// Sees to it that a port with packets is asked again.
    #[inline]
    fn await_ready(&mut self, events: &mut Wheel<Packet>, now: Time, number: u32) -> Forwarded {
        let port = &mut self.ports[number as usize];
        port.awaited = true;
        let free = port.egress.busy_until();
        if free > now {
            events.set(port.ready, free, Key::new(Class::PortReady, number));
            return Forwarded::Queued;
        }
        // The link is free but a shaper is not: ask it when.
        match self.ready(events, now, number) {
            Some(sent) => Forwarded::Sent(sent),
            None => Forwarded::Queued,
        }
    }
}

impl Port {
    #[inline]
    fn sent(&self, departure: &Departure<Ticket>) -> Sent {
        Sent {
            ticket: departure.packet,
            link: self.link,
            to: self.to,
            queue: departure.queue,
            sojourn: departure.sojourn,
            arrival: departure.finish + self.delay,
        }
    }
}
