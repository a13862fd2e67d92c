//! Strict priority for a few queues, round robin for the rest (MQ-ECN §3.4).
//!
//! Operators "may reserve few (typically one) extra queues with strict higher priority"; the
//! others share what is left by WRR or DWRR in the lowest priority.

use super::{Discipline, RoundObserver, Service, Sharing};
use crate::packet::Packet;
use crate::port::QueueSet;
use crate::port::queues::{Backlog, Queues};
use crate::units::Time;

/// Serves the `strict` queues in order of their number before it asks the round robin.
#[derive(Clone, Debug)]
pub struct StrictOver<R> {
    strict: QueueSet,
    rest: R,
}

impl<R> StrictOver<R> {
    pub(crate) fn new(strict: QueueSet, rest: R) -> Self {
        Self { strict, rest }
    }
}

impl<R: Discipline> Discipline for StrictOver<R> {
    fn sharing(&self) -> Sharing {
        self.rest.sharing()
    }

    #[inline]
    fn activate(&mut self, now: Time, queue: usize, queues: &mut Queues) {
        if !self.strict.contains(queue) {
            self.rest.activate(now, queue, queues);
        }
    }

    fn deactivate(&mut self, queue: usize, queues: &mut Queues) {
        if !self.strict.contains(queue) {
            self.rest.deactivate(queue, queues);
        }
    }

    #[inline]
    fn select<P: Packet>(
        &mut self,
        now: Time,
        ready: QueueSet,
        backlog: Backlog<'_, P>,
        rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        let urgent = ready.intersection(self.strict).lowest();
        urgent.or_else(|| {
            let below = ready.difference(self.strict);
            self.rest.select(now, below, backlog, rounds)
        })
    }

    #[inline]
    fn sent(&mut self, service: Service, queues: &mut Queues, rounds: &mut impl RoundObserver) {
        if !self.strict.contains(service.queue) {
            self.rest.sent(service, queues, rounds);
        }
    }

    #[inline]
    fn passes(&self, queue: usize, size: u32, queues: &Queues) -> bool {
        self.strict.contains(queue) || self.rest.passes(queue, size, queues)
    }

    #[inline]
    fn passed(&mut self, service: Service, queues: &mut Queues, rounds: &mut impl RoundObserver) {
        if !self.strict.contains(service.queue) {
            self.rest.passed(service, queues, rounds);
        }
    }
}
