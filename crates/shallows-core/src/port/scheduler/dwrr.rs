//! Deficit weighted round robin with an active list (MQ-ECN §3.3.2 and §4.2; Shreedhar and
//! Varghese, SIGCOMM 1995).
//!
//! The list holds the queues that have packets. The queue at its head is granted its quantum once
//! and sends while its deficit counter covers the head packet; then it goes to the tail with what
//! is left of the counter, or leaves the list with the counter reset when it has become empty.
//! Over M rounds a backlogged queue sends M x quantum bytes, give or take one MTU (eq. 7).

use super::{Discipline, RoundObserver, Service};
use crate::packet::Packet;
use crate::port::queues::Queues;
use crate::port::{MAX_QUEUES, QueueSet};
use crate::units::Time;

#[derive(Clone, Copy, Debug)]
struct Lane {
    quantum: u32,
    deficit: u32,
    /// When the queue was last put at the tail of the list: T_start of §4.2.
    start: Time,
}

/// Deficit weighted round robin.
#[derive(Clone, Debug)]
pub struct Dwrr {
    lanes: Vec<Lane>,
    /// The active list. Its head has been granted its quantum for this round.
    active: Ring,
}

impl Dwrr {
    pub(crate) fn new(quanta: &[u32]) -> Self {
        let lane = |&quantum| Lane {
            quantum,
            deficit: 0,
            start: Time::ZERO,
        };
        Self {
            lanes: quanta.iter().map(lane).collect(),
            active: Ring::default(),
        }
    }

    /// Grants the queue that has come to the head of the list its quantum.
    #[inline]
    fn grant(&mut self) {
        if let Some(queue) = self.active.front() {
            let lane = &mut self.lanes[queue];
            lane.deficit += lane.quantum;
        }
    }
}

impl Discipline for Dwrr {
    #[inline]
    fn activate<P: Packet>(&mut self, now: Time, queue: usize, _queues: &Queues<P>) {
        let lane = &mut self.lanes[queue];
        lane.deficit = 0;
        lane.start = lane.start.max(now);
        self.active.push(queue);
        if self.active.len == 1 {
            self.grant();
        }
    }

    fn deactivate(&mut self, queue: usize) {
        let was_head = self.active.front() == Some(queue);
        self.active.remove(queue);
        if was_head {
            self.grant();
        }
    }

    #[inline(always)]
    fn select<P: Packet>(
        &mut self,
        now: Time,
        _ready: QueueSet,
        queues: &mut Queues<P>,
        rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        loop {
            let queue = self.active.front()?;
            let lane = &mut self.lanes[queue];
            if queues.head_size(queue) <= lane.deficit {
                return Some(queue);
            }
            rounds.round_ended(now, queue, now - lane.start);
            lane.start = now;
            self.active.rotate();
            self.grant();
        }
    }

    #[inline(always)]
    fn sent<P: Packet>(
        &mut self,
        service: Service,
        _queues: &Queues<P>,
        rounds: &mut impl RoundObserver,
    ) {
        let lane = &mut self.lanes[service.queue];
        lane.deficit -= service.size;
        if service.emptied {
            let sample = service.finish - lane.start;
            rounds.round_ended(service.now, service.queue, sample);
            lane.start = service.finish;
            self.active.pop();
            self.grant();
        }
    }

    /// A packet larger than the quantum would take several rounds.
    #[inline]
    fn passes(&self, queue: usize, size: u32) -> bool {
        size <= self.lanes[queue].quantum
    }

    #[inline]
    fn passed(&mut self, service: Service, rounds: &mut impl RoundObserver) {
        let lane = &mut self.lanes[service.queue];
        let start = lane.start.max(service.now);
        rounds.round_ended(service.now, service.queue, service.finish - start);
        lane.start = service.finish;
    }
}

/// A list of queue numbers, each at most once.
#[derive(Clone, Debug)]
struct Ring {
    queues: [u8; MAX_QUEUES],
    head: u8,
    len: u8,
}

impl Default for Ring {
    fn default() -> Self {
        Self {
            queues: [0; MAX_QUEUES],
            head: 0,
            len: 0,
        }
    }
}

impl Ring {
    /// Where the queue at `position` stands.
    #[inline]
    fn slot(&self, position: u8) -> usize {
        usize::from(self.head.wrapping_add(position)) % MAX_QUEUES
    }

    #[inline]
    fn front(&self) -> Option<usize> {
        (self.len > 0).then(|| usize::from(self.queues[self.slot(0)]))
    }

    #[inline]
    fn push(&mut self, queue: usize) {
        self.queues[self.slot(self.len)] = queue as u8;
        self.len += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
    }

    /// Moves the head to the tail.
    #[inline]
    fn rotate(&mut self) {
        self.queues[self.slot(self.len)] = self.queues[self.slot(0)];
        self.head = self.head.wrapping_add(1);
    }

    /// Takes a queue out wherever it stands, keeping the order of the others.
    #[cold]
    fn remove(&mut self, queue: usize) {
        for _ in 0..self.len {
            self.rotate();
            if usize::from(self.queues[self.slot(self.len - 1)]) == queue {
                self.len -= 1;
            }
        }
    }
}
