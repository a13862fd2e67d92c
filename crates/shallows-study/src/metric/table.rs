//! The table of metrics: a row has the name, unit, needs and function of each.

use shallows_core::units::Time;
use shallows_results::record::FlowRecord;
use shallows_results::statistics::{Percentile, PercentileRule, jain_index};
use shallows_run::scenario::ProbesConfig;

use super::pattern::{Arguments, Class, Statistic};
use super::values::{
    fct_in_summary, goodput, levels, longest_gap_ms, mbps, mean, ms, of_flows, queue_kb, received,
    rtts_us, sum, total, unfinished, unfinished_in_summary,
};
use crate::measured::Measured;
use crate::operations;

/// A metric, or several whose names differ in their arguments.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Words and arguments of its name.
    pub pattern: &'static str,
    /// A name that follows the pattern.
    pub example: &'static str,
    /// Unit; empty for a count or a ratio.
    pub unit: &'static str,
    /// Requirement on the run; empty if every run has it.
    pub needs: &'static str,
    /// Description.
    pub about: &'static str,
    /// Returns whether these probes have what it is made of.
    pub(super) is_probed: fn(&ProbesConfig) -> bool,
    pub(super) in_summary: fn(&Arguments) -> bool,
    pub(super) value: fn(&Arguments, &Measured) -> Option<f64>,
    /// The least that it can be where it has no value.
    pub(super) bound: Option<fn(&Arguments, &Measured) -> Option<f64>>,
}

impl PartialEq for Row {
    /// No two rows have one pattern.
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}

/// Metrics of the completion times of flows.
pub(super) const COMPLETION: [&str; 3] = [
    "CLASS.STATISTIC",
    "CLASS.slowdown.STATISTIC",
    "throughput.CLASS?",
];
pub(super) const LATENCY: &str = "latency.OPERATION.STATISTIC";
pub(super) const QUEUE: &str = "queue.PORT.STATISTIC";
pub(super) const GOODPUT: &str = "goodput.ORDINAL?";

const fn row(
    pattern: &'static str,
    example: &'static str,
    unit: &'static str,
    about: &'static str,
    value: fn(&Arguments, &Measured) -> Option<f64>,
) -> Row {
    Row {
        pattern,
        example,
        unit,
        needs: "",
        about,
        is_probed: |_| true,
        in_summary: |_| false,
        value,
        bound: None,
    }
}

impl Row {
    const fn needs(mut self, needs: &'static str) -> Self {
        self.needs = needs;
        self
    }

    const fn probed(mut self, is: fn(&ProbesConfig) -> bool) -> Self {
        self.is_probed = is;
        self
    }

    const fn in_summary(mut self, is: fn(&Arguments) -> bool) -> Self {
        self.in_summary = is;
        self
    }
}

