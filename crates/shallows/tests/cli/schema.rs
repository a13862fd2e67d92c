//! The schema for editors agrees with the program.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::{directory, read_text, shallows, shipped, with_tiny};

fn schema() -> Value {
    let output = shallows(&directory()).arg("schema").output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// As much of JSON Schema as ours uses.
fn check(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root
            .pointer(&reference[1..])
            .expect("references lead somewhere");
        check(root, target, value, path)?;
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = |choice: &&Value| check(root, choice, value, path).is_ok();
        match choices.iter().filter(fits).count() {
            1 => {}
            count => return Err(format!("{path}: {count} of oneOf fit {value}")),
        }
    }
    if let Some(names) = schema["enum"].as_array()
        && !names.contains(value)
    {
        return Err(format!("{path}: {value} is not one of {names:?}"));
    }
    check_type(&schema["type"], value).map_err(|problem| format!("{path}: {problem}"))?;
    if let (Some(minimum), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
        && number < minimum
    {
        return Err(format!("{path}: {number} is below {minimum}"));
    }
    match value {
        Value::Object(_) => check_object(root, schema, value, path),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            let path = format!("{path}[{index}]");
            check(root, &schema["items"], item, &path)
        }),
        _ => Ok(()),
    }
}

fn check_type(types: &Value, value: &Value) -> Result<(), String> {
    let has = |name: &Value| match name.as_str().expect("a type is a name") {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the test does not know the type {other}"),
    };
    let fits = match types {
        Value::Null => true,
        Value::Array(names) => names.iter().any(has),
        name => has(name),
    };
    if fits {
        Ok(())
    } else {
        Err(format!("{value} is no {types}"))
    }
}

fn check_object(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let object = value.as_object().expect("the caller has looked");
    for name in schema["required"].as_array().into_iter().flatten() {
        if !object.contains_key(name.as_str().expect("a key is a text")) {
            return Err(format!("{path}: {name} is missing"));
        }
    }
    let count = object.len() as u64;
    if schema["maxProperties"]
        .as_u64()
        .is_some_and(|most| count > most)
        || schema["minProperties"]
            .as_u64()
            .is_some_and(|least| count < least)
    {
        return Err(format!("{path}: {count} keys"));
    }
    for (name, value) in object {
        match &schema["properties"][name] {
            Value::Null if schema["additionalProperties"] == false => {
                return Err(format!("{path}: {name} is unknown"));
            }
            property => check(root, property, value, &format!("{path}.{name}"))?,
        }
    }
    Ok(())
}

