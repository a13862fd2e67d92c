//! Scenario files.

mod build;
mod config;
mod diagnostic;
mod document;
mod faults;
#[cfg(test)]
mod fuzz;
mod inputs;
mod links;
mod live;
mod memory;
mod probes;
mod setting;
mod source;
pub(crate) mod value;

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize as _;
use shallows_core::keyed::Keyed;
use shallows_core::port::{ConfigError, PortConfig, SchedulerConfig, SchemeConfig};
use shallows_core::registry::{Registry, UnknownName};
use shallows_core::tcp::{ControllerConfig, TcpConfig};
use toml::Spanned;
use toml::de::DeTable;

use crate::examples::read_text;
pub use config::{HostPort, Ports, Report, ScenarioConfig, SpecialPort, TransportFor, Workloads};
pub use diagnostic::Diagnostic;
pub(crate) use diagnostic::nearest;
pub use document::Document;
use faults::Faults;
use inputs::Streams;
pub use links::name as link_name;
pub use live::{LatencyFormat, Live, LiveCommand, LiveXco, Role};
pub use probes::{PingProbe, Pings, Probes, ProbesConfig, Sampled};
use source::Source;

/// A scenario and where each of its keys comes from.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Parsed keys.
    pub config: ScenarioConfig,
    source: Source,
    settings: Vec<Setting>,
    /// Directory that relative paths start from.
    base: PathBuf,
    /// Files that can be read only once.
    streams: Streams,
    /// Schemes of other crates that it may name.
    registry: Registry,
}

/// A key that is set on top of a scenario's file.
#[derive(Clone, Debug)]
pub struct Setting {
    /// As the user wrote it, such as `--seed 3`.
    pub shown: String,
    /// The setting, as `key=value`.
    pub assignment: String,
}

impl Setting {
    /// A setting that is shown as it is written.
    pub fn new(assignment: impl Into<String>) -> Self {
        let assignment = assignment.into();
        Self {
            shown: assignment.clone(),
            assignment,
        }
    }
}

impl FromStr for Scenario {
    type Err = Diagnostic;

    /// Reads a scenario from its text. Paths in it are relative to the current directory.
    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        Self::parse(Path::new("scenario"), text, &[])
    }
}

