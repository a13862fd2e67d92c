//! One run and what is kept of it.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use shallows_core::port::{Accounting, DropReason};
use shallows_core::units::Time;
use shallows_results::record::{Completeness, FlowRecord};
use shallows_results::summary::Summary;
use shallows_sim::topology::Node;
use shallows_sim::workload::FlowSpec;
use shallows_sim::{Progress, Simulation, Status};

use super::spec::GoodputSpec;
use shallows_run::Failure;
use shallows_run::ideal_fcts;
use shallows_run::report;
use shallows_run::scenario::{Built, Loaded};

/// Events between two looks at the clock and at Ctrl-C.
const EVENTS_AT_A_TIME: u64 = 100_000;

/// Small flows of up to this many segments fit the initial window of §5.2.
const MICE_SEGMENTS: u64 = 16;

/// What a run showed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) summary: Summary,
    /// Percent of small flows that fit 16 packets.
    pub(super) mice_percent: Option<f64>,
    /// RTTs of pings, sorted.
    pub(super) rtt_us: Vec<f64>,
    /// Goodput over time.
    pub(super) goodput: Vec<Sample>,
    /// How well a live run was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fidelity: Option<RunFidelity>,
}

/// How well the machine kept a live run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RunFidelity {
    /// Share of the frames that were sent too late.
    pub(super) late_share: f64,
    /// 99 of 100 were sent at most this late.
    pub(super) late_p99_us: f64,
    /// Share of CPU time that other virtual machines took.
    pub(super) steal: Option<f64>,
}

/// Goodput between two moments.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sample {
    /// The later one.
    pub(super) at_s: f64,
    /// Of each queue.
    pub(super) mbps: Vec<f64>,
}

impl Measured {
    /// Goodput of a queue or of all, in the mean over the samples.
    pub(super) fn mean_goodput(&self, queue: Option<usize>) -> Option<f64> {
        let of = |sample: &Sample| match queue {
            Some(queue) => sample.mbps.get(queue).copied(),
            None => Some(sample.mbps.iter().sum()),
        };
        let values: Option<Vec<f64>> = self.goodput.iter().map(of).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Runs a scenario. `go_on` hears how far it has come and may end it, which leaves nothing.
    pub(super) fn run(
        loaded: &Loaded,
        goodput: Option<GoodputSpec>,
        mut go_on: impl FnMut(&Progress) -> bool,
    ) -> Result<Option<Self>, Failure> {
        let built = loaded.build()?;
        let ideal = ideal_fcts(loaded, &built)?;
        let mut simulation = loaded.simulation(&built, 1)?;
        let end = loaded.scenario.until.unwrap_or(Time::MAX);
        let mut meter = goodput
            .map(|spec| Meter::new(spec, loaded, &built))
            .transpose()?;
        loop {
            let pause = meter.as_ref().map_or(end, |meter| meter.next.min(end));
            match simulation.run(pause, EVENTS_AT_A_TIME) {
                Status::Running if go_on(&simulation.progress()) => {}
                Status::Running => return Ok(None),
                Status::Finished if pause == end => break,
                Status::Finished => {
                    if let Some(meter) = &mut meter {
                        meter.sample(&simulation);
                    }
                }
            }
        }
        let records = report::records(&simulation, &ideal);
        let completion = loaded.scenario.completion;
        let wall = std::time::Duration::ZERO;
        let facts = report::facts(&simulation, &built, &records, completion, wall);
        let rule = loaded.scenario.report.percentiles;
        let (classes, complete) = (built.size_classes, Completeness::Complete);
        let summary = Summary::new(&records, complete, classes, rule, facts);
        Ok(Some(Self {
            summary: summary.map_err(anyhow::Error::from)?,
            mice_percent: mice_percent(&records, loaded, &built),
            rtt_us: rtt_us(&records, &built),
            goodput: meter.map_or_else(Vec::new, |meter| meter.samples),
            fidelity: None,
        }))
    }
}

/// RTTs as ping measures them. Beside long-lived flows the ones that end are pings: one packet
/// there and its ACK back, so that their FCT is an RTT through the queue of their service.
pub(super) fn rtt_us(records: &[FlowRecord], built: &Built) -> Vec<f64> {
    let is_endless = |flow: &FlowSpec| flow.bytes == FlowSpec::ENDLESS;
    if !built.workload.flows.iter().any(is_endless) {
        return Vec::new();
    }
    let fcts = records.iter().filter_map(|record| record.fct);
    let mut rtts: Vec<f64> = fcts.map(|fct| fct.as_secs_f64() * 1e6).collect();
    rtts.sort_unstable_by(f64::total_cmp);
    rtts
}

pub(super) fn mice_percent(records: &[FlowRecord], loaded: &Loaded, built: &Built) -> Option<f64> {
    let most = MICE_SEGMENTS * u64::from(loaded.scenario.transport.segment);
    let small_max = built.size_classes.small_max().get();
    let sizes = records.iter().map(|record| record.bytes);
    let small: Vec<u64> = sizes
        .filter(|&bytes| bytes > 0 && bytes <= small_max)
        .collect();
    let mice = small.iter().filter(|&&bytes| bytes <= most).count();
    (!small.is_empty()).then(|| 100.0 * mice as f64 / small.len() as f64)
}

/// Reads what the queues of a port have sent, at regular times.
struct Meter {
    spec: GoodputSpec,
    link: u32,
    /// Bytes of the application in each byte that the port counts.
    payload: f64,
    next: Time,
    before: Option<Vec<u64>>,
    samples: Vec<Sample>,
}

impl Meter {
    fn new(spec: GoodputSpec, loaded: &Loaded, built: &Built) -> anyhow::Result<Self> {
        let links = built.fabric.links().iter();
        let link = links
            .zip(0..)
            .find(|(link, _)| link.to == Node::Host(spec.to));
        let (_, link) = link.with_context(|| format!("goodput.to: no host {}", spec.to))?;
        let transport = &loaded.scenario.transport;
        let packet = transport.segment + transport.header;
        let port = &built.ports.switches;
        let counted = match port.accounting {
            Accounting::Packet => packet,
            Accounting::Wire => port.framing.wire_size(packet),
        };
        Ok(Self {
            spec,
            link,
            payload: f64::from(transport.segment) / f64::from(counted),
            next: spec.after,
            before: None,
            samples: Vec::new(),
        })
    }

    fn sample(&mut self, simulation: &Simulation) {
        let port = simulation.port(self.link);
        let sent = |queue| {
            let evicted = port.counters(queue).drops(DropReason::Evicted).bytes;
            port.queued(queue).bytes - evicted - port.queue_bytes(queue).get()
        };
        let sent: Vec<u64> = (0..port.queue_count()).map(sent).collect();
        if let Some(before) = &self.before {
            let megabits = self.payload * 8.0 / 1e6 / self.spec.every.as_secs_f64();
            let difference = sent.iter().zip(before).map(|(now, before)| now - before);
            self.samples.push(Sample {
                at_s: self.next.as_secs_f64(),
                mbps: difference.map(|bytes| bytes as f64 * megabits).collect(),
            });
        }
        self.before = Some(sent);
        self.next += self.spec.every;
    }
}
