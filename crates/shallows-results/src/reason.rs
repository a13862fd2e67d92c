//! Reasons of marks and drops, in words.

use shallows_core::host::gate::Refusal;
use shallows_core::port::{DropReason, MarkReason};

/// A reason in a few words.
pub fn mark_name(reason: MarkReason) -> &'static str {
    match reason {
        MarkReason::Queue => "queue above threshold",
        MarkReason::Port => "port above threshold",
        MarkReason::Pool => "pool above threshold",
        MarkReason::Probability => "by probability",
        MarkReason::Sojourn => "waited too long",
    }
}

/// A reason in a few words.
pub fn drop_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::PortFull => "port full",
        DropReason::QueueFull => "queue full",
        DropReason::PoolFull => "pool full",
        DropReason::DynamicThreshold => "dynamic threshold",
        DropReason::NotEct => "not ECN-capable",
        DropReason::Evicted => "evicted",
    }
}

/// The reason of a drop at the gate of a host, in a few words.
pub fn refusal_name(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::OverLimit => "over the host's limit",
        Refusal::NeverFits => "larger than the host's limit",
        Refusal::Full => "host gate full",
    }
}
