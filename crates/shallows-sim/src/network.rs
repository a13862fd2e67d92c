//! Egress ports and the links behind them.

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
    /// The part of the fabric that the link leads to.
    to: u32,
    /// The node of the event that the port is ready.
    ready: u32,
    /// Whether that event is set.
    awaited: bool,
}

/// A packet that has left a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) ticket: Ticket,
    pub(crate) link: u32,
    /// The part of the fabric that it goes to.
    pub(crate) to: u32,
    /// When it is there.
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
    pub(crate) fn config(&self, fabric: &Fabric, link: u32) -> &PortConfig {
        match fabric.link(link).from {
            Node::Switch(_) => &self.switches,
            Node::Host(_) => &self.hosts,
        }
    }
}

impl Network {
    /// The ports of one part of a fabric.
    pub(crate) fn new(
        part: u32,
        partition: &Partition,
        (fabric, setup, seed): (&Fabric, &PortSetup, u64),
        events: &mut Wheel<Packet>,
    ) -> Result<Self, ConfigError> {
        let switch_pool = || setup.pool.map_or_else(Pool::unlimited, Pool::new);
        let mut pools: Vec<_> = (0..fabric.switches()).map(|_| switch_pool()).collect();
        pools.extend((0..fabric.hosts()).map(|_| Pool::unlimited()));
        let port = |&number: &u32| {
            let link = fabric.link(number);
            let config = setup.config(fabric, number);
            let mut egress = EgressPort::new(link.rate, config, seed, u64::from(number))?;
            if setup.pool.is_none() {
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
                to: partition.part_of(link.to),
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
            arrival: departure.finish + self.delay,
        }
    }
}
