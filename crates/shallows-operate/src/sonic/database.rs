//! A configuration as a whole.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use shallows_core::units::Rate;

use super::json;
use super::names::PortName;
use super::read::{ConfigPlace, Problem, Problems, ReadError, Row, rows};
use super::tables::{
    BufferPool, BufferProfile, LAST_QUEUE, PortQosMap, QueueRow, Scheduler, WredProfile, number_map,
};

/// Highest traffic class (`sonic-types.yang`).
const LAST_TC: u8 = 15;
/// Highest value of the DSCP field.
pub(super) const LAST_DSCP: u8 = 63;

/// The tables that are read.
pub(super) const TABLES: [&str; 10] = [
    "WRED_PROFILE",
    "SCHEDULER",
    "QUEUE",
    "BUFFER_POOL",
    "BUFFER_PROFILE",
    "BUFFER_QUEUE",
    "DSCP_TO_TC_MAP",
    "TC_TO_QUEUE_MAP",
    "PORT_QOS_MAP",
    "PORT",
];

/// Maps from number to number, by name.
pub(super) type Maps = BTreeMap<String, BTreeMap<u8, u8>>;

/// The queueing part of a `config_db.json`.
#[derive(Clone, Debug)]
pub struct ConfigDb {
    pub(super) file: String,
    pub(super) text: String,
    /// The file as it is.
    pub(super) raw: Map<String, Value>,
    pub(super) wred: BTreeMap<String, WredProfile>,
    pub(super) schedulers: BTreeMap<String, Scheduler>,
    pub(super) queues: Vec<QueueRow>,
    pub(super) pools: BTreeMap<String, BufferPool>,
    pub(super) profiles: BTreeMap<String, BufferProfile>,
    pub(super) buffer_queues: Vec<QueueRow>,
    pub(super) dscp_maps: Maps,
    pub(super) queue_maps: Maps,
    pub(super) port_maps: BTreeMap<PortName, PortQosMap>,
    pub(super) global_map: PortQosMap,
    /// The speed of each port of the table `PORT`.
    pub(super) ports: BTreeMap<PortName, Option<Rate>>,
    /// Fields that SONiC's models do not have.
    pub(super) unknown: Vec<ConfigPlace>,
}

impl ConfigDb {
    /// Reads the text of a configuration; errors name it by `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, ReadError> {
        let value = json::parse(text).map_err(|error| {
            let line = Some(error.line()).filter(|&line| line > 0);
            let text = error.to_string();
            let reason = text.split(" at line ").next().unwrap_or(&text);
            let kind = if error.is_data() { "" } else { "not JSON: " };
            ReadError::whole(file, line, format!("{kind}{reason}"))
        })?;
        let Value::Object(raw) = value else {
            let reason = "the file is not an object with tables; write { \"QUEUE\": { ... } }";
            return Err(ReadError::whole(file, None, reason));
        };
        if let Some(reason) = misplaced(&raw) {
            return Err(ReadError::whole(file, None, reason));
        }
        Self::read(file, text, raw)
    }

    fn read(file: &str, text: &str, raw: Map<String, Value>) -> Result<Self, ReadError> {
        let mut reader = Reader {
            raw: &raw,
            problems: Problems::default(),
            unknown: Vec::new(),
        };
        let wred = reader.named("WRED_PROFILE", &WredProfile::FIELDS, WredProfile::read);
        let schedulers = reader.named("SCHEDULER", &Scheduler::FIELDS, Scheduler::read);
        let queues = reader.queues("QUEUE", &QueueRow::FIELDS);
        let pools = reader.named("BUFFER_POOL", &BufferPool::FIELDS, BufferPool::read);
        let profiles = reader.named(
            "BUFFER_PROFILE",
            &BufferProfile::FIELDS,
            BufferProfile::read,
        );
        let buffer_queues = reader.queues("BUFFER_QUEUE", &QueueRow::BUFFER_FIELDS);
        let dscp_maps = reader.maps("DSCP_TO_TC_MAP", (LAST_DSCP, LAST_TC));
        let queue_maps = reader.maps("TC_TO_QUEUE_MAP", (LAST_TC, LAST_QUEUE));
        let mut qos = reader.named("PORT_QOS_MAP", &PortQosMap::FIELDS, PortQosMap::read);
        let global_map = qos.remove("global").unwrap_or_default();
        let ports = reader.ports();
        let Reader {
            problems, unknown, ..
        } = reader;
        if !problems.0.is_empty() {
            return Err(read_error(file, text, problems));
        }
        Ok(Self {
            file: file.to_owned(),
            text: text.to_owned(),
            wred,
            schedulers,
            queues,
            pools,
            profiles,
            buffer_queues,
            dscp_maps,
            queue_maps,
            port_maps: by_port(qos),
            global_map,
            ports,
            unknown,
            raw,
        })
    }

    /// The name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }
}

