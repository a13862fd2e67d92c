//! A summary for people: made for a terminal of 100 columns.

use std::fmt::{self, Display, Formatter, Write as _};
use std::ops::Range;

use shallows_core::units::Time;

use crate::record::Completeness;
use crate::size_class::ClassCounts;
use crate::statistics::PercentileRule;
use crate::summary::{PauseSummary, ReasonCounts, Summary, World};

impl Display for Summary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.completeness == Completeness::Partial {
            let until = self.facts.simulated;
            writeln!(
                f,
                "PARTIAL: interrupted at {until}; later flows are missing\n"
            )?;
        }
        let endless = self.long_lived.as_ref().map_or(0, |of| of.flows);
        if endless < self.classes.all.flows || endless == 0 {
            write_classes(f, self)?;
            writeln!(f)?;
        }
        write_long_lived(f, self)?;
        write_counters(f, self)?;
        write_latencies(f, self)?;
        write_utilisation(f, self)?;
        writeln!(f)?;
        write_effort(f, self)
    }
}

impl Summary {
    /// Explains the columns of the table, in lines.
    pub fn definitions(&self) -> String {
        let mut text = String::new();
        // A text takes any line.
        let _ = write_definitions(&mut text, self);
        text
    }
}

fn write_classes(f: &mut Formatter<'_>, summary: &Summary) -> fmt::Result {
    let classes = summary.classes.named().map(|(_, class)| class);
    let mut columns = vec![
        Column::new(["class", ""], summary.classes.named().map(|(name, _)| name)),
        Column::new(["flows", ""], classes.map(|class| grouped(class.flows))),
        Column::new(
            ["unfinished", ""],
            classes.map(|class| grouped(class.unfinished)),
        ),
    ];
    let finished = classes.map(|class| class.flows - class.unfinished);
    let values = STATISTICS.map(|(index, _, least)| {
        let of = |at: usize| {
            let fct = classes[at].fct.as_ref().filter(|_| finished[at] >= least)?;
            Some(fct.values()[index].ps() as f64)
        };
        [of(0), of(1), of(2), of(3)]
    });
    let (unit, scale) = unit(values.iter().flatten().flatten(), &TIME);
    for ((_, name, _), values) in STATISTICS.into_iter().zip(values) {
        let cells = values.map(|value| value.map_or_else(absent, |ps| four_digits(ps / scale)));
        columns.push(Column::new([name, unit], cells));
    }
    let slowdowns = classes.map(|class| class.slowdown.as_ref());
    let shown = |value: Option<f64>| value.map_or_else(absent, four_digits);
    let mean = slowdowns.map(|of| shown(of.map(|of| of.mean)));
    columns.push(Column::new(["mean", ""], mean));
    let p99 = [0, 1, 2, 3].map(|at| {
        let of = slowdowns[at].filter(|_| finished[at] >= FOR_P99);
        shown(of.map(|of| of.p99))
    });
    columns.push(Column::new(["p99", ""], p99));
    let bps = classes.map(|class| class.throughput_bps.map(|bps| bps as f64));
    let (unit, scale) = unit_of_rates(bps.iter().flatten());
    let rates = bps.map(|bps| shown(bps.map(|bps| bps / scale)));
    columns.push(Column::new(["throughput", unit], rates));

    write_groups(
        f,
        &columns,
        &[(3..8, "flow completion time"), (8..10, "slowdown")],
    )?;
    write_columns(f, &columns)
}

fn write_long_lived(f: &mut Formatter<'_>, summary: &Summary) -> fmt::Result {
    let Some(of) = &summary.long_lived else {
        return Ok(());
    };
    let rates = [of.goodput_bps, of.mean_bps, of.min_bps, of.max_bps].map(|bps| bps as f64);
    let (unit, scale) = unit_of_rates(rates.iter());
    let [all, mean, min, max] = rates.map(|bps| [four_digits(bps / scale)]);
    let fairness = of.fairness.map_or_else(absent, four_digits);
    let columns = [
        Column::new(["without end", ""], ["long-lived flows"]),
        Column::new(["flows", ""], [grouped(of.flows)]),
        Column::new(["goodput", unit], all),
        Column::new(["mean", unit], mean),
        Column::new(["min", unit], min),
        Column::new(["max", unit], max),
        Column::new(["fairness", ""], [fairness]),
    ];
    write_columns(f, &columns)?;
    writeln!(f)
}

