//! The difference of two configurations.

use serde::Serialize;
use serde_json::{Map, Value};

/// One step of a JSON patch (RFC 6902).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// Adds a member.
    Add {
        /// JSON pointer of the member.
        path: String,
        /// Its value.
        value: Value,
    },
    /// Replaces the value of a member.
    Replace {
        /// Path of the member.
        path: String,
        /// Its new value.
        value: Value,
    },
    /// Removes a member.
    Remove {
        /// Path of the member.
        path: String,
    },
}

/// The steps from one configuration to the other: tables, rows, fields.
pub(super) fn diff(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<Operation> {
    let mut steps = Vec::new();
    objects("", before, after, &mut steps);
    steps
}

fn objects(
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    steps: &mut Vec<Operation>,
) {
    for (key, old) in before {
        let path = join(path, key);
        match (old, after.get(key)) {
            (_, None) => steps.push(Operation::Remove { path }),
            (old, Some(new)) if old == new => {}
            (Value::Object(old), Some(Value::Object(new))) => objects(&path, old, new, steps),
            (_, Some(new)) => {
                let value = new.clone();
                steps.push(Operation::Replace { path, value });
            }
        }
    }
    for (key, new) in after {
        if !before.contains_key(key) {
            let (path, value) = (join(path, key), new.clone());
            steps.push(Operation::Add { path, value });
        }
    }
}

/// A pointer to a member (RFC 6901).
fn join(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The rows that differ, whole. What is removed is not in it.
pub(super) fn fragment(before: &Map<String, Value>, after: &Map<String, Value>) -> Value {
    let mut tables = Map::new();
    for (name, table) in after {
        let (old, new) = (before.get(name), table.as_object());
        let rows = new.into_iter().flatten();
        let changed = rows.filter(|(key, row)| old.and_then(|old| old.get(*key)) != Some(*row));
        let changed: Map<String, Value> = changed
            .map(|(key, row)| (key.clone(), row.clone()))
            .collect();
        if !changed.is_empty() {
            tables.insert(name.clone(), Value::Object(changed));
        }
    }
    Value::Object(tables)
}
