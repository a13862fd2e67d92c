//! Random decisions of one entity, from a stream of its own, with the same bits on every machine.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::units::Time;

/// A biased coin: the only randomness that a mechanism needs.
///
/// Every port and flow has its own stream, derived from the run's seed and its own identity, so
/// that a result does not depend on the order in which entities are handled.
#[derive(Clone, Debug)]
pub struct Coin {
    stream: Xoshiro256PlusPlus,
}

impl Coin {
    /// The stream of entity `entity` in the run seeded `seed`.
    pub fn new(seed: u64, entity: u64) -> Self {
        // Neighbouring entities must not get neighbouring seeds: multiply by the golden ratio's odd
        // 64-bit fraction, then let the generator's own SplitMix expansion finish the mixing.
        let mixed = seed ^ entity.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self {
            stream: Xoshiro256PlusPlus::seed_from_u64(mixed),
        }
    }

    /// True with probability `p`. Certain outcomes draw no number.
    pub fn heads(&mut self, p: f64) -> bool {
        if p <= 0.0 {
            return false;
        }
        p >= 1.0 || self.unit() < p
    }

    /// A time uniform in [0, `limit`). A limit of 0 draws no number.
    pub fn time_below(&mut self, limit: Time) -> Time {
        if limit == Time::ZERO {
            return Time::ZERO;
        }
        Time::from_ps((self.unit() * limit.ps() as f64) as u64)
    }

    /// An exponentially distributed time with this mean, rounded to a whole picosecond: -mean ln U
    /// for U uniform in (0, 1].
    pub fn exponential_time(&mut self, mean: Time) -> Time {
        // The cast of a double to an integer saturates.
        Time::from_ps((-(mean.ps() as f64) * ln(self.unit() + SCALE) + 0.5) as u64)
    }

    /// A number uniform in [0, 1), with 53 random bits.
    fn unit(&mut self) -> f64 {
        (self.stream.next_u64() >> 11) as f64 * SCALE
    }
}

const SCALE: f64 = 1.0 / (1u64 << 53) as f64;

/// The natural logarithm of a positive normal number, with the same bits on every machine.
///
/// With x = m 2^e and m within a factor of sqrt 2 around 1, ln m = 2 artanh s for
/// s = (m - 1) / (m + 1), whose series has fallen below 2^-60 after twelve terms.
pub fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut m = f64::from_bits(bits & MANTISSA | 1023 << 52);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let series = (0..12)
        .rev()
        .fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_outcomes_leave_the_stream_alone() {
        let mut coin = Coin::new(1, 1);
        let before = coin.stream.clone();
        assert!(!coin.heads(0.0));
        assert!(coin.heads(1.0));
        assert_eq!(coin.time_below(Time::ZERO), Time::ZERO);
        assert_eq!(coin.stream, before);
    }

    #[test]
    fn frequency_follows_probability() {
        let mut coin = Coin::new(7, 3);
        let heads = (0..100_000).filter(|_| coin.heads(0.3)).count();
        // Three standard deviations of a binomial are 435.
        assert!((29_565..=30_435).contains(&heads), "{heads}");
    }

    #[test]
    fn entities_and_seeds_have_their_own_streams() {
        let draw = |seed, entity| {
            let mut coin = Coin::new(seed, entity);
            (0..64).map(|_| coin.heads(0.5)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn logarithm_agrees_with_the_library() {
        let mut coin = Coin::new(1, 0);
        let points = [1.0, 0.5, SCALE, 1.0 - SCALE, 0.70, 0.71, 2.0, 1e300];
        let drawn: Vec<f64> = (0..10_000).map(|_| coin.unit() + SCALE).collect();
        for x in points.into_iter().chain(drawn) {
            let (ours, theirs) = (ln(x), x.ln());
            assert!(
                (ours - theirs).abs() <= 4e-16 * theirs.abs().max(0.25),
                "{x}"
            );
        }
    }
}
