//! Records what the scenario's probes see, as the run goes on.

use std::collections::BTreeMap;
use std::path::Path;

use shallows_core::port::{Accounting, DropReason, EgressPort, PortConfig};
use shallows_core::units::{Bytes, Time};
use shallows_model::topology::{Fabric, Node};
use shallows_model::workload::FlowSpec;
use shallows_results::pcapng::{self, Capture, Interface, RocePacket};
use shallows_results::ports::{LinkRole, PortRecord};
use shallows_results::probes::{
    GoodputSample, QueueSample, RttSample, Sample, SampleWriter, SojournTimes, ThroughputSample,
    WindowSample,
};
use shallows_results::series::Series;
use shallows_results::{Format, ResultsError, RunRecord};
use shallows_sim::{CapturedPacket, Content, Observation, Simulation};

use crate::driver::{Observer, Step, Ticks};
use crate::failure::Failure;
use crate::plan::RunPlan;
use crate::scenario::{Sampled, link_name};
use crate::underway::Underway;

/// Destination of the tables of probes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TableDestination<'a> {
    /// Into a directory, as they come.
    Directory(&'a Path, Format),
    /// Into the record of the run. Captures, which are files for Wireshark, are left out.
    Memory,
}

/// The tables of a run's probes in the making.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    plan: &'a RunPlan,
    place: TableDestination<'a>,
    queues: Option<Sampler<'a, QueueSample>>,
    throughput: Option<Sampler<'a, ThroughputSample>>,
    /// Bytes that the queues of the sampled ports had sent at the last sample.
    sent: Vec<Vec<u64>>,
    windows: Option<Sampler<'a, WindowSample>>,
    /// The flows whose windows are sampled.
    senders: Underway,
    goodput: Option<Sampler<'a, GoodputSample>>,
    /// The flows that may still deliver something, and what the others have, by service.
    receivers: Underway,
    delivered: BTreeMap<u16, u64>,
    rtts: Option<SampleWriter<RttSample>>,
    sojourns: Option<SojournTimes>,
    capture: Option<Captured>,
}

#[derive(Debug)]
struct Sampler<'a, S> {
    sampled: &'a Sampled,
    ticks: Ticks,
    writer: SampleWriter<S>,
}

#[derive(Debug)]
struct Captured {
    file: Capture,
    /// The links, by the numbers of their interfaces.
    links: Vec<u32>,
    /// Message length of each UDP flow.
    messages: BTreeMap<u32, Bytes>,
    /// Packets that others may still come before.
    pending: Vec<CapturedPacket>,
}

impl<'a> Recorder<'a> {
    /// Begins the tables of the probes that the scenario has.
    pub(crate) fn create(
        plan: &'a RunPlan,
        place: TableDestination<'a>,
    ) -> Result<Self, ResultsError> {
        let probes = &plan.probes;
        let watch = &probes.watch;
        let sent = match &probes.throughput {
            None => Vec::new(),
            Some(sampled) => {
                let queues = |&link| plan.ports.config(&plan.fabric, link).queues;
                let none = |link| vec![0; queues(link)];
                sampled.of.iter().map(none).collect()
            }
        };
        let capture = match place {
            TableDestination::Directory(directory, _) if !watch.captured.is_empty() => {
                let transport = &plan.transport;
                let window = u64::from(transport.receive_window) * u64::from(transport.segment);
                let path = directory.join("capture.pcapng");
                Some(Captured::create(plan, &path, Bytes::new(window))?)
            }
            _ => None,
        };
        let flows = &plan.workload.flows;
        let sampled = probes.flows.as_ref().map_or(&[][..], |of| &of.of);
        Ok(Self {
            plan,
            place,
            senders: Underway::new(sampled.iter().copied(), flows),
            receivers: Underway::new(0..flows.len() as u32, flows),
            delivered: flows.iter().map(|flow| (flow.service, 0)).collect(),
            queues: Sampler::create(probes.queues.as_ref(), place)?,
            throughput: Sampler::create(probes.throughput.as_ref(), place)?,
            sent,
            windows: Sampler::create(probes.flows.as_ref(), place)?,
            goodput: Sampler::create(probes.goodput.as_ref(), place)?,
            rtts: watch.rtt.then(|| writer(place)).transpose()?,
            sojourns: (!watch.sojourn.is_empty()).then(SojournTimes::default),
            capture,
        })
    }

