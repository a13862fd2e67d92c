//! Figures of a study, with 95% confidence intervals over its seeds as bars.

use shallows_results::figure::{
    Axis as FigureAxis, Curve, Extent, Figure, Panel, Plot, Point, Row, Width, Words,
};
use shallows_results::interval::Interval;

use super::axis::Axis;
use super::config::{PanelConfig, shown};
use super::results::Results;

/// Panels of a figure that the study does not describe.
const USUAL_PANELS: usize = 3;

impl Results<'_> {
    /// The figures that the study asks for, or else one of what it shows, with words around each.
    pub(super) fn figures(&self) -> Vec<(Figure, Words)> {
        if self.study.figures.is_empty() {
            return self.usual_figure().into_iter().collect();
        }
        let figures = self.study.figures.iter();
        figures
            .map(|figure| {
                let panels = figure.panel.iter().map(|panel| self.panel(panel));
                self.figure(figure.name.clone(), &figure.title, panels.collect())
            })
            .collect()
    }

    fn figure(&self, name: String, title: &str, panels: Vec<Panel>) -> (Figure, Words) {
        let title = if title.is_empty() {
            &self.study.title
        } else {
            title
        };
        let seeds = self.study.seeds.len();
        let note = match seeds {
            1 => "One run a point.".to_owned(),
            _ => format!("Means over {seeds} seeds. Bars are 95% confidence intervals."),
        };
        let figure = Figure {
            name,
            alt: if title.is_empty() {
                note.clone()
            } else {
                format!("{title}. {note}")
            },
            panels,
        };
        let title = title.to_owned();
        let words = Words {
            title,
            note,
            width: Width::default(),
        };
        (figure, words)
    }

    /// The first numeric axis to the right, the first other one as curves.
    fn usual_figure(&self) -> Option<(Figure, Words)> {
        let axes = &self.study.axes;
        let varied = |axis: &&Axis| axis.points.len() > 1;
        let x = axes.iter().filter(varied).find(|axis| axis.is_numeric());
        let is_other = |axis: &&Axis| x.is_none_or(|x| x.name != axis.name);
        let curves = axes.iter().filter(varied).find(is_other);
        if x.is_none() && curves.is_none() {
            return None;
        }
        let name = |axis: Option<&Axis>| axis.map(|axis| axis.name.clone());
        let shown = self.shown.iter().take(USUAL_PANELS);
        let panels = shown.map(|(metric, _)| {
            self.panel(&PanelConfig {
                title: metric.name.clone(),
                metric: metric.clone(),
                x: name(x),
                curves: name(curves),
                at: std::collections::BTreeMap::new(),
                normalise: None,
                y: None,
                from_zero: true,
                logarithmic: false,
            })
        });
        let panels: Vec<Panel> = panels.collect();
        (!panels.is_empty()).then(|| self.figure(self.study.name.clone(), "", panels))
    }

    fn panel(&self, panel: &PanelConfig) -> Panel {
        let axis = |name: &Option<String>| {
            let axes = self.study.axes.iter();
            name.as_ref()
                .and_then(|name| axes.clone().position(|axis| axis.name == *name))
        };
        let (x, curves) = (axis(&panel.x), axis(&panel.curves));
        let extent = match panel {
            PanelConfig {
                normalise: Some(_), ..
            } => Extent::Reference(1.0),
            PanelConfig {
                from_zero: true, ..
            } => Extent::FromZero,
            _ => Extent::Data,
        };
        let values = self.values(&panel.metric.metric);
        let place = Place {
            results: self,
            panel,
            values,
            x,
            curves,
        };
        let unit = panel.metric.metric.unit();
        let label = match (&panel.y, &panel.normalise) {
            (Some(y), _) => y.clone(),
            (None, Some(to)) => format!("{} / that of {}", panel.metric.name, shown(to)),
            (None, None) if unit.is_empty() => panel.metric.name.clone(),
            (None, None) => format!("{} ({unit})", panel.metric.name),
        };
        let value_axis = FigureAxis::new(label, extent);
        let title = panel.title.clone();
        let Some(x) = x else {
            return Panel {
                title,
                x: value_axis,
                y: FigureAxis::new("", Extent::Data),
                plot: Plot::Rows(place.rows()),
            };
        };
        let along = FigureAxis::new(&self.study.axes[x].label, Extent::Data);
        Panel {
            title,
            x: if panel.logarithmic {
                along.logarithmic()
            } else {
                along
            },
            y: value_axis,
            plot: Plot::Points(place.curves(x)),
        }
    }
}

/// A panel's place among the axes.
struct Place<'r> {
    results: &'r Results<'r>,
    panel: &'r PanelConfig,
    values: Vec<Option<f64>>,
    x: Option<usize>,
    curves: Option<usize>,
}

impl Place<'_> {
    /// The points of the combination at a point of x and of the curves; others as the panel says.
    fn at(&self, x: usize, curve: usize) -> Vec<usize> {
        let axes = self.results.study.axes.iter().enumerate();
        axes.map(|(index, axis)| match Some(index) {
            of if of == self.x => x,
            of if of == self.curves => curve,
            _ => {
                let value = self.panel.at.get(&axis.name);
                value
                    .and_then(|value| axis.find(&shown(value)))
                    .unwrap_or(0)
            }
        })
        .collect()
    }

    fn interval(&self, x: usize, curve: usize) -> Option<Interval> {
        let study = self.results.study;
        let combination = study.combination(&self.at(x, curve));
        let base = self.panel.normalise.as_ref().zip(self.curves);
        match base {
            Some((to, curves)) => {
                let to = study.axes[curves].find(&shown(to))?;
                let to = study.combination(&self.at(x, to));
                self.results.ratio(&self.values, combination, to)
            }
            None => self.results.mean(&self.values, combination),
        }
    }

    fn curves(&self, x: usize) -> Vec<Curve> {
        let axes = &self.results.study.axes;
        let labels: Vec<String> = match self.curves {
            Some(curves) => axes[curves]
                .points
                .iter()
                .map(|point| point.label.clone())
                .collect(),
            None => vec![self.panel.metric.name.clone()],
        };
        let curve = |(style, label): (usize, String)| {
            let points = (0..axes[x].points.len()).filter_map(|point| {
                let Interval {
                    mean, low, high, ..
                } = self.interval(point, style)?;
                let x = axes[x].x(point)?;
                Some(Point {
                    x,
                    y: mean,
                    low,
                    high,
                })
            });
            Curve {
                label,
                style,
                points: points.collect(),
            }
        };
        labels.into_iter().enumerate().map(curve).collect()
    }

    fn rows(&self) -> Vec<Row> {
        let Some(curves) = self.curves else {
            return Vec::new();
        };
        let points = self.results.study.axes[curves].points.iter().enumerate();
        points
            .filter_map(|(index, point)| {
                let Interval {
                    mean, low, high, ..
                } = self.interval(0, index)?;
                let label = point.label.clone();
                Some(Row {
                    label,
                    value: mean,
                    low,
                    high,
                })
            })
            .collect()
    }
}
