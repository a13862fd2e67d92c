//! Waiting times of packets: `[probes] sojourn`.

use shallows_results::ResultsError;
use shallows_results::probes::SojournTimes;
use shallows_sim::Observation;

use super::{Begun, Probe, Table, TableDestination};
use crate::plan::RunPlan;

#[expect(clippy::unnecessary_wraps, reason = "all probes begin alike")]
pub(super) fn begin<'a>(plan: &'a RunPlan, place: TableDestination<'a>) -> Begun<'a> {
    if plan.probes.watch.sojourn.is_empty() {
        return Ok(None);
    }
    let times = SojournTimes::default();
    Ok(Some(Box::new(Sojourns { place, times })))
}

#[derive(Debug)]
struct Sojourns<'a> {
    place: TableDestination<'a>,
    times: SojournTimes,
}

impl Probe for Sojourns<'_> {
    fn observe(&mut self, seen: &Observation) -> Result<(), ResultsError> {
        if let &Observation::Sojourn {
            link,
            queue,
            sojourn,
        } = seen
        {
            self.times.record(link.0, queue as u32, sojourn);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Table, ResultsError> {
        Ok(match self.place {
            TableDestination::Directory(directory, format) => {
                self.times.write(directory, format)?;
                Table::File(SojournTimes::FILE)
            }
            TableDestination::Memory => Table::Memory(SojournTimes::FILE, self.times.table()),
        })
    }
}
