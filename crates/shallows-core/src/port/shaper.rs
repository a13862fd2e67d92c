//! Token bucket (MQ-ECN §4.2): 99.5% of line rate and 2.5 KB in the paper's prototype.

use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::units::{Bytes, Rate, Time};

/// Tokens are counted in bits x 10^12, the product of a rate and picoseconds: exact for any rate.
const TOKENS_PER_BYTE: i64 = 8_000_000_000_000;

/// Most that a bucket may hold: what a token count can represent, with room for a debt.
const MAX_BUCKET: u64 = 1_000_000;

/// A token bucket, as written in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ShaperConfig {
    /// Long-term rate, in bytes on the wire.
    pub rate: Rate,
    /// Largest burst.
    pub bucket: Bytes,
}

/// A running token bucket: in any interval t at most `rate` x t + `bucket` passes.
///
/// A packet larger than the bucket passes when the bucket is full and leaves a debt, so that it is
/// late rather than stuck.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: i64,
    capacity: i64,
    tokens: i64,
    updated: Time,
}

impl TokenBucket {
    /// A bucket that is full at time zero.
    pub fn new(config: ShaperConfig) -> Result<Self, ConfigError> {
        let bucket = config.bucket.get();
        if bucket == 0 || config.rate.bps() == 0 {
            return Err(ConfigError::Zero("shaper"));
        }
        if bucket > MAX_BUCKET {
            return Err(ConfigError::TooLarge("bucket", Bytes::new(MAX_BUCKET)));
        }
        let capacity = bucket.cast_signed() * TOKENS_PER_BYTE;
        Ok(Self {
            rate: i64::try_from(config.rate.bps()).unwrap_or(i64::MAX),
            capacity,
            tokens: capacity,
            updated: Time::ZERO,
        })
    }

    /// The earliest time, `now` or later, at which `size` bytes may pass.
    #[inline]
    pub fn ready_at(&mut self, now: Time, size: u32) -> Time {
        self.refill(now);
        let missing = Self::cost(size).min(self.capacity) - self.tokens;
        if missing <= 0 {
            return now;
        }
        now + Time::from_ps((missing as u64).div_ceil(self.rate as u64))
    }

    /// Takes the tokens for `size` bytes that pass at `now`.
    #[inline]
    pub fn spend(&mut self, now: Time, size: u32) {
        self.refill(now);
        self.tokens -= Self::cost(size);
    }

    #[inline]
    fn refill(&mut self, now: Time) {
        let elapsed = now.saturating_sub(self.updated).ps();
        let earned = i64::try_from(elapsed)
            .ok()
            .and_then(|ps| ps.checked_mul(self.rate));
        // An idle time too long for the multiplication has filled any bucket.
        self.tokens = earned
            .and_then(|earned| self.tokens.checked_add(earned))
            .map_or(self.capacity, |tokens| tokens.min(self.capacity));
        self.updated = self.updated.max(now);
    }

    #[inline]
    fn cost(size: u32) -> i64 {
        i64::from(size).saturating_mul(TOKENS_PER_BYTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn paper() -> TokenBucket {
        TokenBucket::new(ShaperConfig {
            rate: Rate::from_mbps(995),
            bucket: Bytes::new(2500),
        })
        .unwrap()
    }

    #[test]
    fn the_papers_bucket_by_hand() {
        let mut bucket = paper();
        // 2500 tokens: one frame of 1538 B passes at once and leaves 962.
        assert_eq!(bucket.ready_at(Time::ZERO, 1538), Time::ZERO);
        bucket.spend(Time::ZERO, 1538);
        // The next lacks 576 B = 4608 bits: 4608 / 995 Mbps = 4,631,155.78 ps, rounded up.
        assert_eq!(bucket.ready_at(Time::ZERO, 1538), Time::from_ps(4_631_156));
    }

    #[test]
    fn goodput_of_back_to_back_frames() {
        // 1448 B of payload in 1538 B on the wire: 0.995 x 1448 / 1538 = 936.8 Mbps.
        let mut bucket = paper();
        let mut now = Time::ZERO;
        let frames = 100_000;
        for _ in 0..frames {
            now = bucket.ready_at(now, 1538);
            bucket.spend(now, 1538);
        }
        let goodput = f64::from(frames * 1448 * 8) / now.as_secs_f64() / 1e6;
        assert!((goodput - 936.8).abs() < 0.05, "{goodput}");
    }

    #[test]
    fn a_frame_larger_than_the_bucket_leaves_a_debt() {
        let mut bucket = paper();
        assert_eq!(bucket.ready_at(Time::ZERO, 9000), Time::ZERO);
        bucket.spend(Time::ZERO, 9000);
        // 6500 B of debt and a full bucket to earn: 9000 B at 995 Mbps.
        assert_eq!(
            bucket.ready_at(Time::ZERO, 9000),
            Rate::from_mbps(995).transmission_time(Bytes::new(9000))
        );
    }

    proptest! {
        /// Over every pair of departures: bytes <= rate x time + bucket, in exact integers.
        #[test]
        fn never_more_than_rate_times_time_plus_bucket(
            mbps in 1u64..100_000,
            bucket in 1500u64..20_000,
            arrivals in prop::collection::vec((0u64..50_000_000, 40u32..=1500), 1..60),
        ) {
            let rate = Rate::from_mbps(mbps);
            let mut shaper =
                TokenBucket::new(ShaperConfig { rate, bucket: Bytes::new(bucket) }).unwrap();
            let mut now = Time::ZERO;
            let mut departures = Vec::new();
            for (gap, size) in arrivals {
                now = shaper.ready_at(now + Time::from_ps(gap), size);
                shaper.spend(now, size);
                departures.push((now, u64::from(size)));
            }
            for first in 0..departures.len() {
                let mut sent = 0u128;
                for &(at, size) in &departures[first..] {
                    sent += u128::from(size);
                    let elapsed = u128::from((at - departures[first].0).ps());
                    let allowed = elapsed * u128::from(rate.bps())
                        + u128::from(bucket) * TOKENS_PER_BYTE as u128;
                    prop_assert!(sent * TOKENS_PER_BYTE as u128 <= allowed);
                }
            }
        }

        /// Work-conserving: what waits goes at the first picosecond at which it may.
        #[test]
        fn ready_time_is_tight(mbps in 1u64..100_000, size in 40u32..=1500) {
            let rate = Rate::from_mbps(mbps);
            let mut shaper =
                TokenBucket::new(ShaperConfig { rate, bucket: Bytes::new(1500) }).unwrap();
            shaper.spend(Time::ZERO, 1500);
            let ready = shaper.ready_at(Time::ZERO, size);
            prop_assert_eq!(ready, rate.transmission_time(Bytes::new(u64::from(size))));
            prop_assert_eq!(shaper.ready_at(ready, size), ready);
        }
    }
}
