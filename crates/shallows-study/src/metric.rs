//! What figures and claims can ask of a run. A metric is a function over the run's record, so a new
//! one needs no new simulation.

use std::str::FromStr;

use serde::Deserialize;
use shallows_core::units::{Bytes, Time};
use shallows_results::RunRecord;
use shallows_results::latencies::Operation;
use shallows_results::probes::{GoodputSample, Sample as _};
use shallows_results::record::FlowRecord;
use shallows_results::series::{Series, Values};
use shallows_results::size_class::{ClassCounts, SizeClass};
use shallows_results::statistics::{Percentile, PercentileRule};
use shallows_results::summary::{LevelSummary, Summary};

use crate::measured::Measured;
use crate::operations;
use crate::repro::verdict::Bounded;

/// A number of a run, by the name that figures have for it.
///
/// A class is `all`, `small`, `medium`, `large`, or `service.26` for the flows whose `service` is 26
/// in the scenario; a statistic `mean`, `max`, `rms` (root mean
/// square), or a percentile such as `p50` or `p99.9`.
///
/// | name | what |
/// |---|---|
/// | `all.mean`, `small.p99.9`, `service.26.p99` | flow completion time of a class, in ms; `rms` is `all.rms` |
/// | `all.slowdown.mean` | flow completion time over the ideal one |
/// | `fct.host.0` | flow completion time of the first flow from a host, in ms; a bound of it if the run ended first |
/// | `throughput.large` | mean of size over completion time of a class, in Mbps |
/// | `rtt.mean` | round-trip time of pings, in us |
/// | `rtt.data.p99` | round-trip time that data flows saw, in us; needs `probes.rtt` |
/// | `queue.leaf0->h3.p99` | length of all queues of a port, in KB; needs `probes.queues` |
/// | `goodput`, `goodput.1` | of all queues of a port or of one, from 1, in Mbps |
/// | `goodput.flow.0` | of a flow over its own time, in Mbps |
/// | `goodput.gap` | longest time that the port sent less than half of its mean, in ms |
/// | `received`, `received.1` | what applications got of all services or of one, from 1, in Mbps: whole messages of UDP; needs `probes.goodput` |
/// | `rate.read.block.1MB` | operations of an application that take this size, in Mbps |
/// | `received.1+rate.read.block.1MB` | a sum |
/// | `timeouts`, `timeouts.small` | TCP timeouts |
/// | `drops`, `drops.small` | packets that ports dropped; of a class, those of its flows |
/// | `drop-rate.large` | percent of the packets that senders of a class sent |
/// | `marks`, `marks.small` | packets that were marked; of a class, those that arrived |
/// | `latency.memcached.get.p99` | of an operation of an application, in us |
/// | `operations.memcached.get` | of an application a second, from its first start to its last end |
/// | `settled.1` | last change of a service's automatic level at any host, from 1, in ms of the run |
/// | `level-changes.1` | how often it changed at the host where that was most often |
/// | `longest-wait` | in which packets of a host waited for a destination and none was sent (XCo), in ms |
/// | `mice` | percent of small flows that fit 16 packets |
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Metric {
    Fct(Class, Statistic),
    Slowdown(Class, Statistic),
    Throughput(Class),
    Rtt(Statistic),
    DataRtt(Statistic),
    Queue(String, Statistic),
    Goodput(Option<usize>),
    FlowGoodput(u64),
    HostFct(u32),
    Gap,
    Received(Option<u16>),
    Rate(Operation, Bytes),
    PerSecond(Operation),
    Sum(Vec<Self>),
    Timeouts(Class),
    Drops(Class),
    DropRate(Class),
    Marks(Class),
    Latency(Operation, Statistic),
    Settled(u32),
    LevelChanges(u32),
    LongestWait,
    Mice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    All,
    Only(SizeClass),
    /// The number that the scenario has for it.
    Service(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    Mean,
    Max,
    Rms,
    Percentile(Percentile),
}

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        parse(&name).ok_or_else(|| {
            format!(
                "{name:?} is no metric; write one such as all.mean, small.p99, rtt.mean, \
                 goodput.1, timeouts"
            )
        })
    }
}

