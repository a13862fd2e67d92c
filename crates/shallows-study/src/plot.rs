//! Figures of a run or a sweep that is there already.
//!
//! What a simulated run did not record is simulated again with the probes that the figure needs;
//! the flows are the same.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use shallows_core::registry::Registry;
use shallows_core::units::Time;
use shallows_model::LinkId;
use shallows_results::RunRecord;
use shallows_results::figure::{
    Axis, Curve, Extent, Figure, Heat, HeatRow, Origin, Panel, Plot, Point, Words,
};
use shallows_results::frame::{Cells, Frame};
use shallows_results::interval::Interval;
use shallows_results::series::{Series, Values};
use shallows_results::summary::World;
use shallows_run::scenario::{Probes, Sampled};
use shallows_run::{
    Failure, FlowRecords, Interrupt, Observer, Options, Scenario, Simulated, World as _,
};

use crate::measured::Measured;
use crate::metric::Metric;
use crate::overview::{completion_panel, tail_panel};

/// Samples of a run.
const SAMPLES: u64 = 2_000;

/// Points of a curve, and columns of a grid.
const STEPS: usize = 400;
const COLUMNS: u64 = 60;

/// Queues and ports that are drawn.
const MOST_QUEUES: usize = 3;
const MOST_PORTS: usize = 12;

/// The figure of a run that is asked for.
#[derive(Clone, Debug)]
pub enum RunPlot {
    /// Completion times as a distribution and its tail, and the busiest ports over time.
    Overview,
    /// Queues of a port, by the name of its link, with their marking thresholds.
    Port(String),
    /// Congestion windows of flows.
    Flows(Vec<u32>),
}

/// A figure of the run in a directory.
pub fn plot_run(
    directory: &Path,
    plot: &RunPlot,
    registry: &Registry,
    (interrupted, progress): (Interrupt<'_>, &mut dyn Observer),
) -> Result<(Figure, Words), Failure> {
    let record = RunRecord::open(directory).map_err(anyhow::Error::from)?;
    let summary = record.summary.as_ref();
    let summary = summary.with_context(|| format!("{} holds no run", directory.display()))?;
    let span = summary.facts.simulated;
    let again = |of: &dyn Fn(&Scenario, &mut Probes) -> anyhow::Result<()>,
                 progress: &mut dyn Observer| {
        if summary.facts.world == World::Live {
            return Ok(None);
        }
        let scenario = Scenario::read_with(&directory.join("scenario.toml"), &[], registry)?;
        let mut plan = scenario.build_unless(interrupted)?;
        plan.probes = Probes::default();
        of(&scenario, &mut plan.probes)?;
        let options = Options {
            interrupted,
            flows: FlowRecords::OnDisk,
            ..Options::default()
        };
        let finished = Simulated.admit(plan)?.run(&options, &mut [progress])?;
        if interrupted.is_set() {
            return Err(Failure::Interrupted);
        }
        Ok(Some(finished.record))
    };
    let every = |parts: u64| round_interval(Time::from_ps(span.ps() / parts));
    let (name, panels, note) = match plot {
        RunPlot::Overview => {
            let hottest = hottest(&record);
            let interval = every(COLUMNS);
            let sampled = |_: &Scenario, probes: &mut Probes| {
                let of = hottest.iter().copied().map(LinkId).collect();
                probes.throughput = Some(Sampled::new(of, interval));
                Ok(())
            };
            let throughput = if hottest.is_empty() {
                None
            } else {
                again(&sampled, progress)?
            };
            let mut panels = vec![completion_panel(&record), tail_panel(&record)];
            if let Some(table) = throughput.and_then(|of| of.table("throughput").ok().flatten()) {
                panels.extend(utilisation(&record, &hottest, &table));
            }
            ("overview".to_owned(), panels, String::new())
        }
        RunPlot::Port(port) => {
            let link = record.ports.iter().position(|of| of.name == *port);
            let link = link.with_context(|| format!("no port {port}; ports.csv lists them"))?;
            let interval = every(SAMPLES);
            let sampled = |_: &Scenario, probes: &mut Probes| {
                let of = vec![LinkId(link as u32)];
                probes.queues = Some(Sampled::new(of, interval));
                Ok(())
            };
            let again = again(&sampled, progress)?;
            let table = again
                .unwrap_or(record)
                .table("queues")
                .map_err(anyhow::Error::from)?;
            let table = table.context("the run has no samples of queues")?;
            let number = i64::try_from(link).context("ports are numbered by 32 bits")?;
            let panel = queues(port, number, &table).context("the port was not sampled")?;
            let note = format!("Sampled every {interval}.");
            ("queue".to_owned(), vec![panel], note)
        }
        RunPlot::Flows(flows) => {
            let interval = every(SAMPLES);
            let sampled = |_: &Scenario, probes: &mut Probes| {
                let of = flows.clone();
                let unknown = flows
                    .iter()
                    .find(|&&flow| !record.flows.iter().any(|of| of.id == u64::from(flow)));
                if let Some(flow) = unknown {
                    return Err(anyhow!("no flow {flow} started in this run"));
                }
                probes.flows = Some(Sampled::new(of, interval));
                Ok(())
            };
            let again = again(&sampled, progress)?;
            let again = again.context("a live run has no samples of windows")?;
            let table = again.table("flows-cwnd").map_err(anyhow::Error::from)?;
            let table = table.context("the flows had no windows")?;
            let panel = windows(flows, &table).context("the flows had no windows")?;
            let note = format!("Sampled every {interval}.");
            ("cwnd".to_owned(), vec![panel], note)
        }
    };
    let figure = Figure {
        alt: format!("{name} of {}", directory.display()),
        name,
        panels,
    };
    let words = Words {
        note,
        ..Words::default()
    };
    Ok((figure, words))
}

/// The next of 1, 2, 5, 10, ... us.
fn round_interval(least: Time) -> Time {
    let mut decade = Time::from_us(1);
    loop {
        for factor in [1, 2, 5] {
            let interval = Time::from_ps(decade.ps().saturating_mul(factor));
            if interval >= least {
                return interval;
            }
        }
        decade = Time::from_ps(decade.ps().saturating_mul(10));
    }
}

/// Links of the ports with most bytes relative to their rates.
fn hottest(record: &RunRecord) -> Vec<u32> {
    let mut ports: Vec<(u32, f64)> = (0..)
        .zip(&record.ports)
        .filter_map(|(link, port)| Some((link, port.counters?.utilisation)))
        .collect();
    ports.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    ports.truncate(MOST_PORTS);
    let mut links: Vec<u32> = ports.into_iter().map(|(link, _)| link).collect();
    links.sort_unstable();
    links
}

fn times<'t>(table: &'t Series, name: &str) -> Option<&'t [Time]> {
    match table.column(name)? {
        Values::Times(times) => Some(times),
        _ => None,
    }
}

