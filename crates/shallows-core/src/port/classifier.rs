//! Classifier: the queue that a packet joins.

use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::packet::Packet;

/// A classifier, as written in a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClassifierConfig {
    /// The DSCP field names the queue; a value without a queue joins the last one.
    Dscp,
    /// `map[dscp]` is the queue; a value beyond the map joins `other`.
    DscpMap {
        /// Queue of DSCP 0, 1, 2, ...
        map: Vec<u8>,
        /// Queue of all other values.
        #[serde(default)]
        other: u8,
    },
    /// A hash of the flow number chooses the queue.
    FlowHash,
    /// ML-ECN's Algorithm 1.
    SizeClass(SizeClasses),
}

impl ClassifierConfig {
    /// The size classes that queues are arranged by, if they are.
    pub(crate) fn size_classes(&self) -> Option<SizeClasses> {
        match self {
            Self::SizeClass(classes) => Some(*classes),
            Self::Dscp | Self::DscpMap { .. } | Self::FlowHash => None,
        }
    }
}

/// ML-ECN §III-B.2, Algorithm 1: queues arranged as small, medium and large, in this order; the
/// stage tag in the DSCP field chooses the class and `flow_id mod Q` the queue within it.
///
/// Line 12 sends a stage of T_large or more to the large queues; the prose below it would send it
/// there only above T_medium. The algorithm is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SizeClasses {
    /// Q_s, number of small queues.
    pub small: u8,
    /// Q_m, number of medium queues.
    pub medium: u8,
    /// Q_l, number of large queues.
    pub large: u8,
    /// T_small, the last stage that joins a small queue.
    pub t_small: u8,
    /// T_large, the first stage that joins a large queue.
    pub t_large: u8,
}

/// The three classes of ML-ECN, of queues and of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeClass {
    /// Stage up to T_small.
    Small,
    /// In between.
    Medium,
    /// Stage T_large and above.
    Large,
}

impl SizeClasses {
    /// Class of a stage tag (Algorithm 1, lines 9 to 17).
    #[inline]
    pub fn class_of(self, stage: u8) -> SizeClass {
        if stage <= self.t_small {
            SizeClass::Small
        } else if stage >= self.t_large {
            SizeClass::Large
        } else {
            SizeClass::Medium
        }
    }

    /// Class that a queue serves.
    pub fn class_of_queue(self, queue: usize) -> SizeClass {
        let small = usize::from(self.small);
        if queue < small {
            SizeClass::Small
        } else if queue < small + usize::from(self.medium) {
            SizeClass::Medium
        } else {
            SizeClass::Large
        }
    }

    #[inline]
    fn queue(self, stage: u8, flow: u64) -> usize {
        let (first, count) = match self.class_of(stage) {
            SizeClass::Small => (0, self.small),
            SizeClass::Medium => (self.small, self.medium),
            SizeClass::Large => (self.small + self.medium, self.large),
        };
        usize::from(first) + (flow % u64::from(count)) as usize
    }

    pub(crate) fn check(self, queues: usize) -> Result<(), ConfigError> {
        if self.small == 0 || self.medium == 0 || self.large == 0 {
            return Err(ConfigError::Zero("size-class"));
        }
        let total = [self.small, self.medium, self.large]
            .map(usize::from)
            .iter()
            .sum();
        if total != queues {
            return Err(ConfigError::ClassQueues { total, queues });
        }
        if self.t_small >= self.t_large {
            return Err(ConfigError::Order("t-small", "t-large"));
        }
        Ok(())
    }
}

/// A running classifier.
#[derive(Clone, Debug)]
#[repr(u8)]
pub(crate) enum Classifier {
    Dscp { last: u8 },
    DscpMap(Box<[u8; 256]>),
    FlowHash { count: u64 },
    SizeClass(Box<SizeClasses>),
}

impl Classifier {
    pub(crate) fn new(config: &ClassifierConfig, count: usize) -> Result<Self, ConfigError> {
        Ok(match config {
            ClassifierConfig::Dscp => Self::Dscp {
                last: (count - 1) as u8,
            },
            ClassifierConfig::DscpMap { map, other } => {
                let mut table = Box::new([*other; 256]);
                if map.len() > table.len() {
                    return Err(ConfigError::Count {
                        what: "map",
                        given: map.len(),
                        needed: table.len(),
                    });
                }
                table[..map.len()].copy_from_slice(map);
                if let Some(&queue) = table.iter().find(|&&queue| usize::from(queue) >= count) {
                    return Err(ConfigError::NoSuchQueue { queue, count });
                }
                Self::DscpMap(table)
            }
            ClassifierConfig::FlowHash => Self::FlowHash {
                count: count as u64,
            },
            ClassifierConfig::SizeClass(classes) => {
                classes.check(count)?;
                Self::SizeClass(Box::new(*classes))
            }
        })
    }

