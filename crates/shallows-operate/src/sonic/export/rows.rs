//! Rows of profiles, and the queues that refer to them.
//!
//! A profile changes in place if all queues that have it want the same of it. Otherwise its queues
//! refer to another profile: one that is there already, or a new one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::database::ConfigDb;
use super::super::import::{self, Marks};
use super::super::names::PortName;
use super::super::tables::{QueueRow, SchedulerKind, Threshold};
use super::wish::Service;
use super::{Fidelity, Statement, Wants, classes, row, table};

/// A queue of a port.
type Member = (PortName, u8);

/// The configuration with all that is wanted.
pub(super) fn change(
    db: &ConfigDb,
    wants: &Wants,
    statements: &mut Vec<Statement>,
) -> Map<String, Value> {
    let mut after = db.raw.clone();
    let wred = marks(db, wants, &mut after);
    let scheduler = schedulers(db, wants, &mut after);
    let references = [
        Reference {
            field: "wred_profile",
            table: "WRED_PROFILE",
            changes: wred,
        },
        Reference {
            field: "scheduler",
            table: "SCHEDULER",
            changes: scheduler,
        },
    ];
    refer(&mut after, "QUEUE", &db.queues, &references);
    let profile = buffers(db, wants, &mut after, statements);
    let references = [Reference {
        field: "profile",
        table: "BUFFER_PROFILE",
        changes: profile,
    }];
    refer(&mut after, "BUFFER_QUEUE", &db.buffer_queues, &references);
    pool(wants, &mut after, statements);
    classes::change(db, &wants.classes, &mut after, statements);
    after
}

/// Names for what queues want.
struct Names<C> {
    in_place: BTreeMap<String, C>,
    new: BTreeMap<String, C>,
    /// The reference of each queue that changes.
    references: BTreeMap<Member, Option<String>>,
}

/// Finds or makes a name for each content that is wanted.
fn names<C: Clone + Ord>(
    wants: &BTreeMap<Member, Option<C>>,
    present: &BTreeMap<Member, String>,
    contents: &BTreeMap<String, C>,
    may_change: impl Fn(&str) -> bool,
    new_name: impl Fn(&C) -> String,
) -> Names<C> {
    let mut users: BTreeMap<&str, Vec<&Member>> = BTreeMap::new();
    for (member, name) in present {
        users.entry(name).or_default().push(member);
    }
    let mut in_place = BTreeMap::new();
    for (name, users) in users {
        let wanted: BTreeSet<_> = users.iter().map(|user| wants.get(*user)).collect();
        if let (1, Some(Some(Some(content)))) = (wanted.len(), wanted.first())
            && may_change(name)
        {
            in_place.insert(name.to_owned(), content.clone());
        }
    }
    let mut new = BTreeMap::new();
    let mut references = BTreeMap::new();
    for (member, wanted) in wants {
        let Some(content) = wanted else {
            references.insert(member.clone(), None);
            continue;
        };
        if present.get(member).and_then(|name| in_place.get(name)) == Some(content) {
            continue;
        }
        let mut kept = contents.iter();
        let kept = kept.find(|(name, found)| *found == content && !in_place.contains_key(*name));
        let name = kept.map_or_else(|| new_name(content), |(name, _)| name.clone());
        if kept.is_none() {
            new.insert(name.clone(), content.clone());
        }
        references.insert(member.clone(), Some(name));
    }
    Names {
        in_place,
        new,
        references,
    }
}

/// The present reference of each queue.
fn present(rows: &[QueueRow], field: fn(&QueueRow) -> Option<&String>) -> BTreeMap<Member, String> {
    let mut present = BTreeMap::new();
    for row in rows {
        for (port, queue) in row.members() {
            if let Some(name) = field(row) {
                present.insert((port.clone(), queue), name.clone());
            }
        }
    }
    present
}

fn marks(
    db: &ConfigDb,
    wants: &Wants,
    after: &mut Map<String, Value>,
) -> BTreeMap<Member, Option<String>> {
    let profiles = db.wred.iter();
    let contents = profiles.filter_map(|(name, row)| Some((name.clone(), import::marks(row)?)));
    let names = names(
        &wants.marks,
        &present(&db.queues, |row| row.wred.as_ref()),
        &contents.collect(),
        |name| db.wred.contains_key(name),
        |marks: &Marks| {
            if marks.min == marks.max {
                format!("SHALLOWS_{}", marks.max)
            } else {
                format!("SHALLOWS_{}_{}_{}", marks.min, marks.max, marks.percent)
            }
        },
    );
    for (name, marks) in names.in_place.iter().chain(&names.new) {
        let is_new = names.new.contains_key(name);
        let fields = row(after, "WRED_PROFILE", name);
        for color in ["green", "yellow", "red"] {
            // Colours that the row leaves out stay out.
            if color != "green"
                && !is_new
                && !fields.contains_key(&format!("{color}_min_threshold"))
            {
                continue;
            }
            put(fields, &format!("{color}_min_threshold"), &marks.min);
            put(fields, &format!("{color}_max_threshold"), &marks.max);
            put(fields, &format!("{color}_drop_probability"), &marks.percent);
            put(fields, &format!("wred_{color}_enable"), &true);
        }
        if is_new || db.wred.get(name).is_none_or(|row| !row.ecn.green) {
            put(fields, "ecn", &"ecn_all");
        }
    }
    names.references
}

