//! Egress ports and the links behind them.

use std::mem;

use shallows_core::port::pause::PauseSignal;
use shallows_core::port::{
    ConfigError, DropReason, EgressPort, Forward, Passage, Pool, PortConfig, Transmit,
};
use shallows_core::units::{Bytes, Time};
use shallows_model::{Id as _, IdVec, LinkId};

use crate::engine::{Arena, Collision, Event, Key, Occasion, SLOT, Wheel};
use crate::ids::{PortId, ShardId};
use crate::layers::{Arriving, Line};
use crate::packet::Packet;
use crate::partition::Partition;
use crate::paths::Hop;
use crate::ports::PortSetup;
use crate::ticket::Ticket;
use crate::topology::{Fabric, Node};

/// The ports of one part of a fabric, in the order of their links.
#[derive(Debug)]
pub(crate) struct Network {
    ports: IdVec<PortId, Port>,
    shares_memory: bool,
    /// Memory of each node, or of all if they do not share any.
    pools: Vec<Pool<Ticket>>,
    hops: u64,
}

/// In this order, so that most packets touch few cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
struct Port {
    /// From the last bit's departure until the receiver has the packet.
    delay: Time,
    link: LinkId,
    /// The shard that the link leads to, or [`WATCHED`].
    to: ShardId,
    pool: u32,
    /// The last slot in which an event concerned it, and the number of that event.
    last_slot: u32,
    last_event: u32,
    /// True if an event that the port is ready is set.
    awaited: bool,
    /// Time at which the port sends the next of its stored packets; the greatest time if it has
    /// none.
    due: Time,
    egress: EgressPort<Ticket>,
}

/// In place of the part that a link leads to: something is to happen to its packets.
pub(crate) const WATCHED: ShardId = ShardId(u32::MAX);

/// Departure of a packet from a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) link: LinkId,
    /// The shard that it goes to, or [`WATCHED`].
    pub(crate) to: ShardId,
    /// The queue that it was in, and for how long.
    pub(crate) queue: usize,
    pub(crate) sojourn: Time,
    /// Arrival at the end of the link.
    pub(crate) arrival: Time,
}

/// Outcome of a packet given to a port.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Forwarded {
    /// It is on the link.
    Sent(Sent),
    /// The port has its ticket.
    Queued,
    /// Packets are to be taken from the port by [`Network::take_dropped`].
    Dropped,
}

impl Network {
    /// The ports of one part of a fabric; `watched` says which links are.
    pub(crate) fn new(
        shard: ShardId,
        partition: &Partition,
        (fabric, setup, seed): (&Fabric, &PortSetup, u64),
        watched: impl Fn(LinkId) -> bool,
    ) -> Result<Self, ConfigError> {
        let shares_memory = setup.pool.is_some() || setup.configs().any(PortConfig::uses_pool);
        let pools = if shares_memory {
            let switch_pool = |_| setup.pool.map_or_else(Pool::unlimited, Pool::new);
            let host_pools = (0..fabric.hosts()).map(|_| Pool::unlimited());
            let switch_pools = (0..fabric.switches()).map(switch_pool);
            switch_pools.chain(host_pools).collect()
        } else {
            vec![Pool::unlimited()]
        };
        let port = |&number: &LinkId| {
            let link = fabric.link(number);
            let config = setup.config(fabric, number);
            let mut egress = EgressPort::new(link.rate, config, seed, u64::from(number.0))?;
            // A port that looks ahead does not keep the books of its pool; and what happens to a
            // link happens at its time, not when a packet comes to its port.
            if !shares_memory && !watched(number) {
                egress.look_ahead();
            }
            let delay = setup.delay(fabric, number);
            let to = partition.part_of(link.to);
            Ok(Port {
                egress,
                delay,
                due: Time::MAX,
                pool: match link.from {
                    _ if !shares_memory => 0,
                    Node::Switch(switch) => switch,
                    Node::Host(host) => fabric.switches() + host.0,
                },
                link: number,
                to: if watched(number) { WATCHED } else { to },
                awaited: false,
                last_slot: u32::MAX,
                last_event: 0,
            })
        };
        let links = partition.links(shard);
        Ok(Self {
            ports: links.iter().map(port).collect::<Result<_, ConfigError>>()?,
            shares_memory,
            pools,
            hops: 0,
        })
    }

    /// Packets that were put on a link.
    pub(crate) fn hops(&self) -> u64 {
        self.hops
    }

    /// The ports.
    pub(crate) fn ports(&self) -> impl Iterator<Item = PortId> + use<> {
        self.ports.ids()
    }

    /// Sends a frame of a link itself, ahead of all packets; when its last bit is on the wire.
    pub(crate) fn send_frame(&mut self, port: PortId, now: Time, size: u32) -> Time {
        self.ports[port].egress.send_frame(now, size)
    }

    /// Stops queues of a port, or lets them go on.
    pub(crate) fn signal(
        &mut self,
        events: &mut Wheel,
        now: Time,
        number: PortId,
        to: PauseSignal,
    ) {
        let port = &mut self.ports[number];
        match to {
            PauseSignal::Pause(queues) => port.egress.pause(queues),
            PauseSignal::Resume(queues) => {
                port.egress.resume(now, queues);
                if port.due == Time::MAX && port.egress.bytes() > Bytes::ZERO {
                    port.due = port.egress.busy_until().max(now);
                    if !port.awaited {
                        self.await_ready(events, number);
                    }
                }
            }
        }
    }

    /// Brings the length of a port that looks ahead up to `now`.
    pub(crate) fn settle(&mut self, port: PortId, now: Time) {
        self.ports[port].egress.settle(now);
    }

    /// A port.
    pub(crate) fn port(&self, port: PortId) -> &EgressPort<Ticket> {
        &self.ports[port].egress
    }

