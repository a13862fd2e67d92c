//! Every key of the schema is honoured or refused by its name, in each world.
//!
//! `tests/keys.toml` has two values for each key. A world honours the key if it plans different runs
//! for them. A key that the file lacks fails the test.

mod keys;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, fs};

use serde::Deserialize;
use toml::Value;

use crate::plan::RunPlan;
use crate::scenario::{Diagnostic, Scenario, Setting};

/// A scenario, and two values for each key of it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Group {
    /// Settings on top of the file's scenario.
    #[serde(default)]
    with: Vec<String>,
    /// Another group has the reason why this scenario cannot run live.
    #[serde(default)]
    simulated_only: bool,
    /// Two values, or one to set what is not set else. A value that needs other settings is
    /// `{ value, with }`.
    keys: BTreeMap<String, Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Examples {
    scenario: String,
    group: Vec<Group>,
}

/// A world in which scenarios run.
struct World {
    name: &'static str,
    /// Everything that a run of a scenario would start from.
    plan: fn(&Scenario) -> Result<String, Diagnostic>,
    /// Keys, or tables of keys, that change nothing here, with the reason.
    without_effect: &'static [(&'static str, &'static str)],
    /// True if it may refuse keys of the other.
    refuses: bool,
}

const SIMULATED: World = World {
    name: "simulated",
    plan: simulated,
    without_effect: &[("live", "of live runs"), ("version", "of the file itself")],
    refuses: false,
};

#[cfg(live)]
const LIVE: World = World {
    name: "live",
    plan: crate::live::plan_of,
    without_effect: &[
        ("transport.rto.initial", "the report says so"),
        ("transport.delayed-ack.timeout", "the report says so"),
        ("routing", "a tree has one path between two hosts"),
        ("version", "of the file itself"),
    ],
    refuses: true,
};

fn simulated(scenario: &Scenario) -> Result<String, Diagnostic> {
    let plan = scenario.build()?;
    let settings = plan.settings(1)?;
    let RunPlan {
        model,
        probes,
        size_classes,
        scenario: _,
    } = &plan;
    let config = &scenario.config;
    Ok(format!(
        "{model:?} {settings:?} {probes:?} {size_classes:?} {:?} {:?} {:?}",
        config.report, config.name, config.measure
    ))
}