fn schedulers(
    db: &ConfigDb,
    wants: &Wants,
    after: &mut Map<String, Value>,
) -> BTreeMap<Member, Option<String>> {
    let contents = db.schedulers.iter().map(|(name, row)| {
        let service = Service {
            kind: row.kind,
            weight: match row.kind {
                SchedulerKind::Strict => 1,
                _ => row.weight,
            },
        };
        (name.clone(), service)
    });
    let of_ports: BTreeSet<&String> = db
        .port_maps
        .values()
        .filter_map(|map| map.scheduler.as_ref())
        .collect();
    let wanted = wants.schedulers.iter();
    let wanted = wanted.map(|(member, service)| (member.clone(), Some(*service)));
    let names = names(
        &wanted.collect(),
        &present(&db.queues, |row| row.scheduler.as_ref()),
        &contents.collect(),
        |name| db.schedulers.contains_key(name) && !of_ports.contains(&name.to_owned()),
        |service: &Service| match service.kind {
            SchedulerKind::Strict => "SHALLOWS_STRICT".to_owned(),
            kind => format!("SHALLOWS_{}_{}", kind.word(), service.weight),
        },
    );
    for (name, service) in names.in_place.iter().chain(&names.new) {
        let fields = row(after, "SCHEDULER", name);
        put(fields, "type", &service.kind.word());
        match service.kind {
            SchedulerKind::Strict => drop(fields.remove("weight")),
            _ => put(fields, "weight", &service.weight),
        }
    }
    names.references
}

fn buffers(
    db: &ConfigDb,
    wants: &Wants,
    after: &mut Map<String, Value>,
    statements: &mut Vec<Statement>,
) -> BTreeMap<Member, Option<String>> {
    let contents = db.profiles.iter().filter_map(|(name, row)| {
        let threshold = match row.threshold? {
            Threshold::Static(bytes) => Threshold::Static(bytes.saturating_add(row.reserved)),
            dynamic @ Threshold::Dynamic(_) => dynamic,
        };
        // Profiles for packets as they arrive are not for queues.
        let pool = db.pools.get(row.pool.as_deref()?)?;
        pool.egress.then(|| (name.clone(), threshold))
    });
    let wanted = wants.buffers.iter();
    let wanted = wanted.map(|(member, threshold)| (member.clone(), Some(*threshold)));
    let present = present(&db.buffer_queues, |row| row.buffer.as_ref());
    let names = names(
        &wanted.collect(),
        &present,
        &contents.collect(),
        |name| db.profiles.contains_key(name),
        |threshold: &Threshold| match threshold {
            Threshold::Dynamic(exponent) => format!("SHALLOWS_DYNAMIC_{exponent}"),
            Threshold::Static(bytes) => format!("SHALLOWS_STATIC_{bytes}"),
        },
    );
    let pools = db.pools.iter();
    let pool = pools.filter(|(_, pool)| pool.egress).map(|(name, _)| name);
    let pool = pool.min_by_key(|name| usize::from(!name.contains("lossy")));
    if pool.is_none() && !names.new.is_empty() {
        statements.push(Statement {
            fidelity: Fidelity::Missing,
            key: "buffer",
            says: "the file has no egress pool for a buffer profile; the present limits stay"
                .to_owned(),
        });
        return BTreeMap::new();
    }
    for (name, threshold) in names.in_place.iter().chain(&names.new) {
        let reserved = db.profiles.get(name).map_or(0, |row| row.reserved);
        let fields = row(after, "BUFFER_PROFILE", name);
        if let (true, Some(pool)) = (names.new.contains_key(name), pool) {
            put(fields, "pool", pool);
            put(fields, "size", &0);
        }
        match *threshold {
            Threshold::Dynamic(exponent) => {
                fields.remove("static_th");
                put(fields, "dynamic_th", &exponent);
            }
            Threshold::Static(bytes) => {
                fields.remove("dynamic_th");
                if bytes < reserved {
                    put(fields, "size", &0);
                }
                put(
                    fields,
                    "static_th",
                    &bytes.checked_sub(reserved).unwrap_or(bytes),
                );
            }
        }
    }
    names.references
}

