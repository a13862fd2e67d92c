//! ML-ECN (Alanazi and Hamdaoui): several marking levels, with probabilities that spare small
//! flows (§III-B.2b).
//!
//! - Small queues: the standard threshold K, nothing else.
//! - Medium queues, Algorithm 2: with more than K in the port, every packet is marked once its
//!   queue is above TL_1; below that, the queue's level i (TL_i <= length < TL_(i+1)) gives large
//!   packets Pr_(i+1), medium ones Pr_i and small ones Pr_(i-1).
//! - Large queues: the same, but all packets alike, with Pr_i at level i.
//! - eq. 2: TL_i = i x K / L; Pr_i = TL_i / K.
//!
//! What the paper leaves open, and what is done here:
//! - Lines 12 and 15 print `TL1 >= Q < TL2`, a misprint of `TL1 <= Q < TL2`; the last branch is
//!   then "at or above TL_L", and nothing is marked below TL_1.
//! - Algorithm 2 is printed with three branches. With eq. 2 they are those of L = 4, as in the
//!   evaluation: from TL_1, from TL_2, and from TL_3 up to K. The index rule above gives the printed
//!   lines for L = 4 and goes on for any L, with Pr_0 = 0 and Pr_(L+1) = 1.
//! - Which packets count as small or large *within* a medium queue is not said. The stages between
//!   T_small and T_large are split by `packet-small` and `packet-large`; by default the first of
//!   them is small and the last is large if there are three or more, and all are medium if not.
//! - "Similar ... with increasing marking probability" for large queues is read as Pr_i at level i.

use serde::{Deserialize, Serialize};

use super::{Marking, PortContext, Seen, Threshold, real};
use crate::port::{ConfigError, MarkReason, Queues, SizeClass, SizeClasses};
use crate::random::Coin;

/// Parameters of ML-ECN's marker; the classes of queues are those of the classifier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MlEcnConfig {
    /// K, the standard threshold.
    pub threshold: Threshold,
    /// L, the number of threshold levels.
    #[serde(default = "default_levels")]
    pub levels: u8,
    /// Last stage whose packets count as small in a medium queue.
    pub packet_small: Option<u8>,
    /// First stage whose packets count as large in a medium queue.
    pub packet_large: Option<u8>,
}

fn default_levels() -> u8 {
    4
}

/// A running ML-ECN marker.
#[derive(Clone, Debug)]
pub(in crate::port) struct MlEcn {
    /// K in bytes.
    k: f64,
    levels: u16,
    packet_classes: SizeClasses,
    queue_classes: Vec<SizeClass>,
    coin: Coin,
}

impl MlEcn {
    pub(super) fn new(config: &MlEcnConfig, port: &PortContext<'_>) -> Result<Self, ConfigError> {
        let classes = port.classes.ok_or(ConfigError::NeedsSizeClasses)?;
        classes.check(port.queues())?;
        if config.levels == 0 {
            return Err(ConfigError::Zero("levels"));
        }
        let split = classes.t_large - classes.t_small > 3;
        let (small, large) = if split {
            (classes.t_small + 1, classes.t_large - 1)
        } else {
            (classes.t_small, classes.t_large)
        };
        let packet_classes = SizeClasses {
            t_small: config.packet_small.unwrap_or(small),
            t_large: config.packet_large.unwrap_or(large),
            ..classes
        };
        if packet_classes.t_small >= packet_classes.t_large {
            return Err(ConfigError::Order("packet-small", "packet-large"));
        }
        Ok(Self {
            k: port.bytes(config.threshold)?,
            levels: u16::from(config.levels),
            packet_classes,
            queue_classes: (0..port.queues())
                .map(|queue| classes.class_of_queue(queue))
                .collect(),
            coin: port.coin(),
        })
    }

    /// TL_i (eq. 2).
    fn level_start(&self, level: u16) -> f64 {
        f64::from(level) * self.k / f64::from(self.levels)
    }

    /// Pr_i = TL_i / K = i / L, and 1 above the last level.
    fn level_probability(&self, level: u16) -> f64 {
        (f64::from(level) / f64::from(self.levels)).min(1.0)
    }

    /// The i of TL_i <= length < TL_(i+1); 0 below TL_1, L above TL_L.
    fn level(&self, length: f64) -> u16 {
        let level = (length * f64::from(self.levels) / self.k) as u64;
        level.min(u64::from(self.levels)) as u16
    }
}

