use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::host::gate::Refusal;
use crate::port::Framing;
use crate::tally::Tally;
use crate::units::{Bytes, Time};

/// The levels of one host, as many as IEEE 802.1Q has priorities.
pub const MAX_LEVELS: usize = 8;

/// A level of service; what its number means for the priority is up to the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// The level at `index`, if it is less than [`MAX_LEVELS`].
    pub const fn new(index: u8) -> Option<Self> {
        if (index as usize) < MAX_LEVELS {
            Some(Self(index))
        } else {
            None
        }
    }

    /// The position of this level in the configuration.
    #[inline]
    pub const fn index(self) -> usize {
        // Never changes the value; it spares the array access its bounds check.
        self.0 as usize % MAX_LEVELS
    }
}

/// Treatment of a packet over the limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Excess {
    /// It is dropped (Listing 1, line 13).
    #[default]
    Drop,
    /// It waits for the next epoch.
    Hold,
}

/// Start of epochs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EpochClock {
    /// At fixed multiples of the epoch after the start.
    #[default]
    Grid,
    /// At the first packet after the previous epoch, as in the published kernel module.
    Reanchored,
}

/// Scope of a level's limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All flows of the host share one limiter per level (§4).
    #[default]
    Host,
    /// Each flow has its own limiter and its own epochs, which start with its first packet, as in
    /// the published simulation.
    Flow,
}

/// The limits of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LimiterConfig {
    /// The length of an epoch.
    pub epoch: Time,
    /// Bytes per epoch, for each level.
    pub levels: Vec<Bytes>,
    /// Treatment of a packet over the limit.
    #[serde(default)]
    pub excess: Excess,
    /// Start of epochs.
    #[serde(default)]
    pub clock: EpochClock,
    /// Framing of the link behind the limiter: packets count with their length on the wire.
    #[serde(default)]
    pub framing: Framing,
}

/// The reason why a [`LimiterConfig`] makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LimiterError {
    /// The epoch is zero.
    #[error("an epoch must last longer than 0s")]
    NoEpoch,
    /// No levels, or more than [`MAX_LEVELS`].
    #[error("a host has 1 to {MAX_LEVELS} levels, not {0}")]
    Levels(usize),
    /// A level may send nothing.
    #[error("level {0} may send nothing")]
    EmptyLevel(usize),
}

impl LimiterConfig {
    /// Checks that every level may send something in some epoch.
    ///
    /// # Errors
    /// If the epoch is zero, there are no or too many levels, or a level has no bytes.
    pub fn validate(&self) -> Result<(), LimiterError> {
        if self.epoch == Time::ZERO {
            return Err(LimiterError::NoEpoch);
        }
        if self.levels.is_empty() || self.levels.len() > MAX_LEVELS {
            return Err(LimiterError::Levels(self.levels.len()));
        }
        match self.levels.iter().position(|&bytes| bytes == Bytes::ZERO) {
            Some(level) => Err(LimiterError::EmptyLevel(level)),
            None => Ok(()),
        }
    }
}

/// The answer to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Send it now.
    Pass,
    /// Discard it.
    Drop,
    /// Offer it again at this time, before any later packet of its level.
    HoldUntil(Time),
}

/// Counters of a level by decision; together, every packet that was offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelCounters {
    /// Sent at once.
    pub passed: Tally,
    /// Discarded.
    pub dropped: Tally,
    /// Told to wait; a packet counts each time.
    pub held: Tally,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    tokens: Tokens,
    allotment: u64,
    counters: LevelCounters,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tokens {
    /// The first instant that is not in the current epoch.
    epoch_end: Time,
    /// Bytes that may still be sent in it.
    left: u64,
}

/// The rate limiter of Listing 1: each level may send its bytes in each epoch, in any burst.
///
/// Unused bytes do not accumulate. A packet larger than the whole allotment of its level can never
/// pass and is dropped under either [`Excess`], as is every packet of a level that the
/// configuration does not list.
#[derive(Debug, Clone)]
pub struct Limiter {
    buckets: [Bucket; MAX_LEVELS],
    /// Remaining tokens of each flow, where flows are limited one by one.
    flows: FxHashMap<u64, Tokens>,
    epoch: Time,
    excess: Excess,
    clock: EpochClock,
    framing: Framing,
}

