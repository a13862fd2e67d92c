//! The two worlds as a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use shallows_results::compare as summaries;
use shallows_results::ports::LinkRole;

use super::{Comparison, Side};
use shallows_run::measurements::Length;

/// Counters of a run that are shown for both worlds.
const COUNTERS: [&str; 4] = ["marks", "drops", "timeouts", "retransmits"];

/// One quantity in both worlds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// Subject of the row.
    of: String,
    what: &'static str,
    unit: &'static str,
    simulated: Option<f64>,
    live: Option<f64>,
    /// `live / simulated - 1`.
    difference: Option<f64>,
}

impl Row {
    fn new(
        (of, what, unit): (&str, &'static str, &'static str),
        simulated: Option<f64>,
        live: Option<f64>,
    ) -> Self {
        let pair = simulated.zip(live);
        let difference = pair.and_then(|(simulated, live)| match simulated {
            0.0 => (live == 0.0).then_some(0.0),
            _ => Some(live / simulated - 1.0),
        });
        Self {
            of: of.to_owned(),
            what,
            unit,
            simulated,
            live,
            difference,
        }
    }
}

/// Everything that at least one of the worlds has.
pub(super) fn rows(simulated: &Side, live: &Side) -> Vec<Row> {
    let mut rows = goodput(simulated, live);
    rows.extend(queues(simulated, live));
    rows.extend(rtts(simulated, live));
    rows.extend(flows(simulated, live));
    rows
}

fn goodput(simulated: &Side, live: &Side) -> Vec<Row> {
    let of = |world: &Side| -> BTreeMap<u8, f64> {
        let services = world.measurements.goodput().into_iter();
        services.map(|of| (of.service, of.mbps)).collect()
    };
    let (simulated, live) = (of(simulated), of(live));
    let services: BTreeSet<u8> = simulated.keys().chain(live.keys()).copied().collect();
    let mut rows: Vec<Row> = services
        .iter()
        .map(|service| {
            Row::new(
                (&format!("service {service}"), "goodput", "Mbps"),
                simulated.get(service).copied(),
                live.get(service).copied(),
            )
        })
        .collect();
    let total = |of: &BTreeMap<u8, f64>| Some(of.values().sum());
    if services.len() > 1 {
        let head = ("all services", "goodput", "Mbps");
        rows.push(Row::new(head, total(&simulated), total(&live)));
    }
    rows
}

/// Queues that were in use, and ports with several of them.
fn queues(simulated: &Side, live: &Side) -> Vec<Row> {
    let of = |world: &Side| -> BTreeMap<String, Length> {
        let queues = world.measurements.queue_lengths().into_iter();
        let queues = queues.filter(|queue| queue.role != LinkRole::HostUp);
        let queues = queues.map(|queue| {
            (
                format!("{} queue {}", queue.link, queue.queue),
                queue.length,
            )
        });
        let ports = world.measurements.port_lengths().into_iter();
        let ports = ports
            .filter(|(link, _)| world.measurements.roles.get(*link) != Some(&LinkRole::HostUp));
        let ports = ports.filter_map(|(link, lengths)| {
            Some((format!("{link} all queues"), Length::of(lengths)?))
        });
        ports
            .chain(queues)
            .filter(|(_, length)| length.p90 > 0)
            .collect()
    };
    let (simulated, live) = (of(simulated), of(live));
    let names: BTreeSet<&String> = simulated.keys().chain(live.keys()).collect();
    let mut rows = Vec::new();
    for name in names {
        let (simulated, live) = (simulated.get(name), live.get(name));
        let mut row = |what, value: fn(&Length) -> f64| {
            let head = (name.as_str(), what, "KB");
            rows.push(Row::new(head, simulated.map(value), live.map(value)));
        };
        row("mean", |length| length.mean / 1e3);
        row("median", |length| f64::from(length.p50) / 1e3);
        row("p99", |length| f64::from(length.p99) / 1e3);
    }
    rows
}