fn parse(name: &str) -> Option<Metric> {
    if name.contains('+') {
        return name
            .split('+')
            .map(parse)
            .collect::<Option<_>>()
            .map(Metric::Sum);
    }
    let (what, part) = name.split_once('.').unwrap_or((name, ""));
    let statistic = |text: &str| text.parse::<Statistic>().ok();
    let class = || match part {
        "" => Some(Class::All),
        _ => part.parse::<Class>().ok(),
    };
    let (what, part) = match (what, part.split_once('.')) {
        ("service", Some((number, part))) => (&name[..what.len() + 1 + number.len()], part),
        _ => (what, part),
    };
    if let Ok(of) = what.parse::<Class>() {
        return match part.strip_prefix("slowdown.") {
            Some(part) => Some(Metric::Slowdown(of, statistic(part)?)),
            None => Some(Metric::Fct(of, statistic(part)?)),
        };
    }
    match (what, part) {
        ("rms", "") => Some(Metric::Fct(Class::All, Statistic::Rms)),
        ("throughput", _) => Some(Metric::Throughput(class()?)),
        ("rtt", _) => match part.strip_prefix("data.") {
            Some(part) => Some(Metric::DataRtt(statistic(part)?)),
            None => Some(Metric::Rtt(statistic(part)?)),
        },
        ("queue", _) => {
            let (port, part) = part.split_once('.')?;
            Some(Metric::Queue(port.to_owned(), statistic(part)?))
        }
        ("goodput", "") => Some(Metric::Goodput(None)),
        ("goodput", "gap") => Some(Metric::Gap),
        ("goodput", _) => match part.strip_prefix("flow.") {
            Some(flow) => Some(Metric::FlowGoodput(flow.parse().ok()?)),
            None => Some(Metric::Goodput(Some(
                part.parse::<usize>().ok()?.checked_sub(1)?,
            ))),
        },
        ("fct", _) => {
            let host = part.strip_prefix("host.")?;
            Some(Metric::HostFct(host.parse().ok()?))
        }
        ("timeouts", _) => Some(Metric::Timeouts(class()?)),
        ("drops", _) => Some(Metric::Drops(class()?)),
        ("drop-rate", _) => Some(Metric::DropRate(class()?)),
        ("marks", _) => Some(Metric::Marks(class()?)),
        ("received", "") => Some(Metric::Received(None)),
        ("received", _) => Some(Metric::Received(Some(
            part.parse::<u16>().ok()?.checked_sub(1)?,
        ))),
        ("latency", _) => {
            let (operation, part) = parse_operation(part)?;
            Some(Metric::Latency(operation, statistic(part)?))
        }
        ("rate", _) => {
            let (operation, size) = parse_operation(part)?;
            Some(Metric::Rate(operation, size.parse().ok()?))
        }
        ("operations", _) => {
            let (application, name) = part.split_once('.')?;
            let operation = Operation {
                application: application.to_owned(),
                name: name.to_owned(),
            };
            Some(Metric::PerSecond(operation))
        }
        ("settled", _) => Some(Metric::Settled(part.parse::<u32>().ok()?.checked_sub(1)?)),
        ("level-changes", _) => Some(Metric::LevelChanges(
            part.parse::<u32>().ok()?.checked_sub(1)?,
        )),
        ("longest-wait", "") => Some(Metric::LongestWait),
        ("mice", "") => Some(Metric::Mice),
        _ => None,
    }
}

/// An application and its operation, and what follows.
fn parse_operation(text: &str) -> Option<(Operation, &str)> {
    let (application, rest) = text.split_once('.')?;
    let (name, rest) = rest.split_once('.')?;
    let operation = Operation {
        application: application.to_owned(),
        name: name.to_owned(),
    };
    Some((operation, rest))
}

