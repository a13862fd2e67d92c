//! Packets on links, as a capture for Wireshark: `[probes] capture`.

use std::collections::BTreeMap;
use std::path::Path;

use shallows_core::units::{Bytes, Time};
use shallows_model::{FlowId, LinkId};
use shallows_results::ResultsError;
use shallows_results::pcapng::{self, Capture, Interface, RocePacket};
use shallows_sim::{CapturedPacket, Content, Observation};

use super::{Begun, Probe, Table, TableDestination};
use crate::plan::RunPlan;
use crate::scenario::link_name;

/// The file of a capture.
const FILE: &str = "capture.pcapng";

pub(super) fn begin<'a>(plan: &'a RunPlan, place: TableDestination<'a>) -> Begun<'a> {
    match place {
        TableDestination::Directory(directory, _) if !plan.probes.watch.captured.is_empty() => {
            let captured = Captured::create(plan, &directory.join(FILE))?;
            Ok(Some(Box::new(captured)))
        }
        TableDestination::Directory(..) | TableDestination::Memory => Ok(None),
    }
}

#[derive(Debug)]
struct Captured {
    file: Capture,
    /// The links, by the numbers of their interfaces.
    links: Vec<LinkId>,
    /// Message length of each UDP flow.
    messages: BTreeMap<FlowId, Bytes>,
    /// Packets that others may still come before.
    pending: Vec<CapturedPacket>,
}

impl Captured {
    fn create(plan: &RunPlan, path: &Path) -> Result<Self, ResultsError> {
        let transport = &plan.transport;
        let window = u64::from(transport.receive_window) * u64::from(transport.segment);
        let links: Vec<LinkId> = plan.probes.watch.captured.iter().copied().collect();
        let interfaces: Vec<_> = links.iter().map(|&link| interface(plan, link)).collect();
        let datagrams = plan.workload.datagrams.iter();
        let messages = datagrams
            .filter_map(|of| Some((of.flow, plan.workload.stream(of.flow)?.send.size())))
            .collect();
        Ok(Self {
            file: Capture::create(path, &interfaces, Bytes::new(window))?,
            links,
            messages,
            pending: Vec::new(),
        })
    }
}

impl Probe for Captured {
    fn observe(&mut self, seen: &Observation) -> Result<(), ResultsError> {
        if let Observation::Packet(packet) = seen {
            self.pending.push(**packet);
        }
        Ok(())
    }

    /// Writes the packets up to a time, in its order: a packet is seen when it begins to be sent,
    /// and short ones on one link overtake long ones on another.
    fn settle(&mut self, now: Time) -> Result<(), ResultsError> {
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

    fn finish(mut self: Box<Self>) -> Result<Table, ResultsError> {
        self.settle(Time::MAX)?;
        self.file.finish()?;
        Ok(Table::Named(FILE))
    }
}

/// A packet as the file has it; `message` is the size of the flow's messages, if it is UDP.
fn written(packet: &CapturedPacket, message: Bytes) -> pcapng::Packet {
    pcapng::Packet {
        src: packet.src.0,
        dst: packet.dst.0,
        flow: packet.connection.0,
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

fn interface(plan: &RunPlan, link: LinkId) -> Interface {
    let link = plan.fabric.link(link);
    Interface {
        name: link_name(&plan.fabric, link),
        rate: link.rate,
    }
}
