//! Figures: panels of curves, as SVG, PNG and CSV.
//!
//! A [`Figure`] is plain data that says what is to be seen; how it looks is the same for all of
//! them. The colours are those of Okabe and Ito, which colour-blind readers can tell apart, and
//! every curve has a marker or a dash of its own as well.

mod csv;
mod png;
mod scale;
mod style;
mod svg;

use serde::{Deserialize, Serialize};

pub use png::PngError;
pub use style::page_style;

/// Some panels with one legend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of its files, such as `mq-ecn-fig9`.
    pub name: String,
    /// What it shows, for those who do not see it.
    pub alt: String,
    /// Side by side, in this order.
    pub panels: Vec<Panel>,
}

/// One diagram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// Above the diagram.
    pub title: String,
    /// Below it.
    pub x: Axis,
    /// At its left.
    pub y: Axis,
    /// What is drawn.
    pub plot: Plot,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Where it has to begin, or what it has to show at least.
    #[serde(default)]
    pub extent: Extent,
}

/// What an axis shows besides the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Nothing.
    #[default]
    Data,
    /// Zero.
    FromZero,
    /// A value with a line through it, such as 1 where values are normalised.
    Reference(f64),
    /// From 0 to 1.
    Unit,
}

/// What a panel draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// A few measured points a curve, joined by lines, with bars for their spread.
    Points(Vec<Curve>),
    /// Many points a curve, as over time.
    Lines(Vec<Curve>),
    /// One value a row, with a bar for its spread.
    Rows(Vec<Row>),
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// In the legend.
    pub label: String,
    /// Which colour, marker and dash; the same label has the same one in all panels.
    pub style: usize,
    /// In the order in which they are joined.
    pub points: Vec<Point>,
}

/// A value and what it varies between.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The least over the seeds.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Point {
    /// A value without a spread.
    pub fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            low: y,
            high: y,
        }
    }
}

/// A named value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// At its left.
    pub label: String,
    /// The value.
    pub value: f64,
    /// The least over the seeds.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Figure {
    /// The labels of all curves with their styles, each once.
    pub fn legend(&self) -> Vec<(&str, usize)> {
        let mut legend: Vec<(&str, usize)> = Vec::new();
        for curve in self.panels.iter().flat_map(Panel::curves) {
            if legend.iter().all(|(label, _)| *label != curve.label) {
                legend.push((&curve.label, curve.style));
            }
        }
        legend
    }

    /// The figure as a file of its own, for print.
    pub fn to_svg(&self) -> String {
        svg::document(self)
    }

    /// Its panels one by one and its legend, for a page that has [`page_style`].
    pub fn to_inline_svg(&self) -> (Vec<String>, String) {
        let panels = self.panels.iter().enumerate();
        let panels = panels.map(|(index, panel)| svg::inline_panel(self, index, panel));
        (panels.collect(), svg::inline_legend(self))
    }

    /// The figure in pixels, twice as fine as a page shows it.
    pub fn to_png(&self) -> Result<Vec<u8>, PngError> {
        png::render(&self.to_svg())
    }

    /// What it is drawn from: a row for each point.
    pub fn to_csv(&self) -> String {
        csv::write(self)
    }
}

impl Panel {
    /// Its curves, if it has any.
    pub fn curves(&self) -> &[Curve] {
        match &self.plot {
            Plot::Points(curves) | Plot::Lines(curves) => curves,
            Plot::Rows(_) => &[],
        }
    }
}