impl Limiter {
    /// A limiter whose first epoch begins at `start`.
    ///
    /// # Errors
    /// If the configuration is not [valid](LimiterConfig::validate).
    pub fn new(config: &LimiterConfig, start: Time) -> Result<Self, LimiterError> {
        config.validate()?;
        let tokens = Tokens {
            epoch_end: start,
            left: 0,
        };
        let mut buckets = [Bucket {
            tokens,
            ..Bucket::default()
        }; MAX_LEVELS];
        for (bucket, bytes) in buckets.iter_mut().zip(&config.levels) {
            bucket.allotment = bytes.get();
        }
        let &LimiterConfig {
            epoch,
            excess,
            clock,
            framing,
            ..
        } = config;
        Ok(Self {
            buckets,
            flows: FxHashMap::default(),
            epoch,
            excess,
            clock,
            framing,
        })
    }

    /// Decides about a packet of `bytes` at `level`.
    #[inline]
    pub fn admit(&mut self, now: Time, level: Level, bytes: u32) -> Admission {
        let bytes = self.cost(bytes);
        let bucket = &mut self.buckets[level.index()];
        let allotment = bucket.allotment;
        let passes = bucket
            .tokens
            .take(now, bytes, allotment, self.epoch, self.clock);
        bucket.answer(passes, bytes, self.excess)
    }

    /// Decides about a packet of `bytes` at `level` by what its flow has sent in the current epoch
    /// of the flow ([`Scope::Flow`]).
    pub fn admit_of_flow(&mut self, now: Time, flow: u64, level: Level, bytes: u32) -> Admission {
        let bytes = self.cost(bytes);
        let bucket = &mut self.buckets[level.index()];
        let tokens = self.flows.entry(flow).or_insert(Tokens {
            epoch_end: now,
            left: 0,
        });
        let passes = tokens.take(now, bytes, bucket.allotment, self.epoch, self.clock);
        bucket.answer(passes, bytes, self.excess)
    }

    /// Returns whether a packet of `bytes` can pass `level` in any epoch.
    pub fn can_pass(&self, level: Level, bytes: u32) -> bool {
        u64::from(self.cost(bytes)) <= self.buckets[level.index()].allotment
    }

    /// Bytes charged for a packet of `bytes`.
    #[inline]
    pub fn cost(&self, bytes: u32) -> u32 {
        self.framing.wire_size(bytes)
    }

    /// The reason why a packet of `bytes` at `level` was [dropped](Admission::Drop).
    pub fn refusal(&self, level: Level, bytes: u32) -> Refusal {
        if self.can_pass(level, bytes) {
            Refusal::OverLimit
        } else {
            Refusal::NeverFits
        }
    }

    /// Counters of `level`.
    pub fn counters(&self, level: Level) -> &LevelCounters {
        &self.buckets[level.index()].counters
    }
}

impl Bucket {
    #[inline]
    fn answer(&mut self, passes: bool, bytes: u32, excess: Excess) -> Admission {
        if !passes {
            return self.refuse(bytes, excess);
        }
        self.counters.passed.count(bytes);
        Admission::Pass
    }

    fn refuse(&mut self, bytes: u32, excess: Excess) -> Admission {
        if excess == Excess::Hold && u64::from(bytes) <= self.allotment {
            self.counters.held.count(bytes);
            Admission::HoldUntil(self.tokens.epoch_end)
        } else {
            self.counters.dropped.count(bytes);
            Admission::Drop
        }
    }
}

impl Tokens {
    /// Takes `bytes` if the epoch that contains `now` has that many left.
    #[inline]
    fn take(
        &mut self,
        now: Time,
        bytes: u32,
        allotment: u64,
        epoch: Time,
        clock: EpochClock,
    ) -> bool {
        if now >= self.epoch_end {
            self.left = allotment;
            self.epoch_end = epoch_end_after(now, self.epoch_end, epoch, clock);
        }
        let fits = u64::from(bytes) <= self.left;
        if fits {
            self.left -= u64::from(bytes);
        }
        fits
    }
}

/// The end of the epoch that contains `now`, where the epoch before ended at `end`.
#[inline]
fn epoch_end_after(now: Time, end: Time, epoch: Time, clock: EpochClock) -> Time {
    let begin = match clock {
        EpochClock::Reanchored => now,
        // A busy level finds the very next epoch; only idle time costs a division.
        EpochClock::Grid if now - end < epoch => end,
        EpochClock::Grid => now - (now - end) % epoch,
    };
    begin.saturating_add(epoch)
}
