//! The simulated side: what the live run had, as far as a simulation can have it.

use shallows_core::units::Time;
use shallows_live::switch::Samples;
use shallows_live::traffic::{Goodput, Ping};
use shallows_model::LinkId;
use shallows_model::topology::{Fabric, Node};
use shallows_model::workload::{Barrier, DatagramFlow, FlowSpec, Stop, Workload};
use shallows_model::{Completion, Connections};
use shallows_sim::Simulation;

use super::{NO_WALL, Side};
use shallows_run::live::{SAMPLE_EVERY, ideal_fcts, link_name, roles};
use shallows_run::measurements::Measurements;
use shallows_run::report;
use shallows_run::{Failure, Interrupt, Observer, RunPlan, Step, Ticks, drive};

/// Bytes that arrive are noted at every so many samples of the queues, as live.
const NOTE_EVERY: u64 = 10;

/// Payload of a ping: with 52 bytes of headers it is as long as an ICMP echo of 64 bytes.
const PING: u64 = 32;

pub(super) struct Simulated {
    pub(super) name: String,
    pub(super) world: Side,
}

/// Simulates what ran live. Like there, connections are there before the flows and are kept, and a
/// flow takes until its sender's last ACK, because the way of a live flow's request is as long.
/// Pings are flows of one packet, at the times of the live ones.
pub(super) fn run(plan: &RunPlan, live: &Measurements) -> Result<Simulated, Failure> {
    let mut scenario = plan.scenario.clone();
    let config = &mut scenario.config;
    config.completion = Completion::Sender;
    config.connections = Connections::Persistent;
    config.transport.handshake = false;
    let name = config.name.clone().unwrap_or_default();
    let until = config.until;

    let pings = ping_flows(plan, live)?;
    let (workload, origins) = merged(&plan.workload, &pings);
    let fabric = scenario.fabric()?;
    let plan = scenario.build_with(fabric, workload)?;
    let ideal = ideal_fcts(&plan)?;
    let mut simulation = plan.simulation(1)?;
    let mut watcher = Watcher::new(&plan.fabric, &simulation, &origins);
    let never = Interrupt::Never;
    drive(&mut simulation, until, &mut [&mut watcher], never)?;
    let records: Vec<_> = report::records(&simulation, &ideal)
        .filter(|record| origins[record.id as usize].is_flow())
        .collect();
    let pings = watcher.pings(&simulation, live.pings.len());
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

/// Origin of a simulated flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Flow,
    /// A ping of this probe.
    Ping(usize),
}

impl Origin {
    fn is_flow(self) -> bool {
        self == Self::Flow
    }
}

/// The live pings, each with its probe.
fn ping_flows(plan: &RunPlan, live: &Measurements) -> Result<Vec<(FlowSpec, usize)>, Failure> {
    let scenario = &plan.scenario;
    let mut flows = Vec::new();
    let probes = scenario.config.live.probes.iter().zip(&live.pings);
    for (number, (probe, pings)) in probes.enumerate() {
        let host = |set: &shallows_model::workload::HostSet| {
            let host = set.one(&plan.fabric);
            host.map_err(|error| scenario.error_in("live", &error))
        };
        let (src, dst) = (host(&probe.from)?, host(&probe.to)?);
        flows.extend(pings.iter().map(|ping| {
            let flow = FlowSpec {
                start: ping.sent,
                src,
                dst,
                bytes: PING,
                service: probe.service,
            };
            (flow, number)
        }));
    }
    Ok(flows)
}

/// Pings among the flows, in the order that a workload has, and what each one is.
fn merged(workload: &Workload, pings: &[(FlowSpec, usize)]) -> (Workload, Vec<Origin>) {
    let flows = workload.flows.iter().enumerate();
    let flows = flows.map(|(number, &flow)| (flow, Origin::Flow, number));
    let pings = pings
        .iter()
        .map(|&(flow, probe)| (flow, Origin::Ping(probe), usize::MAX));
    let mut all: Vec<(FlowSpec, Origin, usize)> = flows.chain(pings).collect();
    all.sort_by_key(|(flow, ..)| flow.start);
    let mut places = vec![0; workload.flows.len()];
    for (place, &(_, _, number)) in (0..).zip(&all) {
        if let Some(known) = places.get_mut(number) {
            *known = place;
        }
    }
    let place = |flow: u32| places[flow as usize];
    let places = |flows: &[u32]| flows.iter().map(|&flow| place(flow)).collect();
    let mut stops: Vec<Stop> = workload
        .stops
        .iter()
        .map(|stop| Stop {
            flow: place(stop.flow),
            ..*stop
        })
        .collect();
    stops.sort_by_key(|stop| stop.flow);
    let merged = Workload {
        flows: all.iter().map(|(flow, ..)| *flow).collect(),
        stops,
        barriers: workload
            .barriers
            .iter()
            .map(|barrier| Barrier {
                waits_for: places(&barrier.waits_for),
                releases: places(&barrier.releases),
                pause: barrier.pause,
            })
            .collect(),
        datagrams: workload
            .datagrams
            .iter()
            .map(|of| DatagramFlow {
                flow: place(of.flow),
                ..*of
            })
            .collect(),
        streams: workload.streams.clone(),
        offered: workload.offered.clone(),
    };
    (merged, all.iter().map(|(_, origin, _)| *origin).collect())
}

