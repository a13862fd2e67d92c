//! Queues of traffic classes, and the sharing of a port among queues.

use std::collections::BTreeMap;

use super::super::names::phrase;
use super::super::port::PortGroup;
use super::super::read::ConfigPlace;
use super::super::tables::SchedulerKind;
use super::super::words;
use super::{Context, Report, Rule, Severity, place_of};

pub(super) fn check(groups: &[PortGroup<'_>], context: &Context, report: &mut Report) {
    for group in groups {
        let has_queues = group.queues.iter().any(|queue| queue.row.is_some());
        if has_queues {
            classifier(group, report);
            covered(group, report);
            weights(group, report);
            starvation(group, report);
        }
        if !context.qjump.is_empty() {
            qjump(group, &context.qjump, report);
        }
    }
}

/// Traffic without a queue.
fn classifier(group: &PortGroup<'_>, report: &mut Report) {
    let ports = phrase(&group.ports);
    let port = ConfigPlace::row("PORT_QOS_MAP", group.ports[0].as_str());
    let classes = &group.classes;
    if classes.dscp_map.is_none() {
        let says = format!("{ports} has no dscp_to_tc_map: packets of every DSCP join queue 0");
        let fix = "add a row to PORT_QOS_MAP with dscp_to_tc_map and tc_to_queue_map";
        report.add(Rule::Unclassified, Severity::Warning, port, says, fix);
        return;
    }
    let lost = |dscp: &u8| classes.queues[usize::from(*dscp)].is_none();
    let lost: Vec<u8> = (0..=63).filter(lost).collect();
    if !lost.is_empty() {
        let map = classes.queue_map.as_deref().unwrap_or_default();
        let says = format!(
            "DSCP {} of {ports} have a traffic class for which {map} has no queue",
            words::numbers(&lost)
        );
        let place = ConfigPlace::row("TC_TO_QUEUE_MAP", map);
        let fix = "add the class to the map";
        report.add(Rule::Unclassified, Severity::Warning, place, says, fix);
    }
}

/// Traffic in queues that are not marked.
fn covered(group: &PortGroup<'_>, report: &mut Report) {
    let ports = phrase(&group.ports);
    if group.queues.iter().all(|queue| queue.wred.is_none()) {
        let says = format!("no queue of {ports} has a WRED profile: nothing is marked");
        let fix = "add \"wred_profile\" to the rows of QUEUE that should mark";
        let place = place_of(group, 0);
        report.add(Rule::Uncovered, Severity::Warning, place, says, fix);
        return;
    }
    for (queue, view) in (0..).zip(&group.queues) {
        let dscps = group.dscps(queue);
        if view.wred.is_some() || dscps.is_empty() {
            continue;
        }
        let goes = if dscps.len() == 1 { "goes" } else { "go" };
        let says = format!(
            "DSCP {} {goes} to queue {queue} of {ports}, which no WRED profile covers: it is not marked, and fills its buffer",
            words::numbers(&dscps)
        );
        let fix =
            format!("add a WRED profile to queue {queue}, or map these DSCPs to another queue");
        let place = place_of(group, usize::from(queue));
        report.add(Rule::Uncovered, Severity::Warning, place, says, &fix);
    }
}

/// Weights that a queue gets nothing for.
fn weights(group: &PortGroup<'_>, report: &mut Report) {
    let ports = phrase(&group.ports);
    let mut bad: BTreeMap<&str, (u32, Vec<u8>)> = BTreeMap::new();
    let mut sum = None;
    for (queue, view) in (0..).zip(&group.queues) {
        let Some((name, scheduler)) = view.scheduler else {
            continue;
        };
        if scheduler.kind == SchedulerKind::Strict {
            continue;
        }
        let weight = u64::from(scheduler.weight);
        sum = Some(sum.unwrap_or(0) + weight);
        if !(1..=100).contains(&scheduler.weight) {
            let entry = bad.entry(name).or_insert((scheduler.weight, Vec::new()));
            entry.1.push(queue);
        }
    }
    if sum == Some(0) {
        let says =
            format!("the weights of {ports} add to nothing: no queue has a share of the link");
        let fix = "set \"weight\" from 1 to 100 in the schedulers of these queues";
        let place = place_of(group, 0);
        report.add(Rule::Weight, Severity::Error, place, says, fix);
        return;
    }
    for (name, (weight, queues)) in bad {
        let effect = match weight {
            0 => "get no share of the link",
            _ => "have a weight that SONiC's model refuses",
        };
        let says = format!(
            "{name} has weight {weight}, so that queues {} of {ports} {effect}",
            words::numbers(&queues)
        );
        let place = ConfigPlace::row("SCHEDULER", name).field("weight");
        let fix = "set \"weight\" from 1 to 100";
        report.add(Rule::Weight, Severity::Error, place, says, fix);
    }
}

/// Strict queues without a limit, above others.
fn starvation(group: &PortGroup<'_>, report: &mut Report) {
    let kind = |queue: usize| group.queues[queue].scheduler.map(|(_, row)| row.kind);
    let used = |queue: &usize| group.queues[*queue].row.is_some();
    let all: Vec<usize> = (0..group.queues.len()).filter(used).collect();
    let strict = |queue: &usize| kind(*queue) == Some(SchedulerKind::Strict);
    let unlimited = |queue: &usize| {
        let row = group.queues[*queue].scheduler.map(|(_, row)| row);
        row.is_some_and(|row| row.pir.is_none_or(|pir| pir == 0))
    };
    let above: Vec<usize> = all
        .iter()
        .copied()
        .filter(strict)
        .filter(unlimited)
        .collect();
    let Some(&highest) = above.last() else {
        return;
    };
    let below: Vec<u8> = all
        .iter()
        .filter(|queue| !strict(queue) || **queue < highest)
        .map(|&queue| queue as u8)
        .collect();
    if below.is_empty() {
        return;
    }
    let above: Vec<u8> = above.into_iter().map(|queue| queue as u8).collect();
    let (noun, verb, while_busy) = match above.len() {
        1 => ("queue", "is", "it has"),
        _ => ("queues", "are", "they have"),
    };
    let says = format!(
        "{noun} {} of {} {verb} strict without a limit: while {while_busy} packets, queues {} get nothing",
        words::numbers(&above),
        phrase(&group.ports),
        words::numbers(&below)
    );
    let fix = "set \"pir\" in the strict scheduler, limit what hosts send at that priority (shallows qjump plan), or use DWRR";
    let place = place_of(group, highest);
    report.add(Rule::Starvation, Severity::Warning, place, says, fix);
}

/// QJUMP's levels: each in a queue of its own, in strict priority from the highest down.
fn qjump(group: &PortGroup<'_>, levels: &[u8], report: &mut Report) {
    let ports = phrase(&group.ports);
    let queue = |dscp: &u8| {
        group
            .classes
            .queues
            .get(usize::from(*dscp))
            .copied()
            .flatten()
    };
    let queues: Vec<Option<u8>> = levels.iter().map(queue).collect();
    let fix = "give each level a queue, the highest level the highest one, and STRICT to all above level 0";
    let mut problem = |level: usize, says: String| {
        let place = place_of(group, usize::from(queues[level].unwrap_or(0)));
        report.add(Rule::QjumpNotStrict, Severity::Error, place, says, fix);
    };
    for (level, dscp) in levels.iter().enumerate() {
        let Some(own) = queues[level] else {
            problem(
                level,
                format!("QJUMP's level {level} (DSCP {dscp}) has no queue at {ports}"),
            );
            continue;
        };
        let lower = level.checked_sub(1).and_then(|lower| queues[lower]);
        if lower.is_some_and(|lower| lower >= own) {
            let says = format!(
                "QJUMP's level {level} (DSCP {dscp}) is in queue {own} of {ports}, not above level {} in queue {}",
                level - 1,
                lower.unwrap_or_default()
            );
            problem(level, says);
        } else if level > 0 {
            let row = group.queues[usize::from(own)].scheduler;
            if row.is_none_or(|(_, row)| row.kind != SchedulerKind::Strict) {
                let says = format!(
                    "QJUMP's level {level} (DSCP {dscp}) is in queue {own} of {ports}, which is not STRICT: its bound does not hold"
                );
                problem(level, says);
            }
        }
    }
}
