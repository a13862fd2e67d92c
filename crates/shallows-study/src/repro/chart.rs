//! From runs to a figure.

use std::collections::BTreeMap;

use shallows_core::units::Time;
use shallows_results::figure::{
    Axis, Curve, Extent, Figure, Heat, HeatRow, Panel, Plot, Point, Row, Spacing,
};
use shallows_results::latencies::Operation;
use shallows_results::statistics::PercentileRule;

use super::plan::Plan;
use super::results::Results;
use super::spec::{CurveSpec, PanelKind, PanelSpec};
use crate::measured::Measured;
use crate::metric::{Metric, Statistic, queue_kb};
use crate::operations::{done, latencies_by_window, latencies_us};

/// Points of a distribution's curve.
const STEPS: usize = 200;

/// Latencies over time are those of operations that begin within one of these (QJUMP, Figure 5).
const LATENCY_WINDOW: Time = Time::from_ms(1);

/// The first style of curves that are no variants, so that a scheme has the same colour in all
/// figures.
const OTHER_CURVES: usize = 3;

pub(super) fn draw(paper: &str, plan: &Plan, results: &Results) -> Figure {
    let chart = Chart { plan, results };
    let spec = &plan.spec;
    Figure {
        name: format!("{paper}-{}", plan.id),
        alt: match &spec.caption[..] {
            "" => spec.title.clone(),
            caption => format!("{}. {caption}", spec.title),
        },
        panels: spec
            .panel
            .iter()
            .filter(|panel| !(results.are_recorded() && needs_runs(panel)))
            .map(|panel| chart.panel(panel))
            .collect(),
    }
}

/// Returns whether a panel shows more of a run than single values.
fn needs_runs(panel: &PanelSpec) -> bool {
    matches!(panel.kind, PanelKind::OverTime | PanelKind::Distribution)
}

struct Chart<'a> {
    plan: &'a Plan,
    results: &'a Results,
}

