//! Flows that wait for others.

use rustc_hash::FxHashMap;

use crate::workload::Barrier;

/// Which flows each barrier still waits for.
#[derive(Debug)]
pub(crate) struct Barriers {
    /// The barriers that wait for a flow.
    waiting: FxHashMap<u32, Vec<usize>>,
    /// How many flows each barrier waits for.
    missing: Vec<usize>,
}

impl Barriers {
    pub(crate) fn new(barriers: &[Barrier]) -> Self {
        let mut waiting: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (number, barrier) in barriers.iter().enumerate() {
            for &flow in &barrier.waits_for {
                waiting.entry(flow).or_default().push(number);
            }
        }
        let missing = barriers.iter().map(|barrier| barrier.waits_for.len());
        Self {
            missing: missing.collect(),
            waiting,
        }
    }

    /// A flow is complete; the barriers that open with it.
    pub(crate) fn completed(&mut self, flow: u32) -> Vec<usize> {
        let mut opened = self.waiting.remove(&flow).unwrap_or_default();
        opened.retain(|&number| {
            self.missing[number] -= 1;
            self.missing[number] == 0
        });
        opened
    }
}
