//! Gates between the transports of hosts and their NICs.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use shallows_core::host::gate::{Gate, Release, Verdict};
use shallows_core::host::qjump::QjumpGate;
use shallows_core::units::Time;

use super::Shard;
use super::agents::{Delivery, LocalAgent};
use super::applications::LocalPart;
use crate::control::GateAgent;
use crate::engine::{Class, Key};
use crate::packet::Packet;
use crate::ticket::Ticket;

/// The hosts of a part that are more than their transports, by the ports of their NICs.
pub(crate) type Hosts = FxHashMap<u32, HostState>;

/// State of a host with gates, agents or applications.
#[derive(Debug, Default)]
pub(crate) struct HostState {
    /// In the order in which packets pass them.
    pub(crate) gates: Vec<HostGate>,
    pub(crate) agents: Vec<LocalAgent>,
    pub(crate) parts: Vec<LocalPart>,
    /// Messages out of band that are under way to its agents.
    pub(super) letters: BTreeMap<Delivery, Box<[u8]>>,
    /// Expiry of the host timer in the event queue.
    timer: Option<Time>,
    /// Connections that wait for room at a gate, the longest wait first.
    blocked: VecDeque<u32>,
}

/// A gate, of whichever kind.
#[derive(Debug)]
pub(crate) enum HostGate {
    Qjump(Box<QjumpGate<Ticket>>),
    Agent(Box<dyn GateAgent>),
}

impl HostGate {
    fn gate(&mut self) -> &mut dyn Gate<Ticket> {
        match self {
            Self::Qjump(gate) => &mut **gate,
            Self::Agent(gate) => &mut **gate,
        }
    }

    fn has_room(&self, packet: &Ticket) -> bool {
        match self {
            Self::Qjump(gate) => gate.has_room(packet),
            Self::Agent(gate) => gate.has_room(packet),
        }
    }
}

impl Shard {
    /// QJUMP's gate before a NIC.
    pub(crate) fn qjump(&self, port: u32) -> Option<&QjumpGate<Ticket>> {
        match self.hosts.get(&port)?.gates.first()? {
            HostGate::Qjump(gate) => Some(gate),
            HostGate::Agent(_) => None,
        }
    }

    /// The longest that a destination waited at the gates before a NIC.
    pub(crate) fn longest_wait(&self, port: u32) -> Option<Time> {
        let gates = self.hosts.get(&port)?.gates.iter();
        let waits = gates.filter_map(|gate| match gate {
            HostGate::Qjump(gate) => gate.longest_wait(self.now),
            HostGate::Agent(gate) => gate.longest_wait(self.now),
        });
        waits.max()
    }

    /// Hands a packet of a host's transport to the gates of the host, if it has any.
    #[inline(never)]
    pub(super) fn launch_gated(&mut self, packet: Packet) {
        let port = self.paths.link(packet.ticket.route());
        let to = self.destination(&packet);
        let number = self.add(packet);
        let ticket = self.packets.get(number).ticket;
        let is_held = self.pass_gates(port, 0, ticket, to) == Verdict::Held;
        let Some(host) = self.hosts.get(&port) else {
            return;
        };
        let has_agents = !host.agents.is_empty();
        // If the timer is about to expire, what is due leaves then, in the gates' order.
        let is_due = host.timer == Some(self.now);
        if has_agents {
            self.serve_agents(port);
        }
        if has_agents || is_held && !is_due {
            self.open_gates(port);
        }
    }

    /// Tells the gates of a host with control agents what it has received.
    #[inline(never)]
    pub(super) fn note_received(&mut self, packet: &Packet) {
        if self.world.control.hosts.is_empty() || packet.is_control() {
            return;
        }
        let spec = self.world.workload.flows[packet.connection() as usize];
        let (from, to) = if packet.is_ack() {
            (spec.dst, spec.src)
        } else {
            (spec.src, spec.dst)
        };
        let port = self.world.places[to as usize].port;
        if let Some(host) = self.hosts.get_mut(&port) {
            for gate in &mut host.gates {
                gate.gate().received(self.now, packet.size(), from);
            }
        }
    }

