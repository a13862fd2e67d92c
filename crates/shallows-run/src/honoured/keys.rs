//! The keys of the schema.

use std::collections::BTreeSet;

use serde_json::Value;

/// Tables of one type, of which each key needs one example only. `*` is any name.
const ALIKE: [(&str, &str); 7] = [
    ("ports.host", "ports.switch"),
    ("ports.special.#.port", "ports.switch"),
    ("transports.#.set", "transport"),
    ("workload.#", "workload"),
    ("workload.permutation", "workload.poisson"),
    ("workload.all-to-all", "workload.poisson"),
    ("workload.incast", "workload.poisson"),
];

/// Tables of workloads that are of one type.
const SHARED: [&str; 2] = ["size", "services"];

/// Keys that can be a rule (a length by a round-trip time) instead of a value.
const RULES: [&str; 6] = ["threshold", "port", "queue", "enqueue", "dequeue", "k-min"];

/// Every key that has a value, in its [normal](normal) form.
pub(super) fn of_schema() -> BTreeSet<String> {
    let schema = crate::schema().to_value();
    let mut keys = BTreeSet::new();
    walk(
        &schema,
        &schema,
        &mut Vec::new(),
        &mut Vec::new(),
        &mut keys,
    );
    keys
}

fn walk(
    root: &Value,
    schema: &Value,
    path: &mut Vec<String>,
    inside: &mut Vec<String>,
    keys: &mut BTreeSet<String>,
) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        // A type within itself has no other keys than the first time.
        if !inside.contains(&name) {
            let definition = &root["$defs"][&name];
            inside.push(name);
            walk(root, definition, path, inside, keys);
            inside.pop();
        }
        return;
    }
    let mut is_value = true;
    for kind in ["anyOf", "oneOf", "allOf"] {
        for choice in schema[kind].as_array().into_iter().flatten() {
            is_value = false;
            if choice["type"] != "null" {
                walk(root, choice, path, inside, keys);
            }
        }
    }
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        is_value = false;
        path.push(key.clone());
        walk(root, inner, path, inside, keys);
        path.pop();
    }
    if schema["items"].is_object() {
        is_value = false;
        path.push("#".to_owned());
        walk(root, &schema["items"], path, inside, keys);
        path.pop();
    }
    if is_value {
        keys.insert(normal(&path.join(".")));
    }
}

/// A key without the numbers of list items, and under the first of equal tables.
pub(super) fn normal(key: &str) -> String {
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let names = key
        .split('.')
        .map(|name| if is_number(name) { "#" } else { name });
    let mut names: Vec<&str> = names.collect();
    while names.last() == Some(&"#") {
        names.pop();
    }
    let mut key = names.join(".");
    for (table, first) in ALIKE {
        let rest = key
            .strip_prefix(table)
            .and_then(|rest| rest.strip_prefix('.'));
        let is_workload = first == "workload.poisson";
        let is_shared = |rest: &str| SHARED.contains(&rest.split('.').next().unwrap_or(rest));
        if let Some(rest) = rest.filter(|rest| !is_workload || is_shared(rest)) {
            key = format!("{first}.{rest}");
        }
    }
    let mut ends = key.rsplit('.');
    let (last, before) = (ends.next(), ends.find(|name| *name != "#"));
    match (before, last) {
        (Some(rule), Some(last @ ("lambda" | "rtt"))) if RULES.contains(&rule) => {
            format!("ports.switch.marker.scheme.per-queue.threshold.{last}")
        }
        _ => key,
    }
}
