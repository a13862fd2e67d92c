//! The limits of a real host's device, as a file.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize, de};
use thiserror::Error;

use super::{EpochClock, MAX_LEVELS};
use crate::units::{Bytes, Time};

/// The smallest Ethernet frame without its FCS: a level below it could send nothing.
pub const SMALLEST_FRAME: Bytes = Bytes::new(60);

/// The shortest epoch. The path of a packet through the kernel takes longer than this, so a shorter
/// one would mean nothing.
pub const SHORTEST_EPOCH: Time = Time::from_us(1);

const LONGEST_EPOCH: Time = Time::from_secs(10);

/// What a level may send in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allotment {
    /// No more than this, headers and all.
    Bytes(Bytes),
    /// Whatever it likes: the level of f = n.
    Unlimited,
}

/// The limits of a host's device: the file that `shallows qjump plan --write` makes.
///
/// ```
/// use shallows_core::host::qjump::Limits;
///
/// let limits: Limits = toml::from_str(
///     r#"
///     epoch = "100us"
///     levels = ["unlimited", "50KB", "256B"]
///     "#,
/// )?;
/// limits.validate()?;
/// assert_eq!(limits.dscp_of(2), 16);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// The length of an epoch.
    pub epoch: Time,
    /// For each level from 0, the lowest.
    pub levels: Vec<Allotment>,
    /// Where epochs begin.
    #[serde(default)]
    pub clock: EpochClock,
    /// What is written into the DSCP field, for each level; the class selectors 0, 8, 16, ... if
    /// not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Vec<u8>>,
}

/// Why [`Limits`] make no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LimitsError {
    /// No levels, or more than there are priorities.
    #[error("a host has 1 to {MAX_LEVELS} levels, one for each priority of 802.1Q, not {0}")]
    Levels(usize),
    /// An epoch that is not one.
    #[error(
        "an epoch of {0} is not possible: the kernel's clock counts whole nanoseconds, from \
         {SHORTEST_EPOCH} to {LONGEST_EPOCH}"
    )]
    Epoch(Time),
    /// A level that no packet passes.
    #[error(
        "no packet can meet the limit of level {level}: the smallest frame has {SMALLEST_FRAME}, \
         and it may send {bytes} an epoch"
    )]
    NothingFits {
        /// Which one.
        level: usize,
        /// Its bytes an epoch.
        bytes: Bytes,
    },
    /// Levels in the wrong order.
    #[error(
        "level {0} is served before level {1} and may send more: write levels from level 0, which \
         is served last and may send most"
    )]
    Reversed(usize, usize),
    /// Not one DSCP a level.
    #[error("dscp has {given} values for {levels} levels")]
    DscpCount {
        /// How many there are.
        given: usize,
        /// How many levels.
        levels: usize,
    },
    /// Not six bits.
    #[error("a DSCP is a number from 0 to 63, not {0}")]
    Dscp(u8),
    /// Two levels that a switch could not tell apart.
    #[error("levels {0} and {1} have the same DSCP, so a switch could not tell them apart")]
    SameDscp(usize, usize),
}

impl Limits {
    /// Checks that a packet of each level can pass in some epoch, and that switches can tell the
    /// levels apart.
    pub fn validate(&self) -> Result<(), LimitsError> {
        let levels = self.levels.len();
        if !(1..=MAX_LEVELS).contains(&levels) {
            return Err(LimitsError::Levels(levels));
        }
        let whole = self.epoch.ps().is_multiple_of(Time::from_ns(1).ps());
        if !whole || !(SHORTEST_EPOCH..=LONGEST_EPOCH).contains(&self.epoch) {
            return Err(LimitsError::Epoch(self.epoch));
        }
        for (level, allotment) in self.levels.iter().enumerate() {
            if let &Allotment::Bytes(bytes) = allotment
                && bytes < SMALLEST_FRAME
            {
                return Err(LimitsError::NothingFits { level, bytes });
            }
        }
        let most = |allotment: &Allotment| match *allotment {
            Allotment::Bytes(bytes) => bytes.get(),
            Allotment::Unlimited => u64::MAX,
        };
        for (lower, pair) in self.levels.windows(2).enumerate() {
            if most(&pair[1]) > most(&pair[0]) {
                return Err(LimitsError::Reversed(lower + 1, lower));
            }
        }
        let given = self.dscp.as_ref().map_or(levels, Vec::len);
        if given != levels {
            return Err(LimitsError::DscpCount { given, levels });
        }
        let dscp: Vec<u8> = (0..levels).map(|level| self.dscp_of(level)).collect();
        for (level, &code) in dscp.iter().enumerate() {
            if code > 63 {
                return Err(LimitsError::Dscp(code));
            }
            if let Some(other) = dscp[..level].iter().position(|&before| before == code) {
                return Err(LimitsError::SameDscp(other, level));
            }
        }
        Ok(())
    }

