//! Texts of figures: numbers, descriptions, widths.

use super::{Curve, Panel, Plot};

/// Describes a panel in words.
pub(super) fn describe(panel: &Panel) -> String {
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

/// About as wide as the text will be.
pub(super) fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' => 3.6,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' => 4.5,
        'm' | 'w' | 'M' | 'W' | '=' | '<' | '>' => 9.4,
        'A'..='Z' => 7.8,
        _ => 6.9,
    };
    text.chars().map(width).sum()
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
