//! One run and what is kept of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use shallows_core::port::{Accounting, DropReason};
use shallows_core::units::Time;
use shallows_model::topology::Node;
use shallows_model::workload::WorkloadConfig;
use shallows_results::record::{Completeness, FlowRecord};
use shallows_results::series::{Kind, Series, Values};
use shallows_results::size_class::SizeClasses;
use shallows_results::summary::Summary;
use shallows_results::{Format, write_text};
use shallows_sim::Simulation;

use shallows_run::{
    Failure, Observer, Options, RunPlan, RunRecord, Scenario, Simulated, Step, Ticks, World as _,
};

/// The file of a record that is written last.
const SUMMARY: &str = "summary.json";

/// Small flows of up to this many segments fit the initial window of §5.2.
const MICE_SEGMENTS: u64 = 16;

/// Goodput of each queue at the switch's port to a host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct GoodputSpec {
    pub(crate) to: u32,
    /// Time from which the flows have settled.
    pub(crate) after: Time,
    /// Sampling interval.
    pub(crate) every: Time,
}

/// Measurements of a run: the numbers that most figures ask for, and the location of the rest.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) summary: Summary,
    /// Percent of small flows that fit 16 packets.
    pub(crate) mice_percent: Option<f64>,
    /// RTTs of pings, sorted.
    pub(crate) rtt_us: Vec<f64>,
    /// Goodput over time.
    pub(crate) goodput: Vec<Sample>,
    /// Numbers of services by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) services: BTreeMap<String, u16>,
    /// Fidelity of a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fidelity: Option<RunFidelity>,
    /// The whole record.
    #[serde(skip)]
    pub(crate) kept: Kept,
}

/// Results of a run that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// The whole record: flows and the tables of probes.
    #[default]
    All,
    /// The summary. Metrics that need flows or tables have no values.
    Summary,
}

/// Location of a run's record. Those of a figure with many runs do not fit into memory.
#[derive(Debug, Default)]
pub(crate) enum Kept {
    #[default]
    Nowhere,
    Directory(PathBuf),
    Memory(Arc<RunRecord>),
}

/// Fidelity of the machine in a live run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RunFidelity {
    /// Share of the frames that were sent too late.
    pub(crate) late_share: f64,
    /// 99 of 100 were sent at most this late.
    pub(crate) late_p99_us: f64,
    /// Share of CPU time that other virtual machines took.
    pub(crate) steal: Option<f64>,
}

/// Goodput between two moments.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The later one.
    pub(crate) at_s: f64,
    /// Of each queue.
    pub(crate) mbps: Vec<f64>,
}