impl FromStr for Class {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "all" => Ok(Self::All),
            "small" => Ok(Self::Only(SizeClass::Small)),
            "medium" => Ok(Self::Only(SizeClass::Medium)),
            "large" => Ok(Self::Only(SizeClass::Large)),
            _ => {
                let number = name.strip_prefix("service.").ok_or(())?;
                number.parse().map(Self::Service).map_err(|_| ())
            }
        }
    }
}

impl FromStr for Statistic {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "mean" => return Ok(Self::Mean),
            "max" => return Ok(Self::Max),
            "rms" => return Ok(Self::Rms),
            _ => {}
        }
        let percent: f64 = name.strip_prefix('p').ok_or(())?.parse().map_err(|_| ())?;
        // Percentiles are exact to tenths.
        let per_mille = (percent * 10.0).round();
        let is_exact = (per_mille - percent * 10.0).abs() < 1e-9;
        if !is_exact || !(0.0..=1000.0).contains(&per_mille) {
            return Err(());
        }
        Ok(Self::Percentile(Percentile::from_per_mille(
            per_mille as u16,
        )))
    }
}

impl Metric {
    /// Its value in a run, if the run has one.
    pub(crate) fn of(&self, run: &Measured) -> Option<f64> {
        match self {
            // As the MQ-ECN authors' scripts have it, the summary's means are exact to the
            // picosecond; others are taken from the flows.
            Self::Fct(class, statistic) => fct_in_summary(&run.summary, *class, *statistic)
                .or_else(|| self.of_record(&*run.record()?, &run.summary)),
            Self::Rtt(statistic) => statistic.of(&run.rtt_us, PercentileRule::NearestRank),
            Self::Goodput(queue) => run.mean_goodput(*queue),
            Self::Gap => run.longest_gap_ms(),
            Self::Sum(metrics) => metrics.iter().map(|metric| metric.of(run)).sum(),
            Self::Timeouts(class) => (class.count(&run.summary.timeouts))
                .or_else(|| self.of_record(&*run.record()?, &run.summary)),
            Self::Drops(Class::All) => Some(total(&run.summary.facts.drops)),
            Self::Marks(Class::All) => Some(total(&run.summary.facts.marks)),
            Self::Settled(service) => {
                let levels = levels(&run.summary, *service)?;
                Some(levels.settled.as_secs_f64() * 1e3)
            }
            Self::LevelChanges(service) => {
                Some(levels(&run.summary, *service)?.most_changes as f64)
            }
            Self::LongestWait => {
                let wait = run.summary.facts.longest_wait?;
                Some(wait.as_secs_f64() * 1e3)
            }
            Self::Mice => run.mice_percent,
            _ => self.of_record(&*run.record()?, &run.summary),
        }
    }

    /// The same, or a bound of it: the completion time of a flow that the end of the run cut short is
    /// at least the time that it had.
    pub(crate) fn bounded(&self, run: &Measured) -> Option<Bounded> {
        if let Some(value) = self.of(run) {
            return Some(Bounded::exact(value));
        }
        let Self::HostFct(host) = self else {
            return None;
        };
        let record = run.record()?;
        let flow = record.flows.iter().find(|flow| flow.src == *host)?;
        let had = run.summary.facts.simulated.saturating_sub(flow.start);
        Some(Bounded::at_least(had.as_secs_f64() * 1e3))
    }

