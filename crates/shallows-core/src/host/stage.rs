//! Stages: how far a flow has come, tagged into each of its packets (ML-ECN §III-B.1).
//!
//! The host counts the bytes of a flow, so that a switch can tell small flows from large ones
//! without state of its own. The scheme is that of PIAS (Bai et al., NSDI 2015), whose published
//! thresholds are here because ML-ECN publishes none.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::Bytes;

/// The most stages: the tag travels in the six bits of the DSCP field, and stages count from 1.
pub const MAX_STAGES: usize = 63;

/// Tags packets with the stage of their flow or connection, 1 to K.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "StagesConfig", into = "StagesConfig")]
pub struct StageTagger {
    /// α_1 < ... < α_{K-1}.
    thresholds: Vec<Bytes>,
    count: StageCount,
    /// Tags of ACKs by the stage of what they acknowledge; if empty, the first stage.
    acks: Vec<u8>,
}

/// Bytes that a stage counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StageCount {
    /// Bytes of the flow (ML-ECN, PIAS). A retransmission has the stage that its flow has reached.
    #[default]
    Flow,
    /// Bytes of the connection over all its flows: the stage follows the sequence number (the
    /// published simulation of EAR).
    Connection,
}

/// Stages, as written in a scenario: the thresholds alone, or a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "stages are a list of sizes such as [\"20KB\", \"1MB\"], or a table with thresholds"
)]
pub enum StagesConfig {
    /// α_1 < ... < α_{K-1}, of each flow; ACKs have the first stage.
    Thresholds(Vec<Bytes>),
    /// Thresholds with further settings.
    Table(StagesTable),
}

/// Thresholds, their scope, and the tags of ACKs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StagesTable {
    /// α_1 < ... < α_{K-1}.
    pub thresholds: Vec<Bytes>,
    /// Bytes that the thresholds count.
    #[serde(default)]
    pub count: StageCount,
    /// The DSCP of ACKs, one value for each stage of the bytes that they acknowledge on their
    /// connection. If not given, all ACKs have the first stage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acks: Vec<u8>,
}

/// The reason why a list of thresholds makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StageError {
    /// Not one tag of ACKs for each stage.
    #[error("acks has {given} values for {stages} stages")]
    AckTags {
        /// Number given.
        given: usize,
        /// K.
        stages: usize,
    },
    /// A tag that the DSCP field cannot hold.
    #[error("acks: {0} does not fit in the DSCP field, which holds {MAX_STAGES}")]
    AckTag(u8),
    /// A threshold is not above the one before, or the first not above zero.
    #[error("stage threshold {threshold} is not above {before}")]
    NotIncreasing {
        /// The threshold.
        threshold: Bytes,
        /// The one before.
        before: Bytes,
    },
    /// More than [`MAX_STAGES`].
    #[error("{0} stages do not fit in the DSCP field, which holds {MAX_STAGES}")]
    TooMany(usize),
}

impl StageTagger {
    /// A tagger with the elevation thresholds α_1 < ... < α_{K-1}; none make one stage.
    ///
    /// # Errors
    /// If the thresholds do not increase from above zero, or are too many.
    pub fn new(thresholds: Vec<Bytes>) -> Result<Self, StageError> {
        let stages = thresholds.len() + 1;
        if stages > MAX_STAGES {
            return Err(StageError::TooMany(stages));
        }
        let mut before = Bytes::ZERO;
        for &threshold in &thresholds {
            if threshold <= before {
                return Err(StageError::NotIncreasing { threshold, before });
            }
            before = threshold;
        }
        Ok(Self::of_flows(thresholds))
    }

    fn of_flows(thresholds: Vec<Bytes>) -> Self {
        Self {
            thresholds,
            count: StageCount::Flow,
            acks: Vec::new(),
        }
    }

    /// The eight stages that PIAS used for the web search workload at 80% load.
    pub fn pias_web_search() -> Self {
        Self::from_segments([909, 1329, 1648, 1960, 2143, 2337, 2484])
    }

