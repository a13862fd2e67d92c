//! Notes about a run that a reader of its numbers should know.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use shallows_core::port::ClassifierConfig;
use shallows_core::units::Rate;
use shallows_model::workload::{FlowSpec, OfferedLoad};
use shallows_results::summary::Summary;
use shallows_run::RunPlan;

/// Share of the simulated time after the last start above which the load is not the one requested.
const LONG_TAIL: f64 = 0.5;

/// Lines about a simulated run; empty if there is nothing to say.
pub(crate) fn notes(plan: &RunPlan, summary: &Summary) -> String {
    let found = [
        overload(&plan.workload.offered),
        tail(plan, summary),
        background(plan, summary),
        shared_queues(plan),
        over_limit(plan, summary),
    ];
    found
        .into_iter()
        .flatten()
        .fold(String::new(), |mut text, note| {
            let _ = writeln!(text, "note: {note}");
            text
        })
}

fn overload(loads: &[OfferedLoad]) -> Option<String> {
    let load = loads.iter().find(|load| load.requested > 1.0)?;
    let percent = 100.0 * load.requested;
    Some(format!(
        "a load of {percent:.0}% exceeds the capacity, so queues and completion times grow with the \
         length of the run"
    ))
}

/// Runs whose elephants go on long after the last arrival have a lower load than requested.
fn tail(plan: &RunPlan, summary: &Summary) -> Option<String> {
    if plan.workload.offered.is_empty() || summary.facts.measured.is_some() {
        return None;
    }
    let starts = plan.workload.flows.iter().map(|flow| flow.start);
    let last = starts
        .filter(|&start| start != FlowSpec::AT_BARRIER)
        .max()?;
    let end = summary.facts.simulated.as_secs_f64();
    let share = 1.0 - last.as_secs_f64() / end;
    if !(LONG_TAIL..1.0).contains(&share) {
        return None;
    }
    let hosts = summary.facts.utilisation.first()?;
    let (after, mean) = (100.0 * share, 100.0 * hosts.mean);
    Some(format!(
        "{after:.0}% of the simulated time came after the last flow started: the mean utilisation \
         of links {} was {mean:.1}%; more flows, or a window [measure], come nearer to the requested load",
        hosts.links
    ))
}

/// A measuring window in which arrivals end before the counted flows are done.
fn background(plan: &RunPlan, summary: &Summary) -> Option<String> {
    plan.scenario.config.measure?.to?;
    let last = plan.workload.flows.iter().map(|flow| flow.start).max()?;
    let end = summary.facts.simulated;
    if last >= end {
        return None;
    }
    Some(format!(
        "the last flow started at {last}, before the counted flows were done at {end}: with a longer \
         duration of the workload the load stays up until then"
    ))
}

/// With the classifier by DSCP, services without a queue of their own share the last one.
fn shared_queues(plan: &RunPlan) -> Option<String> {
    let config = &plan.scenario.config;
    let port = &config.ports.switch;
    if port.classifier != ClassifierConfig::Dscp
        || port.queues == 1
        || config.hosts.stages.is_some()
    {
        return None;
    }
    let services: BTreeSet<u16> = plan
        .workload
        .flows
        .iter()
        .map(|flow| flow.service)
        .collect();
    let last = port.queues as u16 - 1;
    let beyond: Vec<String> = services
        .iter()
        .filter(|&&service| service > last)
        .map(ToString::to_string)
        .collect();
    if beyond.is_empty() {
        return None;
    }
    let (noun, verb) = match beyond.len() {
        1 => ("service", "shares"),
        _ => ("services", "share"),
    };
    Some(format!(
        "ports have {} queues: {noun} {} {verb} the last one with service {last}",
        port.queues,
        beyond.join(", ")
    ))
}

/// Drops at QJUMP's limiters, with the limit of the service that lost most.
fn over_limit(plan: &RunPlan, summary: &Summary) -> Option<String> {
    let most = (summary.facts.over_limit.iter()).max_by_key(|of| of.packets)?;
    let qjump = plan.scenario.config.hosts.qjump.as_ref()?;
    let limits = qjump.limits(&plan.fabric).ok()?;
    let may = match limits.levels.get(usize::from(most.service)) {
        Some(bytes) if qjump.automatic.is_none() => {
            let rate = Rate::from_bytes_per(*bytes, limits.epoch);
            let mbps = rate.bps() as f64 / 1e6;
            format!(
                ", which may send {bytes} per {} ({mbps:.0} Mbps)",
                limits.epoch
            )
        }
        _ => String::new(),
    };
    let packets = most.packets;
    Some(format!(
        "hosts dropped {packets} packets of service {} over QJUMP's limit{may}; give it more bytes, \
         or set excess = \"hold\" in [hosts.qjump]",
        most.service
    ))
}
