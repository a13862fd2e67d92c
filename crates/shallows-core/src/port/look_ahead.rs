//! A FIFO whose departures are known when packets arrive.
//!
//! In a FIFO that nothing paces and whose marker looks at lengths on arrival only, nothing that
//! comes later changes when a packet leaves. Such a port can tell it at once, and its driver is
//! spared an event for each packet that waits. The packets are with the driver then; the port keeps
//! the times at which they leave the queue, to know how long it is.

use super::framing::Sizes;
use super::marker::{ArrivalRule, NotEct};
use super::state::mark;
use super::{DropReason, Passage, QueueCounters};
use crate::packet::{Ecn, Packet};
use crate::tally::Tally;
use crate::units::{Bytes, Time, TransmissionClock};

/// A FIFO that looks ahead.
#[derive(Debug)]
#[repr(C)]
pub(super) struct LookAheadFifo<P> {
    /// Departure time of the last packet so far.
    busy_until: Time,
    /// Bytes that wait.
    bytes: u64,
    waiting: Waiting,
    /// All that was ever accepted.
    accepted: Tally,
    link: TransmissionClock,
    /// Bytes above which packets are marked.
    threshold: u64,
    /// Largest number of bytes that have waited at once.
    peak: u64,
    rules: Rules,
    cold: Box<ColdState<P>>,
}

/// Start times and sizes of waiting packets, in a ring whose length is 0 or a power of two, so that
/// positions wrap by a mask.
#[derive(Debug, Default)]
struct Waiting {
    ring: Box<[(Time, u32)]>,
    /// Packets that were ever taken from the ring and put into it.
    taken: u32,
    put: u32,
}

impl Waiting {
    #[inline]
    fn len(&self) -> u32 {
        self.put.wrapping_sub(self.taken)
    }

    #[inline]
    fn get(&self, number: u32) -> Option<&(Time, u32)> {
        let mask = self.ring.len().wrapping_sub(1);
        self.ring.get(number as usize & mask)
    }

    /// Takes the packets that start by `now`; how many bytes they have.
    #[inline]
    fn take_until(&mut self, now: Time) -> u64 {
        let (mut taken, mut bytes) = (self.taken, 0);
        while taken != self.put
            && let Some(&(start, size)) = self.get(taken)
            && start <= now
        {
            taken = taken.wrapping_add(1);
            bytes += u64::from(size);
        }
        self.taken = taken;
        bytes
    }

    #[inline]
    fn put(&mut self, start: Time, size: u32) {
        if self.len() as usize == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len().wrapping_sub(1);
        self.ring[self.put as usize & mask] = (start, size);
        self.put = self.put.wrapping_add(1);
    }

    #[cold]
    fn grow(&mut self) {
        let old = (0..self.len()).filter_map(|at| self.get(self.taken.wrapping_add(at)));
        let mut ring: Vec<_> = old.copied().collect();
        (self.taken, self.put) = (0, ring.len() as u32);
        ring.resize((2 * ring.len()).max(4), (Time::ZERO, 0));
        self.ring = ring.into();
    }
}

/// Configured, constant parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Bytes that the queue may hold.
    pub(super) limit: u64,
    /// The reason why packets beyond them are dropped.
    pub(super) full: DropReason,
    pub(super) marking: ArrivalRule,
    pub(super) not_ect: NotEct,
    pub(super) sizes: Sizes,
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
            waiting: Waiting::default(),
            accepted: Tally::default(),
            link,
            // A length of whole bytes exceeds a threshold if it exceeds its whole part; an infinite
            // one becomes the largest number.
            threshold: rules.marking.threshold as u64,
            peak: 0,
            rules,
            cold: Box::new(ColdState {
                counters: QueueCounters::default(),
                dropped: Vec::new(),
            }),
        }
    }

    /// Takes what has left the queue by `now` off its length.
    #[inline]
    pub(super) fn settle(&mut self, now: Time) {
        self.bytes -= self.waiting.take_until(now);
    }

    /// See [`EgressPort::run`](super::EgressPort::run).
    #[inline(never)]
    pub(super) fn run<'a>(
        &mut self,
        arrivals: impl Iterator<Item = (Time, &'a mut P)>,
        mut departed: impl FnMut(Time, &P),
    ) where
        P: 'a,
    {
        for (now, packet) in arrivals {
            if let Ok(passage) = self.forward(now, packet) {
                departed(passage.finish, packet);
            }
        }
    }

    /// Finds room for a packet and the time of its departure.
    #[inline(always)]
    pub(super) fn forward(&mut self, now: Time, packet: &mut P) -> Result<Passage, DropReason> {
        let start = self.busy_until.max(now);
        if start > now {
            self.settle(now);
        } else {
            self.waiting.taken = self.waiting.put;
            self.bytes = 0;
            if now > self.busy_until {
                self.link.restart();
            }
        }
        let (size, wire_size) = self.rules.sizes.both(packet.size());
        let length = self.bytes + u64::from(size);
        if length > self.rules.limit {
            return Err(self.drop(*packet, size, self.rules.full));
        }
        let congested = length > self.threshold;
        if congested && self.rules.not_ect == NotEct::Drop && packet.ecn() == Ecn::NotEct {
            return Err(self.drop(*packet, size, DropReason::NotEct));
        }
        if start > now {
            self.waiting.put(start, size);
            self.bytes = length;
            self.peak = self.peak.max(length);
        }
        // At a few bits per second the clock ends before the packet does.
        let transmission = self.link.advance(Bytes::new(u64::from(wire_size)));
        self.busy_until = start.saturating_add(transmission);
        self.accepted.packets += 1;
        self.accepted.bytes += u64::from(size);
        if congested {
            mark(packet, &mut self.cold.counters, self.rules.marking.reason);
        }
        Ok(Passage {
            queue: 0,
            finish: self.busy_until,
            sojourn: start - now,
        })
    }

    #[cold]
    fn drop(&mut self, packet: P, size: u32, reason: DropReason) -> DropReason {
        self.cold.counters.drop(reason, size);
        self.cold.dropped.push((packet, reason));
        reason
    }

    #[inline]
    pub(super) fn has_dropped(&self) -> bool {
        !self.cold.dropped.is_empty()
    }

    pub(super) fn dropped(&mut self) -> &mut Vec<(P, DropReason)> {
        &mut self.cold.dropped
    }

    /// Bytes that wait.
    #[inline]
    pub(super) fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    /// Largest number of bytes that have waited at once.
    pub(super) fn peak_bytes(&self) -> Bytes {
        Bytes::new(self.peak)
    }

    /// Packets that wait.
    pub(super) fn packets(&self) -> u32 {
        self.waiting.len()
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
