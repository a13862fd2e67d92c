//! One run at a glance: its figure, and single numbers of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use shallows_core::units::Time;
use shallows_results::RunRecord;
use shallows_results::figure::{Axis, Curve, Extent, Figure, Origin, Panel, Plot, Point};
use shallows_results::record::Completeness;
use shallows_results::series::Series;
use shallows_results::size_class::SizeClass;
use shallows_run::{Failure, Run, Runner, Scenario};

use crate::executor::{HalfMade, Job};
use crate::measured::{Keep, Kept, Measured};
use crate::metric::Metric;

/// Points of a curve.
const STEPS: usize = 200;

/// Ports whose queues are drawn.
const MOST_PORTS: usize = 4;

/// A figure of a run: how its flow completion times are distributed and, with `probes.queues`, how
/// long its longest queues were.
pub fn overview(record: &RunRecord) -> Figure {
    let queues = record.table("queues").ok().flatten();
    let queues = queues.and_then(|table| queue_panel(record, &table));
    Figure {
        name: "run".to_owned(),
        alt: "Flow completion times and queue lengths of a run".to_owned(),
        panels: std::iter::once(completion_panel(record))
            .chain(queues)
            .collect(),
    }
}

/// A run whose numbers can be asked for by the names that figures have for them.
#[derive(Debug)]
pub struct MeasuredRun {
    /// The record of the run.
    pub record: Arc<RunRecord>,
    measured: Measured,
}

impl MeasuredRun {
    /// A run of a scenario. Its record must have a summary.
    pub fn new(record: RunRecord, scenario: &Scenario) -> Option<Self> {
        record.summary.as_ref()?;
        Self::of(Measured::of_record(record, Some(scenario)))
    }

    /// A run of a scenario from a store of kept runs, as `shallows sweep --store` has it. `run` makes
    /// one that is not there yet.
    pub fn kept<'a>(
        scenario: &'a Scenario,
        store: &Path,
        run: impl FnOnce(Runner<'a>) -> Result<Run, Failure>,
    ) -> Result<Self, Failure> {
        let job = Job::new(scenario.clone(), Keep::All)?;
        let place = store.join(&job.key);
        let open = || Self::of(Measured::open(scenario, Keep::All, &place)?);
        if let Some(kept) = open() {
            return Ok(kept);
        }
        let half = HalfMade::new(store, &job);
        let made = run(scenario.runner().output(&half.0))?;
        if made.completeness == Completeness::Partial {
            return Err(Failure::Interrupted);
        }
        half.keep(&place, || open().is_some())?;
        Ok(open().with_context(|| format!("cannot read {}", place.display()))?)
    }

    fn of(mut measured: Measured) -> Option<Self> {
        let record = measured.record()?;
        measured.kept = Kept::Memory(Arc::clone(&record));
        Some(Self { record, measured })
    }

    /// The value of a metric such as `small.p99`, if the run has one; an error if there is no such
    /// metric.
    pub fn metric(&self, name: &str) -> Result<Option<f64>, String> {
        let metric = Metric::try_from(name.to_owned())?;
        Ok(metric.of(&self.measured))
    }
}

/// The distribution of flow completion times, by size class.
pub(crate) fn completion_panel(record: &RunRecord) -> Panel {
    let step = |ms: &[f64], step: usize| {
        let last = ms.len() - 1;
        Point::new(ms[last * step / STEPS], step as f64 / STEPS as f64)
    };
    Panel {
        title: "Flow completion times".to_owned(),
        x: Axis::new("Completion time (ms)", Extent::Data).logarithmic(),
        y: Axis::new("Share of flows", Extent::Unit),
        plot: Plot::Lines(class_curves(record, |ms| {
            (0..=STEPS).map(|at| step(ms, at)).collect()
        })),
    }
}

