//! Drawing.

use std::fmt::Write as _;

use super::heat::{self, BELOW};
use super::rows::{draw_boxes, draw_rows, row_spacing};
use super::scale::AxisScale;
use super::style::{class, dash, file_style, marker};
use super::{Axis, Curve, Extent, Figure, Heat, Panel, Plot, Spacing, Words};

const WIDTH: f64 = 262.0;
const HEIGHT: f64 = 226.0;
pub(super) const TOP: f64 = 26.0;
const BOTTOM: f64 = 42.0;
const RIGHT: f64 = 14.0;
const LEGEND: f64 = 26.0;
/// The line above a figure without a page, and the one below.
const TITLE: f64 = 28.0;
const NOTE: f64 = 20.0;
/// A row of a panel of rows.
const ROW: f64 = 21.0;
/// The values beside the rows.
pub(super) const VALUES: f64 = 40.0;

/// The whole figure.
pub(super) fn document(figure: &Figure, words: &Words) -> String {
    let own = figure.has_own_legends();
    let sizes: Vec<(f64, f64)> = figure
        .panels
        .iter()
        .map(|panel| full_size(panel, own))
        .collect();
    let rows: Vec<&[(f64, f64)]> = sizes.chunks(words.width.panels()).collect();
    let panels = rows
        .iter()
        .map(|row| row.iter().map(|size| size.0).sum::<f64>());
    let room = |height: f64, is_there: bool| if is_there { height } else { 0.0 };
    let title = room(TITLE, !words.title.is_empty());
    let legend = room(LEGEND, figure.legend().len() > 1 && !own);
    let note = room(NOTE, !words.note.is_empty());
    let width = panels
        .fold(0.0, f64::max)
        .max(if own { 0.0 } else { legend_width(figure) })
        .max(16.0 + text_width(&words.title) * 1.4)
        .max(16.0 + text_width(&words.note));
    let heights: Vec<f64> = rows
        .iter()
        .map(|row| row.iter().map(|size| size.1).fold(0.0, f64::max))
        .collect();
    let height = title + legend + heights.iter().sum::<f64>() + note;
    let mut out = open(&figure.name, &figure.alt, width, height);
    let _ = write!(out, "<style>{}</style>", file_style());
    let _ = write!(
        out,
        "<rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>"
    );
    let mut line = |class: &str, y: f64, text: &str| {
        let _ = write!(
            out,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
            width / 2.0,
            escape(text)
        );
    };
    if title > 0.0 {
        line("heading", 20.0, &words.title);
    }
    if note > 0.0 {
        line("tick", height - 8.0, &words.note);
    }
    if legend > 0.0 {
        let left = (width - legend_width(figure)) / 2.0;
        let _ = write!(
            out,
            "<g transform=\"translate({left:.1} {title:.0})\">{}</g>",
            legend_items(figure)
        );
    }
    let mut top = title + legend;
    let mut panels = figure.panels.iter().zip(&sizes);
    for (row, height) in rows.iter().zip(&heights) {
        let mut left = (width - row.iter().map(|size| size.0).sum::<f64>()) / 2.0;
        for (panel, size) in panels.by_ref().take(row.len()) {
            let _ = write!(out, "<g transform=\"translate({left:.1} {top:.1})\">");
            draw(panel, &mut out);
            if own {
                draw_own_legend(figure, panel, &mut out);
            }
            out += "</g>";
            left += size.0;
        }
        top += height;
    }
    out + "</svg>\n"
}

/// One panel for a page.
pub(super) fn inline_panel(figure: &Figure, index: usize, panel: &Panel) -> String {
    let own = figure.has_own_legends();
    let (width, height) = full_size(panel, own);
    let name = format!("{}-{index}", figure.name);
    let mut out = open(&name, &describe(panel), width, height);
    draw(panel, &mut out);
    if own {
        draw_own_legend(figure, panel, &mut out);
    }
    out + "</svg>"
}

