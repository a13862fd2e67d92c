//! A run in one value.
//!
//! Serialized it is the answer to `--json` and the file `summary.json`; printed it is the table on
//! the terminal. Except for the wall time, which is only printed, it is a pure function of the
//! scenario and its seed.

use std::borrow::Borrow;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shallows_core::units::{Bytes, Rate, Time};

use crate::file::{read_named, read_text, write_text};
use crate::latencies::LatencySummary;
use crate::long_lived::{LongLived, LongLivedSummary};
use crate::record::{Completeness, FlowRecord};
use crate::size_class::{ClassCounts, SizeClass, SizeClasses};
use crate::statistics::{PercentileRule, Statistics};
use crate::{ResultsError, decimal};

/// Summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Completeness of the run.
    #[serde(rename = "partial")]
    pub completeness: Completeness,
    /// Flows of each class.
    pub classes: PerClass<ClassSummary>,
    /// Retransmission timeouts, of unfinished flows too.
    pub timeouts: ClassCounts,
    /// Packets sent again, of unfinished flows too.
    pub retransmits: ClassCounts,
    /// Goodput of flows without an end, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_lived: Option<LongLivedSummary>,
    /// Bounds of the size classes.
    pub size_classes: SizeClasses,
    /// Definition of the percentiles.
    pub percentile_rule: PercentileRule,
    /// Facts that the flow records do not contain.
    #[serde(flatten)]
    pub facts: RunFacts,
}

/// Something for all flows and for each class of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PerClass<T> {
    /// Of all flows.
    pub all: T,
    /// Of small flows.
    pub small: T,
    /// Of medium flows.
    pub medium: T,
    /// Of large flows.
    pub large: T,
}

impl<T> PerClass<T> {
    /// Each with its name, all flows first.
    pub fn named(&self) -> [(&'static str, &T); 4] {
        [
            ("all", &self.all),
            ("small", &self.small),
            ("medium", &self.medium),
            ("large", &self.large),
        ]
    }

    fn of_mut(&mut self, class: SizeClass) -> &mut T {
        match class {
            SizeClass::Small => &mut self.small,
            SizeClass::Medium => &mut self.medium,
            SizeClass::Large => &mut self.large,
        }
    }
}

/// Summary of the flows of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// All flows, finished or not.
    pub flows: u64,
    /// Flows that the end of the run cut short; they are in no figure below.
    pub unfinished: u64,
    /// Application bytes of the finished flows.
    pub finished_bytes: u64,
    /// Flow completion times.
    #[serde(rename = "fct_us", with = "decimal::optional_statistics")]
    pub fct: Option<Statistics<Time>>,
    /// Flow completion times in units of the ideal ones.
    pub slowdown: Option<Statistics<f64>>,
    /// Application bytes of finished flows, over the time from the first start to the last finish
    /// of any flow; so the classes add up to all.
    pub throughput_bps: Option<u64>,
}

/// Facts that only the world that ran the flows knows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The world.
    #[serde(default, skip_serializing_if = "World::is_simulated")]
    pub world: World,
    /// Simulated time covered.
    #[serde(rename = "simulated_s", with = "decimal::seconds")]
    pub simulated: Time,
    /// Links crossed, by every packet.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// The engine that simulated it, and why it was this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Wall-clock time of the run. It is in no file, because it is never the same twice.
    #[serde(skip)]
    pub wall: Option<Duration>,
    /// Packets marked, by reason.
    pub marks: Vec<ReasonCounts>,
    /// Packets dropped, by reason.
    pub drops: Vec<ReasonCounts>,
    /// Data packets that the limits of hosts dropped, by service (QJUMP).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_limit: Vec<ServiceDrops>,
    /// Latencies of applications' operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<LatencySummary>,
    /// The levels that hosts have chosen for applications (QJUMP).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelSummary>,
    /// The longest time in which packets of a host waited for a destination and none was sent to
    /// it, where hosts have a queue for each destination (XCo).
    #[serde(
        rename = "longest_wait_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "decimal::optional_microseconds"
    )]
    pub longest_wait: Option<Time>,
    /// Utilisation of the links.
    pub utilisation: Vec<Utilisation>,
    /// Loads of the workloads that have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadSummary>,
    /// Start and end of the measuring window, if there is one: only flows that start in it are
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredWindow>,
    /// From when to when a flow completion time is in this run, such as "from a flow's start to
    /// its sender's last ACK". Printed with the table.
    pub fct_definition: String,
}

/// The load of a workload, as shares of the capacity that it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// Requested load.
    pub requested: f64,
    /// Load of the flows that were generated.
    pub offered: f64,
    /// Mean utilisation of the hosts' links, in the measuring window or over the run: headers, ACKs
    /// and retransmissions included.
    pub carried: Option<f64>,
}

/// A measuring window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredWindow {
    /// Start.
    #[serde(rename = "from_us", with = "decimal::optional_microseconds")]
    pub from: Option<Time>,
    /// End; `None` if it is the run's.
    #[serde(rename = "to_us", with = "decimal::optional_microseconds")]
    pub to: Option<Time>,
}

