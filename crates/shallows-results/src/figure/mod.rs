//! Figures: panels of curves, as SVG, PDF, PNG and CSV.
//!
//! A [`Figure`] is plain data that says what is to be seen; how it looks is the same for all of
//! them. The colours are those of Okabe and Ito, which colour-blind readers can tell apart, and
//! every curve has a marker or a dash of its own as well.
//!
//! The drawing is ours rather than plotters': a panel must look the same in a file, in a page with
//! light and dark colours and in print, and carry a description for screen readers. plotters draws
//! fixed colours, has no box plot with percentile whiskers, and would be one more large dependency
//! for the few hundred lines here.

mod csv;
mod curves;
mod font;
mod frame;
mod heat;
mod legend;
mod pdf;
mod png;
mod rows;
mod scale;
mod shapes;
mod style;
mod svg;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use heat::{Heat, HeatRow};
pub use style::page_style;

use crate::ResultsError;
use crate::interval::Interval;
use crate::{write_bytes, write_text};

/// Some panels with one legend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of its files, such as `mq-ecn-fig9`.
    pub name: String,
    /// Description of the picture, for readers who do not see it.
    pub alt: String,
    /// Side by side, in this order.
    pub panels: Vec<Panel>,
}

/// Words around a figure that is shown without a page; empty ones take no room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// Above the legend.
    pub title: String,
    /// Below the panels, in small print: what bars are, and what was run.
    pub note: String,
    /// Width of the figure.
    pub width: Width,
}

/// Look of figures that a command writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// Width.
    pub width: Width,
    /// True if title and note are left out.
    pub no_title: bool,
}

impl Look {
    /// Words around a figure with this look.
    pub fn applied(self, words: Words) -> Words {
        let Self { width, no_title } = self;
        let words = if no_title { Words::default() } else { words };
        Words { width, ..words }
    }
}

/// Width of a figure in print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Width {
    /// Up to four panels side by side, in the size of a screen.
    #[default]
    Screen,
    /// One column of a paper with two: 3.33 inches, one panel in a row.
    OneColumn,
    /// Both columns: 7 inches, two panels in a row.
    TwoColumns,
}

impl Width {
    /// Width in points, where it is fixed.
    fn points(self) -> Option<f32> {
        match self {
            Self::Screen => None,
            Self::OneColumn => Some(240.0),
            Self::TwoColumns => Some(504.0),
        }
    }

    /// Panels side by side.
    fn panels(self) -> usize {
        match self {
            Self::Screen => 4,
            Self::OneColumn => 1,
            Self::TwoColumns => 2,
        }
    }
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
    /// The drawing.
    pub plot: Plot,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Value at which the axis must begin, or that it must include.
    #[serde(default)]
    pub extent: Extent,
    /// Linear or logarithmic spacing.
    #[serde(default)]
    pub spacing: Spacing,
}

/// Mapping from the values of an axis to positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Equal distances for equal differences.
    #[default]
    Linear,
    /// Equal distances for equal ratios. Values that are not positive stay at the low end.
    Logarithmic,
}

impl Axis {
    /// A linear axis.
    pub fn new(label: impl Into<String>, extent: Extent) -> Self {
        Self {
            label: label.into(),
            extent,
            spacing: Spacing::Linear,
        }
    }

    /// The same axis with logarithmic spacing.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self {
            spacing: Spacing::Logarithmic,
            ..self
        }
    }
}

/// Values that an axis must show besides the data.
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

/// Kind of drawing in a panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// A few measured points a curve, joined by lines, with bars for their spread.
    Points(Vec<Curve>),
    /// Many points a curve, as over time.
    Lines(Vec<Curve>),
    /// Unjoined dots: one measurement against another, with the diagonal where both are equal.
    Scatter(Vec<Curve>),
    /// One value a row, with a bar for its spread.
    Rows(Vec<Row>),
    /// One distribution a row, as a box with whiskers.
    Boxes(Vec<BoxRow>),
    /// A grid of values as shades.
    Heat(Heat),
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// In the legend.
    pub label: String,
    /// Index of colour, marker and dash; the same label has the same one in all panels.
    pub style: usize,
    /// In the order in which they are joined.
    pub points: Vec<Point>,
    /// Origin of its values.
    #[serde(default, skip_serializing_if = "Origin::is_simulated")]
    pub origin: Origin,
}

/// Origin of values. Values of one scheme have one colour, whatever their origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A simulation: a solid line with filled marks.
    #[default]
    Simulated,
    /// A live run: a dashed line with hollow marks.
    Live,
    /// A published paper: crosses.
    Paper,
}

impl Origin {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_simulated(&self) -> bool {
        *self == Self::Simulated
    }
}

