//! Grids of values as shades.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::frame::TOP;
use super::words::{escape, short, text_width};

/// Height of a row, and least width of a column.
const ROW: f64 = 18.0;
const COLUMN: f64 = 4.0;

/// Columns up to which cells show their values.
const MOST_WITH_VALUES: usize = 14;

/// Least width of a cell with its value, and room between the labels of two columns.
const WITH_VALUE: f64 = 44.0;
const GAP: f64 = 10.0;

/// Room below the cells for labels, the name of the x axis and the bar of shades.
pub(super) const BELOW: f64 = 74.0;

/// A grid of values: one shade per cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    /// Labels of the columns; empty ones are not shown.
    pub columns: Vec<String>,
    /// Rows from top to bottom.
    pub rows: Vec<HeatRow>,
    /// A value with no shade, between two colours, such as 1 for ratios; without it shades go from
    /// zero up.
    pub neutral: Option<f64>,
    /// Name of the values.
    pub label: String,
}

/// A row of a grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatRow {
    /// At its left.
    pub label: String,
    /// One value per column; NaN where there is none.
    #[serde(deserialize_with = "crate::number::list")]
    pub values: Vec<f64>,
}

impl Heat {
    /// Width and height of the cells.
    pub(super) fn cells(&self) -> (f64, f64) {
        let count = self.columns.len().max(1) as f64;
        let width = if self.columns.len() <= MOST_WITH_VALUES {
            let labels = self.columns.iter().map(|label| text_width(label) + GAP);
            labels.fold(WITH_VALUE, f64::max) * count
        } else {
            (COLUMN * count).max(240.0)
        };
        (width, ROW * self.rows.len() as f64)
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let values = self.rows.iter().flat_map(|row| &row.values);
        values.copied().filter(|value| value.is_finite())
    }

    /// Least and largest value on the scale.
    fn ends(&self) -> (f64, f64) {
        let low = self.values().fold(f64::INFINITY, f64::min);
        let high = self.values().fold(f64::NEG_INFINITY, f64::max);
        match self.neutral {
            _ if low > high => (0.0, 1.0),
            None => (0.0, if high > 0.0 { high } else { 1.0 }),
            Some(neutral) => {
                let reach = (high - neutral).max(neutral - low).max(1e-9);
                (neutral - reach, neutral + reach)
            }
        }
    }

    /// The colour of a value, and whether its text must be light.
    fn shade(&self, value: f64) -> (String, bool) {
        /// Blue for more; orange for more and blue for less where there is a neutral value.
        const BLUE: [f64; 3] = [0.0, 76.0, 134.0];
        const ORANGE: [f64; 3] = [196.0, 80.0, 0.0];
        let (low, high) = self.ends();
        let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
        let (strength, colour) = match self.neutral {
            None => (share, BLUE),
            Some(_) if share < 0.5 => (1.0 - 2.0 * share, BLUE),
            Some(_) => (2.0 * share - 1.0, ORANGE),
        };
        let part = |index: usize| (255.0 + (colour[index] - 255.0) * strength).round() as u8;
        let [red, green, blue] = [part(0), part(1), part(2)];
        (format!("#{red:02x}{green:02x}{blue:02x}"), strength > 0.6)
    }
}

/// Draws the cells, their labels and a bar of shades; `left` is where the cells begin.
pub(super) fn draw(heat: &Heat, x_label: &str, left: f64, out: &mut String) {
    let (width, height) = heat.cells();
    let cell = width / heat.columns.len().max(1) as f64;
    let has_values = heat.columns.len() <= MOST_WITH_VALUES;
    for (index, row) in heat.rows.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            y + 12.8,
            escape(&row.label)
        );
        for (column, &value) in row.values.iter().enumerate() {
            let x = left + cell * column as f64;
            if !value.is_finite() {
                continue;
            }
            let (colour, is_dark) = heat.shade(value);
            let _ = write!(
                out,
                "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{ROW}\" fill=\"{colour}\"/>",
                cell + 0.2
            );
            if has_values {
                let ink = if is_dark { "#ffffff" } else { "#1a1a1a" };
                let _ = write!(
                    out,
                    "<text style=\"fill:{ink}\" x=\"{:.1}\" y=\"{:.1}\" \
                     text-anchor=\"middle\">{}</text>",
                    x + cell / 2.0,
                    y + 12.8,
                    short(value)
                );
            }
        }
    }
    for (column, label) in heat.columns.iter().enumerate() {
        let _ = write!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            left + cell * (column as f64 + 0.5),
            TOP + height + 14.0,
            escape(label)
        );
    }
    let _ = write!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        left + width / 2.0,
        TOP + height + 31.0,
        escape(x_label)
    );
    draw_bar(heat, (left, TOP + height + 44.0), width, out);
}

/// The shades from the least to the largest value.
fn draw_bar(heat: &Heat, (left, top): (f64, f64), width: f64, out: &mut String) {
    const STEPS: usize = 40;
    let (low, high) = heat.ends();
    let bar = width.min(160.0);
    let start = left + (width - bar) / 2.0;
    for step in 0..STEPS {
        let share = step as f64 / (STEPS - 1) as f64;
        let (colour, _) = heat.shade(low + share * (high - low));
        let _ = write!(
            out,
            "<rect x=\"{:.2}\" y=\"{top:.1}\" width=\"{:.2}\" height=\"8\" fill=\"{colour}\"/>",
            start + bar * step as f64 / STEPS as f64,
            bar / STEPS as f64 + 0.2
        );
    }
    let label = format!("{} to {} {}", short(low), short(high), heat.label);
    let _ = write!(
        out,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        left + width / 2.0,
        top + 21.0,
        escape(label.trim_end())
    );
}
