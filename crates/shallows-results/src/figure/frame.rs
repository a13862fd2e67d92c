//! The area of a panel's data, and its axes.

use std::fmt::Write as _;

use super::heat::BELOW;
use super::rows::row_spacing;
use super::scale::AxisScale;
use super::words::{escape, text_width};
use super::{Axis, Extent, Heat, Panel, Plot, Spacing};

const WIDTH: f64 = 262.0;
const HEIGHT: f64 = 226.0;
pub(super) const TOP: f64 = 26.0;
const BOTTOM: f64 = 42.0;
const RIGHT: f64 = 14.0;
/// A row of a panel of rows.
const ROW: f64 = 21.0;
/// The values beside the rows.
pub(super) const VALUES: f64 = 40.0;
/// Ratio of the largest to the least value of curves above which their axis becomes logarithmic.
const WIDE: f64 = 50.0;

/// Width and height of a panel. Its title and the labels of its axes fit into it.
pub(super) fn size(panel: &Panel) -> (f64, f64) {
    // Titles are bold and a little larger, and centred over the data.
    let title = 1.2 * text_width(&panel.title);
    let label = text_width(&x_label(panel));
    let texts = title.max(label);
    if let Plot::Heat(heat) = &panel.plot {
        let (width, height) = heat.cells();
        let width = width.max(texts);
        return (heat_left(heat) + width + RIGHT, TOP + height + BELOW);
    }
    match row_labels(&panel.plot) {
        Some(labels) => {
            let height = TOP + ROW * labels.len() as f64 + BOTTOM;
            let labels = widest(&labels);
            let least = labels + texts + VALUES + RIGHT;
            ((WIDTH + labels + VALUES - 60.0).max(least), height)
        }
        None => (WIDTH.max(texts + 56.0), HEIGHT),
    }
}

/// The label below a panel. Where rows have the paper's values, it says so.
fn x_label(panel: &Panel) -> String {
    let label = &panel.x.label;
    match &panel.plot {
        Plot::Rows(rows) if rows.iter().any(|row| row.paper.is_some()) => {
            format!("{label}; \u{d7} paper")
        }
        _ => label.clone(),
    }
}

/// Left edge of the cells of a grid.
pub(super) fn heat_left(heat: &Heat) -> f64 {
    let labels: Vec<&str> = heat.rows.iter().map(|row| row.label.as_str()).collect();
    widest(&labels) + 14.0
}

/// The labels at the left of a plot of rows.
fn row_labels(plot: &Plot) -> Option<Vec<&str>> {
    match plot {
        Plot::Rows(rows) => Some(rows.iter().map(|row| row.label.as_str()).collect()),
        Plot::Boxes(rows) => Some(rows.iter().map(|row| row.label.as_str()).collect()),
        Plot::Points(_) | Plot::Lines(_) | Plot::Scatter(_) | Plot::Heat(_) => None,
    }
}

fn widest(labels: &[&str]) -> f64 {
    labels
        .iter()
        .map(|label| text_width(label))
        .fold(0.0, f64::max)
}

/// Area of the data.
pub(super) struct Frame {
    pub(super) x: AxisScale,
    pub(super) y: AxisScale,
    pub(super) left: f64,
    pub(super) width: f64,
    height: f64,
}

impl Frame {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.width * self.x.position(value)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        TOP + self.height * (1.0 - self.y.position(value))
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    fn bottom(&self) -> f64 {
        TOP + self.height
    }
}