fn integers<'t>(table: &'t Series, name: &str) -> Option<&'t [i64]> {
    match table.column(name)? {
        Values::Integers(values) => Some(values),
        _ => None,
    }
}

fn reals<'t>(table: &'t Series, name: &str) -> Option<&'t [f64]> {
    match table.column(name)? {
        Values::Reals(values) => Some(values),
        _ => None,
    }
}

/// Utilisation of ports over time, as a grid.
fn utilisation(record: &RunRecord, links: &[u32], table: &Series) -> Option<Panel> {
    let (time, port) = (times(table, "time_us")?, integers(table, "port")?);
    let share = reals(table, "utilisation")?;
    let mut instants: Vec<Time> = time.to_vec();
    instants.dedup();
    let mut rows: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let mut column = 0;
    for ((&at, &port), &share) in time.iter().zip(port).zip(share) {
        while instants[column] != at {
            column += 1;
        }
        let row = rows
            .entry(port)
            .or_insert_with(|| vec![0.0; instants.len()]);
        row[column] += 100.0 * share;
    }
    let label = |(column, at): (usize, &Time)| match column % 15 {
        14 => format!("{:.1}", at.as_secs_f64() * 1e3),
        _ => String::new(),
    };
    let rows = links.iter().filter_map(|&link| {
        Some(HeatRow {
            label: record.ports.get(link as usize)?.name.clone(),
            values: rows.remove(&i64::from(link))?,
        })
    });
    Some(Panel {
        title: "Utilisation of the busiest ports".to_owned(),
        x: Axis::new("Time (ms)", Extent::Data),
        y: Axis::new("", Extent::Data),
        plot: Plot::Heat(Heat {
            rows: rows.collect(),
            columns: instants.iter().enumerate().map(label).collect(),
            neutral: None,
            label: "%".to_owned(),
        }),
    })
}

