//! TCN (Bai et al., CoNEXT 2016), as ML-ECN §V describes it: "mark packets according to the
//! sojourn times and a static threshold rather than the instantaneous length of the queue".
//!
//! The sojourn is from the offer of the packet to the start of its transmission, and is known at
//! dequeue only, so [`MarkPoint`] and [`Measure`](super::Measure) do not apply.

use serde::{Deserialize, Serialize};

use super::{MarkPoint, Marking, Needs, Note, Seen};
use crate::port::{MarkReason, Queues};
use crate::units::Time;

/// Parameters of TCN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TcnConfig {
    /// Sojourn above which a packet is marked; RTT x lambda is the counterpart of eq. 1.
    pub sojourn: Time,
}

/// A running TCN marker.
#[derive(Clone, Copy, Debug)]
pub(in crate::port) struct Tcn {
    limit: Time,
}

impl Tcn {
    pub(super) fn new(config: TcnConfig) -> Self {
        Self {
            limit: config.sojourn,
        }
    }
}

impl Marking for Tcn {
    fn needs(&self) -> Needs {
        Needs {
            dequeue: true,
            service: false,
        }
    }

    #[inline]
    fn at_enqueue(&mut self, _: MarkPoint, _: Seen, _: &Queues) -> Note {
        Note::Pass
    }

    #[inline]
    fn at_dequeue(
        &mut self,
        _point: MarkPoint,
        _seen: Seen,
        _: &Queues,
        sojourn: Time,
        _noted: bool,
    ) -> Option<MarkReason> {
        (sojourn > self.limit).then_some(MarkReason::Sojourn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::marker::tests::seen;

    #[test]
    fn only_the_sojourn_matters() {
        let mut tcn = Tcn::new(TcnConfig {
            sojourn: Time::from_us(78),
        });
        for point in [MarkPoint::Enqueue, MarkPoint::Dequeue] {
            let mut decide = |sojourn| {
                tcn.at_dequeue(point, seen(0, 1_000_000), &Queues::new(1), sojourn, false)
            };
            assert_eq!(decide(Time::from_us(78)), None);
            assert_eq!(decide(Time::from_ns(78_001)), Some(MarkReason::Sojourn));
        }
    }
}
