//! Plots with one value or distribution a row.

use std::fmt::Write as _;

use super::svg::{Frame, VALUES, escape, mark, short};
use super::{BoxRow, Row, Spacing};

/// A row beyond so many times the median is off the scale, or it would squeeze the others.
const OFF_SCALE: f64 = 2.0;

/// Writes the label and the value of a row; where its middle is.
fn draw_row_texts(index: usize, label: &str, value: f64, frame: &Frame, out: &mut String) -> f64 {
    let y = frame.y(index as f64 + 0.5);
    let (label, value) = (escape(label), short(value));
    let _ = write!(
        out,
        "<text x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{label}</text>\
         <text class=\"tick\" x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{value}</text>",
        frame.left - 6.0,
        frame.right() + VALUES,
        base = y + 3.8,
    );
    y
}

/// Boxes from the lower to the upper quartile with the median, whiskers from percentile 1 to 99.
pub(super) fn draw_boxes(rows: &[BoxRow], frame: &Frame, out: &mut String) {
    for (index, row) in rows.iter().enumerate() {
        let y = draw_row_texts(index, &row.label, row.p50, frame, out);
        let [p1, p25, p50, p75, p99] =
            [row.p1, row.p25, row.p50, row.p75, row.p99].map(|value| frame.x(value));
        let (top, middle) = (y - 5.5, y - 3.0);
        let _ = write!(
            out,
            "<path class=\"bar c0\" d=\"M{p1:.2} {y:.2}H{p25:.2}M{p75:.2} {y:.2}H{p99:.2}\
             M{p1:.2} {middle:.2}v6M{p99:.2} {middle:.2}v6\
             M{p25:.2} {top:.2}H{p75:.2}v11H{p25:.2}Z\"/>\
             <path class=\"curve c1\" d=\"M{p50:.2} {top:.2}v11\"/>"
        );
    }
}

pub(super) fn draw_rows(rows: &[Row], spacing: Spacing, frame: &Frame, out: &mut String) {
    let most = off_scale(rows, spacing);
    for (index, row) in rows.iter().enumerate() {
        let y = draw_row_texts(index, &row.label, row.value, frame, out);
        if row.value > most {
            let x = frame.right() - 9.0;
            let arrow = format!("M{x:.1} {:.1}l8 3.5l-8 3.5Z", y - 3.5);
            let _ = write!(out, "<path class=\"mark m0\" d=\"{arrow}\"/>");
            continue;
        }
        let (low, high) = (frame.x(row.low), frame.x(row.high.min(most)));
        if low < high {
            let _ = write!(
                out,
                "<path class=\"bar c0\" d=\"M{low:.2} {y:.2}H{high:.2}M{low:.2} {:.2}v6M{high:.2} \
                 {:.2}v6\"/>",
                y - 3.0,
                y - 3.0
            );
        }
        *out += &mark(0, frame.x(row.value), y);
    }
}

/// Rows above this are off the scale, unless it has room for all ratios.
pub(super) fn off_scale(rows: &[Row], spacing: Spacing) -> f64 {
    if spacing == Spacing::Logarithmic {
        return f64::INFINITY;
    }
    let mut values: Vec<f64> = rows.iter().map(|row| row.value).collect();
    values.sort_unstable_by(f64::total_cmp);
    let median = values.get(values.len() / 2);
    median.map_or(f64::INFINITY, |median| OFF_SCALE * median)
}
