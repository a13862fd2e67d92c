//! Axes: keys that are varied, point by point.

use std::collections::BTreeSet;

use super::config::{AxisConfig, RangeConfig, sets_seed, shown};

/// Most points of one axis.
const MOST_POINTS: usize = 100_000;

/// Columns beside those of axes.
const RESERVED: [&str; 10] = [
    "seed",
    "run",
    "metric",
    "seeds",
    "mean",
    "low",
    "high",
    "ratio_mean",
    "ratio_low",
    "ratio_high",
];

const SEED: &str = "seeds are no axis: every point runs with all of them; write seeds = [5, 6]";

/// Something that is varied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) percent: bool,
    pub(crate) points: Vec<Point>,
    /// Its settings as they are written, with `{x}` for values.
    pub(crate) written: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// The name by which panels and claims refer to it.
    pub(crate) id: String,
    pub(crate) label: String,
    /// Position on a numeric axis.
    pub(crate) number: Option<f64>,
    /// Settings, as `--set` takes them.
    pub(crate) set: Vec<String>,
    /// The place at which it is written, for people.
    pub(crate) place: String,
}

/// A problem of an axis, with its key.
#[derive(Debug, PartialEq)]
pub(crate) struct AxisError {
    pub(crate) key: &'static str,
    pub(crate) problem: String,
}

fn wrong<T>(key: &'static str, problem: impl Into<String>) -> Result<T, AxisError> {
    let problem = problem.into();
    Err(AxisError { key, problem })
}

/// Refuses seeds, which are no axis.
fn refuse_seeds(config: &AxisConfig) -> Result<(), AxisError> {
    let mut keys = config.key.iter().chain(&config.keys);
    let mut of_points = config.point.iter().flat_map(|point| &point.set);
    let mut of_values = config.set.iter().chain(config.each.iter().flatten());
    if keys.any(|key| sets_seed(key)) {
        return wrong(if config.key.is_some() { "key" } else { "keys" }, SEED);
    }
    if of_points.any(|assignment| sets_seed(assignment)) {
        return wrong("point", SEED);
    }
    if of_values.any(|assignment| sets_seed(assignment)) {
        return wrong(if config.set.is_empty() { "each" } else { "set" }, SEED);
    }
    Ok(())
}

/// Refuses points that have one name.
fn refuse_twice(config: &AxisConfig, points: &[Point]) -> Result<(), AxisError> {
    let mut labels = BTreeSet::new();
    for point in points {
        for name in BTreeSet::from([&point.label, &point.id]) {
            if !labels.insert(name) {
                let of_values = config.point.is_empty();
                let key = if of_values { "values" } else { "point" };
                return wrong(key, format!("{name} is there twice"));
            }
        }
    }
    Ok(())
}

impl Axis {
    pub(crate) fn new(config: &AxisConfig) -> Result<Self, AxisError> {
        let keys: Vec<&String> = config.key.iter().chain(&config.keys).collect();
        let of_points = config.point.iter().flat_map(|point| &point.set);
        let of_values = config.set.iter().chain(config.each.iter().flatten());
        refuse_seeds(config)?;
        let has_settings = of_values.clone().next().is_some() || !config.each.is_empty();
        let mut points = match (&keys[..], &config.point[..]) {
            ([], []) if has_settings => of_values_with_settings(config)?,
            ([], []) => return wrong("", "the axis has no key; write key and values, or points"),
            (_, _) if has_settings => {
                let problem = "set and each are for values without a key; keep one of them";
                return wrong(if config.set.is_empty() { "each" } else { "set" }, problem);
            }
            ([], points) => points
                .iter()
                .map(|point| Point {
                    id: point.id.as_ref().unwrap_or(&point.label).clone(),
                    label: point.label.clone(),
                    number: None,
                    set: point.set.clone(),
                    place: String::new(),
                })
                .collect(),
            (_, [_, ..]) => {
                return wrong("point", "the axis has points and keys; keep one of them");
            }
            ([key], []) => of_key(key, config)?,
            (keys, []) => of_keys(keys, config)?,
        };
        let of_keys = keys.iter().map(|key| format!("{key}={{x}}"));
        let written = of_values.chain(of_points).cloned();
        let written = of_keys.chain(written).collect();
        let name = match (&config.name, &keys[..]) {
            (Some(name), _) => name.clone(),
            (None, [key, ..]) => last_part(key).to_owned(),
            (None, []) => return wrong("", "an axis without a key needs a name"),
        };
        if RESERVED.contains(&&*name) {
            return wrong(
                "name",
                format!("{name} is a column of its own; choose another name"),
            );
        }
        refuse_twice(config, &points)?;
        let unit = number(&mut points);
        let label = match (&config.label, unit) {
            (Some(label), _) => label.clone(),
            (None, Some(unit)) if !unit.is_empty() => format!("{name} ({unit})"),
            (None, _) if config.percent => format!("{name} (%)"),
            (None, _) => name.clone(),
        };
        Ok(Self {
            name,
            label,
            percent: config.percent,
            points,
            written,
        })
    }

