//! Flows that wait for others.

use crate::ids::FlowId;
use crate::interrupt::{Interrupt, Interrupted};
use crate::workload::Barrier;

/// The flows that each barrier still waits for.
#[derive(Debug, Default)]
pub struct Barriers {
    /// The flows that barriers wait for, each with such a barrier, in the order of both.
    waiting: Vec<(FlowId, u32)>,
    /// Number of flows that each barrier waits for.
    missing: Vec<u32>,
}

impl Barriers {
    /// All of them closed.
    pub fn new(barriers: &[Barrier], interrupt: Interrupt<'_>) -> Result<Self, Interrupted> {
        let missing = barriers.iter().map(|barrier| barrier.waits_for.len());
        let mut waiting = Vec::with_capacity(missing.clone().sum());
        for (number, barrier) in (0..).zip(barriers) {
            for &flow in &barrier.waits_for {
                interrupt.check_at(waiting.len())?;
                waiting.push((flow, number));
            }
        }
        // Rounds that follow each other are in order.
        waiting.sort_unstable();
        Ok(Self {
            missing: missing.map(|count| count as u32).collect(),
            waiting,
        })
    }

    /// A flow is complete; the barriers that open with it.
    pub fn completed(&mut self, flow: FlowId) -> Vec<usize> {
        let first = self.waiting.partition_point(|&(of, _)| of < flow);
        let of_flow = self.waiting[first..].iter();
        let of_flow = of_flow.take_while(|&&(of, _)| of == flow);
        let opened = of_flow.filter_map(|&(_, number)| {
            let missing = &mut self.missing[number as usize];
            *missing -= 1;
            (*missing == 0).then_some(number as usize)
        });
        opened.collect()
    }
}
