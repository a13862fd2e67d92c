//! Figures of sweeps.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use shallows_results::RunRecord;
use shallows_results::figure::{Axis, Curve, Extent, Figure, Origin, Panel, Plot, Point, Words};
use shallows_results::frame::{Cells, Frame};
use shallows_results::interval::Interval;
use shallows_run::{Failure, Scenario};

use crate::measured::Measured;
use crate::metric::Metric;

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
    let groups = groups(&values, plot, (x, curves))?;
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

/// The values of each curve, by their places on the x axis.
fn groups(
    values: &[Option<f64>],
    plot: &SweepPlot,
    (x, curves): (&Cells, Option<&Cells>),
) -> anyhow::Result<Vec<(String, Vec<PointValues>)>> {
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
    Ok(groups)
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
    // The summary counts other packets as those of a class.
    let is_of_flows = ["drops.", "marks."].iter().any(|of| name.starts_with(of));
    if let Some(Cells::Reals(values)) = runs.column(name)
        && (!is_of_flows || metric.is_in_summary() || is_of_study(directory, name))
    {
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
        // It has the names of services and the sizes of packets.
        let scenario = Scenario::load(store.join(key).join("scenario.toml")).ok();
        Ok(metric.of(&Measured::of_record(record, scenario.as_ref())))
    };
    keys.iter().map(value).collect()
}

/// Returns whether a metric is one of the study's own.
fn is_of_study(directory: &Path, name: &str) -> bool {
    let points = Frame::read(&directory.join("points.parquet"));
    points.is_ok_and(|points| match points.column("metric") {
        Some(Cells::Texts(metrics)) => metrics.iter().any(|metric| metric == name),
        _ => false,
    })
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
