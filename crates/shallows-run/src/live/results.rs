//! Results of a live run: the records of a simulated run, and those that only live runs have.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use shallows_core::units::Time;
use shallows_live::command::{Captured, CommandOutcome};
use shallows_live::experiment::Observed;
use shallows_live::switch::{LinkSnapshot, Snapshot};
use shallows_live::traffic::{STREAM_LATE, StreamTotals};
use shallows_results::ports::LinkRole;
use shallows_results::record::FlowRecord;
use shallows_results::summary::{ReasonCounts, RunFacts, Utilisation, World};
use shallows_results::write_text;

use super::record::roles;
use super::xco::XcoFacts;
use crate::failure::Failure;
use crate::measurements::{Measurements, QueueLength, Rtt, ServiceGoodput};
use crate::plan::RunPlan;
use crate::report::{begun, link_group, loads, unclassified};

/// The flows that have started, in the order of their numbers.
pub fn records(observed: &Observed, plan: &RunPlan, ideal: &[Time]) -> Vec<FlowRecord> {
    let flows = (0..)
        .zip(&plan.workload.flows)
        .zip(&observed.outcomes)
        .zip(ideal);
    flows
        .filter_map(|(((id, flow), outcome), &ideal_fct)| {
            let (start, fct, bytes) = (outcome.start?, outcome.fct, outcome.received);
            Some(FlowRecord {
                retransmits: outcome.retransmits,
                timeouts: outcome.timeouts,
                marks: outcome.marks,
                // The kernel does not count packets by flow, and the switch does not know the flows.
                ..begun(id, flow, start, fct, bytes, ideal_fct)
            })
        })
        .collect()
}

/// Facts that only the switch knows.
pub fn facts(
    observed: &Observed,
    plan: &RunPlan,
    records: &[FlowRecord],
    wall: Duration,
) -> RunFacts {
    let snapshot = &observed.report.snapshot;
    let queues = || snapshot.links.iter().flat_map(|link| &link.queues);
    let sum = |counts: Vec<&Vec<(String, u64)>>| {
        let mut sums: Vec<ReasonCounts> = Vec::new();
        for (reason, count) in counts.into_iter().flatten() {
            match sums.iter_mut().find(|sum| sum.reason == *reason) {
                Some(sum) => sum.counts.other += count,
                None => sums.push(ReasonCounts {
                    reason: reason.clone(),
                    counts: unclassified(*count),
                }),
            }
        }
        sums
    };
    let gated = Some(&snapshot.gate_drops);
    let gated = gated.filter(|drops| drops.iter().any(|(_, count)| *count > 0));
    RunFacts {
        world: World::Live,
        simulated: length(records, plan.workload.flows.len(), observed.duration),
        packet_hops: queues().map(|queue| queue.accepted_packets).sum(),
        events: 0,
        engine: None,
        wall: Some(wall),
        marks: sum(queues().map(|queue| &queue.marks).collect()),
        drops: sum(queues().map(|queue| &queue.drops).chain(gated).collect()),
        latencies: Vec::new(),
        over_limit: Vec::new(),
        levels: Vec::new(),
        longest_wait: None,
        utilisation: utilisation(snapshot, observed.duration, &roles(&plan.fabric)),
        loads: loads(plan, None, &[]),
        measured: None,
        fct_definition: "from a client's request to its last byte".to_owned(),
    }
}

/// Time until the last of all flows was over; of a run in which not all are, its whole time.
fn length(records: &[FlowRecord], flows: usize, whole: Time) -> Time {
    let finishes: Option<Vec<Time>> = records.iter().map(FlowRecord::finish).collect();
    let finishes = finishes.filter(|of| of.len() == flows);
    finishes
        .and_then(|of| of.into_iter().max())
        .unwrap_or(whole)
}

/// Utilisation of links by role; without framing.
fn utilisation(
    snapshot: &Snapshot,
    span: Time,
    roles: &BTreeMap<String, LinkRole>,
) -> Vec<Utilisation> {
    let share = |link: &LinkSnapshot| {
        let bytes: u64 = link.queues.iter().map(|queue| queue.accepted_bytes).sum();
        bytes as f64 * 8.0 / (link.rate_bps as f64 * span.as_secs_f64())
    };
    let mut groups: Vec<Utilisation> = Vec::new();
    for (role, name) in [
        (LinkRole::HostUp, "host to switch"),
        (LinkRole::HostDown, "switch to host"),
        (LinkRole::Core, "switch to switch"),
    ] {
        let links = snapshot.links.iter();
        let links = links.filter(|link| roles.get(&link.name) == Some(&role));
        let shares: Vec<f64> = links.map(share).collect();
        if !shares.is_empty() {
            groups.push(link_group(name.to_owned(), &shares));
        }
    }
    groups
}

/// `live.json`: what a machine reads of a live run beyond its flows.
#[derive(Serialize)]
struct Live<'a> {
    steal: Option<f64>,
    goodput: Vec<ServiceGoodput>,
    queues: Vec<QueueLength>,
    rtts: Vec<Rtt>,
    commands: Vec<LiveCommand<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<StreamTotals>,
    switch: &'a Snapshot,
    #[serde(skip_serializing_if = "Option::is_none")]
    xco: Option<XcoFacts<'a>>,
}

/// A command and how it ended; what it printed is in files beside.
#[derive(Serialize)]
struct LiveCommand<'a> {
    host: usize,
    run: &'a str,
    ending: String,
    failed: bool,
    stdout: Stream,
    stderr: Stream,
}

#[derive(Serialize)]
struct Stream {
    bytes: u64,
    /// In the directory of the results.
    file: Option<String>,
}

