//! Random decisions of one entity, from a stream of its own.

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

    /// A number uniform in [0, 1), with 53 random bits.
    fn unit(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1u64 << 53) as f64;
        (self.stream.next_u64() >> 11) as f64 * SCALE
    }
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
}
