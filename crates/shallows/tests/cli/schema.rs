//! The schema for editors, which is derived from the types that read scenarios, accepts what they
//! accept.

use std::fs;

use jsonschema::Validator;
use serde_json::{Value, json};
use shallows_core::port::{BufferConfig, SchedulerConfig, SchemeConfig};
use shallows_core::tcp::ControllerConfig;

use crate::{directory, read_text, shallows, shipped, with_tiny};

fn schema() -> Value {
    let output = shallows(&directory()).arg("schema").output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn check_scenario(name: &str, text: &str) {
    if let Err(error) = validator().validate(&json(text)) {
        panic!("{name}: {}: {error}", error.instance_path());
    }
}

fn validator() -> Validator {
    jsonschema::validator_for(&schema()).unwrap()
}

/// A scenario in the model of JSON.
fn json(text: &str) -> Value {
    let scenario: toml::Table = text.parse().unwrap();
    serde_json::to_value(scenario).unwrap()
}

#[test]
fn every_shipped_scenario_fits() {
    let entries = fs::read_dir(shipped(".")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file());
    let live = ["qjump/before.toml", "qjump/after.toml"];
    for path in files.chain(live.map(shipped)) {
        check_scenario(
            &path.display().to_string(),
            &fs::read_to_string(&path).unwrap(),
        );
    }
}

/// Settings of the tiny scenario that bring in keys with their defaults.
const RESOLVED: [&[&str]; 20] = [
    &[],
    &[
        "ports.switch.scheduler=strict",
        "ports.switch.marker.scheme=none",
    ],
    &["ports.switch.shaper={rate=\"1Gbps\", bucket=\"3KB\"}"],
    &["ports.switch.buffer.dynamic.alpha=1.0", "ports.pool=1MB"],
    &["transport.controller=cubic", "ports.host=as-switch"],
    &["transport.controller=ear", "transport.ecn=precise"],
    &["transport.controller=pfabric", "routing=spray"],
    &[
        "hosts.xco={directives=\"max-min\", controller=1, preempt-after=\"1ms\"}",
        "until=20ms",
    ],
    &[
        "hosts.xco={standby=true, weights=[{host=1, weight=4}], outages=[{crash=\"5ms\", restart=\"9ms\"}]}",
        "until=20ms",
    ],
    &["transport.delayed-ack={every=2, timeout=\"1ms\"}"],
    &["workload.permutation.size=1MB"],
    &["workload.all-to-all.size=1KB"],
    &["workload.incast={receiver=1, size=\"1KB\"}"],
    &["probes={queues={links=\"all\", interval=\"10us\"}, rtt=true, capture=\"*->h0\"}"],
    &["probes.flows={flows=[0, 3], interval=\"5us\"}"],
    &["links=[{link=\"h0<->*\", loss=0.01, down=\"1us\", up=\"2us\"}]"],
    &["ports.special=[{links=\"*->h0\", port={buffer=\"unlimited\", scheduler=\"fifo\"}}]"],
    &["connections=persistent"],
    &["workload.flows=[{src=1, dst=2, size=\"1KB\"}]"],
    &[
        "probes.ping=[{from=0, to=1}]",
        "until=10ms",
        "live.commands=[{host=0, run=\"true\"}]",
    ],
];

/// A resolved scenario has every key with its default.
#[test]
fn every_resolved_scenario_fits() {
    for settings in RESOLVED {
        let directory = with_tiny();
        let options = settings.iter().flat_map(|setting| ["--set", setting]);
        let run = shallows(&directory)
            .args(["run", "tiny.toml"])
            .args(options);
        run.assert().success();
        let text = read_text(&directory, "out/tiny/scenario.toml");
        check_scenario(&format!("{settings:?}"), &text);
    }
}

/// One of every scheme that there is, in place of what the quickstart has.
#[test]
fn every_scheme_fits() {
    let validator = validator();
    let quickstart = fs::read_to_string(shipped("quickstart.toml")).unwrap();
    let markers = SchemeConfig::EXAMPLES.map(|(_, value)| ("/ports/switch/marker/scheme", value));
    let schedulers = SchedulerConfig::EXAMPLES.map(|(_, value)| ("/ports/switch/scheduler", value));
    let buffers = BufferConfig::EXAMPLES.map(|(_, value)| ("/ports/switch/buffer", value));
    for (path, value) in markers.into_iter().chain(schedulers).chain(buffers) {
        let mut scenario = json(&quickstart);
        let value = json(&format!("value = {value}"));
        *scenario.pointer_mut(path).unwrap() = value["value"].clone();
        assert!(validator.is_valid(&scenario), "{value}");
    }
    for name in ControllerConfig::names() {
        for value in [json!(name), json!({ *name: {} })] {
            let mut scenario = json(&quickstart);
            scenario["transport"]["controller"] = value;
            assert!(validator.is_valid(&scenario), "{name}");
        }
    }
}

#[test]
fn what_is_wrong_does_not_fit() {
    let validator = validator();
    let text = fs::read_to_string(shipped("quickstart.toml")).unwrap();
    assert!(validator.is_valid(&json(&text)));
    for (from, to) in [
        ("queues = 8", "quees = 8"),
        ("\"10Gbps\"", "10"),
        ("\"10Gbps\"", "\"10Gb\""),
        ("\"300KB\"", "\"300 KiloBytes\""),
        ("\"20pkts\"", "20"),
        ("dwrr", "drr"),
        ("mq-ecn", "my-ecn"),
        ("quantum", "quantm"),
        ("leaves = 4", ""),
        ("leaves = 4", "leaves = -4"),
    ] {
        let wrong = text.replace(from, to);
        assert_ne!(wrong, text, "{from}");
        assert!(!validator.is_valid(&json(&wrong)), "{from} -> {to}");
    }
}

/// Editors show these texts to users, so each says what a key is, as a noun or a sentence.
#[test]
fn descriptions_are_nouns_or_sentences() {
    let mut descriptions = Vec::new();
    collect_descriptions(&schema(), "", &mut descriptions);
    assert!(descriptions.len() > 500, "{}", descriptions.len());
    let openings = [
        "What", "How", "When", "Where", "Which", "Who", "Whose", "Why", "From", "Of",
    ];
    let phrases = [
        "in place of",
        " so many",
        " so much",
        " is none",
        " beside ",
    ];
    let is_odd = |text: &str| {
        let first = text.split([' ', '.', ',', ':']).next().unwrap_or_default();
        openings.contains(&first) || phrases.iter().any(|phrase| text.contains(phrase))
    };
    let odd: Vec<String> = descriptions
        .iter()
        .filter(|(_, text)| is_odd(text))
        .map(|(place, text)| format!("{place}: {text}"))
        .collect();
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}

fn collect_descriptions(value: &Value, place: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member.as_str().filter(|_| key == "description") {
                    Some(text) => found.push((place.to_owned(), text.to_owned())),
                    None => collect_descriptions(member, &format!("{place}/{key}"), found),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_descriptions(item, place, found);
            }
        }
        _ => {}
    }
}
