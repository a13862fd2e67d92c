//! Figures of a study: panels with means over the seeds and 95% confidence intervals as bars.

use std::collections::BTreeMap;

use shallows_core::units::Time;
use shallows_results::figure::{
    Axis, Curve, Extent, Figure, Heat, HeatRow, Origin, Panel, Plot, Point, Row, Spacing,
};
use shallows_results::interval::Interval;
use shallows_results::latencies::Operation;
use shallows_results::statistics::PercentileRule;

use super::config::{CurveConfig, PanelConfig, PanelKind, shown};
use super::published::{self, Place};
use super::results::Results;
use super::view::{Axes, View};
use crate::measured::Measured;
use crate::metric::{Metric, Statistic, goodput, queue_kb, rtts_us};
use crate::operations::{done, latencies_by_window, latencies_us};

/// Points of a distribution's curve.
const STEPS: usize = 200;

/// Latencies over time are those of operations that begin within one of these (QJUMP, Figure 5).
const LATENCY_WINDOW: Time = Time::from_ms(1);

/// The first style of curves that are no points of an axis, so that a scheme has the same colour in
/// all figures.
const OTHER_CURVES: usize = 3;

/// A figure with these panels. Panels that show more of a run than single values are left out where
/// these are all that is recorded.
pub(crate) fn figure(
    name: String,
    alt: String,
    panels: &[PanelConfig],
    results: &Results<'_>,
) -> Figure {
    let can_be_drawn = |panel: &&PanelConfig| {
        let needs_runs = matches!(panel.kind, PanelKind::OverTime | PanelKind::Distribution);
        !(results.are_recorded() && needs_runs)
    };
    let panels = panels.iter().filter(can_be_drawn);
    let panels = panels.filter_map(|panel| draw(panel, results));
    Figure {
        name,
        alt,
        panels: panels.collect(),
    }
}

/// The axes that a panel shows.
pub(super) fn axes(panel: &PanelConfig) -> Axes<'_> {
    let has_metric = panel.curve.is_empty();
    Axes {
        x: panel.x.as_deref(),
        curves: panel.curves.as_deref(),
        at: &panel.at,
        wants_x: panel.kind == PanelKind::Along,
        wants_curves: has_metric,
        points: &[],
    }
}

/// The plot of a panel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sort {
    Along { x: usize },
    OverTime,
    Distribution,
    Rows,
    Heat,
}

/// The plot that a panel asks for: rows in place of curves where no axis goes to the right. Nothing
/// if it has no axis at all.
pub(super) fn sort(panel: &PanelConfig, view: &View) -> Option<Sort> {
    match (panel.kind, view.x) {
        (PanelKind::Along, Some(x)) => Some(Sort::Along { x }),
        (PanelKind::Along | PanelKind::Rows, _) => view.curves.map(|_| Sort::Rows),
        (PanelKind::Heat, _) => view.curves.map(|_| Sort::Heat),
        (PanelKind::OverTime, _) => Some(Sort::OverTime),
        (PanelKind::Distribution, _) => Some(Sort::Distribution),
    }
}