    /// The eight stages that PIAS used for the data mining workload.
    pub fn pias_data_mining() -> Self {
        Self::from_segments([745, 1083, 1391, 13_689, 14_936, 21_149, 27_245])
    }

    /// PIAS counts in full segments of 1460 B.
    fn from_segments(segments: [u64; 7]) -> Self {
        Self::of_flows(segments.map(|n| Bytes::new(1460 * n)).to_vec())
    }

    /// The stage of a packet before which `sent` was sent of its flow or connection: S_{j+1} once
    /// α_j are sent.
    #[inline]
    pub fn stage(&self, sent: Bytes) -> u8 {
        1 + self
            .thresholds
            .partition_point(|&threshold| threshold <= sent) as u8
    }

    /// The tag of an ACK of all bytes of its connection up to `acked`.
    #[inline]
    pub fn of_ack(&self, acked: Bytes) -> u8 {
        match self.acks.get(usize::from(self.stage(acked)) - 1) {
            Some(&tag) => tag,
            None => 1,
        }
    }

    /// Entity whose bytes the stages count.
    #[inline]
    pub fn count(&self) -> StageCount {
        self.count
    }

    /// The greatest tag of any packet.
    pub fn greatest_tag(&self) -> u8 {
        self.acks.iter().copied().fold(self.stages(), u8::max)
    }

    /// K, the number of stages.
    pub fn stages(&self) -> u8 {
        1 + self.thresholds.len() as u8
    }

    /// α_1 < ... < α_{K-1}.
    pub fn thresholds(&self) -> &[Bytes] {
        &self.thresholds
    }
}

impl TryFrom<StagesConfig> for StageTagger {
    type Error = StageError;

    fn try_from(config: StagesConfig) -> Result<Self, StageError> {
        match config {
            StagesConfig::Thresholds(thresholds) => Self::new(thresholds),
            StagesConfig::Table(StagesTable {
                thresholds,
                count,
                acks,
            }) => {
                let stages = thresholds.len() + 1;
                if !acks.is_empty() && acks.len() != stages {
                    let given = acks.len();
                    return Err(StageError::AckTags { given, stages });
                }
                let too_large = acks.iter().find(|tag| usize::from(**tag) > MAX_STAGES);
                if let Some(&tag) = too_large {
                    return Err(StageError::AckTag(tag));
                }
                Ok(Self {
                    count,
                    acks,
                    ..Self::new(thresholds)?
                })
            }
        }
    }
}

