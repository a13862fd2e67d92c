//! Application bytes that have arrived, by service: `[probes] goodput`.

use std::collections::BTreeMap;

use shallows_core::units::Time;
use shallows_model::workload::FlowSpec;
use shallows_results::ResultsError;
use shallows_results::probes::GoodputSample;
use shallows_sim::Simulation;

use super::{Begun, Probe, Sampler, Table, TableDestination};
use crate::plan::RunPlan;
use crate::underway::Underway;

pub(super) fn begin<'a>(plan: &'a RunPlan, place: TableDestination<'a>) -> Begun<'a> {
    let Some(sampled) = &plan.probes.goodput else {
        return Ok(None);
    };
    let flows = &plan.workload.flows;
    Ok(Some(Box::new(Goodput {
        plan,
        sampler: Sampler::create(sampled, place)?,
        receivers: Underway::new(flows.ids(), flows),
        delivered: flows.iter().map(|flow| (flow.service, 0)).collect(),
    })))
}

#[derive(Debug)]
struct Goodput<'a> {
    plan: &'a RunPlan,
    sampler: Sampler<'a, (), GoodputSample>,
    /// The flows that may still deliver something.
    receivers: Underway,
    /// Bytes of the others, by service.
    delivered: BTreeMap<u16, u64>,
}

impl Probe for Goodput<'_> {
    fn next_sample(&self) -> Option<Time> {
        Some(self.sampler.ticks.next())
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<(), ResultsError> {
        if !self.sampler.ticks.is_due(now) {
            return Ok(());
        }
        let mut arrived: BTreeMap<u16, u64> = BTreeMap::new();
        let (flows, delivered) = (&self.plan.workload.flows, &mut self.delivered);
        self.receivers.visit(now, flows, |number| {
            let (flow, outcome) = simulation.flow(number);
            let is_over = outcome.fct.is_some() && flow.bytes != FlowSpec::ENDLESS;
            let (sum, bytes) = if is_over {
                (&mut *delivered, flow.bytes)
            } else {
                (&mut arrived, outcome.delivered)
            };
            *sum.entry(flow.service).or_default() += bytes;
            is_over
        });
        for (service, bytes) in &self.delivered {
            *arrived.entry(*service).or_default() += bytes;
        }
        for (service, bytes) in arrived {
            self.sampler.writer.write(&GoodputSample {
                time: now,
                service,
                bytes,
            })?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Table, ResultsError> {
        Table::of(self.sampler.writer)
    }
}
