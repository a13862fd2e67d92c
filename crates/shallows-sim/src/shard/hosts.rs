//! Hosts that are more than their transports: the driver of their [stacks](HostStack).

use rustc_hash::FxHashMap;
use shallows_core::control::LinkState;
use shallows_core::host::gate::Refusal;
use shallows_core::host::qjump::QjumpGate;
use shallows_core::host::stack::{HostStack, Member, Step, Turn};
use shallows_core::units::{Rate, Time};
use shallows_model::{HostId, LinkId};

use super::Shard;
use crate::engine::{Key, Occasion};
use crate::ids::{ConnectionId, PortId, ShardId};
use crate::packet::Packet;
use crate::ticket::Ticket;

/// The hosts of a part with gates, agents or applications, by the ports of their NICs.
pub(crate) type Hosts = FxHashMap<PortId, HostStack<Ticket>>;

/// The hosts of a part with several NICs: for each NIC but the first, the first of its host.
pub(crate) type Homes = FxHashMap<PortId, PortId>;

/// Location of a host: its shard, and the port of its first NIC there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPlace {
    pub(crate) part: ShardId,
    pub(crate) port: PortId,
    /// Rate of each of its NICs.
    pub(crate) rate: Rate,
}

impl Shard {
    /// The first NIC of the host that has a NIC.
    #[inline]
    pub(super) fn home(&self, nic: PortId) -> PortId {
        if self.homes.is_empty() {
            return nic;
        }
        self.homes.get(&nic).copied().unwrap_or(nic)
    }

    /// QJUMP's gate before a NIC.
    pub(crate) fn qjump(&self, port: PortId) -> Option<&QjumpGate<Ticket>> {
        self.hosts.get(&port)?.gate()
    }

    /// The longest that a destination waited at the gates before a NIC.
    pub(crate) fn longest_wait(&self, port: PortId) -> Option<Time> {
        self.hosts.get(&port)?.longest_wait(self.now)
    }

    /// The parts of applications at the hosts here.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.hosts.values().flat_map(HostStack::members)
    }

    /// Wakes the hosts that do something of their own accord.
    pub(super) fn start_hosts(&mut self) {
        self.at_all_hosts(HostStack::start);
    }

    /// Tells the agents here of a link that has gone down or come back at `now`.
    pub(crate) fn tell_agents(&mut self, now: Time, link: LinkId, state: LinkState) {
        self.at_all_hosts(|host| host.link_changed(now, link.0, state));
    }

    /// The timer of a host has expired.
    pub(super) fn host_timer(&mut self, port: PortId) {
        self.at_host(port, HostStack::handle_timeout);
    }

    /// Hands a packet of a host's transport to the gates of the host, if it has any.
    #[inline(never)]
    pub(super) fn launch_gated(&mut self, packet: Packet) {
        let nic = self.nic(packet.ticket.route());
        let port = self.home(nic);
        let to = self.destination(&packet);
        let number = self.add(packet);
        if self.hosts.contains_key(&port) {
            let ticket = self.packets.get(number).ticket;
            self.at_host(port, |host, now| host.offer(now, ticket, Some(to.0)));
        } else {
            self.enter_nic(nic, number);
        }
    }

    /// Tells the gates of a host with control agents what it has received.
    #[inline(never)]
    pub(super) fn note_received(&mut self, packet: &Packet) {
        let is_on_its_way = self.branches(packet).is_some();
        if self.world.control.hosts.is_empty() || packet.is_control() || is_on_its_way {
            return;
        }
        let spec = self.world.ends(packet.connection());
        let (from, to) = if packet.is_ack() {
            (spec.dst, spec.src)
        } else {
            (spec.src, spec.dst)
        };
        let port = self.world.places[to].port;
        if let Some(host) = self.hosts.get_mut(&port) {
            host.received(self.now, packet.size(), from.0);
        }
    }

    /// Returns whether the gates have room for a packet of a connection; if not, the connection is
    /// resumed when they have released something.
    pub(super) fn has_room(
        &mut self,
        connection: ConnectionId,
        route: u32,
        packet: &Ticket,
    ) -> bool {
        let port = self.home(self.nic(route));
        let host = self.hosts.get_mut(&port);
        host.is_none_or(|host| host.has_room(connection.0, packet))
    }

    /// Calls all hosts, in the order of their ports.
    fn at_all_hosts(&mut self, call: impl Fn(&mut HostStack<Ticket>) -> Turn<Ticket>) {
        let mut ports: Vec<PortId> = self.hosts.keys().copied().collect();
        ports.sort_unstable();
        for port in ports {
            self.at_host(port, |host, _| call(host));
        }
    }

    /// Calls a host, and does what follows from it.
    pub(super) fn at_host(
        &mut self,
        port: PortId,
        call: impl FnOnce(&mut HostStack<Ticket>, Time) -> Turn<Ticket>,
    ) {
        let Some(host) = self.hosts.get_mut(&port) else {
            return;
        };
        let mut turn = call(host, self.now);
        while let Some(host) = self.hosts.get_mut(&port)
            && let Some(step) = host.step(self.now, &mut turn)
        {
            match step {
                Step::Send(ticket) => {
                    self.packets.get_mut(ticket.packet()).ticket = ticket;
                    self.enter_nic(self.nic(ticket.route()), ticket.packet());
                }
                Step::Drop { packet, reason } => self.refuse(port, packet, reason),
                Step::Message { delivery, message } => self.carry_message(delivery, message),
                Step::Resume(connection) => self.send(ConnectionId(connection)),
                Step::Open { seat, connection } => {
                    let lane = self.world.applications.lane_from(seat, connection);
                    self.open(self.world.lane(lane));
                }
                Step::Write {
                    seat,
                    connection,
                    message,
                } => {
                    let lane = self.world.applications.lane_from(seat, connection);
                    self.send_message(self.world.lane(lane), message);
                }
                Step::Broadcast {
                    seat,
                    first,
                    count,
                    message,
                } => self.broadcast(port, seat, first..first + count, message),
                Step::Wake(at) => self.schedule(at, Key::new(Occasion::HostTimer(port))),
            }
        }
    }

    /// A gate has dropped a packet.
    fn refuse(&mut self, port: PortId, ticket: Ticket, reason: Refusal) {
        let packet = self.take(ticket.packet());
        if let Some(flow) = packet.account() {
            self.flows.count_refusal(flow, reason);
        }
        self.leave_by_drop(port, &packet);
    }

    /// The host that a packet goes to.
    fn destination(&self, packet: &Packet) -> HostId {
        let spec = self.world.ends(packet.connection());
        if packet.is_ack() { spec.src } else { spec.dst }
    }
}
