//! The limits of a real host's device, as a file.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize, de};
use thiserror::Error;

use super::{EpochClock, Excess, MAX_LEVELS};
use crate::port::Framing;
use crate::units::{Bytes, Time};

/// The smallest Ethernet frame on the wire, with preamble, check sequence and gap: a level below it
/// could send nothing.
pub const SMALLEST_FRAME: Bytes = Bytes::new(84);

/// The largest frame of an ordinary Ethernet, with its header and without its check sequence.
pub const FULL_FRAME: Bytes = Bytes::new(1514);

/// Bytes that wait at a level with [`Excess::Hold`] if the limits do not say.
const HOLD_LIMIT: Bytes = Bytes::new(128_000);

/// The Ethernet header.
const HEADER: u64 = 14;

/// The shortest epoch. The path of a packet through the kernel takes longer than this, so a shorter
/// one would mean nothing.
pub const SHORTEST_EPOCH: Time = Time::from_us(1);

const LONGEST_EPOCH: Time = Time::from_secs(10);

/// The bytes that a frame takes on the wire: its own, at least 60, and 24 of preamble, check
/// sequence and gap. The frame has its Ethernet header and lacks the check sequence, as `tcpdump`
/// and `ip link` count it.
pub fn on_the_wire(frame: Bytes) -> Bytes {
    let packet = frame.get().saturating_sub(HEADER);
    let packet = u32::try_from(packet).unwrap_or(u32::MAX / 2);
    Bytes::new(u64::from(Framing::ETHERNET.wire_size(packet)))
}

/// The DSCP that packets of a level carry inside a host, and on the wire unless the limits say
/// otherwise: 0 for level 0, else 8 x level + 3.
///
/// Codes that end in binary 11 are for local use (RFC 2474, pool 2): no program sets them by
/// itself, as ssh sets CS1 and AF21. Their upper three bits are the level, as in class selectors.
pub fn mark_of(level: u8) -> u8 {
    match level {
        0 => 0,
        level => 8 * level + 3,
    }
}

