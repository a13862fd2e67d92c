//! A run as a trace for Perfetto: flows as slices, queues and windows as counters, marks and drops
//! as instants.
//!
//! Queues, windows, marks and drops are sampled, so a trace shows every flow and no more than one
//! value of a port or flow per sample. The interval begins at 10 us and doubles with every 8 MB of
//! samples; after 64 MB of them the rest of the run has slices only.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::anyhow;
use shallows_core::units::Time;
use shallows_model::ids::ids;
use shallows_model::topology::Node;
use shallows_model::workload::FlowSpec;
use shallows_model::{FlowId, HostId};
use shallows_results::perfetto::{TraceWriter, Track};
use shallows_run::scenario::link_name;
use shallows_run::{Failure, Observer, RunPlan, Step};
use shallows_sim::Simulation;

/// First interval between samples.
const FIRST_INTERVAL: Time = Time::from_us(10);

/// Bytes of samples after which the interval doubles.
const BYTES_PER_INTERVAL: u64 = 8_000_000;

/// Bytes after which there are no more samples.
const MOST_SAMPLED: u64 = 64_000_000;

/// Bytes after which there are no more slices.
const MOST_BYTES: u64 = 90_000_000;

/// Writes a trace while a scenario is simulated.
#[derive(Debug)]
pub struct Tracer<'a> {
    plan: &'a RunPlan,
    writer: Option<TraceWriter>,
    ports: Vec<Port>,
    hosts: BTreeMap<HostId, Track>,
    /// Flows with a start in its order, the number of those that have started, and those of them
    /// that are under way.
    starts: Vec<FlowId>,
    started: usize,
    under_way: Vec<FlowId>,
    windows: HashMap<FlowId, (Track, i64)>,
    interval: Time,
    next: Option<Time>,
    next_doubling: u64,
    /// Time of the last sample, if there was no room for more.
    until: Option<Time>,
    /// Flows without a slice, for want of room.
    left_out: u64,
}

/// A port that is sampled.
#[derive(Debug)]
struct Port {
    name: String,
    /// Its tracks, once it has had a packet in its queue, a mark or a drop.
    tracks: Option<(Track, Track)>,
    bytes: u64,
    marks: u64,
    drops: u64,
}

/// Items left out of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Interval of the last samples.
    pub interval: Time,
    /// Time of the end of the samples, if they ended before the run.
    pub until: Option<Time>,
    /// Flows without a slice.
    pub flows_left_out: u64,
    /// Size of the trace.
    pub bytes: u64,
}

impl<'a> Tracer<'a> {
    /// Begins a trace in a file, which must not be one that the run reads.
    pub fn create(path: &Path, plan: &'a RunPlan) -> Result<Self, Failure> {
        // A file that does not exist yet has no canonical path.
        let target = path.canonicalize().ok();
        let mut inputs = plan.scenario.files().into_iter();
        if target.is_some() && inputs.any(|input| input.canonicalize().ok() == target) {
            let name = path.display();
            return Err(anyhow!(
                "the run reads {name}, which its trace would replace; name another file"
            )
            .into());
        }
        let writer = TraceWriter::create(path).map_err(anyhow::Error::from)?;
        let flows = &plan.workload.flows;
        let mut starts: Vec<FlowId> = flows.ids().collect();
        let start = |flow: &FlowId| flows[*flow].start;
        starts.retain(|flow| start(flow) != FlowSpec::AT_BARRIER);
        starts.sort_by_key(start);
        let waiting = flows
            .numbered()
            .filter(|(_, flow)| flow.start == FlowSpec::AT_BARRIER);
        let links = plan.fabric.links().iter();
        let port = |link| Port {
            name: link_name(&plan.fabric, link),
            tracks: None,
            bytes: 0,
            marks: 0,
            drops: 0,
        };
        Ok(Self {
            plan,
            writer: Some(writer),
            ports: links.map(port).collect(),
            hosts: BTreeMap::new(),
            starts,
            started: 0,
            under_way: waiting.map(|(number, _)| number).collect(),
            windows: HashMap::new(),
            interval: FIRST_INTERVAL,
            next: Some(FIRST_INTERVAL),
            next_doubling: BYTES_PER_INTERVAL,
            until: None,
            left_out: 0,
        })
    }

    /// Completes the file.
    pub fn finish(self) -> Result<Sampling, Failure> {
        let bytes = self.writer.as_ref().map_or(0, TraceWriter::bytes);
        if let Some(writer) = self.writer {
            writer.finish().map_err(anyhow::Error::from)?;
        }
        Ok(Sampling {
            interval: self.interval,
            until: self.until,
            flows_left_out: self.left_out,
            bytes,
        })
    }

    fn host(&mut self, host: HostId) -> anyhow::Result<Track> {
        if let Some(&track) = self.hosts.get(&host) {
            return Ok(track);
        }
        let name = format!("{} sends", self.plan.fabric.name(Node::Host(host)));
        let track = self.writer()?.track(&name, None)?;
        self.hosts.insert(host, track);
        Ok(track)
    }

    fn writer(&mut self) -> anyhow::Result<&mut TraceWriter> {
        self.writer
            .as_mut()
            .ok_or_else(|| anyhow::anyhow!("the trace is complete"))
    }

