//! Legends: one for all panels, or one below each.

use std::fmt::Write as _;

use super::curves::mark;
use super::frame::size;
use super::style::{LIVE_DASH, class, dash};
use super::words::{escape, text_width};
use super::{Curve, Figure, Origin, Panel, Plot};

/// The legend for a page; empty if there is nothing to tell apart.
pub(super) fn inline(figure: &Figure) -> String {
    let legend = figure.legend();
    if legend.len() < 2 || figure.has_own_legends() {
        return String::new();
    }
    let item = |curve: &&Curve| {
        format!(
            "<li><svg class=\"fig\" width=\"30\" height=\"14\" aria-hidden=\"true\">{}</svg>{}</li>",
            key(figure, curve, 0.0, 7.0),
            escape(&curve.label)
        )
    };
    let items: String = legend.iter().map(item).collect();
    format!("<ul class=\"legend\">{items}</ul>")
}

/// The grey style.
const GREY: usize = 6;

/// Height of a line of a panel's own legend.
const LEGEND_LINE: f64 = 15.0;

/// The size of a panel with its own legend, if panels have their own.
pub(super) fn full_size(panel: &Panel, own: bool) -> (f64, f64) {
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
pub(super) fn draw_own(figure: &Figure, panel: &Panel, out: &mut String) {
    let (_, mut y) = size(panel);
    for curve in panel.curves() {
        *out += &key(figure, curve, 24.0, y);
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

pub(super) fn width(figure: &Figure) -> f64 {
    let legend = figure.legend();
    legend.iter().map(|curve| item_width(&curve.label)).sum()
}

fn item_width(label: &str) -> f64 {
    36.0 + text_width(label) + 16.0
}

pub(super) fn items(figure: &Figure) -> String {
    let mut out = String::new();
    let mut left = 8.0;
    for curve in figure.legend() {
        out += &key(figure, curve, left, 14.0);
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"18\">{}</text>",
            left + 36.0,
            escape(&curve.label)
        );
        left += item_width(&curve.label);
    }
    out
}

/// The sample of a curve in a legend.
fn key(figure: &Figure, curve: &Curve, left: f64, y: f64) -> String {
    if curve.origin == Origin::Paper {
        // Its crosses have the colours of our curves.
        return mark(GREY, Origin::Paper, left + 14.0, y);
    }
    let has = |is: fn(&Plot) -> bool| figure.panels.iter().any(|panel| is(&panel.plot));
    let marked = has(|plot| matches!(plot, Plot::Points(_)));
    let plain = has(|plot| matches!(plot, Plot::Lines(_)));
    let style = curve.style;
    let dash = match curve.origin {
        Origin::Live => LIVE_DASH,
        _ if plain && !figure.has_live() => dash(style),
        _ => "",
    };
    let right = left + 28.0;
    let mut out = format!(
        "<path class=\"curve {}\" stroke-dasharray=\"{dash}\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>",
        class(style)
    );
    if marked {
        out += &mark(style, curve.origin, left + 14.0, y);
    }
    out
}
