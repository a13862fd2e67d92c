//! Round-trip times of pings: `[[probes.ping]]`.

use shallows_results::ResultsError;
use shallows_results::probes::{PingSample, SampleWriter};
use shallows_sim::Simulation;

use super::{Begun, Probe, Table, TableDestination};
use crate::plan::RunPlan;
use crate::report;

pub(super) fn begin<'a>(plan: &'a RunPlan, place: TableDestination<'a>) -> Begun<'a> {
    if plan.probes.pings.is_empty() {
        return Ok(None);
    }
    let writer = place.writer()?;
    Ok(Some(Box::new(Pings { plan, writer })))
}

#[derive(Debug)]
struct Pings<'a> {
    plan: &'a RunPlan,
    writer: SampleWriter<PingSample>,
}

impl Probe for Pings<'_> {
    fn end(&mut self, simulation: &Simulation) -> Result<(), ResultsError> {
        let pings = report::pings(simulation, self.plan);
        pings.iter().try_for_each(|ping| self.writer.write(ping))
    }

    fn finish(self: Box<Self>) -> Result<Table, ResultsError> {
        Table::of(self.writer)
    }
}
