//! The figures of a study, with words around each.

use std::collections::BTreeMap;

use shallows_results::figure::{Figure, Width, Words};

use super::results::Shown;
use crate::study::axis::Axis;
use crate::study::chart;
use crate::study::config::{NamedMetric, PanelConfig};

/// Ratio of the largest to the least value above which an axis does not begin at zero.
const WIDE: f64 = 50.0;

/// Panels of a figure that the study does not describe.
const USUAL_PANELS: usize = 3;

impl Shown<'_> {
    /// The figures that the study asks for, or else one of what it shows, with words around each.
    pub(super) fn figures(&self) -> Vec<(Figure, Words)> {
        let config = &self.study.config;
        let mut figures = Vec::new();
        if !config.panel.is_empty() {
            figures.push(self.figure(&self.study.name, "", &config.panel));
        }
        let named = config.figure.iter();
        figures.extend(named.map(|of| self.figure(&of.name, &of.title, &of.panel)));
        if figures.is_empty() {
            let panels = self.usual_panels();
            if !panels.is_empty() {
                figures.push(self.figure(&self.study.name, "", &panels));
            }
        }
        figures
    }

    fn figure(&self, name: &str, title: &str, panels: &[PanelConfig]) -> (Figure, Words) {
        let title = if title.is_empty() {
            &self.study.config.title
        } else {
            title
        };
        let seeds = self.study.seeds.len();
        let note = match seeds {
            1 => "One run a point.".to_owned(),
            _ => format!("Means over {seeds} seeds. Bars are 95% confidence intervals."),
        };
        let alt = if title.is_empty() {
            note.clone()
        } else {
            format!("{title}. {note}")
        };
        let words = Words {
            title: title.to_owned(),
            note,
            width: Width::default(),
        };
        let figure = chart::figure(name.to_owned(), alt, panels, &self.results);
        (figure, words)
    }

    /// The first numeric axis to the right, the first other one as curves; the first points of the
    /// others.
    fn usual_panels(&self) -> Vec<PanelConfig> {
        let axes = &self.study.axes;
        let varied = |axis: &&Axis| axis.points.len() > 1;
        let x = axes.iter().filter(varied).find(|axis| axis.is_numeric());
        let is_other = |axis: &&Axis| x.is_none_or(|x| x.name != axis.name);
        let curves = axes.iter().filter(varied).find(is_other);
        if x.is_none() && curves.is_none() {
            return Vec::new();
        }
        let name = |axis: Option<&Axis>| axis.map(|axis| axis.name.clone());
        let is_shown = |axis: &&Axis| [x, curves].iter().flatten().any(|of| of.name == axis.name);
        let others = axes.iter().filter(|axis| !is_shown(axis));
        let at = others.map(|axis| {
            let first = axis.points[0].id.clone();
            (axis.name.clone(), toml::Value::String(first))
        });
        let at: BTreeMap<String, toml::Value> = at.collect();
        let shown = self.shown.iter().take(USUAL_PANELS);
        let panel = |metric: &NamedMetric, values: &[Option<f64>]| PanelConfig {
            title: metric.name.clone(),
            metric: Some(metric.clone()),
            x: name(x),
            curves: name(curves),
            at: at.clone(),
            from_zero: !span_decades(values),
            ..PanelConfig::default()
        };
        shown.map(|(of, values)| panel(of, values)).collect()
    }
}

/// Returns whether values are too far apart for an axis from zero.
fn span_decades(values: &[Option<f64>]) -> bool {
    let values = || values.iter().flatten().copied();
    let least = values().fold(f64::INFINITY, f64::min);
    least > 0.0 && values().fold(0.0, f64::max) > WIDE * least
}
