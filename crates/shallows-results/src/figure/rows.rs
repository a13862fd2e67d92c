//! Plots with one value or distribution a row.

use std::fmt::Write as _;

use super::curves::mark;
use super::frame::{Frame, VALUES};
use super::words::{escape, short};
use super::{Axis, BoxRow, Extent, Origin, Row, Spacing};

/// Ratio of the largest to the smallest row above which the axis becomes logarithmic.
const WIDE: f64 = 10.0;

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

pub(super) fn draw_rows(rows: &[Row], frame: &Frame, out: &mut String) {
    for (index, row) in rows.iter().enumerate() {
        let y = draw_row_texts(index, &row.label, row.value, frame, out);
        let (low, high) = (frame.x(row.low), frame.x(row.high));
        if low < high {
            let _ = write!(
                out,
                "<path class=\"bar c0\" d=\"M{low:.2} {y:.2}H{high:.2}M{low:.2} {:.2}v6M{high:.2} \
                 {:.2}v6\"/>",
                y - 3.0,
                y - 3.0
            );
        }
        *out += &mark(0, row.origin, frame.x(row.value), y);
        if let Some(paper) = row.paper {
            *out += &mark(1, Origin::Paper, frame.x(paper), y);
        }
    }
}

/// Spacing of the value axis: logarithmic if asked for, or if a linear axis would squeeze most
/// rows against one end. Every row is drawn at its value.
pub(super) fn row_spacing(rows: &[Row], axis: &Axis) -> Spacing {
    let values = || rows.iter().map(|row| row.value);
    let least = values().fold(f64::INFINITY, f64::min);
    let most = values().fold(0.0, f64::max);
    let is_wide = rows.iter().all(|row| row.low > 0.0) && most > WIDE * least;
    match axis.extent {
        Extent::Data | Extent::Reference(_) if is_wide => Spacing::Logarithmic,
        _ => axis.spacing,
    }
}
