//! DemePro (Gao, Lee and Li, Transactions on Cloud Computing 2017), as ML-ECN §I describes it: it
//! "marks the head packet in the most congested queue when the total queue length becomes greater
//! than per-port threshold".
//!
//! Assumptions of ours where the description is silent: the total is judged at each arrival, the
//! arriving packet counted; the most congested queue is the one with the most bytes, of equals the
//! lowest; every arrival above the threshold marks one head, and a head that is marked already is
//! not replaced by the packet behind it. [`MarkPoint`] does not apply.

use serde::{Deserialize, Serialize};

use super::{MarkPoint, Marking, Note, PortContext, Seen, Threshold, real};
use crate::port::{ConfigError, MarkReason, Queues};
use crate::units::Time;

/// Parameters of DemePro.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DemeProConfig {
    /// Threshold of the port.
    pub threshold: Threshold,
}

/// A running DemePro marker.
#[derive(Clone, Copy, Debug)]
pub(in crate::port) struct DemePro {
    threshold: f64,
}

impl DemePro {
    pub(super) fn new(config: DemeProConfig, port: &PortContext<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            threshold: port.bytes(config.threshold)?,
        })
    }
}

impl Marking for DemePro {
    #[inline(never)]
    fn at_enqueue(&mut self, _: MarkPoint, seen: Seen, queues: &Queues) -> Note {
        if real(seen.port_length) <= self.threshold {
            return Note::Pass;
        }
        let mut longest = (seen.queue, seen.queue_length);
        for queue in queues.backlogged().iter().filter(|&q| q != seen.queue) {
            let bytes = queues.queue_bytes(queue);
            if bytes > longest.1 || (bytes == longest.1 && queue < longest.0) {
                longest = (queue, bytes);
            }
        }
        Note::MarkHead(longest.0 as u8, MarkReason::Port)
    }

    fn at_dequeue(
        &mut self,
        _point: MarkPoint,
        _seen: Seen,
        _: &Queues,
        _sojourn: Time,
        _noted: bool,
    ) -> Option<MarkReason> {
        None
    }

    fn threshold(&self, _: usize, _: &Queues) -> Option<f64> {
        Some(self.threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Descriptor;
    use crate::port::Pool;
    use crate::port::marker::tests::{length, port, seen};
    use crate::port::queues::Stored;

    #[test]
    fn the_head_of_the_longest_queue_is_marked() {
        let config = DemeProConfig {
            threshold: length(6_000),
        };
        let mut demepro = DemePro::new(config, &port(&[1, 1, 1])).unwrap();
        let (mut queues, mut pool) = (Queues::new(3), Pool::unlimited());
        for queue in [1, 1, 2] {
            let stored = Stored {
                packet: Descriptor::default(),
                arrived: Time::ZERO,
                size: 1500,
                noted: false,
            };
            queues.push(queue, stored, &mut pool);
        }
        let mut arrive = |queue, queue_length, port_length| {
            let seen = Seen {
                port_length,
                ..seen(queue, queue_length)
            };
            demepro.at_enqueue(MarkPoint::Enqueue, seen, &queues)
        };
        assert_eq!(arrive(0, 1500, 6_000), Note::Pass);
        assert_eq!(arrive(0, 1500, 6_001), Note::MarkHead(1, MarkReason::Port));
        // The arriving packet makes queue 2 as long as queue 1; the lower one it stays.
        assert_eq!(arrive(2, 3000, 6_001), Note::MarkHead(1, MarkReason::Port));
        assert_eq!(arrive(2, 3001, 6_001), Note::MarkHead(2, MarkReason::Port));
    }
}
