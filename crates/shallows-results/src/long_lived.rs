//! Goodput of flows without an end, which have no completion time.

use serde::{Deserialize, Serialize};
use shallows_core::units::{Bytes, Rate, Time};

use crate::record::FlowRecord;
use crate::statistics::jain_index;

/// Summary of the flows without an end: bytes received, from the start of each to the end of the
/// run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LongLivedSummary {
    /// Number of flows.
    pub flows: u64,
    /// Sum of their goodputs.
    pub goodput_bps: u64,
    /// Mean goodput of a flow.
    pub mean_bps: u64,
    /// Goodput of the slowest.
    pub min_bps: u64,
    /// Goodput of the fastest.
    pub max_bps: u64,
    /// Jain's index of their goodputs, 1 if all are equal; `None` if nothing arrived.
    pub fairness: Option<f64>,
}

/// Goodputs of flows without an end, collected one by one.
#[derive(Debug, Default)]
pub(crate) struct LongLived {
    rates: Vec<u64>,
}

impl LongLived {
    /// Adds a flow if it has no end; `end` is that of the run.
    pub(crate) fn add(&mut self, record: &FlowRecord, end: Time) {
        // A flow without an end has no ideal time, and its length is what has arrived.
        if record.fct.is_some() || record.ideal_fct != Time::ZERO {
            return;
        }
        let time = end.saturating_sub(record.start);
        if time > Time::ZERO {
            let rate = Rate::from_bytes_per(Bytes::new(record.bytes), time);
            self.rates.push(rate.bps());
        }
    }

    pub(crate) fn summarize(self) -> Option<LongLivedSummary> {
        let (min, max) = (self.rates.iter().min()?, self.rates.iter().max()?);
        let (flows, goodput_bps) = (self.rates.len() as u64, self.rates.iter().sum::<u64>());
        let rates: Vec<f64> = self.rates.iter().map(|&rate| rate as f64).collect();
        Some(LongLivedSummary {
            flows,
            goodput_bps,
            mean_bps: goodput_bps / flows,
            min_bps: *min,
            max_bps: *max,
            fairness: jain_index(&rates),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow of 1 Gbps from 0 to 100 ms, one of 3 Gbps from 50 ms on, and one with an end.
    #[test]
    fn goodput_counts_from_the_start_of_each_flow() {
        let record = |start, bytes, ideal_us| FlowRecord {
            id: 0,
            start: Time::from_ms(start),
            src: 0,
            dst: 1,
            bytes,
            service: 0,
            fct: None,
            ideal_fct: Time::from_us(ideal_us),
            retransmits: 0,
            timeouts: 0,
            marks: 0,
            sent: None,
            dropped: None,
        };
        let mut flows = LongLived::default();
        for record in [
            record(0, 12_500_000, 0),
            record(50, 18_750_000, 0),
            record(0, 5_000, 9),
        ] {
            flows.add(&record, Time::from_ms(100));
        }
        let summary = flows.summarize().unwrap();
        assert_eq!((summary.flows, summary.goodput_bps), (2, 4_000_000_000));
        assert_eq!(
            [summary.mean_bps, summary.min_bps, summary.max_bps],
            [2_000_000_000, 1_000_000_000, 3_000_000_000]
        );
        // (1 + 3)² / (2 (1² + 3²))
        assert_eq!(summary.fairness, Some(0.8));
        assert_eq!(LongLived::default().summarize(), None);
    }
}