    /// The link of a port.
    pub(crate) fn link(&self, port: PortId) -> LinkId {
        self.ports[port].link
    }

    /// Hands a packet to a port that has [sent](Self::depart) all that it sends by `now`.
    #[inline(always)]
    pub(crate) fn forward(
        &mut self,
        (events, packets): (&mut Wheel, &mut Arena<Packet>),
        now: Time,
        number: PortId,
        packet: u32,
    ) -> Forwarded {
        let port = &mut self.ports[number];
        let ticket = &mut packets.get_mut(packet).ticket;
        if let Some(ahead) = port.egress.forward_ahead(now, ticket) {
            return match ahead {
                Ok(passage) => {
                    self.hops += 1;
                    Forwarded::Sent(port.sent(passage))
                }
                Err(_) => Forwarded::Dropped,
            };
        }
        let pool = &mut self.pools[port.pool as usize];
        match port.egress.forward(now, ticket, pool) {
            Forward::Sent(passage) => {
                self.hops += 1;
                Forwarded::Sent(port.sent(passage))
            }
            Forward::Queued => {
                if port.due == Time::MAX {
                    port.due = port.egress.busy_until().max(now);
                }
                let evicted = port.egress.has_evicted();
                if !port.awaited {
                    self.await_ready(events, number);
                }
                if evicted {
                    Forwarded::Dropped
                } else {
                    Forwarded::Queued
                }
            }
            Forward::Dropped(_) => Forwarded::Dropped,
        }
    }

    /// The next packet that a port sends by `now`, if there is one.
    #[inline]
    pub(crate) fn depart(
        &mut self,
        packets: &mut Arena<Packet>,
        now: Time,
        number: PortId,
    ) -> Option<(u32, Sent)> {
        let port = &mut self.ports[number];
        let pool = &mut self.pools[port.pool as usize];
        while port.due <= now {
            match port.egress.transmit(port.due, pool) {
                Transmit::Packet(departure) => {
                    self.hops += 1;
                    port.due = if port.egress.bytes() > Bytes::ZERO {
                        departure.finish
                    } else {
                        Time::MAX
                    };
                    let ticket = departure.packet;
                    packets.get_mut(ticket.packet()).ticket = ticket;
                    let sent = port.sent(Passage {
                        queue: departure.queue,
                        finish: departure.finish,
                        sojourn: departure.sojourn,
                    });
                    return Some((ticket.packet(), sent));
                }
                Transmit::Wait(at) => port.due = at,
                Transmit::Idle => port.due = Time::MAX,
            }
        }
        None
    }

    /// Hands a port packets in the order of their times, which count from `begin`, and puts what it
    /// starts to send before `end` on its line. Returns when it sends next.
    #[inline]
    pub(crate) fn run_port(
        &mut self,
        number: PortId,
        (begin, arrivals): (Time, &mut [Arriving]),
        end: Time,
        line: &mut Line,
    ) -> Time {
        // Before `end`, so that the sum does not overflow.
        let at = move |since: Time| Time::from_ps(begin.ps() + since.ps());
        let arrivals = arrivals.iter_mut();
        let arrivals = arrivals.map(move |packet| (at(packet.since()), &mut packet.ticket));
        let port = &mut self.ports[number];
        let pool = &mut self.pools[port.pool as usize];
        let (delay, before) = (port.delay, line.len());
        let departed =
            |finish: Time, ticket: &Ticket| line.push(finish.saturating_add(delay), *ticket);
        port.egress
            .run(&mut port.due, arrivals, end, pool, departed);
        self.hops += (line.len() - before) as u64;
        port.due
    }

    /// Returns whether a port has dropped packets that are to be [taken](Self::take_dropped).
    #[inline]
    pub(crate) fn has_dropped(&self, port: PortId) -> bool {
        self.ports[port].egress.has_dropped()
    }

    /// Time at which a port sends the next of its stored packets; the greatest time if it has none.
    #[inline]
    pub(crate) fn due(&self, port: PortId) -> Time {
        self.ports[port].due
    }

    /// A port has sent what it sends by now: sets the event for the rest, if there is any.
    #[inline]
    pub(crate) fn await_ready(&mut self, events: &mut Wheel, number: PortId) {
        let port = &mut self.ports[number];
        port.awaited = port.due != Time::MAX;
        if port.awaited {
            events.push(Event {
                time: port.due,
                key: Key::new(Occasion::PortReady(number)),
                packet: 0,
                hop: Hop::to(number),
            });
        }
    }

    /// Function that tells how an event of a slot, with its number there, collides with others at a
    /// port.
    #[inline]
    pub(crate) fn collisions(&mut self) -> impl FnMut(PortId, (u64, u32)) -> Collision {
        let ports = self.ports.as_mut_slice();
        move |port, (slot, at)| {
            let port = &mut ports[port.index()];
            let before = mem::replace(&mut port.last_event, at);
            if mem::replace(&mut port.last_slot, slot as u32) == slot as u32 {
                Collision::Again(before)
            } else {
                Collision::First
            }
        }
    }

    /// Returns whether nothing that happens at a port matters at another within a slot.
    pub(crate) fn is_loose(&self) -> bool {
        !self.shares_memory && self.ports.iter().all(|port| port.delay >= SLOT)
    }

    /// Takes what a port has dropped: the numbers of the packets, and why.
    pub(crate) fn take_dropped(
        &mut self,
        port: PortId,
    ) -> impl Iterator<Item = (u32, DropReason)> + '_ {
        let dropped = self.ports[port].egress.take_dropped();
        dropped.map(|(ticket, reason)| (ticket.packet(), reason))
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
            // At a few bits per second the clock ends before the packet is there.
            arrival: passage.finish.saturating_add(self.delay),
        }
    }
}