    /// Its unit; empty if it is a count or a ratio.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Self::Fct(..) | Self::HostFct(_) | Self::Gap | Self::Settled(_) | Self::LongestWait => {
                "ms"
            }
            Self::Rtt(_) | Self::DataRtt(_) | Self::Latency(..) => "us",
            Self::Throughput(_)
            | Self::Goodput(_)
            | Self::FlowGoodput(_)
            | Self::Received(_)
            | Self::Rate(..) => "Mbps",
            Self::PerSecond(_) => "1/s",
            Self::Sum(metrics) => metrics.first().map_or("", Self::unit),
            Self::Queue(..) => "KB",
            Self::DropRate(_) | Self::Mice => "%",
            Self::Slowdown(..)
            | Self::Timeouts(_)
            | Self::Drops(_)
            | Self::Marks(_)
            | Self::LevelChanges(_) => "",
        }
    }

    /// Whether the summary of a run is enough for it.
    pub(crate) fn is_in_summary(&self) -> bool {
        match self {
            Self::Fct(Class::Service(_), _) | Self::Timeouts(Class::Service(_)) => false,
            Self::Fct(_, statistic) => match statistic {
                Statistic::Mean | Statistic::Max => true,
                Statistic::Percentile(percentile) => {
                    use Percentile as P;
                    [P::P50, P::P95, P::P99, P::P99_9].contains(percentile)
                }
                Statistic::Rms => false,
            },
            Self::Timeouts(_)
            | Self::Drops(Class::All)
            | Self::Marks(Class::All)
            | Self::Settled(_)
            | Self::LevelChanges(_)
            | Self::LongestWait => true,
            _ => false,
        }
    }

    /// What needs more than the summary.
    fn of_record(&self, record: &RunRecord, summary: &Summary) -> Option<f64> {
        let rule = summary.percentile_rule;
        let flows = |class: Class| {
            let flows = record.flows.iter();
            flows.filter(move |flow| class.has(flow, summary))
        };
        let values = |class, of: fn(&FlowRecord) -> Option<f64>| {
            let mut values: Vec<f64> = flows(class).filter_map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        let sum = |class, of: fn(&FlowRecord) -> Option<u32>| {
            let counts: Option<Vec<u32>> = flows(class).map(of).collect();
            Some(counts?.into_iter().map(f64::from).sum::<f64>())
        };
        let ms = |flow: &FlowRecord| Some(flow.fct?.as_secs_f64() * 1e3);
        match self {
            Self::Fct(class, statistic) => statistic.of(&values(*class, ms), rule),
            Self::Slowdown(class, statistic) => {
                statistic.of(&values(*class, FlowRecord::slowdown), rule)
            }
            Self::Throughput(class) => {
                let mbps = |flow: &FlowRecord| mbps(flow.bytes, flow.fct?);
                Statistic::Mean.of(&values(*class, mbps), rule)
            }
            Self::DataRtt(statistic) => {
                let table = record.table("flows-rtt").ok()??;
                let mut us: Vec<f64> = times(&table, "rtt_us")?
                    .iter()
                    .map(|rtt| rtt.as_secs_f64() * 1e6)
                    .collect();
                us.sort_unstable_by(f64::total_cmp);
                statistic.of(&us, rule)
            }
            Self::Queue(port, statistic) => statistic.of(&queue_kb(record, port)?, rule),
            Self::FlowGoodput(id) => {
                let flow = record.flows.iter().find(|flow| flow.id == *id)?;
                let end = summary.facts.simulated;
                mbps(
                    flow.bytes,
                    flow.fct.unwrap_or(end.saturating_sub(flow.start)),
                )
            }
            Self::HostFct(host) => {
                let flow = record.flows.iter().find(|flow| flow.src == *host)?;
                ms(flow)
            }
            Self::Latency(operation, statistic) => {
                statistic.of(&operations::latencies_us(record, operation)?, rule)
            }
            Self::Rate(operation, size) => {
                let (count, time) = operations::count_and_time(record, operation)?;
                mbps(size.get() * count, time)
            }
            Self::PerSecond(operation) => {
                let (count, time) = operations::count_and_time(record, operation)?;
                (time > Time::ZERO).then(|| count as f64 / time.as_secs_f64())
            }
            Self::Received(service) => received(record, *service),
            Self::Drops(class) => sum(*class, |flow| flow.dropped),
            Self::DropRate(class) => {
                let dropped = sum(*class, |flow| flow.dropped)?;
                let sent = sum(*class, |flow| flow.sent)?;
                (sent > 0.0).then(|| 100.0 * dropped / sent)
            }
            Self::Marks(class) => sum(*class, |flow| Some(flow.marks)),
            Self::Timeouts(class) => sum(*class, |flow| Some(flow.timeouts)),
            Self::Rtt(_)
            | Self::Goodput(_)
            | Self::Gap
            | Self::Sum(_)
            | Self::Settled(_)
            | Self::LevelChanges(_)
            | Self::LongestWait
            | Self::Mice => None,
        }
    }
}

