//! Strict priority for a few queues, round robin for the rest (MQ-ECN §3.4).
//!
//! Operators "may reserve few (typically one) extra queues with strict higher priority"; the
//! others share what is left by WRR or DWRR in the lowest priority.

use super::{Discipline, RoundObserver, Service};
use crate::packet::Packet;
use crate::port::QueueSet;
use crate::port::queues::Queues;
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
    #[inline]
    fn activate<P: Packet>(&mut self, now: Time, queue: usize, queues: &Queues<P>) {
        if !self.strict.contains(queue) {
            self.rest.activate(now, queue, queues);
        }
    }

    fn deactivate(&mut self, queue: usize) {
        if !self.strict.contains(queue) {
            self.rest.deactivate(queue);
        }
    }

    #[inline]
    fn select<P: Packet>(
        &mut self,
        now: Time,
        ready: QueueSet,
        queues: &mut Queues<P>,
        rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        let urgent = ready.intersection(self.strict).lowest();
        urgent.or_else(|| {
            let below = ready.difference(self.strict);
            self.rest.select(now, below, queues, rounds)
        })
    }

    #[inline]
    fn sent<P: Packet>(
        &mut self,
        service: Service,
        queues: &Queues<P>,
        rounds: &mut impl RoundObserver,
    ) {
        if !self.strict.contains(service.queue) {
            self.rest.sent(service, queues, rounds);
        }
    }

    #[inline]
    fn passes(&self, queue: usize, size: u32) -> bool {
        self.strict.contains(queue) || self.rest.passes(queue, size)
    }

    #[inline]
    fn passed(&mut self, service: Service, rounds: &mut impl RoundObserver) {
        if !self.strict.contains(service.queue) {
            self.rest.passed(service, rounds);
        }
    }
}