    fn sample_ports(&mut self, now: Time, simulation: &Simulation) -> anyhow::Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        for (link, port) in ids().zip(&mut self.ports) {
            let egress = simulation.port(link);
            let queues = 0..egress.queue_count();
            let (mut marks, mut drops) = (0, 0);
            for counters in queues.map(|queue| egress.counters(queue)) {
                marks += counters.all_marks();
                drops += counters.all_drops().packets;
            }
            let bytes = egress.bytes().get();
            if (bytes, marks, drops) == (port.bytes, port.marks, port.drops) {
                continue;
            }
            let (queue, events) = if let Some(tracks) = port.tracks {
                tracks
            } else {
                let name = format!("queue {}", port.name);
                let queue = writer.byte_counter(&name, None)?;
                let events = writer.track(&format!("marks and drops {}", port.name), None)?;
                port.tracks = Some((queue, events));
                (queue, events)
            };
            if bytes != port.bytes {
                writer.count(queue, now, bytes.cast_signed())?;
            }
            for (name, after, before) in
                [("marks", marks, port.marks), ("drops", drops, port.drops)]
            {
                if after > before {
                    writer.instant(events, name, now, ("packets", after - before))?;
                }
            }
            (port.bytes, port.marks, port.drops) = (bytes, marks, drops);
        }
        Ok(())
    }

    fn sample_windows(&mut self, now: Time, simulation: &Simulation) -> anyhow::Result<()> {
        let flows = &self.plan.workload.flows;
        let begun = self.starts[self.started..].partition_point(|&flow| flows[flow].start <= now);
        self.under_way
            .extend(&self.starts[self.started..self.started + begun]);
        self.started += begun;
        let mut under_way = std::mem::take(&mut self.under_way);
        let mut problem = None;
        under_way.retain(|&flow| {
            let Some(sender) = simulation.sender(flow) else {
                return simulation.flow(flow).1.fct.is_none();
            };
            let written = self.write_window(now, flow, sender.cwnd as i64);
            problem = problem.take().or(written.err());
            true
        });
        self.under_way = under_way;
        problem.map_or(Ok(()), Err)
    }

    fn write_window(&mut self, now: Time, flow: FlowId, cwnd: i64) -> anyhow::Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let track = match self.windows.get(&flow) {
            Some(&(_, last)) if last == cwnd => return Ok(()),
            Some(&(track, _)) => track,
            None => writer.byte_counter(&format!("cwnd of flow {}", flow.0), None)?,
        };
        self.windows.insert(flow, (track, cwnd));
        Ok(writer.count(track, now, cwnd)?)
    }

    /// Writes flows as slices. Those of a host that overlap are in lanes of their own, because slices
    /// of one track must nest.
    fn write_flows(&mut self, simulation: &Simulation) -> anyhow::Result<()> {
        let now = simulation.progress().now;
        let mut by_host: BTreeMap<HostId, Vec<(Time, Time, FlowId)>> = BTreeMap::new();
        for (number, (spec, outcome)) in ids().zip(simulation.flows()) {
            if outcome.start <= now {
                let end = outcome
                    .fct
                    .map_or(now, |fct| outcome.start.saturating_add(fct));
                by_host
                    .entry(spec.src)
                    .or_default()
                    .push((outcome.start, end, number));
            }
        }
        for (host, mut flows) in by_host {
            flows.sort_unstable();
            let parent = self.host(host)?;
            let mut lanes: Vec<(Track, Time)> = Vec::new();
            for (start, end, number) in flows {
                if self.writer()?.bytes() > MOST_BYTES {
                    self.left_out += 1;
                    continue;
                }
                let free = lanes.iter().position(|&(_, until)| until <= start);
                let lane = if let Some(lane) = free {
                    lane
                } else {
                    let track = self.writer()?.track("flows", Some(parent))?;
                    lanes.push((track, end));
                    lanes.len() - 1
                };
                lanes[lane].1 = end;
                let (spec, outcome) = simulation.flow(number);
                let name = format!("flow {} to h{}", number.0, spec.dst.0);
                let numbers = [
                    (
                        "bytes",
                        if spec.bytes == FlowSpec::ENDLESS {
                            outcome.delivered
                        } else {
                            spec.bytes
                        },
                    ),
                    ("service", u64::from(spec.service)),
                    ("marks", u64::from(outcome.marks)),
                    ("drops", u64::from(outcome.drops)),
                    ("timeouts", u64::from(outcome.timeouts)),
                ];
                self.writer()?
                    .slice(lanes[lane].0, &name, (start, end), &numbers)?;
            }
        }
        Ok(())
    }
}

impl Observer for Tracer<'_> {
    fn next_sample(&self) -> Option<Time> {
        self.next
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<Step, Failure> {
        if self.next != Some(now) {
            return Ok(Step::Continue);
        }
        self.sample_ports(now, simulation)?;
        self.sample_windows(now, simulation)?;
        let bytes = self.writer()?.bytes();
        if bytes >= self.next_doubling {
            self.interval = self.interval.saturating_add(self.interval);
            self.next_doubling += BYTES_PER_INTERVAL;
        }
        self.next = (bytes < MOST_SAMPLED).then(|| now.saturating_add(self.interval));
        self.until = self.next.is_none().then_some(now);
        Ok(Step::Continue)
    }

    fn finish(&mut self, simulation: &Simulation) -> Result<(), Failure> {
        Ok(self.write_flows(simulation)?)
    }
}
