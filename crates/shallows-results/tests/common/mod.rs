//! Flows made by hand.

use shallows_core::units::Time;
use shallows_results::record::FlowRecord;

/// A flow that finished after `fct`.
pub(crate) fn finished(id: u64, start: Time, bytes: u64, fct: Time, ideal_fct: Time) -> FlowRecord {
    FlowRecord {
        id,
        start,
        src: 3,
        dst: 141,
        bytes,
        service: 7,
        fct: Some(fct),
        ideal_fct,
        retransmits: 0,
        timeouts: 0,
        marks: 0,
        sent: Some(1),
        dropped: None,
    }
}

/// A flow that the end of the run cut short.
pub(crate) fn unfinished(id: u64, start: Time, bytes: u64) -> FlowRecord {
    FlowRecord {
        fct: None,
        ..finished(id, start, bytes, Time::ZERO, Time::from_us(80))
    }
}
