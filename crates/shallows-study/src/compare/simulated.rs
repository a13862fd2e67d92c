//! The simulated side: what the live run had, as far as a simulation can have it.

use shallows_core::units::Time;
use shallows_live::switch::Samples;
use shallows_live::traffic::{Goodput, Ping};
use shallows_model::LinkId;
use shallows_model::topology::{Fabric, Node};
use shallows_model::workload::{FlowSpec, Workload};
use shallows_model::{Completion, Connections};
use shallows_sim::Simulation;

use super::{NO_WALL, Side};
use shallows_run::live::{SAMPLE_EVERY, ideal_fcts, link_name, roles};
use shallows_run::measurements::Measurements;
use shallows_run::report;
use shallows_run::{Failure, Interrupt, Observer, RunPlan, Step, Ticks, drive};

/// Bytes that arrive are noted at every so many samples of the queues, as live.
const NOTE_EVERY: u64 = 10;

pub(super) struct Simulated {
    pub(super) name: String,
    pub(super) world: Side,
}

/// Simulates what ran live. Like there, connections are there before the flows and are kept, and a
/// flow takes until its sender's last ACK, because the way of a live flow's request is as long.
pub(super) fn run(plan: &RunPlan) -> Result<Simulated, Failure> {
    let mut scenario = plan.scenario.clone();
    let config = &mut scenario.config;
    config.completion = Completion::Sender;
    config.connections = Connections::Persistent;
    config.transport.handshake = false;
    let name = config.name.clone().unwrap_or_default();
    let until = config.until;

    let fabric = scenario.fabric()?;
    let plan = scenario.build_with(fabric, Workload::clone(&plan.workload))?;
    let ideal = ideal_fcts(&plan)?;
    let mut simulation = plan.simulation(1)?;
    let mut watcher = Watcher::new(&plan.fabric, &simulation);
    let never = Interrupt::Never;
    drive(&mut simulation, until, &mut [&mut watcher], never)?;
    let records: Vec<_> = report::records(&simulation, &ideal).collect();
    let mut pings = vec![Vec::new(); plan.probes.pings.len()];
    for ping in report::pings(&simulation, &plan) {
        let (sent, rtt) = (ping.time, ping.rtt);
        pings[ping.probe as usize].push(Ping { sent, rtt });
    }
    let facts = report::facts(&simulation, &plan, &records, Completion::Sender, NO_WALL);
    let measurements = Measurements {
        goodput: watcher.goodput,
        queues: watcher.samples,
        roles: roles(&plan.fabric),
        pings,
        duration: simulation.progress().now,
    };
    Ok(Simulated {
        world: Side::new(measurements, records, facts, &plan)?,
        name,
    })
}

/// Takes the samples that the live switch and clients take.
struct Watcher {
    /// The sampled links.
    links: Vec<LinkId>,
    samples: Samples,
    goodput: Goodput,
    looks: u64,
    ticks: Ticks,
}

impl Watcher {
    fn new(fabric: &Fabric, simulation: &Simulation) -> Self {
        let links = fabric.links().numbered();
        let from_switches = links.filter(|(_, link)| matches!(link.from, Node::Switch(_)));
        let links: Vec<LinkId> = from_switches.map(|(number, _)| number).collect();
        let columns = links.iter().flat_map(|&link| {
            let queues = 0..simulation.port(link).queue_count();
            queues.map(move |queue| (link_name(fabric, link), queue))
        });
        let flows = simulation.flows();
        let mut dscps: Vec<u8> = flows.map(|(flow, _)| flow.service as u8).collect();
        dscps.sort_unstable();
        dscps.dedup();
        Self {
            samples: Samples {
                columns: columns.collect(),
                ..Samples::default()
            },
            links,
            goodput: Goodput {
                dscps,
                rows: Vec::new(),
            },
            looks: 0,
            ticks: Ticks::new(Time::ZERO, SAMPLE_EVERY),
        }
    }

    /// Looks at the queues and now and then at the flows; how many of them have finished.
    fn look(&mut self, now: Time, simulation: &Simulation) -> usize {
        self.samples.times.push(now);
        for &link in &self.links {
            let port = simulation.port(link);
            for queue in 0..port.queue_count() {
                let bytes = port.queue_bytes(queue).get() as u32;
                self.samples.bytes.push(bytes);
                self.samples.packets.push(port.queue_packets(queue));
                self.samples.thresholds.push(f32::NAN);
            }
        }
        self.looks += 1;
        if self.looks % NOTE_EVERY == 1 {
            self.note(now, simulation)
        } else {
            0
        }
    }

    fn note(&mut self, now: Time, simulation: &Simulation) -> usize {
        let mut row = vec![0; self.goodput.dscps.len()];
        let mut finished = 0;
        for (flow, outcome) in simulation.flows() {
            if let Ok(column) = self.goodput.dscps.binary_search(&(flow.service as u8)) {
                finished += usize::from(outcome.fct.is_some());
                row[column] += match outcome.fct {
                    Some(_) if flow.bytes != FlowSpec::ENDLESS => flow.bytes,
                    _ => outcome.delivered,
                };
            }
        }
        self.goodput.rows.push((now, row));
        finished
    }
}

impl Observer for Watcher {
    fn next_sample(&self) -> Option<Time> {
        Some(self.ticks.next())
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<Step, Failure> {
        self.ticks.is_due(now);
        let done = self.look(now, simulation) == simulation.flows().len();
        Ok(if done { Step::End } else { Step::Continue })
    }
}
