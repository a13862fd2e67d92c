//! Reports of a run: records of its flows and the counters of its ports.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::time::Duration;

use shallows_core::host::gate::Refusal;
use shallows_core::port::{DropReason, MarkReason};
use shallows_core::units::Time;
use shallows_model::Completion;
use shallows_model::LinkId;
use shallows_model::topology::{Fabric, Node};
use shallows_model::workload::FlowSpec;
use shallows_results::latencies::{Latency, Operation};
use shallows_results::ports::{PortCounters, PortRecord};
use shallows_results::probes::PingSample;
use shallows_results::reason::{drop_name, mark_name, refusal_name};
use shallows_results::record::FlowRecord;
use shallows_results::size_class::{ClassCounts, SizeClasses};
use shallows_results::statistics::mean;
use shallows_results::summary::{
    LevelSummary, LoadSummary, PauseSummary, ReasonCounts, RunFacts, ServiceDrops, Utilisation,
    World,
};
use shallows_sim::{PauseStats, Simulation};

use crate::plan::RunPlan;
use crate::ports::sent_bytes;

/// Loads as requested, as the generated flows bring them and as hosts carried them: `carried` in the
/// measuring window, or else over the whole run.
pub(crate) fn loads(
    plan: &RunPlan,
    carried: Option<f64>,
    utilisation: &[Utilisation],
) -> Vec<LoadSummary> {
    let of_hosts = utilisation
        .iter()
        .find(|of| of.links.starts_with("host to "));
    let carried = carried.or(of_hosts.map(|of| of.mean));
    let offered = plan.workload.offered.iter();
    offered
        .map(|of| LoadSummary {
            requested: of.requested,
            offered: of.offered,
            carried,
        })
        .collect()
}

/// Groups of links beyond which only hosts and switches are told apart.
const MOST_GROUPS: usize = 12;

/// The flows that have started, in the order of their numbers; `ideal` has what each would take
/// alone.
pub(crate) fn records(simulation: &Simulation, ideal: &[Time]) -> impl Iterator<Item = FlowRecord> {
    let now = simulation.progress().now;
    let flows = (0..).zip(simulation.flows()).zip(ideal);
    flows
        .filter(move |((_, (_, outcome)), _)| outcome.start <= now)
        .map(|((id, (flow, outcome)), &ideal_fct)| {
            let (start, fct, bytes) = (outcome.start, outcome.fct, outcome.delivered);
            FlowRecord {
                retransmits: outcome.retransmits,
                timeouts: outcome.timeouts,
                marks: outcome.marks,
                sent: Some(outcome.sent),
                dropped: Some(outcome.drops),
                ..begun(id, flow, start, fct, bytes, ideal_fct)
            }
        })
}

/// The record of a flow that has begun, in either world, with all counters zero. A flow without end
/// is as long as what it has delivered.
pub(crate) fn begun(
    id: u64,
    flow: &FlowSpec,
    start: Time,
    fct: Option<Time>,
    delivered: u64,
    ideal_fct: Time,
) -> FlowRecord {
    let is_endless = flow.bytes == FlowSpec::ENDLESS;
    FlowRecord {
        id,
        start,
        src: flow.src.0,
        dst: flow.dst.0,
        bytes: if is_endless { delivered } else { flow.bytes },
        service: flow.service,
        fct: fct.filter(|_| !is_endless),
        ideal_fct,
        retransmits: 0,
        timeouts: 0,
        marks: 0,
        sent: None,
        dropped: None,
    }
}

/// The ports of a fabric with their counters over `span`, in the order of their links.
pub(crate) fn ports(simulation: &Simulation, plan: &RunPlan, span: Time) -> Vec<PortRecord> {
    let mut ports = crate::ports::ports(&plan.fabric);
    for (link, record) in plan.fabric.links().ids().zip(&mut ports) {
        let port = simulation.port(link);
        let of_queues = |count: &dyn Fn(usize) -> u64| (0..port.queue_count()).map(count).sum();
        let queued = |queue: usize| {
            let evicted = port.counters(queue).drops(DropReason::Evicted).packets;
            port.queued(queue).packets - evicted - u64::from(port.queue_packets(queue))
        };
        let config = plan.ports.config(&plan.fabric, link);
        let paused = simulation.pauses(link);
        record.counters = Some(PortCounters {
            packets: of_queues(&queued),
            bytes: of_queues(&|queue| sent_bytes(port, config, queue)),
            utilisation: share(simulation, plan, link, span),
            peak_bytes: port.peak_bytes().get(),
            marks: of_queues(&|queue| port.counters(queue).all_marks()),
            drops: of_queues(&|queue| port.counters(queue).all_drops().packets),
            pauses: paused.pauses,
            paused: paused.paused,
        });
    }
    ports
}

