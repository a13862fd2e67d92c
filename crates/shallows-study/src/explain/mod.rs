//! Explanation of a run: its hottest ports, the parts of completion times, and the places of packet
//! losses.
//!
//! Ports and flows come from the tables of the run. The rest needs every packet, which no run keeps:
//! the scenario is simulated again, with all links observed, and gives the same flows.

mod critical;
mod focus;
mod losses;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use serde::Serialize;
use shallows_core::registry::Registry;
use shallows_core::units::Time;
use shallows_model::{FlowId, IdVec, LinkId};
use shallows_results::RunRecord;
use shallows_results::record::FlowRecord;
use shallows_results::summary::World;
use shallows_run::{
    Failure, Interrupt, Observer, Options, RunPlan, Scenario, Simulated, Step, World as _,
};
use shallows_sim::{Observation, Simulation};

use critical::{CriticalPaths, OTHER_PARTS};
pub use focus::{FlowEvent, FlowLife, FlowUse, PortUse, ServiceUse, WindowAt};
use focus::{FlowFollower, PortMeter, us};
pub use losses::Drop;
use losses::Losses;

/// Ports and flows that are listed.
const LISTED: usize = 10;

/// The question.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// One flow in detail.
    pub flow: Option<u32>,
    /// One port in detail, by the name of its link.
    pub port: Option<String>,
    /// Answer from the tables of the run only, without simulating it again.
    pub tables_only: bool,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The busiest ports, by marks, drops, peak queue and utilisation.
    pub ports: Vec<HotPort>,
    /// Number of all ports.
    pub all_ports: usize,
    /// Flows with timeouts, most first.
    pub timeouts: Vec<TimedOut>,
    /// Number of flows with timeouts.
    pub flows_with_timeouts: usize,
    /// Observations of the second simulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// Reason why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_observed: Option<String>,
}

/// A busy port.
#[derive(Clone, Debug, Serialize)]
pub struct HotPort {
    /// Name of its link.
    pub port: String,
    /// Bytes sent, on the wire.
    pub bytes: u64,
    /// Share of the link's rate.
    pub utilisation: f64,
    /// Largest number of bytes queued.
    pub peak_bytes: u64,
    /// Packets marked.
    pub marks: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Pause frames that stopped it.
    pub pauses: u64,
}

/// A flow whose retransmission timer expired.
#[derive(Clone, Debug, Serialize)]
pub struct TimedOut {
    /// Number of the flow.
    pub flow: u64,
    /// Source and destination host.
    pub hosts: [u32; 2],
    /// Service.
    pub service: u16,
    /// Bytes of the flow.
    pub bytes: u64,
    /// Completion time, if it finished.
    pub fct_us: Option<f64>,
    /// Expiries of its timer.
    pub timeouts: u32,
    /// Its packets that ports dropped.
    pub drops: Option<u32>,
}

/// Observations of a simulation with all links observed.
#[derive(Clone, Debug, Serialize)]
pub struct Observed {
    /// True if it gave the completion times of the recorded run.
    pub same_flows: bool,
    /// Names of the parts of a completion time.
    pub parts: Vec<String>,
    /// Mean parts by size class and service.
    pub groups: Vec<Group>,
    /// Drops of data packets, in the order of time.
    pub drops: Vec<Drop>,
    /// Drops that are not in the list.
    pub drops_left_out: u64,
    /// The flow that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowLife>,
    /// Parts of its completion time, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_parts_us: Option<Vec<f64>>,
    /// The port that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<PortUse>,
}

/// Parts of the completion times of some flows.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Size class, such as `small`, or service, such as `service 3`; `slowest 1%` of it is a group
    /// of its own.
    pub name: String,
    /// Finished TCP flows.
    pub flows: usize,
    /// Mean completion time.
    pub mean_fct_us: f64,
    /// Mean parts of it, in the order of [`Observed::parts`].
    pub parts_us: Vec<f64>,
}