fn rtts(simulated: &Side, live: &Side) -> Vec<Row> {
    let probes = simulated
        .measurements
        .rtts()
        .into_iter()
        .zip(live.measurements.rtts());
    let mut rows = Vec::new();
    for (number, (simulated, live)) in probes.enumerate() {
        let name = format!("ping {number}");
        for (what, simulated, live) in [
            ("mean RTT", simulated.mean_us, live.mean_us),
            ("p50 RTT", simulated.p50_us, live.p50_us),
            ("p99 RTT", simulated.p99_us, live.p99_us),
        ] {
            let some = |value: f64| value.is_finite().then_some(value);
            rows.push(Row::new((&name, what, "us"), some(simulated), some(live)));
        }
    }
    rows
}

/// Completion times by class, then what was counted.
fn flows(simulated: &Side, live: &Side) -> Vec<Row> {
    let (Some(simulated), Some(live)) = (&simulated.summary, &live.summary) else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for difference in summaries::compare(simulated, live) {
        let (what, unit, scale) = match difference.metric.as_str() {
            "fct_us.mean" => ("mean FCT", "ms", 1e3),
            "fct_us.p99" => ("p99 FCT", "ms", 1e3),
            "slowdown.mean" => ("mean slowdown", "", 1.0),
            "slowdown.p99" => ("p99 slowdown", "", 1.0),
            _ => continue,
        };
        let scaled = |value: Option<f64>| value.map(|value| value / scale);
        let head = (&*format!("{} flows", difference.class), what, unit);
        rows.push(Row::new(
            head,
            scaled(difference.first),
            scaled(difference.second),
        ));
    }
    let counted = summaries::compare(simulated, live);
    for what in COUNTERS {
        let count = |of: fn(&summaries::Difference) -> Option<f64>| {
            let found = counted
                .iter()
                .find(|row| row.metric == what && row.class == "all");
            found.and_then(of)
        };
        let (first, second) = (count(|row| row.first), count(|row| row.second));
        rows.push(Row::new(("all packets", what, ""), first, second));
    }
    rows
}

/// For a terminal.
pub(super) fn text(comparison: &Comparison, out: &Path) -> String {
    let number = |value: Option<f64>| match value {
        None => "-".to_owned(),
        Some(value) if value == value.trunc() && value.abs() < 1e12 => format!("{value:.0}"),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
    };
    let percent = |value: Option<f64>| {
        value.map_or("-".to_owned(), |value| format!("{:+.1}%", 100.0 * value))
    };
    let head = ["", "", "simulated", "live", "difference"].map(str::to_owned);
    let mut lines = vec![head];
    for row in &comparison.rows {
        let what = match row.unit {
            "" => row.what.to_owned(),
            unit => format!("{}, {unit}", row.what),
        };
        lines.push([
            row.of.clone(),
            what,
            number(row.simulated),
            number(row.live),
            percent(row.difference),
        ]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max();
    let widths: [usize; 5] = std::array::from_fn(|column| width(column).unwrap_or_default());
    let mut text = String::new();
    for [of, what, simulated, live, difference] in &lines {
        let [a, b, c, d, e] = widths;
        let line = format!("{of:a$}  {what:b$}  {simulated:>c$}  {live:>d$}  {difference:>e$}");
        text += line.trim_end();
        text.push('\n');
    }
    let steal = comparison.steal.map_or("unknown".to_owned(), |steal| {
        format!("{:.2}%", 100.0 * steal)
    });
    let _ = write!(
        text,
        "\nBoth worlds ran the same flows at scale {}. The first 20% of the time count for no \
         goodput, queue or RTT.\n\
         goodput: simulated by what senders know to have arrived, live by what clients have read\n\
         queues: bytes each millisecond, of the same port code in both worlds\n\
         RTT: simulated datagrams and their echoes; live ICMP, stamped by the kernel\n\
         FCT: simulated to the sender's last ACK, live from the request to the client's last byte\n\
         live switch {}; stolen CPU time {steal}\n\
         figure and data: {}\n",
        comparison.scale,
        comparison.live,
        out.display()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_relative_to_the_simulation() {
        let difference = |simulated, live| Row::new(("", "", ""), simulated, live).difference;
        assert_eq!(difference(Some(20.0), Some(25.0)), Some(0.25));
        assert_eq!(difference(Some(0.0), Some(0.0)), Some(0.0));
        assert_eq!(difference(Some(0.0), Some(3.0)), None);
        assert_eq!(difference(None, Some(3.0)), None);
    }
}