impl Scenario {
    /// Reads a scenario file, or one that is built in by its name. Paths in a file are relative to
    /// its directory.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Diagnostic> {
        Self::read(path.as_ref(), &[])
    }

    /// Sets a key, such as `"transport.controller=reno"`. A wrong one leaves everything as it was.
    pub fn set(&mut self, assignment: &str) -> Result<&mut Self, Diagnostic> {
        let mut settings = self.settings.clone();
        settings.push(Setting::new(assignment));
        let Self { source, base, .. } = self;
        let source = (source.path(), source.text());
        let streams = self.streams.clone();
        let mut changed = Self::with(source, &settings, base, streams, &self.registry)?;
        if changed.config.name.is_none() {
            changed.config.name.clone_from(&self.config.name);
        }
        *self = changed;
        Ok(self)
    }

    /// Reads a scenario file with some of its keys set anew.
    pub fn read(path: &Path, settings: &[Setting]) -> Result<Self, Diagnostic> {
        Self::read_with(path, settings, &Registry::default())
    }

    /// Reads a scenario file that may name markers, schedulers and congestion controllers of
    /// `registry`.
    pub fn read_with(
        path: &Path,
        settings: &[Setting],
        registry: &Registry,
    ) -> Result<Self, Diagnostic> {
        Self::of_file((path, &read_text(path)?), settings, registry)
    }

    /// Reads a scenario file whose text is known already, as [`read_with`](Self::read_with) does.
    pub fn of_file(
        (path, text): (&Path, &str),
        settings: &[Setting],
        registry: &Registry,
    ) -> Result<Self, Diagnostic> {
        let base = path.parent().unwrap_or(Path::new(""));
        let streams = Streams::default();
        let mut scenario = Self::with((path, text), settings, base, streams, registry)?;
        if scenario.config.name.is_none() {
            let stem = path.file_stem().unwrap_or_default();
            scenario.config.name = Some(stem.to_string_lossy().into_owned());
        }
        Ok(scenario)
    }

    /// Returns whether it names a marker, scheduler or congestion controller of another crate.
    pub fn has_custom_schemes(&self) -> bool {
        let mut ports = self.config.ports.clone();
        let mut ports = ports.configs_mut();
        let is_custom = |port: &PortConfig| {
            matches!(port.marker.scheme, SchemeConfig::Custom(_))
                || matches!(port.scheduler, SchedulerConfig::Custom(_))
        };
        let special = self.config.transports.iter();
        let special = special.filter_map(|of| value::read_table::<TcpConfig>(&of.set).ok());
        let usual = self.config.transport.clone();
        let mut transports = special.chain([usual]);
        transports.any(|of| matches!(of.controller, ControllerConfig::Custom(_)))
            || ports.any(|(_, port)| is_custom(port))
    }

    /// Reads a scenario from its text; errors name it by `path`.
    pub fn parse(path: &Path, text: &str, settings: &[Setting]) -> Result<Self, Diagnostic> {
        let (base, streams) = (Path::new(""), Streams::default());
        Self::with((path, text), settings, base, streams, &Registry::default())
    }

    /// Reads a scenario from its text. Paths in it are relative to `base`, and it may name schemes of
    /// `registry`.
    pub fn parse_in(
        path: &Path,
        text: &str,
        settings: &[Setting],
        base: &Path,
        registry: &Registry,
    ) -> Result<Self, Diagnostic> {
        Self::with((path, text), settings, base, Streams::default(), registry)
    }

    fn with(
        (path, text): (&Path, &str),
        settings: &[Setting],
        base: &Path,
        mut streams: Streams,
        registry: &Registry,
    ) -> Result<Self, Diagnostic> {
        let (mut source, document) = merge(path, text, settings)?;
        source.index(document.get_ref());
        let config = value::read::<ScenarioConfig>(document);
        let mut config = config.map_err(|error| Diagnostic::from_value(&source, &error))?;
        resolve(&mut config, registry, &source)?;
        if !source.has("transport.receive-window") {
            // The default, as far as it can be kept track of in bytes.
            let transport = &mut config.transport;
            let most = u32::MAX / transport.segment.max(1);
            transport.receive_window = transport.receive_window.min(most);
        }
        for workload in &mut config.workload.0 {
            workload.rebase(base);
        }
        let kept = streams.keep(&mut config.workload.0);
        let scenario = Self {
            config,
            source,
            settings: settings.to_vec(),
            base: base.to_owned(),
            streams,
            registry: registry.clone(),
        };
        kept.map_err(|problem| scenario.error("workload", problem))?;
        scenario.check_name()?;
        Ok(scenario)
    }

    /// The keys of a scenario's text with some of them set anew, before anything but the syntax is
    /// checked. For front ends that have keys of their own.
    pub fn keys(path: &Path, text: &str, settings: &[Setting]) -> Result<toml::Table, Diagnostic> {
        let (source, document) = merge(path, text, settings)?;
        toml::Table::deserialize(toml::de::Deserializer::from(document))
            .map_err(|error| Diagnostic::from_toml(&source, &error))
    }

    /// Text of its file, without the settings on top.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// The files that were read for it: its own and those of its workloads.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = inputs::read_by(&self.config.workload.0);
        files.push(self.source.path().to_owned());
        files
    }

    /// The command that makes this run alone, for a shell.
    pub fn command(&self) -> String {
        let quoted = |text: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/=+,:%".contains(c);
            if text.chars().all(is_plain) {
                text.to_owned()
            } else {
                format!("'{}'", text.replace('\'', r"'\''"))
            }
        };
        let mut command = format!(
            "shallows run {}",
            quoted(&self.source.path().display().to_string())
        );
        for setting in &self.settings {
            command.push_str(" --set ");
            command.push_str(&quoted(&setting.assignment));
        }
        command
    }

    /// Refuses names that lead elsewhere: results are in a directory of that name.
    fn check_name(&self) -> Result<(), Diagnostic> {
        let Some(name) = &self.config.name else {
            return Ok(());
        };
        let is_plain = |c: char| !c.is_control() && !['/', '\\', ':'].contains(&c);
        if !name.is_empty() && name.chars().all(is_plain) && !name.starts_with('.') {
            return Ok(());
        }
        let problem = format!("{name:?} is not a valid name of a directory of results");
        let help = "write a word such as \"incast\": no separators of paths, no dot in front";
        Err(self.error("name", problem).help(help))
    }

    /// Returns whether the file or a setting says anything at `path`, such as `"ports.switch"`.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.source.has(path)
    }

    /// Takes another configuration instead of its own, with schemes of other crates found again.
    #[cfg(live)]
    pub(crate) fn replace(&mut self, mut config: ScenarioConfig) -> Result<(), Diagnostic> {
        resolve(&mut config, &self.registry, &self.source)?;
        self.config = config;
        Ok(())
    }

    /// A name at `path` that is not one of `known`.
    #[cfg(live)]
    pub(crate) fn unknown_name(&self, path: &str, name: &str, known: &[&str]) -> Diagnostic {
        Diagnostic::unknown(&self.source, self.source.span_of(path), "key", name, known)
    }

    /// A problem with the table at `path`, such as `"ports.switch"`.
    pub fn error(&self, path: &str, problem: impl Into<String>) -> Diagnostic {
        Diagnostic::at(&self.source, self.source.span_of(path), problem)
    }

    /// A problem with something in the table at `path`.
    pub fn error_in(&self, path: &str, problem: &impl Keyed) -> Diagnostic {
        let keys = problem.keys();
        let written = keys
            .iter()
            .find_map(|key| self.source.span_of_key(path, key));
        let span = written.unwrap_or_else(|| self.source.span_of(path));
        Diagnostic::at(&self.source, span, problem.to_string())
    }
}