impl Measured {
    /// Goodput of a queue or of all, in the mean over the samples.
    pub(crate) fn mean_goodput(&self, queue: Option<usize>) -> Option<f64> {
        let of = |sample: &Sample| match queue {
            Some(queue) => sample.mbps.get(queue).copied(),
            None => Some(sample.mbps.iter().sum()),
        };
        let values: Option<Vec<f64>> = self.goodput.iter().map(of).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The longest time in which all queues together sent less than half of their mean, in ms.
    pub(super) fn longest_gap_ms(&self) -> Option<f64> {
        let half = self.mean_goodput(None)? / 2.0;
        let [first, second, ..] = &self.goodput[..] else {
            return None;
        };
        let every = second.at_s - first.at_s;
        let (mut gap, mut longest) = (0_u32, 0);
        for sample in &self.goodput {
            let is_low = sample.mbps.iter().sum::<f64>() < half;
            gap = if is_low { gap + 1 } else { 0 };
            longest = longest.max(gap);
        }
        Some(f64::from(longest) * every * 1e3)
    }

    /// The whole record, if it was kept.
    pub(crate) fn record(&self) -> Option<Arc<RunRecord>> {
        match &self.kept {
            Kept::Nowhere => None,
            Kept::Directory(directory) => RunRecord::open(directory).ok().map(Arc::new),
            Kept::Memory(record) => Some(Arc::clone(record)),
        }
    }

    /// Runs a scenario and keeps of its record in `place` what `keep` says. `progress` hears how far
    /// it has come; nothing is measured of a run that was interrupted.
    pub(crate) fn run(
        scenario: &Scenario,
        goodput: Option<GoodputSpec>,
        keep: Keep,
        place: &Path,
        progress: &mut dyn Observer,
        interrupted: &AtomicBool,
    ) -> Result<Option<Self>, Failure> {
        let plan = Simulated.admit(scenario.build_unless(interrupted.into())?)?;
        let meter = goodput.map(|spec| Meter::new(spec, &plan, place));
        let mut meter = meter.transpose()?;
        let mut observers: Vec<&mut dyn Observer> = vec![progress];
        observers.extend(meter.as_mut().map(|meter| meter as &mut dyn Observer));
        let options = Options {
            out: (keep == Keep::All).then_some((place, Format::Parquet)),
            interrupted: interrupted.into(),
            ..Options::default()
        };
        let record = plan.run(&options, &mut observers)?.record;
        let summary = record.summary.as_ref().context("the run has no summary")?;
        if summary.completeness == Completeness::Partial {
            return Ok(None);
        }
        if keep == Keep::Summary {
            fs::create_dir_all(place)
                .with_context(|| format!("cannot create {}", place.display()))?;
            summary.write_json(&place.join(SUMMARY))?;
            let (text, _) = scenario.config.resolved()?;
            write_text(&place.join("scenario.toml"), &text)?;
        }
        let mut measured = Self::of_record(record, Some(scenario));
        measured.goodput = read_goodput(place);
        Ok(Some(measured))
    }

    /// Measurements of a complete run in `place`. Only the record is taken over, so that fixed
    /// statistics count; of a run whose flows need not be kept, the summary.
    pub(crate) fn open(scenario: &Scenario, keep: Keep, place: &Path) -> Option<Self> {
        if keep == Keep::Summary {
            let summary = Summary::read_json(&place.join(SUMMARY)).ok()?;
            return Some(Self {
                summary,
                mice_percent: None,
                rtt_us: Vec::new(),
                goodput: Vec::new(),
                services: scenario.config.report.services.clone(),
                fidelity: None,
                kept: Kept::Nowhere,
            });
        }
        let record = RunRecord::open(place).ok()?;
        let summary = record.summary.as_ref()?;
        if summary.completeness == Completeness::Partial {
            return None;
        }
        let mut measured = Self::of_record(record, Some(scenario));
        measured.goodput = read_goodput(place);
        measured.kept = Kept::Directory(place.to_owned());
        Some(measured)
    }

    /// Of a record with flows.
    pub(crate) fn of_record(record: RunRecord, scenario: Option<&Scenario>) -> Self {
        let kept = record.summary.as_ref().expect("it has flows");
        let facts = kept.facts.clone();
        let (classes, rule) = (kept.size_classes, kept.percentile_rule);
        let summary = Summary::new(&record.flows, kept.completeness, classes, rule, facts);
        Self {
            summary: summary.expect("it has flows"),
            mice_percent: scenario.and_then(|of| mice_percent(&record.flows, of, classes)),
            rtt_us: scenario.map_or_else(Vec::new, |of| rtt_us(&record.flows, of)),
            goodput: Vec::new(),
            services: scenario.map_or_else(BTreeMap::new, |of| of.config.report.services.clone()),
            fidelity: None,
            kept: Kept::Memory(Arc::new(record)),
        }
    }
}

/// RTTs as ping measures them. Beside long-lived flows the ones that end are pings: one packet
/// there and its ACK back, so that their FCT is an RTT through the queue of their service.
pub(crate) fn rtt_us(records: &[FlowRecord], scenario: &Scenario) -> Vec<f64> {
    let mut workloads = scenario.config.workload.0.iter();
    if !workloads.any(|of| matches!(of, WorkloadConfig::LongLived(_))) {
        return Vec::new();
    }
    let fcts = records.iter().filter_map(|record| record.fct);
    let mut rtts: Vec<f64> = fcts.map(|fct| fct.as_secs_f64() * 1e6).collect();
    rtts.sort_unstable_by(f64::total_cmp);
    rtts
}

pub(crate) fn mice_percent(
    records: &[FlowRecord],
    scenario: &Scenario,
    classes: SizeClasses,
) -> Option<f64> {
    let most = MICE_SEGMENTS * u64::from(scenario.config.transport.segment);
    let small_max = classes.small_max().get();
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
    ticks: Ticks,
    until: Option<Time>,
    before: Option<Vec<u64>>,
    samples: Series,
    /// The file that the samples go into.
    path: PathBuf,
}

fn goodput_file(place: &Path) -> PathBuf {
    place.join("queue-goodput.parquet")
}

fn read_goodput(place: &Path) -> Vec<Sample> {
    let Ok(table) = Series::read(&goodput_file(place)) else {
        return Vec::new();
    };
    let (Some(Values::Times(times)), Some(Values::Reals(mbps))) =
        (table.column("time_us"), table.column("mbps"))
    else {
        return Vec::new();
    };
    let mut samples: Vec<(Time, Sample)> = Vec::new();
    for (&time, &mbps) in times.iter().zip(mbps) {
        match samples.last_mut() {
            Some((last, sample)) if *last == time => sample.mbps.push(mbps),
            _ => samples.push((
                time,
                Sample {
                    at_s: time.as_secs_f64(),
                    mbps: vec![mbps],
                },
            )),
        }
    }
    samples.into_iter().map(|(_, sample)| sample).collect()
}

/// Share of payload in what a port counts of a full packet.
pub(crate) fn payload_share(plan: &RunPlan) -> f64 {
    let transport = &plan.transport;
    let packet = transport.segment + transport.header;
    let port = &plan.ports.switches;
    let counted = match port.accounting {
        Accounting::Packet => packet,
        Accounting::Wire => port.framing.wire_size(packet),
    };
    f64::from(transport.segment) / f64::from(counted)
}

impl Meter {
    fn new(spec: GoodputSpec, plan: &RunPlan, place: &Path) -> anyhow::Result<Self> {
        let links = plan.fabric.links().iter();
        let link = links
            .zip(0..)
            .find(|(link, _)| link.to == Node::Host(spec.to));
        let (_, link) = link.with_context(|| format!("goodput.to: no host {}", spec.to))?;
        Ok(Self {
            spec,
            link,
            payload: payload_share(plan),
            ticks: Ticks::new(spec.after, spec.every),
            until: plan.until,
            before: None,
            samples: Series::new(&[
                ("time_us", Kind::Time),
                ("queue", Kind::Integer),
                ("mbps", Kind::Real),
            ]),
            path: goodput_file(place),
        })
    }
}

impl Observer for Meter {
    fn next_sample(&self) -> Option<Time> {
        // Not at the end itself, as published figures have it.
        let next = self.ticks.next();
        self.until.is_none_or(|until| next < until).then_some(next)
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<Step, Failure> {
        if self.next_sample() != Some(now) || !self.ticks.is_due(now) {
            return Ok(Step::Continue);
        }
        let port = simulation.port(self.link);
        let sent = |queue| {
            let evicted = port.counters(queue).drops(DropReason::Evicted).bytes;
            port.queued(queue).bytes - evicted - port.queue_bytes(queue).get()
        };
        let sent: Vec<u64> = (0..port.queue_count()).map(sent).collect();
        if let Some(before) = &self.before {
            let megabits = self.payload * 8.0 / 1e6 / self.spec.every.as_secs_f64();
            let difference = sent.iter().zip(before).map(|(now, before)| now - before);
            for (queue, bytes) in (0_u32..).zip(difference) {
                let mbps = bytes as f64 * megabits;
                self.samples.push(&[now.into(), queue.into(), mbps.into()]);
            }
        }
        self.before = Some(sent);
        Ok(Step::Continue)
    }

    fn finish(&mut self, _simulation: &Simulation) -> Result<(), Failure> {
        Ok(self.samples.write(&self.path)?)
    }
}
