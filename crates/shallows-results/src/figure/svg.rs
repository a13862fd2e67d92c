//! A figure as SVG: its panels, its legend and the words around them.

use std::fmt::Write as _;

use super::curves::{draw_diagonal, draw_dots, draw_lines, draw_points};
use super::frame::{draw_axes, frame, heat_left};
use super::legend::{self, full_size};
use super::rows::{draw_boxes, draw_rows};
use super::style::file_style;
use super::words::{describe, escape, text_width};
use super::{Figure, Panel, Plot, Words, heat};

const LEGEND: f64 = 26.0;
/// The line above a figure without a page, and the one below.
const TITLE: f64 = 28.0;
const NOTE: f64 = 20.0;

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
    let key = room(LEGEND, figure.legend().len() > 1 && !own);
    let note = room(NOTE, !words.note.is_empty());
    let width = panels
        .fold(0.0, f64::max)
        .max(if own { 0.0 } else { legend::width(figure) })
        .max(16.0 + text_width(&words.title) * 1.4)
        .max(16.0 + text_width(&words.note));
    let heights: Vec<f64> = rows
        .iter()
        .map(|row| row.iter().map(|size| size.1).fold(0.0, f64::max))
        .collect();
    let height = title + key + heights.iter().sum::<f64>() + note;
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
    if key > 0.0 {
        let left = (width - legend::width(figure)) / 2.0;
        let _ = write!(
            out,
            "<g transform=\"translate({left:.1} {title:.0})\">{}</g>",
            legend::items(figure)
        );
    }
    let mut top = title + key;
    let mut panels = figure.panels.iter().zip(&sizes);
    for (row, height) in rows.iter().zip(&heights) {
        let mut left = (width - row.iter().map(|size| size.0).sum::<f64>()) / 2.0;
        for (panel, size) in panels.by_ref().take(row.len()) {
            let _ = write!(out, "<g transform=\"translate({left:.1} {top:.1})\">");
            draw(panel, &mut out);
            if own {
                legend::draw_own(figure, panel, &mut out);
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
        legend::draw_own(figure, panel, &mut out);
    }
    out + "</svg>"
}

fn open(name: &str, alt: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fig\" role=\"img\" \
         aria-labelledby=\"{name}-alt\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\"><title id=\"{name}-alt\">{}</title>",
        escape(alt)
    )
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
        Plot::Points(curves) => draw_points(curves, &frame, out),
        Plot::Lines(curves) => draw_lines(curves, &frame, out),
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
