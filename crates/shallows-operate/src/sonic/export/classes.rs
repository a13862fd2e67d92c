//! Maps from DSCP to traffic class to queue.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::database::{ConfigDb, LAST_DSCP};
use super::super::names::PortName;
use super::rows::put;
use super::{Fidelity, Statement, row};

/// Highest traffic class.
const LAST_TC: u8 = 15;

/// The queues of ports whose maps differ.
#[derive(Clone, Debug)]
pub(super) struct Want {
    pub(super) ports: Vec<PortName>,
    pub(super) dscp_map: Option<String>,
    pub(super) queue_map: Option<String>,
    /// The queue of each DSCP.
    pub(super) queues: Vec<u8>,
}

/// Changes maps in place where all of their ports want the same, else adds new ones.
pub(super) fn change(
    db: &ConfigDb,
    wants: &[Want],
    after: &mut Map<String, Value>,
    statements: &mut Vec<Statement>,
) {
    let groups = db.groups();
    let mut done: Vec<&Want> = Vec::new();
    for want in wants {
        let same = |other: &&&Want| {
            other.dscp_map == want.dscp_map
                && other.queue_map == want.queue_map
                && other.queues == want.queues
        };
        let alike: Vec<&Want> = wants.iter().filter(|other| same(&other)).collect();
        if done.iter().any(|other| same(&other)) {
            continue;
        }
        done.push(want);
        let ports: BTreeSet<&PortName> = alike.iter().flat_map(|want| &want.ports).collect();
        let users = groups.iter();
        let mut users = users.filter(|group| group.classes.dscp_map == want.dscp_map);
        let all_agree = users.all(|group| group.ports.iter().all(|port| ports.contains(port)));
        let Some(by_class) = queue_map(db, want, after, statements) else {
            continue;
        };
        let present = want
            .dscp_map
            .as_ref()
            .and_then(|name| db.dscp_maps.get(name));
        let name = match &want.dscp_map {
            Some(name) if all_agree && present.is_some() => name.clone(),
            _ => fresh_name(after),
        };
        let is_new = Some(&name) != want.dscp_map.as_ref();
        let fields = row(after, "DSCP_TO_TC_MAP", &name);
        for dscp in 0..=LAST_DSCP {
            let now = present.and_then(|map| map.get(&dscp)).copied();
            let wanted = want.queues[usize::from(dscp)];
            let class = |class: u8| by_class.contains(&(class, wanted));
            let chosen = now
                .or(Some(0))
                .filter(|&now| class(now))
                .or_else(|| (0..=LAST_TC).find(|&tc| class(tc)));
            // An entry that says what holds without it stays out.
            if let Some(tc) = chosen.filter(|tc| is_new || now.unwrap_or(0) != *tc) {
                put(fields, &dscp.to_string(), &tc);
            }
        }
        if is_new {
            for port in ports {
                let fields = row(after, "PORT_QOS_MAP", port.as_str());
                put(fields, "dscp_to_tc_map", &name);
            }
        }
        statements.push(Statement {
            fidelity: Fidelity::Nearest,
            key: "classifier",
            says: "a traffic class also chooses the priority group: check TC_TO_PRIORITY_GROUP_MAP if some classes are lossless".to_owned(),
        });
    }
}

/// The pairs of class and queue, with a class for each queue that has none.
fn queue_map(
    db: &ConfigDb,
    want: &Want,
    after: &mut Map<String, Value>,
    statements: &mut Vec<Statement>,
) -> Option<Vec<(u8, u8)>> {
    let Some(name) = &want.queue_map else {
        // Without a map each class has the queue of its number.
        return Some((0..=LAST_TC).map(|class| (class, class)).collect());
    };
    let mut pairs: Vec<(u8, u8)> = match db.queue_maps.get(name) {
        Some(map) => map.iter().map(|(class, queue)| (*class, *queue)).collect(),
        None => Vec::new(),
    };
    let queues: BTreeSet<u8> = want.queues.iter().copied().collect();
    for queue in queues {
        if pairs.iter().any(|(_, of)| *of == queue) {
            continue;
        }
        let is_free = |class: &u8| pairs.iter().all(|(of, _)| of != class);
        let class = Some(queue).filter(is_free);
        let Some(class) = class.or_else(|| (0..=LAST_TC).find(is_free)) else {
            statements.push(Statement {
                fidelity: Fidelity::Missing,
                key: "classifier",
                says: format!("{name} has no class left for queue {queue}; the maps stay"),
            });
            return None;
        };
        pairs.push((class, queue));
        put(
            row(after, "TC_TO_QUEUE_MAP", name),
            &class.to_string(),
            &queue,
        );
    }
    Some(pairs)
}

fn fresh_name(after: &Map<String, Value>) -> String {
    let taken = after.get("DSCP_TO_TC_MAP").and_then(Value::as_object);
    let is_free = |name: &String| taken.is_none_or(|taken| !taken.contains_key(name));
    let names = (1..).map(|number| format!("SHALLOWS_{number}"));
    names.into_iter().find(is_free).unwrap_or_default()
}