    /// Returns whether the gates have room for a packet of a connection; if not, the connection is resumed
    /// when they have released something.
    pub(super) fn has_room(&mut self, connection: u32, route: u32, packet: &Ticket) -> bool {
        let port = self.paths.link(route);
        let Some(host) = self.hosts.get_mut(&port) else {
            return true;
        };
        let has_room = host.gates.iter().all(|gate| gate.has_room(packet));
        if !has_room && !host.blocked.contains(&connection) {
            host.blocked.push_back(connection);
        }
        has_room
    }

    /// Wakes the hosts that do something of their own accord.
    pub(super) fn start_hosts(&mut self) {
        let active =
            |(_, host): &(&u32, &HostState)| !host.agents.is_empty() || !host.parts.is_empty();
        let mut ports: Vec<u32> = self
            .hosts
            .iter()
            .filter(active)
            .map(|(&port, _)| port)
            .collect();
        ports.sort_unstable();
        for port in ports {
            self.set_host_timer(port, Time::ZERO);
        }
    }

    /// The timer of a host has expired.
    pub(super) fn host_timer(&mut self, port: u32) {
        if let Some(host) = self.hosts.get_mut(&port)
            && host.timer == Some(self.now)
        {
            host.timer = None;
            self.attend(port);
        }
    }

    /// Does what a host has to do beside its transports, and sets its timer for the rest.
    pub(super) fn attend(&mut self, port: u32) {
        self.serve_agents(port);
        self.serve_applications(port);
        self.open_gates(port);
    }

    /// The parts of applications at the hosts here.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &LocalPart> {
        self.hosts.values().flat_map(|host| &host.parts)
    }

    /// Offers a packet to the gates from the `first` on, and to the NIC if all let it pass.
    fn pass_gates(&mut self, port: u32, first: usize, mut packet: Ticket, to: u32) -> Verdict {
        if let Some(host) = self.hosts.get_mut(&port) {
            for gate in &mut host.gates[first..] {
                let gate = gate.gate();
                gate.label(self.now, &mut packet);
                match gate.offer(self.now, packet, to) {
                    Verdict::Pass => {}
                    Verdict::Held => return Verdict::Held,
                    Verdict::Drop(refusal) => {
                        let packet = self.take(packet.packet());
                        if let Some(flow) = packet.account() {
                            self.flows.count_refusal(flow, refusal);
                        }
                        self.leave_by_drop(port, &packet);
                        return Verdict::Drop(refusal);
                    }
                }
            }
        }
        self.packets.get_mut(packet.packet()).ticket = packet;
        self.enter_nic(port, packet.packet());
        Verdict::Pass
    }

    /// Sends what the gates release now, resumes connections that waited for room, and sets the
    /// host's timer for the rest.
    fn open_gates(&mut self, port: u32) {
        let (mut wake, mut index, mut released) = (None, 0, false);
        while let Some(host) = self.hosts.get_mut(&port)
            && let Some(gate) = host.gates.get_mut(index)
        {
            match gate.gate().release(self.now) {
                Release::Packet { packet, to } => {
                    released = true;
                    self.pass_gates(port, index + 1, packet, to);
                    continue;
                }
                Release::At(at) => wake = Some(wake.map_or(at, |wake: Time| wake.min(at))),
                Release::Idle => {}
            }
            index += 1;
        }
        if let Some(at) = wake {
            self.set_host_timer(port, at);
        }
        if released {
            self.arm_agents(port);
            self.resume_blocked(port);
        }
    }

    /// Lets connections go on that waited for room, as long as there is some.
    fn resume_blocked(&mut self, port: u32) {
        while let Some(host) = self.hosts.get_mut(&port)
            && let Some(connection) = host.blocked.pop_front()
        {
            self.send(connection);
            let host = self.hosts.get(&port);
            if host.is_some_and(|host| host.blocked.back() == Some(&connection)) {
                return;
            }
        }
    }

    pub(super) fn set_host_timer(&mut self, port: u32, at: Time) {
        if let Some(host) = self.hosts.get_mut(&port)
            && host.timer.is_none_or(|timer| at < timer)
        {
            host.timer = Some(at);
            self.schedule(at, Key::new(Class::HostTimer, port));
        }
    }

    /// The host that a packet goes to.
    fn destination(&self, packet: &Packet) -> u32 {
        let spec = self.world.workload.flows[packet.connection() as usize];
        if packet.is_ack() { spec.src } else { spec.dst }
    }
}
