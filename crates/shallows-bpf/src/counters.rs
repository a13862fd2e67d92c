//! Counters of a controller since it was loaded.

use bytemuck::{Pod, Zeroable};
use serde::Serialize;

/// Sums over all connections since the controller was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Pod, Zeroable)]
#[repr(C)]
pub struct Counters {
    /// ACKs of new data.
    pub acks: u64,
    /// Those with ECN-Echo.
    pub marked: u64,
    /// Those that were late, where the controller listens to delay.
    pub late: u64,
    /// Reductions of the window for marks or delay.
    pub reductions: u64,
    /// Times that fast recovery began.
    pub losses: u64,
    /// Retransmission timeouts that lowered the threshold.
    pub timeouts: u64,
    /// Connections handed to reno, because ECN was not agreed on.
    pub fallbacks: u64,
    /// CE seen by the receiver; with receive offload one may stand for several segments.
    pub ce_segments: u64,
    /// Changes between marked and not, each of which is acknowledged at once.
    pub ce_changes: u64,
}

impl Counters {
    /// The counters with their names, in order.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("acks", self.acks),
            ("marked", self.marked),
            ("late", self.late),
            ("reductions", self.reductions),
            ("losses", self.losses),
            ("timeouts", self.timeouts),
            ("fallbacks", self.fallbacks),
            ("ce segments", self.ce_segments),
            ("ce changes", self.ce_changes),
        ]
    }
}