fn draw(panel: &PanelConfig, results: &Results<'_>) -> Option<Panel> {
    let view = View::new(results.study, &axes(panel)).ok()?;
    let sort = sort(panel, &view)?;
    let chart = Chart {
        panel,
        results,
        view,
    };
    let along = |extent: Extent| {
        let axis = Axis::new(chart.label(), extent);
        if panel.logarithmic {
            axis.logarithmic()
        } else {
            axis
        }
    };
    let values = || match panel {
        PanelConfig {
            normalise: Some(_), ..
        } => along(Extent::Reference(1.0)),
        PanelConfig {
            from_zero: true, ..
        } => along(Extent::FromZero),
        _ => along(Extent::Data),
    };
    let nothing = || Axis::new("", Extent::Data);
    let (x, y, plot) = match sort {
        Sort::Along { x } => {
            let mut right = Axis::new(&results.study.axes[x].label, Extent::Data);
            if panel.logarithmic_x {
                right.spacing = Spacing::Logarithmic;
            }
            let mut curves = chart.curves(x);
            curves.extend(chart.published(x));
            (right, values(), Plot::Points(curves))
        }
        Sort::OverTime => {
            let time = Axis::new("Time (s)", Extent::FromZero);
            let values = along(Extent::FromZero);
            (time, values, Plot::Lines(chart.over_time()))
        }
        Sort::Distribution => {
            let extent = if panel.logarithmic {
                Extent::Data
            } else {
                Extent::FromZero
            };
            let share = panel.share.as_deref().unwrap_or("CDF");
            let share = Axis::new(share, Extent::Unit);
            (along(extent), share, Plot::Lines(chart.distributions()))
        }
        Sort::Rows => (values(), nothing(), Plot::Rows(chart.rows())),
        Sort::Heat => (along(Extent::Data), nothing(), Plot::Heat(chart.heat())),
    };
    let title = panel.title.clone();
    Some(Panel { title, x, y, plot })
}

/// A panel in the making.
struct Chart<'a> {
    panel: &'a PanelConfig,
    results: &'a Results<'a>,
    view: View,
}

