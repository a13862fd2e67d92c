//! Two summaries, difference by difference.

use serde::Serialize;

use crate::size_class::ClassCounts;
use crate::statistics::Statistics;
use crate::summary::{ClassSummary, ReasonCounts, Summary};

/// One figure of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// "all", "small", "medium" or "large"; "other" for packets of no flow.
    pub class: &'static str,
    /// The figure, by the name that it has in JSON, such as `fct_us.p99`.
    pub metric: String,
    /// Of the first run, where it has one.
    pub first: Option<f64>,
    /// Of the second.
    pub second: Option<f64>,
    /// `second / first - 1`: 0.05 where the second is 5% larger. `None` if there is nothing to
    /// divide by; two zeros are equal.
    pub relative: Option<f64>,
}

impl Difference {
    fn new(class: &'static str, metric: String, first: Option<f64>, second: Option<f64>) -> Self {
        let relative = match (first, second) {
            (Some(first), Some(second)) if first == second => Some(0.0),
            (Some(first), Some(second)) if first != 0.0 => Some(second / first - 1.0),
            _ => None,
        };
        Self {
            class,
            metric,
            first,
            second,
            relative,
        }
    }
}

/// Every figure that at least one of two runs has: class by class, then the counters.
pub fn compare(first: &Summary, second: &Summary) -> Vec<Difference> {
    let mut differences = Vec::new();
    let classes = first.classes.named().into_iter();
    for ((class, first), (_, second)) in classes.zip(second.classes.named()) {
        let figures = figures(first).into_iter().zip(figures(second));
        for ((metric, first), (_, second)) in figures {
            if first.is_some() || second.is_some() {
                differences.push(Difference::new(class, metric, first, second));
            }
        }
    }
    let counters = counters(first).into_iter().zip(counters(second));
    for ((metric, first), (_, second)) in counters {
        for ((class, first), (_, second)) in first.named().into_iter().zip(second.named()) {
            // Most runs have no packets outside flows; zeros there would only be in the way.
            if class != "other" || first + second > 0 {
                let [first, second] = [first, second].map(|count| Some(count as f64));
                differences.push(Difference::new(class, metric.to_owned(), first, second));
            }
        }
    }
    differences
}

/// Every figure of a run by its full name, such as `small.fct_us.p99` or `marks.all`. Runs of all
/// scenarios have the same names in the same order.
pub fn figures_of(summary: &Summary) -> Vec<(String, Option<f64>)> {
    let classes = summary.classes.named().into_iter();
    let mut all: Vec<(String, Option<f64>)> = classes
        .flat_map(|(class, of)| {
            let figures = figures(of).into_iter();
            figures.map(move |(name, value)| (format!("{class}.{name}"), value))
        })
        .collect();
    for (name, counts) in counters(summary) {
        for (class, count) in counts.named() {
            all.push((format!("{name}.{class}"), Some(count as f64)));
        }
    }
    let facts = &summary.facts;
    all.push((
        "simulated_s".to_owned(),
        Some(facts.simulated.as_secs_f64()),
    ));
    all.push(("packet_hops".to_owned(), Some(facts.packet_hops as f64)));
    all.push(("events".to_owned(), Some(facts.events as f64)));
    all
}

fn figures(class: &ClassSummary) -> Vec<(String, Option<f64>)> {
    let fct = class.fct.map(|fct| fct.map(|time| time.ps() as f64 / 1e6));
    let mut figures = vec![
        ("flows".to_owned(), Some(class.flows as f64)),
        ("unfinished".to_owned(), Some(class.unfinished as f64)),
    ];
    for (what, statistics) in [("fct_us", fct), ("slowdown", class.slowdown)] {
        for (index, name) in Statistics::<f64>::NAMES.into_iter().enumerate() {
            let value = statistics.map(|of| of.values()[index]);
            figures.push((format!("{what}.{name}"), value));
        }
    }
    let throughput = class.throughput_bps.map(|bps| bps as f64);
    figures.push(("throughput_bps".to_owned(), throughput));
    figures
}

fn counters(summary: &Summary) -> [(&'static str, ClassCounts); 4] {
    let total = |reasons: &[ReasonCounts]| reasons.iter().map(|reason| reason.counts).sum();
    [
        ("marks", total(&summary.facts.marks)),
        ("drops", total(&summary.facts.drops)),
        ("timeouts", summary.timeouts),
        ("retransmits", summary.retransmits),
    ]
}
