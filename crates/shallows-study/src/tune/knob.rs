//! Knobs: what a search may turn, from options and files.

use std::path::Path;

use serde::Deserialize;
use shallows_run::Diagnostic;
use shallows_run::scenario::Document;

use crate::study::axis::{Axis, Point};
use crate::study::axis_of;
use crate::study::config::AxisConfig;

/// Points of a range that does not give their number.
const POINTS: usize = 33;

/// Most points of a range.
const MOST_POINTS: usize = 10_000;

/// Most knobs with ranges: the first round tries two values of each, in all combinations.
const MOST_RANGES: usize = 6;

/// A key, or a choice, with the values that a search may give it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Knob {
    pub(crate) axis: Axis,
    /// The key, if the knob is one.
    pub(crate) key: Option<String>,
    /// Place in the file, for errors.
    pub(crate) place: String,
}

impl Knob {
    pub(crate) fn points(&self) -> &[Point] {
        &self.axis.points
    }

    /// Returns whether neighbours of a good value are worth a try.
    pub(crate) fn is_ordered(&self) -> bool {
        let numbers = self.axis.points.iter().map(|point| point.number);
        let numbers: Option<Vec<f64>> = numbers.collect();
        numbers.is_some_and(|numbers| numbers.len() > 2 && numbers.is_sorted())
    }
}

/// A file of knobs: `[[knob]]` has the keys of a study's `[[axis]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct KnobsConfig {
    knob: Vec<AxisConfig>,
}

/// The knobs of `--knob` and of the file of `--knobs`.
pub(crate) fn knobs(options: &[String], file: Option<&Path>) -> Result<Vec<Knob>, Diagnostic> {
    let mut knobs = Vec::new();
    for option in options {
        knobs.push(of_option(option).map_err(Diagnostic::new)?);
    }
    if let Some(path) = file {
        knobs.extend(of_file(path)?);
    }
    if knobs.is_empty() {
        let problem = "there is nothing to turn; write --knob KEY=A..B, --knob KEY=A,B,C or \
                       --knobs FILE";
        return Err(Diagnostic::new(problem));
    }
    for (index, knob) in knobs.iter().enumerate() {
        let is_same = |other: &Knob| {
            let is_key = other.key.is_some() && other.key == knob.key;
            is_key || (other.key.is_none() && other.axis.name == knob.axis.name)
        };
        if knobs[..index].iter().any(is_same) {
            let problem = format!("{}: this knob is there twice", knob.place);
            return Err(Diagnostic::new(problem));
        }
    }
    let ranges = knobs.iter().filter(|knob| knob.is_ordered()).count();
    if ranges > MOST_RANGES {
        let problem = format!("{ranges} knobs with ranges; a search takes {MOST_RANGES} at most");
        return Err(Diagnostic::new(problem));
    }
    distinguish(&mut knobs);
    Ok(knobs)
}

/// Calls knobs with equal names by their whole keys.
fn distinguish(knobs: &mut [Knob]) {
    let names: Vec<String> = knobs.iter().map(|knob| knob.axis.name.clone()).collect();
    for knob in knobs {
        let is_shared = names.iter().filter(|name| **name == knob.axis.name).count() > 1;
        if let Some(key) = knob.key.as_ref().filter(|_| is_shared) {
            knob.axis.name.clone_from(key);
        }
    }
}

fn of_file(path: &Path) -> Result<Vec<Knob>, Diagnostic> {
    let document: Document<KnobsConfig> = Document::read(path)?;
    let mut knobs = Vec::new();
    for (index, config) in document.content.knob.iter().enumerate() {
        let at = format!("knob.{index}");
        let axis = Axis::new(config);
        let axis =
            axis.map_err(|error| document.error(&format!("{at}.{}", error.key), error.problem))?;
        knobs.push(Knob {
            axis,
            key: config.key.clone(),
            place: document.place(&at),
        });
    }
    Ok(knobs)
}

/// Reads `KEY=A,B,C` as `--vary` does, or `KEY=A..B` with an optional `:N`.
fn of_option(option: &str) -> Result<Knob, String> {
    let place = format!("--knob {option}");
    let (key, values) = option
        .split_once('=')
        .ok_or_else(|| format!("{place}: write KEY=A..B, KEY=A..B:N for N points, or KEY=A,B,C"))?;
    let listed = match values.split_once("..") {
        Some((from, to)) if !values.contains(['{', '[', '"', ',']) => {
            let values = range(from.trim(), to.trim());
            let values = values.map_err(|problem| format!("{place}: {problem}"))?;
            format!("{key}={}", values.join(","))
        }
        _ => option.to_owned(),
    };
    let axis = axis_of("--knob", &listed);
    let axis = axis.map_err(|problem| problem.replace(&listed, option))?;
    Ok(Knob {
        axis,
        key: Some(key.trim().to_owned()),
        place,
    })
}