/// The longest queues of a port, each with its threshold.
fn queues(name: &str, link: i64, table: &Series) -> Option<Panel> {
    let (time, port) = (times(table, "time_us")?, integers(table, "port")?);
    let (queue, bytes) = (integers(table, "queue")?, integers(table, "bytes")?);
    let threshold = reals(table, "threshold_bytes")?;
    let mut samples: BTreeMap<i64, Vec<(f64, f64, f64)>> = BTreeMap::new();
    for row in 0..table.rows() {
        if port[row] == link {
            let sample = (
                time[row].as_secs_f64() * 1e3,
                bytes[row] as f64 / 1e3,
                threshold[row] / 1e3,
            );
            samples.entry(queue[row]).or_default().push(sample);
        }
    }
    let peak = |of: &[(f64, f64, f64)]| of.iter().map(|sample| sample.1).fold(0.0, f64::max);
    let count = samples.len();
    let mut samples: Vec<_> = samples.into_iter().collect();
    samples.sort_by(|(_, one), (_, other)| peak(other).total_cmp(&peak(one)));
    samples.truncate(MOST_QUEUES);
    let mut curves = Vec::new();
    for (index, (queue, samples)) in samples.iter().enumerate() {
        let label = match count {
            1 => "queue".to_owned(),
            _ => format!("queue {queue}"),
        };
        let thinned = |value: fn(&(f64, f64, f64)) -> f64| {
            let part = samples.len().div_ceil(STEPS).max(1);
            let parts = samples.chunks(part);
            parts
                .map(|part| {
                    let most = part.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
                    Point::new(part[0].0, most)
                })
                .filter(|point| point.y.is_finite())
                .collect::<Vec<_>>()
        };
        let of_threshold = thinned(|sample| sample.2);
        curves.push(Curve {
            origin: Origin::Simulated,
            label: label.clone(),
            style: 2 * index,
            points: thinned(|sample| sample.1),
        });
        if !of_threshold.is_empty() {
            curves.push(Curve {
                origin: Origin::Simulated,
                label: format!("threshold of {label}"),
                style: 2 * index + 1,
                points: of_threshold,
            });
        }
    }
    (!curves.is_empty()).then(|| Panel {
        title: format!("Queues of {name}"),
        x: Axis::new("Time (ms)", Extent::Data),
        y: Axis::new("Queue length (KB)", Extent::FromZero),
        plot: Plot::Lines(curves),
    })
}

fn windows(flows: &[u32], table: &Series) -> Option<Panel> {
    let (time, flow) = (times(table, "time_us")?, integers(table, "flow")?);
    let cwnd = integers(table, "cwnd_bytes")?;
    let curve = |(style, &number): (usize, &u32)| {
        let rows = (0..table.rows()).filter(|&row| flow[row] == i64::from(number));
        let points: Vec<Point> = rows
            .map(|row| Point::new(time[row].as_secs_f64() * 1e3, cwnd[row] as f64 / 1e3))
            .collect();
        let part = points.len().div_ceil(STEPS).max(1);
        Curve {
            origin: Origin::Simulated,
            label: format!("flow {number}"),
            style,
            points: points.into_iter().step_by(part).collect(),
        }
    };
    let curves: Vec<Curve> = flows.iter().enumerate().map(curve).collect();
    curves
        .iter()
        .any(|curve| !curve.points.is_empty())
        .then(|| Panel {
            title: "Congestion windows".to_owned(),
            x: Axis::new("Time (ms)", Extent::Data),
            y: Axis::new("Congestion window (KB)", Extent::FromZero),
            plot: Plot::Lines(curves),
        })
}

/// The figure of a sweep that is asked for.
#[derive(Clone, Debug)]
pub struct SweepPlot {
    /// Metric, such as `small.p99`.
    pub metric: String,
    /// Axis to the right.
    pub x: String,
    /// Axis of the curves, if there are several.
    pub curves: Option<String>,
    /// True if values are on a logarithmic axis.
    pub logarithmic: bool,
}

