//! Weighted round robin with byte quanta (MQ-ECN §3.3.2).
//!
//! Queues are visited in a fixed cyclic order. In each visit a queue may send at most its quantum;
//! what it leaves unused is lost. A head packet larger than what is left of the quantum ends the
//! visit and waits for the next round. A packet larger than the whole quantum could never go that
//! way, so it is sent alone in its visit, the one case in which a queue exceeds its quantum: keep
//! quanta at an MTU or more.

use super::{Discipline, RoundObserver, Service, Sharing};
use crate::packet::Packet;
use crate::port::QueueSet;
use crate::port::queues::{Backlog, Queues};
use crate::units::Time;

/// Weighted round robin in a fixed cyclic order.
#[derive(Clone, Debug, Default)]
pub struct Wrr {
    current: usize,
    /// Bytes that `current` may still send in this visit; `None` before it has been granted its
    /// quantum.
    credit: Option<u32>,
}

impl Discipline for Wrr {
    fn sharing(&self) -> Sharing {
        Sharing::Rounds
    }

    #[inline]
    fn activate(&mut self, now: Time, queue: usize, queues: &mut Queues) {
        let lane = queues.lane(queue);
        lane.start = lane.start.max(now);
    }

    #[inline(always)]
    fn select<P: Packet>(
        &mut self,
        now: Time,
        ready: QueueSet,
        Backlog { queues, .. }: Backlog<'_, P>,
        rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        if !ready.contains(self.current) {
            self.current = ready.next_after(self.current)?;
            self.credit = None;
        }
        loop {
            let head = queues.head_size(self.current);
            let lane = queues.lane(self.current);
            match self.credit {
                None => {
                    // Lets an oversized packet through, and with nothing left behind it.
                    self.credit = Some(lane.quantum.max(head));
                    return Some(self.current);
                }
                Some(credit) if head <= credit => return Some(self.current),
                Some(_) => {
                    rounds.round_ended(now, self.current, now - lane.start);
                    lane.start = now;
                    self.current = ready.next_after(self.current)?;
                    self.credit = None;
                }
            }
        }
    }

    #[inline(always)]
    fn sent(&mut self, service: Service, queues: &mut Queues, rounds: &mut impl RoundObserver) {
        let lane = queues.lane(service.queue);
        if service.emptied {
            let sample = service.finish - lane.start;
            rounds.round_ended(service.now, service.queue, sample);
            lane.start = service.finish;
            self.current = (self.current + 1) % queues.count();
            self.credit = None;
        } else if let Some(credit) = &mut self.credit {
            *credit -= service.size;
        }
    }

    #[inline]
    fn passed(&mut self, service: Service, queues: &mut Queues, rounds: &mut impl RoundObserver) {
        let lane = queues.lane(service.queue);
        let start = lane.start.max(service.now);
        rounds.round_ended(service.now, service.queue, service.finish - start);
        lane.start = service.finish;
        self.current = (service.queue + 1) % queues.count();
        self.credit = None;
    }
}
