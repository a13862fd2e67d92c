//! Hosts before their links: the driver of their [stacks](HostStack).

use std::cmp::Reverse;

use shallows_core::host::HostGateConfig;
use shallows_core::host::gate::Refusal;
use shallows_core::host::stack::{HostStack, Step, Turn};
use shallows_core::units::Time;

use super::coordination::{Addressing, Towards};
use super::{Engine, Event, Outgoing, left_host};
use crate::frame::Frame;
use crate::switch::SwitchError;

/// The gates and agents of a host, before the link that its frames enter.
#[derive(Debug)]
pub(super) struct LinkStack {
    pub(super) stack: HostStack<Frame>,
    link: usize,
    /// The stack before the same link for frames to hosts that the coordinator of this one does not
    /// know.
    pub(super) next: Option<usize>,
    /// Destinations of frames, where a coordinator has to know them.
    pub(super) addressing: Option<Addressing>,
}

impl LinkStack {
    fn before(link: usize) -> Self {
        Self {
            stack: HostStack::default(),
            link,
            next: None,
            addressing: None,
        }
    }
}

impl Engine {
    /// The stack before a link, which is made if there is none.
    pub(super) fn stack_before(&mut self, link: usize) -> usize {
        *self.links[link].stack.get_or_insert_with(|| {
            self.stacks.push(LinkStack::before(link));
            self.stacks.len() - 1
        })
    }

    /// A new stack before the same link, behind those that are there.
    pub(super) fn stack_behind(&mut self, first: usize) -> usize {
        let mut last = first;
        while let Some(next) = self.stacks[last].next {
            last = next;
        }
        let (number, link) = (self.stacks.len(), self.stacks[first].link);
        self.stacks[last].next = Some(number);
        self.stacks.push(LinkStack::before(link));
        number
    }

    /// Puts the gates of the host `name` before its link.
    pub(super) fn add_gates(
        &mut self,
        link: usize,
        name: &str,
        gates: &[HostGateConfig],
    ) -> Result<(), SwitchError> {
        for gate in gates {
            let built = gate.build().map_err(|error| SwitchError::Gate {
                of: name.to_owned(),
                error,
            })?;
            let number = self.stack_before(link);
            self.stacks[number].stack.add_gate(built);
        }
        Ok(())
    }

    /// Lets a frame pass the gates before a link, now or later.
    pub(super) fn submit(&mut self, now: Time, link: usize, frame: Frame) {
        let Some(mut number) = self.links[link].stack else {
            return self.offer(now, link, frame);
        };
        let to = loop {
            let LinkStack {
                stack,
                addressing: Some(addressing),
                next,
                ..
            } = &mut self.stacks[number]
            else {
                break None;
            };
            let bytes = self.store.bytes(frame.slot, frame.length);
            match (addressing.towards(stack, bytes), *next) {
                // Control messages need no permission.
                (Towards::Controller, _) => return self.offer(now, link, frame),
                (Towards::Host(to), _) => break Some(to),
                (Towards::Unknown, Some(next)) => number = next,
                (Towards::Unknown, None) => break None,
            }
        };
        let turn = self.stacks[number].stack.offer(now, frame, to);
        self.drive(now, number, turn);
    }

    /// The timer of a stack has expired.
    pub(super) fn wake(&mut self, now: Time, number: usize) {
        let turn = self.stacks[number].stack.handle_timeout(now);
        self.drive(now, number, turn);
    }

    /// Does what follows from a call of a stack.
    pub(super) fn drive(&mut self, now: Time, number: usize, mut turn: Turn<Frame>) {
        let link = self.stacks[number].link;
        while let Some(step) = self.stacks[number].stack.step(now, &mut turn) {
            match step {
                Step::Send(frame) => self.offer(now, link, frame),
                Step::Drop { packet, .. } => {
                    left_host(self.streams.as_ref(), self.links[link].host, &packet);
                    self.store.remove(packet.slot);
                }
                Step::Message { delivery, message } => self.outgoing.push(Outgoing {
                    coordinator: delivery.from as usize,
                    to: delivery.to,
                    message,
                }),
                Step::Wake(at) => self.agenda.push(Reverse((at, Event::Stack(number)))),
                // Connections and applications are on the other side of the cable.
                Step::Resume(_)
                | Step::Open { .. }
                | Step::Write { .. }
                | Step::Broadcast { .. } => {}
            }
        }
    }

    /// Frames that the gates of hosts dropped, by reason.
    pub fn gate_drops(&self) -> [(Refusal, u64); Refusal::ALL.len()] {
        let stacks = || self.stacks.iter();
        let sum = |reason: Refusal| stacks().map(|of| of.stack.dropped(reason)).sum();
        Refusal::ALL.map(|reason| (reason, sum(reason)))
    }
}