impl From<StageTagger> for StagesConfig {
    fn from(tagger: StageTagger) -> Self {
        let StageTagger {
            thresholds,
            count,
            acks,
        } = tagger;
        if count == StageCount::Flow && acks.is_empty() {
            return Self::Thresholds(thresholds);
        }
        Self::Table(StagesTable {
            thresholds,
            count,
            acks,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tagger(thresholds: &[u64]) -> Result<StageTagger, StageError> {
        StageTagger::new(thresholds.iter().copied().map(Bytes::new).collect())
    }

    #[test]
    fn a_threshold_elevates_once_it_is_sent() {
        let tagger = tagger(&[1000, 5000]).unwrap();
        let stages = [0, 999, 1000, 4999, 5000, u64::MAX].map(|n| tagger.stage(Bytes::new(n)));
        assert_eq!(stages, [1, 1, 2, 2, 3, 3]);
        assert_eq!(tagger.stages(), 3);
    }

    #[test]
    fn no_thresholds_make_one_stage() {
        assert_eq!(tagger(&[]).unwrap().stage(Bytes::new(u64::MAX)), 1);
    }

    #[test]
    fn thresholds_must_increase() {
        let message = |thresholds: &[u64]| tagger(thresholds).unwrap_err().to_string();
        assert_eq!(message(&[0]), "stage threshold 0B is not above 0B");
        assert_eq!(
            message(&[9000, 9000]),
            "stage threshold 9KB is not above 9KB"
        );
        assert_eq!(
            message(&[9000, 700]),
            "stage threshold 700B is not above 9KB"
        );
        let many: Vec<u64> = (1..=63).collect();
        assert_eq!(
            message(&many),
            "64 stages do not fit in the DSCP field, which holds 63"
        );
        assert_eq!(tagger(&many[..62]).unwrap().stages(), 63);
    }

    #[test]
    fn published_thresholds_are_valid() {
        for tagger in [
            StageTagger::pias_web_search(),
            StageTagger::pias_data_mining(),
        ] {
            assert_eq!(tagger.stages(), 8);
            assert_eq!(StageTagger::new(tagger.thresholds().to_vec()), Ok(tagger));
        }
        // 909 and 27,245 segments.
        assert_eq!(
            StageTagger::pias_web_search().stage(Bytes::new(1_327_140)),
            2
        );
        assert_eq!(
            StageTagger::pias_data_mining().stage(Bytes::new(39_777_700)),
            8
        );
        assert_eq!(
            StageTagger::pias_data_mining().stage(Bytes::new(39_777_699)),
            7
        );
    }

    #[derive(Serialize, Deserialize)]
    struct Host {
        stages: StageTagger,
    }

    #[test]
    fn toml_lists_the_thresholds() {
        let text = "stages = [\"100KB\", \"1MB\"]\n";
        let host: Host = toml::from_str(text).unwrap();
        assert_eq!(host.stages, tagger(&[100_000, 1_000_000]).unwrap());
        assert_eq!(toml::to_string(&host).unwrap(), text);
        let error = |text| toml::from_str::<Host>(text).err().unwrap();
        assert_eq!(
            error("stages = ['1MB', '100KB']").message(),
            "stage threshold 100KB is not above 1MB"
        );
    }

    #[test]
    fn a_table_counts_connections_and_tags_acks() {
        let text = "[stages]\nthresholds = [\"14.5KB\"]\ncount = \"connection\"\nacks = [1, 3]\n";
        let Host { stages } = toml::from_str(text).unwrap();
        assert_eq!(stages.count(), StageCount::Connection);
        // Ten segments of 1450 B: the tenth begins at 13,050, the ACK of all ten is beyond.
        let tags = |of: fn(&StageTagger, Bytes) -> u8| {
            [0, 13_050, 14_499, 14_500].map(|n| of(&stages, Bytes::new(n)))
        };
        assert_eq!(tags(StageTagger::stage), [1, 1, 1, 2]);
        assert_eq!(tags(StageTagger::of_ack), [1, 1, 1, 3]);
        assert_eq!((stages.stages(), stages.greatest_tag()), (2, 3));
        assert_eq!(toml::to_string(&Host { stages }).unwrap(), text);
        let error = |acks: &str| {
            let text = format!("stages = {{ thresholds = ['1KB'], acks = {acks} }}");
            let error = toml::from_str::<Host>(&text).err().unwrap();
            error.message().to_owned()
        };
        assert_eq!(error("[1]"), "acks has 1 values for 2 stages");
        assert_eq!(
            error("[1, 64]"),
            "acks: 64 does not fit in the DSCP field, which holds 63"
        );
    }

    proptest! {
        #[test]
        fn stages_only_rise_and_count_the_thresholds_passed(
            thresholds in prop::collection::btree_set(1..100_000_u64, 0..20),
            a in 0..100_000_u64,
            b in 0..100_000_u64,
        ) {
            let tagger = tagger(&thresholds.iter().copied().collect::<Vec<_>>()).unwrap();
            let stage = |sent| tagger.stage(Bytes::new(sent));
            prop_assert!(stage(a.min(b)) <= stage(a.max(b)));
            prop_assert_eq!(usize::from(stage(a)), 1 + thresholds.range(..=a).count());
        }
    }
}
