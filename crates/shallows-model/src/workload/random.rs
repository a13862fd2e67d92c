//! Random numbers that are the same on every machine.
//!
//! Each host, pair or pattern has a stream of its own, derived from the run's seed and its
//! identity, so that what one draws does not depend on the others. Draws use additions,
//! multiplications and divisions of doubles only, which IEEE 754 rounds in one way; the logarithm
//! of the standard library may differ in its last bit from platform to platform and is not used.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shallows_core::random::ln;
use shallows_core::units::Time;

/// Purpose of a random stream. Streams of different purposes have nothing in common.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Arrivals and what belongs to them; the entity is a source or a pair.
    Arrivals = 1,
    /// The order of a permutation.
    Order = 2,
    /// Size, ends and service of a pattern's flow; the entity is its number.
    Flow = 3,
    /// The seed of one of several workloads.
    Workload = 4,
    /// Start of a host's first epoch.
    Epoch = 5,
    /// Seed of a host's jitter.
    Jitter = 6,
}

/// A stream of random numbers: Xoshiro256++.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose, entity: u64) -> Self {
        // Neighbouring entities must not get neighbouring seeds; the generator's own SplitMix
        // expansion finishes the mixing.
        let purpose = (purpose as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
        let entity = entity.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(Xoshiro256PlusPlus::seed_from_u64(seed ^ purpose ^ entity))
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), in steps of 2^-53.
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * STEP
    }

    /// Uniform in 0..`count`, without bias (Lemire 2019). `count` must not be zero.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        let threshold = count.wrapping_neg() % count;
        loop {
            let product = u128::from(self.bits()) * u128::from(count);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Exponentially distributed with this mean in picoseconds, rounded to a whole one: -mean ln U
    /// for U uniform in (0, 1].
    pub(super) fn exponential(&mut self, mean_ps: f64) -> Time {
        let u = ((self.bits() >> 11) + 1) as f64 * STEP;
        // The cast of a double to an integer saturates.
        Time::from_ps((-mean_ps * ln(u) + 0.5) as u64)
    }
}

const STEP: f64 = 1.0 / (1_u64 << 53) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_draws() {
        // Any change here changes every published result.
        let mut stream = Stream::new(42, Purpose::Arrivals, 7);
        let draws = [
            stream.bits(),
            stream.below(1000),
            stream.exponential(1e9).ps(),
        ];
        assert_eq!(draws, [9_821_848_654_551_812_159, 607, 1_636_515_903]);
    }

    #[test]
    fn exponential_has_its_mean_and_deviation() {
        let mut stream = Stream::new(3, Purpose::Arrivals, 0);
        let draws: Vec<f64> = (0..100_000)
            .map(|_| stream.exponential(1e6).ps() as f64)
            .collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / 1e5;
        // Three standard errors: 1e6 / sqrt(1e5) for the mean, sqrt(20) times that for the square.
        assert!((mean / 1e6 - 1.0).abs() < 0.0095, "{mean}");
        assert!((square / 2e12 - 1.0).abs() < 0.0213, "{square}");
    }

    #[test]
    fn below_is_even() {
        let mut stream = Stream::new(5, Purpose::Order, 0);
        let mut counts = [0_i64; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        // Four standard deviations.
        assert!(
            counts.iter().all(|n| (n - 10_000).abs() < 370),
            "{counts:?}"
        );
        assert_eq!(stream.below(1), 0);
        // Scaling 64 bits to three quarters without rejection makes every third number twice as
        // likely as the others.
        let thirds = (0..9_000)
            .filter(|_| stream.below(3 << 62).is_multiple_of(3))
            .count();
        assert!((2_800..3_200).contains(&thirds), "{thirds}");
    }

    #[test]
    fn streams_are_independent() {
        let first = |seed, purpose, entity| Stream::new(seed, purpose, entity).bits();
        let one = first(1, Purpose::Flow, 1);
        assert_eq!(one, first(1, Purpose::Flow, 1));
        assert_ne!(one, first(2, Purpose::Flow, 1));
        assert_ne!(one, first(1, Purpose::Order, 1));
        assert_ne!(one, first(1, Purpose::Flow, 2));
    }
}