    fn sample_queues(&mut self, now: Time, simulation: &Simulation) -> Result<(), ResultsError> {
        let Some(queues) = due(&mut self.queues, now) else {
            return Ok(());
        };
        for &port in &queues.sampled.of {
            let egress = simulation.port(port);
            for queue in 0..egress.queue_count() {
                queues.writer.write(&QueueSample {
                    time: now,
                    port,
                    queue: queue as u32,
                    bytes: egress.queue_bytes(queue).get(),
                    packets: egress.queue_packets(queue),
                    threshold: egress.threshold(queue),
                })?;
            }
        }
        Ok(())
    }

    fn sample_throughput(
        &mut self,
        now: Time,
        simulation: &Simulation,
    ) -> Result<(), ResultsError> {
        let Some(throughput) = due(&mut self.throughput, now) else {
            return Ok(());
        };
        for (&port, before) in throughput.sampled.of.iter().zip(&mut self.sent) {
            let config = self.plan.ports.config(&self.plan.fabric, port);
            for (queue, before) in before.iter_mut().enumerate() {
                let sent = sent_bytes(simulation.port(port), config, queue);
                throughput.writer.write(&ThroughputSample {
                    time: now,
                    interval: throughput.sampled.interval,
                    port,
                    queue: queue as u32,
                    bytes: sent - *before,
                    rate: self.plan.fabric.link(port).rate,
                })?;
                *before = sent;
            }
        }
        Ok(())
    }

    fn sample_windows(&mut self, now: Time, simulation: &Simulation) -> Result<(), ResultsError> {
        let Some(windows) = due(&mut self.windows, now) else {
            return Ok(());
        };
        let mut problem = None;
        let flows = &self.plan.workload.flows;
        self.senders.visit(now, flows, |flow| {
            let Some(sender) = simulation.sender(flow) else {
                return simulation.flow(flow).1.fct.is_some();
            };
            let written = windows.writer.write(&WindowSample {
                time: now,
                flow: flow.into(),
                cwnd: Bytes::new(sender.cwnd as u64),
                alpha: sender.alpha,
            });
            problem = problem.take().or(written.err());
            false
        });
        problem.map_or(Ok(()), Err)
    }

    fn sample_goodput(&mut self, now: Time, simulation: &Simulation) -> Result<(), ResultsError> {
        let Some(goodput) = due(&mut self.goodput, now) else {
            return Ok(());
        };
        let mut arrived: BTreeMap<u16, u64> = BTreeMap::new();
        let (flows, delivered) = (&self.plan.workload.flows, &mut self.delivered);
        self.receivers.visit(now, flows, |number| {
            let (flow, outcome) = simulation.flow(number);
            let is_over = outcome.fct.is_some() && flow.bytes != FlowSpec::ENDLESS;
            let (sum, bytes) = if is_over {
                (&mut *delivered, flow.bytes)
            } else {
                (&mut arrived, outcome.delivered)
            };
            *sum.entry(flow.service).or_default() += bytes;
            is_over
        });
        for (service, bytes) in &self.delivered {
            *arrived.entry(*service).or_default() += bytes;
        }
        for (service, bytes) in arrived {
            goodput.writer.write(&GoodputSample {
                time: now,
                service,
                bytes,
            })?;
        }
        Ok(())
    }

