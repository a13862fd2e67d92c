//! Figures of a run or a sweep that is there already.
//!
//! What a simulated run did not record is simulated again with the probes that the figure needs;
//! the flows are the same.

mod sweep;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use shallows_core::registry::Registry;
use shallows_core::units::Time;
use shallows_model::{FlowId, LinkId};
use shallows_results::RunRecord;
use shallows_results::figure::{
    Axis, Curve, Extent, Figure, Heat, HeatRow, Origin, Panel, Plot, Point, Words,
};
use shallows_results::series::Series;
use shallows_results::summary::World;
use shallows_run::scenario::{Probes, Sampled};
use shallows_run::{
    Failure, FlowRecords, Interrupt, Observer, Options, Scenario, Simulated, World as _,
};

pub use sweep::{SweepPlot, plot_sweep};

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
    let mut again = Again {
        directory,
        registry,
        interrupted,
        progress,
        world: summary.facts.world,
        span: summary.facts.simulated,
    };
    let Drawn { name, panels, note } = match plot {
        RunPlot::Overview => again.overview(&record)?,
        RunPlot::Port(port) => again.port(port, record)?,
        RunPlot::Flows(flows) => again.flows(flows, &record)?,
    };
    let figure = Figure {
        alt: format!("{name} of {}", directory.display()),
        name: name.to_owned(),
        panels,
    };
    let words = Words {
        note,
        ..Words::default()
    };
    Ok((figure, words))
}

/// Panels of a figure with its name and note.
struct Drawn {
    name: &'static str,
    panels: Vec<Panel>,
    note: String,
}

/// A run that is made again to see more of it.
struct Again<'a> {
    directory: &'a Path,
    registry: &'a Registry,
    interrupted: Interrupt<'a>,
    progress: &'a mut dyn Observer,
    world: World,
    /// Duration of the run.
    span: Time,
}

impl Again<'_> {
    /// The record with other probes; none of a live run.
    fn with(&mut self, probes: Probes) -> Result<Option<RunRecord>, Failure> {
        if self.world == World::Live {
            return Ok(None);
        }
        let path = self.directory.join("scenario.toml");
        let scenario = Scenario::read_with(&path, &[], self.registry)?;
        let mut plan = scenario.build_unless(self.interrupted)?;
        let pings = plan.probes.only_pings().pings;
        plan.probes = Probes { pings, ..probes };
        let options = Options {
            interrupted: self.interrupted,
            flows: FlowRecords::OnDisk,
            ..Options::default()
        };
        let finished = Simulated.admit(plan)?;
        let finished = finished.run(&options, &mut [&mut *self.progress])?;
        if self.interrupted.is_set() {
            return Err(Failure::Interrupted);
        }
        Ok(Some(finished.record))
    }

    /// Interval of about this many samples.
    fn every(&self, samples: u64) -> Time {
        round_interval(Time::from_ps(self.span.ps() / samples))
    }

    fn overview(&mut self, record: &RunRecord) -> Result<Drawn, Failure> {
        let hottest = hottest(record);
        let throughput = if hottest.is_empty() {
            None
        } else {
            let links = hottest.iter().copied().map(LinkId).collect();
            let sampled = Sampled::new(links, self.every(COLUMNS));
            self.with(Probes {
                throughput: Some(sampled),
                ..Probes::default()
            })?
        };
        let mut panels = vec![completion_panel(record), tail_panel(record)];
        if let Some(table) = throughput.and_then(|of| of.table("throughput").ok().flatten()) {
            panels.extend(utilisation(record, &hottest, &table));
        }
        Ok(Drawn {
            name: "overview",
            panels,
            note: String::new(),
        })
    }

    fn port(&mut self, port: &str, record: RunRecord) -> Result<Drawn, Failure> {
        let link = record.ports.iter().position(|of| of.name == port);
        let link = link.with_context(|| format!("no port {port}; ports.csv lists them"))?;
        let interval = self.every(SAMPLES);
        let again = self.with(Probes {
            queues: Some(Sampled::new(vec![LinkId(link as u32)], interval)),
            ..Probes::default()
        })?;
        let table = again
            .unwrap_or(record)
            .table("queues")
            .map_err(anyhow::Error::from)?;
        let table = table.context("the run has no samples of queues")?;
        let number = i64::try_from(link).context("ports are numbered by 32 bits")?;
        let panel = queues(port, number, &table).context("the port was not sampled")?;
        Ok(Drawn {
            name: "queue",
            panels: vec![panel],
            note: format!("Sampled every {interval}."),
        })
    }

    fn flows(&mut self, flows: &[u32], record: &RunRecord) -> Result<Drawn, Failure> {
        let has = |flow: u32| record.flows.iter().any(|of| of.id == u64::from(flow));
        if let Some(flow) = flows.iter().find(|flow| !has(**flow)) {
            return Err(anyhow!("no flow {flow} started in this run").into());
        }
        let interval = self.every(SAMPLES);
        let of = flows.iter().copied().map(FlowId).collect();
        let again = self.with(Probes {
            flows: Some(Sampled::new(of, interval)),
            ..Probes::default()
        })?;
        let again = again.context("a live run has no samples of windows")?;
        let table = again.table("flows-cwnd").map_err(anyhow::Error::from)?;
        let table = table.context("the flows had no windows")?;
        let panel = windows(flows, &table).context("the flows had no windows")?;
        Ok(Drawn {
            name: "cwnd",
            panels: vec![panel],
            note: format!("Sampled every {interval}."),
        })
    }
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

/// Utilisation of ports over time, as a grid.
fn utilisation(record: &RunRecord, links: &[u32], table: &Series) -> Option<Panel> {
    let (time, port) = (table.times("time_us")?, table.integers("port")?);
    let share = table.reals("utilisation")?;
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
    let (time, port) = (table.times("time_us")?, table.integers("port")?);
    let (queue, bytes) = (table.integers("queue")?, table.integers("bytes")?);
    let threshold = table.reals("threshold_bytes")?;
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
    let (time, flow) = (table.times("time_us")?, table.integers("flow")?);
    let cwnd = table.integers("cwnd_bytes")?;
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
