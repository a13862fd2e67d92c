//! Reliable transports at the hosts of a part: the connections, driven by the contract of
//! [`transport`].

mod ends;

use shallows_core::packet::Ecn;
use shallows_core::tcp::{Ack, AckKind, Acks, SackBlocks, Segment};
#[cfg(doc)]
use shallows_core::transport;
use shallows_core::transport::{Progress, ReceivingEnd as _, Sender, SendingEnd as _};
use shallows_core::units::{Bytes, Time};
use shallows_model::FlowId;

use super::Shard;
use super::paths::{Direction, envelope};
use crate::connections::Routes;
use crate::engine::{Key, Occasion};
use crate::ids::ConnectionId;
use crate::packet::{Delay, Envelope, Packet, Selective};
use crate::routing::Selection;
use crate::ticket::Ticket;
use crate::transport::{Completion, Connections};
use crate::watch::Observation;
use crate::workload::Ends;

use ends::{Sink, receiver, warm_up};

pub(super) use ends::{ConnectionTable, Source};

impl Shard {
    /// Starts a flow on a connection that is kept, or on a new one.
    pub(super) fn start_on_connection(&mut self, flow: FlowId) {
        let spec = self.world.workload.flows[flow];
        let kept = match self.world.connections {
            Connections::PerFlow => None,
            Connections::Persistent | Connections::WarmedUp => self
                .connections
                .idle
                .get_mut(&Ends::from(&spec))
                .and_then(Vec::pop),
        };
        let own = ConnectionId::of_flow(flow);
        let connection = kept.unwrap_or(own);
        if connection != own {
            self.connections.carriers.insert(flow, connection);
        }
        let (world, routing, now) = (&self.world, &self.routing, self.now);
        let source = self.connections.sources[connection].get_or_insert_with(|| {
            let mut sender =
                Sender::new(world.transport(connection), world.line_rate_of(connection));
            if let Some(&delays) = world.warm_ups.get(connection) {
                warm_up(&mut sender, world.transport(connection), delays);
            }
            let forth = envelope(world, connection, routing, Direction::Forth);
            Box::new(Source::new(sender, forth, flow))
        });
        source.flow = flow;
        source.before = *source.sender.stats();
        source.first = source.sender.written();
        source.reached = source.first;
        source.sender.write(now, spec.bytes);
        self.send(connection);
    }

    /// A flow without end, or one that is not done, has come to its end.
    pub(super) fn stop_connection(&mut self, flow: FlowId) {
        if let Some(source) = self.source_of(flow) {
            let connection = source.forth.connection;
            self.complete(flow);
            self.record(connection);
            self.connections.carriers.remove(&flow);
            self.connections.sources[connection] = None;
        }
    }

    /// The sending end that has something to send of a flow.
    pub(super) fn source_of(&self, flow: FlowId) -> Option<&Source> {
        let connection = self
            .connections
            .carriers
            .get(&flow)
            .copied()
            .unwrap_or(ConnectionId::of_flow(flow));
        let source = self.connections.sources[connection].as_deref()?;
        (source.flow == flow && !source.sender.is_done()).then_some(source)
    }

    /// The sender of a flow, while it has something to send.
    pub(crate) fn sender(&self, flow: FlowId) -> Option<&Sender> {
        Some(&self.source_of(flow)?.sender)
    }

    /// Sends what connections send from now on by other ways.
    pub(super) fn reroute_connections(&mut self, routes: &Routes) {
        for (source, route) in self
            .connections
            .sources
            .as_mut_slice()
            .iter_mut()
            .zip(routes)
        {
            if let Some(source) = source {
                source.forth.route = route[0];
            }
        }
        for (sink, route) in self.connections.sinks.as_mut_slice().iter_mut().zip(routes) {
            if let Some(sink) = sink {
                sink.back.route = route[1];
            }
        }
    }

    pub(super) fn take_data(&mut self, packet: Packet) {
        let connection = packet.connection();
        let Some((flow, segment)) = packet.to_segment() else {
            return;
        };
        // Lanes have none.
        if let Some(outcome) = self.flows.outcomes.get_mut(flow) {
            outcome.received += u32::from(!segment.syn);
            outcome.marks += u32::from(packet.ecn() == Ecn::Ce);
        }
        let (world, routing, now) = (&self.world, &self.routing, self.now);
        if self.connections.satisfied[connection] {
            return self.answer_late(connection, &segment, packet.ecn());
        }
        let sink = self.connections.sinks[connection].get_or_insert_with(|| {
            Box::new(Sink {
                receiver: receiver(world, connection),
                back: envelope(world, connection, routing, Direction::Back),
                flow,
                end: 0,
                timer: None,
                sprayed: 0,
            })
        });
        let acks = sink.receiver.handle_packet(now, &segment, packet.ecn());
        if flow >= sink.flow {
            sink.flow = flow;
            sink.end = segment.seq + packet.remaining();
        }
        let got_all = sink.receiver.received() >= sink.end;
        let timer = sink.arm();
        let mut back = sink.back;
        if self.adapts && routing.router.selection() == Selection::Packet {
            sink.sprayed += 1;
            let turn = sink.sprayed;
            back.route = self.spray(connection, Direction::Back, turn);
        }
        let is_message = self.world.is_lane(connection);
        if is_message {
            // What the application answers carries the ACK in a real stack, and is not behind it.
            self.deliver_messages(connection);
        }
        match &acks {
            Acks::None => {}
            Acks::One(ack) => self.acknowledge(back, ack),
            Acks::Two(first, second) => {
                self.acknowledge(back, first);
                self.acknowledge(back, second);
            }
        }
        if got_all && !is_message {
            self.got_all(connection, flow);
        }
        self.schedule_receiver(connection, timer);
    }

