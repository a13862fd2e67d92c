//! JSON schema of scenario files, derived from the types that read them.

use std::sync::OnceLock;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::Value;

use crate::scenario::ScenarioConfig;

/// The JSON schema of scenario files, for editors.
pub fn schema() -> Schema {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<ScenarioConfig>();
    schema.insert("title".to_owned(), "Shallows scenario".into());
    RecursiveTransform(plain_description).transform(&mut schema);
    schema
}

/// Paths of the keys whose last part is a name, such as `workload.poisson.load` for `load`, a few
/// tables deep.
pub(crate) fn paths_to(name: &str) -> Vec<String> {
    let root = root();
    let mut paths = Vec::new();
    find_paths((root, root), (name, ""), 3, &mut paths);
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn find_paths(
    (root, schema): (&'static Value, &'static Value),
    (name, before): (&str, &str),
    depth: usize,
    paths: &mut Vec<String>,
) {
    for table in alternatives(root, schema) {
        for (key, inside) in table["properties"].as_object().into_iter().flatten() {
            let path = match before {
                "" => key.clone(),
                before => format!("{before}.{key}"),
            };
            if depth > 1 {
                find_paths((root, inside), (name, &path), depth - 1, paths);
            }
            if key == name {
                paths.push(path);
            }
        }
    }
}

fn root() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| schema().to_value())
}

/// Returns whether the value at a path of keys is one of several alternatives, of which each has a name: then
/// it has one key at a time.
pub(crate) fn is_choice(path: &[&str]) -> bool {
    let root = root();
    let mut found = alternatives(root, root);
    for name in path {
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        let inside = |of: &&'static Value| {
            if is_number {
                of.get("items")
            } else {
                of.get("properties")?.get(name)
            }
        };
        let inside: Vec<&Value> = found.iter().filter_map(inside).collect();
        found = inside
            .iter()
            .flat_map(|of| alternatives(root, of))
            .collect();
    }
    let tables = found.iter().filter_map(|of| of["properties"].as_object());
    let keys: Vec<usize> = tables.map(serde_json::Map::len).collect();
    let has_text = found
        .iter()
        .any(|of| of["type"] == "string" || of["enum"].is_array());
    keys.iter().all(|&keys| keys == 1) && keys.len() + usize::from(has_text) > 1 && !keys.is_empty()
}

/// The types that a value of this schema can have.
fn alternatives(root: &'static Value, schema: &'static Value) -> Vec<&'static Value> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or(name);
        return alternatives(root, &root["$defs"][name]);
    }
    let choices = ["anyOf", "oneOf", "allOf"].iter();
    let choices = choices.filter_map(|kind| schema[kind].as_array()).flatten();
    let mut found: Vec<&Value> = choices.flat_map(|of| alternatives(root, of)).collect();
    found.push(schema);
    found
}

/// Takes the links out of a description that was written for Rust's documentation.
fn plain_description(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace("[`", "`").replace("`]", "`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_known_from_the_types() {
        for (path, expected) in [
            ("topology", true),
            ("routing", true),
            ("workload", true),
            ("workload.0", true),
            ("workload.poisson.size", true),
            ("workload.poisson.size.cdf", false),
            ("workload.0.poisson.services", true),
            ("workload.poisson.counted", true),
            ("workload.udp.stream.send", true),
            ("workload.udp.stream", false),
            ("application.0.run", true),
            ("application.0.run.requests.pace", true),
            ("application.0", false),
            ("ports.switch.buffer", true),
            ("ports.switch.buffer.shared", false),
            ("ports.special.0.port.scheduler", true),
            ("ports.switch.classifier", true),
            ("ports.switch.marker.scheme", true),
            ("ports.switch.marker.scheme.red.average", true),
            ("ports.switch.marker.scheme.mq-ecn.update", true),
            ("ports.switch.marker.scheme.per-queue.threshold", false),
            ("ports.host", false),
            ("transport.controller", true),
            ("transports.0.set.controller", true),
            ("transport", false),
            ("probes.goodput", false),
            ("hosts.stages", false),
            ("no.such.key", false),
        ] {
            let names: Vec<&str> = path.split('.').collect();
            assert_eq!(is_choice(&names), expected, "{path}");
        }
    }
}
