//! Values that metrics take from a run's record and summary.

use shallows_core::units::Time;
use shallows_results::RunRecord;
use shallows_results::probes::{GoodputSample, PingSample, Sample as _, ThroughputSample};
use shallows_results::record::FlowRecord;
use shallows_results::size_class::SizeClass;
use shallows_results::statistics::Percentile;
use shallows_results::summary::{LevelSummary, ReasonCounts, Summary};

use super::pattern::{Class, Statistic};
use crate::measured::Measured;
use crate::study::unfinished::Unfinished;

/// Flow completion time in ms.
pub(super) fn ms(flow: &FlowRecord) -> Option<f64> {
    Some(flow.fct?.as_secs_f64() * 1e3)
}

/// A value of each flow of a class, sorted.
pub(super) fn of_flows(
    record: &RunRecord,
    summary: &Summary,
    class: Class,
    value: impl Fn(&FlowRecord) -> Option<f64>,
) -> Vec<f64> {
    let flows = record.flows.iter().filter(|flow| class.has(flow, summary));
    let mut values: Vec<f64> = flows.filter_map(value).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The sum of a count of each flow of a class, if all have one.
pub(super) fn sum(
    record: &RunRecord,
    summary: &Summary,
    class: Class,
    count: fn(&FlowRecord) -> Option<u32>,
) -> Option<f64> {
    let flows = record.flows.iter().filter(|flow| class.has(flow, summary));
    let counts: Option<Vec<u32>> = flows.map(count).collect();
    Some(counts?.into_iter().map(f64::from).sum())
}

pub(super) fn levels(summary: &Summary, service: u32) -> Option<&LevelSummary> {
    let mut levels = summary.facts.levels.iter();
    levels.find(|of| of.service == service)
}

/// Flow completion times of the summary, in ms.
pub(super) fn fct_in_summary(summary: &Summary, class: Class, statistic: Statistic) -> Option<f64> {
    let classes = &summary.classes;
    let of_class = match class {
        Class::All => &classes.all,
        Class::Only(SizeClass::Small) => &classes.small,
        Class::Only(SizeClass::Medium) => &classes.medium,
        Class::Only(SizeClass::Large) => &classes.large,
        Class::LongLived | Class::Service(_) => return None,
    };
    let fct = of_class.fct?.map(|time| time.as_secs_f64() * 1e3);
    match statistic {
        Statistic::Mean => Some(fct.mean),
        Statistic::Max => Some(fct.max),
        Statistic::Percentile(Percentile::P50) => Some(fct.p50),
        Statistic::Percentile(Percentile::P95) => Some(fct.p95),
        Statistic::Percentile(Percentile::P99) => Some(fct.p99),
        Statistic::Percentile(Percentile::P99_9) => Some(fct.p99_9),
        Statistic::Percentile(_) | Statistic::Rms | Statistic::Sum => None,
    }
}

/// Number of flows of a class that have an end and did not come to it.
pub(super) fn unfinished(record: &RunRecord, summary: &Summary, class: Class) -> f64 {
    let flows = record.flows.iter().filter(|flow| class.has(flow, summary));
    // A flow without end has no ideal time.
    let cut_short = flows.filter(|flow| flow.fct.is_none() && flow.ideal_fct > Time::ZERO);
    cut_short.count() as f64
}

/// The same by the summary, which has no classes of flows without end.
pub(super) fn unfinished_in_summary(summary: &Summary, class: Class) -> Option<f64> {
    let classes = &summary.classes;
    let count = match class {
        Class::All => Unfinished::of(summary).unfinished,
        Class::Only(_) if summary.long_lived.is_some() => return None,
        Class::Only(SizeClass::Small) => classes.small.unfinished,
        Class::Only(SizeClass::Medium) => classes.medium.unfinished,
        Class::Only(SizeClass::Large) => classes.large.unfinished,
        Class::LongLived | Class::Service(_) => return None,
    };
    Some(count as f64)
}

/// Packets of all reasons.
pub(super) fn total(counts: &[ReasonCounts]) -> f64 {
    counts.iter().map(|of| of.counts.total() as f64).sum()
}

pub(super) fn mbps(bytes: u64, time: Time) -> Option<f64> {
    (time > Time::ZERO).then(|| bytes as f64 * 8.0 / time.as_secs_f64() / 1e6)
}

/// Goodput of a service or of all, in Mbps, from the first sample with any bytes to the last.
pub(super) fn received(record: &RunRecord, service: Option<u16>) -> Option<f64> {
    let table = record.table(GoodputSample::FILE).ok()??;
    let at = table.times("time_us")?;
    let (services, bytes) = (table.integers("service")?, table.integers("bytes")?);
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

/// Goodput of the sampled ports over time, in Mbps: of one queue or of all. What queues put on the
/// wire counts as full packets.
pub(crate) fn goodput(run: &Measured, queue: Option<u64>) -> Option<Vec<(Time, f64)>> {
    let payload = run.payload_share?;
    let table = run.record()?.table(ThroughputSample::FILE).ok()??;
    let (ends, intervals) = (table.times("time_us")?, table.times("interval_us")?);
    let (queues, bytes) = (table.integers("queue")?, table.integers("bytes")?);
    if let Some(queue) = queue {
        let queue = i64::try_from(queue).ok()?;
        queues.contains(&queue).then_some(())?;
    }
    let mut samples: Vec<(Time, f64)> = Vec::new();
    let rows = ends.iter().zip(intervals).zip(queues.iter().zip(bytes));
    for ((&end, interval), (&of, &bytes)) in rows {
        let wanted = queue.is_none_or(|queue| u64::try_from(of) == Ok(queue));
        let megabits = payload * 8.0 / 1e6 / interval.as_secs_f64();
        let mbps = if wanted { bytes as f64 * megabits } else { 0.0 };
        match samples.last_mut() {
            Some((last, sum)) if *last == end => *sum += mbps,
            _ => samples.push((end, mbps)),
        }
    }
    Some(samples)
}

/// Round-trip times of the pings that were answered, sorted, in us.
pub(crate) fn rtts_us(run: &Measured) -> Option<Vec<f64>> {
    let table = run.record()?.table(PingSample::FILE).ok()??;
    let answered = table.times("rtt_us")?.iter();
    let answered = answered.zip(table.integers("lost")?);
    let answered = answered.filter(|(_, lost)| **lost == 0);
    let mut us: Vec<f64> = answered.map(|(rtt, _)| rtt.as_secs_f64() * 1e6).collect();
    us.sort_unstable_by(f64::total_cmp);
    Some(us)
}

/// The mean over samples of equal length.
pub(super) fn mean(samples: &[(Time, f64)]) -> Option<f64> {
    let sum: f64 = samples.iter().map(|(_, value)| value).sum();
    (!samples.is_empty()).then(|| sum / samples.len() as f64)
}

/// The longest time of samples below half of their mean, in ms.
pub(super) fn longest_gap_ms(samples: &[(Time, f64)]) -> Option<f64> {
    let half = mean(samples)? / 2.0;
    let [(first, _), (second, _), ..] = samples else {
        return None;
    };
    let every = second.as_secs_f64() - first.as_secs_f64();
    let (mut gap, mut longest) = (0_u32, 0);
    for (_, mbps) in samples {
        gap = if *mbps < half { gap + 1 } else { 0 };
        longest = longest.max(gap);
    }
    Some(f64::from(longest) * every * 1e3)
}

/// Lengths of a port's queues together, at each instant, sorted.
pub(crate) fn queue_kb(record: &RunRecord, port: &str) -> Option<Vec<f64>> {
    let number = record.ports.iter().position(|of| of.name == port)?;
    let number = i64::try_from(number).ok()?;
    let table = record.table("queues").ok()??;
    let at = table.times("time_us")?;
    let (ports, bytes) = (table.integers("port")?, table.integers("bytes")?);
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