    /// The receiving end of a connection has all of a flow.
    fn got_all(&mut self, connection: ConnectionId, flow: FlowId) {
        if self.world.completion == Completion::Receiver {
            self.complete(flow);
        }
        let Some(sink) = &self.connections.sinks[connection] else {
            return;
        };
        if self.world.connections == Connections::PerFlow && sink.receiver.deadline().is_none() {
            self.connections.sinks[connection] = None;
            self.connections.satisfied[connection] = true;
        }
    }

    /// Answers a packet of a flow that was received long ago: its sender missed an ACK.
    #[cold]
    fn answer_late(&mut self, connection: ConnectionId, segment: &Segment, ecn: Ecn) {
        // It opened the connection, which has carried no other.
        let flow = connection.in_place_of_flow();
        let ack = Ack {
            kind: AckKind::Ack,
            ack: self.world.workload.flows[flow].bytes,
            echo: segment.sent_at,
            one_way_delay: self.now - segment.sent_at,
            ece: ecn == Ecn::Ce,
            syn: segment.syn,
            ect: self.world.transport(connection).ect_acks,
            sack: SackBlocks::default(),
        };
        let back = envelope(&self.world, connection, &self.routing, Direction::Back);
        self.acknowledge(back, &ack);
    }

    fn acknowledge(&mut self, mut back: Envelope, ack: &Ack) {
        if self.adapts
            && let Some(stages) = &self.world.stages
        {
            back.dscp = stages.of_ack(Bytes::new(ack.ack));
        }
        if ack.sack.is_empty()
            && let Some(delay) = Delay::new(ack.one_way_delay)
        {
            return self.launch(Packet::ack(back, ack, delay));
        }
        self.acknowledge_selectively(back, ack);
    }

    /// The same for an ACK that does not fit into a packet.
    #[inline(never)]
    fn acknowledge_selectively(&mut self, back: Envelope, ack: &Ack) {
        let place = self.selective.insert(Selective {
            sack: ack.sack,
            one_way_delay: ack.one_way_delay,
        });
        self.launch(Packet::selective_ack(back, ack, place));
    }

    pub(super) fn take_ack(&mut self, packet: Packet) {
        let aside = |place| {
            self.selective.remove(place);
            *self.selective.get(place)
        };
        let Some(ack) = packet.to_ack(aside) else {
            return;
        };
        let connection = packet.connection();
        // Out of its place for the time being, so that it need not be found again.
        let Some(mut source) = self.connections.sources[connection].take() else {
            return;
        };
        let progress = source.sender.take(self.now, &ack);
        if self.observer.keeps_rtt && progress != Progress::None {
            self.observer.record(Observation::Rtt {
                time: self.now,
                flow: source.flow,
                rtt: self.now - ack.echo,
            });
        }
        let adapts = self.adapts || !self.hosts.is_empty();
        if progress != Progress::Done && !adapts {
            return self.send_from(connection, source);
        }
        self.connections.sources[connection] = Some(source);
        if progress == Progress::Done {
            self.finish(connection);
        } else {
            self.send_adapted(connection);
        }
    }

    /// The sending end of a connection has the ACK of all that it had to send.
    fn finish(&mut self, connection: ConnectionId) {
        let Some(source) = &self.connections.sources[connection] else {
            return;
        };
        if self.world.is_lane(connection) {
            return;
        }
        let flow = source.flow;
        self.connections.carriers.remove(&flow);
        if self.world.completion == Completion::Sender {
            self.complete(flow);
        }
        self.record(connection);
        match self.world.connections {
            Connections::PerFlow => self.connections.sources[connection] = None,
            Connections::Persistent | Connections::WarmedUp => {
                let ends = self.world.ends(connection);
                let idle = self.connections.idle.entry(ends).or_default();
                // The oldest is taken first, from the end.
                let at = idle.partition_point(|&other| other > connection);
                idle.insert(at, connection);
            }
        }
    }