    #[inline]
    pub(crate) fn classify<P: Packet>(&self, packet: &P) -> usize {
        match self {
            Self::Dscp { last } => usize::from(packet.dscp().min(*last)),
            _ => self.look_up(packet.dscp(), packet.flow()),
        }
    }

    /// The classifiers that are not a comparison.
    // Out of line: a jump table would cost every packet of a port that has none of them.
    #[inline(never)]
    fn look_up(&self, dscp: u8, flow: u64) -> usize {
        match self {
            Self::Dscp { last } => usize::from(dscp.min(*last)),
            Self::DscpMap(table) => usize::from(table[usize::from(dscp)]),
            Self::FlowHash { count } => (mix(flow) % count) as usize,
            Self::SizeClass(classes) => classes.queue(dscp, flow),
        }
    }
}

/// Spreads consecutive flow numbers (the finalizer of SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::SizeClass::{Large, Medium, Small};
    use super::*;
    use crate::packet::Descriptor;

    fn packet(dscp: u8, flow: u64) -> Descriptor {
        Descriptor {
            flow,
            dscp,
            ..Descriptor::default()
        }
    }

    fn classifier(config: &ClassifierConfig, count: usize) -> Classifier {
        Classifier::new(config, count).unwrap()
    }

    #[test]
    fn dscp_names_the_queue_and_strays_join_the_last() {
        let classifier = classifier(&ClassifierConfig::Dscp, 4);
        let queues = [0, 1, 3, 4, 46].map(|dscp| classifier.classify(&packet(dscp, 0)));
        assert_eq!(queues, [0, 1, 3, 3, 3]);
    }

    #[test]
    fn dscp_map_reverses_qjump_levels() {
        // QJUMP's level 7 is the most urgent, queue 0 is served first.
        let config = ClassifierConfig::DscpMap {
            map: (0..8).rev().collect(),
            other: 7,
        };
        let classifier = classifier(&config, 8);
        assert_eq!(classifier.classify(&packet(7, 0)), 0);
        assert_eq!(classifier.classify(&packet(0, 0)), 7);
        assert_eq!(classifier.classify(&packet(63, 0)), 7);
    }

    #[test]
    fn a_map_to_a_missing_queue_is_refused() {
        let config = ClassifierConfig::DscpMap {
            map: vec![0, 4],
            other: 0,
        };
        let error = Classifier::new(&config, 4).unwrap_err().to_string();
        assert_eq!(error, "queue 4 does not exist: the port has queues 0 to 3");
    }

    #[test]
    fn flow_hash_spreads_consecutive_flows() {
        let classifier = classifier(&ClassifierConfig::FlowHash, 8);
        let mut load = [0; 8];
        for flow in 0..8000 {
            load[classifier.classify(&packet(0, flow))] += 1;
        }
        assert!(load.iter().all(|n| (850..1150).contains(n)), "{load:?}");
    }

    #[test]
    fn algorithm_1() {
        let classes = SizeClasses {
            small: 2,
            medium: 3,
            large: 3,
            t_small: 2,
            t_large: 6,
        };
        let classifier = classifier(&ClassifierConfig::SizeClass(classes), 8);
        let queue = |stage, flow| classifier.classify(&packet(stage, flow));
        assert_eq!([queue(1, 4), queue(2, 5)], [0, 1]);
        assert_eq!([queue(3, 6), queue(5, 7), queue(4, 8)], [2, 3, 4]);
        assert_eq!([queue(6, 9), queue(8, 10), queue(7, 11)], [5, 6, 7]);
        let by_queue: Vec<_> = (0..8).map(|q| classes.class_of_queue(q)).collect();
        assert_eq!(
            by_queue,
            [Small, Small, Medium, Medium, Medium, Large, Large, Large]
        );
    }

    #[test]
    fn size_classes_must_cover_the_queues() {
        let classes = SizeClasses {
            small: 2,
            medium: 2,
            large: 2,
            t_small: 2,
            t_large: 6,
        };
        assert!(classes.check(8).is_err());
        assert!(classes.check(6).is_ok());
    }
}
