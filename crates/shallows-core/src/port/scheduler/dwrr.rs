//! Deficit weighted round robin with an active list (MQ-ECN §3.3.2 and §4.2; Shreedhar and
//! Varghese, SIGCOMM 1995).
//!
//! The list holds the queues that have packets. The queue at its head is granted its quantum once
//! and sends while its deficit counter covers the head packet; then it goes to the tail with what
//! is left of the counter, or leaves the list with the counter reset when it has become empty.
//! Over M rounds a backlogged queue sends M x quantum bytes, give or take one MTU (eq. 7).

use super::{Discipline, RoundObserver, Service, Sharing};
use crate::packet::Packet;
use crate::port::queues::{Backlog, Queues};
use crate::port::{MAX_QUEUES, QueueSet};
use crate::units::Time;

/// Deficit weighted round robin.
#[derive(Clone, Debug)]
pub struct Dwrr {
    /// The active list. Its head has been granted its quantum for this round.
    active: Ring,
}

impl Dwrr {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            active: Ring::new(count),
        }
    }

    /// Grants the queue that has come to the head of the list its quantum.
    #[inline]
    fn grant(&mut self, queues: &mut Queues) {
        if let Some(queue) = self.active.front() {
            let lane = queues.lane(queue);
            lane.deficit += lane.quantum;
        }
    }
}

impl Discipline for Dwrr {
    fn sharing(&self) -> Sharing {
        Sharing::Rounds
    }

    #[inline]
    fn activate(&mut self, now: Time, queue: usize, queues: &mut Queues) {
        let lane = queues.lane(queue);
        lane.deficit = 0;
        lane.start = lane.start.max(now);
        self.active.push(queue);
        if self.active.len == 1 {
            self.grant(queues);
        }
    }

    fn deactivate(&mut self, queue: usize, queues: &mut Queues) {
        let was_head = self.active.front() == Some(queue);
        self.active.remove(queue);
        if was_head {
            self.grant(queues);
        }
    }

    #[inline(always)]
    fn select<P: Packet>(
        &mut self,
        now: Time,
        _ready: QueueSet,
        Backlog { queues, .. }: Backlog<'_, P>,
        rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        loop {
            let queue = self.active.front()?;
            let head = queues.head_size(queue);
            let lane = queues.lane(queue);
            if head <= lane.deficit {
                return Some(queue);
            }
            rounds.round_ended(now, queue, now - lane.start);
            lane.start = now;
            self.active.rotate();
            self.grant(queues);
        }
    }

    #[inline(always)]
    fn sent(&mut self, service: Service, queues: &mut Queues, rounds: &mut impl RoundObserver) {
        let lane = queues.lane(service.queue);
        lane.deficit -= service.size;
        if service.emptied {
            let sample = service.finish - lane.start;
            rounds.round_ended(service.now, service.queue, sample);
            lane.start = service.finish;
            self.active.pop();
            self.grant(queues);
        }
    }

    /// A packet larger than the quantum would take several rounds.
    #[inline]
    fn passes(&self, queue: usize, size: u32, queues: &Queues) -> bool {
        size <= queues.quantum(queue)
    }

    #[inline]
    fn passed(&mut self, service: Service, queues: &mut Queues, rounds: &mut impl RoundObserver) {
        let lane = queues.lane(service.queue);
        let start = lane.start.max(service.now);
        rounds.round_ended(service.now, service.queue, service.finish - start);
        lane.start = service.finish;
    }
}

/// A list of queue numbers, each at most once. It turns in the first places only, so that few
/// queues do with few bytes.
#[derive(Clone, Debug)]
#[repr(C)]
struct Ring {
    head: u8,
    len: u8,
    /// The last place that is used; one less than a power of two.
    last: u8,
    queues: [u8; MAX_QUEUES],
}

impl Ring {
    fn new(count: usize) -> Self {
        Self {
            head: 0,
            len: 0,
            last: (count.next_power_of_two() - 1) as u8,
            queues: [0; MAX_QUEUES],
        }
    }

    /// Slot of the queue at `position`.
    #[inline]
    fn slot(&self, position: u8) -> usize {
        usize::from(self.head.wrapping_add(position) & self.last) % MAX_QUEUES
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
