//! Schedulers from other crates.

use std::fmt::Debug;

use super::{Discipline, RoundObserver, Service, Sharing};
use crate::packet::Packet;
use crate::port::QueueSet;
use crate::port::queues::{Backlog, Queues};
use crate::units::Time;

/// A scheduler of another crate; the port calls it in this order.
///
/// [`select`](Self::select) may be asked again before the choice is sent (a shaper can make it
/// wait), so it must give the same answer until something changes.
pub trait Scheduling: Debug + Send {
    /// Sharing of the link among the queues, for markers that follow it.
    fn sharing(&self) -> Sharing {
        Sharing::None
    }

    /// Quantum in bytes or weight of a queue, for markers that follow it.
    fn weight(&self, _queue: usize) -> u32 {
        1
    }

    /// `queue` became ready to send: its first packet arrived, or it was resumed.
    fn activate(&mut self, _now: Time, _queue: usize, _queues: &Queues) {}

    /// `queue` is not ready any more although it has packets: it was paused.
    fn deactivate(&mut self, _queue: usize, _queues: &Queues) {}

    /// The queue to serve now, one of `ready`. If the scheduler has rounds, it reports their ends
    /// to `rounds`.
    fn select(
        &mut self,
        now: Time,
        ready: QueueSet,
        queues: &Queues,
        rounds: &mut dyn RoundObserver,
    ) -> Option<usize>;

    /// The head of the selected queue was taken.
    fn sent(&mut self, _service: Service, _queues: &Queues, _rounds: &mut dyn RoundObserver) {}
}

/// A scheduler behind a virtual call.
#[derive(Debug)]
pub(crate) struct CustomScheduler(pub(super) Box<dyn Scheduling>);

impl Discipline for CustomScheduler {
    fn sharing(&self) -> Sharing {
        self.0.sharing()
    }

    fn activate(&mut self, now: Time, queue: usize, queues: &mut Queues) {
        self.0.activate(now, queue, queues);
    }

    fn deactivate(&mut self, queue: usize, queues: &mut Queues) {
        self.0.deactivate(queue, queues);
    }

    #[inline(never)]
    fn select<P: Packet>(
        &mut self,
        now: Time,
        ready: QueueSet,
        Backlog { queues, .. }: Backlog<'_, P>,
        rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        let selected = self.0.select(now, ready, queues, rounds);
        selected.filter(|&queue| ready.contains(queue))
    }

    #[inline(never)]
    fn sent(&mut self, service: Service, queues: &mut Queues, rounds: &mut impl RoundObserver) {
        self.0.sent(service, queues, rounds);
    }

    /// Every packet takes the way through its queue, so that the scheduler sees it.
    fn passes(&self, _queue: usize, _size: u32, _queues: &Queues) -> bool {
        false
    }

    fn passed(
        &mut self,
        _service: Service,
        _queues: &mut Queues,
        _rounds: &mut impl RoundObserver,
    ) {
    }
}
