//! Curves, their marks and their bars.

use std::fmt::Write as _;

use super::frame::Frame;
use super::style::{LIVE_DASH, class, dash, marker};
use super::{Curve, Origin};

/// The mark of a value: filled if it is simulated, hollow if it is live, a cross if it is the
/// paper's.
pub(super) fn mark(style: usize, origin: Origin, x: f64, y: f64) -> String {
    let class = class(style);
    match origin {
        Origin::Simulated => {
            let (fill, path) = (class.replace('c', "m"), marker(style, x, y));
            format!("<path class=\"mark {fill}\" d=\"{path}\"/>")
        }
        Origin::Live => {
            let path = marker(style, x, y);
            format!("<path class=\"hollow {class}\" d=\"{path}\"/>")
        }
        Origin::Paper => {
            let (left, right, top, bottom) = (x - 4.0, x + 4.0, y - 4.0, y + 4.0);
            format!(
                "<path class=\"curve {class}\" d=\"M{left:.2} {top:.2}L{right:.2} {bottom:.2}\
                 M{left:.2} {bottom:.2}L{right:.2} {top:.2}\"/>"
            )
        }
    }
}

/// Measured points, joined by lines, with bars for their intervals.
pub(super) fn draw_points(curves: &[Curve], frame: &Frame, out: &mut String) {
    let step = dodge(curves, frame);
    let middle = (curves.len() as f64 - 1.0) / 2.0;
    let shift = |index: usize| step * (index as f64 - middle);
    for (index, curve) in curves.iter().enumerate() {
        shifted(shift(index), out, |out| draw_spread(curve, frame, out));
    }
    for (index, curve) in curves.iter().enumerate() {
        shifted(shift(index), out, |out| {
            match curve.origin {
                Origin::Simulated => draw_curve(curve, frame, "", out),
                Origin::Live => draw_curve(curve, frame, LIVE_DASH, out),
                Origin::Paper => {}
            }
            for point in &curve.points {
                let (x, y) = (frame.x(point.x), frame.y(point.y));
                *out += &mark(curve.style, curve.origin, x, y);
            }
        });
    }
}

/// Curves of many points. Where some are live, these are dashed and the others are not.
pub(super) fn draw_lines(curves: &[Curve], frame: &Frame, out: &mut String) {
    let has_live = curves.iter().any(|curve| curve.origin == Origin::Live);
    for curve in curves {
        let dash = match curve.origin {
            Origin::Live => LIVE_DASH,
            _ if has_live => "",
            _ => dash(curve.style),
        };
        draw_curve(curve, frame, dash, out);
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
pub(super) fn draw_dots(curve: &Curve, frame: &Frame, out: &mut String) {
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
pub(super) fn draw_diagonal(frame: &Frame, out: &mut String) {
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
        let least = point.low.max(frame.y.low);
        let (x, low, high) = (frame.x(point.x), frame.y(least), frame.y(point.high));
        let _ = write!(
            out,
            "<path class=\"bar {class}\" d=\"M{x:.2} {low:.2}V{high:.2}M{:.2} {low:.2}h6M{:.2} \
             {high:.2}h6\"/>",
            x - 3.0,
            x - 3.0
        );
    }
}