impl Chart<'_> {
    /// The label of the values.
    fn label(&self) -> String {
        let metric = self.panel.metric.as_ref();
        match (&self.panel.y, &self.panel.normalise, metric) {
            (Some(y), _, _) => y.clone(),
            (None, Some(to), Some(of)) => format!("{} / that of {}", of.name, shown(to)),
            (None, None, Some(of)) if !of.metric.unit().is_empty() => {
                format!("{} ({})", of.name, of.metric.unit())
            }
            (None, None, Some(of)) => of.name.clone(),
            (None, _, None) => String::new(),
        }
    }

    /// The points of the axis of curves with their labels, or one without where there is no such
    /// axis.
    fn points(&self) -> Vec<(usize, &str)> {
        if let Some(curves) = self.view.curves {
            let points = self.results.study.axes[curves].points.iter();
            return points.map(|point| &*point.label).enumerate().collect();
        }
        let name = self.panel.metric.as_ref().map(|metric| &*metric.name);
        vec![(0, name.unwrap_or_default())]
    }

    fn interval(&self, metric: &Metric, x: usize, curve: usize) -> Option<Interval> {
        let study = self.results.study;
        let of = self.view.combination(study, x, curve)?;
        let to = match self.panel.normalise.as_ref().zip(self.view.curves) {
            Some((to, curves)) => {
                let to = study.axes[curves].find(&shown(to))?;
                Some(self.view.combination(study, x, to)?)
            }
            None => None,
        };
        self.results.interval(metric, of, to)
    }

    /// A metric along an axis: a curve for each point of the others, or one for each metric.
    fn curves(&self, x: usize) -> Vec<Curve> {
        let axis = &self.results.study.axes[x];
        let curve = |style: usize, label: &str, metric: &Metric, curve: usize| {
            let points = (0..axis.points.len()).filter_map(|point| {
                let interval = self.interval(metric, point, curve)?;
                Some(Point::of(axis.x(point)?, interval))
            });
            Curve {
                origin: Origin::Simulated,
                label: label.to_owned(),
                style,
                points: points.collect(),
            }
        };
        let Some(metric) = &self.panel.metric else {
            let curves = self.panel.curve.iter().enumerate();
            return curves
                .map(|(index, CurveConfig { label, metric })| {
                    curve(OTHER_CURVES + index, label, &metric.metric, 0)
                })
                .collect();
        };
        let points = self.points().into_iter();
        points
            .map(|(point, label)| curve(point, label, &metric.metric, point))
            .collect()
    }

    /// The paper's value of a metric at a point of the axis of curves and one of x.
    fn published_at(&self, metric: &Metric, x: Option<f64>, curve: usize) -> Option<f64> {
        let study = self.results.study;
        let axis = self.view.curves.or(study.curves_axis())?;
        let fixed = self.view.fixed(study, axis);
        let point = study.axes[axis].points.get(fixed.unwrap_or(curve))?;
        let normalise = self.panel.normalise.as_ref().map(shown);
        let place = Place {
            metric,
            names: [&point.id, &point.label],
            x,
            normalise: normalise.as_deref(),
        };
        published::value(&study.config.claim, &place)
    }

    /// The paper's values along an axis, by point of the axis of curves or by metric.
    fn published(&self, x: usize) -> Vec<Curve> {
        let axis = &self.results.study.axes[x];
        let curve = |style: usize, metric: &Metric, curve: usize| {
            let points = axis.numbers().filter_map(|number| {
                let value = self.published_at(metric, Some(number), curve)?;
                Some(Point::new(axis.shown(number), value))
            });
            let points: Vec<Point> = points.collect();
            (!points.is_empty()).then(|| Curve {
                origin: Origin::Paper,
                label: "paper".to_owned(),
                style,
                points,
            })
        };
        if let Some(metric) = &self.panel.metric {
            let points = self.points().into_iter();
            points
                .filter_map(|(point, _)| curve(point, &metric.metric, point))
                .collect()
        } else {
            let curves = self.panel.curve.iter().enumerate();
            curves
                .filter_map(|(index, of)| curve(OTHER_CURVES + index, &of.metric.metric, 0))
                .collect()
        }
    }

    fn rows(&self) -> Vec<Row> {
        let metric = self.panel.metric.as_ref();
        let study = self.results.study;
        let x = study.x_axis().filter(|x| self.view.curves != Some(*x));
        let x = x.map(|x| {
            let point = self.view.fixed(study, x).unwrap_or(0);
            study.axes[x].points.get(point).and_then(|one| one.number)
        });
        let row = |(point, label): (usize, &str)| {
            let metric = &metric?.metric;
            let interval = self.interval(metric, 0, point)?;
            let mut row = Row::of(label, interval);
            row.paper = self.published_at(metric, x.flatten(), point);
            Some(row)
        };
        self.points().into_iter().filter_map(row).collect()
    }

    /// The run with the first seed at a point of the axis of curves.
    fn first_run(&self, point: usize) -> Option<&Measured> {
        let combination = self.view.combination(self.results.study, 0, point)?;
        self.results.runs(combination).first()?.as_deref()
    }

    /// The run with the first seed: goodput and latencies at one point, or the latencies that
    /// `metric` is of at each.
    fn over_time(&self) -> Vec<Curve> {
        let metric = self.panel.metric.as_ref().map(|metric| &metric.metric);
        if let Some((operation, _)) = metric.and_then(Metric::latency) {
            let curve = |(style, label): (usize, &str)| {
                let run = self.first_run(style)?;
                Some(Curve {
                    origin: Origin::Simulated,
                    label: label.to_owned(),
                    style,
                    points: longest_over_time(&done(&*run.record()?, operation)?),
                })
            };
            return self.points().into_iter().filter_map(curve).collect();
        }
        let Some(run) = self.first_run(0) else {
            return Vec::new();
        };
        let goodput = |queue: Option<u64>| {
            let samples = goodput(run, queue).unwrap_or_default();
            let point = |(time, mbps): (Time, f64)| Point::new(time.as_secs_f64(), mbps);
            samples.into_iter().map(point).collect()
        };
        let latency = |operation: &Operation, statistic: Statistic| {
            let record = run.record()?;
            let windows = latencies_by_window(&record, operation, LATENCY_WINDOW)?;
            let points = windows.iter().filter_map(|(at_s, us)| {
                let value = statistic.of(us, PercentileRule::NearestRank)?;
                Some(Point::new(*at_s, value))
            });
            Some(points.collect())
        };
        let curve = |(index, spec): (usize, &CurveConfig)| Curve {
            origin: Origin::Simulated,
            label: spec.label.clone(),
            style: OTHER_CURVES + index,
            points: match spec.metric.metric.latency() {
                Some((operation, statistic)) => latency(operation, statistic).unwrap_or_default(),
                None if spec.metric.metric.is_goodput() => {
                    goodput(spec.metric.metric.queue_number())
                }
                None => Vec::new(),
            },
        };
        self.panel.curve.iter().enumerate().map(curve).collect()
    }

    /// Lengths of a queue or latencies of an operation if the metric is one, else RTTs of pings: those
    /// of all seeds together, by point.
    fn distributions(&self) -> Vec<Curve> {
        let metric = self.panel.metric.as_ref().map(|metric| &metric.metric);
        let port = metric.and_then(Metric::queue);
        let operation = metric.and_then(Metric::latency);
        let values = |run: &Measured| match (port, operation) {
            (Some(port), _) => {
                let record = run.record();
                record.and_then(|record| queue_kb(&record, port))
            }
            (_, Some((operation, _))) => {
                let record = run.record();
                record.and_then(|record| latencies_us(&record, operation))
            }
            _ => rtts_us(run),
        };
        let curve = |(style, label): (usize, &str)| {
            let combination = self.view.combination(self.results.study, 0, style);
            let runs = combination.map_or(&[][..], |of| self.results.runs(of));
            let runs = runs.iter().flatten();
            let mut values: Vec<f64> = runs.filter_map(|run| values(run)).flatten().collect();
            values.sort_unstable_by(f64::total_cmp);
            Curve {
                origin: Origin::Simulated,
                label: label.to_owned(),
                style,
                points: cumulative(&values, STEPS),
            }
        };
        self.points().into_iter().map(curve).collect()
    }

    fn heat(&self) -> Heat {
        let (mut columns, mut rows): (Vec<String>, Vec<HeatRow>) = (Vec::new(), Vec::new());
        let cells: Vec<(String, String, f64)> = self
            .rows()
            .into_iter()
            .map(|row| {
                let (column, label) = row.label.split_once(", ").unwrap_or((&row.label, ""));
                (column.to_owned(), label.to_owned(), row.value)
            })
            .collect();
        for (column, _, _) in &cells {
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
        for (column, label, value) in cells {
            let place = columns.iter().position(|known| *known == column);
            let known = rows.iter().position(|row| row.label == label);
            let row = known.unwrap_or_else(|| {
                let values = vec![f64::NAN; columns.len()];
                rows.push(HeatRow { label, values });
                rows.len() - 1
            });
            if let Some(place) = place {
                rows[row].values[place] = value;
            }
        }
        Heat {
            columns,
            rows,
            neutral: self.panel.normalise.as_ref().map(|_| 1.0),
            label: String::new(),
        }
    }
}