/// The world that runs flows: simulated or live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// In virtual time.
    #[default]
    Simulated,
    /// On a machine, in real time.
    Live,
}

impl World {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_simulated(&self) -> bool {
        *self == Self::Simulated
    }
}

/// Counts for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCounts {
    /// The reason in a word or two.
    pub reason: String,
    /// The counts.
    #[serde(flatten)]
    pub counts: ClassCounts,
}

/// Drops of one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceDrops {
    /// The service.
    pub service: u16,
    /// Number of packets.
    pub packets: u64,
}

/// The levels that an application has come to at its hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelSummary {
    /// Its service.
    pub service: u32,
    /// At how many hosts it has each level, from the top.
    pub hosts: Vec<u32>,
    /// At how many hosts its control connections have each level.
    pub control: Vec<u32>,
    /// Number of level changes at the host with the most.
    pub most_changes: u64,
    /// The last change at any host.
    #[serde(rename = "settled_s", with = "decimal::seconds")]
    pub settled: Time,
}

/// Utilisation of the links of one kind, as fractions of their rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Kind of links, such as "leaf to spine".
    pub links: String,
    /// Number of links.
    pub count: u64,
    /// Over all of them.
    pub mean: f64,
    /// The least busy one.
    pub min: f64,
    /// The busiest one.
    pub max: f64,
    /// Pauses, where links can be paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<PauseSummary>,
}

/// Pauses of the links of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PauseSummary {
    /// Frames that stopped one of them, or a queue of it.
    pub frames: u64,
    /// Fraction of the time for which they were stopped, over all of them.
    pub mean: f64,
    /// Of the one that was stopped the longest.
    pub max: f64,
}

impl Summary {
    /// The summary of a run that had these flows; without any, of its applications.
    pub fn new(
        records: impl IntoIterator<Item = impl Borrow<FlowRecord>>,
        completeness: Completeness,
        size_classes: SizeClasses,
        percentile_rule: PercentileRule,
        facts: RunFacts,
    ) -> Result<Self, ResultsError> {
        let mut classes = PerClass::<FlowTimes>::default();
        let (mut timeouts, mut retransmits) = (ClassCounts::default(), ClassCounts::default());
        let (mut first, mut last) = (None, None);
        let mut long_lived = LongLived::default();
        for record in records {
            let record = record.borrow();
            let class = size_classes.class_of(record.bytes);
            classes.all.add(record);
            classes.of_mut(class).add(record);
            timeouts.add(class, u64::from(record.timeouts));
            retransmits.add(class, u64::from(record.retransmits));
            first = Some(first.map_or(record.start, |first: Time| first.min(record.start)));
            last = last.max(record.finish());
            long_lived.add(record, facts.simulated);
        }
        if first.is_none() && facts.latencies.is_empty() {
            return Err(ResultsError::EmptyResult);
        }
        // From the first start to the last finish.
        let span = last
            .unwrap_or_default()
            .saturating_sub(first.unwrap_or_default());
        let summarize = |times: FlowTimes| times.summarize(span, percentile_rule);
        Ok(Self {
            completeness,
            classes: PerClass {
                all: summarize(classes.all),
                small: summarize(classes.small),
                medium: summarize(classes.medium),
                large: summarize(classes.large),
            },
            timeouts,
            retransmits,
            long_lived: long_lived.summarize(),
            size_classes,
            percentile_rule,
            facts,
        })
    }

    /// The summary as JSON, for people to look into and programs to read.
    ///
    /// # Panics
    /// Never: a summary has neither keys that are no text nor numbers that JSON does not have.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a summary is plain data") + "\n"
    }

    /// Writes [`to_json`](Self::to_json) as a whole or not at all.
    pub fn write_json(&self, path: &Path) -> Result<(), ResultsError> {
        write_text(path, &self.to_json())
    }

    /// Reads what [`write_json`](Self::write_json) wrote: the same summary but for its wall time.
    pub fn read_json(path: &Path) -> Result<Self, ResultsError> {
        read_named(path, || Ok(serde_json::from_str(&read_text(path)?)?))
    }
}

/// Data of a class's flows that percentiles need: 16 bytes for each.
#[derive(Debug, Default)]
struct FlowTimes {
    flows: u64,
    finished_bytes: u64,
    fcts: Vec<Time>,
    slowdowns: Vec<f64>,
}

impl FlowTimes {
    fn add(&mut self, record: &FlowRecord) {
        self.flows += 1;
        if let Some(fct) = record.fct {
            self.finished_bytes += record.bytes;
            self.fcts.push(fct);
        }
        self.slowdowns.extend(record.slowdown());
    }

    fn summarize(self, span: Time, rule: PercentileRule) -> ClassSummary {
        let finished_bytes = self.finished_bytes;
        let has_rate = finished_bytes > 0 && span > Time::ZERO;
        ClassSummary {
            flows: self.flows,
            unfinished: self.flows - self.fcts.len() as u64,
            finished_bytes,
            fct: Statistics::of_times(self.fcts, rule),
            slowdown: Statistics::of_ratios(self.slowdowns, rule),
            throughput_bps: has_rate
                .then(|| Rate::from_bytes_per(Bytes::new(finished_bytes), span).bps()),
        }
    }
}