fn levels(summary: &Summary, service: u32) -> Option<&LevelSummary> {
    let mut levels = summary.facts.levels.iter();
    levels.find(|of| of.service == service)
}

/// What the summary has of flow completion times, in ms.
fn fct_in_summary(summary: &Summary, class: Class, statistic: Statistic) -> Option<f64> {
    let classes = &summary.classes;
    let of_class = match class {
        Class::All => &classes.all,
        Class::Only(SizeClass::Small) => &classes.small,
        Class::Only(SizeClass::Medium) => &classes.medium,
        Class::Only(SizeClass::Large) => &classes.large,
        Class::Service(_) => return None,
    };
    let fct = of_class.fct?.map(|time| time.as_secs_f64() * 1e3);
    match statistic {
        Statistic::Mean => Some(fct.mean),
        Statistic::Max => Some(fct.max),
        Statistic::Percentile(Percentile::P50) => Some(fct.p50),
        Statistic::Percentile(Percentile::P95) => Some(fct.p95),
        Statistic::Percentile(Percentile::P99) => Some(fct.p99),
        Statistic::Percentile(Percentile::P99_9) => Some(fct.p99_9),
        Statistic::Percentile(_) | Statistic::Rms => None,
    }
}

fn total(counts: &[shallows_results::summary::ReasonCounts]) -> f64 {
    counts.iter().map(|of| of.counts.total() as f64).sum()
}

fn mbps(bytes: u64, time: Time) -> Option<f64> {
    (time > Time::ZERO).then(|| bytes as f64 * 8.0 / time.as_secs_f64() / 1e6)
}

pub(crate) fn times<'t>(table: &'t Series, column: &str) -> Option<&'t [Time]> {
    match table.column(column)? {
        Values::Times(times) => Some(times),
        _ => None,
    }
}

/// What has arrived of a service or of all, in Mbps, from the first sample at which there was
/// anything to the last.
fn received(record: &RunRecord, service: Option<u16>) -> Option<f64> {
    let table = record.table(GoodputSample::FILE).ok()??;
    let at = times(&table, "time_us")?;
    let (Values::Integers(services), Values::Integers(bytes)) =
        (table.column("service")?, table.column("bytes")?)
    else {
        return None;
    };
    // Instant, bytes of all services, and of those asked for.
    let mut samples: Vec<(Time, i64, i64)> = Vec::new();
    for ((&time, &of), &bytes) in at.iter().zip(services).zip(bytes) {
        let wanted = service.is_none_or(|service| i64::from(service) == of);
        let counted = if wanted { bytes } else { 0 };
        match samples.last_mut() {
            Some((last, all, some)) if *last == time => {
                (*all, *some) = (*all + bytes, *some + counted);
            }
            _ => samples.push((time, bytes, counted)),
        }
    }
    let (start, _, before) = samples.iter().find(|(_, all, _)| *all > 0)?;
    let (end, _, after) = samples.last()?;
    mbps(
        u64::try_from(after - before).ok()?,
        end.saturating_sub(*start),
    )
}

