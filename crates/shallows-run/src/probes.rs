//! Records what the scenario's probes see, as the run goes on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use shallows_core::port::{Accounting, DropReason, EgressPort, PortConfig};
use shallows_core::units::{Bytes, Time};
use shallows_results::pcapng::{self, Capture, Interface};
use shallows_results::probes::{
    QueueSample, RttSample, Sample, SampleWriter, SojournTimes, ThroughputSample, WindowSample,
    write_ports,
};
use shallows_results::{Format, ResultsError};
use shallows_sim::{CapturedPacket, Content, Observation, Simulation, Watch};

use crate::scenario::{Built, Loaded, Sampled, link_name};

/// The files of a run's probes in the making.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    built: &'a Built,
    directory: PathBuf,
    format: Format,
    queues: Option<Sampler<'a, QueueSample>>,
    throughput: Option<Sampler<'a, ThroughputSample>>,
    /// Bytes that the queues of the sampled ports had sent at the last sample.
    sent: Vec<Vec<u64>>,
    windows: Option<Sampler<'a, WindowSample>>,
    rtts: Option<SampleWriter<RttSample>>,
    sojourns: Option<SojournTimes>,
    capture: Option<Captured>,
    watches: bool,
}

#[derive(Debug)]
struct Sampler<'a, S> {
    sampled: &'a Sampled,
    next: Time,
    writer: SampleWriter<S>,
}

#[derive(Debug)]
struct Captured {
    file: Capture,
    /// The links, by the numbers of their interfaces.
    links: Vec<u32>,
    /// How long the messages of each UDP flow are.
    messages: BTreeMap<u32, Bytes>,
    /// Packets that others may still come before.
    pending: Vec<CapturedPacket>,
}

impl<'a> Recorder<'a> {
    /// Begins the files of the probes that the scenario has.
    pub(crate) fn create(
        loaded: &Loaded,
        built: &'a Built,
        (directory, format): (&Path, Format),
    ) -> Result<Self, ResultsError> {
        let probes = &built.probes;
        let watch = &probes.watch;
        let throughput = Sampler::create(probes.throughput.as_ref(), directory, format)?;
        let sent = match &probes.throughput {
            None => Vec::new(),
            Some(sampled) => {
                let queues = |&link| built.ports.config(&built.fabric, link).queues;
                let none = |link| vec![0; queues(link)];
                sampled.of.iter().map(none).collect()
            }
        };
        let rtts = watch.rtt.then(|| SampleWriter::create(directory, format));
        let capture = (!watch.captured.is_empty()).then(|| {
            let transport = &loaded.scenario.transport;
            let window = u64::from(transport.receive_window) * u64::from(transport.segment);
            Captured::create(built, &directory.join("capture.pcapng"), Bytes::new(window))
        });
        Ok(Self {
            built,
            directory: directory.to_owned(),
            format,
            queues: Sampler::create(probes.queues.as_ref(), directory, format)?,
            throughput,
            sent,
            windows: Sampler::create(probes.flows.as_ref(), directory, format)?,
            rtts: rtts.transpose()?,
            sojourns: (!watch.sojourn.is_empty()).then(SojournTimes::default),
            capture: capture.transpose()?,
            watches: *watch != Watch::default(),
        })
    }

    /// When something is to be sampled next.
    pub(crate) fn next(&self) -> Option<Time> {
        let times = [
            self.queues.as_ref().map(|sampler| sampler.next),
            self.throughput.as_ref().map(|sampler| sampler.next),
            self.windows.as_ref().map(|sampler| sampler.next),
        ];
        times.into_iter().flatten().min()
    }

