//! The state of a port that keeps queues, and what happens to a packet there.

use super::buffer::Buffer;
use super::classifier::Classifier;
use super::marker::{Marker, NotEct, Note};
use super::meter::Meter;
use super::queues::{Backlog, Queues, Stored};
use super::scheduler::{Discipline, Scheduler, Service};
use super::{
    Accounting, Departure, DropReason, Framing, MarkReason, Pool, QueueCounters, QueueSet,
    TokenBucket, Transmit,
};
use crate::packet::{Ecn, Packet};
use crate::units::{Bytes, Time, TransmissionClock};

/// All of a port but its scheduler, so that sending a packet can be compiled for each scheduler
/// and takes one dispatch.
///
/// In this order, so that what every packet touches lies in neighbouring cache lines.
#[derive(Debug)]
#[repr(C)]
pub(super) struct HotState<P> {
    /// When the link is free again.
    pub(super) busy_until: Time,
    /// Up to when idle time has been told to the marker.
    pub(super) idle_told: Time,
    pub(super) queues: Queues,
    pub(super) paused: QueueSet,
    pub(super) meter: Meter,
    pub(super) accounting: Accounting,
    /// Whether nothing shapes packets and nothing looks at them as they leave.
    pub(super) plain: bool,
    /// Whether a full buffer gives up queued packets.
    pub(super) evicts: bool,
    pub(super) not_ect: NotEct,
    pub(super) framing: Framing,
    pub(super) link: TransmissionClock,
    pub(super) buffer: Buffer,
    pub(super) marker: Marker,
    pub(super) cold: Box<ColdState<P>>,
    pub(super) classifier: Classifier,
}

/// Fields off the hot path, boxed to keep the port small.
#[derive(Debug)]
pub(super) struct ColdState<P> {
    pub(super) shaper: Option<TokenBucket>,
    pub(super) counters: Vec<QueueCounters>,
    pub(super) dropped: Vec<(P, DropReason)>,
}

/// A packet at the port: when, for which queue, and how many bytes it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) now: Time,
    pub(super) queue: usize,
    pub(super) size: u32,
}

impl<P: Packet> HotState<P> {
    /// The queue of a packet that arrives at `now`, and its size as it counts there.
    #[inline(always)]
    pub(super) fn receive(&self, now: Time, packet: &P) -> Arrival {
        let size = match self.accounting {
            Accounting::Packet => packet.size(),
            Accounting::Wire => self.framing.wire_size(packet.size()),
        };
        Arrival {
            now,
            queue: self.classifier.classify(packet),
            size,
        }
    }

    /// Finds room for a packet and asks the marker about it; or drops it.
    #[inline(always)]
    pub(super) fn admit(
        &mut self,
        arrival: Arrival,
        packet: &P,
        scheduler: &Scheduler,
        pool: &mut Pool<P>,
    ) -> Result<Note, DropReason> {
        let Arrival { now, queue, size } = arrival;
        if self.queues.backlogged().is_empty() {
            self.end_idle_time(now);
        }
        if let Some(reason) = self.buffer.refusal(queue, size, &self.queues, pool)
            && !(self.evicts && self.make_room(arrival, packet, scheduler, pool))
        {
            return Err(self.drop(queue, *packet, size, reason));
        }
        let seen = || {
            self.meter
                .seen(arrival, packet.dscp(), &self.queues, pool.used().get())
        };
        let note = self.marker.at_enqueue(seen, &self.queues);
        if note != Note::Pass && self.drops_unmarkable(note, packet) {
            return Err(self.drop(queue, *packet, size, DropReason::NotEct));
        }
        Ok(note)
    }

    /// Sends an admitted packet through an empty port, past its queue; when it has left.
    #[inline]
    pub(super) fn pass(
        &mut self,
        scheduler: &mut impl Discipline,
        Arrival { now, queue, size }: Arrival,
        wire_size: u32,
    ) -> Time {
        self.queues.count_pass(queue, size);
        let finish = self.occupy_link(now, wire_size);
        let service = Service {
            queue,
            size,
            now,
            finish,
            emptied: true,
        };
        scheduler.passed(service, &mut self.queues, &mut self.marker);
        finish
    }

    /// Starts a transmission; when its last bit is on the wire.
    #[inline]
    pub(super) fn occupy_link(&mut self, now: Time, wire_size: u32) -> Time {
        if now > self.busy_until {
            self.link.restart();
        }
        self.busy_until = now + self.link.advance(Bytes::new(u64::from(wire_size)));
        self.busy_until
    }

