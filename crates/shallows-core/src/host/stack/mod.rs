//! One host between its transports and its NIC: gates in a row, control agents and applications,
//! with one timer for all of them.
//!
//! A [`HostStack`] does no I/O. Its driver, the simulator's host or a live one, brings packets,
//! messages and the time, and does what the stack asks for. Each call answers with a [`Turn`], and
//! the driver takes one [`Step`] after the other from it until there is none:
//!
//! ```
//! use shallows_core::host::qjump::{Excess, LimiterConfig, QjumpGateConfig};
//! use shallows_core::host::stack::{HostStack, Step};
//! use shallows_core::packet::Descriptor;
//! use shallows_core::units::{Bytes, Time};
//!
//! // 3000 B per epoch of 10 us; the excess waits.
//! let limits = LimiterConfig {
//!     epoch: Time::from_us(10),
//!     levels: vec![Bytes::new(3000)],
//!     excess: Excess::Hold,
//!     ..LimiterConfig::default()
//! };
//! let gate = QjumpGateConfig::new(limits).build::<Descriptor>()?;
//! let mut host = HostStack::default();
//! host.add_gate(Box::new(gate));
//!
//! let packet = |tag| Descriptor { size: 1500, tag, ..Descriptor::default() };
//! let (mut on_wire, mut alarm) = (Vec::new(), None);
//! for tag in 0..3 {
//!     let mut turn = host.offer(Time::ZERO, packet(tag), Some(7));
//!     while let Some(step) = host.step(Time::ZERO, &mut turn) {
//!         match step {
//!             Step::Send(packet) => on_wire.push(packet.tag),
//!             Step::Wake(at) => alarm = Some(at),
//!             other => unreachable!("there are no agents: {other:?}"),
//!         }
//!     }
//! }
//! assert_eq!((&on_wire[..], alarm), (&[0, 1][..], Some(Time::from_us(10))));
//!
//! let now = Time::from_us(10);
//! let mut turn = host.handle_timeout(now);
//! while let Some(step) = host.step(now, &mut turn) {
//!     assert_eq!(step, Step::Send(packet(2)));
//! }
//! # Ok::<(), shallows_core::host::GateError>(())
//! ```
//!
//! The driving contract:
//! - Call [`start`](HostStack::start) once, before anything else.
//! - Finish each turn, by [`step`](HostStack::step) with the `now` of the call that it came from.
//!   Carrying out a step may lead to other calls of the same stack; finish their turns first.
//! - After [`Step::Wake`] call [`handle_timeout`](HostStack::handle_timeout) at that time. Earlier
//!   wake-ups stay valid, and a call that is no longer due does nothing.
//! - `now` never goes back.

#[cfg(test)]
mod tests;
mod turn;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use crate::application::{Application, Message, Sample};
use crate::control::{Agent, LinkState};
use crate::host::gate::{Gate, Refusal, Verdict};
use crate::packet::Packet;
use crate::units::Time;

use turn::Phase;
pub use turn::{Step, Turn};

/// A gate that a stack can own.
pub trait LocalGate<P: Packet>: Gate<P> + Any + Debug + Send {}

impl<P: Packet, T: Gate<P> + Any + Debug + Send> LocalGate<P> for T {}

/// A control agent that a stack can own.
pub trait LocalAgent: Agent + Debug + Send {}

impl<T: Agent + Debug + Send> LocalAgent for T {}

/// A gate of a stack that is a control agent too.
pub trait GateAgent<P: Packet>: LocalAgent + LocalGate<P> {}

impl<P: Packet, T: LocalAgent + LocalGate<P>> GateAgent<P> for T {}

/// The gates, control agents and applications of a host.
#[derive(Debug)]
pub struct HostStack<P: Packet> {
    /// In the order in which packets pass them.
    gates: Vec<GateSlot<P>>,
    agents: Vec<AgentSlot>,
    members: Vec<Member>,
    /// Control messages that arrive later.
    mail: BTreeMap<Delivery, Box<[u8]>>,
    /// Time of the next [`handle_timeout`](Self::handle_timeout).
    timer: Option<Time>,
    /// Connections that wait for room at a gate, the longest wait first.
    blocked: VecDeque<u32>,
    /// Packets that gates dropped, by [`Refusal::ALL`].
    dropped: [u64; Refusal::ALL.len()],
}

#[derive(Debug)]
enum GateSlot<P: Packet> {
    Plain(Box<dyn LocalGate<P>>),
    Agent(Box<dyn GateAgent<P>>),
}

/// A control agent with its address.
#[derive(Debug)]
struct AgentSlot {
    address: u32,
    place: AgentPlace,
    /// Messages sent.
    sent: u64,
}