impl Marking for MlEcn {
    #[inline(never)]
    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        let length = real(seen.queue_length);
        let class = self.queue_classes[seen.queue];
        if class == SizeClass::Small {
            return (length > self.k).then_some(MarkReason::Queue);
        }
        if real(seen.port_length) > self.k {
            return (length > self.level_start(1)).then_some(MarkReason::Port);
        }
        let level = self.level(length);
        if level == 0 {
            return None;
        }
        let packet = match class {
            SizeClass::Large => SizeClass::Medium,
            _ => self.packet_classes.class_of(seen.stage),
        };
        let p = match packet {
            SizeClass::Small => self.level_probability(level - 1),
            SizeClass::Medium => self.level_probability(level),
            SizeClass::Large => self.level_probability(level + 1),
        };
        self.coin.heads(p).then_some(MarkReason::Probability)
    }

    fn threshold(&self, queue: usize, _: &Queues) -> Option<f64> {
        Some(match self.queue_classes[queue] {
            SizeClass::Small => self.k,
            SizeClass::Medium | SizeClass::Large => self.level_start(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::marker::tests::{length, port, seen};

    /// Queues 0-1 small, 2-4 medium, 5-7 large; stages 3..=6 are medium, of which 3 is small and 6
    /// is large. K = 120,000 B.
    fn marker(levels: u8) -> MlEcn {
        let mut port = port(&[1500; 8]);
        port.classes = Some(SizeClasses {
            small: 2,
            medium: 3,
            large: 3,
            t_small: 2,
            t_large: 7,
        });
        let config = MlEcnConfig {
            threshold: length(120_000),
            levels,
            packet_small: None,
            packet_large: None,
        };
        MlEcn::new(&config, &port).unwrap()
    }

    /// Marking frequency of a packet of `stage` in `queue`, as the number of marks in 10,000.
    fn frequency(ml: &mut MlEcn, queue: usize, stage: u8, queue_length: u64, port: u64) -> usize {
        let seen = Seen {
            stage,
            port_length: port,
            ..seen(queue, queue_length)
        };
        (0..10_000)
            .filter(|_| ml.decide(seen, &Queues::new(8)).is_some())
            .count()
    }

    #[test]
    fn equation_2() {
        let ml = marker(4);
        let levels: Vec<_> = (1..=4).map(|i| ml.level_start(i)).collect();
        assert_eq!(levels, [30_000.0, 60_000.0, 90_000.0, 120_000.0]);
        let probabilities: Vec<_> = (1..=4).map(|i| ml.level_probability(i)).collect();
        assert_eq!(probabilities, [0.25, 0.5, 0.75, 1.0]);
        assert_eq!(ml.level(29_999.0), 0);
        assert_eq!(ml.level(30_000.0), 1);
        assert_eq!(ml.level(119_999.0), 3);
        assert_eq!(ml.level(500_000.0), 4);
    }

    #[test]
    fn small_queues_know_the_standard_threshold_only() {
        let mut ml = marker(3);
        let mut decide = |length, port| {
            let seen = Seen {
                port_length: port,
                ..seen(0, length)
            };
            ml.decide(seen, &Queues::new(8))
        };
        assert_eq!(decide(120_000, 300_000), None);
        assert_eq!(decide(120_001, 300_000), Some(MarkReason::Queue));
    }

    #[test]
    fn a_full_port_marks_all_but_short_queues() {
        let mut ml = marker(3);
        for queue in [2, 5] {
            for stage in 3..=8 {
                assert_eq!(frequency(&mut ml, queue, stage, 40_000, 120_001), 0);
                assert_eq!(frequency(&mut ml, queue, stage, 40_001, 120_001), 10_000);
            }
        }
    }

    /// The printed lines 12 to 23, L = 4: Pr_1, Pr_2, Pr_3 = 1/4, 1/2, 3/4.
    #[test]
    fn algorithm_2_as_printed() {
        let mut ml = marker(4);
        let expected = [
            (29_999, [0, 0, 0]),
            (30_000, [0, 2_500, 5_000]),
            (60_000, [2_500, 5_000, 7_500]),
            (90_000, [5_000, 7_500, 10_000]),
            (119_999, [5_000, 7_500, 10_000]),
        ];
        for (length, [small, medium, large]) in expected {
            for (stage, wanted) in [(3, small), (4, medium), (5, medium), (6, large)] {
                let got = frequency(&mut ml, 2, stage, length, length);
                assert!(
                    got.abs_diff(wanted) < 200,
                    "{length} {stage}: {got}, not {wanted}"
                );
            }
        }
    }

    #[test]
    fn large_queues_treat_all_packets_alike() {
        let mut ml = marker(4);
        for (length, wanted) in [
            (29_999, 0),
            (30_000, 2_500),
            (60_000, 5_000),
            (120_000, 10_000),
        ] {
            let got = frequency(&mut ml, 6, 8, length, length);
            assert!(got.abs_diff(wanted) < 200, "{length}: {got}, not {wanted}");
        }
    }
}