/// Allotment of a level per epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allotment {
    /// No more than this, [on the wire](on_the_wire).
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
/// assert_eq!(limits.dscp_of(2), 19);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// The length of an epoch.
    pub epoch: Time,
    /// For each level from 0, the lowest.
    pub levels: Vec<Allotment>,
    /// Start of epochs.
    #[serde(default)]
    pub clock: EpochClock,
    /// Treatment of a packet over the limit.
    #[serde(default)]
    pub excess: Excess,
    /// Bytes that may wait at each limited level where the excess is held; 128 KB if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_limit: Option<Bytes>,
    /// The DSCP of each level on the wire; its [mark](mark_of) if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Vec<u8>>,
    /// Frames without a VLAN tag get one with the level as PCP and no VLAN (VID 0).
    #[serde(default, skip_serializing_if = "is_false")]
    pub priority_tag: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// The reason why [`Limits`] make no sense.
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
        "no packet can meet the limit of level {level}: the smallest frame takes {SMALLEST_FRAME} \
         on the wire, and it may send {bytes} per epoch"
    )]
    NothingFits {
        /// The level.
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
        /// Number given.
        given: usize,
        /// Number of levels.
        levels: usize,
    },
    /// Not six bits.
    #[error("a DSCP is a number from 0 to 63, not {0}")]
    Dscp(u8),
    /// Two levels that a switch could not tell apart.
    #[error("levels {0} and {1} have the same DSCP, so a switch could not tell them apart")]
    SameDscp(usize, usize),
    /// Levels above the lowest without a code of their own.
    #[error(
        "level {0} has DSCP 0, which every packet without a level carries: give it another, or \
         leave out dscp"
    )]
    NoDscp(usize),
    /// A limit for what never waits.
    #[error("hold-limit is for what waits: write excess = \"hold\", or leave it out")]
    NothingHeld,
    /// Too little room for a full frame.
    #[error("hold-limit = {0} has no room for a full frame, which takes 1538B on the wire")]
    HoldLimit(Bytes),
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
            if level > 0 && code == 0 {
                return Err(LimitsError::NoDscp(level));
            }
            if let Some(other) = dscp[..level].iter().position(|&before| before == code) {
                return Err(LimitsError::SameDscp(other, level));
            }
        }
        match (self.excess, self.hold_limit) {
            (Excess::Drop, Some(_)) => Err(LimitsError::NothingHeld),
            (Excess::Hold, Some(limit)) if limit < on_the_wire(FULL_FRAME) => {
                Err(LimitsError::HoldLimit(limit))
            }
            _ => Ok(()),
        }
    }

    /// Bytes that may wait at each limited level; none where the excess is dropped.
    pub fn hold_limit(&self) -> Option<Bytes> {
        match self.excess {
            Excess::Drop => None,
            Excess::Hold => Some(self.hold_limit.unwrap_or(HOLD_LIMIT)),
        }
    }

    /// The DSCP of a level, which exists, on the wire.
    pub fn dscp_of(&self, level: usize) -> u8 {
        match &self.dscp {
            Some(given) => given[level],
            None => mark_of(level as u8),
        }
    }

    /// The level of a packet without a priority of ours, for each DSCP that it may carry: the level
    /// whose [mark](mark_of) it is, or whose code on the wire where that is for local use too. Codes
    /// that programs set by themselves are no level's, whatever goes on the wire.
    pub fn level_of_dscp(&self) -> [u8; 64] {
        let mut levels = [0; 64];
        for level in 1..self.levels.len() {
            levels[usize::from(mark_of(level as u8))] = level as u8;
        }
        for level in 1..self.levels.len() {
            let code = self.dscp_of(level);
            if code % 4 == 3 {
                levels[usize::from(code)] = level as u8;
            }
        }
        levels
    }

    /// Levels at which a frame never passes, with their bytes per epoch.
    pub fn levels_below(&self, frame: Bytes) -> Vec<(usize, Bytes)> {
        let wire = on_the_wire(frame);
        let limited = self.levels.iter().enumerate();
        let limited = limited.filter_map(|(level, allotment)| match allotment {
            Allotment::Bytes(bytes) => Some((level, *bytes)),
            Allotment::Unlimited => None,
        });
        limited.filter(|(_, bytes)| *bytes < wire).collect()
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
            excess: Excess::Drop,
            hold_limit: None,
            dscp: None,
            priority_tag: false,
        }
    }

    #[test]
    fn impossible_limits_are_refused() {
        assert_eq!(limits(&[0, 84]).validate(), Ok(()));
        assert_eq!(limits(&[]).validate(), Err(LimitsError::Levels(0)));
        assert_eq!(limits(&[0; 9]).validate(), Err(LimitsError::Levels(9)));
        let bytes = Bytes::new(83);
        let nothing = LimitsError::NothingFits { level: 1, bytes };
        assert_eq!(limits(&[0, 83]).validate(), Err(nothing));
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
        assert_eq!(with(&[8, 0]).validate(), Err(LimitsError::NoDscp(1)));
        let holding = |excess, hold_limit: u64| Limits {
            excess,
            hold_limit: Some(Bytes::new(hold_limit)),
            ..limits(&[0, 100])
        };
        let nothing = LimitsError::NothingHeld;
        assert_eq!(holding(Excess::Drop, 1538).validate(), Err(nothing));
        let little = LimitsError::HoldLimit(Bytes::new(1537));
        assert_eq!(holding(Excess::Hold, 1537).validate(), Err(little));
        assert_eq!(holding(Excess::Hold, 1538).validate(), Ok(()));
    }

    #[test]
    fn a_frame_takes_its_bytes_on_the_wire() {
        let wire = |frame| on_the_wire(Bytes::new(frame)).get();
        assert_eq!([wire(42), wire(60), wire(61)], [84, 84, 85]);
        assert_eq!([wire(256), wire(1514)], [280, 1538]);
        // 1,537 B hold no full frame.
        let below = limits(&[0, 1538, 1537]).levels_below(FULL_FRAME);
        assert_eq!(below, [(2, Bytes::new(1537))]);
    }

    #[test]
    fn no_code_that_programs_set_by_themselves_is_a_level() {
        // CS1 and AF21 are ssh's, LE (1) and EF (46) are standard.
        for limits in [
            limits(&[0; 8]),
            Limits {
                dscp: Some(vec![0, 8, 18, 46]),
                ..limits(&[0; 4])
            },
        ] {
            let levels = limits.level_of_dscp();
            for code in (0..64).filter(|code| code % 4 != 3) {
                assert_eq!(levels[code], 0, "{code}");
            }
            assert_eq!([levels[11], levels[19], levels[27]], [1, 2, 3]);
        }
        // Codes for local use may be chosen.
        let own = Limits {
            dscp: Some(vec![0, 63, 7]),
            ..limits(&[0; 3])
        };
        let levels = own.level_of_dscp();
        assert_eq!([levels[63], levels[7], levels[11]], [1, 2, 1]);
    }
}
