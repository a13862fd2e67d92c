//! A marker as written in a scenario.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    AEcnConfig, CedmConfig, DemeProConfig, MlEcnConfig, MmEcnConfig, MqEcnConfig, PmsbConfig,
    RedConfig, TcnConfig, Threshold,
};
use crate::port::PerIndex;
use crate::registry::open::{self, OpenEnum};
use crate::registry::{Custom, MakeMarker, Parameters};

/// A marker, as written in a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MarkerConfig {
    /// The marking scheme.
    pub scheme: SchemeConfig,
    /// Time of the decision: enqueue or dequeue.
    #[serde(default)]
    pub point: MarkPoint,
    /// Measure of queue length.
    #[serde(default)]
    pub measure: Measure,
    /// Treatment of a packet that should be marked and is not ECN-capable.
    #[serde(default)]
    pub not_ect: NotEct,
}

/// The scheme that decides: a name, or a name with parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(!remote))]
pub enum SchemeConfig {
    /// No marking.
    #[default]
    None,
    /// A threshold for each queue. The same for all is the standard threshold of MQ-ECN eq. 1.
    PerQueue {
        /// Threshold of all queues or of each.
        threshold: PerIndex<Threshold>,
    },
    /// The minimum threshold of MQ-ECN eq. 2: the standard one, apportioned by weight.
    PerQueueMinimum {
        /// The standard threshold K.
        threshold: Threshold,
    },
    /// One threshold for the sum of the port's queues.
    PerPort {
        /// Threshold of the port.
        threshold: Threshold,
    },
    /// One threshold for all that the ports of the switch have queued.
    PerPool {
        /// Threshold of the pool.
        threshold: Threshold,
    },
    /// ECN* of Wu et al. (CoNEXT 2012): a threshold for each queue, judged at dequeue whatever
    /// [`MarkerConfig::point`] says.
    EcnStar {
        /// Threshold of all queues or of each.
        threshold: PerIndex<Threshold>,
    },
    /// See [`MqEcnConfig`].
    MqEcn(MqEcnConfig),
    /// See [`MlEcnConfig`].
    MlEcn(MlEcnConfig),
    /// See [`RedConfig`].
    Red(RedConfig),
    /// See [`TcnConfig`].
    Tcn(TcnConfig),
    /// See [`PmsbConfig`].
    Pmsb(PmsbConfig),
    /// See [`CedmConfig`].
    Cedm(CedmConfig),
    /// See [`AEcnConfig`].
    AEcn(AEcnConfig),
    /// See [`MmEcnConfig`].
    MmEcn(MmEcnConfig),
    /// See [`DemeProConfig`].
    Demepro(DemeProConfig),
    /// A scheme of another crate.
    #[serde(skip)]
    Custom(Custom<MakeMarker>),
}

impl SchemeConfig {
    /// The names of the schemes in this crate.
    pub fn names() -> &'static [&'static str] {
        open::names::<Self>()
    }

    /// Each scheme with parameters for a port of a few queues, as a value in TOML.
    pub const EXAMPLES: [(&str, &str); 15] = [
        ("none", r#""none""#),
        ("per-queue", r#"{ per-queue = { threshold = "5pkts" } }"#),
        (
            "per-queue-minimum",
            r#"{ per-queue-minimum = { threshold = "32KB" } }"#,
        ),
        (
            "per-port",
            r#"{ per-port = { threshold = { rtt = "85.2us", lambda = 0.6 } } }"#,
        ),
        ("per-pool", r#"{ per-pool = { threshold = "65pkts" } }"#),
        ("ecn-star", r#"{ ecn-star = { threshold = "84pkts" } }"#),
        ("mq-ecn", r#"{ mq-ecn = { threshold = "65pkts" } }"#),
        (
            "ml-ecn",
            r#"{ ml-ecn = { threshold = "65pkts", levels = 4 } }"#,
        ),
        (
            "red",
            r#"{ red = { min = "1pkt", max = "3pkts", max-probability = 0.5 } }"#,
        ),
        ("tcn", r#"{ tcn = { sojourn = "78us" } }"#),
        ("pmsb", r#"{ pmsb = { port = "16pkts", queue = "2pkts" } }"#),
        (
            "cedm",
            r#"{ cedm = { enqueue = "20pkts", dequeue = "10pkts" } }"#,
        ),
        ("a-ecn", r#"{ a-ecn = { threshold = "65pkts" } }"#),
        ("mm-ecn", r#"{ mm-ecn = { threshold = "2pkts" } }"#),
        ("demepro", r#"{ demepro = { threshold = "2pkts" } }"#),
    ];

    /// Returns whether what the other ports of the switch hold may matter.
    pub(crate) fn uses_pool(&self) -> bool {
        matches!(self, Self::PerPool { .. } | Self::Custom(_))
    }
}

impl<'de> OpenEnum<'de> for SchemeConfig {
    const EXPECTED: &'static str = "the name of a marker or { name = { parameters } }";

    fn known<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }

    fn custom(name: String, parameters: Parameters) -> Self {
        Self::Custom(Custom::new(name, parameters))
    }
}

impl Serialize for SchemeConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Custom(custom) => open::write(custom, serializer),
            known => Self::serialize(known, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SchemeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        open::read(deserializer)
    }
}

/// Time of the marking decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MarkPoint {
    /// At enqueue, as in RED and commodity chips.
    #[default]
    Enqueue,
    /// At dequeue.
    Dequeue,
}

/// Definition of a queue's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Measure {
    /// Bytes, or packets of the port's nominal size.
    pub unit: MeasureUnit,
    /// Counts the packet under decision: the arriving one at enqueue, the leaving one at dequeue.
    pub subject: Presence,
    /// Counts the packet in transmission. Most switches and simulators dequeue it when its
    /// transmission starts.
    pub in_service: Presence,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            unit: MeasureUnit::Bytes,
            subject: Presence::Included,
            in_service: Presence::Excluded,
        }
    }
}

/// Unit of a queue's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MeasureUnit {
    /// Bytes queued.
    Bytes,
    /// Packets queued, each worth the port's nominal packet size whatever its own.
    Packets,
}

/// Inclusion of an item in a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// It counts.
    Included,
    /// It does not.
    Excluded,
}

/// Treatment of a packet that should be marked but is not ECN-capable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NotEct {
    /// It is forwarded unmarked.
    #[default]
    Pass,
    /// It is dropped if the decision falls at enqueue, as RED prescribes. A queued packet is never
    /// dropped.
    Drop,
}
