//! UDP at the hosts of a part.

use rustc_hash::FxHashMap;
use shallows_core::host::udp::{Receiver, ReceiverStats, Sender, SenderStats};
use shallows_core::packet::Ecn;
use shallows_core::random::Coin;
use shallows_core::units::{Bytes, Time};
use shallows_model::FlowId;

use super::Shard;
use super::paths::{Direction, envelope};
use crate::connections::{Connection, Routes};
use crate::engine::{Key, Occasion};
use crate::ids::{ConnectionId, PortId};
use crate::packet::{Envelope, Packet, Payload};
use crate::routing::Selection;

/// Keeps the streams of senders apart from those of ports with the same numbers.
const JITTER: u64 = 0x6A69_7474_6572;

/// The ends of UDP flows.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    sources: FxHashMap<FlowId, Source>,
    sinks: FxHashMap<FlowId, Receiver>,
    /// Send times and latencies of messages, where they are kept.
    latencies: FxHashMap<FlowId, Vec<MessageLatency>>,
}

/// Latency of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageLatency {
    pub(crate) start: Time,
    pub(crate) latency: Time,
}

/// A sending end.
#[derive(Debug)]
struct Source {
    sender: Sender,
    forth: Envelope,
    timer: Option<Time>,
    sprayed: u32,
    /// Bytes of messages, if stages are told.
    sent: u64,
}

impl Datagrams {
    pub(super) fn sent(&self, flow: FlowId) -> Option<&SenderStats> {
        Some(self.sources.get(&flow)?.sender.stats())
    }

    pub(super) fn received(&self, flow: FlowId) -> Option<&ReceiverStats> {
        Some(self.sinks.get(&flow)?.stats())
    }

    pub(super) fn latencies(&self, flow: FlowId) -> &[MessageLatency] {
        self.latencies.get(&flow).map_or(&[], Vec::as_slice)
    }

    /// Sends what is sent from now on by other ways.
    pub(super) fn reroute(&mut self, routes: &Routes) {
        for (&flow, source) in &mut self.sources {
            source.forth.route = routes[ConnectionId::of_flow(flow)][0];
        }
    }
}

impl Shard {
    pub(super) fn start_datagrams(&mut self, flow: FlowId) {
        let Some(stream) = self.world.workload.stream(flow) else {
            return;
        };
        let forth = envelope(
            &self.world,
            ConnectionId::of_flow(flow),
            &self.routing,
            Direction::Forth,
        );
        let coin = Coin::new(self.world.seed ^ JITTER, u64::from(flow.0));
        let source = Source {
            sender: Sender::new(stream, self.now).with_jitter(stream, coin),
            forth,
            timer: None,
            sprayed: 0,
            sent: 0,
        };
        self.datagrams.sources.insert(flow, source);
        self.send_datagrams(flow);
    }

    pub(super) fn stop_datagrams(&mut self, flow: FlowId) {
        if let Some(source) = self.datagrams.sources.get_mut(&flow) {
            source.sender.stop();
            self.complete(flow);
        }
    }

    pub(super) fn datagram_timer(&mut self, connection: ConnectionId) {
        let flow = connection.in_place_of_flow();
        if let Some(source) = self.datagrams.sources.get_mut(&flow)
            && source.timer == Some(self.now)
        {
            source.timer = None;
            self.send_datagrams(flow);
        }
    }

    fn send_datagrams(&mut self, flow: FlowId) {
        while let Some(source) = self.datagrams.sources.get_mut(&flow) {
            let Some(datagram) = source.sender.poll_packet(self.now) else {
                break;
            };
            let mut forth = source.forth;
            if let Some(stages) = &self.world.stages {
                forth.dscp = stages.stage(Bytes::new(source.sent));
                source.sent += u64::from(datagram.len);
            }
            if self.routing.router.selection() == Selection::Packet {
                source.sprayed += 1;
                let turn = source.sprayed;
                forth.route = self.spray(ConnectionId::of_flow(flow), Direction::Forth, turn);
            }
            self.launch(Packet::datagram(forth, &datagram));
        }
        self.arm_datagrams(flow);
    }

    fn arm_datagrams(&mut self, flow: FlowId) {
        if let Some(source) = self.datagrams.sources.get_mut(&flow)
            && let Some(wake) = source.sender.deadline().map(|at| at.max(self.now))
            && source.timer.is_none_or(|at| wake < at)
        {
            source.timer = Some(wake);
            self.schedule(
                wake,
                Key::new(Occasion::SenderTimer(ConnectionId::of_flow(flow))),
            );
        }
    }

    /// A packet will have left its host at `at`.
    pub(super) fn depart(&mut self, number: u32, at: Time) {
        let packet = *self.packets.get(number);
        self.report_departure(&packet, at);
    }

    /// A port or a gate has dropped a packet. If it was still in its host, it counts as departed
    /// after the time that it would have taken on the link: a sender never tries for ever at one
    /// instant.
    pub(super) fn leave_by_drop(&mut self, port: PortId, packet: &Packet) {
        let place = self.world.places[self.world.ends(packet.connection()).src];
        if (place.part, place.port) != (self.part, self.home(port)) {
            return;
        }
        let size = Bytes::new(u64::from(packet.size()));
        let at = self.now + place.rate.transmission_time(size);
        self.report_departure(packet, at);
    }

    /// Tells the sender of a packet when it leaves its host.
    fn report_departure(&mut self, packet: &Packet, at: Time) {
        let connection = packet.connection();
        match packet.payload {
            Payload::Data { .. } => self.depart_data(connection, at),
            Payload::Datagram { .. } => {
                let flow = connection.in_place_of_flow();
                if let Some(source) = self.datagrams.sources.get_mut(&flow) {
                    source.sender.departs(at, packet.size());
                }
                self.arm_datagrams(flow);
            }
            Payload::Ack { .. } | Payload::SelectiveAck { .. } | Payload::Control { .. } => {}
        }
    }

    #[inline(never)]
    pub(super) fn take_datagram(&mut self, packet: Packet) {
        let flow = match self.world.directory.user(packet.connection()) {
            Connection::Flow(flow) => flow,
            Connection::Lane(_) => return self.take_message_part(packet),
            Connection::Channel(_) => return,
        };
        let (Some(stream), Some(datagram)) =
            (self.world.workload.stream(flow), packet.to_datagram())
        else {
            return;
        };
        let outcome = &mut self.flows.outcomes[flow];
        outcome.marks += u32::from(packet.ecn() == Ecn::Ce);
        let sinks = &mut self.datagrams.sinks;
        let sink = sinks.entry(flow).or_insert_with(|| Receiver::new(stream));
        if let Some(message) = sink.handle_packet(self.now, &datagram) {
            outcome.delivered += u64::from(message.len);
            if stream.latencies {
                let latencies = self.datagrams.latencies.entry(flow).or_default();
                latencies.push(MessageLatency {
                    start: self.now - message.delay,
                    latency: message.delay,
                });
            }
        }
    }
}
