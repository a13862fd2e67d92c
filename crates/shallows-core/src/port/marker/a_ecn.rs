//! A-ECN (Wang et al., IEEE Access 2020), as ML-ECN §I and §V describe it: "an adaptive ECN marking
//! scheme that does not consider time interval, as in MQ-ECN, to update the marking threshold.
//! Instead, A-ECN uses the number of enqueue packets as the interval". Its title and abstract add
//! the aim: the shortest queue that does not run empty, whatever the bandwidth and scheduler.
//!
//! Nothing more is said, so these are assumptions of ours:
//! - every queue has a threshold of its own, which starts at K and is never above it;
//! - the interval is a number of packets enqueued in that queue;
//! - over an interval the shortest length that the queue fell to is kept: it is queueing that
//!   served no purpose. If the queue ran empty the threshold rises by one step, or else it falls
//!   by one step, or by that length if it is less;
//! - the threshold never falls below one step, which is a nominal packet by default.

use serde::{Deserialize, Serialize};

use super::{MarkPoint, Marking, Needs, Note, PortContext, Seen, Threshold, real};
use crate::port::scheduler::Service;
use crate::port::{ConfigError, MarkReason, Queues};
use crate::units::Length;

/// Parameters of A-ECN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AEcnConfig {
    /// K, the standard threshold: where every queue starts, and its most.
    pub threshold: Threshold,
    /// Packets enqueued between two updates.
    #[serde(default = "default_interval")]
    pub interval: u32,
    /// Change of a threshold in one update; a nominal packet if not given.
    pub step: Option<Length>,
}

fn default_interval() -> u32 {
    100
}

/// A running A-ECN marker.
#[derive(Clone, Debug)]
pub(in crate::port) struct AEcn {
    k: f64,
    step: f64,
    interval: u32,
    lanes: Vec<Lane>,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    threshold: f64,
    enqueued: u32,
    shortest: u64,
}

impl AEcn {
    pub(super) fn new(config: AEcnConfig, port: &PortContext<'_>) -> Result<Self, ConfigError> {
        let k = port.bytes(config.threshold)?;
        let step = match config.step {
            Some(step) => port.length("step", step)?,
            None => port.packet.get() as f64,
        };
        if config.interval == 0 {
            return Err(ConfigError::Zero("interval"));
        }
        let lane = Lane {
            threshold: k,
            enqueued: 0,
            shortest: u64::MAX,
        };
        Ok(Self {
            k,
            step,
            interval: config.interval,
            lanes: vec![lane; port.queues()],
        })
    }
}

impl Marking for AEcn {
    fn needs(&self) -> Needs {
        Needs {
            dequeue: false,
            service: true,
        }
    }

    #[inline]
    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        let over = real(seen.queue_length) > self.lanes[seen.queue].threshold;
        over.then_some(MarkReason::Queue)
    }

    #[inline(never)]
    fn at_enqueue(&mut self, point: MarkPoint, seen: Seen, queues: &Queues) -> Note {
        let lane = &mut self.lanes[seen.queue];
        lane.enqueued += 1;
        if lane.enqueued == self.interval {
            let change = match lane.shortest {
                0 => self.step,
                shortest => -self.step.min(shortest as f64),
            };
            // Where K itself is below one step, it is both bounds.
            lane.threshold = (lane.threshold + change).max(self.step).min(self.k);
            lane.enqueued = 0;
            lane.shortest = u64::MAX;
        }
        match point {
            MarkPoint::Enqueue => self.decide(seen, queues).into(),
            MarkPoint::Dequeue => Note::Pass,
        }
    }

    #[inline]
    fn served(&mut self, service: Service, queues: &Queues) {
        let lane = &mut self.lanes[service.queue];
        lane.shortest = lane.shortest.min(queues.queue_bytes(service.queue));
    }

    fn threshold(&self, queue: usize, _: &Queues) -> Option<f64> {
        Some(self.lanes[queue].threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Descriptor;
    use crate::port::Pool;
    use crate::port::marker::tests::{length, port, seen};
    use crate::port::queues::Stored;
    use crate::units::Time;

    /// One interval of `marker`'s only queue, in which it falls to `shortest` bytes.
    fn interval(marker: &mut AEcn, shortest: u32) -> f64 {
        let (mut queues, mut pool) = (Queues::new(1), Pool::unlimited());
        if shortest > 0 {
            let stored = Stored {
                packet: Descriptor::default(),
                arrived: Time::ZERO,
                size: shortest,
                noted: false,
            };
            queues.push(0, stored, &mut pool);
        }
        let service = Service {
            queue: 0,
            size: 1500,
            now: Time::ZERO,
            finish: Time::ZERO,
            emptied: shortest == 0,
        };
        marker.served(service, &queues);
        for _ in 0..marker.interval {
            marker.at_enqueue(MarkPoint::Enqueue, seen(0, 1500), &queues);
        }
        marker.threshold(0, &queues).unwrap()
    }

    #[test]
    fn threshold_follows_the_shortest_length() {
        let config = AEcnConfig {
            threshold: length(9_000),
            interval: 10,
            step: None,
        };
        let mut a_ecn = AEcn::new(config, &port(&[1])).unwrap();
        assert_eq!(a_ecn.threshold(0, &Queues::new(1)), Some(9_000.0));
        assert_eq!(interval(&mut a_ecn, 4_000), 7_500.0, "a whole step down");
        assert_eq!(
            interval(&mut a_ecn, 500),
            7_000.0,
            "by the useless length only"
        );
        assert_eq!(interval(&mut a_ecn, 0), 8_500.0, "ran empty: up");
        assert_eq!(interval(&mut a_ecn, 0), 9_000.0, "never above K");
        let lowest = (0..20).map(|_| interval(&mut a_ecn, 9_000)).last();
        assert_eq!(lowest, Some(1_500.0), "never below a step");
    }
}
