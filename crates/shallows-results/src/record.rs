//! The record of one flow.

use serde::{Deserialize, Serialize};
use shallows_core::units::Time;

/// The columns of a table of flows, in the order in which files have them.
///
/// `start_s` is in seconds, `fct_us` and `ideal_fct_us` are in microseconds, and all three are
/// exact to the picosecond. `fct_us` is empty where `finished` is false, `sent` and `dropped` where
/// the world cannot tell.
pub const COLUMNS: [&str; 14] = [
    "id",
    "start_s",
    "src",
    "dst",
    "bytes",
    "service",
    "fct_us",
    "ideal_fct_us",
    "retransmits",
    "timeouts",
    "marks",
    "finished",
    "sent",
    "dropped",
];

/// Columns that a table may lack, as those of earlier versions do.
pub(crate) const OPTIONAL_COLUMNS: [&str; 2] = ["sent", "dropped"];

/// One flow, finished or not: a row of `flows.parquet` and `flows.csv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowRecord {
    /// The flow's number in its run.
    pub id: u64,
    /// Time at which the application requested it.
    pub start: Time,
    /// The host that sends.
    pub src: u32,
    /// The host that receives.
    pub dst: u32,
    /// Bytes of the application, without headers.
    pub bytes: u64,
    /// The service, or traffic class, that it belongs to.
    pub service: u16,
    /// The flow completion time; `None` if the run ended first.
    pub fct: Option<Time>,
    /// Ideal flow completion time, on an idle path.
    pub ideal_fct: Time,
    /// Packets that were sent again.
    pub retransmits: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Packets of it that switches marked.
    pub marks: u32,
    /// Packets with data that its sender sent; `None` where the world does not count them.
    pub sent: Option<u32>,
    /// Packets of its sender that ports dropped; `None` where the world cannot tell.
    pub dropped: Option<u32>,
}

impl FlowRecord {
    /// The flow completion time in units of the ideal one; `None` if the flow is not finished or
    /// has no ideal.
    pub fn slowdown(&self) -> Option<f64> {
        let fct = self.fct?;
        (self.ideal_fct > Time::ZERO).then(|| fct.ps() as f64 / self.ideal_fct.ps() as f64)
    }

    /// Finish time, if it finished.
    pub fn finish(&self) -> Option<Time> {
        self.fct.map(|fct| self.start.saturating_add(fct))
    }
}

/// Completeness of a run: complete, or interrupted. In files it is the flag `partial`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "bool", from = "bool")]
pub enum Completeness {
    /// It came to its end.
    Complete,
    /// It was interrupted; what it had until then is kept.
    Partial,
}

impl From<Completeness> for bool {
    fn from(completeness: Completeness) -> Self {
        completeness == Completeness::Partial
    }
}

impl From<bool> for Completeness {
    fn from(partial: bool) -> Self {
        if partial {
            Self::Partial
        } else {
            Self::Complete
        }
    }
}
