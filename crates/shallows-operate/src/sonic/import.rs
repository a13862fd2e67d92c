//! From a configuration to the ports of a scenario.
//!
//! SONiC serves strict queues from the highest number down, a scenario from queue 0 up, strict ones
//! first. So strict queues come first here, in SONiC's order, and the others follow by number.

mod buffer;
mod marker;
mod text;

use std::fmt::{self, Display, Formatter};

use shallows_core::port::scheduler::RoundRobinConfig;
use shallows_core::port::{
    BufferConfig, ClassifierConfig, PerIndex, PortConfig, SchedulerConfig, ShaperConfig,
};
use shallows_core::units::{Bytes, Rate};
use thiserror::Error;

use super::database::{ConfigDb, LAST_DSCP};
use super::names::{PortName, phrase};
use super::port::PortGroup;
use super::read::ConfigPlace;
use super::tables::SchedulerKind;
use super::words;
pub(super) use marker::{Marks, NEVER, marks};

/// Bytes that a weight of 1 may send in a round: chips do not publish theirs.
pub(super) const QUANTUM: u64 = 1_500;
/// Largest bucket of a port's shaper in a scenario.
const LARGEST_BUCKET: u64 = 1_000_000;

/// The caller's additions to a configuration.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Size of the buffer pool, where the file leaves it to the switch.
    pub pool: Option<Bytes>,
    /// Ports, each with the links of the scenario that have a port like it.
    pub links: Vec<(PortName, Vec<String>)>,
}

/// The ports of a scenario.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The memory that the ports of a switch share.
    pub pool: Option<Bytes>,
    /// The port that most ports are like.
    pub switch: PortConfig,
    /// Ports of some links.
    pub special: Vec<(Vec<String>, PortConfig)>,
    /// Settings without an equal in a scenario, and assumptions, line by line.
    pub notes: Vec<Note>,
}

/// Something that a scenario or a switch cannot have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// Its place.
    pub place: ConfigPlace,
    /// Its treatment.
    pub says: String,
}

impl Display for Note {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.says)
    }
}

/// The reason why a configuration has no ports for a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImportError {
    /// No table says anything about queues of ports.
    #[error("{0}: no port has a queue: QUEUE, BUFFER_QUEUE and PORT_QOS_MAP are empty or missing")]
    NoQueues(String),
    /// A port of the options is not in the file.
    #[error("{file}: there is no port {port} with queues; one is {known}")]
    NoPort {
        /// The file.
        file: String,
        /// The port.
        port: PortName,
        /// A port that is there.
        known: PortName,
    },
}

/// A port as a scenario has it.
#[derive(Clone, Debug)]
pub(super) struct PortImport {
    pub(super) config: PortConfig,
    pub(super) pool: Option<Bytes>,
    /// SONiC's number of each queue of the scenario.
    pub(super) order: Vec<u8>,
    pub(super) notes: Vec<Note>,
}

/// Ports that are alike in a scenario, whatever their speed.
struct Kind {
    ports: Vec<PortName>,
    import: PortImport,
}

/// Makes the ports of a scenario from a configuration.
pub fn import(db: &ConfigDb, options: &ImportOptions) -> Result<Imported, ImportError> {
    let kinds = kinds(db, options.pool);
    let Some(first) = kinds.first() else {
        return Err(ImportError::NoQueues(db.file().to_owned()));
    };
    let mut special = Vec::new();
    let mut placed = vec![false; kinds.len()];
    for (port, links) in &options.links {
        let found = kinds.iter().position(|kind| kind.ports.contains(port));
        let found = found.ok_or_else(|| ImportError::NoPort {
            file: db.file().to_owned(),
            port: port.clone(),
            known: first.ports[0].clone(),
        })?;
        placed[found] = true;
        special.push((links.clone(), kinds[found].import.config.clone()));
    }
    // The first of those with most ports, of those that links are named for if there are no others.
    let all_placed = placed.iter().all(|&placed| placed);
    let candidates = (0..kinds.len()).filter(|&kind| all_placed || !placed[kind]);
    let main = candidates.max_by_key(|&kind| (kinds[kind].ports.len(), usize::MAX - kind));
    let main = main.unwrap_or_default();
    placed[main] = true;
    let mut notes = Vec::new();
    for (kind, placed) in kinds.iter().zip(&placed) {
        if !placed {
            notes.push(left_out(kind, &kinds[main]));
        }
        let told = kind.import.notes.iter().filter(|_| *placed);
        notes.extend(told.cloned());
    }
    notes.extend(other_tables(db));
    notes.sort();
    notes.dedup();
    Ok(Imported {
        pool: kinds[main].import.pool,
        switch: kinds[main].import.config.clone(),
        special,
        notes,
    })
}

