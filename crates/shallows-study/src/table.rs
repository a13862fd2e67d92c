//! Numbers and columns on the terminal.

use std::fmt::Write as _;

use shallows_results::interval::Interval;

/// Ratio from which a difference is written as a factor.
const FACTOR: f64 = 10.0;

/// A ratio as a difference in percent, or as a factor if it is large, with half of its confidence
/// interval.
pub(crate) fn difference(ratio: Interval) -> String {
    if ratio.mean >= FACTOR {
        let mean = format!("x{}", short(ratio.mean));
        return match ratio.count {
            1 => mean,
            _ => format!("{mean} ±{}", rough(ratio.half())),
        };
    }
    let percent = |share: f64| 100.0 * share;
    let mean = format!("{:+.1}%", percent(ratio.mean - 1.0));
    match ratio.count {
        1 => mean,
        _ => format!("{mean} ±{:.1}", percent(ratio.half())),
    }
}

/// A number with four digits, or all that are before the point.
pub(crate) fn short(number: f64) -> String {
    with_digits(number, 4)
}

/// A number with two digits, or all that are before the point: an error bar.
pub(crate) fn rough(number: f64) -> String {
    with_digits(number, 2)
}

fn with_digits(number: f64, count: i32) -> String {
    let digits = match number.abs() {
        0.0 => 0,
        some => count - 1 - some.log10().floor() as i32,
    };
    let text = format!("{number:.*}", digits.clamp(0, 6) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Columns under their heads, the first `left` of them aligned left.
pub(crate) fn aligned(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column {
            column if column < left => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let shown = [0.0, 0.012_345_67, 1.5, 12.345, 123_456.7, -2.0, 1e-9].map(short);
        assert_eq!(shown, ["0", "0.01235", "1.5", "12.35", "123457", "-2", "0"]);
        assert_eq!([0.7393, 12.9, 103.6].map(rough), ["0.74", "13", "104"]);
    }

    #[test]
    fn differences_have_their_sign() {
        let ratio = Interval::of(&[1.1, 1.2, 1.3]).unwrap();
        assert_eq!(difference(ratio), "+20.0% ±24.8");
        assert_eq!(difference(Interval::of(&[0.5]).unwrap()), "-50.0%");
        assert_eq!(difference(Interval::of(&[1104.8]).unwrap()), "x1105");
    }
}