/// All metrics. Of several patterns that a name follows, the first counts.
pub(super) const ROWS: &[Row] = &[
    row(
        "CLASS.STATISTIC",
        "small.p99",
        "ms",
        "flow completion time of a class",
        // As the MQ-ECN authors' scripts have it, the summary's means are exact to the
        // picosecond; others are taken from the flows.
        |of, run| {
            let known = fct_in_summary(&run.summary, of.class, of.statistic);
            known.or_else(|| {
                let values = of_flows(&*run.record()?, &run.summary, of.class, ms);
                of.statistic.of(&values, run.summary.percentile_rule)
            })
        },
    )
    .in_summary(|of| match (of.class, of.statistic) {
        (Class::LongLived | Class::Service(_), _) | (_, Statistic::Rms | Statistic::Sum) => false,
        (_, Statistic::Mean | Statistic::Max) => true,
        (_, Statistic::Percentile(percentile)) => {
            use Percentile as P;
            [P::P50, P::P95, P::P99, P::P99_9].contains(&percentile)
        }
    }),
    row(
        "CLASS.slowdown.STATISTIC",
        "all.slowdown.mean",
        "",
        "flow completion time over the ideal one",
        |of, run| {
            let record = run.record()?;
            let values = of_flows(&record, &run.summary, of.class, FlowRecord::slowdown);
            of.statistic.of(&values, run.summary.percentile_rule)
        },
    ),
    Row {
        bound: Some(|of, run| {
            let record = run.record()?;
            let flow = record
                .flows
                .iter()
                .find(|flow| Some(u64::from(flow.src)) == of.number)?;
            let had = run.summary.facts.simulated.saturating_sub(flow.start);
            Some(had.as_secs_f64() * 1e3)
        }),
        ..row(
            "fct.host.NUMBER",
            "fct.host.0",
            "ms",
            "completion time of the first flow from a host; a bound of it if the run ended first",
            |of, run| {
                let record = run.record()?;
                let mut flows = record.flows.iter();
                ms(flows.find(|flow| Some(u64::from(flow.src)) == of.number)?)
            },
        )
    },
    row(
        "unfinished.CLASS?",
        "unfinished.large",
        "",
        "flows that started and were not over when the run ended, without long-lived ones",
        |of, run| {
            let known = unfinished_in_summary(&run.summary, of.class);
            known.or_else(|| Some(unfinished(&*run.record()?, &run.summary, of.class)))
        },
    )
    .in_summary(|of| matches!(of.class, Class::All | Class::Only(_))),
    row(
        "throughput.CLASS?",
        "throughput.large",
        "Mbps",
        "mean of size over completion time of a class; of long-lived flows, what they got until the \
         run ended",
        |of, run| {
            let end = run.summary.facts.simulated;
            let rate = |flow: &FlowRecord| match (flow.fct, of.class) {
                (Some(fct), _) => mbps(flow.bytes, fct),
                (None, Class::LongLived) => mbps(flow.bytes, end.saturating_sub(flow.start)),
                (None, _) => None,
            };
            let values = of_flows(&*run.record()?, &run.summary, of.class, rate);
            Statistic::Mean.of(&values, run.summary.percentile_rule)
        },
    ),
    row(
        "delivered.CLASS?",
        "delivered",
        "Mbps",
        "aggregate goodput: bytes of flows that finished or have no end, over the time of the run",
        |of, run| {
            let record = run.record()?;
            let flows = record
                .flows
                .iter()
                .filter(|flow| of.class.has(flow, &run.summary));
            // A flow without end has no ideal time, and is as long as what it has brought over.
            let bytes = flows.filter(|flow| flow.fct.is_some() || flow.ideal_fct == Time::ZERO);
            mbps(
                bytes.map(|flow| flow.bytes).sum(),
                run.summary.facts.simulated,
            )
        },
    ),
    row(
        "fairness.CLASS?",
        "fairness",
        "",
        "Jain's index of the rates of flows that finished or have no end, 1 if all are equal",
        |of, run| {
            let end = run.summary.facts.simulated;
            let rate = |flow: &FlowRecord| match flow.fct {
                Some(fct) => mbps(flow.bytes, fct),
                None if flow.ideal_fct == Time::ZERO => {
                    mbps(flow.bytes, end.saturating_sub(flow.start))
                }
                None => None,
            };
            jain_index(&of_flows(&*run.record()?, &run.summary, of.class, rate))
        },
    ),
    row(
        "rtt.data.STATISTIC",
        "rtt.data.p99",
        "us",
        "round-trip time that data flows saw",
        |of, run| {
            let table = run.record()?.table("flows-rtt").ok()??;
            let times = table.times("rtt_us")?.iter();
            let mut us: Vec<f64> = times.map(|rtt| rtt.as_secs_f64() * 1e6).collect();
            us.sort_unstable_by(f64::total_cmp);
            of.statistic.of(&us, run.summary.percentile_rule)
        },
    )
    .needs("probes.rtt")
    .probed(|probes| probes.rtt),
    row(
        "rtt.STATISTIC",
        "rtt.mean",
        "us",
        "round-trip time of pings",
        |of, run| of.statistic.of(&rtts_us(run)?, PercentileRule::NearestRank),
    )
    .needs("probes.ping")
    .probed(|probes| !probes.ping.is_empty()),
    row(
        QUEUE,
        "queue.leaf0->h3.p99",
        "KB",
        "length of all queues of a port",
        |of, run| {
            let values = queue_kb(&*run.record()?, &of.port)?;
            of.statistic.of(&values, run.summary.percentile_rule)
        },
    )
    .needs("probes.queues")
    .probed(|probes| probes.queues.is_some()),
    row(
        "goodput.gap",
        "goodput.gap",
        "ms",
        "longest time in which the sampled ports sent less than half of their mean",
        |_, run| longest_gap_ms(&goodput(run, None)?),
    )
    .needs("probes.throughput; `delivered` is the goodput of any run")
    .probed(|probes| probes.throughput.is_some()),
    row(
        "goodput.flow.NUMBER",
        "goodput.flow.0",
        "Mbps",
        "rate of a flow over its own time",
        |of, run| {
            let record = run.record()?;
            let flow = record
                .flows
                .iter()
                .find(|flow| Some(flow.id) == of.number)?;
            let end = run.summary.facts.simulated;
            mbps(
                flow.bytes,
                flow.fct.unwrap_or(end.saturating_sub(flow.start)),
            )
        },
    ),
    row(
        GOODPUT,
        "goodput.1",
        "Mbps",
        "payload that the sampled ports sent, of all their queues or of one, from 1",
        |of, run| mean(&goodput(run, of.number)?),
    )
    .needs("probes.throughput; `delivered` is the goodput of any run")
    .probed(|probes| probes.throughput.is_some()),
    row(
        "received.ORDINAL?",
        "received.1",
        "Mbps",
        "what applications got of all services or of one, from 1: whole messages of UDP",
        |of, run| {
            let service = of.number.map(u16::try_from).transpose().ok()?;
            received(&*run.record()?, service)
        },
    )
    .needs("probes.goodput")
    .probed(|probes| probes.goodput.is_some()),
    row(
        "rate.OPERATION.SIZE",
        "rate.read.block.1MB",
        "Mbps",
        "rate of an application's operations that take this size",
        |of, run| {
            let operation = of.operation.as_ref()?;
            let (count, time) = operations::count_and_time(&*run.record()?, operation)?;
            mbps(of.size.get() * count, time)
        },
    )
    .needs("an application"),
    row(
        LATENCY,
        "latency.memcached.get.p99",
        "us",
        "latency of an application's operation; UDP messages with latencies = true are udp.message",
        |of, run| {
            let values = operations::latencies_us(&*run.record()?, of.operation.as_ref()?)?;
            of.statistic.of(&values, run.summary.percentile_rule)
        },
    )
    .needs("an application"),
    row(
        "operations.OPERATION",
        "operations.memcached.get",
        "1/s",
        "operations of an application a second, from its first start to its last end",
        |of, run| {
            let operation = of.operation.as_ref()?;
            let (count, time) = operations::count_and_time(&*run.record()?, operation)?;
            (time > Time::ZERO).then(|| count as f64 / time.as_secs_f64())
        },
    )
    .needs("an application"),
    row(
        "timeouts.CLASS?",
        "timeouts.small",
        "",
        "TCP timeouts",
        |of, run| {
            let known = of.class.count(&run.summary.timeouts);
            known.or_else(|| {
                let record = run.record()?;
                sum(&record, &run.summary, of.class, |flow| Some(flow.timeouts))
            })
        },
    )
    .in_summary(|of| matches!(of.class, Class::All | Class::Only(_))),
    row(
        "drops.CLASS?",
        "drops.small",
        "",
        "packets that ports dropped; of a class, those of its flows",
        |of, run| match of.class {
            Class::All => Some(total(&run.summary.facts.drops)),
            class => sum(&*run.record()?, &run.summary, class, |flow| flow.dropped),
        },
    )
    .in_summary(|of| of.class == Class::All),
    row(
        "drop-rate.CLASS?",
        "drop-rate.large",
        "%",
        "dropped packets of those that the senders of a class sent",
        |of, run| {
            let record = run.record()?;
            let dropped = sum(&record, &run.summary, of.class, |flow| flow.dropped)?;
            let sent = sum(&record, &run.summary, of.class, |flow| flow.sent)?;
            (sent > 0.0).then(|| 100.0 * dropped / sent)
        },
    ),
    row(
        "marks.CLASS?",
        "marks.small",
        "",
        "packets that were marked; of a class, those that arrived",
        |of, run| match of.class {
            Class::All => Some(total(&run.summary.facts.marks)),
            class => {
                let record = run.record()?;
                sum(&record, &run.summary, class, |flow| Some(flow.marks))
            }
        },
    )
    .in_summary(|of| of.class == Class::All),
    row(
        "settled.ORDINAL",
        "settled.1",
        "ms",
        "last change of a service's automatic level at any host, from 1",
        |of, run| {
            let levels = levels(&run.summary, u32::try_from(of.number?).ok()?)?;
            Some(levels.settled.as_secs_f64() * 1e3)
        },
    )
    .needs("hosts.qjump.automatic")
    .in_summary(|_| true),
    row(
        "level-changes.ORDINAL",
        "level-changes.1",
        "",
        "changes of a service's automatic level, at the host with most of them",
        |of, run| {
            let levels = levels(&run.summary, u32::try_from(of.number?).ok()?)?;
            Some(levels.most_changes as f64)
        },
    )
    .needs("hosts.qjump.automatic")
    .in_summary(|_| true),
    row(
        "longest-wait",
        "longest-wait",
        "ms",
        "longest time that packets of a host waited for a destination and none was sent to it",
        |_, run| Some(run.summary.facts.longest_wait?.as_secs_f64() * 1e3),
    )
    .needs("hosts.xco")
    .in_summary(|_| true),
    row(
        "mice",
        "mice",
        "%",
        "small flows of at most 16 packets",
        |_, run| run.mice_percent,
    ),
];
