//! The outcome of a run, as far as it is known.

use shallows_core::host::udp;
use shallows_core::units::Time;

use crate::workload::FlowSpec;

/// Outcome of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowOutcome {
    /// Start time; may be in the future.
    pub start: Time,
    /// From its start to its completion, if it was completed.
    pub fct: Option<Time>,
    /// Segments with data that its sender has sent, and those that have arrived.
    pub sent: u32,
    /// See [`sent`](Self::sent).
    pub received: u32,
    /// Segments sent more than once.
    pub retransmits: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Segments that arrived marked.
    pub marks: u32,
    /// Packets of its sender that ports and the gates of its host have dropped.
    pub drops: u32,
    /// Messages of UDP that were sent and have not arrived whole.
    pub lost_messages: u32,
    /// Bytes that its sender knows to have arrived; of UDP, bytes of messages that arrived whole.
    pub delivered: u64,
}

/// Counters of both ends of a UDP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramStats {
    /// The sender.
    pub sent: udp::SenderStats,
    /// The receiver.
    pub received: udp::ReceiverStats,
}

impl DatagramStats {
    /// Messages that were sent and have not arrived whole.
    pub fn lost_messages(&self) -> u64 {
        self.sent.messages - self.received.delivered.packets
    }
}

impl FlowOutcome {
    /// Nothing yet.
    pub(crate) fn of(flow: &FlowSpec) -> Self {
        Self {
            start: flow.start,
            fct: None,
            sent: 0,
            received: 0,
            retransmits: 0,
            timeouts: 0,
            marks: 0,
            drops: 0,
            lost_messages: 0,
            delivered: 0,
        }
    }

    /// Merges the views of two shards on a flow.
    pub(super) fn merge(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            // Both ends may have ended it: the receiver with the last byte, and a stop of its sender.
            fct: self.fct.into_iter().chain(other.fct).min(),
            sent: self.sent + other.sent,
            received: self.received + other.received,
            retransmits: self.retransmits + other.retransmits,
            timeouts: self.timeouts + other.timeouts,
            marks: self.marks + other.marks,
            drops: self.drops + other.drops,
            lost_messages: 0,
            delivered: self.delivered + other.delivered,
        }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Flows completed.
    pub done: usize,
    /// Packets put on links so far.
    pub packet_hops: u64,
    /// Events handled so far.
    pub events: u64,
}

/// Status of a run: events left, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Call [`Simulation::run`](crate::Simulation::run) again.
    Running,
    /// Nothing can happen any more, or the end has come.
    Finished,
}

/// State of a flow's sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderState {
    /// Congestion window in bytes.
    pub cwnd: f64,
    /// The smoothed fraction of congestion, of controllers that have one.
    pub alpha: Option<f64>,
    /// Smoothed round-trip time, once there is one.
    pub srtt: Option<Time>,
}