/// The legend for a page; empty if there is nothing to tell apart.
pub(super) fn inline_legend(figure: &Figure) -> String {
    let legend = figure.legend();
    if legend.len() < 2 || figure.has_own_legends() {
        return String::new();
    }
    let item = |(label, style): &(&str, usize)| {
        format!(
            "<li><svg class=\"fig\" width=\"30\" height=\"14\" aria-hidden=\"true\">{}</svg>{}</li>",
            key(figure, *style, 0.0, 7.0),
            escape(label)
        )
    };
    let items: String = legend.iter().map(item).collect();
    format!("<ul class=\"legend\">{items}</ul>")
}

fn open(name: &str, alt: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fig\" role=\"img\" \
         aria-labelledby=\"{name}-alt\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\"><title id=\"{name}-alt\">{}</title>",
        escape(alt)
    )
}

/// Describes a panel in words.
fn describe(panel: &Panel) -> String {
    let Panel { title, x, y, .. } = panel;
    let ends = |curve: &Curve| {
        let values = curve.points.iter().map(|point| point.y);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        format!("{} from {} to {}", curve.label, short(low), short(high))
    };
    let parts: Vec<String> = match &panel.plot {
        Plot::Points(curves) | Plot::Lines(curves) | Plot::Scatter(curves) => {
            curves.iter().map(ends).collect()
        }
        Plot::Rows(rows) => rows
            .iter()
            .map(|row| format!("{} {}", row.label, short(row.value)))
            .collect(),
        Plot::Boxes(rows) => rows
            .iter()
            .map(|row| {
                let [p1, p50, p99] = [row.p1, row.p50, row.p99].map(short);
                format!(
                    "{} median {p50}, percentiles 1 and 99 {p1} and {p99}",
                    row.label
                )
            })
            .collect(),
        Plot::Heat(heat) => heat
            .rows
            .iter()
            .map(|row| {
                let most = row.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                format!("{} up to {}", row.label, short(most))
            })
            .collect(),
    };
    format!("{title}. {} by {}: {}.", y.label, x.label, parts.join("; "))
}

/// Three significant digits, with k or M for thousands and millions.
pub(super) fn short(value: f64) -> String {
    let digits = |value: f64| match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        some if some >= 10.0 => format!("{value:.1}"),
        few if few >= 0.1 || few == 0.0 => format!("{value:.2}"),
        fraction if fraction >= 0.0001 => {
            let decimals = 2 - fraction.log10().floor() as i32;
            format!("{value:.*}", decimals as usize)
        }
        _ => format!("{value:.2e}"),
    };
    match value.abs() {
        millions if millions >= 999_500.0 => digits(value / 1e6) + "M",
        thousands if thousands >= 9_999.5 => digits(value / 1e3) + "k",
        _ => digits(value),
    }
}

/// Height of a line of a panel's own legend.
const LEGEND_LINE: f64 = 15.0;

/// The size of a panel with its own legend, if panels have their own.
fn full_size(panel: &Panel, own: bool) -> (f64, f64) {
    let (width, height) = size(panel);
    if !own {
        return (width, height);
    }
    let labels = panel.curves().iter();
    let labels = labels.map(|curve| 68.0 + text_width(&curve.label));
    let lines = panel.curves().len() as f64;
    (labels.fold(width, f64::max), height + LEGEND_LINE * lines)
}

/// The legend of one panel, below it.
fn draw_own_legend(figure: &Figure, panel: &Panel, out: &mut String) {
    let (_, mut y) = size(panel);
    for curve in panel.curves() {
        *out += &key(figure, curve.style, 24.0, y);
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            60.0,
            y + 4.0,
            escape(&curve.label)
        );
        y += LEGEND_LINE;
    }
}

fn size(panel: &Panel) -> (f64, f64) {
    if let Plot::Heat(heat) = &panel.plot {
        let (width, height) = heat.cells();
        return (heat_left(heat) + width + RIGHT, TOP + height + BELOW);
    }
    match row_labels(&panel.plot) {
        Some(labels) => {
            let height = TOP + ROW * labels.len() as f64 + BOTTOM;
            (WIDTH + widest(&labels) + VALUES - 60.0, height)
        }
        None => (WIDTH, HEIGHT),
    }
}

