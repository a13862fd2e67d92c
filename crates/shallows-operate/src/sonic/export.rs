//! From the ports of a scenario to the smallest change of a configuration.
//!
//! The configuration is imported first; only what differs from the scenario then changes. So what
//! was imported and is exported again changes nothing.

mod classes;
mod marking;
mod patch;
mod rows;
mod wish;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde_json::{Map, Value};
use shallows_core::port::PortConfig;
use shallows_core::units::{Bytes, Rate};
use thiserror::Error;

use super::database::ConfigDb;
use super::import;
use super::names::{PortName, phrase};
use super::port::PortGroup;
use super::tables::{LAST_QUEUE, Threshold};
pub use patch::Operation;
use wish::Wish;

/// The caller's additions to the ports of a scenario.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// The scenario's `ports.pool`.
    pub pool: Option<Bytes>,
    /// Ports of the scenario for some ports of the file: for those like the named one, at its speed.
    pub special: Vec<(PortName, PortConfig)>,
    /// The speed of ports whose speed the file does not give.
    pub speed: Option<Rate>,
}

/// A change of a configuration.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The change as a JSON patch (RFC 6902).
    pub patch: Vec<Operation>,
    /// The rows that change, as a `config_db.json` to be loaded over the present one.
    pub fragment: Value,
    /// The configuration after the change.
    pub after: Value,
    /// Fidelity of each part of the scenario.
    pub statements: Vec<Statement>,
}

/// Fidelity of one part of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Statement {
    /// The fidelity.
    pub fidelity: Fidelity,
    /// The part, as a key of the scenario.
    pub key: &'static str,
    /// The reason, in a sentence.
    pub says: String,
}

/// Fidelity with which a switch can do what a scenario says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fidelity {
    /// The same.
    Exact,
    /// The nearest that it can do.
    Nearest,
    /// Nothing comes near; the present setting stays.
    Missing,
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let fidelity = match self.fidelity {
            Fidelity::Exact => "exact",
            Fidelity::Nearest => "nearest",
            Fidelity::Missing => "missing",
        };
        write!(f, "{fidelity}: {}: {}", self.key, self.says)
    }
}

/// The reason why a scenario cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExportError {
    /// The configuration has no ports.
    #[error("{0}: there is no port to configure: the table PORT is empty or missing")]
    NoPorts(String),
    /// A port of the options is not in the file.
    #[error("{file}: there is no port {port}")]
    NoPort {
        /// The file.
        file: String,
        /// The port.
        port: PortName,
    },
    /// More queues than a switch has.
    #[error("the scenario's ports have {0} queues; SONiC counts them from 0 to {LAST_QUEUE}")]
    Queues(usize),
    /// A threshold depends on a speed that is not known.
    #[error(
        "{file}: the speed of {port} is not in the file, and a threshold depends on it; use --speed 25Gbps"
    )]
    NoSpeed {
        /// The file.
        file: String,
        /// The port.
        port: PortName,
    },
    /// The scenario's own port cannot be built.
    #[error("the scenario's port: {0}")]
    Port(String),
}

/// Target state of the queues of a configuration.
#[derive(Debug, Default)]
struct Wants {
    marks: BTreeMap<(PortName, u8), Option<import::Marks>>,
    schedulers: BTreeMap<(PortName, u8), wish::Service>,
    buffers: BTreeMap<(PortName, u8), Threshold>,
    classes: Vec<classes::Want>,
    /// The size of the pools that some queues draw from.
    pool: Option<(Vec<(PortName, u8)>, u64)>,
}

/// Exports the ports of a scenario: `switch` for all ports but the special ones.
pub fn export(
    db: &ConfigDb,
    switch: &PortConfig,
    options: &ExportOptions,
) -> Result<Exported, ExportError> {
    let groups = db.groups();
    if groups.is_empty() {
        return Err(ExportError::NoPorts(db.file().to_owned()));
    }
    for (port, _) in &options.special {
        if !groups.iter().any(|group| group.ports.contains(port)) {
            let (file, port) = (db.file().to_owned(), port.clone());
            return Err(ExportError::NoPort { file, port });
        }
    }
    let mut statements = Vec::new();
    let mut wants = Wants::default();
    let any_queues = groups.iter().any(|group| !group.queues.is_empty());
    for group in &groups {
        let special = options.special.iter();
        let special = special.rev().find(|(port, _)| group.ports.contains(port));
        if special.is_none() && any_queues && group.queues.is_empty() {
            statements.push(Statement {
                fidelity: Fidelity::Missing,
                key: "ports.switch",
                says: format!(
                    "{} have no queues in the file; left alone",
                    phrase(&group.ports)
                ),
            });
            continue;
        }
        let config = special.map_or(switch, |(_, config)| config);
        let rate = group.speed.or(options.speed);
        let wish = Wish::new(db, group, config, rate, &mut statements)?;
        collect(group, &wish, options.pool, &mut wants);
    }
    let after = rows::change(db, &wants, &mut statements);
    statements.sort();
    statements.dedup();
    Ok(Exported {
        patch: patch::diff(&db.raw, &after),
        fragment: patch::fragment(&db.raw, &after),
        after: Value::Object(after),
        statements,
    })
}

/// Adds what a group of ports lacks.
fn collect(group: &PortGroup<'_>, wish: &Wish, pool: Option<Bytes>, wants: &mut Wants) {
    for port in &group.ports {
        let of = |queue: u8| (port.clone(), queue);
        let marks = wish.marks.iter().map(|(queue, marks)| (of(*queue), *marks));
        wants.marks.extend(marks);
        let services = wish.services.iter();
        wants
            .schedulers
            .extend(services.map(|(queue, service)| (of(*queue), *service)));
        let buffers = wish.buffers.iter();
        wants
            .buffers
            .extend(buffers.map(|(queue, limit)| (of(*queue), *limit)));
    }
    if let Some(queues) = &wish.classes {
        wants.classes.push(classes::Want {
            ports: group.ports.clone(),
            dscp_map: group.classes.dscp_map.clone(),
            queue_map: group.classes.queue_map.clone(),
            queues: queues.clone(),
        });
    }
    if let (true, Some(size)) = (wish.sets_pool(pool), pool) {
        let members = group.ports.iter();
        let members =
            members.flat_map(|port| wish.order.iter().map(|&queue| (port.clone(), queue)));
        let entry = wants.pool.get_or_insert((Vec::new(), size.get()));
        entry.0.extend(members);
    }
}

/// A table of the new configuration.
fn table<'m>(after: &'m mut Map<String, Value>, name: &str) -> &'m mut Map<String, Value> {
    let entry = after
        .entry(name)
        .or_insert_with(|| Value::Object(Map::new()));
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    match entry {
        Value::Object(table) => table,
        _ => unreachable!("it was made an object"),
    }
}

/// A row of a table of the new configuration.
fn row<'m>(after: &'m mut Map<String, Value>, name: &str, key: &str) -> &'m mut Map<String, Value> {
    table(table(after, name), key)
}