/// Explains the run in a directory. `progress` follows the second simulation.
pub fn explain(
    directory: &Path,
    question: &Question,
    registry: &Registry,
    (interrupted, progress): (Interrupt<'_>, &mut dyn Observer),
) -> Result<Explanation, Failure> {
    let record = RunRecord::open(directory).map_err(anyhow::Error::from)?;
    let summary = record.summary.as_ref().ok_or_else(|| {
        let shown = directory.display();
        anyhow!("{shown} holds no run: give the directory that `shallows run` wrote")
    })?;
    let mut answer = Explanation {
        ports: hot_ports(&record),
        all_ports: record.ports.len(),
        timeouts: timed_out(&record.flows),
        flows_with_timeouts: record.flows.iter().filter(|of| of.timeouts > 0).count(),
        observed: None,
        not_observed: None,
    };
    let refusal = match summary.facts.world {
        World::Live => Some("a live run cannot be repeated: only its tables are shown"),
        World::Simulated if question.tables_only => Some("not simulated again (--tables-only)"),
        World::Simulated => None,
    };
    if let Some(refusal) = refusal {
        if question.flow.is_some() || question.port.is_some() {
            return Err(anyhow!("--flow and --port need a second simulation: {refusal}").into());
        }
        answer.not_observed = Some(refusal.to_owned());
        return Ok(answer);
    }
    let scenario = Scenario::read_with(&directory.join("scenario.toml"), &[], registry)?;
    answer.observed = Some(observe(
        &scenario,
        &record,
        question,
        (interrupted, progress),
    )?);
    Ok(answer)
}

fn hot_ports(record: &RunRecord) -> Vec<HotPort> {
    let with_counters = record.ports.iter();
    let counted = with_counters.filter_map(|port| Some((port, port.counters?)));
    let mut ports: Vec<HotPort> = counted
        .map(|(port, of)| HotPort {
            port: port.name.clone(),
            bytes: of.bytes,
            utilisation: of.utilisation,
            peak_bytes: of.peak_bytes,
            marks: of.marks,
            drops: of.drops,
            pauses: of.pauses,
        })
        .collect();
    let heat = |of: &HotPort| (of.drops, of.marks, of.pauses, of.peak_bytes, of.bytes);
    ports.sort_by_key(|of| std::cmp::Reverse(heat(of)));
    ports.truncate(LISTED);
    ports
}

fn timed_out(flows: &[FlowRecord]) -> Vec<TimedOut> {
    let mut flows: Vec<_> = flows.iter().filter(|flow| flow.timeouts > 0).collect();
    flows.sort_by_key(|flow| (std::cmp::Reverse((flow.timeouts, flow.fct)), flow.id));
    let shown = flows.into_iter().take(LISTED);
    shown
        .map(|flow| TimedOut {
            flow: flow.id,
            hosts: [flow.src, flow.dst],
            service: flow.service,
            bytes: flow.bytes,
            fct_us: flow.fct.map(us),
            timeouts: flow.timeouts,
            drops: flow.dropped,
        })
        .collect()
}

/// Simulates the scenario with all links observed.
fn observe(
    scenario: &Scenario,
    recorded: &RunRecord,
    question: &Question,
    (interrupted, progress): (Interrupt<'_>, &mut dyn Observer),
) -> Result<Observed, Failure> {
    let mut plan = scenario.build_unless(interrupted)?;
    let links = plan.fabric.links().ids();
    plan.probes = plan.probes.only_pings();
    plan.probes.watch.captured = links.collect();
    plan.probes.watch.drops = true;
    let plan = Simulated.admit(plan)?;
    let mut witness = Witness::new(&plan, recorded, question)?;
    let options = Options {
        interrupted,
        ..Options::default()
    };
    let observers: &mut [&mut dyn Observer] = &mut [&mut witness, progress];
    let record = plan.run(&options, observers)?.record;
    if interrupted.is_set() {
        return Err(Failure::Interrupted);
    }
    Ok(witness.finish(&record, recorded))
}

/// Sees every packet of a run.
struct Witness<'a> {
    plan: &'a RunPlan,
    names: IdVec<LinkId, String>,
    paths: CriticalPaths,
    losses: Losses,
    flow: Option<FlowFollower>,
    port: Option<PortMeter>,
}

impl<'a> Witness<'a> {
    fn new(plan: &'a RunPlan, recorded: &RunRecord, question: &Question) -> Result<Self, Failure> {
        let links = plan.fabric.links().iter();
        let names: IdVec<LinkId, String> = links
            .map(|link| shallows_run::scenario::link_name(&plan.fabric, link))
            .collect();
        let port = question.port.as_ref().map(|port| {
            let link = names.iter().position(|name| name == port);
            let link = link.with_context(|| {
                format!(
                    "no port {port}; ports.csv of the run lists them, such as {}",
                    names[LinkId(0)]
                )
            })?;
            anyhow::Ok(PortMeter::new(LinkId(link as u32), port))
        });
        let flow = question.flow.map(|flow| {
            let of = recorded.flows.iter().find(|of| of.id == u64::from(flow));
            let of = of.with_context(|| format!("no flow {flow} started in this run"))?;
            let end = of.fct.unwrap_or(Time::from_ms(1));
            let every = Time::from_ps(end.ps() / 40).max(Time::from_us(1));
            anyhow::Ok(FlowFollower::new(
                flow,
                of.start.saturating_add(every),
                every,
            ))
        });
        Ok(Self {
            plan,
            paths: CriticalPaths::new(plan),
            losses: Losses::default(),
            flow: flow.transpose()?,
            port: port.transpose()?,
            names,
        })
    }

    fn service(&self, flow: FlowId) -> u16 {
        let flow = self.plan.workload.flows.get(flow);
        flow.map_or(0, |flow| flow.service)
    }

    fn finish(self, record: &RunRecord, recorded: &RunRecord) -> Observed {
        let flow_parts_us = self.flow.as_ref().and_then(|flow| {
            let (_, spent) = self.paths.of_flow(flow.life.id())?;
            let parts = &spent[..self.paths.parts().len()];
            Some(parts.iter().map(|&ps| ps as f64 / 1e6).collect())
        });
        let groups = groups(self.plan, &self.paths, &record.flows);
        let (drops, drops_left_out) = self.losses.finish();
        let fcts = |flows: &[FlowRecord]| flows.iter().map(|of| of.fct).collect::<Vec<_>>();
        Observed {
            same_flows: fcts(&record.flows) == fcts(&recorded.flows),
            parts: self.paths.parts().to_vec(),
            groups,
            drops,
            drops_left_out,
            flow: self.flow.map(|flow| flow.life),
            flow_parts_us,
            port: self.port.map(PortMeter::finish),
        }
    }
}

impl Observer for Witness<'_> {
    fn next_sample(&self) -> Option<Time> {
        self.flow.as_ref()?.next_sample()
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<Step, Failure> {
        match &mut self.flow {
            Some(flow) => flow.sample(now, simulation),
            None => Ok(Step::Continue),
        }
    }

    fn observe(&mut self, seen: &[Observation], _now: Time) -> Result<(), Failure> {
        for observation in seen {
            match observation {
                Observation::Packet(packet) => {
                    let link = self.plan.fabric.link(packet.link);
                    let rate = link.rate;
                    let config = self.plan.ports.config(&self.plan.fabric, packet.link);
                    let size = u64::from(config.framing.wire_size(packet.size));
                    let size = shallows_core::units::Bytes::new(size);
                    let start = packet.time.saturating_sub(rate.transmission_time(size));
                    self.losses.depart(packet, start);
                    let timeout = self.paths.follow(self.plan, packet);
                    let name = &self.names[packet.link];
                    if let Some(flow) = &mut self.flow {
                        let ends = self.paths.is_host_link(packet.link);
                        flow.follow(packet, timeout, (name, ends.0, ends.1));
                    }
                    let service = self.service(packet.flow.unwrap_or(packet.connection));
                    if let Some(port) = &mut self.port
                        && port.link == packet.link
                    {
                        port.count(packet, service);
                    }
                }
                Observation::Drop(dropped) => {
                    let name = &self.names[dropped.link];
                    self.losses.drop(dropped, || name.clone());
                    if let Some(flow) = &mut self.flow
                        && dropped.flow == Some(flow.life.id())
                    {
                        flow.note(dropped.time, format!("packet dropped at {name}"));
                    }
                }
                Observation::Rtt { .. } | Observation::Sojourn { .. } => {}
            }
        }
        Ok(())
    }
}

/// Mean parts by class and service, and of the slowest of each.
fn groups(plan: &RunPlan, paths: &CriticalPaths, flows: &[FlowRecord]) -> Vec<Group> {
    let mut members: BTreeMap<(u8, String), Vec<&FlowRecord>> = BTreeMap::new();
    let has_path = |flow: &&FlowRecord| paths.of_flow(FlowId(flow.id as u32)).is_some();
    for flow in flows
        .iter()
        .filter(|flow| flow.fct.is_some())
        .filter(has_path)
    {
        let class = plan.size_classes.class_of(flow.bytes) as u8;
        let name = ["small", "medium", "large"][usize::from(class)];
        members
            .entry((class, name.to_owned()))
            .or_default()
            .push(flow);
        let name = format!("service {}", flow.service);
        let place = (3, format!("{:05} {name}", flow.service));
        members.entry(place).or_default().push(flow);
    }
    let services = members.keys().filter(|(kind, _)| *kind == 3).count();
    if services < 2 {
        members.retain(|(kind, _), _| *kind < 3);
    }
    let mut groups = Vec::new();
    for ((kind, name), mut flows) in members {
        let name = if kind == 3 {
            name[6..].to_owned()
        } else {
            name
        };
        groups.push(group(name.clone(), paths, &flows));
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.fct));
        if flows.len() >= 100 {
            flows.truncate(flows.len().div_ceil(100));
            groups.push(group(format!("{name}, slowest 1%"), paths, &flows));
        }
    }
    groups
}

fn group(name: String, paths: &CriticalPaths, flows: &[&FlowRecord]) -> Group {
    let count = flows.len() as f64;
    let mut sums = vec![0.0; paths.parts().len()];
    for flow in flows {
        if let Some((_, spent)) = paths.of_flow(FlowId(flow.id as u32)) {
            for (sum, ps) in sums.iter_mut().zip(spent) {
                *sum += *ps as f64 / 1e6;
            }
        }
    }
    let fcts = flows.iter().filter_map(|flow| flow.fct);
    Group {
        name,
        flows: flows.len(),
        mean_fct_us: fcts.map(us).sum::<f64>() / count,
        parts_us: sums.into_iter().map(|sum| sum / count).collect(),
    }
}
