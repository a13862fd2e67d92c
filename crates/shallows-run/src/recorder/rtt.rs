//! Round-trip times that senders see: `[probes] rtt`.

use shallows_results::ResultsError;
use shallows_results::probes::{RttSample, SampleWriter};
use shallows_sim::Observation;

use super::{Begun, Probe, Table, TableDestination};
use crate::plan::RunPlan;

pub(super) fn begin<'a>(plan: &'a RunPlan, place: TableDestination<'a>) -> Begun<'a> {
    if !plan.probes.watch.rtt {
        return Ok(None);
    }
    Ok(Some(Box::new(Rtts(place.writer()?))))
}

#[derive(Debug)]
struct Rtts(SampleWriter<RttSample>);

impl Probe for Rtts {
    fn observe(&mut self, seen: &Observation) -> Result<(), ResultsError> {
        if let &Observation::Rtt { time, flow, rtt } = seen {
            let flow = flow.0.into();
            self.0.write(&RttSample { time, flow, rtt })?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Table, ResultsError> {
        Table::of(self.0)
    }
}