/// The rows of all tables.
struct Reader<'v> {
    raw: &'v Map<String, Value>,
    problems: Problems,
    unknown: Vec<ConfigPlace>,
}

impl Reader<'_> {
    fn named<T>(
        &mut self,
        table: &'static str,
        fields: &[&str],
        read: impl Fn(&Row<'_>, &mut Problems) -> T,
    ) -> BTreeMap<String, T> {
        let mut named = BTreeMap::new();
        for row in rows(self.raw, table, &mut self.problems) {
            self.unknown.extend(row.unknown(fields));
            named.insert(row.key.to_owned(), read(&row, &mut self.problems));
        }
        named
    }

    fn queues(&mut self, table: &'static str, fields: &[&str]) -> Vec<QueueRow> {
        let mut read = Vec::new();
        for row in rows(self.raw, table, &mut self.problems) {
            self.unknown.extend(row.unknown(fields));
            read.extend(QueueRow::read(&row, &mut self.problems));
        }
        read
    }

    fn maps(&mut self, table: &'static str, last: (u8, u8)) -> Maps {
        let mut maps = BTreeMap::new();
        for row in rows(self.raw, table, &mut self.problems) {
            let map = number_map(&row, last, &mut self.problems);
            maps.insert(row.key.to_owned(), map);
        }
        maps
    }

    /// The speeds of `PORT`, which are in Mbps.
    fn ports(&mut self) -> BTreeMap<PortName, Option<Rate>> {
        let mut ports = BTreeMap::new();
        for row in rows(self.raw, "PORT", &mut self.problems) {
            let speed = row.number("speed", 1..=100_000_000, &mut self.problems);
            let speed = speed.map(|mbps| Rate::from_mbps(mbps.cast_unsigned()));
            ports.insert(PortName::new(row.key), speed);
        }
        ports
    }
}

/// One row for each port, of keys that may name several.
fn by_port(maps: BTreeMap<String, PortQosMap>) -> BTreeMap<PortName, PortQosMap> {
    let mut ports = BTreeMap::new();
    for (key, map) in maps {
        for port in key.split(',') {
            ports.insert(PortName::new(port), map.clone());
        }
    }
    ports
}

fn read_error(file: &str, text: &str, problems: Problems) -> ReadError {
    let problems = problems.0.into_iter().map(|(place, reason)| Problem {
        line: place.line(text),
        place: Some(place),
        reason,
    });
    ReadError {
        file: file.to_owned(),
        problems: problems.collect(),
    }
}

/// The reason why no table is where it should be, if that is so.
fn misplaced(raw: &Map<String, Value>) -> Option<String> {
    if TABLES.iter().any(|table| raw.contains_key(*table)) {
        return None;
    }
    let has_tables = |value: &Value| {
        let object = value.as_object();
        object.is_some_and(|object| TABLES.iter().any(|table| object.contains_key(*table)))
    };
    let inside = raw.iter().find(|(_, value)| has_tables(value));
    Some(match inside {
        Some((key, _)) => {
            format!("the tables are inside {key:?}; take them out: jq '.{key}' FILE")
        }
        None => format!("none of the tables {} is here", TABLES.join(", ")),
    })
}