    /// Completes the tables. Those in memory go into the record; the names of the files of the
    /// others are returned.
    pub(crate) fn complete(self, record: &mut RunRecord) -> Result<Vec<String>, ResultsError> {
        let mut files = Vec::new();
        let extension = match self.place {
            TableDestination::Directory(_, format) => format.extension(),
            TableDestination::Memory => "",
        };
        let mut add = |name: &str, table: Option<Series>| match table {
            Some(table) => record.insert(name, table),
            None => files.push(format!("{name}.{extension}")),
        };
        if let Some(queues) = self.queues {
            add(QueueSample::FILE, queues.writer.finish()?);
        }
        if let Some(throughput) = self.throughput {
            add(ThroughputSample::FILE, throughput.writer.finish()?);
        }
        if let Some(windows) = self.windows {
            add(WindowSample::FILE, windows.writer.finish()?);
        }
        if let Some(goodput) = self.goodput {
            add(GoodputSample::FILE, goodput.writer.finish()?);
        }
        if let Some(rtts) = self.rtts {
            add(RttSample::FILE, rtts.finish()?);
        }
        if let Some(sojourns) = self.sojourns {
            let table = match self.place {
                TableDestination::Directory(directory, format) => {
                    sojourns.write(directory, format)?;
                    None
                }
                TableDestination::Memory => Some(sojourns.table()),
            };
            add(SojournTimes::FILE, table);
        }
        if let Some(mut capture) = self.capture {
            capture.write_until(Time::MAX)?;
            capture.file.finish()?;
            files.push("capture.pcapng".to_owned());
        }
        Ok(files)
    }
}

impl Observer for Recorder<'_> {
    fn next_sample(&self) -> Option<Time> {
        let times = [
            self.queues.as_ref().map(|of| of.ticks),
            self.throughput.as_ref().map(|of| of.ticks),
            self.windows.as_ref().map(|of| of.ticks),
            self.goodput.as_ref().map(|of| of.ticks),
        ];
        times.iter().flatten().map(Ticks::next).min()
    }

    fn sample(&mut self, now: Time, simulation: &Simulation) -> Result<Step, Failure> {
        self.sample_queues(now, simulation)
            .and_then(|()| self.sample_throughput(now, simulation))
            .and_then(|()| self.sample_windows(now, simulation))
            .and_then(|()| self.sample_goodput(now, simulation))?;
        Ok(Step::Continue)
    }

    fn observe(&mut self, seen: &[Observation], now: Time) -> Result<(), Failure> {
        for observation in seen {
            match observation {
                &Observation::Rtt { time, flow, rtt } => {
                    if let Some(rtts) = &mut self.rtts {
                        let flow = flow.into();
                        rtts.write(&RttSample { time, flow, rtt })?;
                    }
                }
                &Observation::Sojourn {
                    link,
                    queue,
                    sojourn,
                } => {
                    if let Some(sojourns) = &mut self.sojourns {
                        sojourns.record(link, queue as u32, sojourn);
                    }
                }
                Observation::Packet(packet) => {
                    if let Some(capture) = &mut self.capture {
                        capture.pending.push(**packet);
                    }
                }
                Observation::Drop(_) => {}
            }
        }
        if let Some(capture) = &mut self.capture {
            capture.write_until(now)?;
        }
        Ok(())
    }
}

impl<'a, S: Sample> Sampler<'a, S> {
    fn create(
        sampled: Option<&'a Sampled>,
        place: TableDestination<'_>,
    ) -> Result<Option<Self>, ResultsError> {
        let Some(sampled) = sampled else {
            return Ok(None);
        };
        Ok(Some(Self {
            sampled,
            ticks: Ticks::new(sampled.interval, sampled.interval),
            writer: writer(place)?,
        }))
    }
}

/// The sampler, if a sample is to be taken now.
fn due<'s, 'a, S>(
    sampler: &'s mut Option<Sampler<'a, S>>,
    now: Time,
) -> Option<&'s mut Sampler<'a, S>> {
    let sampler = sampler.as_mut()?;
    sampler.ticks.is_due(now).then_some(sampler)
}