    /// Returns whether its points have places on a line.
    pub(crate) fn is_numeric(&self) -> bool {
        self.points.iter().all(|point| point.number.is_some())
    }

    /// The numbers of its points, if they have some.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.points.iter().filter_map(|point| point.number)
    }

    /// Position of a point in the figure.
    pub(crate) fn x(&self, point: usize) -> Option<f64> {
        Some(self.shown(self.points[point].number?))
    }

    /// A number of the axis as figures show it.
    pub(crate) fn shown(&self, number: f64) -> f64 {
        let scale = if self.percent { 100.0 } else { 1.0 };
        // 0.7 is not exactly 70 hundredths.
        (number * scale * 1e9).round() / 1e9
    }

    /// The point with this id, label or number.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let by = |of: fn(&Point) -> &String| self.points.iter().position(|one| of(one) == name);
        let named = by(|point| &point.id).or_else(|| by(|point| &point.label));
        named.or_else(|| {
            let number: f64 = name.parse().ok()?;
            let points = self.points.iter();
            points
                .into_iter()
                .position(|one| one.number == Some(number))
        })
    }
}

/// The last part of a key, with the one before it where that is a place in a list.
fn last_part(key: &str) -> &str {
    match key.rsplit_once('.') {
        Some((list, place)) if place.bytes().all(|c| c.is_ascii_digit()) => {
            let start = list.rfind('.').map_or(0, |dot| dot + 1);
            &key[start..]
        }
        Some((_, name)) => name,
        None => key,
    }
}

fn of_key(key: &str, config: &AxisConfig) -> Result<Vec<Point>, AxisError> {
    let values = match (&config.values[..], config.range) {
        ([], None) => return wrong("", format!("{key} has no values; write values or a range")),
        (values, None) => values.to_vec(),
        ([], Some(range)) => numbers(range)?,
        _ => {
            return wrong(
                "range",
                format!("{key} has values and a range; keep one of them"),
            );
        }
    };
    let points = values.iter().map(|value| Point {
        id: shown(value),
        label: shown(value),
        number: None,
        set: vec![format!("{key}={value}")],
        place: String::new(),
    });
    Ok(points.collect())
}

/// Values without a key: each has the settings of `set`, with itself in place of `{x}`, and its own
/// of `each`.
fn of_values_with_settings(config: &AxisConfig) -> Result<Vec<Point>, AxisError> {
    let (each, values) = (&config.each, &config.values);
    if values.is_empty() || config.range.is_some() {
        return wrong("", "settings of values need values; write values = [1, 2]");
    }
    if !each.is_empty() && each.len() != values.len() {
        let (entries, values) = (each.len(), values.len());
        return wrong("each", format!("{entries} entries for {values} values"));
    }
    let point = |(index, value): (usize, &toml::Value)| {
        let value = shown(value);
        let own = each.get(index).into_iter().flatten();
        let set = config.set.iter().chain(own);
        Point {
            id: value.clone(),
            label: value.clone(),
            number: None,
            set: set.map(|setting| setting.replace("{x}", &value)).collect(),
            place: String::new(),
        }
    };
    Ok(values.iter().enumerate().map(point).collect())
}

