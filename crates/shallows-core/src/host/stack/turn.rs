//! The order in which a stack does what is due, one step at a time.

use crate::application::{Action, Message};
use crate::host::gate::{Refusal, Release};
use crate::packet::Packet;
use crate::units::Time;

use super::{Delivery, HostStack, Seat};

/// Something that the driver has to do for a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<P> {
    /// Hand this packet to the NIC.
    Send(P),
    /// Discard this packet, which a gate refused.
    Drop {
        /// The packet.
        packet: P,
        /// The gate's reason.
        reason: Refusal,
    },
    /// Carry a control message to another agent.
    Message {
        /// Its sender and receiver, as it leaves now.
        delivery: Delivery,
        /// Its bytes.
        message: Vec<u8>,
    },
    /// Let this connection send: a gate that had no room for it has released something.
    Resume(u32),
    /// Open a connection of an application anew.
    Open {
        /// The member that opens it.
        seat: Seat,
        /// The connection.
        connection: u32,
    },
    /// Send a message of an application.
    Write {
        /// The member that sends it.
        seat: Seat,
        /// The connection.
        connection: u32,
        /// The message.
        message: Message,
    },
    /// Send a message of an application in one datagram, which the network copies.
    Broadcast {
        /// The member that sends it.
        seat: Seat,
        /// The first of the connections at whose other ends it arrives.
        first: u32,
        /// Number of connections, which follow each other.
        count: u32,
        /// The message.
        message: Message,
    },
    /// Call [`HostStack::handle_timeout`] at this time.
    Wake(Time),
}

/// The steps that follow from one call, to be taken by [`HostStack::step`].
#[derive(Debug)]
#[must_use = "a turn does nothing until its steps are taken"]
pub struct Turn<P> {
    /// A step that is known already.
    first: Option<Step<P>>,
    phase: Phase,
    /// Applications have their turn between agents and gates.
    has_members: bool,
    /// The agent, member or gate that is next.
    index: usize,
    /// The earliest time at which a gate has something to release.
    wake: Option<Time>,
    /// True if a gate has released something.
    released: bool,
}

/// The part of a turn that is next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Messages and timeouts of agents that are due.
    Agents,
    /// Messages that agents send.
    Transmit,
    /// The timer, for the agents' next deadline.
    Arm,
    /// The applications that are due.
    Members,
    /// The member at the index, until it waits; then the others.
    Poll,
    /// This member alone, until it waits.
    Member(usize),
    /// Packets that the gates release.
    Gates,
    /// The timer, for the next release.
    ArmGates,
    /// Deadlines that released packets have changed.
    Released,
    /// Connections that waited for room; the one before, if any.
    Resume(Option<u32>),
    /// Nothing.
    Done,
}

impl<P> Turn<P> {
    pub(super) fn new(first: Option<Step<P>>, phase: Phase) -> Self {
        Self {
            first,
            phase,
            has_members: false,
            index: 0,
            wake: None,
            released: false,
        }
    }

    /// Agents, applications and gates.
    pub(super) fn of_all() -> Self {
        Self {
            has_members: true,
            ..Self::new(None, Phase::Agents)
        }
    }

    fn go(&mut self, phase: Phase) {
        self.phase = phase;
        self.index = 0;
    }
}

/// Until something that was due and did nothing is asked again.
const NOT_AT_ONCE: Time = Time::from_ps(1);

impl<P: Packet> HostStack<P> {
    /// The next step of a turn, if there is one. `now` is that of the call that the turn is from.
    pub fn step(&mut self, now: Time, turn: &mut Turn<P>) -> Option<Step<P>> {
        if let Some(first) = turn.first.take() {
            return Some(first);
        }
        loop {
            let step = match turn.phase {
                Phase::Agents => {
                    self.serve_agents(now);
                    turn.go(Phase::Transmit);
                    None
                }
                Phase::Transmit => {
                    let message = self.transmit(now, turn);
                    if message.is_none() {
                        turn.go(Phase::Arm);
                    }
                    message
                }
                Phase::Arm => {
                    turn.go(if turn.has_members {
                        Phase::Members
                    } else {
                        Phase::Gates
                    });
                    self.arm_agents(now)
                }
                Phase::Members => self.next_member(now, turn),
                Phase::Poll => {
                    let (step, waits) = self.poll(now, turn.index);
                    if waits {
                        turn.phase = Phase::Members;
                        turn.index += 1;
                    }
                    step
                }
                Phase::Member(index) => {
                    let (step, waits) = self.poll(now, index);
                    if waits {
                        turn.go(Phase::Done);
                    }
                    step
                }
                Phase::Gates => self.release(now, turn),
                Phase::ArmGates => {
                    turn.go(if turn.released {
                        Phase::Released
                    } else {
                        Phase::Done
                    });
                    turn.wake.take().and_then(|at| self.arm(at))
                }
                Phase::Released => {
                    turn.go(Phase::Resume(None));
                    self.arm_agents(now)
                }
                Phase::Resume(before) => {
                    let next = self.next_blocked(before);
                    turn.phase = next.map_or(Phase::Done, |next| Phase::Resume(Some(next)));
                    next.map(Step::Resume)
                }
                Phase::Done => return None,
            };
            if step.is_some() {
                return step;
            }
        }
    }

