//! The state of a port that keeps queues, and what happens to a packet there.

use super::buffer::Buffer;
use super::classifier::Classifier;
use super::framing::Sizes;
use super::link::Link;
use super::marker::{Judge, NotEct, Note};
use super::meter::Meter;
use super::queues::{Backlog, Queues, Stored};
use super::scheduler::{Discipline, Service};
use super::{
    Departure, DropReason, Forward, MarkReason, Passage, Pool, QueueCounters, QueueSet,
    TokenBucket, Transmit,
};
use crate::packet::{Ecn, Packet};
use crate::units::Time;

/// All of a port but its scheduler, so that sending a packet can be compiled for each scheduler
/// and takes one dispatch.
///
/// In this order, so that what every packet touches lies in neighbouring cache lines.
#[derive(Debug)]
#[repr(C)]
pub(super) struct HotState<P> {
    pub(super) link: Link,
    pub(super) queues: Queues,
    pub(super) paused: QueueSet,
    pub(super) meter: Meter,
    pub(super) sizes: Sizes,
    /// Nothing shapes packets, and nothing looks at them as they leave.
    pub(super) direct: bool,
    /// The port is [plain](super::plain) while it is not paused and its pool has no limit.
    pub(super) plain: bool,
    /// True if a full buffer gives up queued packets.
    pub(super) evicts: bool,
    pub(super) not_ect: NotEct,
    pub(super) buffer: Buffer,
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
        Arrival {
            now,
            queue: self.classifier.classify(packet),
            size: self.sizes.counted(packet.size()),
        }
    }

    /// Finds room for a packet and asks the marker about it; or drops it.
    #[inline(always)]
    pub(super) fn admit(
        &mut self,
        arrival: Arrival,
        packet: &P,
        (scheduler, marker): (&mut impl Discipline, &mut impl Judge),
        pool: &mut Pool<P>,
    ) -> Result<Note, DropReason> {
        let Arrival { now, queue, size } = arrival;
        if self.queues.backlogged().is_empty() {
            self.link.end_idle_time(now, marker);
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
        let note = marker.at_enqueue(seen, &self.queues);
        if !matches!(note, Note::Pass) && self.drops_unmarkable(note, packet) {
            return Err(self.drop(queue, *packet, size, DropReason::NotEct));
        }
        Ok(note)
    }

    /// See [`EgressPort::forward`](super::EgressPort::forward).
    #[inline(always)]
    pub(super) fn forward(
        &mut self,
        (scheduler, marker): (&mut impl Discipline, &mut impl Judge),
        now: Time,
        packet: &mut P,
        pool: &mut Pool<P>,
    ) -> Forward {
        let silent = self.queues.backlogged().is_empty() && now >= self.link.busy_until;
        let arrival = self.receive(now, packet);
        let note = match self.admit(arrival, packet, (scheduler, marker), pool) {
            Ok(note) => note,
            Err(reason) => return Forward::Dropped(reason),
        };
        if silent && matches!(note, Note::Pass) {
            let Arrival { queue, size, .. } = arrival;
            let unhindered = self.direct && !self.paused.contains(queue);
            if unhindered && scheduler.passes(queue, size, &self.queues) {
                let wire_size = self.sizes.on_wire(packet.size());
                let finish = self.pass((scheduler, marker), arrival, wire_size);
                return Forward::Sent(Passage {
                    queue,
                    finish,
                    sojourn: Time::ZERO,
                });
            }
        }
        self.enqueue(arrival, *packet, note, scheduler, pool);
        if silent {
            self.send_stored((scheduler, marker), now, packet, pool)
        } else {
            Forward::Queued
        }
    }

    /// The long way of [`forward`](Self::forward): the port was empty, so what it sends is the
    /// packet that has just come.
    #[inline(never)]
    fn send_stored(
        &mut self,
        parts: (&mut impl Discipline, &mut impl Judge),
        now: Time,
        packet: &mut P,
        pool: &mut Pool<P>,
    ) -> Forward {
        match self.transmit(parts, now, pool) {
            Transmit::Packet(departure) => {
                *packet = departure.packet;
                Forward::Sent(Passage {
                    queue: departure.queue,
                    finish: departure.finish,
                    sojourn: departure.sojourn,
                })
            }
            Transmit::Wait(_) | Transmit::Idle => Forward::Queued,
        }
    }

    /// Puts an admitted packet into its queue.
    #[inline(always)]
    pub(super) fn enqueue(
        &mut self,
        Arrival { now, queue, size }: Arrival,
        packet: P,
        note: Note,
        scheduler: &mut impl Discipline,
        pool: &mut Pool<P>,
    ) {
        let stored = Stored {
            packet,
            arrived: now,
            size,
            noted: false,
        };
        let first = self.queues.push(queue, stored, pool);
        scheduler.stored(&packet, self.queues.tail(queue));
        if !matches!(note, Note::Pass) {
            self.carry_out(note, queue, pool);
        }
        if first && !self.paused.contains(queue) {
            scheduler.activate(now, queue, &mut self.queues);
        }
    }

    /// See [`EgressPort::transmit`](super::EgressPort::transmit).
    #[inline(always)]
    pub(super) fn transmit(
        &mut self,
        parts: (&mut impl Discipline, &mut impl Judge),
        now: Time,
        pool: &mut Pool<P>,
    ) -> Transmit<P> {
        let ready = self.queues.backlogged().difference(self.paused);
        if ready.is_empty() {
            return Transmit::Idle;
        }
        if now < self.link.busy_until {
            return Transmit::Wait(self.link.busy_until);
        }
        self.serve(parts, now, ready, pool)
    }

    /// See [`EgressPort::run`](super::EgressPort::run).
    #[inline(always)]
    pub(super) fn run<'a>(
        &mut self,
        (scheduler, marker): (&mut impl Discipline, &mut impl Judge),
        due: &mut Time,
        (arrivals, end): (impl Iterator<Item = (Time, &'a mut P)>, Time),
        pool: &mut Pool<P>,
        mut departed: impl FnMut(Time, &P),
    ) where
        P: 'a,
    {
        for (now, packet) in arrivals {
            while *due <= now {
                *due = self.send_due((scheduler, marker), *due, pool, &mut departed);
            }
            match self.forward((scheduler, marker), now, packet, pool) {
                Forward::Sent(passage) => departed(passage.finish, packet),
                Forward::Queued if *due == Time::MAX => *due = self.link.busy_until.max(now),
                Forward::Queued | Forward::Dropped(_) => {}
            }
        }
        while *due < end {
            *due = self.send_due((scheduler, marker), *due, pool, &mut departed);
        }
    }

    /// Sends the packet that is due at `now`; when the next one is.
    #[inline(always)]
    fn send_due(
        &mut self,
        parts: (&mut impl Discipline, &mut impl Judge),
        now: Time,
        pool: &mut Pool<P>,
        departed: &mut impl FnMut(Time, &P),
    ) -> Time {
        match self.transmit(parts, now, pool) {
            Transmit::Packet(departure) => {
                departed(departure.finish, &departure.packet);
                if self.queues.bytes() > 0 {
                    departure.finish
                } else {
                    Time::MAX
                }
            }
            Transmit::Wait(at) => at,
            Transmit::Idle => Time::MAX,
        }
    }

    /// Sends an admitted packet through an empty port, past its queue; when it has left.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        (scheduler, marker): (&mut impl Discipline, &mut impl Judge),
        Arrival { now, queue, size }: Arrival,
        wire_size: u32,
    ) -> Time {
        self.queues.count_pass(queue, size);
        let finish = self.link.occupy(now, wire_size);
        let service = Service {
            queue,
            size,
            now,
            finish,
            emptied: true,
        };
        scheduler.passed(service, &mut self.queues, marker);
        finish
    }

    /// Sends what `scheduler` selects from `ready`, if the shaper lets it.
    #[inline(always)]
    pub(super) fn serve(
        &mut self,
        (scheduler, marker): (&mut impl Discipline, &mut impl Judge),
        now: Time,
        ready: QueueSet,
        pool: &mut Pool<P>,
    ) -> Transmit<P> {
        let backlog = Backlog {
            queues: &mut self.queues,
            store: &mut pool.store,
        };
        let selected = scheduler.select(now, ready, backlog, marker);
        let Some(queue) = selected else {
            return Transmit::Idle;
        };
        if !self.direct
            && let Some(at) = self.shaper_holds(now, queue, pool)
        {
            return Transmit::Wait(at);
        }
        let mut stored = self.queues.pop(queue, pool);
        let wire_size = self.sizes.on_wire(stored.packet.size());
        let finish = self.link.occupy(now, wire_size);
        let service = Service {
            queue,
            size: stored.size,
            now,
            finish,
            emptied: !self.queues.backlogged().contains(queue),
        };
        if !self.direct {
            self.look_at_leaving(service, &mut stored, marker, pool);
        }
        scheduler.sent(service, &mut self.queues, marker);
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
        let wire_size = self.sizes.on_wire(head.packet.size());
        let at = shaper.ready_at(now, wire_size);
        if at > now {
            return Some(at);
        }
        shaper.spend(now, wire_size);
        None
    }

    /// Lets marker and meter look at a packet that has just left its queue.
    #[inline(never)]
    fn look_at_leaving(
        &mut self,
        service: Service,
        leaving: &mut Stored<P>,
        marker: &mut impl Judge,
        pool: &Pool<P>,
    ) {
        let Service { now, queue, .. } = service;
        if marker.needs().dequeue {
            let subject = Arrival {
                now,
                queue,
                size: leaving.size,
            };
            let (stage, pool) = (leaving.packet.dscp(), pool.used().get());
            let seen = self.meter.seen(subject, stage, &self.queues, pool);
            let sojourn = now - leaving.arrived;
            let decision = marker.at_dequeue(seen, &self.queues, sojourn, leaving.noted);
            if let Some(reason) = decision {
                mark(&mut leaving.packet, &mut self.cold.counters[queue], reason);
            }
        }
        self.meter.sent(queue, leaving.size, service.finish);
        marker.served(service, &self.queues);
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
        scheduler: &mut impl Discipline,
        pool: &mut Pool<P>,
    ) -> bool {
        while self
            .buffer
            .refusal(queue, size, &self.queues, pool)
            .is_some()
        {
            let backlog = Backlog {
                queues: &mut self.queues,
                store: &mut pool.store,
            };
            if !scheduler.give_up(arriving, backlog) {
                return false;
            }
            let victim = self.queues.pop(queue, pool);
            self.drop(queue, victim.packet, victim.size, DropReason::Evicted);
        }
        true
    }

    #[cold]
    pub(super) fn drop(
        &mut self,
        queue: usize,
        lost: P,
        size: u32,
        reason: DropReason,
    ) -> DropReason {
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