fn kinds(db: &ConfigDb, pool: Option<Bytes>) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for group in db.groups() {
        let Some(import) = port(db, &group, pool) else {
            continue;
        };
        let same = |kind: &&mut Kind| {
            kind.import.config == import.config && kind.import.pool == import.pool
        };
        match kinds.iter_mut().find(same) {
            Some(kind) => {
                kind.ports.extend(group.ports);
                kind.import.notes.extend(import.notes);
            }
            None => kinds.push(Kind {
                ports: group.ports,
                import,
            }),
        }
    }
    kinds
}

fn left_out(kind: &Kind, main: &Kind) -> Note {
    let port = &kind.ports[0];
    let says = format!(
        "{} differ from {}, which ports.switch stands for; name their links: --links '{port}=leaf*->spine*'",
        phrase(&kind.ports),
        phrase(&main.ports)
    );
    let place = ConfigPlace::row("QUEUE", port.as_str());
    Note { place, says }
}

/// Tables about queues that a scenario has nothing for.
fn other_tables(db: &ConfigDb) -> impl Iterator<Item = Note> {
    let tables = [
        (
            "BUFFER_PG",
            "priority groups hold packets as they arrive; a scenario has buffers at the egress",
        ),
        (
            "CABLE_LENGTH",
            "the headroom of lossless traffic; a scenario has the delays of its links",
        ),
        ("TC_TO_DSCP_MAP", "packets keep their DSCP in a scenario"),
        (
            "DOT1P_TO_TC_MAP",
            "packets of a scenario have no VLAN priority",
        ),
        (
            "TC_TO_PRIORITY_GROUP_MAP",
            "a scenario has no priority groups",
        ),
        (
            "MAP_PFC_PRIORITY_TO_QUEUE",
            "ports.pause pauses each queue by its own length",
        ),
        (
            "BUFFER_PORT_EGRESS_PROFILE_LIST",
            "limits of whole ports come from ports.switch.buffer",
        ),
        (
            "BUFFER_PORT_INGRESS_PROFILE_LIST",
            "a scenario has buffers at the egress",
        ),
        (
            "LOSSLESS_TRAFFIC_PATTERN",
            "the headroom of lossless traffic has no equal",
        ),
        (
            "DEFAULT_LOSSLESS_BUFFER_PARAMETER",
            "the headroom of lossless traffic has no equal",
        ),
    ];
    let present = tables.into_iter();
    let present = present.filter(|(table, _)| db.raw.contains_key(*table));
    present.map(|(table, reason)| Note {
        place: ConfigPlace::table(table),
        says: format!("not imported: {reason}"),
    })
}