/// The values of a range: at equal ratios from a positive number, otherwise at equal distances.
fn range(from: &str, to: &str) -> Result<Vec<String>, String> {
    let (to, count) = match to.split_once(':') {
        Some((to, count)) => {
            let count = count.trim().parse::<usize>().ok();
            let count = count.filter(|count| (2..=MOST_POINTS).contains(count));
            let problem = || format!("after the colon is a number of points, 2 to {MOST_POINTS}");
            (to.trim(), count.ok_or_else(problem)?)
        }
        None => (to, POINTS),
    };
    let ((first, unit), (last, other)) = (number(from)?, number(to)?);
    if unit != other {
        return Err(format!("both ends need one unit; {from} and {to} differ"));
    }
    if first >= last {
        return Err(format!("{from} is not below {to}"));
    }
    // Thresholds in packets and numbers of queues are whole.
    let is_whole = first.fract() == 0.0 && last.fract() == 0.0;
    let mut values: Vec<String> = Vec::new();
    for index in 0..count {
        let share = index as f64 / (count - 1) as f64;
        let exact = if first > 0.0 {
            first * (last / first).powf(share)
        } else {
            first + (last - first) * share
        };
        let value = if is_whole {
            format!("{}{unit}", exact.round())
        } else {
            format!("{}{unit}", digits(exact))
        };
        if values.last() != Some(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

/// A number with four significant digits.
fn digits(number: f64) -> f64 {
    if number == 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powi(3 - number.abs().log10().floor() as i32);
    (number * scale).round() / scale
}

/// A number and its unit.
fn number(text: &str) -> Result<(f64, &str), String> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c)))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.parse::<f64>().ok().filter(|of| of.is_finite());
    let is_unit = unit.chars().all(|c| c.is_ascii_alphabetic());
    match number {
        Some(number) if is_unit => Ok((number, unit)),
        _ => Err(format!("{text:?} is not a number with a unit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(option: &str) -> Vec<String> {
        let knob = of_option(option).unwrap();
        knob.points()
            .iter()
            .map(|point| point.label.clone())
            .collect()
    }

    #[test]
    fn ranges_have_equal_ratios_and_whole_ends_give_whole_values() {
        assert_eq!(labels("a.k=1pkts..16pkts:3"), ["1pkts", "4pkts", "16pkts"]);
        assert_eq!(labels("a.k=1..4:9"), ["1", "2", "3", "4"]);
        assert_eq!(labels("a.k=0..1:3"), ["0", "1"]);
        assert_eq!(labels("a.k=0.1..0.4:3"), ["0.1", "0.2", "0.4"]);
        // Two neighbours round to 6.
        assert_eq!(labels("a.k=5pkts..160pkts").len(), 32);
        let knob = of_option("a.k=1pkts..16pkts:3").unwrap();
        assert_eq!(knob.points()[1].set, ["a.k=\"4pkts\""]);
        assert!(knob.is_ordered());
        assert_eq!(knob.axis.name, "k");
    }

    #[test]
    fn lists_are_those_of_vary() {
        assert_eq!(labels("a.k=5pkts,10pkts"), ["5pkts", "10pkts"]);
        let schemes = of_option("m={mq-ecn={threshold=\"20pkts\"}},none,x").unwrap();
        assert_eq!(schemes.points().len(), 3);
        assert!(!schemes.is_ordered());
    }

    #[test]
    fn malformed_knobs_are_refused() {
        for option in [
            "k",
            "k=5..1",
            "k=1KB..2MB",
            "k=1..",
            "k=..2",
            "k=1..2:1",
            "k=1..2:x",
            "k=1..2:99999999",
            "seed=1..5",
            "k=1,1",
            "k=é..2",
        ] {
            assert!(of_option(option).is_err(), "{option}");
        }
        assert!(knobs(&[], None).is_err());
        let twice = ["a=1..2".to_owned(), "a=1,2".to_owned()];
        assert!(knobs(&twice, None).is_err());
        let same_end = ["a.x=1..3".to_owned(), "b.x=1,2".to_owned()];
        let same_end = knobs(&same_end, None).unwrap();
        assert_eq!(same_end[1].axis.name, "b.x");
    }
}
