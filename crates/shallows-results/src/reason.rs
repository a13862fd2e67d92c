//! Why packets were marked or dropped, in words.

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