/// The cumulative distribution of sorted values, in the first of [`STEPS`] steps.
pub(crate) fn cumulative(sorted: &[f64], last: usize) -> Vec<Point> {
    let step = |step: usize| {
        let index = sorted.len().saturating_sub(1) * step / STEPS;
        Some(Point::new(*sorted.get(index)?, step as f64 / STEPS as f64))
    };
    (0..=last).filter_map(step).collect()
}

/// The longest latency in each of [`STEPS`] parts of the time, in us by seconds.
fn longest_over_time(done: &[(Time, Time)]) -> Vec<Point> {
    let end = done.iter().map(|(start, _)| start.ps()).max();
    let width = end.unwrap_or_default() / STEPS as u64 + 1;
    let mut longest: BTreeMap<u64, (Time, Time)> = BTreeMap::new();
    for &(start, latency) in done {
        let of_part = longest.entry(start.ps() / width).or_default();
        if latency >= of_part.1 {
            *of_part = (start, latency);
        }
    }
    let point = |(start, latency): (Time, Time)| {
        Point::new(start.as_secs_f64(), latency.as_secs_f64() * 1e6)
    };
    longest.into_values().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_time_shows_its_longest_latency() {
        let done = (0..1_000).map(|ms| (Time::from_ms(ms), Time::from_us(ms % 5 + 1)));
        let points = longest_over_time(&done.collect::<Vec<_>>());
        assert_eq!(points.len(), STEPS);
        assert!(points.iter().all(|point| point.y == 5.0));
        assert!((points[0].x - 0.004).abs() < 1e-9);
    }
}
