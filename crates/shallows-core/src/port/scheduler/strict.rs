//! Strict priority, and with a single queue FIFO.

use super::{Discipline, RoundObserver, Service};
use crate::packet::Packet;
use crate::port::QueueSet;
use crate::port::queues::{Backlog, Queues};
use crate::units::Time;

/// Serves the lowest-numbered queue that is ready, one packet at a time.
#[derive(Clone, Copy, Debug)]
pub struct StrictPriority;

impl Discipline for StrictPriority {
    fn keeps_order(&self, count: usize) -> bool {
        count == 1
    }

    #[inline]
    fn select<P: Packet>(
        &mut self,
        _now: Time,
        ready: QueueSet,
        _backlog: Backlog<'_, P>,
        _rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        ready.lowest()
    }

    #[inline]
    fn passed(
        &mut self,
        _service: Service,
        _queues: &mut Queues,
        _rounds: &mut impl RoundObserver,
    ) {
    }
}
