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

/// Tags packets with the stage of their flow, 1 to K.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Vec<Bytes>", into = "Vec<Bytes>")]
pub struct StageTagger {
    /// α_1 < ... < α_{K-1}.
    thresholds: Vec<Bytes>,
}

/// Why a list of thresholds makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StageError {
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
        Ok(Self { thresholds })
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
        Self {
            thresholds: segments.map(|n| Bytes::new(1460 * n)).to_vec(),
        }
    }

    /// The stage of a packet whose flow has sent `sent` before it: S_{j+1} once α_j are sent.
    #[inline]
    pub fn stage(&self, sent: Bytes) -> u8 {
        1 + self
            .thresholds
            .partition_point(|&threshold| threshold <= sent) as u8
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

impl TryFrom<Vec<Bytes>> for StageTagger {
    type Error = StageError;

    fn try_from(thresholds: Vec<Bytes>) -> Result<Self, StageError> {
        Self::new(thresholds)
    }
}

impl From<StageTagger> for Vec<Bytes> {
    fn from(tagger: StageTagger) -> Self {
        tagger.thresholds
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
        let error = toml::from_str::<Host>("stages = [\"1MB\", \"100KB\"]")
            .err()
            .unwrap();
        assert_eq!(error.message(), "stage threshold 100KB is not above 1MB");
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