/// Left edge of the cells of a grid.
fn heat_left(heat: &Heat) -> f64 {
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

/// About as wide as the text will be.
fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' => 3.6,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' => 4.5,
        'm' | 'w' | 'M' | 'W' | '=' | '<' | '>' => 9.4,
        'A'..='Z' => 7.8,
        _ => 6.9,
    };
    text.chars().map(width).sum()
}

fn legend_width(figure: &Figure) -> f64 {
    let legend = figure.legend();
    legend.iter().map(|(label, _)| item_width(label)).sum()
}

fn item_width(label: &str) -> f64 {
    36.0 + text_width(label) + 16.0
}

fn legend_items(figure: &Figure) -> String {
    let mut out = String::new();
    let mut left = 8.0;
    for (label, style) in figure.legend() {
        out += &key(figure, style, left, 14.0);
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"18\">{}</text>",
            left + 36.0,
            escape(label)
        );
        left += item_width(label);
    }
    out
}

/// The sample of a curve in a legend.
fn key(figure: &Figure, style: usize, left: f64, y: f64) -> String {
    let marked = figure
        .panels
        .iter()
        .any(|panel| matches!(panel.plot, Plot::Points(_)));
    let plain = figure
        .panels
        .iter()
        .any(|panel| matches!(panel.plot, Plot::Lines(_)));
    let dash = if plain { dash(style) } else { "" };
    let right = left + 28.0;
    let mut out = format!(
        "<path class=\"curve {}\" stroke-dasharray=\"{dash}\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>",
        class(style)
    );
    if marked {
        out += &mark(style, left + 14.0, y);
    }
    out
}

pub(super) fn mark(style: usize, x: f64, y: f64) -> String {
    let fill = class(style).replace('c', "m");
    format!(
        "<path class=\"mark {fill}\" d=\"{}\"/>",
        marker(style, x, y)
    )
}

