//! Bytes that queues put on the wire: `[probes] throughput`.

use shallows_core::units::Time;
use shallows_model::LinkId;
use shallows_results::ResultsError;
use shallows_results::probes::ThroughputSample;
use shallows_sim::Simulation;

use super::{Begun, Probe, Sampler, Table, TableDestination};
use crate::plan::RunPlan;
use crate::ports::sent_bytes;

pub(super) fn begin<'a>(plan: &'a RunPlan, place: TableDestination<'a>) -> Begun<'a> {
    let Some(sampled) = &plan.probes.throughput else {
        return Ok(None);
    };
    let queues = |&link| plan.ports.config(&plan.fabric, link).queues;
    let none = |link| vec![0; queues(link)];
    Ok(Some(Box::new(Throughput {
        plan,
        sampler: Sampler::create(sampled, place)?,
        sent: sampled.of.iter().map(none).collect(),
        start: (sampled.start > Time::ZERO).then_some(sampled.start),
    })))
}

#[derive(Debug)]
struct Throughput<'a> {
    plan: &'a RunPlan,
    sampler: Sampler<'a, LinkId, ThroughputSample>,
    /// Bytes that the queues of the sampled ports had sent at the last sample.
    sent: Vec<Vec<u64>>,
    /// Start of the first interval, if it is still to come.
    start: Option<Time>,
}

impl Probe for Throughput<'_> {
    fn next_sample(&self) -> Option<Time> {
        Some(self.start.unwrap_or(self.sampler.ticks.next()))
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<(), ResultsError> {
        let begins = self.start == Some(now);
        if begins {
            self.start = None;
        } else if !self.sampler.ticks.is_due(now) {
            return Ok(());
        }
        let Sampler {
            sampled, writer, ..
        } = &mut self.sampler;
        for (&link, before) in sampled.of.iter().zip(&mut self.sent) {
            let config = self.plan.ports.config(&self.plan.fabric, link);
            for (queue, before) in before.iter_mut().enumerate() {
                let sent = sent_bytes(simulation.port(link), config, queue);
                let bytes = sent - std::mem::replace(before, sent);
                if begins {
                    continue;
                }
                writer.write(&ThroughputSample {
                    time: now,
                    interval: sampled.interval,
                    port: link.0,
                    queue: queue as u32,
                    bytes,
                    rate: self.plan.fabric.link(link).rate,
                })?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Table, ResultsError> {
        Table::of(self.sampler.writer)
    }
}
