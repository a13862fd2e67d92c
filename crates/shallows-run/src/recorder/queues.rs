//! Lengths and thresholds of queues: `[probes] queues`.

use shallows_core::units::Time;
use shallows_model::LinkId;
use shallows_results::ResultsError;
use shallows_results::probes::QueueSample;
use shallows_sim::Simulation;

use super::{Begun, Probe, Sampler, Table, TableDestination};
use crate::plan::RunPlan;

pub(super) fn begin<'a>(plan: &'a RunPlan, place: TableDestination<'a>) -> Begun<'a> {
    let Some(sampled) = &plan.probes.queues else {
        return Ok(None);
    };
    Ok(Some(Box::new(Queues(Sampler::create(sampled, place)?))))
}

#[derive(Debug)]
struct Queues<'a>(Sampler<'a, LinkId, QueueSample>);

impl Probe for Queues<'_> {
    fn next_sample(&self) -> Option<Time> {
        Some(self.0.ticks.next())
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<(), ResultsError> {
        if !self.0.ticks.is_due(now) {
            return Ok(());
        }
        for &link in &self.0.sampled.of {
            let egress = simulation.port(link);
            for queue in 0..egress.queue_count() {
                self.0.writer.write(&QueueSample {
                    time: now,
                    port: link.0,
                    queue: queue as u32,
                    bytes: egress.queue_bytes(queue).get(),
                    packets: egress.queue_packets(queue),
                    threshold: egress.threshold(queue),
                })?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Table, ResultsError> {
        Table::of(self.0.writer)
    }
}
