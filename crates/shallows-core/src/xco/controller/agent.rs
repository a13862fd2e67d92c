//! The controller as an end of the control protocol.

use std::cmp::Reverse;

use super::{Controller, Role};
use crate::control::{Agent, LinkState};
use crate::units::Time;
use crate::xco::fabric::Routes;
use crate::xco::message::{self, Beat, Body};

impl<R: Routes> Agent for Controller<R> {
    fn handle(&mut self, now: Time, from: u32, message: &[u8]) {
        self.end_slots(now);
        match self.accept(now, from, message) {
            Ok(()) => self.counters.messages.accepted += 1,
            Err(reason) => self.counters.messages.refuse(reason),
        }
    }

    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<u32> {
        if let Some(peer) = self.leadership.next_beat() {
            let beat = Beat {
                epoch: self.leadership.epoch(),
                leads: self.leadership.role() == Role::Leader,
            };
            let header = self.header(peer);
            message::seal(&self.key, &header, &Body::Beat(beat), buffer);
            return Some(peer);
        }
        let host = self.outbox.pop_front()?;
        self.members[host as usize].in_outbox = false;
        let directive = self.directive(now, host);
        let header = self.header(host);
        let key = &self.members[host as usize].key;
        message::seal(key, &header, &Body::Directive(directive), buffer);
        Some(host)
    }

    fn timeout(&self) -> Option<Time> {
        let end = self
            .ends
            .peek()
            .map_or(Time::MAX, |Reverse((end, ..))| *end);
        let times = [end, self.next_round, self.next_check, self.next_calm()];
        times.into_iter().min()
    }

    fn link_changed(&mut self, now: Time, link: u32, state: LinkState) {
        self.end_slots(now);
        self.set_link(now, link, state);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.end_slots(now);
        if now >= self.next_calm() {
            self.cool(now);
        }
        if now >= self.next_check {
            self.check_leadership(now);
        }
        if now >= self.next_round {
            self.start_round(now);
        }
    }
}