/// Area of the data.
pub(super) struct Frame {
    x: AxisScale,
    y: AxisScale,
    pub(super) left: f64,
    width: f64,
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

fn draw(panel: &Panel, out: &mut String) {
    if let Plot::Heat(heat) = &panel.plot {
        let left = heat_left(heat);
        let middle = left + heat.cells().0 / 2.0;
        write_title(panel, middle, out);
        return heat::draw(heat, &panel.x.label, left, out);
    }
    let frame = frame(panel);
    let middle = frame.left + frame.width / 2.0;
    write_title(panel, middle, out);
    draw_axes(panel, &frame, out);
    match &panel.plot {
        Plot::Points(curves) => {
            let step = dodge(curves, &frame);
            let middle = (curves.len() as f64 - 1.0) / 2.0;
            let shift = |index: usize| step * (index as f64 - middle);
            for (index, curve) in curves.iter().enumerate() {
                shifted(shift(index), out, |out| draw_spread(curve, &frame, out));
            }
            for (index, curve) in curves.iter().enumerate() {
                shifted(shift(index), out, |out| {
                    draw_curve(curve, &frame, "", out);
                    for point in &curve.points {
                        *out += &mark(curve.style, frame.x(point.x), frame.y(point.y));
                    }
                });
            }
        }
        Plot::Lines(curves) => {
            for curve in curves {
                draw_curve(curve, &frame, dash(curve.style), out);
            }
        }
        Plot::Scatter(curves) => {
            draw_diagonal(&frame, out);
            for curve in curves {
                draw_dots(curve, &frame, out);
            }
        }
        Plot::Rows(rows) => draw_rows(rows, &frame, out),
        Plot::Boxes(rows) => draw_boxes(rows, &frame, out),
        Plot::Heat(_) => {}
    }
}

fn write_title(panel: &Panel, middle: f64, out: &mut String) {
    let _ = write!(
        out,
        "<text class=\"title\" x=\"{middle:.1}\" y=\"16\" text-anchor=\"middle\">{}</text>",
        escape(&panel.title)
    );
}

fn frame(panel: &Panel) -> Frame {
    let points = || panel.curves().iter().flat_map(|curve| &curve.points);
    let xs = || points().map(|point| point.x);
    let x = match &panel.plot {
        Plot::Rows(rows) => {
            let spacing = row_spacing(rows, &panel.x);
            let axis = Axis {
                spacing,
                ..panel.x.clone()
            };
            value_scale(&axis, rows.iter().flat_map(|row| [row.low, row.high]), 4)
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
        let values = points().flat_map(|point| [point.low, point.high]);
        (value_scale(&panel.y, values, 5), HEIGHT - TOP - BOTTOM)
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

/// The scale of an axis of measured values.
fn value_scale(axis: &Axis, values: impl Iterator<Item = f64>, count: usize) -> AxisScale {
    match axis.spacing {
        Spacing::Linear => AxisScale::round(values, axis.extent, count),
        Spacing::Logarithmic => AxisScale::logarithmic(values, axis.extent),
    }
}

fn draw_axes(panel: &Panel, frame: &Frame, out: &mut String) {
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
        escape(&panel.x.label)
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

fn draw_curve(curve: &Curve, frame: &Frame, dash: &str, out: &mut String) {
    let mut path = String::new();
    for (index, point) in curve.points.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(
            path,
            "{command}{:.2} {:.2}",
            frame.x(point.x),
            frame.y(point.y)
        );
    }
    let class = class(curve.style);
    let _ = write!(
        out,
        "<path class=\"curve {class}\" stroke-dasharray=\"{dash}\" d=\"{path}\"/>"
    );
}

/// One path for all dots, because there may be thousands.
fn draw_dots(curve: &Curve, frame: &Frame, out: &mut String) {
    let _ = write!(out, "<path class=\"dots {}\" d=\"", class(curve.style));
    for point in &curve.points {
        let _ = write!(out, "M{:.1} {:.1}h0", frame.x(point.x), frame.y(point.y));
    }
    *out += "\"/>";
}

/// Distance between curves, so that bars at one place do not hide each other: a little, and less
/// where points are close.
fn dodge(curves: &[Curve], frame: &Frame) -> f64 {
    let points = curves.iter().flat_map(|curve| &curve.points);
    if curves.len() < 2 || points.clone().all(|point| point.low >= point.high) {
        return 0.0;
    }
    let mut places: Vec<f64> = points.map(|point| frame.x(point.x)).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let gaps = places.windows(2).map(|pair| pair[1] - pair[0]);
    let gap = gaps.fold(frame.width, f64::min);
    (gap / (2.0 * curves.len() as f64)).min(4.0)
}

/// Draws something to the right of its place.
fn shifted(by: f64, out: &mut String, draw: impl FnOnce(&mut String)) {
    if by == 0.0 {
        return draw(out);
    }
    let _ = write!(out, "<g transform=\"translate({by:.2} 0)\">");
    draw(out);
    *out += "</g>";
}

/// Diagonal on which both measurements are equal.
fn draw_diagonal(frame: &Frame, out: &mut String) {
    let low = frame.x.low.max(frame.y.low);
    let high = frame.x.high.min(frame.y.high);
    if low < high {
        let [x1, x2] = [low, high].map(|value| frame.x(value));
        let [y1, y2] = [low, high].map(|value| frame.y(value));
        let _ = write!(
            out,
            "<path class=\"reference\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>"
        );
    }
}

fn draw_spread(curve: &Curve, frame: &Frame, out: &mut String) {
    let class = class(curve.style);
    for point in curve.points.iter().filter(|point| point.low < point.high) {
        let (x, low, high) = (frame.x(point.x), frame.y(point.low), frame.y(point.high));
        let _ = write!(
            out,
            "<path class=\"bar {class}\" d=\"M{x:.2} {low:.2}V{high:.2}M{:.2} {low:.2}h6M{:.2} \
             {high:.2}h6\"/>",
            x - 3.0,
            x - 3.0
        );
    }
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