/// The size of the pools that changed queues draw from.
fn pool(wants: &Wants, after: &mut Map<String, Value>, statements: &mut Vec<Statement>) {
    let Some((members, size)) = &wants.pool else {
        return;
    };
    let profile = |rows: &Map<String, Value>, (port, queue): &Member| {
        let row = rows.iter().find(|(key, _)| {
            let (ports, queues) = key.rsplit_once('|').unwrap_or_default();
            let (first, last) = queues.split_once('-').unwrap_or((queues, queues));
            let range = first.parse().unwrap_or(u8::MAX)..=last.parse().unwrap_or(0);
            ports.split(',').any(|name| name == port.as_str()) && range.contains(queue)
        });
        let name = row?.1.get("profile")?.as_str()?.trim_end_matches(']');
        Some(name.rsplit('|').next()?.to_owned())
    };
    let queues = table(after, "BUFFER_QUEUE").clone();
    let profiles: BTreeSet<String> = members
        .iter()
        .filter_map(|member| profile(&queues, member))
        .collect();
    let mut pools = BTreeSet::new();
    for name in profiles {
        let pool = row(after, "BUFFER_PROFILE", &name).get("pool");
        let pool = pool
            .and_then(Value::as_str)
            .map(|pool| pool.trim_end_matches(']'));
        pools.extend(
            pool.and_then(|pool| pool.rsplit('|').next())
                .map(str::to_owned),
        );
    }
    for name in &pools {
        put(row(after, "BUFFER_POOL", name), "size", size);
    }
    let says = "the pool is the whole switch's; check that the chip has that much besides headroom";
    statements.push(Statement {
        fidelity: Fidelity::Nearest,
        key: "ports.pool",
        says: says.to_owned(),
    });
}

/// A field of rows of queues that refers to another table.
struct Reference<'a> {
    field: &'a str,
    table: &'a str,
    /// The queues whose reference changes: to a name, or to none.
    changes: BTreeMap<Member, Option<String>>,
}

/// Lets queues refer to other rows. A row for several queues that no longer agree is split.
fn refer(
    after: &mut Map<String, Value>,
    name: &str,
    rows: &[QueueRow],
    references: &[Reference<'_>],
) {
    let mut covered: BTreeSet<Member> = BTreeSet::new();
    for present in rows {
        let members = present.members();
        let members: Vec<Member> = members.map(|(port, queue)| (port.clone(), queue)).collect();
        covered.extend(members.iter().cloned());
        let changes = |member: &Member| -> Vec<_> {
            let fields = references.iter();
            fields.map(|of| of.changes.get(member).cloned()).collect()
        };
        let wanted: Vec<_> = members.iter().map(changes).collect();
        if wanted.iter().flatten().all(Option::is_none) {
            continue;
        }
        if wanted.windows(2).all(|pair| pair[0] == pair[1]) {
            set(row(after, name, &present.key), references, &members[0]);
            continue;
        }
        let old = row(after, name, &present.key).clone();
        table(after, name).remove(&present.key);
        for member in &members {
            let fresh = row(after, name, &key(member));
            fresh.extend(old.clone());
            set(fresh, references, member);
        }
    }
    let asked = references.iter().flat_map(|of| &of.changes);
    let missing = asked.filter(|(member, name)| name.is_some() && !covered.contains(*member));
    let missing: BTreeSet<Member> = missing.map(|(member, _)| member.clone()).collect();
    for member in missing {
        set(row(after, name, &key(&member)), references, &member);
    }
}

fn key((port, queue): &Member) -> String {
    format!("{port}|{queue}")
}

/// Changes the references of a row, in the notation that it has.
fn set(row: &mut Map<String, Value>, references: &[Reference<'_>], member: &Member) {
    for Reference {
        field,
        table,
        changes,
    } in references
    {
        let old = row.get(*field).and_then(Value::as_str).unwrap_or_default();
        match changes.get(member) {
            None => {}
            Some(None) => drop(row.remove(*field)),
            Some(Some(name)) if old.starts_with('[') => {
                put(row, field, &format!("[{table}|{name}]"));
            }
            Some(Some(name)) => put(row, field, name),
        }
    }
}

/// Every value of a configuration is a text.
pub(super) fn put(row: &mut Map<String, Value>, field: &str, value: &impl ToString) {
    row.insert(field.to_owned(), Value::String(value.to_string()));
}
