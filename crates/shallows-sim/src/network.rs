//! Egress ports and the links behind them.

use shallows_core::port::{
    ConfigError, Departure, EgressPort, Forward, Pool, PortConfig, Transmit,
};
use shallows_core::units::{Bytes, Time};

use crate::engine::{Key, Wheel};
use crate::packet::Packet;
use crate::topology::{Fabric, Node};

/// All ports of a fabric, numbered like its links.
#[derive(Debug)]
pub(crate) struct Network {
    ports: Vec<Port>,
    /// Memory of each switch, then of each host.
    pools: Vec<Pool>,
    hops: u64,
}

#[derive(Debug)]
struct Port {
    egress: EgressPort<Packet>,
    /// From the last bit's departure until the receiver has the packet.
    delay: Time,
    pool: u32,
    /// Whether a [`Event::Ready`] is in the queue.
    awaited: bool,
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

impl Network {
    pub(crate) fn new(fabric: &Fabric, setup: &PortSetup, seed: u64) -> Result<Self, ConfigError> {
        let switch_pool = || setup.pool.map_or_else(Pool::unlimited, Pool::new);
        let mut pools: Vec<_> = (0..fabric.switches()).map(|_| switch_pool()).collect();
        pools.extend((0..fabric.hosts()).map(|_| Pool::unlimited()));
        let port = |(number, link): (usize, &crate::topology::Link)| {
            let (config, pool) = match link.from {
                Node::Switch(switch) => (&setup.switches, switch),
                Node::Host(host) => (&setup.hosts, fabric.switches() + host),
            };
            let processing = match link.to {
                Node::Switch(_) => Time::ZERO,
                Node::Host(_) => setup.host_delay,
            };
            Ok(Port {
                egress: EgressPort::new(link.rate, config, seed, number as u64)?,
                delay: link.propagation + processing,
                pool,
                awaited: false,
            })
        };
        Ok(Self {
            ports: fabric
                .links()
                .iter()
                .enumerate()
                .map(port)
                .collect::<Result<_, _>>()?,
            pools,
            hops: 0,
        })
    }

    /// Packets that were put on a link.
    pub(crate) fn hops(&self) -> u64 {
        self.hops
    }

    /// The port of a link.
    pub(crate) fn port(&self, link: u32) -> &EgressPort<Packet> {
        &self.ports[link as usize].egress
    }

    /// Hands a packet to the port of `link`. True if packets were dropped, which are then to be
    /// taken from the port.
    #[inline]
    pub(crate) fn forward(
        &mut self,
        events: &mut Wheel<Packet>,
        now: Time,
        link: u32,
        packet: Packet,
    ) -> bool {
        let port = &mut self.ports[link as usize];
        match port
            .egress
            .forward(now, packet, &mut self.pools[port.pool as usize])
        {
            Forward::Sent(departure) => {
                self.hops += 1;
                deliver(events, link, port.delay, departure);
                false
            }
            Forward::Queued => {
                if !port.awaited {
                    self.await_ready(events, now, link);
                }
                false
            }
            Forward::Dropped(_) => true,
        }
    }

    /// The port of `link` may send again.
    #[inline]
    pub(crate) fn ready(&mut self, events: &mut Wheel<Packet>, now: Time, link: u32) {
        let port = &mut self.ports[link as usize];
        match port
            .egress
            .transmit(now, &mut self.pools[port.pool as usize])
        {
            Transmit::Packet(departure) => {
                self.hops += 1;
                deliver(events, link, port.delay, departure);
                if port.egress.bytes() > Bytes::ZERO {
                    events.push(departure.finish, Key::port_ready(link));
                } else {
                    port.awaited = false;
                }
            }
            Transmit::Wait(at) => events.push(at, Key::port_ready(link)),
            Transmit::Idle => port.awaited = false,
        }
    }

    /// Takes what a port has dropped.
    pub(crate) fn take_dropped(&mut self, link: u32) -> impl Iterator<Item = Packet> + '_ {
        self.ports[link as usize]
            .egress
            .take_dropped()
            .map(|(packet, _)| packet)
    }

    /// Sees to it that a port with packets is asked again.
    fn await_ready(&mut self, events: &mut Wheel<Packet>, now: Time, link: u32) {
        let port = &mut self.ports[link as usize];
        port.awaited = true;
        let free = port.egress.busy_until();
        if free > now {
            events.push(free, Key::port_ready(link));
        } else {
            // The link is free but a shaper is not: ask it when.
            self.ready(events, now, link);
        }
    }
}

#[inline]
fn deliver(events: &mut Wheel<Packet>, link: u32, delay: Time, departure: Departure<Packet>) {
    let at = departure.finish + delay;
    events.push_with(at, Key::arrival(link), departure.packet);
}