fn writer<S: Sample>(place: TableDestination<'_>) -> Result<SampleWriter<S>, ResultsError> {
    match place {
        TableDestination::Directory(directory, format) => SampleWriter::create(directory, format),
        TableDestination::Memory => Ok(SampleWriter::in_memory()),
    }
}

impl Captured {
    fn create(plan: &RunPlan, path: &Path, window: Bytes) -> Result<Self, ResultsError> {
        let links: Vec<u32> = plan.probes.watch.captured.iter().copied().collect();
        let interfaces: Vec<_> = links.iter().map(|&link| interface(plan, link)).collect();
        let datagrams = plan.workload.datagrams.iter();
        let messages = datagrams
            .filter_map(|of| Some((of.flow, plan.workload.stream(of.flow)?.send.size())))
            .collect();
        Ok(Self {
            file: Capture::create(path, &interfaces, window)?,
            links,
            messages,
            pending: Vec::new(),
        })
    }

    /// Writes the packets up to a time, in its order: a packet is seen when it begins to be sent,
    /// and short ones on one link overtake long ones on another.
    fn write_until(&mut self, now: Time) -> Result<(), ResultsError> {
        self.pending.sort_by_key(|packet| packet.time);
        let ready = self.pending.partition_point(|packet| packet.time <= now);
        for packet in self.pending.drain(..ready) {
            let interface = self.links.binary_search(&packet.link);
            let interface = interface.expect("only these links are captured");
            let message = self.messages.get(&packet.connection);
            let message = message.copied().unwrap_or_default();
            self.file
                .write(packet.time, interface, &written(&packet, message))?;
        }
        Ok(())
    }
}

/// A packet as the file has it; `message` is the size of the flow's messages, if it is UDP.
fn written(packet: &CapturedPacket, message: Bytes) -> pcapng::Packet {
    pcapng::Packet {
        src: packet.src,
        dst: packet.dst,
        flow: packet.connection,
        size: packet.size,
        dscp: packet.dscp,
        ecn: packet.ecn,
        content: match (packet.content, packet.roce_segment) {
            (Content::Segment(segment), None) => pcapng::Content::Segment(segment),
            (Content::Ack(ack), None) => pcapng::Content::Ack(ack),
            (Content::Segment(segment), Some(full)) => {
                pcapng::Content::Roce(RocePacket::data(&segment, full))
            }
            (Content::Ack(ack), Some(full)) => {
                pcapng::Content::Roce(RocePacket::answer(&ack, full))
            }
            (Content::Datagram(datagram), _) => pcapng::Content::Datagram { datagram, message },
        },
    }
}

fn interface(plan: &RunPlan, link: u32) -> Interface {
    let link = plan.fabric.link(link);
    Interface {
        name: link_name(&plan.fabric, link),
        rate: link.rate,
    }
}

/// The ports of a fabric, in the order of their links.
pub(crate) fn ports(fabric: &Fabric) -> Vec<PortRecord> {
    let links = fabric.links().iter();
    links
        .map(|link| PortRecord {
            name: link_name(fabric, link),
            role: match (link.from, link.to) {
                (Node::Host(_), _) => LinkRole::HostUp,
                (_, Node::Host(_)) => LinkRole::HostDown,
                (Node::Switch(_), Node::Switch(_)) => LinkRole::Core,
            },
            rate: link.rate,
            counters: None,
        })
        .collect()
}

/// Bytes that a queue has put on the wire, but for the padding of short frames.
pub(crate) fn sent_bytes<P: shallows_core::packet::Packet>(
    port: &EgressPort<P>,
    config: &PortConfig,
    queue: usize,
) -> u64 {
    let overhead = match config.accounting {
        Accounting::Wire => 0,
        Accounting::Packet => config.framing.header + config.framing.gap,
    };
    let queued = port.queued(queue);
    let evicted = port.counters(queue).drops(DropReason::Evicted);
    let packets = queued.packets - evicted.packets - u64::from(port.queue_packets(queue));
    let bytes = queued.bytes - evicted.bytes - port.queue_bytes(queue).get();
    bytes + packets * u64::from(overhead)
}