/// The probe that an application of a simulation is the ping of.
fn ping_probe(plan: &RunPlan, application: Option<u32>) -> Option<usize> {
    let number = application? as usize;
    number.checked_sub(plan.applications.len())
}

/// The pings of all probes, one probe after the other. Those that the end of the run has overtaken
/// are lost.
pub(crate) fn pings(simulation: &Simulation, plan: &RunPlan) -> Vec<PingSample> {
    let answered: BTreeMap<(usize, Time), Time> = simulation
        .latencies()
        .filter_map(|of| Some(((ping_probe(plan, of.number)?, of.start), of.latency)))
        .collect();
    let end = simulation.progress().now;
    let mut pings = Vec::new();
    for (probe, of) in plan.probes.pings.iter().enumerate() {
        let mut time = of.start;
        while time < end {
            pings.push(PingSample {
                time,
                probe: probe as u32,
                rtt: answered.get(&(probe, time)).copied(),
            });
            time = time.saturating_add(of.interval);
        }
    }
    pings
}

/// The operations that applications have done.
pub(crate) fn latencies(simulation: &Simulation, plan: &RunPlan) -> Vec<Latency> {
    let latencies = simulation.latencies();
    latencies
        .filter(|of| ping_probe(plan, of.number).is_none())
        .map(|of| Latency {
            operation: Operation {
                application: of.application.to_owned(),
                name: of.name.to_owned(),
            },
            start: of.start,
            host: of.host.0,
            latency: of.latency,
        })
        .collect()
}

/// Facts that only the simulation knows.
pub(crate) fn facts(
    simulation: &Simulation,
    plan: &RunPlan,
    records: impl IntoIterator<Item = impl Borrow<FlowRecord>>,
    completion: Completion,
    wall: Duration,
) -> RunFacts {
    let progress = simulation.progress();
    let counts = FlowCounts::of(records, plan.size_classes);
    // What timers do after the last flow is of no interest.
    let flows = simulation.flows().len() as u64;
    let simulated = if flows > 0 && counts.finished == flows {
        counts.last_finish
    } else {
        progress.now
    };
    RunFacts {
        world: World::Simulated,
        simulated,
        packet_hops: progress.packet_hops,
        events: progress.events,
        engine: Some(simulation.engine().to_string()),
        wall: Some(wall),
        marks: marks(simulation, &plan.fabric, counts.marks),
        drops: drops(simulation, plan),
        over_limit: over_limit(simulation),
        latencies: Vec::new(),
        levels: levels(simulation, &plan.fabric),
        longest_wait: plan
            .fabric
            .host_ids()
            .filter_map(|host| simulation.longest_wait(host))
            .max(),
        utilisation: utilisation(simulation, plan, simulated),
        loads: Vec::new(),
        measured: None,
        fct_definition: match completion {
            Completion::Sender => "from a flow's start to its sender's last ACK",
            Completion::Receiver => "from a flow's start to its last byte at the receiver",
        }
        .to_owned(),
    }
}

/// Totals over flows that the facts of a run need.
#[derive(Debug, Default)]
struct FlowCounts {
    finished: u64,
    last_finish: Time,
    /// Marked segments that arrived.
    marks: ClassCounts,
}

impl FlowCounts {
    fn of(
        records: impl IntoIterator<Item = impl Borrow<FlowRecord>>,
        classes: SizeClasses,
    ) -> Self {
        let mut counts = Self::default();
        for record in records {
            let record = record.borrow();
            let class = classes.class_of(record.bytes);
            counts.marks.add(class, u64::from(record.marks));
            if let Some(finish) = record.finish() {
                counts.finished += 1;
                counts.last_finish = counts.last_finish.max(finish);
            }
        }
        counts
    }
}