/// Lengths of a port's queues together, at each instant, sorted.
pub(super) fn queue_kb(record: &RunRecord, port: &str) -> Option<Vec<f64>> {
    let number = record.ports.iter().position(|of| of.name == port)?;
    let number = i64::try_from(number).ok()?;
    let table = record.table("queues").ok()??;
    let at = times(&table, "time_us")?;
    let (Values::Integers(ports), Values::Integers(bytes)) =
        (table.column("port")?, table.column("bytes")?)
    else {
        return None;
    };
    let mut lengths: Vec<(Time, f64)> = Vec::new();
    for ((&time, _), &bytes) in at
        .iter()
        .zip(ports)
        .zip(bytes)
        .filter(|((_, of), _)| **of == number)
    {
        let kb = bytes as f64 / 1e3;
        match lengths.last_mut() {
            Some((last, sum)) if *last == time => *sum += kb,
            _ => lengths.push((time, kb)),
        }
    }
    let mut lengths: Vec<f64> = lengths.into_iter().map(|(_, kb)| kb).collect();
    lengths.sort_unstable_by(f64::total_cmp);
    Some(lengths)
}

impl Class {
    fn has(self, flow: &FlowRecord, summary: &Summary) -> bool {
        match self {
            Self::All => true,
            Self::Only(class) => summary.size_classes.class_of(flow.bytes) == class,
            Self::Service(service) => flow.service == service,
        }
    }

    /// What the summary counts; it has no counts by service.
    fn count(self, counts: &ClassCounts) -> Option<f64> {
        let count = match self {
            Self::All => counts.total(),
            Self::Only(SizeClass::Small) => counts.small,
            Self::Only(SizeClass::Medium) => counts.medium,
            Self::Only(SizeClass::Large) => counts.large,
            Self::Service(_) => return None,
        };
        Some(count as f64)
    }
}

impl Statistic {
    /// Of values that are sorted.
    pub(crate) fn of(self, sorted: &[f64], rule: PercentileRule) -> Option<f64> {
        let count = sorted.len() as f64;
        match self {
            _ if sorted.is_empty() => None,
            Self::Mean => Some(sorted.iter().sum::<f64>() / count),
            Self::Rms => {
                Some((sorted.iter().map(|value| value * value).sum::<f64>() / count).sqrt())
            }
            Self::Max => sorted.last().copied(),
            Self::Percentile(percentile) => rule.select(sorted, percentile),
        }
    }
}

#[cfg(test)]
mod tests {
    use shallows_core::units::Rate;
    use shallows_results::ports::{LinkRole, PortRecord};
    use shallows_results::probes::{QueueSample, RttSample, SampleWriter};
    use shallows_results::record::Completeness;
    use shallows_results::size_class::SizeClasses;
    use shallows_results::summary::RunFacts;

    use super::*;

    fn flow(id: u64, bytes: u64, fct_us: u64, sent: u32, dropped: u32) -> FlowRecord {
        FlowRecord {
            id,
            start: Time::ZERO,
            src: 0,
            dst: 1,
            bytes,
            service: 0,
            fct: Some(Time::from_us(fct_us)),
            ideal_fct: Time::from_us(10),
            retransmits: 0,
            timeouts: 0,
            marks: dropped + 1,
            sent: Some(sent),
            dropped: Some(dropped),
        }
    }

