//! The two worlds as a figure.

use shallows_core::units::Time;
use shallows_results::figure::{Axis, Curve, Extent, Figure, Origin, Panel, Plot, Point};

use super::Side;
use crate::study::chart::cumulative;

/// The last of 200 points of a distribution that is drawn, or a single late ping would flatten everything.
const LAST_STEP: usize = 199;

/// Goodput is shown over bins of this share of the run.
const BINS: u64 = 50;

pub(super) fn draw(scenario: &str, simulated: &Side, live: &Side) -> Figure {
    let worlds = [("simulated", simulated), ("live", live)];
    let mut panels = vec![goodput(&worlds)];
    panels.extend(queues(&worlds));
    for probe in 0..live.measurements.pings.len() {
        let values = |world: &Side| world.measurements.sorted_rtts().swap_remove(probe);
        panels.push(distribution(
            "Round-trip time of pings",
            "RTT (us)",
            &worlds,
            values,
        ));
    }
    if live.records.iter().any(|record| record.fct.is_some()) {
        let values = |world: &Side| world.fcts_ms();
        panels.push(distribution(
            "Flow completion time",
            "FCT (ms)",
            &worlds,
            values,
        ));
    }
    Figure {
        name: "compare".to_owned(),
        alt: format!("{scenario}: simulated and live"),
        panels,
    }
}

fn axis(label: &str, extent: Extent) -> Axis {
    Axis::new(label, extent)
}

/// Of all services together.
fn goodput(worlds: &[(&str, &Side)]) -> Panel {
    let curve = |(style, (label, world)): (usize, &(&str, &Side))| Curve {
        origin: Origin::Simulated,
        label: (*label).to_owned(),
        style,
        points: rates(world),
    };
    Panel {
        title: "Goodput".to_owned(),
        x: axis("Time (s)", Extent::FromZero),
        y: axis("Goodput (Mbps)", Extent::FromZero),
        plot: Plot::Lines(worlds.iter().enumerate().map(curve).collect()),
    }
}

fn rates(world: &Side) -> Vec<Point> {
    let bin = Time::from_ps(world.measurements.duration.ps() / BINS);
    let mut points = Vec::new();
    let mut before: Option<(Time, u64)> = None;
    for (time, row) in &world.measurements.goodput.rows {
        let arrived: u64 = row.iter().sum();
        match before {
            None => before = Some((*time, arrived)),
            Some((since, had)) if *time - since >= bin => {
                let seconds = (*time - since).as_secs_f64();
                let mbps = (arrived - had) as f64 * 8.0 / seconds / 1e6;
                points.push(Point::new(time.as_secs_f64(), mbps));
                before = Some((*time, arrived));
            }
            Some(_) => {}
        }
    }
    points
}

/// The length of the port that was busiest in the simulation.
fn queues(worlds: &[(&str, &Side); 2]) -> Option<Panel> {
    let lengths = worlds[0].1.measurements.port_lengths();
    let busiest = lengths
        .iter()
        .max_by_key(|(_, lengths)| lengths.iter().map(|&length| u64::from(length)).sum::<u64>());
    let port = (*busiest?.0).to_owned();
    let values = |world: &Side| {
        let mut lengths = world.measurements.port_lengths();
        let lengths = lengths.remove(port.as_str()).unwrap_or_default();
        let mut kb: Vec<f64> = lengths
            .iter()
            .map(|&bytes| f64::from(bytes) / 1e3)
            .collect();
        kb.sort_by(f64::total_cmp);
        kb
    };
    let title = format!("Queues of port {port}");
    Some(distribution(&title, "Length (KB)", worlds, values))
}

fn distribution(
    title: &str,
    x: &str,
    worlds: &[(&str, &Side)],
    values: impl Fn(&Side) -> Vec<f64>,
) -> Panel {
    let curve = |(style, (label, world)): (usize, &(&str, &Side))| Curve {
        origin: Origin::Simulated,
        label: (*label).to_owned(),
        style,
        points: cumulative(&values(world), LAST_STEP),
    };
    Panel {
        title: title.to_owned(),
        x: axis(x, Extent::FromZero),
        y: axis("CDF", Extent::Unit),
        plot: Plot::Lines(worlds.iter().enumerate().map(curve).collect()),
    }
}
