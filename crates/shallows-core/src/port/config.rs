//! A port as written in a scenario.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    BufferConfig, ClassifierConfig, Framing, MAX_QUEUES, MarkerConfig, SchedulerConfig,
    ShaperConfig,
};
use crate::keyed::Keyed;
use crate::registry::{ParameterError, UnknownName};
use crate::units::Bytes;

/// Everything about an egress port but the rate of its link.
///
/// ```
/// # use shallows_core::port::PortConfig;
/// let config: PortConfig = toml::from_str(
///     r#"
///     queues = 8
///     buffer = { shared = { size = "300KB" } }
///     scheduler = { dwrr = { quantum = "1500B" } }
///     marker = { scheme = { mq-ecn = { threshold = "65pkts" } } }
///     "#,
/// )?;
/// assert_eq!(config.queues, 8);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PortConfig {
    /// Number of queues.
    #[serde(default = "one")]
    pub queues: usize,
    /// Nominal packet size. It converts "65pkts" to bytes, and its transmission time is the unit of
    /// idle periods.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// Rule that assigns packets to queues.
    #[serde(default = "default_classifier")]
    pub classifier: ClassifierConfig,
    /// Buffer limits.
    pub buffer: BufferConfig,
    /// Order of service of the queues.
    pub scheduler: SchedulerConfig,
    /// ECN marking.
    #[serde(default)]
    pub marker: MarkerConfig,
    /// A rate below that of the link.
    pub shaper: Option<ShaperConfig>,
    /// Bytes on the wire beyond the packet's own.
    #[serde(default)]
    pub framing: Framing,
    /// Packet size that buffer, marker and scheduler count. Transmission and shaper always count
    /// bytes on the wire.
    #[serde(default)]
    pub accounting: Accounting,
}

/// The size of a packet that buffer, marker and scheduler count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// Its own size.
    #[default]
    Packet,
    /// Its size on the wire, as in MQ-ECN's kernel prototype.
    Wire,
}

impl PortConfig {
    /// Bytes on the wire for each byte that the scheduler counts, in nominal packets.
    pub(super) fn wire_ratio(&self) -> f64 {
        match self.accounting {
            Accounting::Wire => 1.0,
            Accounting::Packet => {
                // No packet is this long; it keeps the sum from overflowing.
                let packet = self.packet.get().min(1 << 30) as u32;
                f64::from(self.framing.wire_size(packet)) / f64::from(packet)
            }
        }
    }

    /// Returns whether what the other ports of the switch hold matters to the port.
    pub fn uses_pool(&self) -> bool {
        self.buffer.uses_pool() || self.marker.scheme.uses_pool()
    }

    /// One unmarked first-come-first-served queue with this buffer.
    pub fn fifo(buffer: BufferConfig) -> Self {
        Self {
            queues: one(),
            packet: default_packet(),
            classifier: default_classifier(),
            buffer,
            scheduler: SchedulerConfig::Fifo,
            marker: MarkerConfig::default(),
            shaper: None,
            framing: Framing::NONE,
            accounting: Accounting::Packet,
        }
    }
}

fn one() -> usize {
    1
}

fn default_packet() -> Bytes {
    Bytes::new(1500)
}

fn default_classifier() -> ClassifierConfig {
    ClassifierConfig::Dscp
}

impl Keyed for ConfigError {
    fn keys(&self) -> Vec<Cow<'_, str>> {
        let key = match self {
            Self::QueueCount(_) => "queues",
            Self::Count { what: name, .. }
            | Self::Zero(name)
            | Self::Positive(name)
            | Self::Fraction(name)
            | Self::Probability(name)
            | Self::TooLarge(name, _) => name,
            Self::NoSuchQueue { .. } => "classifier",
            Self::OneQueue { .. } => "scheduler",
            Self::UnknownName(unknown) => unknown.kind,
            Self::StrictCount { .. } => "strict",
            Self::ClassQueues { .. } => "size-class",
            Self::NeedsSizeClasses => "ml-ecn",
            Self::NeedsRounds => "mq-ecn",
            Self::SmallBuffer { .. } => "buffer",
            Self::Order(name, other) => return vec![(*name).into(), (*other).into()],
            Self::Parameters(_) | Self::LinkRate => return Vec::new(),
        };
        vec![key.into()]
    }
}

/// The reason why a port cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The number of queues is out of range.
    #[error("a port has 1 to {MAX_QUEUES} queues, not {0}")]
    QueueCount(usize),
    /// A list does not fit the number of queues.
    #[error("{given} values given for {what}, {needed} needed")]
    Count {
        /// Subject of the list.
        what: &'static str,
        /// Its length.
        given: usize,
        /// The length it must have, or its most.
        needed: usize,
    },
    /// A queue is named that the port does not have.
    #[error("queue {queue} does not exist: the port has queues 0 to {}", .count - 1)]
    NoSuchQueue {
        /// The number named.
        queue: u8,
        /// Number of queues.
        count: usize,
    },
    /// A part that works on one queue only.
    #[error("{part} works on one queue, the port has {count}: set queues = 1 or another scheduler")]
    OneQueue {
        /// The scheduler.
        part: &'static str,
        /// Number of queues.
        count: usize,
    },
    /// Strict priorities leave nothing for the round robin, or are none.
    #[error(
        "strict = {strict} must leave at least one of {count} queues for the round robin and be at least 1"
    )]
    StrictCount {
        /// Queues with strict priority.
        strict: usize,
        /// Number of queues.
        count: usize,
    },
    /// ML-ECN's classes do not add up to the port's queues.
    #[error("small, medium and large queues are {total} together, the port has {queues}")]
    ClassQueues {
        /// Queues in all classes.
        total: usize,
        /// Number of queues.
        queues: usize,
    },
    /// ML-ECN's marker without ML-ECN's classifier.
    #[error("ml-ecn marks by size class: set classifier = {{ size-class = {{ ... }} }}")]
    NeedsSizeClasses,
    /// MQ-ECN without a scheduler that shares.
    #[error(
        "mq-ecn follows the rounds of wrr or dwrr, or the weights of wfq: choose one of them, or strict-over"
    )]
    NeedsRounds,
    /// A buffer smaller than a packet would drop everything.
    #[error("a buffer of {size} does not hold one packet of {packet}")]
    SmallBuffer {
        /// The buffer.
        size: Bytes,
        /// The nominal packet.
        packet: Bytes,
    },
    /// A link of no rate.
    #[error("the rate of a link must not be zero")]
    LinkRate,
    /// Something must not be zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// Something must be a positive number.
    #[error("{0} must be a positive number")]
    Positive(&'static str),
    /// Something must lie between 0 and 1, bounds excluded.
    #[error("{0} must be between 0 and 1")]
    Fraction(&'static str),
    /// Something must lie between 0 and 1.
    #[error("{0} is a probability: it must be from 0 to 1")]
    Probability(&'static str),
    /// One value must be less than another.
    #[error("{0} must be less than {1}")]
    Order(&'static str, &'static str),
    /// Something is out of range.
    #[error("{0} must be at most {1}")]
    TooLarge(&'static str, Bytes),
    /// A name that no marker or scheduler has.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// Parameters that do not fit a custom scheme.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
}
