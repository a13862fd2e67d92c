//! A summary for people: made for a terminal of 100 columns.

use std::fmt::{self, Display, Formatter};
use std::ops::{Range, RangeInclusive};

use shallows_core::units::Time;

use crate::record::Completeness;
use crate::size_class::ClassCounts;
use crate::statistics::{PercentileRule, Statistics};
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
        write_classes(f, self)?;
        writeln!(f)?;
        write_counters(f, self)?;
        write_latencies(f, self)?;
        write_utilisation(f, self)?;
        writeln!(f)?;
        write_effort(f, self)?;
        write_definitions(f, self)
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
    for (index, name) in ["mean", "p50", "p95", "p99", "p99.9"]
        .into_iter()
        .enumerate()
    {
        let ps = |fct: &Statistics<Time>| fct.values()[index].ps() as f64;
        let ps = classes.map(|class| class.fct.as_ref().map(ps));
        columns.push(scaled(name, ps, &TIME, 6, 0..=4));
    }
    let slowdowns = classes.map(|class| class.slowdown.as_ref());
    let ratio = [("", 1.0)];
    let mean = slowdowns.map(|of| of.map(|of| of.mean));
    columns.push(scaled("mean", mean, &ratio, 4, 1..=2));
    let p99 = slowdowns.map(|of| of.map(|of| of.p99));
    columns.push(scaled("p99", p99, &ratio, 4, 1..=2));
    let rate = [("Mbps", 1e6), ("Gbps", 1e9)];
    let bps = classes.map(|class| class.throughput_bps.map(|bps| bps as f64));
    columns.push(scaled("throughput", bps, &rate, 6, 0..=4));

    write_groups(
        f,
        &columns,
        &[(3..8, "flow completion time"), (8..10, "slowdown")],
    )?;
    write_columns(f, &columns)
}

/// Picoseconds in the units that a column of times may have.
const TIME: [(&str, f64); 2] = [("us", 1e6), ("ms", 1e9)];

/// Values in the unit that suits the largest of them, with so many digits for that one. Each larger
/// unit is used from 10,000 of the one before.
fn scaled(
    name: &str,
    values: [Option<f64>; 4],
    units: &[(&str, f64)],
    digits: usize,
    decimals: RangeInclusive<usize>,
) -> Column {
    let largest = values.iter().flatten().copied().fold(0.0, f64::max);
    let fits = |(_, scale): &&(&str, f64)| largest / scale < 10_000.0;
    let &(unit, scale) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    let whole_digits = ((largest / scale) as u64).to_string().len();
    let wanted = digits.saturating_sub(whole_digits);
    let decimals = wanted.clamp(*decimals.start(), *decimals.end());
    let cell = |value: Option<f64>| {
        value.map_or_else(absent, |value| format!("{:.decimals$}", value / scale))
    };
    Column::new([name, unit], values.map(cell))
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
    for of in &summary.facts.latencies {
        let Some(latency) = &of.latency else { continue };
        let (application, name) = (&of.operation.application, &of.operation.name);
        let count = grouped(of.count);
        writeln!(
            f,
            "{application} {name}: {count} times, mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
            latency.mean, latency.p50, latency.p99, latency.p99_9, latency.max
        )?;
    }
    Ok(())
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
    let time = facts.simulated;
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

fn write_definitions(f: &mut Formatter<'_>, summary: &Summary) -> fmt::Result {
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
    for (range, name) in groups {
        // The gap before the first of them is the one that the table's first column has not.
        let start = width(&columns[..range.start]);
        let span = width(&columns[range.clone()]) - GAP;
        let name = format!(" {name} ");
        write!(f, "{:indent$}{name:-^span$}", "", indent = start - written)?;
        written = start + span;
    }
    writeln!(f)
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
    fn a_column_has_one_unit_and_six_digits_for_its_largest_value() {
        let column = |us: [u64; 4]| {
            let ps = us.map(|us| Some(us as f64 * 1e6));
            let column = scaled("p99", ps, &TIME, 6, 0..=4);
            (column.heads[1].clone(), column.cells.join(" "))
        };
        assert_eq!(
            column([86, 7, 8, 9]),
            ("us".to_owned(), "86.0000 7.0000 8.0000 9.0000".to_owned())
        );
        assert_eq!(
            column([9_999, 86, 0, 1]),
            ("us".to_owned(), "9999.00 86.00 0.00 1.00".to_owned())
        );
        assert_eq!(
            column([10_000, 86, 0, 1]),
            ("ms".to_owned(), "10.0000 0.0860 0.0000 0.0010".to_owned())
        );
        assert_eq!(
            column([2_000_000, 86, 0, 1]),
            ("ms".to_owned(), "2000.00 0.09 0.00 0.00".to_owned())
        );
    }
}