    /// The DSCP of a level, which exists.
    pub fn dscp_of(&self, level: usize) -> u8 {
        match &self.dscp {
            Some(given) => given[level],
            None => 8 * level as u8,
        }
    }

    /// Levels whose full-sized frames never pass, with their bytes an epoch.
    pub fn levels_below(&self, frame: Bytes) -> Vec<(usize, Bytes)> {
        let limited = self.levels.iter().enumerate();
        let limited = limited.filter_map(|(level, allotment)| match allotment {
            Allotment::Bytes(bytes) => Some((level, *bytes)),
            Allotment::Unlimited => None,
        });
        limited.filter(|(_, bytes)| *bytes < frame).collect()
    }

    /// The most full frames that a packet may stand for (GSO), so that it passes at every level
    /// whose allotment holds a frame at all. None if there is no such level.
    pub fn most_segments(&self, frame: Bytes) -> Option<u32> {
        let limited = self.levels.iter().filter_map(|allotment| match allotment {
            Allotment::Bytes(bytes) => Some(bytes.get() / frame.get()),
            Allotment::Unlimited => None,
        });
        let frames = limited.filter(|&frames| frames > 0).min()?;
        Some(frames.min(65_535) as u32)
    }
}

impl Display for Allotment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Unlimited => f.pad("unlimited"),
        }
    }
}

impl FromStr for Allotment {
    type Err = <Bytes as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "unlimited" => Ok(Self::Unlimited),
            bytes => bytes.parse().map(Self::Bytes),
        }
    }
}

impl Serialize for Allotment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Allotment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|error| de::Error::custom(format!("{error}; write bytes or \"unlimited\"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(levels: &[u64]) -> Limits {
        Limits {
            epoch: Time::from_us(100),
            levels: levels
                .iter()
                .map(|&bytes| match bytes {
                    0 => Allotment::Unlimited,
                    bytes => Allotment::Bytes(Bytes::new(bytes)),
                })
                .collect(),
            clock: EpochClock::default(),
            dscp: None,
        }
    }

    #[test]
    fn impossible_limits_are_refused() {
        assert_eq!(limits(&[0, 60]).validate(), Ok(()));
        assert_eq!(limits(&[]).validate(), Err(LimitsError::Levels(0)));
        assert_eq!(limits(&[0; 9]).validate(), Err(LimitsError::Levels(9)));
        let bytes = Bytes::new(59);
        let nothing = LimitsError::NothingFits { level: 1, bytes };
        assert_eq!(limits(&[0, 59]).validate(), Err(nothing));
        let reversed = limits(&[100, 200, 0]).validate();
        assert_eq!(reversed, Err(LimitsError::Reversed(1, 0)));
        assert_eq!(limits(&[0, 0, 100, 100]).validate(), Ok(()));
        for epoch in [
            Time::from_ns(999),
            Time::from_ps(2_000_500),
            Time::from_secs(11),
        ] {
            let limits = Limits {
                epoch,
                ..limits(&[0])
            };
            assert_eq!(limits.validate(), Err(LimitsError::Epoch(epoch)));
        }
        let with = |dscp: &[u8]| Limits {
            dscp: Some(dscp.to_vec()),
            ..limits(&[0, 100])
        };
        assert!(matches!(
            with(&[0]).validate(),
            Err(LimitsError::DscpCount { .. })
        ));
        assert_eq!(with(&[0, 64]).validate(), Err(LimitsError::Dscp(64)));
        assert_eq!(with(&[7, 7]).validate(), Err(LimitsError::SameDscp(0, 1)));
        assert_eq!(with(&[7, 9]).validate(), Ok(()));
    }

    #[test]
    fn a_gso_packet_fits_the_tightest_level_that_holds_a_frame() {
        let frame = Bytes::new(1514);
        // 15,140 B are ten frames; the level of 256 B holds none, so it does not matter.
        assert_eq!(limits(&[0, 20_000, 15_140]).most_segments(frame), Some(10));
        assert_eq!(limits(&[0, 15_140, 256]).most_segments(frame), Some(10));
        assert_eq!(limits(&[0, 1514]).most_segments(frame), Some(1));
        assert_eq!(limits(&[0]).most_segments(frame), None);
        let below = limits(&[0, 15_140, 256]).levels_below(frame);
        assert_eq!(below, [(2, Bytes::new(256))]);
    }
}