fn check_scenario(name: &str, text: &str) {
    let scenario: toml::Table = text.parse().unwrap();
    let scenario = serde_json::to_value(scenario).unwrap();
    let schema = schema();
    if let Err(problem) = check(&schema, &schema, &scenario, name) {
        panic!("{problem}");
    }
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

/// A resolved scenario has every key with its default.
#[test]
fn every_resolved_scenario_fits() {
    for options in [
        &[][..],
        &[
            "--set",
            "ports.switch.scheduler=strict",
            "--set",
            "ports.switch.marker.scheme=none",
        ],
        &[
            "--set",
            "ports.switch.shaper={rate=\"1Gbps\", bucket=\"3KB\"}",
        ],
        &[
            "--set",
            "ports.switch.buffer.dynamic.alpha=1.0",
            "--set",
            "ports.pool=1MB",
        ],
        &[
            "--set",
            "transport.controller=cubic",
            "--set",
            "ports.host=as-switch",
        ],
        &[
            "--set",
            "transport.controller=ear",
            "--set",
            "transport.ecn=precise",
        ],
        &[
            "--set",
            "transport.controller=pfabric",
            "--set",
            "routing=spray",
        ],
        &["--set", "transport.delayed-ack={every=2, timeout=\"1ms\"}"],
        &["--set", "workload.permutation.size=1MB"],
        &["--set", "workload.all-to-all.size=1KB"],
        &["--set", "workload.incast={receiver=1, size=\"1KB\"}"],
        &[
            "--set",
            "probes={queues={links=\"all\", interval=\"10us\"}, rtt=true, capture=\"*->h0\"}",
        ],
        &["--set", "probes.flows={flows=[0, 3], interval=\"5us\"}"],
        &[
            "--set",
            "links=[{link=\"h0<->*\", loss=0.01, down=\"1us\", up=\"2us\"}]",
        ],
        &[
            "--set",
            "ports.special=[{links=\"*->h0\", port={buffer=\"unlimited\", scheduler=\"fifo\"}}]",
        ],
        &["--set", "connections=persistent"],
        &["--set", "workload.flows=[{src=1, dst=2, size=\"1KB\"}]"],
        &[
            "--set",
            "live.probes=[{from=0, to=1}]",
            "--set",
            "live.commands=[{host=0, run=\"true\"}]",
        ],
    ] {
        let directory = with_tiny();
        let run = shallows(&directory)
            .args(["run", "tiny.toml"])
            .args(options);
        run.assert().success();
        let text = read_text(&directory, "out/tiny/scenario.toml");
        check_scenario(&format!("{options:?}"), &text);
    }
}

#[test]
fn what_is_wrong_does_not_fit() {
    let schema = schema();
    let text = fs::read_to_string(shipped("quickstart.toml")).unwrap();
    for (from, to) in [
        ("queues = 8", "quees = 8"),
        ("\"10Gbps\"", "10"),
        ("dwrr", "drr"),
        ("leaves = 4", ""),
        ("leaves = 4", "leaves = -4"),
    ] {
        let text = text.replace(from, to);
        let scenario: toml::Table = text.parse().unwrap();
        let scenario = serde_json::to_value(scenario).unwrap();
        assert!(
            check(&schema, &schema, &scenario, "").is_err(),
            "{from} -> {to}"
        );
    }
}

/// The program says what it expects where it finds an unknown name; the schema must say the same.
#[test]
#[expect(clippy::too_many_lines, reason = "most of it is a table")]
fn names_are_those_of_the_program() {
    let schema = schema();
    for (table, definition) in [
        ("", ""),
        ("report", "/properties/report"),
        ("live", "/properties/live"),
        ("probes", "/$defs/probes"),
        ("topology", "/$defs/topology"),
        (
            "topology.leaf-spine",
            "/$defs/topology/properties/leaf-spine",
        ),
        ("topology.fat-tree", "/$defs/topology/properties/fat-tree"),
        ("topology.dumbbell", "/$defs/topology/properties/dumbbell"),
        ("topology.chain", "/$defs/topology/properties/chain"),
        ("topology.custom", "/$defs/topology/properties/custom"),
        ("ports", "/$defs/ports"),
        ("ports.switch", "/$defs/port"),
        ("ports.switch.marker", "/$defs/port/properties/marker"),
        (
            "ports.switch.marker.measure",
            "/$defs/port/properties/marker/properties/measure",
        ),
        ("ports.switch.marker.scheme", "/$defs/scheme"),
        (
            "ports.switch.marker.scheme.mq-ecn",
            "/$defs/scheme/oneOf/1/properties/mq-ecn",
        ),
        (
            "ports.switch.marker.scheme.ml-ecn",
            "/$defs/scheme/oneOf/1/properties/ml-ecn",
        ),
        (
            "ports.switch.marker.scheme.red",
            "/$defs/scheme/oneOf/1/properties/red",
        ),
        (
            "ports.switch.marker.scheme.tcn",
            "/$defs/scheme/oneOf/1/properties/tcn",
        ),
        (
            "ports.switch.marker.scheme.pmsb",
            "/$defs/scheme/oneOf/1/properties/pmsb",
        ),
        (
            "ports.switch.marker.scheme.cedm",
            "/$defs/scheme/oneOf/1/properties/cedm",
        ),
        (
            "ports.switch.marker.scheme.a-ecn",
            "/$defs/scheme/oneOf/1/properties/a-ecn",
        ),
        (
            "ports.switch.marker.scheme.mm-ecn",
            "/$defs/scheme/oneOf/1/properties/mm-ecn",
        ),
        ("ports.switch.scheduler", "/$defs/scheduler"),
        (
            "ports.switch.scheduler.strict-over",
            "/$defs/scheduler/oneOf/1/properties/strict-over",
        ),
        ("ports.switch.buffer", "/$defs/buffer"),
        ("ports.switch.classifier", "/$defs/classifier"),
        (
            "ports.switch.classifier.size-class",
            "/$defs/classifier/oneOf/1/properties/size-class",
        ),
        ("transport", "/$defs/transport"),
        ("transport.rto", "/$defs/transport/properties/rto"),
        ("transport.controller", "/$defs/controller"),
        (
            "transport.controller.cubic",
            "/$defs/controller/oneOf/1/properties/cubic",
        ),
        (
            "transport.controller.dctcp",
            "/$defs/controller/oneOf/1/properties/dctcp",
        ),
        (
            "transport.controller.delay-dctcp",
            "/$defs/controller/oneOf/1/properties/delay-dctcp",
        ),
        (
            "transport.controller.ear",
            "/$defs/controller/oneOf/1/properties/ear",
        ),
        (
            "transport.controller.pfabric",
            "/$defs/controller/oneOf/1/properties/pfabric",
        ),
        ("workload", "/$defs/workload"),
        ("workload.poisson", "/$defs/workload/properties/poisson"),
        ("workload.poisson.services", "/$defs/services"),
        ("workload.poisson.size", "/$defs/size"),
        (
            "workload.poisson.locality",
            "/$defs/workload/properties/poisson/properties/locality",
        ),
        (
            "workload.permutation",
            "/$defs/workload/properties/permutation",
        ),
        (
            "workload.all-to-all",
            "/$defs/workload/properties/all-to-all",
        ),
        ("workload.incast", "/$defs/workload/properties/incast"),
        ("workload.udp", "/$defs/workload/properties/udp"),
        (
            "workload.udp.stream",
            "/$defs/workload/properties/udp/properties/stream",
        ),
        ("hosts", "/properties/hosts"),
        ("hosts.qjump", "/properties/hosts/properties/qjump"),
        (
            "hosts.qjump.network",
            "/properties/hosts/properties/qjump/properties/network",
        ),
        ("routing", "/$defs/routing"),
    ] {
        let of_schema = names(schema.pointer(definition).expect(definition));
        assert_eq!(expected_by_program(table), of_schema, "{table}");
    }
}

/// The names that a definition allows, as words or as keys.
fn names(definition: &Value) -> BTreeSet<String> {
    let text = |name: &Value| name.as_str().expect("a name is a text").to_owned();
    let words = definition["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .map(text);
    let keys = definition["properties"].as_object().into_iter().flatten();
    let keys = keys.map(|(key, _)| key.clone());
    let choices = definition["oneOf"].as_array().into_iter().flatten();
    words.chain(keys).chain(choices.flat_map(names)).collect()
}

fn expected_by_program(table: &str) -> BTreeSet<String> {
    let directory = with_tiny();
    let setting = format!("{table}.unheard-of={{}}");
    let setting = setting.trim_start_matches('.');
    let run = shallows(&directory).args(["run", "tiny.toml", "--set", setting]);
    let output = run.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    let (_, names) = message
        .split_once("expected one of ")
        .or_else(|| message.split_once("= expected "))
        .unwrap_or_else(|| panic!("{setting}: {message}"));
    names.trim().split(", ").map(str::to_owned).collect()
}
