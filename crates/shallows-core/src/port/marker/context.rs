//! The context in which a marker is built, and the arithmetic that markers share.

use super::Threshold;
use crate::port::{ConfigError, PerIndex, QueueSet, Sharing, SizeClasses};
use crate::random::Coin;
use crate::units::{Bytes, Length, Rate};

/// The port that a marker is built into.
#[derive(Clone, Copy, Debug)]
pub struct PortContext<'a> {
    /// C, the rate at which the port can send: that of its link, or of its shaper if that is lower.
    pub rate: Rate,
    /// Bytes on the wire for each byte that the scheduler counts, in nominal packets; 1 without
    /// framing, or where the scheduler counts the wire.
    pub wire_ratio: f64,
    /// Nominal packet size.
    pub packet: Bytes,
    /// Quantum or weight of each queue.
    pub weights: &'a [u32],
    /// Queues that are served before any round robin begins.
    pub strict: QueueSet,
    /// The scheduler's sharing of the link among the other queues.
    pub sharing: Sharing,
    /// The classifier's size classes, if it is ML-ECN's.
    pub classes: Option<SizeClasses>,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the port.
    pub port: u64,
}

impl PortContext<'_> {
    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.weights.len()
    }

    /// The random stream of the port.
    pub fn coin(&self) -> Coin {
        Coin::new(self.seed, self.port)
    }

    /// A threshold in bytes, checked.
    pub fn bytes(&self, threshold: Threshold) -> Result<f64, ConfigError> {
        threshold.in_bytes(self.rate, self.packet)
    }

    /// A threshold in bytes for each queue, checked.
    pub fn bytes_each(&self, threshold: &PerIndex<Threshold>) -> Result<Vec<f64>, ConfigError> {
        let each = threshold.each("threshold", self.weights.len())?;
        each.into_iter().map(|t| self.bytes(t)).collect()
    }

    /// A length that must not be zero, in bytes.
    pub fn length(&self, name: &'static str, length: Length) -> Result<f64, ConfigError> {
        let bytes = length.in_bytes(self.packet);
        if bytes <= 0.0 {
            return Err(ConfigError::Zero(name));
        }
        Ok(bytes)
    }
}

pub(super) fn probability(name: &'static str, p: f64) -> Result<f64, ConfigError> {
    if (0.0..=1.0).contains(&p) {
        Ok(p)
    } else {
        Err(ConfigError::Probability(name))
    }
}

/// A length or span as a real number. None comes near 2^63, and the signed conversion is one
/// instruction where the unsigned takes five.
#[inline]
pub(super) fn real(count: u64) -> f64 {
    count.cast_signed() as f64
}

/// `base` to the power `exponent`, by squaring: the same bits on every machine, which the
/// standard library's own does not promise.
#[inline(never)]
pub(super) fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 && product > 0.0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_by_hand() {
        assert_eq!(power(0.75, 0), 1.0);
        assert_eq!(power(0.75, 1), 0.75);
        assert_eq!(power(0.5, 10), 1.0 / 1024.0);
        assert_eq!(power(0.75, u64::MAX), 0.0);
    }
}