/// A metric of the sweep in a directory against one of its axes; values of other axes and seeds are
/// averaged.
pub fn plot_sweep(directory: &Path, plot: &SweepPlot) -> Result<(Figure, Words), Failure> {
    let runs = Frame::read(&directory.join("runs.parquet")).map_err(anyhow::Error::from)?;
    let axis = |name: &str| {
        runs.column(name).with_context(|| {
            let before_seed = runs.columns().iter().take_while(|(name, _)| name != "seed");
            let axes: Vec<&str> = before_seed.map(|(name, _)| name.as_str()).collect();
            format!("the sweep has no axis {name}; it has {}", axes.join(", "))
        })
    };
    let x = axis(&plot.x)?;
    let curves = plot.curves.as_deref().map(axis).transpose()?;
    let metric = Metric::try_from(plot.metric.clone()).map_err(|problem| anyhow!(problem))?;
    let values = values(directory, &runs, &plot.metric, &metric)?;
    let mut groups: Vec<(String, Vec<PointValues>)> = Vec::new();
    for (row, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let at = position(x, row).with_context(|| {
            format!(
                "the values of {} are not numbers; use another axis for --x",
                plot.x
            )
        })?;
        let label = curves.map_or_else(|| plot.metric.clone(), |cells| text(cells, row));
        let known = groups.iter().position(|(known, _)| *known == label);
        let group = known.unwrap_or_else(|| {
            groups.push((label, Vec::new()));
            groups.len() - 1
        });
        let points = &mut groups[group].1;
        match points.iter().position(|(known, _)| *known == at) {
            Some(point) => points[point].1.push(*value),
            None => points.push((at, vec![*value])),
        }
    }
    if groups.is_empty() {
        return Err(anyhow!("no run has a value of {}", plot.metric).into());
    }
    let curve = |(style, (label, mut points)): (usize, (String, Vec<PointValues>))| {
        points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let points = points
            .into_iter()
            .filter_map(|(x, values)| Some(Point::of(x, Interval::of(&values)?)));
        Curve {
            origin: Origin::Simulated,
            label,
            style,
            points: points.collect(),
        }
    };
    let unit = metric.unit();
    let label = match unit {
        "" => plot.metric.clone(),
        unit => format!("{} ({unit})", plot.metric),
    };
    let y = Axis::new(label, Extent::FromZero);
    let figure = Figure {
        name: format!("{}-by-{}", plot.metric, plot.x).replace(['/', ' '], "-"),
        alt: format!("{} by {}", plot.metric, plot.x),
        panels: vec![Panel {
            title: plot.metric.clone(),
            x: Axis::new(plot.x.clone(), Extent::Data),
            y: if plot.logarithmic {
                let extent = Extent::Data;
                Axis { extent, ..y }.logarithmic()
            } else {
                y
            },
            plot: Plot::Points(groups.into_iter().enumerate().map(curve).collect()),
        }],
    };
    let words = Words {
        note: "Means over the runs of a point. Bars are 95% confidence intervals.".to_owned(),
        ..Words::default()
    };
    Ok((figure, words))
}

/// The place of a point on the x axis and the values of its runs.
type PointValues = (f64, Vec<f64>);

/// A metric of every run: from the table, or else from the kept runs.
fn values(
    directory: &Path,
    runs: &Frame,
    name: &str,
    metric: &Metric,
) -> anyhow::Result<Vec<Option<f64>>> {
    if let Some(Cells::Reals(values)) = runs.column(name) {
        return Ok(values.clone());
    }
    let Some(Cells::Texts(keys)) = runs.column("run") else {
        return Err(anyhow!("the sweep does not name its runs"));
    };
    let store = directory.join("runs");
    let value = |key: &String| {
        let record = RunRecord::open(&store.join(key)).with_context(|| {
            format!(
                "{name} is not in runs.parquet, and the runs are not in {}",
                store.display()
            )
        })?;
        Ok(metric.of(&Measured::of_record(record, None)))
    };
    keys.iter().map(value).collect()
}

fn position(cells: &Cells, row: usize) -> Option<f64> {
    match cells {
        Cells::Texts(texts) => texts[row].parse().ok(),
        Cells::Integers(numbers) => Some(numbers[row] as f64),
        Cells::Reals(numbers) => numbers[row],
    }
}

fn text(cells: &Cells, row: usize) -> String {
    match cells {
        Cells::Texts(texts) => texts[row].clone(),
        Cells::Integers(numbers) => numbers[row].to_string(),
        Cells::Reals(numbers) => numbers[row].map_or_else(String::new, |number| number.to_string()),
    }
}