    /// Takes the samples of `now`, up to which the simulation has come.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        simulation: &Simulation,
    ) -> Result<(), ResultsError> {
        if let Some(queues) = &mut self.queues
            && queues.is_due(now)
        {
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
        }
        if let Some(throughput) = &mut self.throughput
            && throughput.is_due(now)
        {
            for (&port, before) in throughput.sampled.of.iter().zip(&mut self.sent) {
                let config = self.built.ports.config(&self.built.fabric, port);
                for (queue, before) in before.iter_mut().enumerate() {
                    let sent = sent_bytes(simulation.port(port), config, queue);
                    throughput.writer.write(&ThroughputSample {
                        time: now,
                        interval: throughput.sampled.interval,
                        port,
                        queue: queue as u32,
                        bytes: sent - *before,
                        rate: self.built.fabric.link(port).rate,
                    })?;
                    *before = sent;
                }
            }
        }
        if let Some(windows) = &mut self.windows
            && windows.is_due(now)
        {
            for &flow in &windows.sampled.of {
                if let Some(sender) = simulation.sender(flow) {
                    windows.writer.write(&WindowSample {
                        time: now,
                        flow: flow.into(),
                        cwnd: Bytes::new(sender.cwnd as u64),
                        alpha: sender.alpha,
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Notes what was seen of packets since the last call.
    pub(crate) fn observe(&mut self, simulation: &mut Simulation) -> Result<(), ResultsError> {
        if !self.watches {
            return Ok(());
        }
        for observation in simulation.take_observations() {
            match observation {
                Observation::Rtt { time, flow, rtt } => {
                    if let Some(rtts) = &mut self.rtts {
                        let flow = flow.into();
                        rtts.write(&RttSample { time, flow, rtt })?;
                    }
                }
                Observation::Sojourn {
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
                        capture.pending.push(packet);
                    }
                }
            }
        }
        match &mut self.capture {
            Some(capture) => capture.write_until(simulation.progress().now),
            None => Ok(()),
        }
    }

    /// Gives the files their names, and tells them.
    pub(crate) fn finish(self) -> Result<Vec<String>, ResultsError> {
        let extension = self.format.extension();
        let mut files = Vec::new();
        let mut add = |name: &str| files.push(format!("{name}.{extension}"));
        let has_ports =
            self.queues.is_some() || self.throughput.is_some() || self.sojourns.is_some();
        if let Some(queues) = self.queues {
            queues.writer.finish()?;
            add(QueueSample::FILE);
        }
        if let Some(throughput) = self.throughput {
            throughput.writer.finish()?;
            add(ThroughputSample::FILE);
        }
        if let Some(windows) = self.windows {
            windows.writer.finish()?;
            add(WindowSample::FILE);
        }
        if let Some(rtts) = self.rtts {
            rtts.finish()?;
            add(RttSample::FILE);
        }
        if let Some(sojourns) = self.sojourns {
            sojourns.write(&self.directory, self.format)?;
            add("sojourn");
        }
        if has_ports {
            let links = 0..self.built.fabric.links().len() as u32;
            let ports: Vec<_> = links.map(|link| interface(self.built, link)).collect();
            write_ports(&self.directory, &ports)?;
            files.push("ports.csv".to_owned());
        }
        if let Some(mut capture) = self.capture {
            capture.write_until(Time::MAX)?;
            capture.file.finish()?;
            files.push("capture.pcapng".to_owned());
        }
        Ok(files)
    }
}

impl<'a, S: Sample> Sampler<'a, S> {
    fn create(
        sampled: Option<&'a Sampled>,
        directory: &Path,
        format: Format,
    ) -> Result<Option<Self>, ResultsError> {
        let Some(sampled) = sampled else {
            return Ok(None);
        };
        Ok(Some(Self {
            sampled,
            next: sampled.interval,
            writer: SampleWriter::create(directory, format)?,
        }))
    }

    /// Whether a sample is to be taken now; then the next one is later.
    fn is_due(&mut self, now: Time) -> bool {
        let due = self.next == now;
        if due {
            self.next = now.saturating_add(self.sampled.interval);
        }
        due
    }
}

impl Captured {
    fn create(built: &Built, path: &Path, window: Bytes) -> Result<Self, ResultsError> {
        let links: Vec<u32> = built.probes.watch.captured.iter().copied().collect();
        let interfaces: Vec<_> = links.iter().map(|&link| interface(built, link)).collect();
        let datagrams = built.workload.datagrams.iter();
        let messages = datagrams
            .filter_map(|of| Some((of.flow, built.workload.stream(of.flow)?.send.size())))
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
        content: match packet.content {
            Content::Segment(segment) => pcapng::Content::Segment(segment),
            Content::Ack(ack) => pcapng::Content::Ack(ack),
            Content::Datagram(datagram) => pcapng::Content::Datagram { datagram, message },
        },
    }
}

fn interface(built: &Built, link: u32) -> Interface {
    let link = built.fabric.link(link);
    Interface {
        name: link_name(&built.fabric, link),
        rate: link.rate,
    }
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