    /// Sends what `scheduler` selects from `ready`, if the shaper lets it.
    #[inline(always)]
    pub(super) fn serve(
        &mut self,
        scheduler: &mut impl Discipline,
        now: Time,
        ready: QueueSet,
        pool: &mut Pool<P>,
    ) -> Transmit<P> {
        let backlog = Backlog {
            queues: &mut self.queues,
            store: &mut pool.store,
        };
        let selected = scheduler.select(now, ready, backlog, &mut self.marker);
        let Some(queue) = selected else {
            return Transmit::Idle;
        };
        if !self.plain
            && let Some(at) = self.shaper_holds(now, queue, pool)
        {
            return Transmit::Wait(at);
        }
        let mut stored = self.queues.pop(queue, pool);
        let wire_size = self.framing.wire_size(stored.packet.size());
        let finish = self.occupy_link(now, wire_size);
        let service = Service {
            queue,
            size: stored.size,
            now,
            finish,
            emptied: !self.queues.backlogged().contains(queue),
        };
        if !self.plain {
            self.look_at_leaving(service, &mut stored, pool);
        }
        scheduler.sent(service, &mut self.queues, &mut self.marker);
        Transmit::Packet(Departure {
            packet: stored.packet,
            queue,
            finish,
            sojourn: now - stored.arrived,
        })
    }

    /// Until when the shaper holds the head of `queue` back; takes its tokens if it does not.
    #[inline(never)]
    fn shaper_holds(&mut self, now: Time, queue: usize, pool: &Pool<P>) -> Option<Time> {
        let shaper = self.cold.shaper.as_mut()?;
        let head = self.queues.head(queue, pool)?;
        let wire_size = self.framing.wire_size(head.packet.size());
        let at = shaper.ready_at(now, wire_size);
        if at > now {
            return Some(at);
        }
        shaper.spend(now, wire_size);
        None
    }

    /// Lets marker and meter look at a packet that has just left its queue.
    #[inline(never)]
    fn look_at_leaving(&mut self, service: Service, leaving: &mut Stored<P>, pool: &Pool<P>) {
        let Service { now, queue, .. } = service;
        if self.marker.needs().dequeue {
            let subject = Arrival {
                now,
                queue,
                size: leaving.size,
            };
            let (stage, pool) = (leaving.packet.dscp(), pool.used().get());
            let seen = self.meter.seen(subject, stage, &self.queues, pool);
            let sojourn = now - leaving.arrived;
            let decision = self
                .marker
                .at_dequeue(seen, &self.queues, sojourn, leaving.noted);
            if let Some(reason) = decision {
                mark(&mut leaving.packet, &mut self.cold.counters[queue], reason);
            }
        }
        self.meter.sent(queue, leaving.size, service.finish);
        self.marker.served(service, &self.queues);
    }

    /// Tells the marker how long the port has been empty and silent.
    #[inline]
    fn end_idle_time(&mut self, now: Time) {
        let since = self.busy_until.max(self.idle_told);
        if now > since {
            self.marker.idle_ended(now - since);
            self.idle_told = now;
        }
    }

    fn drops_unmarkable(&self, note: Note, packet: &P) -> bool {
        self.not_ect == NotEct::Drop && packet.ecn() == Ecn::NotEct && matches!(note, Note::Mark(_))
    }

    /// Does what the marker asked for when the last packet of `queue` was offered.
    #[inline(never)]
    pub(super) fn carry_out(&mut self, note: Note, queue: usize, pool: &mut Pool<P>) {
        match note {
            Note::Pass => {}
            Note::Remember => self.queues.tail_mut(queue, pool).noted = true,
            Note::Mark(reason) => {
                let packet = &mut self.queues.tail_mut(queue, pool).packet;
                mark(packet, &mut self.cold.counters[queue], reason);
            }
            Note::MarkHead(at, reason) => {
                let at = usize::from(at);
                if let Some(head) = self.queues.head_mut(at, pool) {
                    mark(head, &mut self.cold.counters[at], reason);
                }
            }
        }
    }

    /// Gives up the packets that the scheduler names until an arriving one fits; false if they do
    /// not suffice.
    #[cold]
    fn make_room(
        &mut self,
        Arrival { queue, size, .. }: Arrival,
        arriving: &P,
        scheduler: &Scheduler,
        pool: &mut Pool<P>,
    ) -> bool {
        while self
            .buffer
            .refusal(queue, size, &self.queues, pool)
            .is_some()
        {
            let victim = scheduler.victim(arriving, &self.queues, &pool.store);
            let Some(position) = victim else {
                return false;
            };
            let victim = self.queues.remove(queue, position, pool);
            self.drop(queue, victim.packet, victim.size, DropReason::Evicted);
        }
        true
    }

    #[cold]
    fn drop(&mut self, queue: usize, lost: P, size: u32, reason: DropReason) -> DropReason {
        self.cold.counters[queue].drop(reason, size);
        self.cold.dropped.push((lost, reason));
        reason
    }
}

/// Sets CE where the packet can carry it, and counts.
#[inline]
pub(super) fn mark<P: Packet>(packet: &mut P, counters: &mut QueueCounters, reason: MarkReason) {
    match packet.ecn() {
        Ecn::NotEct => counters.unmarkable += 1,
        Ecn::Ect0 | Ecn::Ect1 => {
            packet.mark_ce();
            counters.mark(reason);
        }
        Ecn::Ce => {}
    }
}
