//! Counters of a port, by reason.

use crate::tally::Tally;

/// The reason why a packet was marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MarkReason {
    /// Its queue was above a threshold.
    Queue,
    /// Its port was.
    Port,
    /// The switch's shared pool was.
    Pool,
    /// A draw decided so.
    Probability,
    /// It waited longer than a threshold.
    Sojourn,
}

impl MarkReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 5] = [
        Self::Queue,
        Self::Port,
        Self::Pool,
        Self::Probability,
        Self::Sojourn,
    ];
}

/// The reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The port's shared buffer had no room.
    PortFull,
    /// The queue's own limit was reached.
    QueueFull,
    /// The switch's pool had no room.
    PoolFull,
    /// The queue had its dynamic share of the pool.
    DynamicThreshold,
    /// The marker wanted a mark that the packet cannot carry (RED's early drop).
    NotEct,
    /// pFabric gave it up for a more urgent packet.
    Evicted,
}

impl DropReason {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 6] = [
        Self::PortFull,
        Self::QueueFull,
        Self::PoolFull,
        Self::DynamicThreshold,
        Self::NotEct,
        Self::Evicted,
    ];
}

/// Counters of the packets of one queue. Departures are the queued packets less the evicted and the
/// stored ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    marks: [u64; MarkReason::ALL.len()],
    drops: [Tally; DropReason::ALL.len()],
    /// Packets that went on unmarked because their transport does not understand ECN.
    pub unmarkable: u64,
}

impl QueueCounters {
    /// Packets that this port marked for a reason. Those that were marked before do not count.
    pub fn marks(&self, reason: MarkReason) -> u64 {
        self.marks[reason as usize]
    }

    /// Packets that this port marked.
    pub fn all_marks(&self) -> u64 {
        self.marks.iter().sum()
    }

    /// Packets dropped for a reason.
    pub fn drops(&self, reason: DropReason) -> Tally {
        self.drops[reason as usize]
    }

    /// Packets dropped.
    pub fn all_drops(&self) -> Tally {
        self.drops.iter().copied().sum()
    }

    #[inline]
    pub(crate) fn mark(&mut self, reason: MarkReason) {
        self.marks[reason as usize] += 1;
    }

    pub(crate) fn drop(&mut self, reason: DropReason, size: u32) {
        self.drops[reason as usize].count(size);
    }
}
