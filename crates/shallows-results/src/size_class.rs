//! Small, medium and large flows.

use serde::{Deserialize, Serialize};
use shallows_core::units::Bytes;

use crate::ResultsError;

/// A class of flows by their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeClass {
    /// Up to 100 KB by default.
    Small,
    /// Above small and up to 10 MB by default.
    Medium,
    /// All others.
    Large,
}

/// Upper bounds of the classes. The default is the papers' small (0, 100 KB], medium (100 KB, 10
/// MB] and large, with 1000 bytes to a KB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Bounds")]
pub struct SizeClasses {
    small_max: Bytes,
    medium_max: Bytes,
}

impl SizeClasses {
    /// The bins of the MQ-ECN authors' scripts, with 1024 bytes to a KB: small below 100 KB, large
    /// above 10 MB. A size of exactly 100 KB is medium there, so the largest small flow has a byte
    /// less.
    pub const MQ_ECN_AS_SIMULATED: Self = Self {
        small_max: Bytes::new(100 * 1024 - 1),
        medium_max: Bytes::new(10 * 1024 * 1024),
    };

    /// Classes by the largest small and the largest medium flow.
    pub fn new(small_max: Bytes, medium_max: Bytes) -> Result<Self, ResultsError> {
        if small_max >= medium_max {
            return Err(ResultsError::SizeClasses {
                small_max,
                medium_max,
            });
        }
        Ok(Self {
            small_max,
            medium_max,
        })
    }

    /// The class of a flow of `bytes`.
    pub fn class_of(&self, bytes: u64) -> SizeClass {
        if bytes <= self.small_max.get() {
            SizeClass::Small
        } else if bytes <= self.medium_max.get() {
            SizeClass::Medium
        } else {
            SizeClass::Large
        }
    }

    /// The largest small flow.
    pub fn small_max(&self) -> Bytes {
        self.small_max
    }

    /// The largest medium flow.
    pub fn medium_max(&self) -> Bytes {
        self.medium_max
    }
}

impl Default for SizeClasses {
    fn default() -> Self {
        Self {
            small_max: Bytes::from_kb(100),
            medium_max: Bytes::from_kb(10_000),
        }
    }
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Bounds {
    small_max: Bytes,
    medium_max: Bytes,
}

impl TryFrom<Bounds> for SizeClasses {
    type Error = ResultsError;

    fn try_from(bounds: Bounds) -> Result<Self, ResultsError> {
        Self::new(bounds.small_max, bounds.medium_max)
    }
}

/// A count of packets or events for each class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassCounts {
    /// Of small flows.
    pub small: u64,
    /// Of medium flows.
    pub medium: u64,
    /// Of large flows.
    pub large: u64,
    /// Of traffic that is no flow with a size, such as a constant stream of datagrams.
    pub other: u64,
}

impl ClassCounts {
    /// Of everything.
    pub fn total(&self) -> u64 {
        self.small + self.medium + self.large + self.other
    }

    /// Each with its name, everything first.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("all", self.total()),
            ("small", self.small),
            ("medium", self.medium),
            ("large", self.large),
            ("other", self.other),
        ]
    }

    /// Counts `more` for a class.
    pub fn add(&mut self, class: SizeClass, more: u64) {
        match class {
            SizeClass::Small => self.small += more,
            SizeClass::Medium => self.medium += more,
            SizeClass::Large => self.large += more,
        }
    }
}

impl std::iter::Sum for ClassCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, next| Self {
            small: sum.small + next.small,
            medium: sum.medium + next.medium,
            large: sum.large + next.large,
            other: sum.other + next.other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_bounds_belong_to_their_class() {
        let classes = SizeClasses::default();
        assert_eq!(classes.class_of(1), SizeClass::Small);
        assert_eq!(classes.class_of(100_000), SizeClass::Small);
        assert_eq!(classes.class_of(100_001), SizeClass::Medium);
        assert_eq!(classes.class_of(10_000_000), SizeClass::Medium);
        assert_eq!(classes.class_of(10_000_001), SizeClass::Large);
    }

    #[test]
    fn the_authors_count_exactly_100_kib_as_medium() {
        let classes = SizeClasses::MQ_ECN_AS_SIMULATED;
        assert_eq!(classes.class_of(102_399), SizeClass::Small);
        assert_eq!(classes.class_of(102_400), SizeClass::Medium);
        assert_eq!(classes.class_of(10_485_760), SizeClass::Medium);
        assert_eq!(classes.class_of(10_485_761), SizeClass::Large);
    }

    #[test]
    fn bounds_that_do_not_grow_are_refused_wherever_they_come_from() {
        let text = r#"{"small_max": "10MB", "medium_max": "100KB"}"#;
        let error = serde_json::from_str::<SizeClasses>(text).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("size classes must grow: small_max is 10MB"),
            "{error}"
        );
        let classes: SizeClasses =
            serde_json::from_str(r#"{"small_max": "100KB", "medium_max": "10MB"}"#).unwrap();
        assert_eq!(classes, SizeClasses::default());
    }
}
