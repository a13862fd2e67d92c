//! Control agents of a part, and their messages.

use std::mem;

use shallows_core::control::{Agent, LinkState};
use shallows_core::units::{Rate, Time};
use shallows_model::{Carriage, Channel};

use super::Shard;
use super::gates::{HostGate, HostState};
use crate::control::LoneAgent;
use crate::packet::{Length, Packet};

/// An agent of a host.
#[derive(Debug)]
pub(crate) struct LocalAgent {
    pub(crate) address: u32,
    pub(crate) place: AgentPlace,
    /// Messages sent so far.
    sent: u64,
}

/// Location of an agent.
#[derive(Debug)]
pub(crate) enum AgentPlace {
    Alone(Box<dyn LoneAgent>),
    /// It is the gate at this position.
    Gate(usize),
}

/// Location of a host: its shard, and the port of its NIC there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPlace {
    pub(crate) part: u32,
    pub(crate) port: u32,
    /// Rate of its NIC.
    pub(crate) rate: Rate,
}

/// A message out of band. At one instant they are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Delivery {
    at: Time,
    from: u32,
    /// The number of the message among those of its sender.
    sequence: u64,
    to: u32,
}

/// A message out of band to another part.
#[derive(Debug)]
pub(super) struct Letter {
    delivery: Delivery,
    message: Box<[u8]>,
}

impl Letter {
    /// Arrival time.
    pub(super) fn arrival(&self) -> Time {
        self.delivery.at
    }
}

impl LocalAgent {
    pub(crate) fn new(address: u32, place: AgentPlace) -> Self {
        Self {
            address,
            place,
            sent: 0,
        }
    }
}

impl HostState {
    /// The agent at a position.
    fn agent(&mut self, index: usize) -> Option<&mut dyn Agent> {
        match &mut self.agents.get_mut(index)?.place {
            AgentPlace::Alone(agent) => Some(&mut **agent),
            AgentPlace::Gate(gate) => match self.gates.get_mut(*gate)? {
                HostGate::Agent(agent) => Some(&mut **agent),
                HostGate::Qjump(_) => None,
            },
        }
    }

    fn position(&self, address: u32) -> Option<usize> {
        let mut agents = self.agents.iter();
        agents.position(|agent| agent.address == address)
    }

    /// Time at which an agent or a message out of band needs attention.
    fn control_deadline(&mut self) -> Option<Time> {
        let mut next = self
            .letters
            .first_key_value()
            .map(|(delivery, _)| delivery.at);
        for index in 0..self.agents.len() {
            let timeout = self.agent(index).and_then(|agent| agent.timeout());
            next = [next, timeout].into_iter().flatten().min();
        }
        next
    }
}

impl Shard {
    /// Gives the agents of a host what is due, and sends what they have to say.
    pub(super) fn serve_agents(&mut self, port: u32) {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(&port) else {
            return;
        };
        while let Some(entry) = host.letters.first_entry()
            && entry.key().at <= now
        {
            let (delivery, message) = entry.remove_entry();
            if let Some(index) = host.position(delivery.to)
                && let Some(agent) = host.agent(index)
            {
                agent.handle(now, delivery.from, &message);
            }
        }
        for index in 0..host.agents.len() {
            if let Some(agent) = host.agent(index)
                && agent.timeout().is_some_and(|timeout| timeout <= now)
            {
                agent.handle_timeout(now);
            }
        }
        self.transmit_messages(port);
        self.arm_agents(port);
    }

    /// Tells the agents here of a link that has gone down or come back at `now`.
    pub(crate) fn tell_agents(&mut self, now: Time, link: u32, state: LinkState) {
        let with_agents = |(_, host): &(&u32, &HostState)| !host.agents.is_empty();
        let ports = self.hosts.iter().filter(with_agents);
        let mut ports: Vec<u32> = ports.map(|(&port, _)| port).collect();
        ports.sort_unstable();
        for port in ports {
            if let Some(host) = self.hosts.get_mut(&port) {
                for index in 0..host.agents.len() {
                    if let Some(agent) = host.agent(index) {
                        agent.link_changed(now, link, state);
                    }
                }
            }
            // What they have to say to it leaves then.
            self.set_host_timer(port, now);
        }
    }