    /// Gives agents the messages and timeouts that are due.
    fn serve_agents(&mut self, now: Time) {
        while let Some(entry) = self.mail.first_entry()
            && entry.key().at <= now
        {
            let (delivery, message) = entry.remove_entry();
            if let Some(agent) = self.agent_at(delivery.to) {
                agent.handle(now, delivery.from, &message);
            }
        }
        for index in 0..self.agents.len() {
            if let Some(agent) = self.agent(index)
                && agent.timeout().is_some_and(|timeout| timeout <= now)
            {
                agent.handle_timeout(now);
            }
        }
    }

    /// The next message of an agent.
    fn transmit(&mut self, now: Time, turn: &mut Turn<P>) -> Option<Step<P>> {
        while let Some(agent) = self.agent(turn.index) {
            let mut message = Vec::new();
            if let Some(to) = agent.transmit(now, &mut message) {
                let slot = &mut self.agents[turn.index];
                slot.sent += 1;
                let delivery = Delivery {
                    at: now,
                    from: slot.address,
                    sequence: slot.sent,
                    to,
                };
                return Some(Step::Message { delivery, message });
            }
            turn.index += 1;
        }
        None
    }

    /// Sets the timer for the agents, whose deadlines change with messages, and with packets if
    /// they are gates.
    fn arm_agents(&mut self, now: Time) -> Option<Step<P>> {
        let mut next = self.mail.first_key_value().map(|(delivery, _)| delivery.at);
        for index in 0..self.agents.len() {
            let timeout = self.agent(index).and_then(|agent| agent.timeout());
            next = [next, timeout].into_iter().flatten().min();
        }
        self.arm(next?.max(now + NOT_AT_ONCE))
    }

    /// Goes to the next member that is due, and sets the timer for those that are not.
    fn next_member(&mut self, now: Time, turn: &mut Turn<P>) -> Option<Step<P>> {
        let Some(member) = self.members.get(turn.index) else {
            turn.go(Phase::Gates);
            return None;
        };
        match member.wake {
            Some(at) if at <= now => {
                turn.phase = Phase::Poll;
                None
            }
            Some(at) => {
                turn.index += 1;
                self.arm(at)
            }
            None => {
                turn.index += 1;
                None
            }
        }
    }

    /// Asks a member what it wants; true if it waits now.
    fn poll(&mut self, now: Time, index: usize) -> (Option<Step<P>>, bool) {
        let member = &mut self.members[index];
        let action = member.part.poll(now);
        member.samples.append(&mut member.part.take_samples());
        let seat = member.seat;
        match action {
            Action::Open { connection } => (Some(Step::Open { seat, connection }), false),
            Action::Send {
                connection,
                message,
            } => {
                let step = Step::Write {
                    seat,
                    connection,
                    message,
                };
                (Some(step), false)
            }
            Action::Broadcast {
                first,
                count,
                message,
            } => {
                let step = Step::Broadcast {
                    seat,
                    first,
                    count,
                    message,
                };
                (Some(step), false)
            }
            Action::Wait(at) => {
                member.wake = Some(at);
                (self.arm(at.max(now + NOT_AT_ONCE)), true)
            }
            Action::Idle => {
                member.wake = None;
                (None, true)
            }
        }
    }

    /// The next packet that a gate releases and those behind it do not hold.
    fn release(&mut self, now: Time, turn: &mut Turn<P>) -> Option<Step<P>> {
        while let Some(slot) = self.gates.get_mut(turn.index) {
            match slot.gate_mut().release(now) {
                Release::Packet { packet, to } => {
                    turn.released = true;
                    let step = self.pass(now, turn.index + 1, packet, to);
                    if step.is_some() {
                        return step;
                    }
                    continue;
                }
                Release::At(at) => turn.wake = Some(turn.wake.map_or(at, |wake| wake.min(at))),
                Release::Idle => {}
            }
            turn.index += 1;
        }
        turn.go(Phase::ArmGates);
        None
    }

    /// The next connection that may go on, unless the one before has found no room again.
    fn next_blocked(&mut self, before: Option<u32>) -> Option<u32> {
        if before.is_some() && self.blocked.back() == before.as_ref() {
            return None;
        }
        self.blocked.pop_front()
    }
}
