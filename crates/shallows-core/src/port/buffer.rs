//! Buffer rules: admission of packets.

use serde::{Deserialize, Serialize};

use super::queues::{Queues, Store};
use super::{ConfigError, DropReason, PerIndex};
use crate::packet::Packet;
use crate::units::{Bytes, Length};

/// Buffer limit of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum BufferConfig {
    /// No limit.
    Unlimited,
    /// All queues of the port share `size`, first come first served: the papers' 96 KB and 300 KB.
    Shared {
        /// Bytes that the port may hold.
        size: Length,
    },
    /// Every queue has a limit of its own.
    PerQueue {
        /// Limit of each queue: one value for all, or a list.
        limit: PerIndex<Length>,
    },
    /// All ports of the switch share its [`Pool`]; a queue may hold at most `alpha` times what is
    /// free (Choudhury and Hahne, Transactions on Networking 1998).
    Dynamic {
        /// Share of the free memory that one queue may hold.
        alpha: f64,
    },
}

impl BufferConfig {
    /// Returns whether what the other ports of the switch hold matters.
    pub(crate) fn uses_pool(&self) -> bool {
        matches!(self, Self::Dynamic { .. })
    }

    /// Each rule with parameters, as a value in TOML.
    pub const EXAMPLES: [(&str, &str); 4] = [
        ("unlimited", r#""unlimited""#),
        ("shared", r#"{ shared = { size = "300KB" } }"#),
        ("per-queue", r#"{ per-queue = { limit = "96KB" } }"#),
        ("dynamic", "{ dynamic = { alpha = 0.5 } }"),
    ];
}

/// Packet memory that the ports of one switch share.
///
/// Every port accounts for its packets in the pool that it is driven with, whatever its own buffer
/// rule is, because per-pool marking (MQ-ECN §2.1) looks at it; the packets themselves are in the
/// pool, too. Ports that neither limit nor mark by it may all share one that is unlimited.
#[derive(Clone, Debug)]
pub struct Pool<P> {
    capacity: u64,
    used: u64,
    /// The queued packets.
    pub(super) store: Store<P>,
}

impl<P> Pool<P> {
    /// A pool of the given capacity.
    pub fn new(capacity: Bytes) -> Self {
        Self {
            capacity: capacity.get(),
            used: 0,
            store: Store::default(),
        }
    }

    /// A pool that never fills, for ports with limits of their own.
    pub fn unlimited() -> Self {
        Self::new(Bytes::new(u64::MAX))
    }

    /// It never fills.
    #[inline]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.capacity == u64::MAX
    }

    /// Bytes queued.
    #[inline]
    pub fn used(&self) -> Bytes {
        Bytes::new(self.used)
    }

    /// Bytes free.
    #[inline]
    pub fn free(&self) -> Bytes {
        Bytes::new(self.capacity - self.used)
    }

    #[inline]
    pub(crate) fn take(&mut self, size: u32) {
        self.used += u64::from(size);
        debug_assert!(self.used <= self.capacity);
    }

    #[inline]
    pub(crate) fn release(&mut self, size: u32) {
        self.used -= u64::from(size);
    }
}

/// A running admission rule.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    /// Limit of the port; every rule but [`BufferConfig::Shared`] leaves it open.
    port_limit: u64,
    queue_rule: QueueRule,
}

#[derive(Clone, Debug)]
#[repr(u8)]
enum QueueRule {
    None,
    Limits(Box<[u64]>),
    Dynamic { alpha: f64 },
}

impl Buffer {
    pub(crate) fn new(
        config: &BufferConfig,
        count: usize,
        packet: Bytes,
    ) -> Result<Self, ConfigError> {
        let at_least_a_packet = |limit: Length| {
            let bytes = limit.whole_bytes(packet);
            if bytes < packet {
                return Err(ConfigError::SmallBuffer {
                    size: bytes,
                    packet,
                });
            }
            Ok(bytes.get())
        };
        let mut port_limit = u64::MAX;
        let mut queue_rule = QueueRule::None;
        match config {
            BufferConfig::Unlimited => {}
            BufferConfig::Shared { size } => port_limit = at_least_a_packet(*size)?,
            BufferConfig::PerQueue { limit } => {
                let limits = limit.each("limit", count)?.into_iter();
                let limits = limits.map(at_least_a_packet).collect::<Result<_, _>>()?;
                queue_rule = QueueRule::Limits(limits);
            }
            BufferConfig::Dynamic { alpha } => {
                if !(alpha.is_finite() && *alpha > 0.0) {
                    return Err(ConfigError::Positive("alpha"));
                }
                queue_rule = QueueRule::Dynamic { alpha: *alpha };
            }
        }
        Ok(Self {
            port_limit,
            queue_rule,
        })
    }

    /// Limit of the first queue and the reason of a drop, unless it depends on the pool.
    pub(crate) fn own_limit(&self) -> Option<(u64, DropReason)> {
        match &self.queue_rule {
            QueueRule::None => Some((self.port_limit, DropReason::PortFull)),
            QueueRule::Limits(limits) => Some((limits[0], DropReason::QueueFull)),
            QueueRule::Dynamic { .. } => None,
        }
    }

    /// The pool does not matter.
    pub(crate) fn is_own(&self) -> bool {
        !matches!(self.queue_rule, QueueRule::Dynamic { .. })
    }

    /// The reason why a packet finds no room in a port with a buffer of its own, if it does not: the lengths
    /// of its queue and of the port are with the packet.
    #[inline(always)]
    pub(crate) fn own_refusal(
        &self,
        queue: usize,
        queue_length: u64,
        port_length: u64,
    ) -> Option<DropReason> {
        if port_length > self.port_limit {
            return Some(DropReason::PortFull);
        }
        match &self.queue_rule {
            QueueRule::Limits(limits) if queue_length > limits[queue] => {
                Some(DropReason::QueueFull)
            }
            _ => None,
        }
    }

    /// The reason why a packet of `size` bytes finds no room in `queue`, if it does not.
    #[inline]
    pub(crate) fn refusal<P: Packet>(
        &self,
        queue: usize,
        size: u32,
        queues: &Queues,
        pool: &Pool<P>,
    ) -> Option<DropReason> {
        let size = u64::from(size);
        let free = pool.free().get();
        if size > free {
            return Some(DropReason::PoolFull);
        }
        if queues.bytes() + size > self.port_limit {
            return Some(DropReason::PortFull);
        }
        let held = || queues.queue_bytes(queue) + size;
        match &self.queue_rule {
            QueueRule::Limits(limits) if held() > limits[queue] => Some(DropReason::QueueFull),
            QueueRule::Dynamic { alpha } if held() as f64 > alpha * free as f64 => {
                Some(DropReason::DynamicThreshold)
            }
            _ => None,
        }
    }
}