fn examples() -> Examples {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keys.toml");
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

impl World {
    /// The reason why two values of a key are neither honoured nor refused here, if so.
    fn complaint(
        &self,
        text: &str,
        with: &[String],
        key: &str,
        values: &[Value],
    ) -> Option<String> {
        let plans = match values {
            [one] => [
                self.try_with(text, with, None),
                self.try_with(text, with, Some((key, one))),
            ],
            [one, other] => [one, other].map(|value| self.try_with(text, with, Some((key, value)))),
            _ => return Some("one or two values are expected".to_owned()),
        };
        let is_silent = |(table, _): &(&str, &str)| {
            key == *table
                || key
                    .strip_prefix(table)
                    .is_some_and(|rest| rest.starts_with('.'))
        };
        let is_silent = self.without_effect.iter().any(is_silent);
        match plans {
            [Ok(one), Ok(other)] if one != other => None,
            [Ok(_), Ok(_)] if is_silent => None,
            [Ok(_), Ok(_)] => Some("is ignored".to_owned()),
            [Err(refusal), _] | [_, Err(refusal)] => {
                // The key, or the table that is refused as a whole: its last two names.
                let is_name = |part: &&str| part.parse::<u32>().is_err();
                let mut names = key.rsplit('.').filter(is_name).take(2);
                let words = refusal.split(|of: char| !of.is_alphanumeric() && of != '-');
                let words: BTreeSet<&str> = words.collect();
                let named = names.any(|name| words.contains(name));
                (!self.refuses || !named).then(|| format!("is refused: {refusal}"))
            }
        }
    }

    fn try_with(
        &self,
        text: &str,
        with: &[String],
        key: Option<(&str, &Value)>,
    ) -> Result<String, String> {
        let mut settings: Vec<Setting> = with.iter().map(Setting::new).collect();
        if let Some((key, value)) = key {
            let more = value.get("with").and_then(Value::as_array);
            let more = more.into_iter().flatten().filter_map(Value::as_str);
            settings.extend(more.map(Setting::new));
            let value = value.get("value").unwrap_or(value);
            settings.push(Setting::new(format!("{key}={value}")));
        }
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = shallows_core::registry::Registry::default();
        let path = Path::new("keys.toml");
        let scenario = Scenario::parse_in(path, text, &settings, &base, &registry);
        let planned = scenario.and_then(|scenario| (self.plan)(&scenario));
        planned.map_err(|error| error.to_string())
    }

    fn check(&self) {
        let Examples { scenario, group } = examples();
        let elsewhere = ELSEWHERE.iter().flat_map(|of| of.groups(&group));
        let elsewhere: Vec<Group> = elsewhere.collect();
        let mut complaints = Vec::new();
        let here = group
            .iter()
            .chain(&elsewhere)
            .filter(|of| !(of.simulated_only && self.refuses));
        for Group { with, keys, .. } in here {
            for (key, values) in keys {
                let complaint = self.complaint(&scenario, with, key, values);
                complaints.extend(complaint.map(|of| format!("{key} {of} ({with:?})")));
            }
        }
        let (name, count) = (self.name, complaints.len());
        assert!(
            count == 0,
            "{count} keys, {name}:\n{}",
            complaints.join("\n")
        );
    }
}

/// Another place for the keys of a table, and a setting that makes it.
struct Elsewhere {
    table: &'static str,
    place: &'static str,
    with: &'static str,
}

const ELSEWHERE: [Elsewhere; 4] = [
    Elsewhere {
        table: "ports.switch",
        place: "ports.host",
        with: "ports.host={ queues = 2, buffer = { shared = { size = '100KB' } }, \
               scheduler = { dwrr = { quantum = '1500B' } }, \
               marker = { scheme = { per-queue = { threshold = '30KB' } } } }",
    },
    Elsewhere {
        table: "ports.switch",
        place: "ports.special.0.port",
        with: "ports.special=[{ links = '*->h1', port = { queues = 2, \
               buffer = { shared = { size = '100KB' } }, \
               scheduler = { dwrr = { quantum = '1500B' } }, \
               marker = { scheme = { per-queue = { threshold = '30KB' } } } } }]",
    },
    Elsewhere {
        table: "transport",
        place: "transports.0.set",
        with: "transports=[{ services = [0], set = {} }]",
    },
    Elsewhere {
        table: "workload",
        place: "workload.0",
        with: "workload=[{ flows = [{ start = '0s', src = 0, dst = 1, size = '1MB', service = 0 }] }]",
    },
];

impl Elsewhere {
    /// A key or setting of the table, in the other place; others as they are.
    fn moved(&self, key: &str) -> String {
        match key.strip_prefix(self.table) {
            Some(rest) if rest.starts_with(['.', '=']) => format!("{}{rest}", self.place),
            _ => key.to_owned(),
        }
    }

    fn moved_value(&self, value: &Value) -> Value {
        let mut value = value.clone();
        let more = value.get_mut("with").and_then(Value::as_array_mut);
        for setting in more.into_iter().flatten() {
            *setting = Value::String(self.moved(setting.as_str().unwrap_or_default()));
        }
        value
    }

    /// The keys of the table in each group, in the other place.
    fn groups(&self, groups: &[Group]) -> Vec<Group> {
        let keys = |group: &Group| {
            let inside = group
                .keys
                .iter()
                .filter(|(key, _)| self.moved(key) != **key);
            let moved = inside.map(|(key, values)| {
                let values = values.iter().map(|value| self.moved_value(value));
                (self.moved(key), values.collect())
            });
            moved.collect()
        };
        let with = |group: &Group| {
            let moved = group.with.iter().map(|setting| self.moved(setting));
            [self.with.to_owned()].into_iter().chain(moved).collect()
        };
        let moved = groups.iter().map(|group| Group {
            with: with(group),
            simulated_only: group.simulated_only,
            keys: keys(group),
        });
        moved.collect()
    }
}

#[test]
fn a_simulation_honours_every_key() {
    SIMULATED.check();
}

#[cfg(live)]
#[test]
fn a_live_run_honours_or_refuses_every_key() {
    LIVE.check();
}

#[test]
fn every_key_of_the_schema_has_an_example() {
    let known = keys::of_schema();
    let groups = examples().group;
    let used = groups.iter().flat_map(|group| group.keys.keys());
    let used: BTreeSet<String> = used.map(|key| keys::normal(key)).collect();
    let missing: Vec<_> = known.difference(&used).collect();
    assert!(missing.is_empty(), "tests/keys.toml lacks {missing:#?}");
    let unknown: Vec<_> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "the schema lacks {unknown:#?}");
}
