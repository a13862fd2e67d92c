//! The coordinator as an end of the control protocol.

use super::Coordinator;
use super::meter::Meter;
use crate::control::Agent;
use crate::packet::Packet;
use crate::units::Time;
use crate::xco::message::{self, Body, Header, Standing};

impl<P: Packet> Agent for Coordinator<P> {
    fn handle(&mut self, now: Time, from: u32, message: &[u8]) {
        self.note_time(now);
        match self.accept(now, from, message) {
            Ok(()) => self.counters.messages.accepted += 1,
            Err(reason) => self.counters.messages.refuse(reason),
        }
        self.advance(now);
    }

    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<u32> {
        let to = self.reporting.outbox.pop_front()?;
        self.reporting.sequence += 1;
        let header = Header {
            from: self.config.host,
            to,
            incarnation: self.config.incarnation,
            sequence: self.reporting.sequence,
        };
        let report = self.report(now);
        if self.reporting.outbox.is_empty() {
            self.reporting.wants_answer = false;
        }
        message::seal(&self.key, &header, &Body::Report(report), buffer);
        Some(to)
    }

    fn timeout(&self) -> Option<Time> {
        if self.reporting.is_due || !self.reporting.outbox.is_empty() {
            return Some(Time::ZERO);
        }
        let protocol = &self.config.protocol;
        let slot = self.slot.map(|slot| {
            let idle = slot.empty.map(|since| since + self.config.gate.hysteresis);
            idle.map_or(slot.until, |idle| idle.min(slot.until))
        });
        let coordinated = self.standing == Standing::Coordinated;
        let news = self.reporting.unacknowledged;
        let retry = news.map(|(_, sent)| sent + protocol.retry);
        let times = [
            slot,
            self.reporting.later,
            Some(
                self.reporting
                    .last
                    .map_or(Time::ZERO, |last| last + protocol.keepalive),
            ),
            retry.filter(|_| coordinated),
            coordinated.then(|| self.permitted + protocol.silence),
            self.meter.as_ref().and_then(Meter::timeout),
        ];
        times.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }
}