/// The levels that hosts have chosen, by service.
fn levels(simulation: &Simulation, fabric: &Fabric) -> Vec<LevelSummary> {
    let mut services: BTreeMap<u32, LevelSummary> = BTreeMap::new();
    let hosts = fabric
        .host_ids()
        .filter_map(|host| simulation.automatic_levels(host));
    for levels in hosts {
        for of in levels.applications() {
            let service = of.application;
            let summary = services.entry(service).or_insert_with(|| LevelSummary {
                service,
                hosts: vec![0; levels.count()],
                control: vec![0; levels.count()],
                most_changes: 0,
                settled: Time::ZERO,
            });
            summary.hosts[usize::from(of.level)] += 1;
            if let Some(level) = of.control {
                summary.control[usize::from(level)] += 1;
            }
            summary.most_changes = summary.most_changes.max(of.changes);
            summary.settled = summary.settled.max(of.settled);
        }
    }
    services.into_values().collect()
}

/// Marks by reason. Ports do not know of flows, so where there is one reason its classes are those
/// of the marked segments that arrived, and the rest, of ACKs above all, is `other`.
fn marks(simulation: &Simulation, fabric: &Fabric, arrived: ClassCounts) -> Vec<ReasonCounts> {
    let totals = MarkReason::ALL.map(|reason| {
        let total: u64 = queues(simulation, fabric, |counters| counters.marks(reason)).sum();
        (mark_name(reason), total)
    });
    by_class(&totals, arrived)
}

/// Drops by reason and by the class of the flow, and what links lost where some may. ACKs are
/// `other`.
fn drops(simulation: &Simulation, plan: &RunPlan) -> Vec<ReasonCounts> {
    let of_reason = |reason| {
        let total: u64 = queues(simulation, &plan.fabric, |counters| {
            counters.drops(reason).packets
        })
        .sum();
        let mut counts = ClassCounts::default();
        let of_flows = simulation.drops().filter(|(flow, of, _)| {
            // A flow without end has no size, and no class.
            *of == reason && flow.bytes != FlowSpec::ENDLESS
        });
        for (flow, _, packets) in of_flows {
            counts.add(plan.size_classes.class_of(flow.bytes), u64::from(packets));
        }
        counts.other = total - counts.total();
        ReasonCounts {
            reason: drop_name(reason).to_owned(),
            counts,
        }
    };
    let mut counts = DropReason::ALL.map(of_reason).to_vec();
    counts.extend(refusals(simulation, plan));
    let faulty = plan.faulty_links();
    if !faulty.is_empty() {
        let lost = faulty.iter().map(|&link| simulation.lost_on(link)).sum();
        counts.push(ReasonCounts {
            reason: "lost on a link".to_owned(),
            counts: unclassified(lost),
        });
    }
    counts
}

/// Drops of data at the gates of hosts, where there are any.
fn refusals(simulation: &Simulation, plan: &RunPlan) -> Vec<ReasonCounts> {
    let of_reason = |refusal| {
        let mut counts = ClassCounts::default();
        for (flow, _, packets) in simulation.refusals().filter(|(_, of, _)| *of == refusal) {
            counts.add(plan.size_classes.class_of(flow.bytes), u64::from(packets));
        }
        ReasonCounts {
            reason: refusal_name(refusal).to_owned(),
            counts,
        }
    };
    let counts = Refusal::ALL.map(of_reason).into_iter();
    counts.filter(|counts| counts.counts.total() > 0).collect()
}

/// Drops by the limits of hosts, by service.
fn over_limit(simulation: &Simulation) -> Vec<ServiceDrops> {
    let mut services: BTreeMap<u16, u64> = BTreeMap::new();
    let over = simulation
        .refusals()
        .filter(|(_, of, _)| *of == Refusal::OverLimit);
    for (flow, _, packets) in over {
        *services.entry(flow.service).or_default() += u64::from(packets);
    }
    let drops = services.into_iter();
    drops
        .map(|(service, packets)| ServiceDrops { service, packets })
        .collect()
}

/// Totals by reason, with the classes that are known of all of them where they have one reason.
fn by_class(totals: &[(&str, u64)], known: ClassCounts) -> Vec<ReasonCounts> {
    let reasons = totals.iter().filter(|(_, total)| *total > 0).count();
    let counts = |total: u64| match total.checked_sub(known.total()) {
        Some(other) if reasons == 1 && total > 0 => ClassCounts { other, ..known },
        _ => unclassified(total),
    };
    let of_reason = |&(reason, total): &(&str, u64)| ReasonCounts {
        reason: reason.to_owned(),
        counts: counts(total),
    };
    totals.iter().map(of_reason).collect()
}