    /// Sets the timer of a host for its agents, whose deadlines change with messages, and with
    /// packets if they are gates.
    pub(super) fn arm_agents(&mut self, port: u32) {
        let host = self.hosts.get_mut(&port);
        if let Some(at) = host.and_then(HostState::control_deadline) {
            // An agent whose time has come and that did nothing is asked again, but not at once.
            self.set_host_timer(port, at.max(self.now + Time::from_ps(1)));
        }
    }

    /// Sends what the agents of a host have to say.
    fn transmit_messages(&mut self, port: u32) {
        let mut buffer = Vec::new();
        let mut index = 0;
        while let Some(host) = self.hosts.get_mut(&port)
            && let Some(agent) = host.agent(index)
        {
            let Some(to) = agent.transmit(self.now, &mut buffer) else {
                index += 1;
                continue;
            };
            let from = host.agents[index].address;
            host.agents[index].sent += 1;
            let sequence = host.agents[index].sent;
            let message = mem::take(&mut buffer).into_boxed_slice();
            match self.world.control.carriage {
                Carriage::Fabric { .. } => self.send_in_fabric(Channel { from, to }, message),
                Carriage::OutOfBand { delay } => self.send_letter(Letter {
                    delivery: Delivery {
                        at: self.now + delay,
                        from,
                        sequence,
                        to,
                    },
                    message,
                }),
            }
        }
    }

    fn send_letter(&mut self, letter: Letter) {
        let Some(&host) = self.world.control.hosts.get(letter.delivery.to as usize) else {
            return;
        };
        let place = self.world.places[host as usize];
        if place.part == self.part {
            self.take_letter(letter);
        } else {
            self.outbox[place.part as usize].letters.push(letter);
        }
    }

    /// Keeps a message out of band for its time.
    pub(super) fn take_letter(&mut self, letter: Letter) {
        let Letter { delivery, message } = letter;
        let host = self.world.control.hosts[delivery.to as usize];
        let port = self.world.places[host as usize].port;
        if let Some(host) = self.hosts.get_mut(&port) {
            host.letters.insert(delivery, message);
            self.set_host_timer(port, delivery.at);
        }
    }

    /// Sends a message as a packet, past the gates of its host.
    fn send_in_fabric(&mut self, channel: Channel, message: Box<[u8]>) {
        let control = &self.world.control;
        let (Some(&slot), Carriage::Fabric { dscp, header }) =
            (control.slots.get(&channel), control.carriage)
        else {
            return;
        };
        // IPv4 can carry no more, and the protocols send far less.
        let Ok(len) = u16::try_from(message.len()) else {
            return;
        };
        let Some(size) = len.checked_add(header) else {
            return;
        };
        let route = self.routing.routes[slot as usize][0];
        let place = self.messages.insert(message);
        let packet = Packet::control(slot, route, dscp, place, Length { len, size }, self.now);
        let number = self.add(packet);
        self.enter_nic(self.paths.link(route), number);
    }

    /// A control message has come as a packet.
    #[cold]
    pub(super) fn take_message(&mut self, packet: &Packet) {
        let message = self.take_payload(packet);
        let world = &self.world;
        let channel = packet.connection() - world.control.first_slot;
        let Channel { from, to } = world.control.channels[channel as usize];
        let host = world.control.hosts[to as usize];
        let port = world.places[host as usize].port;
        if let Some(host) = self.hosts.get_mut(&port)
            && let Some(index) = host.position(to)
            && let Some(agent) = host.agent(index)
        {
            agent.handle(self.now, from, &message);
            self.attend(port);
        }
    }

    /// Takes the bytes of a control packet.
    pub(super) fn take_payload(&mut self, packet: &Packet) -> Box<[u8]> {
        let place = packet.payload();
        let message = mem::take(self.messages.get_mut(place));
        self.messages.remove(place);
        message
    }
}
