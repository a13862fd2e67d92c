//! Imported ports as TOML.

use std::fmt::Write as _;

use serde::Serialize;
use shallows_core::port::PortConfig;

use super::Imported;

impl Imported {
    /// The part `[ports]` of a scenario, with a comment for each note.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            let _ = writeln!(text, "# {note}");
        }
        text += "\n[ports]\n";
        if let Some(pool) = self.pool {
            let _ = writeln!(text, "pool = {}", value(&pool));
        }
        text += "\n[ports.switch]\n";
        for (key, value) in keys(&self.switch) {
            let _ = writeln!(text, "{key} = {value}");
        }
        for (links, port) in &self.special {
            let port = keys(port).map(|(key, value)| format!("{key} = {value}"));
            let port: Vec<String> = port.collect();
            let _ = writeln!(text, "\n[[ports.special]]\nlinks = {}", value(links));
            let _ = writeln!(text, "port = {{ {} }}", port.join(", "));
        }
        text
    }
}

/// The keys that an import sets; all others have their defaults.
fn keys(port: &PortConfig) -> impl Iterator<Item = (&'static str, String)> {
    let marker = &port.marker;
    let marker = format!(
        "{{ scheme = {}, not-ect = {} }}",
        value(&marker.scheme),
        value(&marker.not_ect)
    );
    let shaper = port.shaper.as_ref().map(|shaper| ("shaper", value(shaper)));
    let keys = [
        ("queues", port.queues.to_string()),
        ("classifier", value(&port.classifier)),
        ("buffer", value(&port.buffer)),
        ("scheduler", value(&port.scheduler)),
        ("marker", marker),
    ];
    keys.into_iter().chain(shaper)
}

/// A value as it is written after `=`.
fn value(part: &impl Serialize) -> String {
    match toml::Value::try_from(part) {
        Ok(value) => value.to_string(),
        // Every part of an imported port is a plain value; the scenario's reader says what is not.
        Err(error) => format!("\"{error}\""),
    }
}
