//! The way of packets through a plain port: queues, a scheduler and a scheme that decides as packets
//! arrive, and nothing else.
//!
//! No shaper, no pause, no eviction, no memory shared with other ports, lengths in bytes. Everything
//! that [`HotState`] asks for each packet is answered once in a window, and the code is compiled for
//! each common pair of scheduler and scheme. The naive reference of the port checks it, window by window
//! (`tests/port/windows.rs`).

use std::mem::{self, ManuallyDrop};

use super::link::Link;
use super::marker::{Alone, MarkPoint, Marking, NotEct, Note, Seen};
use super::queues::{Backlog, Queues, Stored};
use super::scheduler::{Discipline, Service};
use super::state::{HotState, mark};
use super::{DropReason, Pool};
use crate::packet::{Ecn, Packet};
use crate::units::Time;

/// See [`EgressPort::run`](super::EgressPort::run).
// Never inlined: pairs would cost each other their registers.
#[inline(never)]
pub(super) fn run<'a, P: Packet + 'a>(
    hot: &mut HotState<P>,
    (scheduler, scheme): (&mut impl Discipline, &mut impl Marking),
    due: &mut Time,
    (mut arrivals, end): (impl Iterator<Item = (Time, &'a mut P)>, Time),
    pool: &mut Pool<P>,
    mut departed: impl FnMut(Time, &P),
) {
    let mut port = Plain {
        link: hot.link.clone(),
        queues: ManuallyDrop::new(mem::take(&mut hot.queues)),
        hot,
        scheduler,
        scheme,
    };
    let mut next = *due;
    let mut arrival = arrivals.next();
    loop {
        let until = arrival.as_ref().map_or(end, |arrival| arrival.0 + TICK);
        while next < until {
            next = port.send(next, pool, &mut departed);
        }
        if port.queues.backlogged().is_empty() {
            arrival = port.pass(arrival, &mut arrivals, &mut departed);
        }
        let Some((now, packet)) = arrival else {
            break;
        };
        if port.receive(now, packet, pool) && next == Time::MAX {
            next = port.link.busy_until.max(now);
        }
        arrival = arrivals.next();
    }
    *due = next;
    port.hot.link = port.link;
    port.hot.queues = ManuallyDrop::into_inner(port.queues);
}

/// The least time.
const TICK: Time = Time::from_ps(1);

/// A port for one window. What changes with each packet is out of its place and in a local variable:
/// what the compiler knows to be changed by nobody else it keeps in registers.
struct Plain<'a, P, S, M> {
    link: Link,
    queues: ManuallyDrop<Queues>,
    hot: &'a mut HotState<P>,
    scheduler: &'a mut S,
    scheme: &'a mut M,
}

/// Lengths of a packet's queue and port in bytes, and packets in the queue, with the packet.
#[derive(Clone, Copy)]
struct Lengths {
    of_queue: u64,
    of_port: u64,
    packets: u32,
}

impl Lengths {
    /// Those of a packet in an empty port.
    #[inline(always)]
    fn alone(size: u32) -> Self {
        Self {
            of_queue: u64::from(size),
            of_port: u64::from(size),
            packets: 1,
        }
    }
}

impl<P: Packet, S: Discipline, M: Marking> Plain<'_, P, S, M> {
    /// Sends packets past the queues of the empty port, beginning with `arrival`; the first that
    /// cannot pass, if there is one.
    // A loop of its own: most packets pass, and all that it needs is in registers.
    #[inline(always)]
    fn pass<'a>(
        &mut self,
        mut arrival: Option<(Time, &'a mut P)>,
        arrivals: &mut impl Iterator<Item = (Time, &'a mut P)>,
        departed: &mut impl FnMut(Time, &P),
    ) -> Option<(Time, &'a mut P)> {
        while let Some((now, packet)) = arrival {
            let queue = self.hot.classifier.classify(packet);
            let (size, wire_size) = self.hot.sizes.both(packet.size());
            let alone = Lengths::alone(size);
            let is_hindered = now < self.link.busy_until
                || self.refusal(queue, alone).is_some()
                || !self.scheduler.passes(queue, size, &self.queues);
            if is_hindered {
                return Some((now, packet));
            }
            self.link.end_idle_time(now, &mut Alone(self.scheme));
            if self.judge(now, (queue, size), alone, packet) {
                self.queues.count_pass(queue, size);
                let finish = self.link.occupy(now, wire_size);
                let service = Service {
                    queue,
                    size,
                    now,
                    finish,
                    emptied: true,
                };
                self.scheme.served(service, &self.queues);
                let rounds = &mut Alone(self.scheme);
                self.scheduler.passed(service, &mut self.queues, rounds);
                departed(finish, packet);
            }
            arrival = arrivals.next();
        }
        None
    }

    /// Puts an arriving packet into its queue; false if it is dropped.
    #[inline(always)]
    fn receive(&mut self, now: Time, packet: &mut P, pool: &mut Pool<P>) -> bool {
        let queue = self.hot.classifier.classify(packet);
        let size = self.hot.sizes.counted(packet.size());
        if self.queues.backlogged().is_empty() {
            self.link.end_idle_time(now, &mut Alone(self.scheme));
        }
        let (of_queue, of_port) = self.queues.lengths_with(queue, size);
        let lengths = Lengths {
            of_queue,
            of_port,
            packets: self.queues.queue_packets(queue) + 1,
        };
        if let Some(reason) = self.refusal(queue, lengths) {
            self.hot.drop(queue, *packet, size, reason);
            return false;
        }
        if !self.judge(now, (queue, size), lengths, packet) {
            return false;
        }
        let stored = Stored {
            packet: *packet,
            arrived: now,
            size,
            noted: false,
        };
        if self.queues.push(queue, stored, pool) {
            self.scheduler.activate(now, queue, &mut self.queues);
        }
        true
    }

    /// The reason why a packet finds no room, if it does not.
    #[inline(always)]
    fn refusal(&self, queue: usize, lengths: Lengths) -> Option<DropReason> {
        let buffer = &self.hot.buffer;
        buffer.own_refusal(queue, lengths.of_queue, lengths.of_port)
    }

    /// Lets the scheme decide on a packet, and marks it if it is to be; false if it is dropped
    /// instead.
    #[inline(always)]
    fn judge(
        &mut self,
        now: Time,
        (queue, size): (usize, u32),
        lengths: Lengths,
        packet: &mut P,
    ) -> bool {
        let seen = Seen {
            now,
            queue,
            queue_length: lengths.of_queue,
            port_length: lengths.of_port,
            pool_length: lengths.of_port,
            queue_packets: lengths.packets,
            stage: packet.dscp(),
        };
        // Schemes that answer otherwise look at packets as they leave, or are of no common pair.
        let note = (self.scheme).at_enqueue(MarkPoint::Enqueue, seen, &self.queues);
        if let Note::Mark(reason) = note {
            if self.hot.not_ect == NotEct::Drop && packet.ecn() == Ecn::NotEct {
                self.hot.drop(queue, *packet, size, DropReason::NotEct);
                return false;
            }
            mark(packet, &mut self.hot.cold.counters[queue], reason);
        }
        true
    }

    /// Sends the next packet at `now`, when the link is free; when the one after it is due.
    #[inline(always)]
    fn send(&mut self, now: Time, pool: &mut Pool<P>, departed: &mut impl FnMut(Time, &P)) -> Time {
        let ready = self.queues.backlogged();
        let backlog = Backlog {
            queues: &mut self.queues,
            store: &mut pool.store,
        };
        let selected = (self.scheduler).select(now, ready, backlog, &mut Alone(self.scheme));
        let Some(queue) = selected else {
            return Time::MAX;
        };
        let Stored { packet, size, .. } = self.queues.pop(queue, pool);
        let wire_size = self.hot.sizes.on_wire(packet.size());
        let finish = self.link.occupy(now, wire_size);
        let service = Service {
            queue,
            size,
            now,
            finish,
            emptied: !self.queues.backlogged().contains(queue),
        };
        self.scheme.served(service, &self.queues);
        (self.scheduler).sent(service, &mut self.queues, &mut Alone(self.scheme));
        departed(finish, &packet);
        if self.queues.bytes() > 0 {
            finish
        } else {
            Time::MAX
        }
    }
}
