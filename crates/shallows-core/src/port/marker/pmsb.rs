//! PMSB (Pan et al., ICDCS 2018), as ML-ECN §V describes it: per-port marking that "uses a
//! per-queue threshold to revoke or cancel the ECN marking of victim flows even if they qualify the
//! per-port threshold".
//!
//! The description does not say what a queue exactly at its threshold gets: it is a victim, its
//! mark is revoked up to and including the threshold.

use serde::{Deserialize, Serialize};

use super::{Marking, PortContext, Seen, Threshold, real};
use crate::port::{ConfigError, MarkReason, PerIndex, Queues};

/// Parameters of PMSB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PmsbConfig {
    /// Threshold of the port.
    pub port: Threshold,
    /// Length up to which a queue is spared, for all queues or for each.
    pub queue: PerIndex<Threshold>,
}

/// A running PMSB marker.
#[derive(Clone, Debug)]
pub(in crate::port) struct Pmsb {
    port: f64,
    queues: Vec<f64>,
}

impl Pmsb {
    pub(super) fn new(config: &PmsbConfig, port: &PortContext<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            port: port.bytes(config.port)?,
            queues: port.bytes_each(&config.queue)?,
        })
    }
}

impl Marking for Pmsb {
    #[inline]
    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        let congested = real(seen.port_length) > self.port;
        let victim = real(seen.queue_length) <= self.queues[seen.queue];
        (congested && !victim).then_some(MarkReason::Port)
    }

    fn threshold(&self, queue: usize, _: &Queues) -> Option<f64> {
        Some(self.queues[queue])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::marker::tests::{length, port, seen};

    #[test]
    fn a_short_queue_is_spared_in_a_congested_port() {
        let config = PmsbConfig {
            port: length(24_000),
            queue: PerIndex::All(length(3_000)),
        };
        let mut pmsb = Pmsb::new(&config, &port(&[1500; 8])).unwrap();
        let mut decide = |queue, port_length| {
            let seen = Seen {
                port_length,
                ..seen(0, queue)
            };
            pmsb.decide(seen, &Queues::new(8))
        };
        assert_eq!(decide(20_000, 24_000), None);
        assert_eq!(decide(20_000, 24_001), Some(MarkReason::Port));
        assert_eq!(decide(3_000, 60_000), None);
        assert_eq!(decide(3_001, 60_000), Some(MarkReason::Port));
    }
}
