//! Scenarios from Python: files or dicts, with settings on top.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use shallows_core::registry::Registry;
use shallows_run::examples::{Example, ExampleKind, read_text};
use shallows_run::scenario::{Scenario, Setting};
use shallows_run::{Diagnostic, Failure};

use crate::failure::exception;
use crate::marker::{Problem, registry};

/// A scenario as Python gives it: the path of a file or a text in JSON that errors call by that
/// path, keys with values in JSON on top, and markers by name.
#[derive(FromPyObject)]
pub(crate) struct Source<'py> {
    path: String,
    text: Option<String>,
    settings: Vec<(String, String)>,
    markers: Bound<'py, PyDict>,
    /// Text of the file, if it was read before.
    content: Option<String>,
}

/// The same with the markers in a registry, for work without the interpreter.
pub(crate) struct Resolved {
    path: String,
    text: Option<String>,
    settings: Vec<(String, String)>,
    registry: Registry,
    content: Option<String>,
}

impl Source<'_> {
    /// Exceptions of markers are kept in `problem`.
    pub(crate) fn with_registry(self, problem: &Arc<Problem>) -> PyResult<Resolved> {
        Ok(Resolved {
            registry: registry(&self.markers, problem)?,
            path: self.path,
            text: self.text,
            settings: self.settings,
            content: self.content,
        })
    }

    /// The scenario, for what runs no marker.
    fn scenario(self) -> PyResult<Result<Scenario, Failure>> {
        Ok(self.with_registry(&Arc::default())?.scenario())
    }
}

impl Resolved {
    /// Reads the scenario.
    pub(crate) fn scenario(&self) -> Result<Scenario, Failure> {
        let (path, settings) = (Path::new(&self.path), in_toml(&self.settings)?);
        Ok(match (&self.text, &self.content) {
            (Some(json), _) => {
                let text = text_in_toml(json)?;
                Scenario::parse_in(path, &text, &settings, Path::new(""), &self.registry)?
            }
            (None, Some(text)) => Scenario::of_file((path, text), &settings, &self.registry)?,
            (None, None) => Scenario::read_with(path, &settings, &self.registry)?,
        })
    }
}

fn in_toml(settings: &[(String, String)]) -> Result<Vec<Setting>, Failure> {
    let setting = |(key, json): &(String, String)| {
        let wrong = || no_value(&format!("{key}: {json}"));
        let value: serde_json::Value = serde_json::from_str(json).map_err(|_| wrong())?;
        // Seeds are larger than any integer of TOML.
        if let serde_json::Value::Number(number) = value {
            return Ok(Setting::new(format!("{key}={number}")));
        }
        let value = toml::Value::try_from(value).map_err(|_| wrong())?;
        Ok(Setting::new(format!("{key}={value}")))
    };
    settings.iter().map(setting).collect()
}

fn text_in_toml(json: &str) -> Result<String, Failure> {
    let value: serde_json::Value = serde_json::from_str(json).map_err(|_| no_value(json))?;
    toml::to_string(&value).map_err(|error| no_value(&error.to_string()))
}

fn no_value(what: &str) -> Failure {
    Failure::Scenario(Diagnostic::new(format!("{what} is no value of a scenario")))
}

fn failure(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::Run(error.into())
}

/// The keys of a scenario as JSON, with settings on top and nothing checked but the syntax. A file
/// that cannot be read has none: whoever runs it is told.
#[pyfunction]
pub(crate) fn keys(py: Python<'_>, source: Source<'_>) -> PyResult<String> {
    let Source {
        path,
        text,
        settings,
        markers: _,
        content,
    } = source;
    let keys = || -> Result<String, Failure> {
        let (path, settings) = (Path::new(&path), in_toml(&settings)?);
        let text = match (&text, &content) {
            (Some(json), _) => text_in_toml(json)?,
            (None, Some(text)) => text.clone(),
            (None, None) => read_text(path).unwrap_or_default().into_owned(),
        };
        let keys = Scenario::keys(path, &text, &settings)?;
        serde_json::to_string(&keys).map_err(failure)
    };
    keys().map_err(|failure| exception(py, &failure))
}

/// Text of a scenario file, or of an example by its name.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, path: &str) -> PyResult<String> {
    let text = read_text(Path::new(path)).map_err(Failure::Scenario);
    text.map(Into::into)
        .map_err(|failure| exception(py, &failure))
}

/// How many hosts a scenario has.
#[pyfunction]
pub(crate) fn hosts(py: Python<'_>, source: Source<'_>) -> PyResult<u32> {
    let hosts = |scenario: Scenario| Ok(scenario.fabric()?.hosts());
    let hosts = source.scenario()?.and_then(hosts);
    hosts.map_err(|failure| exception(py, &failure))
}

/// The scenario with every key, as JSON.
#[pyfunction]
pub(crate) fn resolve(py: Python<'_>, source: Source<'_>) -> PyResult<String> {
    let json = |scenario: Scenario| serde_json::to_string(&scenario.config).map_err(failure);
    let resolved = source.scenario()?.and_then(json);
    resolved.map_err(|failure| exception(py, &failure))
}

/// Tries every part of a scenario, without running it.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, source: Source<'_>) -> PyResult<()> {
    let build = |scenario: Scenario| Ok(scenario.build().map(drop)?);
    let checked = source.scenario()?.and_then(build);
    checked.map_err(|failure| exception(py, &failure))
}

/// The keys of a scenario that is built in, as JSON.
#[pyfunction]
pub(crate) fn example(py: Python<'_>, name: &str) -> PyResult<String> {
    let keys = || -> Result<String, Failure> {
        let example = Example::find(name).filter(|of| of.kind == ExampleKind::Scenario);
        let example = example.ok_or_else(|| {
            let names: Vec<&str> = examples().into_iter().map(|(name, _)| name).collect();
            let names = names.join(", ");
            Diagnostic::new(format!("there is no example {name:?}; there are: {names}"))
        })?;
        let keys = Scenario::keys(Path::new(name), example.text, &[])?;
        serde_json::to_string(&keys).map_err(failure)
    };
    keys().map_err(|failure| exception(py, &failure))
}

/// Names and first sentences of the scenarios that are built in.
#[pyfunction]
pub(crate) fn examples() -> Vec<(&'static str, String)> {
    let all = Example::ALL.iter();
    let scenarios = all.filter(|example| example.kind == ExampleKind::Scenario);
    scenarios
        .map(|example| (example.name, example.summary()))
        .collect()
}

/// The JSON schema of scenarios.
#[pyfunction]
pub(crate) fn schema() -> String {
    shallows_run::schema().as_value().to_string()
}