/// A port of a scenario that behaves as these do; nothing if they have no queues.
pub(super) fn port(
    db: &ConfigDb,
    group: &PortGroup<'_>,
    pool: Option<Bytes>,
) -> Option<PortImport> {
    if group.queues.is_empty() {
        return None;
    }
    let mut notes = Notes::of(group);
    let order = order(group);
    let (buffer, pool) = buffer::import(db, group, &order, pool, &mut notes);
    let config = PortConfig {
        queues: order.len(),
        classifier: classifier(group, &order, &mut notes),
        scheduler: scheduler(group, &order, &mut notes),
        marker: marker::import(group, &order, &mut notes),
        shaper: shaper(group, &mut notes),
        ..PortConfig::fifo(buffer)
    };
    if !group.pfc.is_empty() {
        let says = format!(
            "priority flow control of queues {} is not imported; ports.pause has one pair of lengths for all queues",
            words::numbers(&group.pfc)
        );
        notes.add(
            ConfigPlace::row("PORT_QOS_MAP", notes.port()).field("pfc_enable"),
            says,
        );
    }
    let pool = pool.filter(|_| matches!(config.buffer, BufferConfig::Dynamic { .. }));
    Some(PortImport {
        config,
        pool,
        order,
        notes: notes.list,
    })
}

/// Notes about the ports of a group.
#[derive(Debug)]
pub(super) struct Notes {
    port: String,
    list: Vec<Note>,
}

impl Notes {
    fn of(group: &PortGroup<'_>) -> Self {
        Self {
            port: group.ports[0].to_string(),
            list: Vec::new(),
        }
    }

    fn port(&self) -> &str {
        &self.port
    }

    fn add(&mut self, place: ConfigPlace, says: impl Into<String>) {
        let says = says.into();
        self.list.push(Note { place, says });
    }
}

fn is_strict(group: &PortGroup<'_>, queue: u8) -> bool {
    let scheduler = group.queues[usize::from(queue)].scheduler;
    scheduler.is_some_and(|(_, row)| row.kind == SchedulerKind::Strict)
}

fn order(group: &PortGroup<'_>) -> Vec<u8> {
    let all = 0..group.queues.len() as u8;
    let strict = all.clone().rev().filter(|&queue| is_strict(group, queue));
    let others = all.filter(|&queue| !is_strict(group, queue));
    strict.chain(others).collect()
}

fn classifier(group: &PortGroup<'_>, order: &[u8], notes: &mut Notes) -> ClassifierConfig {
    let position = |queue: u8| order.iter().position(|&of| of == queue);
    let mut map: Vec<u8> = Vec::new();
    let mut lost = Vec::new();
    for dscp in 0..=LAST_DSCP {
        let queue = group.classes.queues[usize::from(dscp)];
        if queue.is_none() {
            lost.push(dscp);
        }
        map.push(position(queue.unwrap_or(0)).unwrap_or(0) as u8);
    }
    if !lost.is_empty() {
        let name = group.classes.queue_map.as_deref().unwrap_or_default();
        let says = format!(
            "DSCP {} have no queue; they join queue 0 here",
            words::numbers(&lost)
        );
        notes.add(ConfigPlace::row("TC_TO_QUEUE_MAP", name), says);
    }
    let other = map.last().copied().unwrap_or(0);
    while map.last() == Some(&other) {
        map.pop();
    }
    ClassifierConfig::DscpMap { map, other }
}

fn scheduler(group: &PortGroup<'_>, order: &[u8], notes: &mut Notes) -> SchedulerConfig {
    if order.len() == 1 {
        return SchedulerConfig::Fifo;
    }
    let rows = order
        .iter()
        .map(|&queue| group.queues[usize::from(queue)].scheduler);
    let rows: Vec<_> = rows.collect();
    let strict = order
        .iter()
        .filter(|&&queue| is_strict(group, queue))
        .count();
    let rest = &rows[strict..];
    for (name, row) in rows.iter().flatten() {
        let place = ConfigPlace::row("SCHEDULER", name);
        if row.pir.is_some_and(|pir| pir > 0) {
            notes.add(
                place.clone().field("pir"),
                "a rate for one queue has no equal",
            );
        }
        if row.more {
            notes.add(place, "cir, cbs and priority have no equal");
        }
    }
    if strict == order.len() {
        return SchedulerConfig::Strict;
    }
    let has = |kind| rest.iter().flatten().any(|(_, row)| row.kind == kind);
    if has(SchedulerKind::Wrr) && has(SchedulerKind::Dwrr) {
        let place = ConfigPlace::row("QUEUE", notes.port());
        notes.add(place, "WRR and DWRR share a port; all are DWRR here");
    }
    let quanta = quanta(group, order, strict, notes);
    let wrr = has(SchedulerKind::Wrr) && !has(SchedulerKind::Dwrr);
    match (strict, wrr) {
        (0, true) => SchedulerConfig::Wrr { quantum: quanta },
        (0, false) => SchedulerConfig::Dwrr { quantum: quanta },
        (strict, wrr) => SchedulerConfig::StrictOver {
            strict,
            rest: if wrr {
                RoundRobinConfig::Wrr
            } else {
                RoundRobinConfig::Dwrr
            },
            quantum: quanta,
        },
    }
}

