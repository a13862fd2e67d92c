//! Metrics of runs, for figures and claims. A metric is a function over the run's record, so a new
//! one needs no new simulation: it is a row of [`table`].

mod pattern;
mod table;
mod values;

#[cfg(test)]
mod tests;

use serde::Deserialize;
use shallows_results::latencies::Operation;
use shallows_run::scenario::ProbesConfig;

use crate::measured::Measured;
use crate::study::verdict::Bounded;

pub(crate) use pattern::Statistic;
use pattern::{Arguments, read};
pub use table::Row;
use table::{COMPLETION, GOODPUT, LATENCY, QUEUE};
pub(crate) use values::{goodput, queue_kb, rtts_us};

/// A number of a run, by the name that figures have for it: a row of the table and its arguments,
/// or a sum.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Metric {
    Of(&'static Row, Arguments),
    Sum(Vec<Self>),
}

/// All metrics.
pub fn metrics() -> &'static [Row] {
    table::ROWS
}

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        parse(&name).ok_or_else(|| {
            // Two parts in the wrong order.
            let turned = name
                .split_once('.')
                .map(|(one, other)| format!("{other}.{one}"));
            if let Some(turned) = turned.filter(|turned| parse(turned).is_some()) {
                return format!("{name:?} is not a metric; did you mean {turned}?");
            }
            format!(
                "{name:?} is not a metric; write one such as all.mean, small.p99, rtt.mean, \
                 goodput.1, timeouts (`shallows metrics` lists all)"
            )
        })
    }
}

fn parse(name: &str) -> Option<Metric> {
    if name.contains('+') {
        let parts = name.split('+').map(parse);
        return parts.collect::<Option<_>>().map(Metric::Sum);
    }
    // The root mean square of all completion times, as the first figures had it.
    let name = if name == "rms" { "all.rms" } else { name };
    table::ROWS
        .iter()
        .find_map(|row| Some(Metric::Of(row, read(row.pattern, name)?)))
}

impl Metric {
    /// Its value in a run, if the run has one.
    pub(crate) fn of(&self, run: &Measured) -> Option<f64> {
        match self {
            Self::Of(row, arguments) => (row.value)(&*arguments.resolved(&run.services)?, run),
            Self::Sum(metrics) => metrics.iter().map(|metric| metric.of(run)).sum(),
        }
    }

    /// The same, or a bound of it: the completion time of a flow that the end of the run cut short is
    /// at least the time that it had.
    pub(crate) fn bounded(&self, run: &Measured) -> Option<Bounded> {
        if let Some(value) = self.of(run) {
            return Some(Bounded::exact(value));
        }
        match self {
            Self::Of(row, arguments) => {
                let arguments = arguments.resolved(&run.services)?;
                (row.bound?)(&arguments, run).map(Bounded::at_least)
            }
            Self::Sum(_) => None,
        }
    }

    /// Its unit; empty if it is a count or a ratio.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Self::Of(row, _) => row.unit,
            Self::Sum(metrics) => metrics.first().map_or("", Self::unit),
        }
    }

    /// Requirement on a run; empty if every run has it.
    pub(crate) fn needs(&self) -> &'static str {
        match self {
            Self::Of(_, arguments) if arguments.service.is_some() => {
                "the name of the service in report.services"
            }
            Self::Of(row, _) => row.needs,
            Self::Sum(metrics) => metrics.first().map_or("", Self::needs),
        }
    }

    /// Returns whether a run with these probes has what it is made of.
    pub(crate) fn is_probed(&self, probes: &ProbesConfig) -> bool {
        match self {
            Self::Of(row, _) => (row.is_probed)(probes),
            Self::Sum(metrics) => metrics.iter().all(|metric| metric.is_probed(probes)),
        }
    }

    /// Returns whether the summary of a run is enough for it.
    pub(crate) fn is_in_summary(&self) -> bool {
        match self {
            Self::Of(row, arguments) => (row.in_summary)(arguments),
            Self::Sum(_) => false,
        }
    }

    /// Returns whether it is one of completion times, which unfinished flows do not have.
    pub(crate) fn is_of_completion(&self) -> bool {
        match self {
            Self::Of(row, _) => COMPLETION.contains(&row.pattern),
            Self::Sum(metrics) => metrics.iter().any(Self::is_of_completion),
        }
    }

    fn arguments_of(&self, pattern: &str) -> Option<&Arguments> {
        match self {
            Self::Of(row, arguments) if row.pattern == pattern => Some(arguments),
            _ => None,
        }
    }

    /// The operation and the statistic, if it is the latency of an operation.
    pub(crate) fn latency(&self) -> Option<(&Operation, Statistic)> {
        let arguments = self.arguments_of(LATENCY)?;
        Some((arguments.operation.as_ref()?, arguments.statistic))
    }

    /// The port, if it is the length of a port's queues.
    pub(crate) fn queue(&self) -> Option<&str> {
        Some(&self.arguments_of(QUEUE)?.port)
    }

    /// Returns whether it is the goodput of ports.
    pub(crate) fn is_goodput(&self) -> bool {
        self.arguments_of(GOODPUT).is_some()
    }

    /// The queue that it is of; all if it names none.
    pub(crate) fn queue_number(&self) -> Option<u64> {
        self.arguments_of(GOODPUT)?.number
    }
}