pub(crate) fn unclassified(total: u64) -> ClassCounts {
    ClassCounts {
        other: total,
        ..ClassCounts::default()
    }
}

/// A count of each queue of each port.
fn queues(
    simulation: &Simulation,
    fabric: &Fabric,
    count: impl Fn(&shallows_core::port::QueueCounters) -> u64,
) -> impl Iterator<Item = u64> {
    let links = fabric.links().ids();
    links.flat_map(move |link| {
        let port = simulation.port(link);
        let counts = (0..port.queue_count()).map(|queue| count(port.counters(queue)));
        counts.collect::<Vec<_>>()
    })
}

/// Utilisation of links over `span`, by role.
fn utilisation(simulation: &Simulation, plan: &RunPlan, span: Time) -> Vec<Utilisation> {
    let summarize = |(links, numbers): (String, Vec<LinkId>)| {
        let shares = numbers
            .iter()
            .map(|&link| share(simulation, plan, link, span));
        Utilisation {
            pauses: plan.ports.pause.map(|_| pauses(simulation, &numbers, span)),
            ..link_group(links, &shares.collect::<Vec<f64>>())
        }
    };
    tiers(&plan.fabric).into_iter().map(summarize).collect()
}

/// Utilisation of a group of links, by the share that each was busy.
pub(crate) fn link_group(links: String, shares: &[f64]) -> Utilisation {
    Utilisation {
        links,
        count: shares.len() as u64,
        mean: mean(shares),
        min: shares.iter().copied().fold(f64::INFINITY, f64::min),
        max: shares.iter().copied().fold(0.0, f64::max),
        pauses: None,
    }
}

/// Links by the kinds of nodes that they join, such as "leaf to spine"; at most 12 groups.
pub fn tiers(fabric: &Fabric) -> BTreeMap<String, Vec<LinkId>> {
    let groups = grouped(fabric, |node| role(fabric, node));
    if groups.len() <= MOST_GROUPS {
        return groups;
    }
    grouped(fabric, |node| match node {
        Node::Host(_) => "host".to_owned(),
        Node::Switch(_) => "switch".to_owned(),
    })
}

/// Pauses of some links over `span`.
fn pauses(simulation: &Simulation, links: &[LinkId], span: Time) -> PauseSummary {
    let stats: Vec<_> = links.iter().map(|&link| simulation.pauses(link)).collect();
    let fraction =
        |of: &PauseStats| of.paused.as_secs_f64() / span.as_secs_f64().max(f64::MIN_POSITIVE);
    let fractions: Vec<f64> = stats.iter().map(fraction).collect();
    PauseSummary {
        frames: stats.iter().map(|of| of.pauses).sum(),
        mean: mean(&fractions),
        max: fractions.iter().copied().fold(0.0, f64::max),
    }
}

/// Links by what they join.
fn grouped(fabric: &Fabric, role: impl Fn(Node) -> String) -> BTreeMap<String, Vec<LinkId>> {
    let mut groups: BTreeMap<String, Vec<LinkId>> = BTreeMap::new();
    for (number, link) in fabric.links().numbered() {
        let name = format!("{} to {}", role(link.from), role(link.to));
        groups.entry(name).or_default().push(number);
    }
    groups
}

/// Utilisation of a link over `span`, as a fraction of its rate.
fn share(simulation: &Simulation, plan: &RunPlan, link: LinkId, span: Time) -> f64 {
    let rate = plan.fabric.link(link).rate;
    match rate.bps() as f64 / 8.0 * span.as_secs_f64() {
        0.0 => 0.0,
        capacity => sent(simulation, plan, link) / capacity,
    }
}

/// Bytes on the wire, but for the padding of short frames.
fn sent(simulation: &Simulation, plan: &RunPlan, link: LinkId) -> f64 {
    let port = simulation.port(link);
    let config = plan.ports.config(&plan.fabric, link);
    let queues = 0..port.queue_count();
    let bytes: u64 = queues.map(|queue| sent_bytes(port, config, queue)).sum();
    bytes as f64
}

/// The name of a node without its number.
fn role(fabric: &Fabric, node: Node) -> String {
    let name = fabric
        .name(node)
        .trim_end_matches(|c: char| c.is_ascii_digit());
    match (name, node) {
        ("" | "h", Node::Host(_)) => "host".to_owned(),
        ("" | "s", Node::Switch(_)) => "switch".to_owned(),
        _ => name.to_owned(),
    }
}
