//! Names that refer to nothing, fields that nobody reads, rows that contradict each other.

use std::collections::BTreeMap;

use super::super::database::ConfigDb;
use super::super::read::ConfigPlace;
use super::super::tables::{
    BufferPool, BufferProfile, PortQosMap, QueueRow, Scheduler, WredProfile,
};
use super::{Report, Rule, Severity};

pub(super) fn check(db: &ConfigDb, report: &mut Report) {
    check_queues(db, report);
    check_maps(db, report);
    check_ports(db, report);
    check_fields(db, report);
    for twice in db.given_twice() {
        let says = format!(
            "the row {:?} names a queue that {:?} names too; which of the two holds depends on the order in which they are applied",
            twice.place.key.as_deref().unwrap_or_default(),
            twice.other
        );
        let fix = "keep one row for each queue";
        report.add(Rule::GivenTwice, Severity::Warning, twice.place, says, fix);
    }
}

/// References of queues, buffers and their profiles.
fn check_queues(db: &ConfigDb, report: &mut Report) {
    for row in &db.queues {
        let place = ConfigPlace::row("QUEUE", &row.key);
        let (scheduler, wred) = (row.scheduler.as_deref(), row.wred.as_deref());
        refer(
            &db.schedulers,
            "SCHEDULER",
            scheduler,
            place.clone().field("scheduler"),
            report,
        );
        refer(
            &db.wred,
            "WRED_PROFILE",
            wred,
            place.field("wred_profile"),
            report,
        );
    }
    for row in &db.buffer_queues {
        let place = ConfigPlace::row("BUFFER_QUEUE", &row.key).field("profile");
        refer(
            &db.profiles,
            "BUFFER_PROFILE",
            row.buffer.as_deref(),
            place,
            report,
        );
    }
    for (name, profile) in &db.profiles {
        let place = ConfigPlace::row("BUFFER_PROFILE", name).field("pool");
        refer(
            &db.pools,
            "BUFFER_POOL",
            profile.pool.as_deref(),
            place,
            report,
        );
    }
}

/// References of the maps of ports.
fn check_maps(db: &ConfigDb, report: &mut Report) {
    let global = ("global".to_owned(), &db.global_map);
    let ports = db.port_maps.iter();
    let maps = ports.map(|(port, map)| (port.to_string(), map));
    for (port, map) in maps.chain([global]) {
        let place = ConfigPlace::row("PORT_QOS_MAP", &port);
        let (dscp, queue) = (map.dscp_to_tc.as_deref(), map.tc_to_queue.as_deref());
        let scheduler = map.scheduler.as_deref();
        let at = |field: &str| place.clone().field(field);
        refer(
            &db.dscp_maps,
            "DSCP_TO_TC_MAP",
            dscp,
            at("dscp_to_tc_map"),
            report,
        );
        refer(
            &db.queue_maps,
            "TC_TO_QUEUE_MAP",
            queue,
            at("tc_to_queue_map"),
            report,
        );
        refer(
            &db.schedulers,
            "SCHEDULER",
            scheduler,
            at("scheduler"),
            report,
        );
    }
}

/// A reference that must have a row. The same one in a hundred rows is one finding.
fn refer<T>(
    rows: &BTreeMap<String, T>,
    table: &str,
    name: Option<&str>,
    place: ConfigPlace,
    report: &mut Report,
) {
    let Some(name) = name.filter(|name| !rows.contains_key(*name)) else {
        return;
    };
    let says = format!("{table}|{name} does not exist, so this reference has no effect");
    if report.0.iter().any(|finding| finding.says == says) {
        return;
    }
    let known = rows.keys().map(String::as_str);
    let fix = match nearest(name, known) {
        Some(near) => format!("write {near:?}, or add the row {name:?} to {table}"),
        None => format!("add the row {name:?} to {table}; ecnconfig changes rows and adds none"),
    };
    report.add(Rule::DanglingReference, Severity::Error, place, says, &fix);
}

/// Ports of the table `QUEUE` that `PORT` does not have.
fn check_ports(db: &ConfigDb, report: &mut Report) {
    if db.ports.is_empty() {
        return;
    }
    let rows = db.queues.iter().map(|row| ("QUEUE", row));
    let rows = rows.chain(db.buffer_queues.iter().map(|row| ("BUFFER_QUEUE", row)));
    for (table, row) in rows {
        let is_unknown = |port: &&super::super::names::PortName| {
            let local = super::super::names::PortName::new(port.local());
            local.as_str() != "CPU"
                && !db.ports.contains_key(port)
                && !db.ports.contains_key(&local)
        };
        // A row of a chassis may be that of another line card.
        let is_elsewhere = row.key.matches('|').count() > 1;
        if let Some(port) = row.ports.iter().find(is_unknown).filter(|_| !is_elsewhere) {
            let says = format!("the table PORT has no port {port}, so this row has no effect");
            let fix = "correct the name, or remove the row";
            let place = ConfigPlace::row(table, &row.key);
            report.add(Rule::DanglingReference, Severity::Error, place, says, fix);
        }
    }
}

fn check_fields(db: &ConfigDb, report: &mut Report) {
    let known = |table: &str| -> &[&str] {
        match table {
            "WRED_PROFILE" => &WredProfile::FIELDS,
            "SCHEDULER" => &Scheduler::FIELDS,
            "QUEUE" => &QueueRow::FIELDS,
            "BUFFER_POOL" => &BufferPool::FIELDS,
            "BUFFER_PROFILE" => &BufferProfile::FIELDS,
            "BUFFER_QUEUE" => &QueueRow::BUFFER_FIELDS,
            _ => &PortQosMap::FIELDS,
        }
    };
    for place in &db.unknown {
        let field = place.field.as_deref().unwrap_or_default();
        let says = format!(
            "{} has no field {field:?}; SONiC passes over it",
            place.table
        );
        let fix = match nearest(field, known(&place.table).iter().copied()) {
            Some(near) => format!("write {near:?}"),
            None => "remove it".to_owned(),
        };
        report.add(
            Rule::UnknownField,
            Severity::Warning,
            place.clone(),
            says,
            &fix,
        );
    }
}

/// The name that was probably meant.
fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let distances = known.map(|known| (strsim::damerau_levenshtein(name, known), known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.chars().count() / 3).max(1)).then_some(nearest)
}
