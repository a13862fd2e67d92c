//! Whether there is room for a packet.

use serde::{Deserialize, Serialize};

use super::queues::Queues;
use super::{ConfigError, DropReason, PerQueue};
use crate::packet::Packet;
use crate::units::{Bytes, Length};

/// How a port's memory is limited, as written in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        /// Limit of all queues or of each.
        limit: PerQueue<Length>,
    },
    /// All ports of the switch share its [`Pool`]; a queue may hold at most `alpha` times what is
    /// free (Choudhury and Hahne, Transactions on Networking 1998).
    Dynamic {
        /// Share of the free memory that one queue may hold.
        alpha: f64,
    },
}

/// Packet memory that the ports of one switch share.
///
/// Every port accounts for its packets in the pool that it is driven with, whatever its own buffer
/// rule is, because per-pool marking (MQ-ECN §2.1) looks at it. A port that shares nothing is
/// driven with a pool of its own.
#[derive(Clone, Debug)]
pub struct Pool {
    capacity: u64,
    used: u64,
}

impl Pool {
    /// A pool of the given capacity.
    pub fn new(capacity: Bytes) -> Self {
        Self {
            capacity: capacity.get(),
            used: 0,
        }
    }

    /// A pool that never fills, for ports with limits of their own.
    pub fn unlimited() -> Self {
        Self::new(Bytes::new(u64::MAX))
    }

    /// Bytes in store.
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
pub(crate) enum Buffer {
    Unlimited,
    Shared { size: u64 },
    PerQueue { limits: Vec<u64> },
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
        Ok(match config {
            BufferConfig::Unlimited => Self::Unlimited,
            BufferConfig::Shared { size } => Self::Shared {
                size: at_least_a_packet(*size)?,
            },
            BufferConfig::PerQueue { limit } => Self::PerQueue {
                limits: limit
                    .each("limit", count)?
                    .into_iter()
                    .map(at_least_a_packet)
                    .collect::<Result<_, _>>()?,
            },
            BufferConfig::Dynamic { alpha } => {
                if !(alpha.is_finite() && *alpha > 0.0) {
                    return Err(ConfigError::Positive("alpha"));
                }
                Self::Dynamic { alpha: *alpha }
            }
        })
    }

    /// Why a packet of `size` bytes finds no room in `queue`, if it does not.
    #[inline]
    pub(crate) fn refusal<P: Packet>(
        &self,
        queue: usize,
        size: u32,
        queues: &Queues<P>,
        pool: &Pool,
    ) -> Option<DropReason> {
        let size = u64::from(size);
        if size > pool.free().get() {
            return Some(DropReason::PoolFull);
        }
        let (holds, reason) = match self {
            Self::Unlimited => (true, DropReason::PoolFull),
            Self::Shared { size: limit } => (queues.bytes() + size <= *limit, DropReason::PortFull),
            Self::PerQueue { limits } => (
                queues.queue_bytes(queue) + size <= limits[queue],
                DropReason::QueueFull,
            ),
            Self::Dynamic { alpha } => (
                (queues.queue_bytes(queue) + size) as f64 <= alpha * pool.free().get() as f64,
                DropReason::DynamicThreshold,
            ),
        };
        (!holds).then_some(reason)
    }
}
