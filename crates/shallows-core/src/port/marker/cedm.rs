//! CEDM (Shan and Ren, Transactions on Networking 2018), as ML-ECN §V describes it: "mark packets
//! during both the enqueueing and dequeuing process by using two static thresholds".
//!
//! The description leaves open how the two decisions combine. Its subject is micro-bursts, which
//! are over before the packets that saw them leave, so by default a packet is marked only if its
//! queue was long when it arrived *and* still is when it leaves ([`CedmRule::Both`]); the other
//! reading, either of the two, is [`CedmRule::Either`]. [`MarkPoint`] does not apply.

use serde::{Deserialize, Serialize};

use super::{MarkPoint, Marking, Needs, Note, PortContext, Seen, Threshold, real};
use crate::port::{ConfigError, MarkReason, Queues};
use crate::units::Time;

/// Parameters of CEDM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CedmConfig {
    /// Threshold at enqueue.
    pub enqueue: Threshold,
    /// Threshold at dequeue.
    pub dequeue: Threshold,
    /// Combination of the two decisions.
    #[serde(default)]
    pub rule: CedmRule,
}

/// Combination of CEDM's two decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CedmRule {
    /// A packet is marked if both thresholds were exceeded.
    #[default]
    Both,
    /// A packet is marked if either threshold was exceeded.
    Either,
}

/// A running CEDM marker.
#[derive(Clone, Copy, Debug)]
pub(in crate::port) struct Cedm {
    enqueue: f64,
    dequeue: f64,
    rule: CedmRule,
}

impl Cedm {
    pub(super) fn new(config: CedmConfig, port: &PortContext<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            enqueue: port.bytes(config.enqueue)?,
            dequeue: port.bytes(config.dequeue)?,
            rule: config.rule,
        })
    }
}

impl Marking for Cedm {
    fn needs(&self) -> Needs {
        Needs {
            dequeue: true,
            service: false,
        }
    }

    #[inline]
    fn at_enqueue(&mut self, _: MarkPoint, seen: Seen, _: &Queues) -> Note {
        if real(seen.queue_length) > self.enqueue {
            Note::Remember
        } else {
            Note::Pass
        }
    }

    #[inline]
    fn at_dequeue(
        &mut self,
        _point: MarkPoint,
        seen: Seen,
        _: &Queues,
        _sojourn: Time,
        noted: bool,
    ) -> Option<MarkReason> {
        let still = real(seen.queue_length) > self.dequeue;
        let mark = match self.rule {
            CedmRule::Both => noted && still,
            CedmRule::Either => noted || still,
        };
        mark.then_some(MarkReason::Queue)
    }

    fn threshold(&self, _: usize, _: &Queues) -> Option<f64> {
        Some(self.enqueue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::marker::tests::{length, port, seen};

    #[test]
    fn both_and_either() {
        let queues = Queues::new(1);
        let table = [
            (CedmRule::Both, [false, false, false, true]),
            (CedmRule::Either, [false, true, true, true]),
        ];
        for (rule, expected) in table {
            let config = CedmConfig {
                enqueue: length(30_000),
                dequeue: length(15_000),
                rule,
            };
            let mut cedm = Cedm::new(config, &port(&[1])).unwrap();
            let cases = [
                (30_000, 15_000),
                (30_001, 15_000),
                (30_000, 15_001),
                (30_001, 15_001),
            ];
            let marked = cases.map(|(arriving, leaving)| {
                let note = cedm.at_enqueue(MarkPoint::Enqueue, seen(0, arriving), &queues);
                let noted = note == Note::Remember;
                cedm.at_dequeue(
                    MarkPoint::Enqueue,
                    seen(0, leaving),
                    &queues,
                    Time::ZERO,
                    noted,
                )
                .is_some()
            });
            assert_eq!(marked, expected);
        }
    }
}