#[derive(Debug)]
enum AgentPlace {
    Alone(Box<dyn LocalAgent>),
    /// It is the gate at this position.
    Gate(usize),
}

/// The part of an application at this host.
#[derive(Debug)]
pub struct Member {
    seat: Seat,
    part: Box<dyn Application>,
    /// Time of the next poll.
    wake: Option<Time>,
    samples: Vec<Sample>,
}

impl Member {
    /// Its application and its number there.
    pub fn seat(&self) -> Seat {
        self.seat
    }

    /// Latencies that it has recorded.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }
}

/// A member of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seat {
    /// The application, numbered by the driver.
    pub application: u32,
    /// The member of it.
    pub member: u32,
}

/// A control message on its way. At one instant messages are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delivery {
    /// Time of arrival.
    pub at: Time,
    /// The address of the sending agent.
    pub from: u32,
    /// The number of the message among those of its sender.
    pub sequence: u64,
    /// The address of the receiving agent.
    pub to: u32,
}

impl<P: Packet> Default for HostStack<P> {
    fn default() -> Self {
        Self {
            gates: Vec::new(),
            agents: Vec::new(),
            members: Vec::new(),
            mail: BTreeMap::new(),
            timer: None,
            blocked: VecDeque::new(),
            dropped: [0; Refusal::ALL.len()],
        }
    }
}

impl<P: Packet> GateSlot<P> {
    fn gate(&self) -> &dyn LocalGate<P> {
        match self {
            Self::Plain(gate) => &**gate,
            Self::Agent(gate) => &**gate,
        }
    }

    fn gate_mut(&mut self) -> &mut dyn LocalGate<P> {
        match self {
            Self::Plain(gate) => &mut **gate,
            Self::Agent(gate) => &mut **gate,
        }
    }
}

/// Building, and what can be seen from outside.
impl<P: Packet> HostStack<P> {
    /// Adds a gate behind those that are there.
    pub fn add_gate(&mut self, gate: Box<dyn LocalGate<P>>) {
        self.gates.push(GateSlot::Plain(gate));
    }

    /// Adds a gate that is a control agent with this address.
    pub fn add_gate_agent(&mut self, address: u32, gate: Box<dyn GateAgent<P>>) {
        let place = AgentPlace::Gate(self.gates.len());
        self.gates.push(GateSlot::Agent(gate));
        self.add_at(address, place);
    }

    /// Adds a control agent with this address.
    pub fn add_agent(&mut self, address: u32, agent: Box<dyn LocalAgent>) {
        self.add_at(address, AgentPlace::Alone(agent));
    }

    fn add_at(&mut self, address: u32, place: AgentPlace) {
        self.agents.push(AgentSlot {
            address,
            place,
            sent: 0,
        });
    }

    /// Adds the part of an application.
    pub fn add_member(&mut self, seat: Seat, part: Box<dyn Application>) {
        self.members.push(Member {
            seat,
            part,
            wake: Some(Time::ZERO),
            samples: Vec::new(),
        });
    }

    /// The first gate of a type, for its counters.
    pub fn gate<G: LocalGate<P>>(&self) -> Option<&G> {
        let mut gates = self.gates.iter();
        gates.find_map(|slot| (slot.gate() as &dyn Any).downcast_ref())
    }

    /// The first gate of a type, to change its settings. Call [`attend`](Self::attend) after it.
    pub fn gate_mut<G: LocalGate<P>>(&mut self) -> Option<&mut G> {
        let mut gates = self.gates.iter_mut();
        gates.find_map(|slot| (slot.gate_mut() as &mut dyn Any).downcast_mut())
    }

    /// The parts of applications, with what they have recorded.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns whether it has control agents.
    pub fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    /// The longest time so far in which packets waited for a destination and none was sent to it,
    /// if a gate has queues by destination.
    pub fn longest_wait(&self, now: Time) -> Option<Time> {
        let gates = self.gates.iter();
        gates.filter_map(|slot| slot.gate().longest_wait(now)).max()
    }

    /// Packets that the gates dropped for this reason.
    pub fn dropped(&self, reason: Refusal) -> u64 {
        self.dropped[reason as usize]
    }
}

/// Driving.
impl<P: Packet> HostStack<P> {
    /// Wakes what acts of its own accord: agents and applications, at time zero.
    pub fn start(&mut self) -> Turn<P> {
        let is_active = self.has_agents() || !self.members.is_empty();
        let wake = is_active.then(|| self.arm(Time::ZERO)).flatten();
        Turn::new(wake, Phase::Done)
    }