/// The tail of that distribution: the share of flows that took longer, on logarithmic axes.
pub(crate) fn tail_panel(record: &RunRecord) -> Panel {
    let points = |ms: &[f64]| {
        let count = ms.len();
        // Dense at the tail, where a step is one flow.
        let mut ranks: Vec<usize> = (0..=STEPS)
            .map(|step| {
                let share = (step as f64 / STEPS as f64 * (count as f64).ln()).exp();
                count - (share.round() as usize).clamp(1, count)
            })
            .collect();
        ranks.dedup();
        ranks.reverse();
        let point = |rank: usize| Point::new(ms[rank], (count - rank) as f64 / count as f64);
        ranks.into_iter().map(point).collect()
    };
    Panel {
        title: "Tail of completion times".to_owned(),
        x: Axis::new("Completion time (ms)", Extent::Data).logarithmic(),
        y: Axis::new("Share of flows that take longer", Extent::Data).logarithmic(),
        plot: Plot::Lines(class_curves(record, points)),
    }
}

/// A curve for each size class from the sorted completion times of its flows, in ms.
fn class_curves(record: &RunRecord, points: impl Fn(&[f64]) -> Vec<Point>) -> Vec<Curve> {
    let classes = record
        .summary
        .as_ref()
        .map(|summary| summary.size_classes)
        .unwrap_or_default();
    let curve = |(style, (label, class)): (usize, (&str, SizeClass))| {
        let flows = record.flows.iter();
        let of_class = flows.filter(|flow| classes.class_of(flow.bytes) == class);
        let mut ms: Vec<f64> = of_class
            .filter_map(|flow| Some(flow.fct?.as_secs_f64() * 1e3))
            .collect();
        ms.sort_unstable_by(f64::total_cmp);
        (!ms.is_empty()).then(|| Curve {
            origin: Origin::Simulated,
            label: label.to_owned(),
            style,
            points: points(&ms),
        })
    };
    let classes = [
        ("small flows", SizeClass::Small),
        ("medium flows", SizeClass::Medium),
        ("large flows", SizeClass::Large),
    ];
    classes.into_iter().enumerate().filter_map(curve).collect()
}

fn queue_panel(record: &RunRecord, table: &Series) -> Option<Panel> {
    let (ports, bytes) = (table.integers("port")?, table.integers("bytes")?);
    // Lengths of all queues of a port, sample by sample.
    let mut of_ports: BTreeMap<i64, Vec<(Time, f64)>> = BTreeMap::new();
    let rows = table.times("time_us")?.iter().zip(ports).zip(bytes);
    for ((&time, &port), &bytes) in rows {
        let samples = of_ports.entry(port).or_default();
        let kb = bytes as f64 / 1e3;
        match samples.last_mut() {
            Some((last, sum)) if *last == time => *sum += kb,
            _ => samples.push((time, kb)),
        }
    }
    let longest = |samples: &[(Time, f64)]| samples.iter().map(|&(_, kb)| kb).fold(0.0, f64::max);
    let mut of_ports: Vec<(i64, Vec<(Time, f64)>)> = of_ports.into_iter().collect();
    of_ports.sort_by(|(_, one), (_, other)| longest(other).total_cmp(&longest(one)));
    of_ports.truncate(MOST_PORTS);
    let curve = |(style, (port, samples)): (usize, (i64, Vec<(Time, f64)>))| {
        let name = usize::try_from(port)
            .ok()
            .and_then(|port| record.ports.get(port));
        // The longest of each part, so that no peak is lost.
        let part = samples.len().div_ceil(STEPS).max(1);
        let points = samples.chunks(part).filter_map(|part| {
            let (time, _) = part.first()?;
            Some(Point::new(time.as_secs_f64() * 1e3, longest(part)))
        });
        Curve {
            origin: Origin::Simulated,
            label: name.map_or_else(|| format!("port {port}"), |port| port.name.clone()),
            style: 3 + style,
            points: points.collect(),
        }
    };
    Some(Panel {
        title: "Longest queues".to_owned(),
        x: Axis::new("Time (ms)", Extent::Data),
        y: Axis::new("Queue length (KB)", Extent::FromZero),
        plot: Plot::Lines(of_ports.into_iter().enumerate().map(curve).collect()),
    })
}