impl<'a> LiveCommand<'a> {
    fn new(of: &'a CommandOutcome) -> Self {
        Self {
            host: of.plan.host,
            run: &of.plan.line,
            ending: of.ending.to_string(),
            failed: of.failed(),
            stdout: Stream::new(&of.stdout),
            stderr: Stream::new(&of.stderr),
        }
    }
}

impl Stream {
    fn new(of: &Captured) -> Self {
        let name = of.file.as_deref().and_then(Path::file_name);
        Self {
            bytes: of.bytes,
            file: name.map(|name| format!("commands/{}", name.display())),
        }
    }
}

fn live<'a>(observed: &'a Observed, plan: &RunPlan) -> Live<'a> {
    let measurements = Measurements::of(observed, &plan.fabric);
    Live {
        steal: observed.steal,
        goodput: measurements.goodput(),
        queues: measurements.queue_lengths(),
        rtts: measurements.rtts(),
        commands: observed.commands.iter().map(LiveCommand::new).collect(),
        udp: observed.streams,
        switch: &observed.report.snapshot,
        xco: observed.xco.as_ref().map(XcoFacts::new),
    }
}

/// Writes what only live runs have.
pub(super) fn write(out: &Path, observed: &Observed, plan: &RunPlan) -> Result<(), Failure> {
    let json =
        serde_json::to_string_pretty(&live(observed, plan)).context("cannot write live.json")?;
    write_text(&out.join("live.json"), &(json + "\n")).map_err(anyhow::Error::from)?;
    Ok(())
}

/// Describes what UDP flows sent and received, and whether their senders kept their pace.
fn words_of_streams(of: &StreamTotals, switch: &Snapshot) -> String {
    let StreamTotals {
        sent,
        refused,
        not_taken,
        late,
        latest_ns,
        received,
        socket_drops,
    } = of;
    let missed: u64 = switch.devices.iter().map(|(_, of)| of.missed).sum();
    format!(
        "UDP: {received} of {sent} messages arrived whole; {refused} more found the send buffer \
         full, the kernel did not take {not_taken}, {late} were sent more than {STREAM_LATE} late \
         (the latest by {} us), {socket_drops} found the receiver's socket full, the switch missed \
         {missed} frames",
        latest_ns / 1_000
    )
}

/// Lines for people.
pub(super) fn report(observed: &Observed, plan: &RunPlan) -> String {
    let mut text = String::new();
    let facts = live(observed, plan);
    let mut line = |words: String| {
        text += &words;
        text.push('\n');
    };
    line(String::new());
    for of in &facts.goodput {
        line(format!(
            "goodput of service {}: {:.1} Mbps",
            of.service, of.mbps
        ));
    }
    for queue in facts
        .queues
        .iter()
        .filter(|queue| queue.role != LinkRole::HostUp)
    {
        let length = &queue.length;
        if length.p90 > 0 {
            line(format!(
                "queue {} of {}: mean {:.1} KB, p10 {:.1}, p50 {:.1}, p90 {:.1}, p99 {:.1} KB",
                queue.queue,
                queue.link,
                length.mean / 1e3,
                f64::from(length.p10) / 1e3,
                f64::from(length.p50) / 1e3,
                f64::from(length.p90) / 1e3,
                f64::from(length.p99) / 1e3,
            ));
        }
    }
    if observed.report.samples.lost > 0 {
        line(format!(
            "{} later samples of queues were not kept: choose a longer interval of probes.queues \
             or probes.throughput",
            observed.report.samples.lost
        ));
    }
    for rtt in &facts.rtts {
        line(format!(
            "round trip: mean {:.0} us, p50 {:.0}, p99 {:.0} us; {} of {} pings lost",
            rtt.mean_us, rtt.p50_us, rtt.p99_us, rtt.lost, rtt.sent
        ));
    }
    for command in &facts.commands {
        let LiveCommand {
            host, run, ending, ..
        } = command;
        line(format!("command at host {host}: {ending}: {run}"));
    }
    if let Some(udp) = &facts.udp {
        line(words_of_streams(udp, facts.switch));
    }
    if let Some(xco) = &facts.xco {
        line(xco.to_string());
    }
    let steal = facts.steal.map_or("unknown".to_owned(), |steal| {
        format!("{:.2}%", 100.0 * steal)
    });
    line(format!(
        "switch {}; stolen CPU time {steal}",
        facts.switch.verdict
    ));
    let controller = serde_json::to_string(&plan.transport.controller);
    let _ = writeln!(text, "kernel TCP: {}", controller.unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use shallows_model::HostId;
    use shallows_model::workload::FlowSpec;

    use super::*;

    /// A long-lived flow next to a short one is observed until the run ends, not until the short one
    /// does.
    #[test]
    fn a_run_is_as_long_as_its_flows_only_if_all_of_them_are_over() {
        let whole = Time::from_secs(1);
        let flow = |bytes, fct| {
            let spec = FlowSpec {
                start: Time::ZERO,
                src: HostId(0),
                dst: HostId(1),
                bytes,
                service: 0,
            };
            begun(0, &spec, Time::ZERO, fct, 12_500_000, Time::ZERO)
        };
        let short = flow(20_000, Some(Time::from_ms(12)));
        let endless = flow(FlowSpec::ENDLESS, None);
        let cases = [
            (vec![short], 1, Time::from_ms(12)),
            (vec![short], 2, whole),
            (vec![short, endless], 2, whole),
            (vec![], 0, whole),
        ];
        for (records, flows, expected) in cases {
            assert_eq!(length(&records, flows, whole), expected);
        }
    }
}