fn of_keys(keys: &[&String], config: &AxisConfig) -> Result<Vec<Point>, AxisError> {
    if config.range.is_some() {
        return wrong(
            "range",
            "a range is for one key; write values, a list for each point",
        );
    }
    let mut points = Vec::new();
    for value in &config.values {
        let several = value.as_array().filter(|values| values.len() == keys.len());
        let Some(values) = several else {
            let problem = format!(
                "{value} is no list of {} values, one for each of the keys",
                keys.len()
            );
            return wrong("values", problem);
        };
        let labels: Vec<String> = values.iter().map(shown).collect();
        let settings = keys.iter().zip(values);
        points.push(Point {
            id: labels.join(", "),
            label: labels.join(", "),
            number: None,
            set: settings
                .map(|(key, value)| format!("{key}={value}"))
                .collect(),
            place: String::new(),
        });
    }
    if points.is_empty() {
        return wrong(
            "keys",
            "the keys have no values; write a list for each point",
        );
    }
    Ok(points)
}

fn numbers(range: RangeConfig) -> Result<Vec<toml::Value>, AxisError> {
    let RangeConfig {
        from,
        to,
        step,
        count,
        logarithmic,
    } = range;
    let steps = match (step, count) {
        (Some(step), None) if !logarithmic => {
            let steps = (to - from) / step;
            if !steps.is_finite() || steps < 0.0 || steps >= MOST_POINTS as f64 {
                return wrong(
                    "range.step",
                    format!("{step} does not lead from {from} to {to}"),
                );
            }
            // As many as fit, though 0.1 is not exactly a tenth.
            (steps + 1e-9).floor() as u32
        }
        (None, Some(count)) if count >= 2 && count as usize <= MOST_POINTS => count - 1,
        (None, Some(count)) => {
            return wrong(
                "range.count",
                format!("{count} points; write a number from 2 to {MOST_POINTS}"),
            );
        }
        _ => {
            return wrong(
                "range",
                "write a step, or a count; a logarithmic range needs a count",
            );
        }
    };
    if logarithmic && (from <= 0.0 || to <= 0.0) {
        return wrong("range", "a logarithmic range is of positive numbers");
    }
    let at = |index: u32| {
        let share = f64::from(index) / f64::from(steps.max(1));
        let number = match step {
            Some(step) => from + f64::from(index) * step,
            None if logarithmic => from * (to / from).powf(share),
            None => from + (to - from) * share,
        };
        // Without the traces of binary fractions.
        let number = (number * 1e9).round() / 1e9;
        if number.fract() == 0.0 && number.abs() < 1e15 && from.fract() == 0.0 {
            toml::Value::Integer(number as i64)
        } else {
            toml::Value::Float(number)
        }
    };
    Ok((0..=steps).map(at).collect())
}