/// A value, such as a mean over seeds, and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Position on the x axis.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Point {
    /// A mean with its interval.
    pub fn of(x: f64, interval: Interval) -> Self {
        Self {
            x,
            y: interval.mean,
            low: interval.low,
            high: interval.high,
        }
    }

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
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Origin of the value.
    #[serde(default, skip_serializing_if = "Origin::is_simulated")]
    pub origin: Origin,
    /// The paper's value, if it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<f64>,
}

impl Row {
    /// A mean with its interval.
    pub fn of(label: impl Into<String>, interval: Interval) -> Self {
        Self {
            label: label.into(),
            value: interval.mean,
            low: interval.low,
            high: interval.high,
            origin: Origin::Simulated,
            paper: None,
        }
    }
}

/// A named distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoxRow {
    /// At its left.
    pub label: String,
    /// End of the lower whisker: the first percentile.
    pub p1: f64,
    /// Lower edge of the box.
    pub p25: f64,
    /// The line in the box.
    pub p50: f64,
    /// Upper edge of the box.
    pub p75: f64,
    /// End of the upper whisker.
    pub p99: f64,
}

impl BoxRow {
    /// The distribution of sorted values; nothing if there are none.
    pub fn of_sorted(label: impl Into<String>, sorted: &[f64]) -> Option<Self> {
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| sorted[(share * last as f64).round() as usize];
        Some(Self {
            label: label.into(),
            p1: at(0.01),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p99: at(0.99),
        })
    }
}

impl Figure {
    /// The curves of a legend: the first with each label.
    pub fn legend(&self) -> Vec<&Curve> {
        let mut legend: Vec<&Curve> = Vec::new();
        for curve in self.panels.iter().flat_map(Panel::curves) {
            if legend.iter().all(|of| of.label != curve.label) {
                legend.push(curve);
            }
        }
        legend
    }

    /// Panels have legends of their own where curves of different names look the same.
    fn has_own_legends(&self) -> bool {
        let legend = self.legend();
        let looks = legend.iter().map(|curve| match curve.origin {
            Origin::Simulated => (0, curve.style),
            Origin::Live => (1, curve.style),
            Origin::Paper => (2, 0),
        });
        let looks: BTreeSet<(usize, usize)> = looks.collect();
        self.panels.len() > 1 && looks.len() < legend.len()
    }

    /// Returns whether it has live curves.
    fn has_live(&self) -> bool {
        let mut curves = self.panels.iter().flat_map(Panel::curves);
        curves.any(|curve| curve.origin == Origin::Live)
    }

    /// The figure as a file of its own, for print.
    pub fn to_svg(&self) -> String {
        self.to_svg_with(&Words::default())
    }

    /// The same with words around it, for those who see nothing else.
    pub fn to_svg_with(&self, words: &Words) -> String {
        svg::document(self, words)
    }

    /// Its panels one by one and its legend, for a page that has [`page_style`].
    pub fn to_inline_svg(&self) -> (Vec<String>, String) {
        let panels = self.panels.iter().enumerate();
        let panels = panels.map(|(index, panel)| svg::inline_panel(self, index, panel));
        (panels.collect(), legend::inline(self))
    }

    /// Writes the figure as SVG, PDF and PNG, and its data as CSV. Answers with the paths.
    pub fn write(
        &self,
        directory: &Path,
        name: &str,
        words: &Words,
    ) -> Result<Vec<PathBuf>, ResultsError> {
        let path = |extension: &str| directory.join(format!("{name}.{extension}"));
        let paths = vec![path("svg"), path("pdf"), path("png"), path("csv")];
        write_text(&paths[0], &self.to_svg_with(words))?;
        write_bytes(&paths[1], &self.to_pdf_with(words))?;
        write_bytes(&paths[2], &self.to_png_with(words))?;
        write_text(&paths[3], &self.to_csv())?;
        Ok(paths)
    }

    /// The figure as a PDF file, with its fonts.
    pub fn to_pdf_with(&self, words: &Words) -> Vec<u8> {
        let drawing = shapes::read(&self.to_svg_with(words));
        // A unit is a pixel of 1/96 inch, a point 1/72 inch.
        let scale = match words.width.points() {
            Some(points) => points / drawing.width,
            None => 0.75,
        };
        pdf::render(&drawing, scale)
    }

    /// The figure in pixels, twice as fine as a page shows it.
    pub fn to_png(&self) -> Vec<u8> {
        self.to_png_with(&Words::default())
    }

    /// The same with words around it.
    pub fn to_png_with(&self, words: &Words) -> Vec<u8> {
        png::render(&shapes::read(&self.to_svg_with(words)))
    }

    /// Data of the figure: a row for each point.
    pub fn to_csv(&self) -> String {
        csv::write(self)
    }
}

impl Panel {
    /// Its curves, if it has any.
    pub fn curves(&self) -> &[Curve] {
        match &self.plot {
            Plot::Points(curves) | Plot::Lines(curves) | Plot::Scatter(curves) => curves,
            Plot::Rows(_) | Plot::Boxes(_) | Plot::Heat(_) => &[],
        }
    }
}