    /// Takes a packet of a transport for the host `to`, if its destination is known.
    pub fn offer(&mut self, now: Time, packet: P, to: Option<u32>) -> Turn<P> {
        let first = self.pass(now, 0, packet, to);
        let phase = if self.has_agents() {
            Phase::Agents
        } else if first.is_none() && self.timer != Some(now) {
            Phase::Gates
        } else {
            // If the timer is about to expire, what is due leaves then, in the gates' order.
            Phase::Done
        };
        Turn::new(first, phase)
    }

    /// Returns whether the gates have room for a packet of a connection. If not, the connection
    /// comes back as [`Step::Resume`] when they have released something.
    pub fn has_room(&mut self, connection: u32, packet: &P) -> bool {
        let has_room = self.gates.iter().all(|slot| slot.gate().has_room(packet));
        if !has_room && !self.blocked.contains(&connection) {
            self.blocked.push_back(connection);
        }
        has_room
    }

    /// Takes note of a packet of `size` bytes that the host has received from the host `from`.
    pub fn received(&mut self, now: Time, size: u32, from: u32) {
        for slot in &mut self.gates {
            slot.gate_mut().received(now, size, from);
        }
    }

    /// Takes a control message for the agent at `to` that has arrived now.
    pub fn handle(&mut self, now: Time, from: u32, to: u32, message: &[u8]) -> Turn<P> {
        match self.agent_at(to) {
            Some(agent) => {
                agent.handle(now, from, message);
                self.attend()
            }
            None => Turn::new(None, Phase::Done),
        }
    }

    /// Takes a control message that arrives later.
    pub fn post(&mut self, delivery: Delivery, message: Box<[u8]>) -> Turn<P> {
        self.mail.insert(delivery, message);
        Turn::new(self.arm(delivery.at), Phase::Done)
    }

    /// Tells the agents that a link of the fabric has gone down or come back.
    pub fn link_changed(&mut self, now: Time, link: u32, state: LinkState) -> Turn<P> {
        for index in 0..self.agents.len() {
            if let Some(agent) = self.agent(index) {
                agent.link_changed(now, link, state);
            }
        }
        // Their messages about it leave then.
        let wake = self.has_agents().then(|| self.arm(now)).flatten();
        Turn::new(wake, Phase::Done)
    }

    /// Takes a message for a member of an application, whose last byte has arrived.
    pub fn deliver(&mut self, now: Time, seat: Seat, connection: u32, message: Message) -> Turn<P> {
        let mut members = self.members.iter_mut();
        let phase = match members.position(|member| member.seat == seat) {
            Some(index) => {
                let part = &mut self.members[index].part;
                part.delivered(now, connection, message);
                Phase::Member(index)
            }
            None => Phase::Done,
        };
        Turn::new(None, phase)
    }

    /// The time of a [`Step::Wake`] has come.
    pub fn handle_timeout(&mut self, now: Time) -> Turn<P> {
        if self.timer.is_some_and(|timer| timer <= now) {
            self.timer = None;
            return self.attend();
        }
        Turn::new(None, Phase::Done)
    }

    /// Does all that is due: for a driver that has changed something by
    /// [`gate_mut`](Self::gate_mut).
    pub fn attend(&mut self) -> Turn<P> {
        Turn::of_all()
    }

    /// Offers a packet to the gates from the `first` on; a held packet needs no step.
    fn pass(&mut self, now: Time, first: usize, mut packet: P, to: Option<u32>) -> Option<Step<P>> {
        for slot in &mut self.gates[first..] {
            let gate = slot.gate_mut();
            gate.label(now, &mut packet);
            match gate.offer(now, packet, to) {
                Verdict::Pass => {}
                Verdict::Held => return None,
                Verdict::Drop(reason) => {
                    self.dropped[reason as usize] += 1;
                    return Some(Step::Drop { packet, reason });
                }
            }
        }
        Some(Step::Send(packet))
    }

    /// Sets the timer, if `at` is earlier than what it is set to.
    fn arm(&mut self, at: Time) -> Option<Step<P>> {
        let is_earlier = self.timer.is_none_or(|timer| at < timer);
        is_earlier.then(|| {
            self.timer = Some(at);
            Step::Wake(at)
        })
    }

    /// The agent at a position.
    fn agent(&mut self, index: usize) -> Option<&mut dyn Agent> {
        match &mut self.agents.get_mut(index)?.place {
            AgentPlace::Alone(agent) => Some(&mut **agent),
            AgentPlace::Gate(gate) => match self.gates.get_mut(*gate)? {
                GateSlot::Agent(agent) => Some(&mut **agent),
                GateSlot::Plain(_) => None,
            },
        }
    }

    fn agent_at(&mut self, address: u32) -> Option<&mut dyn Agent> {
        let mut agents = self.agents.iter();
        let index = agents.position(|agent| agent.address == address)?;
        self.agent(index)
    }
}
