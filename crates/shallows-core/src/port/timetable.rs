//! Departures that are known when packets arrive.
//!
//! In a FIFO that nothing paces and whose marker looks at lengths on arrival only, nothing that
//! comes later changes when a packet leaves. Such a port can tell it at once, and its driver is
//! spared an event for each packet that waits. The packets are with the driver then; the port keeps
//! the times at which they leave the queue, to know how long it is.

use std::collections::VecDeque;
use std::hint;

use super::marker::NotEct;
use super::{Accounting, DropReason, Framing, MarkReason};
use crate::packet::{Ecn, Packet};
use crate::tally::Tally;
use crate::units::{Bytes, Time, TransmissionClock};

/// The departures ahead, and the rules of the port in their simplest form.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Timetable {
    /// When the last packet so far has left.
    pub(crate) busy_until: Time,
    /// Bytes that wait.
    pub(crate) bytes: u64,
    /// When each waiting packet starts, and its size.
    waiting: VecDeque<(Time, u32)>,
    /// All that was ever accepted.
    pub(crate) accepted: Tally,
    link: TransmissionClock,
    rules: Rules,
}

/// What stays as configured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Bytes that the queue may hold.
    pub(crate) limit: u64,
    /// Why packets beyond them are dropped.
    pub(crate) full: DropReason,
    /// Bytes above which packets are marked.
    pub(crate) threshold: u64,
    /// Why they are.
    pub(crate) congested: MarkReason,
    pub(crate) not_ect: NotEct,
    pub(crate) framing: Framing,
    pub(crate) accounting: Accounting,
}

/// When a packet leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) start: Time,
    pub(crate) finish: Time,
    /// Whether it is to be marked.
    pub(crate) congested: bool,
}

impl Timetable {
    pub(crate) fn new(link: TransmissionClock, rules: Rules) -> Self {
        Self {
            busy_until: Time::ZERO,
            bytes: 0,
            waiting: VecDeque::new(),
            link,
            rules,
            accepted: Tally::default(),
        }
    }

    /// Reads ahead what a packet will need.
    #[inline]
    pub(crate) fn read_ahead(&self) {
        hint::black_box(self.rules.threshold);
        hint::black_box(self.waiting.front().map(|(start, _)| *start));
        hint::black_box(self.waiting.back().map(|(start, _)| *start));
    }

    /// Packets that wait.
    pub(crate) fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// Takes what has left the queue by `now` off its length.
    #[inline]
    pub(crate) fn settle(&mut self, now: Time) {
        while let Some(&(start, size)) = self.waiting.front()
            && start <= now
        {
            self.waiting.pop_front();
            self.bytes -= u64::from(size);
        }
    }

    /// The size of a packet as the queue counts it.
    #[inline]
    pub(crate) fn size(&self, packet: &impl Packet) -> u32 {
        match self.rules.accounting {
            Accounting::Packet => packet.size(),
            Accounting::Wire => self.rules.framing.wire_size(packet.size()),
        }
    }

    /// Finds room for a packet and the time of its departure.
    #[inline(always)]
    pub(crate) fn admit(&mut self, now: Time, packet: &impl Packet) -> Result<Entry, DropReason> {
        let start = self.busy_until.max(now);
        if start > now {
            self.settle(now);
        } else {
            self.waiting.clear();
            self.bytes = 0;
            if now > self.busy_until {
                self.link.restart();
            }
        }
        let size = self.size(packet);
        let length = self.bytes + u64::from(size);
        if length > self.rules.limit {
            return Err(self.rules.full);
        }
        let congested = length > self.rules.threshold;
        if congested && self.rules.not_ect == NotEct::Drop && packet.ecn() == Ecn::NotEct {
            return Err(DropReason::NotEct);
        }
        if start > now {
            self.waiting.push_back((start, size));
            self.bytes = length;
        }
        let wire_size = self.rules.framing.wire_size(packet.size());
        self.busy_until = start + self.link.advance(Bytes::new(u64::from(wire_size)));
        self.accepted.packets += 1;
        self.accepted.bytes += u64::from(size);
        Ok(Entry {
            start,
            finish: self.busy_until,
            congested,
        })
    }

    /// Why packets are marked.
    pub(crate) fn reason(&self) -> MarkReason {
        self.rules.congested
    }
}