pub(super) fn frame(panel: &Panel) -> Frame {
    let points = || panel.curves().iter().flat_map(|curve| &curve.points);
    let xs = || points().map(|point| point.x);
    let x = match &panel.plot {
        Plot::Rows(rows) => {
            let spacing = row_spacing(rows, &panel.x);
            let axis = Axis {
                spacing,
                ..panel.x.clone()
            };
            let ends = rows.iter().flat_map(|row| [row.low, row.high]);
            let papers = rows.iter().filter_map(|row| row.paper);
            value_scale(&axis, ends.chain(papers), 4)
        }
        Plot::Boxes(rows) => {
            value_scale(&panel.x, rows.iter().flat_map(|row| [row.p1, row.p99]), 4)
        }
        _ if panel.x.spacing == Spacing::Logarithmic => {
            AxisScale::logarithmic(xs(), panel.x.extent)
        }
        Plot::Points(_) => AxisScale::measured(xs()),
        Plot::Lines(_) | Plot::Scatter(_) | Plot::Heat(_) => {
            AxisScale::tight(xs(), panel.x.extent, 5)
        }
    };
    let labels = row_labels(&panel.plot);
    let (y, height) = if let Some(labels) = &labels {
        let rows = AxisScale {
            low: labels.len() as f64,
            high: 0.0,
            spacing: Spacing::Linear,
            ticks: Vec::new(),
        };
        (rows, ROW * labels.len() as f64)
    } else {
        // The interval of a count may reach below zero, but no count does.
        let is_never_negative = points().all(|point| point.y >= 0.0);
        let floor = if is_never_negative {
            0.0
        } else {
            f64::NEG_INFINITY
        };
        let values = points().flat_map(|point| [point.low.max(floor), point.high]);
        let axis = Axis {
            spacing: spacing(panel),
            ..panel.y.clone()
        };
        (value_scale(&axis, values, 5), HEIGHT - TOP - BOTTOM)
    };
    let ticks = y.ticks.iter().map(|(_, text)| text_width(text));
    let (left, right) = match &labels {
        Some(labels) => (widest(labels) + 14.0, VALUES + RIGHT),
        None => (ticks.fold(0.0, f64::max) + 27.0, RIGHT),
    };
    let (width, _) = size(panel);
    Frame {
        x,
        y,
        left,
        width: width - left - right,
        height,
    }
}

/// Spacing of the values of curves: logarithmic if asked for, or if the largest would squeeze the
/// others against zero.
fn spacing(panel: &Panel) -> Spacing {
    let is_points = matches!(panel.plot, Plot::Points(_));
    let points = || panel.curves().iter().flat_map(|curve| &curve.points);
    let least = points()
        .map(|point| point.low)
        .fold(f64::INFINITY, f64::min);
    let most = points().map(|point| point.y).fold(0.0, f64::max);
    match panel.y.extent {
        Extent::Data if is_points && least > 0.0 && most > WIDE * least => Spacing::Logarithmic,
        _ => panel.y.spacing,
    }
}

/// The scale of an axis of measured values.
fn value_scale(axis: &Axis, values: impl Iterator<Item = f64>, count: usize) -> AxisScale {
    match axis.spacing {
        Spacing::Linear => AxisScale::round(values, axis.extent, count),
        Spacing::Logarithmic => AxisScale::logarithmic(values, axis.extent),
    }
}

pub(super) fn draw_axes(panel: &Panel, frame: &Frame, out: &mut String) {
    let (left, right, bottom) = (frame.left, frame.right(), frame.bottom());
    for (value, text) in &frame.y.ticks {
        let y = frame.y(*value);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 5.0,
            y + 3.8
        );
    }
    let vertical_grid = matches!(panel.plot, Plot::Rows(_) | Plot::Boxes(_));
    for (value, text) in &frame.x.ticks {
        let x = frame.x(*value);
        if vertical_grid {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom:.1}\"/>"
            );
        }
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{x:.1} {bottom:.1}v4\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            bottom + 15.0
        );
    }
    if let Extent::Reference(value) = panel.y.extent {
        let y = frame.y(value);
        let _ = write!(
            out,
            "<path class=\"reference\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>"
        );
    }
    if let Extent::Reference(value) = panel.x.extent {
        let x = frame.x(value);
        let _ = write!(
            out,
            "<path class=\"reference\" d=\"M{x:.1} {TOP}V{bottom:.1}\"/>"
        );
    }
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{left:.1} {TOP}V{bottom:.1}H{right:.1}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        left + frame.width / 2.0,
        bottom + 33.0,
        escape(&x_label(panel))
    );
    if !panel.y.label.is_empty() {
        let middle = TOP + frame.height / 2.0;
        let _ = write!(
            out,
            "<text transform=\"translate(12 {middle:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            escape(&panel.y.label)
        );
    }
}
