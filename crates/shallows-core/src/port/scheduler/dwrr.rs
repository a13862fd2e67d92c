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
    active: ActiveList,
    /// Whether the queue at the head of the list has been granted its quantum in this round.
    granted: bool,
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
            active: ActiveList::default(),
            granted: false,
        }
    }
}

impl Discipline for Dwrr {
    #[inline]
    fn activate<P: Packet>(&mut self, now: Time, queue: usize, _queues: &Queues<P>) {
        // A queue that was paused and resumed before its turn came has never left the list.
        if self.active.members.contains(queue) {
            return;
        }
        let lane = &mut self.lanes[queue];
        lane.deficit = 0;
        lane.start = lane.start.max(now);
        self.active.push(queue);
    }

    #[inline]
    fn select<P: Packet>(
        &mut self,
        now: Time,
        ready: QueueSet,
        queues: &mut Queues<P>,
        rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        loop {
            let queue = self.active.front()?;
            if !ready.contains(queue) {
                self.active.pop();
                self.granted = false;
                continue;
            }
            let lane = &mut self.lanes[queue];
            if !self.granted {
                lane.deficit += lane.quantum;
                self.granted = true;
            }
            if queues.head_size(queue) <= lane.deficit {
                return Some(queue);
            }
            rounds.round_ended(now, queue, now - lane.start);
            lane.start = now;
            self.active.rotate();
            self.granted = false;
        }
    }

    #[inline]
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
            self.granted = false;
        }
    }
}

/// The active list: a ring of queue numbers, each at most once.
#[derive(Clone, Debug)]
struct ActiveList {
    ring: [u8; MAX_QUEUES],
    head: u8,
    len: u8,
    members: QueueSet,
}

impl Default for ActiveList {
    fn default() -> Self {
        Self {
            ring: [0; MAX_QUEUES],
            head: 0,
            len: 0,
            members: QueueSet::EMPTY,
        }
    }
}

impl ActiveList {
    #[inline]
    fn front(&self) -> Option<usize> {
        (self.len > 0).then(|| usize::from(self.ring[usize::from(self.head) % MAX_QUEUES]))
    }

    #[inline]
    fn push(&mut self, queue: usize) {
        let tail = usize::from(self.head) + usize::from(self.len);
        self.ring[tail % MAX_QUEUES] = queue as u8;
        self.len += 1;
        self.members.insert(queue);
    }

    #[inline]
    fn pop(&mut self) {
        if let Some(queue) = self.front() {
            self.members.remove(queue);
            self.head = (self.head + 1) % MAX_QUEUES as u8;
            self.len -= 1;
        }
    }

    /// Moves the head to the tail.
    #[inline]
    fn rotate(&mut self) {
        if let Some(queue) = self.front() {
            self.pop();
            self.push(queue);
        }
    }
}