/// Takes the samples that the live switch and clients take.
struct Watcher<'a> {
    origins: &'a [Origin],
    /// The sampled links.
    links: Vec<LinkId>,
    samples: Samples,
    goodput: Goodput,
    looks: u64,
    ticks: Ticks,
    /// Number of flows that are not pings.
    own: usize,
}

impl<'a> Watcher<'a> {
    fn new(fabric: &Fabric, simulation: &Simulation, origins: &'a [Origin]) -> Self {
        let links = fabric.links().numbered();
        let from_switches = links.filter(|(_, link)| matches!(link.from, Node::Switch(_)));
        let links: Vec<LinkId> = from_switches.map(|(number, _)| number).collect();
        let columns = links.iter().flat_map(|&link| {
            let queues = 0..simulation.port(link).queue_count();
            queues.map(move |queue| (link_name(fabric, link), queue))
        });
        let flows = simulation.flows().zip(origins);
        let flows = flows.filter(|(_, origin)| origin.is_flow());
        let mut dscps: Vec<u8> = flows.map(|((flow, _), _)| flow.service as u8).collect();
        dscps.sort_unstable();
        dscps.dedup();
        Self {
            origins,
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
            own: origins.iter().filter(|origin| origin.is_flow()).count(),
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
        for ((flow, outcome), origin) in simulation.flows().zip(self.origins) {
            if origin.is_flow()
                && let Ok(column) = self.goodput.dscps.binary_search(&(flow.service as u8))
            {
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

    /// The pings of each probe.
    fn pings(&self, simulation: &Simulation, probes: usize) -> Vec<Vec<Ping>> {
        let mut pings = vec![Vec::new(); probes];
        for ((flow, outcome), origin) in simulation.flows().zip(self.origins) {
            if let Origin::Ping(probe) = origin {
                pings[*probe].push(Ping {
                    sent: flow.start,
                    rtt: outcome.fct,
                });
            }
        }
        pings
    }
}

impl Observer for Watcher<'_> {
    fn next_sample(&self) -> Option<Time> {
        Some(self.ticks.next())
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<Step, Failure> {
        self.ticks.is_due(now);
        let done = self.look(now, simulation) == self.own;
        Ok(if done { Step::End } else { Step::Continue })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_found_again_among_pings() {
        let flow = |start, bytes| FlowSpec {
            start,
            src: 0,
            dst: 1,
            bytes,
            service: 0,
        };
        let workload = Workload {
            flows: vec![
                flow(Time::from_us(5), 1),
                flow(Time::from_us(20), FlowSpec::ENDLESS),
                flow(FlowSpec::AT_BARRIER, 3),
            ],
            stops: vec![Stop {
                flow: 1,
                at: Time::from_us(90),
            }],
            barriers: vec![Barrier {
                waits_for: vec![0],
                releases: vec![2],
                pause: Time::ZERO,
            }],
            ..Workload::default()
        };
        let pings = [
            (flow(Time::ZERO, PING), 0),
            (flow(Time::from_us(10), PING), 1),
        ];
        let (merged, origins) = merged(&workload, &pings);
        let bytes: Vec<u64> = merged.flows.iter().map(|flow| flow.bytes).collect();
        assert_eq!(bytes, [PING, 1, PING, FlowSpec::ENDLESS, 3]);
        assert_eq!(merged.stops[0].flow, 3);
        assert_eq!(merged.barriers[0].waits_for, [1]);
        assert_eq!(merged.barriers[0].releases, [4]);
        assert_eq!(
            origins,
            [
                Origin::Ping(0),
                Origin::Flow,
                Origin::Ping(1),
                Origin::Flow,
                Origin::Flow
            ]
        );
    }
}