impl Chart<'_> {
    fn panel(&self, panel: &PanelSpec) -> Panel {
        let normalised = panel.normalise.is_some();
        let value_extent = match panel.kind {
            PanelKind::Distribution => Extent::Unit,
            _ if normalised => Extent::Reference(1.0),
            PanelKind::OverTime => Extent::FromZero,
            _ if panel.from_zero => Extent::FromZero,
            _ => Extent::Data,
        };
        let (plot, extents) = match panel.kind {
            PanelKind::BySweep => (
                Plot::Points(self.by_sweep(panel)),
                (Extent::Data, value_extent),
            ),
            PanelKind::OverTime => (
                Plot::Lines(self.over_time(panel)),
                (Extent::FromZero, value_extent),
            ),
            PanelKind::Distribution => {
                let values = if panel.logarithmic {
                    Extent::Data
                } else {
                    Extent::FromZero
                };
                (
                    Plot::Lines(self.distributions(panel)),
                    (values, value_extent),
                )
            }
            PanelKind::Rows => (Plot::Rows(self.rows(panel)), (value_extent, Extent::Data)),
            PanelKind::Heat => (Plot::Heat(self.heat(panel)), (Extent::Data, Extent::Data)),
        };
        let sweep = self.plan.spec.x.as_ref().map(|sweep| sweep.label.clone());
        let mut x = Axis::new(panel.x.clone().or(sweep).unwrap_or_default(), extents.0);
        let mut y = Axis::new(panel.y.clone(), extents.1);
        if panel.logarithmic {
            let values = match panel.kind {
                PanelKind::Distribution | PanelKind::Rows => &mut x,
                PanelKind::BySweep | PanelKind::OverTime | PanelKind::Heat => &mut y,
            };
            values.spacing = Spacing::Logarithmic;
        }
        Panel {
            title: panel.title.clone(),
            x,
            y,
            plot,
        }
    }

    fn by_sweep(&self, panel: &PanelSpec) -> Vec<Curve> {
        let scale = match &self.plan.spec.x {
            Some(sweep) if sweep.percent => 100.0,
            _ => 1.0,
        };
        let curve = |style: usize, label: &str, metric: &Metric, variant: &str| {
            let points = self.results.xs().iter().filter_map(|&x| {
                let (y, low, high) = self.spread(metric, variant, panel.normalise.as_deref(), x)?;
                // 0.7 is not exactly 70 hundredths.
                let x = (x * scale * 1e9).round() / 1e9;
                Some(Point { x, y, low, high })
            });
            Curve {
                label: label.to_owned(),
                style,
                points: points.collect(),
            }
        };
        if let Some(variant) = &panel.variant {
            let curves = panel.curves.iter().enumerate();
            return curves
                .map(|(index, CurveSpec { label, metric })| {
                    curve(OTHER_CURVES + index, label, metric, variant)
                })
                .collect();
        }
        let variants = self.plan.spec.variant.iter().enumerate();
        panel.metric.as_ref().map_or_else(Vec::new, |metric| {
            variants
                .map(|(style, variant)| curve(style, &variant.label, metric, &variant.id))
                .collect()
        })
    }

    /// Mean, least and most over the seeds. What is normalised is divided seed by seed: equal seeds
    /// have equal flows.
    fn spread(
        &self,
        metric: &Metric,
        variant: &str,
        normalise: Option<&str>,
        x: f64,
    ) -> Option<(f64, f64, f64)> {
        let mut values: Vec<f64> = self
            .results
            .exact(metric, variant, x)
            .into_iter()
            .collect::<Option<_>>()?;
        if let Some(base) = normalise {
            let base = self.results.exact(metric, base, x);
            for (value, base) in values.iter_mut().zip(base) {
                *value /= base?;
            }
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        mean.is_finite().then_some((mean, low, high))
    }

    /// The run with the first seed: goodput and latencies of one variant, or the latencies that
    /// `metric` is of under each.
    fn over_time(&self, panel: &PanelSpec) -> Vec<Curve> {
        let variant = panel.variant.as_deref().unwrap_or_default();
        let x = panel.at.unwrap_or(self.results.xs()[0]);
        if let Some((operation, _)) = panel.metric.as_ref().and_then(Metric::latency) {
            let variants = self.plan.spec.variant.iter().enumerate();
            let curve = |(style, variant): (usize, &super::spec::Variant)| {
                let run = self.results.runs(&variant.id, x).first()?;
                Some(Curve {
                    label: variant.label.clone(),
                    style,
                    points: longest_over_time(&done(&*run.record()?, operation)?),
                })
            };
            return variants.filter_map(curve).collect();
        }
        let Some(run) = self.results.runs(variant, x).first() else {
            return Vec::new();
        };
        let goodput = |queue: Option<usize>| {
            let samples = run.goodput.iter().filter_map(|sample| {
                let mbps = match queue {
                    Some(queue) => *sample.mbps.get(queue)?,
                    None => sample.mbps.iter().sum(),
                };
                Some(Point::new(sample.at_s, mbps))
            });
            samples.collect()
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
        let curve = |(index, spec): (usize, &CurveSpec)| Curve {
            label: spec.label.clone(),
            style: OTHER_CURVES + index,
            points: match spec.metric.latency() {
                Some((operation, statistic)) => latency(operation, statistic).unwrap_or_default(),
                None if spec.metric.is_goodput() => goodput(spec.metric.queue_number()),
                None => Vec::new(),
            },
        };
        panel.curves.iter().enumerate().map(curve).collect()
    }

    /// Lengths of a queue or latencies of an operation if the metric is one, else RTTs of pings: those
    /// of all seeds together, by variant.
    fn distributions(&self, panel: &PanelSpec) -> Vec<Curve> {
        let spec = &self.plan.spec;
        let x = panel.at.unwrap_or(self.results.xs()[0]);
        let metric = panel.metric.as_ref();
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
            _ => Some(run.rtt_us.clone()),
        };
        let curve = |(style, variant): (usize, &super::spec::Variant)| {
            let runs = self.results.runs(&variant.id, x).iter();
            let mut values: Vec<f64> = runs.filter_map(|run| values(run)).flatten().collect();
            values.sort_unstable_by(f64::total_cmp);
            let step = |step: usize| {
                let index = (values.len().saturating_sub(1) * step) / STEPS;
                let value = values.get(index)?;
                Some(Point::new(*value, step as f64 / STEPS as f64))
            };
            Curve {
                label: variant.label.clone(),
                style,
                points: (0..=STEPS).filter_map(step).collect(),
            }
        };
        spec.variant.iter().enumerate().map(curve).collect()
    }

    fn rows(&self, panel: &PanelSpec) -> Vec<Row> {
        let x = panel.at.unwrap_or(self.results.xs()[0]);
        let variants = self.plan.spec.variant.iter();
        let row = |variant: &super::spec::Variant| {
            let normalise = panel.normalise.as_deref();
            let (value, low, high) =
                self.spread(panel.metric.as_ref()?, &variant.id, normalise, x)?;
            Some(Row {
                label: variant.label.clone(),
                value,
                low,
                high,
            })
        };
        variants.filter_map(row).collect()
    }

    fn heat(&self, panel: &PanelSpec) -> Heat {
        let (mut columns, mut rows): (Vec<String>, Vec<HeatRow>) = (Vec::new(), Vec::new());
        let cells: Vec<(String, String, f64)> = self
            .rows(panel)
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
            neutral: panel.normalise.as_ref().map(|_| 1.0),
            label: String::new(),
        }
    }
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