/// Gives the points their numbers, if all have one with the same unit; answers with the unit.
fn number(points: &mut [Point]) -> Option<String> {
    let split = |label: &str| {
        let end = label
            .find(|c: char| !(c.is_ascii_digit() || "+-._eE".contains(c)))
            .unwrap_or(label.len());
        let (number, unit) = label.split_at(end);
        let number: f64 = number.replace('_', "").parse().ok()?;
        let is_unit = unit.chars().all(|c| c.is_ascii_alphabetic() || c == '%');
        (number.is_finite() && is_unit).then(|| (number, unit.to_owned()))
    };
    let numbers: Option<Vec<(f64, String)>> =
        points.iter().map(|point| split(&point.label)).collect();
    let numbers = numbers?;
    let unit = numbers.first()?.1.clone();
    if numbers.iter().any(|(_, of)| *of != unit) {
        return None;
    }
    for (point, (number, _)) in points.iter_mut().zip(numbers) {
        point.number = Some(number);
    }
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Result<Axis, AxisError> {
        Axis::new(&toml::from_str(text).unwrap())
    }

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.points.iter().map(|point| &*point.label).collect()
    }

    #[test]
    fn values_of_a_key_become_settings() {
        let axis = axis("key = \"a.threshold\"\nvalues = [\"20pkts\", \"65pkts\"]").unwrap();
        assert_eq!(
            (&*axis.name, &*axis.label),
            ("threshold", "threshold (pkts)")
        );
        assert_eq!(axis.points[1].set, ["a.threshold=\"65pkts\""]);
        assert_eq!(axis.x(1), Some(65.0));
        let item = self::axis("key = \"a.quantum.0\"\nvalues = [1, 2]").unwrap();
        assert_eq!(item.name, "quantum.0");
    }

    #[test]
    fn ranges_have_both_ends() {
        let loads = axis("key = \"load\"\nrange = { from = 0.1, to = 0.7, step = 0.2 }").unwrap();
        assert_eq!(labels(&loads), ["0.1", "0.3", "0.5", "0.7"]);
        let count = axis("key = \"n\"\nrange = { from = 2, to = 8, count = 3 }").unwrap();
        assert_eq!(labels(&count), ["2", "5", "8"]);
        let log = "key = \"n\"\nrange = { from = 1, to = 100, count = 3, logarithmic = true }";
        assert_eq!(labels(&axis(log).unwrap()), ["1", "10", "100"]);
    }

    #[test]
    fn keys_change_together() {
        let axis = axis("name = \"n\"\nkeys = [\"a\", \"b\"]\nvalues = [[1, 2], [3, \"x\"]]");
        let axis = axis.unwrap();
        assert_eq!(labels(&axis), ["1, 2", "3, x"]);
        assert_eq!(axis.points[1].set, ["a=3", "b=\"x\""]);
        assert!(!axis.is_numeric());
    }

    #[test]
    fn points_set_what_they_like() {
        let text =
            "name = \"scheme\"\npoint = [{ label = \"A\", set = [\"x=1\"] }, { label = \"B\" }]";
        let axis = axis(text).unwrap();
        assert_eq!(labels(&axis), ["A", "B"]);
        assert_eq!(axis.points[0].set, ["x=1"]);
    }

    #[test]
    fn units_must_agree() {
        let axis = axis("key = \"size\"\nvalues = [\"1KB\", \"1MB\"]").unwrap();
        assert!(!axis.is_numeric());
    }

    #[test]
    fn what_is_wrong_is_said_where() {
        for (text, key) in [
            ("name = \"a\"", ""),
            ("key = \"a\"", ""),
            ("key = \"a\"\nvalues = [1, 1]", "values"),
            ("keys = [\"a\", \"b\"]\nvalues = [1]", "values"),
            (
                "key = \"a\"\nrange = { from = 1, to = 0, step = 1 }",
                "range.step",
            ),
            (
                "key = \"a\"\nrange = { from = 1, to = 2, step = 0 }",
                "range.step",
            ),
            (
                "key = \"a\"\nrange = { from = 1, to = 2, count = 1 }",
                "range.count",
            ),
            (
                "key = \"a\"\nrange = { from = 0, to = 2, count = 2, logarithmic = true }",
                "range",
            ),
            ("key = \"seed\"\nvalues = [1]", "key"),
            ("keys = [\"a\", \"seed\"]\nvalues = [[1, 2]]", "keys"),
            (
                "name = \"a\"\npoint = [{ label = \"b\", set = [\"seed=1\"] }]",
                "point",
            ),
            ("key = \"a.run\"\nvalues = [1]", "name"),
        ] {
            assert_eq!(axis(text).unwrap_err().key, key, "{text}");
        }
    }
}
