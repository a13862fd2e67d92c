//! Settings of the command line: `--set ports.switch.queues=4`.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::schema::is_choice;

/// Names in the longest key that can be set.
const DEEPEST: usize = 32;

/// Sets a key, given as `key=value`, in a scenario. What was set has `span`.
pub(super) fn apply<'i>(
    table: &mut DeTable<'i>,
    assignment: &'i str,
    span: &Range<usize>,
) -> Result<(), String> {
    let Some((path, value)) = assignment.split_once('=') else {
        return Err("a setting is KEY=VALUE, such as ports.switch.queues=4".to_owned());
    };
    let keys: Vec<&str> = path.trim().split('.').map(str::trim).collect();
    if keys.iter().any(|key| key.is_empty()) {
        return Err("a key is a list of names with dots between them".to_owned());
    }
    if keys.len() > DEEPEST {
        let depth = keys.len();
        return Err(format!(
            "the key has {depth} names; no table is deeper than {DEEPEST}"
        ));
    }
    set_in_table(table, &keys, 0, read(value.trim(), span), span)
}

/// A value as TOML has it, or else a text: shells take the quotes away.
fn read<'i>(text: &'i str, span: &Range<usize>) -> DeValue<'i> {
    match DeValue::parse(text) {
        Ok(value) => with_span(value.into_inner(), span),
        Err(_) => DeValue::String(Cow::Borrowed(text)),
    }
}

/// The value with everything in it at one place.
fn with_span<'i>(value: DeValue<'i>, span: &Range<usize>) -> DeValue<'i> {
    let at = |value| Spanned::new(span.clone(), value);
    match value {
        DeValue::Table(table) => DeValue::Table(
            table
                .into_iter()
                .map(|(key, value)| {
                    let key = Spanned::new(span.clone(), key.into_inner());
                    (key, at(with_span(value.into_inner(), span)))
                })
                .collect(),
        ),
        DeValue::Array(items) => DeValue::Array(
            items
                .into_iter()
                .map(|item| at(with_span(item.into_inner(), span)))
                .collect(),
        ),
        plain => plain,
    }
}

fn set_in_table<'i>(
    table: &mut DeTable<'i>,
    keys: &[&'i str],
    depth: usize,
    value: DeValue<'i>,
    span: &Range<usize>,
) -> Result<(), String> {
    let key = keys[depth];
    let before = table.remove(key);
    let new = if depth + 1 == keys.len() {
        Spanned::new(span.clone(), value)
    } else {
        let nothing = || Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
        let mut inner = match before {
            Some(inner) if !(is_choice(&keys[..=depth]) && inner.get_ref().is_str()) => inner,
            _ => nothing(),
        };
        set_in_value(inner.get_mut(), keys, depth + 1, value, span)?;
        inner
    };
    table.insert(Spanned::new(span.clone(), Cow::Borrowed(key)), new);
    Ok(())
}

fn set_in_value<'i>(
    inside: &mut DeValue<'i>,
    keys: &[&'i str],
    depth: usize,
    value: DeValue<'i>,
    span: &Range<usize>,
) -> Result<(), String> {
    let parent = keys[..depth].join(".");
    match inside {
        DeValue::Table(table) => {
            if is_choice(&keys[..depth]) {
                let chosen = table.remove_entry(keys[depth]);
                *table = chosen.into_iter().collect();
            }
            set_in_table(table, keys, depth, value, span)
        }
        DeValue::Array(items) => {
            let count = items.len();
            let index = keys[depth].parse::<usize>().ok();
            let Some(item) = index.and_then(|index| items.get_mut(index)) else {
                return Err(format!(
                    "{parent} is a list of {count}: write {parent}.0 for its first"
                ));
            };
            if depth + 1 == keys.len() {
                *item = Spanned::new(span.clone(), value);
                return Ok(());
            }
            set_in_value(item.get_mut(), keys, depth + 1, value, span)
        }
        other => Err(format!(
            "{parent} is {} in the scenario, which has no keys: set {parent} as a whole",
            article(other)
        )),
    }
}

fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Boolean(_) => "true or false",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, assignments: &[&str]) -> Result<String, String> {
        let mut document = DeTable::parse(text).unwrap();
        for assignment in assignments {
            apply(document.get_mut(), assignment, &(0..0))?;
        }
        let value: toml::Table =
            serde::Deserialize::deserialize(toml::de::Deserializer::from(document)).unwrap();
        Ok(toml::to_string(&value).unwrap())
    }

    #[test]
    fn values_are_toml_or_else_text() {
        for (assignment, result) in [
            ("a=5", "a = 5\n"),
            ("a=5us", "a = \"5us\"\n"),
            ("a=\"5us\"", "a = \"5us\"\n"),
            ("a = true", "a = true\n"),
            ("a=[1, 2]", "a = [1, 2]\n"),
            ("a=x=y", "a = \"x=y\"\n"),
            ("a={b={c=1}}", "[a.b]\nc = 1\n"),
        ] {
            assert_eq!(set("", &[assignment]).unwrap(), result, "{assignment}");
        }
    }

    #[test]
    fn a_choice_replaces_the_one_before_and_other_tables_grow() {
        let text = "[ports.switch.marker]\nscheme = { per-queue = { threshold = \"1KB\" } }\n\
                    point = \"x\"";
        let new = set(text, &["ports.switch.marker.scheme.mq-ecn.threshold=32KB"]).unwrap();
        assert_eq!(
            new,
            "[ports.switch.marker]\npoint = \"x\"\n\n\
             [ports.switch.marker.scheme.mq-ecn]\nthreshold = \"32KB\"\n"
        );
        let key = "ports.switch.marker.scheme.per-queue.threshold=2KB";
        let same = set(text, &[key]).unwrap();
        assert!(same.contains("marker.scheme.per-queue]\nthreshold = \"2KB\""));
        let text = "[transport]\ncontroller = \"reno\"";
        let from_name = set(text, &["transport.controller.dctcp.g=0.5"]).unwrap();
        assert_eq!(from_name, "[transport.controller.dctcp]\ng = 0.5\n");
        let text = "[[application]]\nrun = { requests = { value = \"1KB\" } }";
        let other = set(text, &["application.0.run.ping.interval=1ms"]).unwrap();
        assert_eq!(
            other,
            "[[application]]\n\n[application.run.ping]\ninterval = \"1ms\"\n"
        );
    }

    #[test]
    fn items_of_lists_go_by_number() {
        let text = "[[workload]]\npoisson = { load = 0.5 }";
        let new = set(text, &["workload.0.poisson.load=0.8"]).unwrap();
        assert_eq!(new, "[[workload]]\n\n[workload.poisson]\nload = 0.8\n");
        let other = set(text, &["workload.0.list=flows.csv"]).unwrap();
        assert_eq!(other, "[[workload]]\nlist = \"flows.csv\"\n");
        assert_eq!(
            set(text, &["workload.poisson.load=0.8"]).unwrap_err(),
            "workload is a list of 1: write workload.0 for its first"
        );
    }

    #[test]
    fn what_cannot_be_set_is_said() {
        assert_eq!(
            set("a = 1", &["a.b=2"]).unwrap_err(),
            "a is a number in the scenario, which has no keys: set a as a whole"
        );
        assert!(set("", &["a"]).unwrap_err().starts_with("a setting is"));
        assert!(set("", &["a..b=1"]).unwrap_err().starts_with("a key is"));
    }
}
