//! Static thresholds: per queue, per port and per service pool (MQ-ECN §2).

use serde::{Deserialize, Serialize};

use super::{ArrivalRule, Marking, Seen, real};
use crate::port::notation::TextOrTable;
use crate::port::{ConfigError, MarkReason, Queues};
use crate::units::{Bytes, Length, Rate, Time};

/// A marking threshold: a length such as `"65pkts"` or `"32KB"`, or the factors of eq. 1 as
/// `{ rtt = "85.2us", lambda = 0.6 }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Notation", into = "Notation")]
pub enum Threshold {
    /// The threshold itself.
    Length(Length),
    /// C x RTT x lambda with the port's own C.
    Product {
        /// Average round-trip time.
        rtt: Time,
        /// Depends on the congestion control: 1 for one that halves, 0.17 for DCTCP in theory.
        lambda: f64,
    },
}

/// Notation of a [`Threshold`] in a file.
type Notation = TextOrTable<Length, Product>;

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Product {
    rtt: Time,
    lambda: f64,
}

impl From<Notation> for Threshold {
    fn from(notation: Notation) -> Self {
        match notation {
            Notation::Text(length) => Self::Length(length),
            Notation::Table(Product { rtt, lambda }) => Self::Product { rtt, lambda },
        }
    }
}

impl From<Threshold> for Notation {
    fn from(threshold: Threshold) -> Self {
        match threshold {
            Threshold::Length(length) => Self::Text(length),
            Threshold::Product { rtt, lambda } => Self::Table(Product { rtt, lambda }),
        }
    }
}

impl Threshold {
    /// The threshold in bytes on a port of the given rate and nominal packet size. It is a real
    /// number: eq. 2 makes 8.125 packets of 65.
    pub fn in_bytes(self, rate: Rate, packet: Bytes) -> Result<f64, ConfigError> {
        let bytes = match self {
            Self::Length(length) => length.in_bytes(packet),
            Self::Product { rtt, lambda } => standard_threshold(rate, rtt, lambda),
        };
        if bytes.is_finite() && bytes > 0.0 {
            Ok(bytes)
        } else {
            Err(ConfigError::Positive("threshold"))
        }
    }
}

/// The standard threshold in bytes: K = C x RTT x lambda (MQ-ECN eq. 1).
pub fn standard_threshold(capacity: Rate, rtt: Time, lambda: f64) -> f64 {
    capacity.bps() as f64 * rtt.as_secs_f64() * lambda / 8.0
}

/// The minimum threshold of each queue: K_i = W_i / sum(W) x K (MQ-ECN eq. 2).
pub fn minimum_thresholds(standard: f64, weights: &[u32]) -> Vec<f64> {
    let sum: f64 = weights.iter().copied().map(f64::from).sum();
    weights
        .iter()
        .map(|&weight| standard * f64::from(weight) / sum)
        .collect()
}

/// Marks nothing.
#[derive(Clone, Copy, Debug)]
pub(in crate::port) struct Never;

impl Marking for Never {
    fn arrival_rule(&self) -> Option<ArrivalRule> {
        Some(ArrivalRule {
            threshold: f64::INFINITY,
            reason: MarkReason::Queue,
        })
    }
}

/// Marks when the packet's own queue is longer than its threshold.
#[derive(Clone, Debug)]
pub(in crate::port) struct PerQueueThreshold {
    thresholds: Vec<f64>,
}

impl PerQueueThreshold {
    pub(super) fn new(thresholds: Vec<f64>) -> Self {
        Self { thresholds }
    }
}

impl Marking for PerQueueThreshold {
    fn arrival_rule(&self) -> Option<ArrivalRule> {
        Some(ArrivalRule {
            threshold: self.thresholds[0],
            reason: MarkReason::Queue,
        })
    }

    #[inline]
    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        let over = real(seen.queue_length) > self.thresholds[seen.queue];
        over.then_some(MarkReason::Queue)
    }

    fn threshold(&self, queue: usize, _: &Queues) -> Option<f64> {
        Some(self.thresholds[queue])
    }
}

/// Marks when all queues of the port together are longer than the threshold.
#[derive(Clone, Copy, Debug)]
pub(in crate::port) struct PerPort(pub(super) f64);

impl Marking for PerPort {
    fn arrival_rule(&self) -> Option<ArrivalRule> {
        Some(ArrivalRule {
            threshold: self.0,
            reason: MarkReason::Port,
        })
    }

    #[inline]
    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        (real(seen.port_length) > self.0).then_some(MarkReason::Port)
    }

    fn threshold(&self, _: usize, _: &Queues) -> Option<f64> {
        Some(self.0)
    }
}

/// Marks when the shared pool holds more than the threshold.
#[derive(Clone, Copy, Debug)]
pub(in crate::port) struct PerPool(pub(super) f64);

impl Marking for PerPool {
    #[inline]
    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        (real(seen.pool_length) > self.0).then_some(MarkReason::Pool)
    }

    fn threshold(&self, _: usize, _: &Queues) -> Option<f64> {
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1500);

    #[test]
    fn equation_1() {
        // 10 Gbps x 85.2 us = 852,000 bits = 106,500 B, with lambda = 1.
        let k = standard_threshold(Rate::from_gbps(10), Time::from_ns(85_200), 1.0);
        assert!((k - 106_500.0).abs() < 1e-6);
        // 1 Gbps x 250 us = 31,250 B: the testbed's 32 KB in round figures.
        let k = standard_threshold(Rate::from_gbps(1), Time::from_us(250), 1.0);
        assert!((k - 31_250.0).abs() < 1e-6);
        // DCTCP's lambda of 0.17.
        let k = standard_threshold(Rate::from_gbps(1), Time::from_us(250), 0.17);
        assert!((k - 5_312.5).abs() < 1e-6);
    }

    #[test]
    fn equation_2() {
        // 65 packets over 8 equal queues: 8.125 packets each.
        let k = minimum_thresholds(65.0 * 1500.0, &[1500; 8]);
        assert_eq!(k, [8.125 * 1500.0; 8]);
        // 16 packets over 8 queues: 2 packets, as in Fig. 2.
        assert_eq!(minimum_thresholds(16.0, &[1; 8]), [2.0; 8]);
        // 32 KB over the testbed's 4 queues: 8 KB.
        assert_eq!(minimum_thresholds(32_000.0, &[1538; 4]), [8_000.0; 4]);
        // Weights 4:2:1 of 70 packets.
        assert_eq!(minimum_thresholds(70.0, &[4, 2, 1]), [40.0, 20.0, 10.0]);
    }

    #[test]
    fn thresholds_as_written() {
        let rate = Rate::from_gbps(10);
        let packets = Threshold::Length("65pkts".parse().unwrap());
        assert_eq!(packets.in_bytes(rate, PACKET).unwrap(), 97_500.0);
        let product = Threshold::Product {
            rtt: Time::from_us(100),
            lambda: 0.5,
        };
        assert_eq!(product.in_bytes(rate, PACKET).unwrap(), 62_500.0);
        let nothing = Threshold::Length(Length::Bytes(Bytes::new(0)));
        assert!(nothing.in_bytes(rate, PACKET).is_err());
    }
}
