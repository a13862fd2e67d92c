//! The way of packets through a plain port: queues, a scheduler and a scheme that decides as packets
//! arrive, and nothing else.
//!
//! No shaper, no pause, no eviction, no memory shared with other ports, lengths in bytes. Everything
//! that [`HotState`] asks for each packet is answered once in a window, and the code is compiled for
//! each common pair of scheduler and scheme. The naive reference of the port checks it, window by window
//! (`tests/port/windows.rs`).

use super::marker::{Alone, Marking, NotEct, Seen};
use super::queues::{Backlog, Stored};
use super::scheduler::{Discipline, Service};
use super::state::{Arrival, HotState, mark};
use super::{DropReason, Pool};
use crate::packet::{Ecn, Packet};
use crate::units::Time;

/// See [`EgressPort::run`](super::EgressPort::run).
// Never inlined: pairs would cost each other their registers.
#[inline(never)]
pub(super) fn run<P: Packet>(
    hot: &mut HotState<P>,
    (scheduler, scheme): (&mut impl Discipline, &mut impl Marking),
    due: &mut Time,
    (arrivals, end): (impl Iterator<Item = (Time, P)>, Time),
    pool: &mut Pool<P>,
    mut departed: impl FnMut(Time, P),
) {
    let mut next = *due;
    for (now, mut packet) in arrivals {
        while next <= now {
            next = send(hot, (scheduler, scheme), next, pool, &mut departed);
        }
        match receive(hot, (scheduler, scheme), now, &mut packet, pool) {
            Received::Sent(finish) => departed(finish, packet),
            Received::Queued if next == Time::MAX => next = hot.busy_until.max(now),
            Received::Queued | Received::Dropped => {}
        }
    }
    while next < end {
        next = send(hot, (scheduler, scheme), next, pool, &mut departed);
    }
    *due = next;
}

/// Outcome of an arriving packet.
enum Received {
    /// It leaves at once; when its last bit is on the wire.
    Sent(Time),
    Queued,
    Dropped,
}

/// Takes an arriving packet.
#[inline(always)]
fn receive<P: Packet>(
    hot: &mut HotState<P>,
    (scheduler, scheme): (&mut impl Discipline, &mut impl Marking),
    now: Time,
    packet: &mut P,
    pool: &mut Pool<P>,
) -> Received {
    let Arrival { queue, size, .. } = hot.receive(now, packet);
    let is_empty = hot.queues.backlogged().is_empty();
    if is_empty {
        hot.end_idle_time(now, &mut Alone(scheme));
    }
    let (queue_length, port_length) = hot.queues.lengths_with(queue, size);
    if let Some(reason) = hot.buffer.own_refusal(queue, queue_length, port_length) {
        hot.drop(queue, *packet, size, reason);
        return Received::Dropped;
    }
    let seen = Seen {
        now,
        queue,
        queue_length,
        port_length,
        pool_length: port_length,
        queue_packets: hot.queues.queue_packets(queue) + 1,
        stage: packet.dscp(),
    };
    if let Some(reason) = scheme.decide(seen, &hot.queues) {
        if hot.not_ect == NotEct::Drop && packet.ecn() == Ecn::NotEct {
            hot.drop(queue, *packet, size, DropReason::NotEct);
            return Received::Dropped;
        }
        mark(packet, &mut hot.cold.counters[queue], reason);
    }
    let is_silent = is_empty && now >= hot.busy_until;
    if is_silent && scheduler.passes(queue, size, &hot.queues) {
        let wire_size = hot.framing.wire_size(packet.size());
        let arrival = Arrival { now, queue, size };
        return Received::Sent(hot.pass((scheduler, &mut Alone(scheme)), arrival, wire_size));
    }
    let stored = Stored {
        packet: *packet,
        arrived: now,
        size,
        noted: false,
    };
    if hot.queues.push(queue, stored, pool) {
        scheduler.activate(now, queue, &mut hot.queues);
    }
    Received::Queued
}

/// Sends the next packet at `now`, when the link is free; when the one after it is due.
#[inline(always)]
fn send<P: Packet>(
    hot: &mut HotState<P>,
    (scheduler, scheme): (&mut impl Discipline, &mut impl Marking),
    now: Time,
    pool: &mut Pool<P>,
    departed: &mut impl FnMut(Time, P),
) -> Time {
    let ready = hot.queues.backlogged();
    let backlog = Backlog {
        queues: &mut hot.queues,
        store: &mut pool.store,
    };
    let Some(queue) = scheduler.select(now, ready, backlog, &mut Alone(scheme)) else {
        return Time::MAX;
    };
    let Stored { packet, size, .. } = hot.queues.pop(queue, pool);
    let finish = hot.occupy_link(now, hot.framing.wire_size(packet.size()));
    let service = Service {
        queue,
        size,
        now,
        finish,
        emptied: !hot.queues.backlogged().contains(queue),
    };
    scheduler.sent(service, &mut hot.queues, &mut Alone(scheme));
    departed(finish, packet);
    if hot.queues.bytes() > 0 {
        finish
    } else {
        Time::MAX
    }
}