/// Flows from which there is a 99th percentile that is not simply the largest value.
const FOR_P99: u64 = 100;

/// Place among the statistics, name, and the flows that it takes.
const STATISTICS: [(usize, &str, u64); 5] = [
    (0, "mean", 1),
    (1, "p50", 1),
    (2, "p95", 20),
    (3, "p99", FOR_P99),
    (4, "p99.9", 1_000),
];

/// Picoseconds in the units that a table of times may have.
const TIME: [(&str, f64); 3] = [("us", 1e6), ("ms", 1e9), ("s", 1e12)];

/// The unit for a table of values: the first in which the largest is below 10,000.
fn unit<'a>(
    values: impl Iterator<Item = &'a f64>,
    units: &[(&'static str, f64)],
) -> (&'static str, f64) {
    let largest = values.copied().fold(0.0, f64::max);
    let fits = |(_, scale): &&(&str, f64)| largest / scale < 10_000.0;
    *units.iter().find(fits).unwrap_or(&units[units.len() - 1])
}

fn unit_of_rates<'a>(values: impl Iterator<Item = &'a f64>) -> (&'static str, f64) {
    unit(values, &[("Mbps", 1e6), ("Gbps", 1e9)])
}

/// A number with four significant digits, and no more than six decimals.
fn four_digits(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 999.95 => 0,
        value if value >= 99.995 => 1,
        value if value >= 9.9995 => 2,
        value if value >= 0.99995 => 3,
        value if value >= 0.099_995 || value == 0.0 => 4,
        value if value >= 0.009_999_5 => 5,
        _ => 6,
    };
    format!("{value:.decimals$}")
}

/// A time with four significant digits.
fn short(time: Time) -> String {
    let ps = time.ps() as f64;
    let (unit, scale) = unit([ps].iter(), &TIME);
    format!("{} {unit}", four_digits(ps / scale))
}

fn write_counters(f: &mut Formatter<'_>, summary: &Summary) -> fmt::Result {
    let mut rows = Vec::new();
    for (name, reasons) in [
        ("marks", &summary.facts.marks),
        ("drops", &summary.facts.drops),
    ] {
        let counted = reasons.iter().filter(|reason| reason.counts.total() > 0);
        let total = counted.clone().map(|reason| reason.counts).sum();
        rows.push((name.to_owned(), total));
        rows.extend(
            counted.map(|ReasonCounts { reason, counts }| (format!("  {reason}"), *counts)),
        );
    }
    rows.push(("timeouts".to_owned(), summary.timeouts));
    rows.push(("retransmits".to_owned(), summary.retransmits));

    let mut columns = vec![Column::new(
        [""],
        rows.iter().map(|(name, _)| name.as_str()),
    )];
    for (index, (class, _)) in ClassCounts::default().named().into_iter().enumerate() {
        // Most runs have no packets outside flows.
        if class != "other" || rows.iter().any(|(_, counts)| counts.other > 0) {
            let cells = rows
                .iter()
                .map(|(_, counts)| grouped(counts.named()[index].1));
            columns.push(Column::new([class], cells));
        }
    }
    write_columns(f, &columns)
}

