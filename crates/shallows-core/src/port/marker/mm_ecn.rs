//! MM-ECN (Lu, Ma and Xu, Computer Networks 2021), as ML-ECN §I describes it: "a mix marking scheme
//! that combines front-end ECN marking and random ECN marking to provide best burst tolerance and
//! short-flow friendliness simultaneously".
//!
//! Nothing more is said, so these are assumptions of ours:
//! - an arrival that finds its queue above the threshold asks for one mark in that queue;
//! - with probability `random` the mark goes to a packet of the queue chosen at random, which a
//!   long flow is likelier to own; else to the packet at its front, whose sender hears of it first;
//! - a random mark is carried out as packets leave: of n packets in the queue the leaving one takes
//!   one of m marks with probability m / n, which is the same lottery without a walk through the
//!   queue. Marks still open when the queue empties are forgotten.
//!
//! [`MarkPoint`] does not apply.

use serde::{Deserialize, Serialize};

use super::{MarkPoint, Marking, Needs, Note, PortContext, Seen, Threshold, probability, real};
use crate::port::{ConfigError, MarkReason, PerIndex, Queues};
use crate::random::Coin;
use crate::units::Time;

/// Parameters of MM-ECN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MmEcnConfig {
    /// Threshold of each queue.
    pub threshold: Threshold,
    /// Fraction of the marks that go to a random packet.
    #[serde(default = "default_random")]
    pub random: f64,
}

fn default_random() -> f64 {
    0.5
}

/// A running MM-ECN marker.
#[derive(Clone, Debug)]
pub(in crate::port) struct MmEcn {
    thresholds: Vec<f64>,
    random: f64,
    /// Random marks that wait for a packet, by queue.
    open: Vec<u32>,
    coin: Coin,
}

impl MmEcn {
    pub(super) fn new(config: MmEcnConfig, port: &PortContext<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            thresholds: port.bytes_each(&PerIndex::All(config.threshold))?,
            random: probability("random", config.random)?,
            open: vec![0; port.queues()],
            coin: port.coin(),
        })
    }
}

impl Marking for MmEcn {
    fn needs(&self) -> Needs {
        Needs {
            dequeue: true,
            service: false,
        }
    }

    #[inline(never)]
    fn at_enqueue(&mut self, _: MarkPoint, seen: Seen, _: &Queues) -> Note {
        if real(seen.queue_length) <= self.thresholds[seen.queue] {
            return Note::Pass;
        }
        if self.coin.heads(self.random) {
            self.open[seen.queue] += 1;
            return Note::Pass;
        }
        Note::MarkHead(seen.queue as u8, MarkReason::Queue)
    }

    fn at_dequeue(
        &mut self,
        _point: MarkPoint,
        seen: Seen,
        _: &Queues,
        _sojourn: Time,
        _noted: bool,
    ) -> Option<MarkReason> {
        let open = &mut self.open[seen.queue];
        if *open == 0 {
            return None;
        }
        let marked = self
            .coin
            .heads(f64::from(*open) / f64::from(seen.queue_packets));
        if seen.queue_packets == 1 {
            *open = 0;
        } else if marked {
            *open -= 1;
        }
        marked.then_some(MarkReason::Queue)
    }

    fn threshold(&self, queue: usize, _: &Queues) -> Option<f64> {
        Some(self.thresholds[queue])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::marker::tests::{length, port, seen};

    fn marker(random: f64) -> MmEcn {
        let config = MmEcnConfig {
            threshold: length(15_000),
            random,
        };
        MmEcn::new(config, &port(&[1])).unwrap()
    }

    fn arrive(mm: &mut MmEcn, length: u64) -> Note {
        let queues = Queues::new(1);
        mm.at_enqueue(MarkPoint::Enqueue, seen(0, length), &queues)
    }

    #[test]
    fn front_marks_go_to_the_head() {
        let mut mm = marker(0.0);
        assert_eq!(arrive(&mut mm, 15_000), Note::Pass);
        assert_eq!(
            arrive(&mut mm, 15_001),
            Note::MarkHead(0, MarkReason::Queue)
        );
    }

    #[test]
    fn random_marks_reach_every_position_alike() {
        let mut hits = [0; 10];
        let mut mm = marker(1.0);
        for _ in 0..10_000 {
            assert_eq!(arrive(&mut mm, 15_001), Note::Pass);
            for (position, hit) in hits.iter_mut().enumerate() {
                let leaving = Seen {
                    queue_packets: 10 - position as u32,
                    ..seen(0, 1500)
                };
                let point = MarkPoint::Enqueue;
                *hit += u32::from(
                    mm.at_dequeue(point, leaving, &Queues::new(1), Time::ZERO, false)
                        .is_some(),
                );
            }
        }
        assert_eq!(
            hits.iter().sum::<u32>(),
            10_000,
            "every mark found a packet"
        );
        assert!(hits.iter().all(|n| (900..1100).contains(n)), "{hits:?}");
    }
}