    /// Sends what the sender of a connection may send, and sets its timer.
    pub(super) fn send(&mut self, connection: ConnectionId) {
        if self.adapts || !self.hosts.is_empty() {
            return self.send_adapted(connection);
        }
        if let Some(source) = self.connections.sources[connection].take() {
            self.send_from(connection, source);
        }
    }

    /// The same for a sender that is out of its place, and puts it back.
    #[inline(always)]
    fn send_from(&mut self, connection: ConnectionId, mut source: Box<Source>) {
        // Runs with other transports are adapted.
        if let Sender::Tcp(sender) = &mut source.sender {
            while let Some(segment) = sender.poll_packet(self.now) {
                let remaining = sender.written() - segment.seq;
                self.launch(Packet::data(source.forth, &segment, source.flow, remaining));
            }
        }
        let timer = source.arm();
        self.connections.sources[connection] = Some(source);
        self.schedule_sender(connection, timer);
    }

    /// The same where gates can hold packets back, or not all of a connection travel alike.
    #[inline(never)]
    fn send_adapted(&mut self, connection: ConnectionId) {
        while self.hosts.is_empty() || self.gates_have_room(connection) {
            let Some(source) = &mut self.connections.sources[connection] else {
                return;
            };
            let Some(segment) = source.sender.poll_packet(self.now) else {
                break;
            };
            let remaining = source.sender.written() - segment.seq;
            let (mut forth, flow) = (source.forth, source.flow);
            if self.adapts {
                forth = self.adapt(connection, &segment);
            }
            self.launch(Packet::data(forth, &segment, flow, remaining));
        }
        self.await_sender(connection);
    }

    /// Sets the timer of a sender. One that could send now waits for a gate, not for time.
    fn await_sender(&mut self, connection: ConnectionId) {
        if let Some(source) = &mut self.connections.sources[connection]
            && source.sender.deadline().is_some_and(|at| at > self.now)
        {
            let timer = source.arm();
            self.schedule_sender(connection, timer);
        }
    }

    /// The last bit of a packet with data leaves its host at `at`.
    pub(super) fn depart_data(&mut self, connection: ConnectionId, at: Time) {
        if let Some(source) = &mut self.connections.sources[connection] {
            source.sender.departs(self.now, at);
            self.await_sender(connection);
        }
    }

    #[inline]
    fn schedule_sender(&mut self, connection: ConnectionId, timer: Option<Time>) {
        if let Some(at) = timer {
            self.schedule(at, Key::new(Occasion::SenderTimer(connection)));
        }
    }

    #[inline]
    fn schedule_receiver(&mut self, connection: ConnectionId, timer: Option<Time>) {
        if let Some(at) = timer {
            self.schedule(at, Key::new(Occasion::ReceiverTimer(connection)));
        }
    }

    /// Returns whether the gates of the sending host have room for a full segment.
    #[inline(never)]
    fn gates_have_room(&mut self, connection: ConnectionId) -> bool {
        let Some(source) = &mut self.connections.sources[connection] else {
            return true;
        };
        let mut forth = source.forth;
        if let Some(stages) = &self.world.stages {
            forth.dscp = source.stage(stages, source.reached);
        }
        let full = Ticket::full_segment(forth, self.world.transport(connection).segment);
        self.has_room(connection, forth.route, &full)
    }

    /// Envelope of a segment, where those of one connection differ.
    #[cold]
    fn adapt(&mut self, connection: ConnectionId, segment: &Segment) -> Envelope {
        let Some(source) = &mut self.connections.sources[connection] else {
            return envelope(&self.world, connection, &self.routing, Direction::Forth);
        };
        let mut forth = source.forth;
        if let Some(stages) = &self.world.stages {
            forth.dscp = source.stage(stages, segment.seq);
        }
        if self.routing.router.selection() == Selection::Packet {
            source.sprayed += 1;
            let turn = source.sprayed;
            forth.route = self.spray(connection, Direction::Forth, turn);
        }
        forth
    }

    pub(super) fn sender_timer(&mut self, connection: ConnectionId) {
        let Some(source) = &mut self.connections.sources[connection] else {
            return self.datagram_timer(connection);
        };
        if source.timer != Some(self.now) {
            return;
        }
        source.timer = None;
        source.sender.on_deadline(self.now);
        self.send(connection);
    }

    pub(super) fn receiver_timer(&mut self, connection: ConnectionId) {
        let Some(sink) = &mut self.connections.sinks[connection] else {
            return;
        };
        if sink.timer != Some(self.now) {
            return;
        }
        sink.timer = None;
        let ack = sink.receiver.on_deadline(self.now);
        let (back, timer) = (sink.back, sink.arm());
        if let Some(ack) = ack {
            self.acknowledge(back, &ack);
        }
        self.schedule_receiver(connection, timer);
    }

    /// Notes what the sender of a connection did for its flow.
    fn record(&mut self, connection: ConnectionId) {
        if let Some(source) = &self.connections.sources[connection] {
            source.tell(&mut self.flows.outcomes[source.flow]);
        }
    }
}
