//! Congestion windows of senders: `[probes] flows`.

use shallows_core::units::{Bytes, Time};
use shallows_model::FlowId;
use shallows_results::ResultsError;
use shallows_results::probes::WindowSample;
use shallows_sim::Simulation;

use super::{Begun, Probe, Sampler, Table, TableDestination};
use crate::plan::RunPlan;
use crate::underway::Underway;

pub(super) fn begin<'a>(plan: &'a RunPlan, place: TableDestination<'a>) -> Begun<'a> {
    let Some(sampled) = &plan.probes.flows else {
        return Ok(None);
    };
    Ok(Some(Box::new(Windows {
        plan,
        sampler: Sampler::create(sampled, place)?,
        senders: Underway::new(sampled.of.iter().copied(), &plan.workload.flows),
    })))
}

#[derive(Debug)]
struct Windows<'a> {
    plan: &'a RunPlan,
    sampler: Sampler<'a, FlowId, WindowSample>,
    /// The sampled flows.
    senders: Underway,
}

impl Probe for Windows<'_> {
    fn next_sample(&self) -> Option<Time> {
        Some(self.sampler.ticks.next())
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<(), ResultsError> {
        if !self.sampler.ticks.is_due(now) {
            return Ok(());
        }
        let mut problem = None;
        let (flows, writer) = (&self.plan.workload.flows, &mut self.sampler.writer);
        self.senders.visit(now, flows, |flow| {
            let Some(sender) = simulation.sender(flow) else {
                return simulation.flow(flow).1.fct.is_some();
            };
            let written = writer.write(&WindowSample {
                time: now,
                flow: flow.0.into(),
                cwnd: Bytes::new(sender.cwnd as u64),
                alpha: sender.alpha,
            });
            problem = problem.take().or(written.err());
            false
        });
        problem.map_or(Ok(()), Err)
    }

    fn finish(self: Box<Self>) -> Result<Table, ResultsError> {
        Table::of(self.sampler.writer)
    }
}