/// A scenario's text with settings on top, and where each part of it is written.
fn merge<'i>(
    path: &Path,
    text: &'i str,
    settings: &'i [Setting],
) -> Result<(Source, Spanned<DeTable<'i>>), Diagnostic> {
    let shown = settings.iter().map(|setting| setting.shown.clone());
    let source = Source::new(path, text, shown.collect());
    let mut document =
        DeTable::parse(text).map_err(|error| Diagnostic::from_toml(&source, &error))?;
    for (index, setting) in settings.iter().enumerate() {
        let span = source.setting_span(index);
        setting::apply(document.get_mut(), &setting.assignment, &span)
            .map_err(|problem| Diagnostic::at(&source, span, problem))?;
    }
    Ok((source, document))
}

/// Finds the schemes of other crates.
fn resolve(
    config: &mut ScenarioConfig,
    registry: &Registry,
    source: &Source,
) -> Result<(), Diagnostic> {
    let controller = registry.resolve_transport(&mut config.transport);
    controller.map_err(|unknown| unknown_name(source, "transport.controller", &unknown))?;
    for (path, port) in config.ports.configs_mut() {
        registry.resolve_port(port).map_err(|error| match error {
            ConfigError::UnknownName(unknown) if unknown.kind == "marker" => {
                unknown_name(source, &format!("{path}.marker.scheme"), &unknown)
            }
            ConfigError::UnknownName(unknown) => {
                unknown_name(source, &format!("{path}.scheduler"), &unknown)
            }
            error => Diagnostic::at(source, source.span_of(&path), error.to_string()),
        })?;
    }
    Ok(())
}

/// A name that nothing has, at the key `path` or within it.
fn unknown_name(source: &Source, path: &str, unknown: &UnknownName) -> Diagnostic {
    let span = source.span_of_name(path, &unknown.name);
    let known: Vec<&str> = unknown.known.iter().map(String::as_str).collect();
    let error = Diagnostic::unknown(source, span, "name", &unknown.name, &known);
    match nearest(&unknown.name, &known) {
        Some(_) => error,
        None => error.help(format!(
            "expected one of {}; a {} of your own needs a program of your own, as \
             examples/my-marker is",
            known.join(", "),
            unknown.kind
        )),
    }
}

/// Says which file was probably meant.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Diagnostic {
    let problem = match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    };
    let diagnostic = Diagnostic::new(format!("cannot read {}: {problem}", path.display()));
    let directory = path.parent().filter(|parent| parent != &Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(directory) else {
        return diagnostic.help(format!("there is no directory {}", directory.display()));
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "toml"))
        .collect();
    names.sort_unstable();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match nearest(&name, &names) {
        Some(nearest) => {
            let nearest: PathBuf = path.with_file_name(nearest);
            diagnostic.help(format!("did you mean {}?", nearest.display()))
        }
        None => diagnostic,
    }
}
