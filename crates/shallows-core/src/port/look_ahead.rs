//! A FIFO whose departures are known when packets arrive.
//!
//! In a FIFO that nothing paces and whose marker looks at lengths on arrival only, nothing that
//! comes later changes when a packet leaves. Such a port can tell it at once, and its driver is
//! spared an event for each packet that waits. The packets are with the driver then; the port keeps
//! the times at which they leave the queue, to know how long it is.

use std::collections::VecDeque;
use std::hint;

use super::marker::{ArrivalRule, NotEct};
use super::state::mark;
use super::{Accounting, DropReason, Forward, Framing, Passage, QueueCounters};
use crate::packet::{Ecn, Packet};
use crate::tally::Tally;
use crate::units::{Bytes, Time, TransmissionClock};

/// A FIFO that looks ahead.
#[derive(Debug)]
#[repr(C)]
pub(super) struct LookAheadFifo<P> {
    /// When the last packet so far has left.
    busy_until: Time,
    /// Bytes that wait.
    bytes: u64,
    /// When each waiting packet starts, and its size.
    waiting: VecDeque<(Time, u32)>,
    /// All that was ever accepted.
    accepted: Tally,
    link: TransmissionClock,
    /// Bytes above which packets are marked.
    threshold: u64,
    rules: Rules,
    cold: Box<ColdState<P>>,
}

/// What stays as configured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Bytes that the queue may hold.
    pub(super) limit: u64,
    /// Why packets beyond them are dropped.
    pub(super) full: DropReason,
    pub(super) marking: ArrivalRule,
    pub(super) not_ect: NotEct,
    pub(super) framing: Framing,
    pub(super) accounting: Accounting,
}

/// Fields off the hot path, boxed to keep the port small.
#[derive(Debug)]
struct ColdState<P> {
    counters: QueueCounters,
    dropped: Vec<(P, DropReason)>,
}

impl<P: Packet> LookAheadFifo<P> {
    pub(super) fn new(link: TransmissionClock, rules: Rules) -> Self {
        Self {
            busy_until: Time::ZERO,
            bytes: 0,
            waiting: VecDeque::new(),
            accepted: Tally::default(),
            link,
            // A length of whole bytes exceeds a threshold if it exceeds its whole part; an infinite
            // one becomes the largest number.
            threshold: rules.marking.threshold as u64,
            rules,
            cold: Box::new(ColdState {
                counters: QueueCounters::default(),
                dropped: Vec::new(),
            }),
        }
    }

    /// Reads what a packet will need, so that it is in the cache by then.
    #[inline]
    pub(super) fn read_ahead(&self) {
        hint::black_box(self.threshold);
        hint::black_box(self.waiting.front().map(|(start, _)| *start));
        hint::black_box(self.waiting.back().map(|(start, _)| *start));
    }

    /// Takes what has left the queue by `now` off its length.
    #[inline]
    pub(super) fn settle(&mut self, now: Time) {
        while let Some(&(start, size)) = self.waiting.front()
            && start <= now
        {
            self.waiting.pop_front();
            self.bytes -= u64::from(size);
        }
    }

    /// Finds room for a packet and the time of its departure.
    #[inline(always)]
    pub(super) fn forward(&mut self, now: Time, packet: &mut P) -> Forward {
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
        let wire_size = self.rules.framing.wire_size(packet.size());
        let size = match self.rules.accounting {
            Accounting::Packet => packet.size(),
            Accounting::Wire => wire_size,
        };
        let length = self.bytes + u64::from(size);
        if length > self.rules.limit {
            return self.drop(*packet, size, self.rules.full);
        }
        let congested = length > self.threshold;
        if congested && self.rules.not_ect == NotEct::Drop && packet.ecn() == Ecn::NotEct {
            return self.drop(*packet, size, DropReason::NotEct);
        }
        if start > now {
            self.waiting.push_back((start, size));
            self.bytes = length;
        }
        self.busy_until = start + self.link.advance(Bytes::new(u64::from(wire_size)));
        self.accepted.packets += 1;
        self.accepted.bytes += u64::from(size);
        if congested {
            mark(packet, &mut self.cold.counters, self.rules.marking.reason);
        }
        Forward::Sent(Passage {
            queue: 0,
            finish: self.busy_until,
            sojourn: start - now,
        })
    }

    #[cold]
    fn drop(&mut self, packet: P, size: u32, reason: DropReason) -> Forward {
        self.cold.counters.drop(reason, size);
        self.cold.dropped.push((packet, reason));
        Forward::Dropped(reason)
    }

    pub(super) fn dropped(&mut self) -> &mut Vec<(P, DropReason)> {
        &mut self.cold.dropped
    }

    /// Bytes that wait.
    #[inline]
    pub(super) fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    /// Packets that wait.
    pub(super) fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }

    #[inline]
    pub(super) fn busy_until(&self) -> Time {
        self.busy_until
    }

    pub(super) fn accepted(&self) -> Tally {
        self.accepted
    }

    pub(super) fn counters(&self) -> &QueueCounters {
        &self.cold.counters
    }
}