    /// Two small flows of 10 KB and a large one of 20 MB.
    fn record() -> RunRecord {
        let flows = vec![
            flow(0, 10_000, 30, 10, 0),
            flow(1, 10_000, 40, 10, 1),
            FlowRecord {
                service: 3,
                timeouts: 2,
                ..flow(2, 20_000_000, 20_000, 100, 7)
            },
        ];
        let facts = RunFacts {
            simulated: Time::from_ms(50),
            ..RunFacts::default()
        };
        let rule = PercentileRule::NearestRank;
        let whole = Completeness::Complete;
        let summary = Summary::new(&flows, whole, SizeClasses::default(), rule, facts).unwrap();
        let mut record = RunRecord::new(flows, Some(summary));
        let mut queues = SampleWriter::in_memory();
        for (us, queue, bytes) in [(1, 0, 500), (1, 1, 1_500), (2, 0, 0), (2, 1, 1_000)] {
            let time = Time::from_us(us);
            let sample = QueueSample {
                time,
                port: 1,
                queue,
                bytes,
                packets: 0,
                threshold: None,
            };
            queues.write(&sample).unwrap();
        }
        record.insert("queues", queues.finish().unwrap().unwrap());
        let mut rtts = SampleWriter::in_memory();
        for us in [10, 30] {
            let rtt = Time::from_us(us);
            rtts.write(&RttSample {
                time: rtt,
                flow: 0,
                rtt,
            })
            .unwrap();
        }
        record.insert("flows-rtt", rtts.finish().unwrap().unwrap());
        // The first sample is before anything has arrived, and does not count.
        let mut goodput = SampleWriter::in_memory();
        for (ms, service, bytes) in [
            (0, 0, 0),
            (1, 0, 1_000),
            (1, 1, 0),
            (3, 0, 251_000),
            (3, 1, 125_000),
        ] {
            let time = Time::from_ms(ms);
            goodput
                .write(&GoodputSample {
                    time,
                    service,
                    bytes,
                })
                .unwrap();
        }
        record.insert("goodput", goodput.finish().unwrap().unwrap());
        let port = |name: &str, role| PortRecord {
            name: name.to_owned(),
            role,
            rate: Rate::from_gbps(1),
            counters: None,
        };
        record.ports = vec![
            port("h0->s", LinkRole::HostUp),
            port("s->h0", LinkRole::HostDown),
        ];
        record
    }

    #[test]
    fn metrics_are_functions_over_a_record() {
        let run = Measured::of_record(record(), None);
        for (name, expected) in [
            ("small.mean", 0.035),
            ("small.p99.9", 0.04),
            ("all.max", 20.0),
            // sqrt((0.03^2 + 0.04^2) / 2) ms
            ("small.rms", 0.035_355_339_059_327_38),
            ("all.slowdown.max", 2000.0),
            ("small.slowdown.mean", 3.5),
            // 20 MB in 20 ms.
            ("throughput.large", 8_000.0),
            ("fct.host.0", 0.03),
            ("drops.small", 1.0),
            ("drops.service.0", 1.0),
            ("service.3.mean", 20.0),
            ("service.3.slowdown.max", 2000.0),
            ("throughput.service.3", 8_000.0),
            ("timeouts.service.3", 2.0),
            ("drop-rate.small", 5.0),
            ("drop-rate.large", 7.0),
            ("marks.small", 3.0),
            ("queue.s->h0.max", 2.0),
            ("queue.s->h0.p50", 1.0),
            ("rtt.data.mean", 20.0),
            ("goodput.flow.2", 8_000.0),
            // 250 and 125 KB in 2 ms.
            ("received.1", 1_000.0),
            ("received.2", 500.0),
            ("received", 1_500.0),
            ("received.1+received.2+drops.small", 1_501.0),
        ] {
            let metric = Metric::try_from(name.to_owned()).unwrap();
            let value = metric
                .of(&run)
                .unwrap_or_else(|| panic!("{name} has no value"));
            assert!(
                (value - expected).abs() < 1e-9 * expected,
                "{name}: {value}"
            );
        }
        for name in ["queue.nowhere.p99", "goodput.flow.9"] {
            assert_eq!(
                Metric::try_from(name.to_owned()).unwrap().of(&run),
                None,
                "{name}"
            );
        }
    }

    #[test]
    fn names_that_mean_nothing_are_refused() {
        for name in [
            "",
            "all",
            "all.p",
            "all.p101",
            "all.p99.99",
            "tiny.mean",
            "goodput.0",
            "goodput.flow",
            "received.0",
            "rate.read.block",
            "rtt.mean+",
            "queue.p99",
            "drops.p99",
            "mice.small",
            "service.p99",
            "service.3",
            "service.x.p99",
            "rtt",
            "slowdown.mean",
        ] {
            assert!(Metric::try_from(name.to_owned()).is_err(), "{name}");
        }
    }
}