/// Weights as bytes, in lowest terms. Those of strict queues are not used; queues that no packet
/// joins have the least.
fn quanta(
    group: &PortGroup<'_>,
    order: &[u8],
    strict: usize,
    notes: &mut Notes,
) -> PerIndex<Bytes> {
    let mut weights = Vec::new();
    for &queue in &order[strict..] {
        let view = &group.queues[usize::from(queue)];
        let weight = match view.scheduler {
            Some((name, row)) if row.weight == 0 => {
                let place = ConfigPlace::row("SCHEDULER", name).field("weight");
                notes.add(place, "a weight of 0 has no equal; it is 1 here");
                Some(1)
            }
            Some((_, row)) => Some(u64::from(row.weight.min(1_000))),
            None if is_unused(group, queue) => None,
            None => {
                let place = ConfigPlace::row("QUEUE", notes.port());
                let says = "queues without a scheduler have weight 1 here; the chip may differ";
                notes.add(place, says);
                Some(1)
            }
        };
        weights.push(weight);
    }
    let used = weights.iter().flatten().copied();
    let divisor = used.clone().reduce(greatest_common_divisor).unwrap_or(1);
    let least = used.min().unwrap_or(1);
    let quantum = |weight: &Option<u64>| weight.unwrap_or(least) / divisor * QUANTUM;
    let quanta = weights.iter().map(|weight| Bytes::new(quantum(weight)));
    let unused = std::iter::repeat_n(Bytes::new(QUANTUM), strict);
    per_index(unused.chain(quanta).collect())
}

/// Returns whether no packet joins a queue, which has no row either.
fn is_unused(group: &PortGroup<'_>, queue: u8) -> bool {
    group.queues[usize::from(queue)].row.is_none() && group.dscps(queue).is_empty()
}

pub(super) fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// One value if all are the same.
pub(super) fn per_index<T: Clone + PartialEq>(values: Vec<T>) -> PerIndex<T> {
    match values.first() {
        Some(first) if values.iter().all(|value| value == first) => PerIndex::All(first.clone()),
        _ => PerIndex::Each(values),
    }
}

/// The peak rate of the port's own scheduler.
fn shaper(group: &PortGroup<'_>, notes: &mut Notes) -> Option<ShaperConfig> {
    let (name, row) = group.scheduler?;
    let pir = row.pir.filter(|&pir| pir > 0)?;
    let place = ConfigPlace::row("SCHEDULER", name).field("pir");
    if row.in_packets {
        notes.add(place, "a rate in packets has no equal");
        return None;
    }
    let Some(bps) = pir.checked_mul(8) else {
        notes.add(place, "the rate is beyond any link; it is left out");
        return None;
    };
    let burst = row.pbs.filter(|&pbs| pbs > 0).unwrap_or(QUANTUM);
    if burst > LARGEST_BUCKET {
        let says = format!("a bucket has at most {LARGEST_BUCKET} bytes in a scenario");
        notes.add(ConfigPlace::row("SCHEDULER", name).field("pbs"), says);
    }
    Some(ShaperConfig {
        rate: Rate::from_bps(bps),
        bucket: Bytes::new(burst.min(LARGEST_BUCKET)),
    })
}