fn write_latencies(f: &mut Formatter<'_>, summary: &Summary) -> fmt::Result {
    let all = summary.facts.latencies.iter();
    let of: Vec<_> = all
        .filter_map(|of| Some((of, of.latency.as_ref()?)))
        .collect();
    if of.is_empty() {
        return Ok(());
    }
    let ps = |index: usize, least: u64| {
        let rows = of.iter();
        let value = rows.map(move |(of, latency)| {
            let value = latency.values()[index].ps() as f64;
            (of.count >= least).then_some(value)
        });
        value.collect::<Vec<_>>()
    };
    let mut values: Vec<_> = STATISTICS
        .into_iter()
        .filter(|&(_, name, _)| name != "p95")
        .map(|(index, name, least)| (name, ps(index, least)))
        .collect();
    let largest = of.iter().map(|(_, latency)| Some(latency.max.ps() as f64));
    values.push(("max", largest.collect()));
    let all = values
        .iter()
        .flat_map(|(_, values)| values.iter().flatten());
    let (unit, scale) = unit(all, &TIME);
    let name = |of: &crate::latencies::Operation| format!("{} {}", of.application, of.name);
    let mut columns = vec![
        Column::new(
            ["latency", ""],
            of.iter().map(|(of, _)| name(&of.operation)),
        ),
        Column::new(["count", ""], of.iter().map(|(of, _)| grouped(of.count))),
    ];
    for (name, values) in values {
        let shown = |value: Option<f64>| value.map_or_else(absent, |ps| four_digits(ps / scale));
        columns.push(Column::new([name, unit], values.into_iter().map(shown)));
    }
    writeln!(f)?;
    write_columns(f, &columns)
}

fn write_utilisation(f: &mut Formatter<'_>, summary: &Summary) -> fmt::Result {
    let groups = &summary.facts.utilisation;
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(f)?;
    let percent = |fraction: f64| format!("{:.2}%", 100.0 * fraction);
    let mut columns = vec![
        Column::new(["utilisation"], groups.iter().map(|of| of.links.as_str())),
        Column::new(["links"], groups.iter().map(|of| grouped(of.count))),
        Column::new(["mean"], groups.iter().map(|of| percent(of.mean))),
        Column::new(["min"], groups.iter().map(|of| percent(of.min))),
        Column::new(["max"], groups.iter().map(|of| percent(of.max))),
    ];
    if groups.iter().any(|of| of.pauses.is_some()) {
        let of_pauses = |name, cell: &dyn Fn(&PauseSummary) -> String| {
            let cells = groups.iter().map(|of| of.pauses.as_ref());
            Column::new([name], cells.map(|of| of.map_or_else(absent, cell)))
        };
        columns.push(of_pauses("pauses", &|of| grouped(of.frames)));
        columns.push(of_pauses("paused", &|of| percent(of.mean)));
        columns.push(of_pauses("paused max", &|of| percent(of.max)));
    }
    write_columns(f, &columns)
}

fn write_effort(f: &mut Formatter<'_>, summary: &Summary) -> fmt::Result {
    let facts = &summary.facts;
    let (hops, events) = (grouped(facts.packet_hops), grouped(facts.events));
    let time = short(facts.simulated);
    match facts.world {
        World::Simulated => write!(
            f,
            "{time} of virtual time, {hops} packet-hops, {events} events"
        ),
        World::Live => write!(f, "live: {time} of real time, {hops} packet-hops"),
    }?;
    if let Some(wall) = facts.wall {
        let wall = wall.as_secs_f64();
        write!(f, ", {wall:.2} s on the wall")?;
    }
    writeln!(f)
}

fn write_definitions(f: &mut String, summary: &Summary) -> fmt::Result {
    let bounds = summary.size_classes;
    let (small, medium) = (bounds.small_max(), bounds.medium_max());
    let rule = match summary.percentile_rule {
        PercentileRule::NearestRank => "the least that 99% of the finished flows do not exceed",
        PercentileRule::Index => "sorted[99n/100] of n finished flows, counted from 0",
    };
    let fct = match summary.facts.fct_definition.as_str() {
        "" => "from a flow's start to its completion",
        definition => definition,
    };
    writeln!(
        f,
        "classes: small up to {small}, medium up to {medium}, large above"
    )?;
    writeln!(
        f,
        "throughput: bytes of finished flows, from the first start to the last finish"
    )?;
    if summary.long_lived.is_some() {
        writeln!(
            f,
            "goodput: bytes received of flows without an end, from the start of each to the end of \
             the run; fairness: Jain's index, 1 if all are equal"
        )?;
    }
    writeln!(f, "p99: {rule}")?;
    writeln!(
        f,
        "FCT: {fct}; ideal FCT: if alone; slowdown: FCT / ideal FCT"
    )
}

