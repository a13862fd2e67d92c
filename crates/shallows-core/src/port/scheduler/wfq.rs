//! Weighted fair queueing by virtual time: WF2Q+ (Bennett and Zhang, Transactions on Networking
//! 1997), the member of the family that stays within one packet of GPS in both directions.
//!
//! Every queue has a start tag S and a finish tag F for its head packet:
//! S = F of the packet before it, or max(F, V) when the queue was empty; F = S + size / r, where r
//! is the queue's share of the sum of all weights. Among the queues that have started (S <= V) the
//! one with the smallest F sends. V advances by the bytes sent and never lags behind the smallest
//! S. Tags count bytes of the whole port with 24 fraction bits; equal tags go to the lower queue.

use super::{Discipline, RoundObserver, Service, Sharing};
use crate::packet::Packet;
use crate::port::QueueSet;
use crate::port::queues::{Backlog, Queues};
use crate::units::Time;

const FRACTION_BITS: u32 = 24;

/// Virtual time at which all tags are shifted back: half the range is left for the spread.
const REBASE_AT: u64 = u64::MAX / 2;

#[derive(Clone, Copy, Debug)]
struct Lane {
    /// 1 / r in fixed point: sum of all weights over this weight.
    inverse_share: u64,
    start: u64,
    finish: u64,
}

/// Weighted fair queueing.
#[derive(Clone, Debug)]
pub struct Wfq {
    lanes: Vec<Lane>,
    virtual_time: u64,
}

impl Wfq {
    pub(crate) fn new(weights: &[u32]) -> Self {
        let sum: u64 = weights.iter().copied().map(u64::from).sum();
        let lane = |&weight: &u32| Lane {
            inverse_share: (sum << FRACTION_BITS) / u64::from(weight),
            start: 0,
            finish: 0,
        };
        Self {
            lanes: weights.iter().map(lane).collect(),
            virtual_time: 0,
        }
    }

    fn rebase(&mut self) {
        let base = self.virtual_time;
        for lane in &mut self.lanes {
            lane.start = lane.start.saturating_sub(base);
            lane.finish = lane.finish.saturating_sub(base);
        }
        self.virtual_time = 0;
    }
}

impl Discipline for Wfq {
    fn sharing(&self) -> Sharing {
        Sharing::Weights
    }

    #[inline]
    fn activate(&mut self, _now: Time, queue: usize, queues: &mut Queues) {
        let lane = &mut self.lanes[queue];
        lane.start = lane.start.max(self.virtual_time);
        lane.finish = lane.start + u64::from(queues.head_size(queue)) * lane.inverse_share;
    }

    #[inline(never)]
    fn select<P: Packet>(
        &mut self,
        _now: Time,
        ready: QueueSet,
        _backlog: Backlog<'_, P>,
        _rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        let earliest = ready.iter().map(|q| self.lanes[q].start).min()?;
        self.virtual_time = self.virtual_time.max(earliest);
        ready
            .iter()
            .filter(|&q| self.lanes[q].start <= self.virtual_time)
            .min_by_key(|&q| self.lanes[q].finish)
    }

    #[inline(never)]
    fn sent(&mut self, service: Service, queues: &mut Queues, _rounds: &mut impl RoundObserver) {
        self.virtual_time += u64::from(service.size) << FRACTION_BITS;
        let lane = &mut self.lanes[service.queue];
        lane.start = lane.finish;
        if !service.emptied {
            let next = queues.head_size(service.queue);
            lane.finish = lane.start + u64::from(next) * lane.inverse_share;
        }
        if self.virtual_time > REBASE_AT {
            self.rebase();
        }
    }

    #[inline]
    fn passed(&mut self, service: Service, _queues: &mut Queues, _rounds: &mut impl RoundObserver) {
        let lane = &mut self.lanes[service.queue];
        let start = lane.start.max(self.virtual_time);
        lane.start = start + u64::from(service.size) * lane.inverse_share;
        self.virtual_time = start + (u64::from(service.size) << FRACTION_BITS);
        if self.virtual_time > REBASE_AT {
            self.rebase();
        }
    }
}