/// A column with its heads; the first column of a table is aligned left and all others right.
pub(crate) struct Column {
    heads: Vec<String>,
    cells: Vec<String>,
    width: usize,
}

impl Column {
    pub(crate) fn new<const HEADS: usize>(
        heads: [&str; HEADS],
        cells: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let heads: Vec<String> = heads.into_iter().map(str::to_owned).collect();
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        let widths = heads.iter().chain(&cells).map(|text| text.chars().count());
        let width = widths.max().unwrap_or(0);
        Self {
            heads,
            cells,
            width,
        }
    }
}

const GAP: usize = 2;

pub(crate) fn write_columns(f: &mut Formatter<'_>, columns: &[Column]) -> fmt::Result {
    let heads = (0..columns[0].heads.len()).map(|row| {
        let texts = columns.iter().map(|column| &column.heads[row]);
        texts.collect::<Vec<_>>()
    });
    let cells = (0..columns[0].cells.len()).map(|row| {
        let texts = columns.iter().map(|column| &column.cells[row]);
        texts.collect::<Vec<_>>()
    });
    for row in heads.chain(cells) {
        let aligned = row.iter().zip(columns).enumerate();
        let line: String = aligned
            .map(|(index, (text, column))| match index {
                0 => format!("{text:width$}", width = column.width),
                _ => format!("{text:>width$}", width = GAP + column.width),
            })
            .collect();
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A line above some columns with a name for neighbours that belong together.
pub(crate) fn write_groups(
    f: &mut Formatter<'_>,
    columns: &[Column],
    groups: &[(Range<usize>, &str)],
) -> fmt::Result {
    let width = |columns: &[Column]| {
        columns
            .iter()
            .map(|column| GAP + column.width)
            .sum::<usize>()
    };
    let mut written = 0;
    let mut line = String::new();
    for (range, name) in groups {
        // The gap before the first of them is the one that the table's first column has not.
        let start = width(&columns[..range.start]);
        let span = width(&columns[range.clone()]) - GAP;
        let name = format!(" {name} ");
        write!(
            line,
            "{:indent$}{name:-^span$}",
            "",
            indent = start - written
        )?;
        written = start + span;
    }
    writeln!(f, "{}", line.trim_end())
}

fn absent() -> String {
    "-".to_owned()
}

/// A count with a comma between groups of three digits.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_in_threes() {
        let texts = [0, 999, 1_000, 27_547_052, u64::MAX].map(grouped);
        assert_eq!(
            texts,
            [
                "0",
                "999",
                "1,000",
                "27,547,052",
                "18,446,744,073,709,551,615"
            ]
        );
    }

    #[test]
    fn numbers_have_four_digits_and_a_table_has_one_unit() {
        let numbers = [
            12_345.6, 999.96, 123.45, 12.345, 1.2345, 0.12345, 0.012_345, 0.0012, 0.0,
        ];
        assert_eq!(
            numbers.map(four_digits),
            [
                "12346", "1000", "123.5", "12.35", "1.234", "0.1235", "0.01235", "0.001200",
                "0.0000"
            ]
        );
        let name = |us: f64| unit([us * 1e6, 1.0].iter(), &TIME).0;
        assert_eq!([9_999.0, 10_000.0, 1e8].map(name), ["us", "ms", "s"]);
        assert_eq!(short(Time::from_us(183_405)), "183.4 ms");
    }
}
