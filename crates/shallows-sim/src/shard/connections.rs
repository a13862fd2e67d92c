//! Reliable transports at the hosts of a part: the connections, driven by the contract of
//! [`transport`].

use rustc_hash::FxHashMap;
use shallows_core::host::stage::{StageCount, StageTagger};
use shallows_core::packet::Ecn;
use shallows_core::tcp::{Ack, AckKind, Acks, SackBlocks, Segment, SenderStats, TcpConfig};
#[cfg(doc)]
use shallows_core::transport;
use shallows_core::transport::{Progress, Receiver, ReceivingEnd as _, Sender, SendingEnd as _};
use shallows_core::units::{Bytes, Time};

use super::paths::{Direction, envelope};
use super::{Shard, World};
use crate::engine::{Key, Occasion};
use crate::packet::{Envelope, Packet, Selective};
use crate::routing::Selection;
use crate::simulation::FlowOutcome;
use crate::ticket::Ticket;
use crate::transport::{Completion, Connections};
use crate::watch::Observation;
use crate::workload::FlowSpec;

/// The connections of a part, by the number of the first flow on each.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    /// The ends that are open.
    pub(super) sources: Vec<Option<Box<Source>>>,
    pub(super) sinks: Vec<Option<Box<Sink>>>,
    /// Flags of flows whose receiving end has everything.
    satisfied: Vec<bool>,
    /// Open connections that have nothing to send.
    idle: FxHashMap<Peers, Vec<u32>>,
    /// The connection of each flow that is not the first on its connection.
    carriers: FxHashMap<u32, u32>,
}

/// Key of flows that can share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peers {
    src: u32,
    dst: u32,
    service: u16,
}

impl Peers {
    fn of(spec: &FlowSpec) -> Self {
        Self {
            src: spec.src,
            dst: spec.dst,
            service: spec.service,
        }
    }
}

impl ConnectionTable {
    pub(super) fn new(flows: usize) -> Self {
        Self {
            sources: (0..flows).map(|_| None).collect(),
            sinks: (0..flows).map(|_| None).collect(),
            satisfied: vec![false; flows],
            idle: FxHashMap::default(),
            carriers: FxHashMap::default(),
        }
    }
}

/// The sending end of a connection.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) sender: Sender,
    forth: Envelope,
    /// Flow that it sends now, and the counters before that flow.
    flow: u32,
    before: SenderStats,
    /// The first byte of the flow, and the latest that a segment began with if stages are told.
    first: u64,
    reached: u64,
    /// Time of the timer event in the queue.
    timer: Option<Time>,
    /// Packets sent by a path of their own.
    sprayed: u32,
    /// True if the next message is the first on a connection made anew.
    pub(super) opens: bool,
}

/// The receiving end of a connection.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) receiver: Receiver,
    back: Envelope,
    /// Flow that it receives, and the end of that flow.
    flow: u32,
    end: u64,
    timer: Option<Time>,
    sprayed: u32,
}

impl Sink {
    /// Time of a new timer event, if the receiver needs one before the one in the queue.
    #[inline]
    fn arm(&mut self) -> Option<Time> {
        let deadline = self.receiver.deadline()?;
        earlier_timer(&mut self.timer, deadline)
    }

    #[inline]
    pub(super) fn flow(&self) -> u32 {
        self.flow
    }
}

impl Source {
    pub(super) fn new(sender: Sender, forth: Envelope, flow: u32) -> Self {
        Self {
            sender,
            forth,
            flow,
            before: SenderStats::default(),
            first: 0,
            reached: 0,
            timer: None,
            sprayed: 0,
            opens: false,
        }
    }

    /// Time of a new timer event, if the sender needs one before the one in the queue.
    #[inline]
    fn arm(&mut self) -> Option<Time> {
        let deadline = self.sender.deadline()?;
        earlier_timer(&mut self.timer, deadline)
    }

    /// Writes a message of an application, whose stage counts from its own beginning if nothing is
    /// before it.
    pub(super) fn begin_message(&mut self, now: Time, bytes: u64) {
        if self.sender.is_done() {
            self.first = self.sender.written();
            self.reached = self.first;
        }
        self.sender.write(now, bytes);
    }

    #[inline]
    pub(super) fn flow(&self) -> u32 {
        self.flow
    }

    /// The stage of a segment that begins with byte `seq` of the connection.
    fn stage(&mut self, stages: &StageTagger, seq: u64) -> u8 {
        // A retransmission does not take its flow back to an earlier stage.
        self.reached = self.reached.max(seq);
        stages.stage(Bytes::new(match stages.count() {
            StageCount::Flow => self.reached - self.first,
            StageCount::Connection => seq,
        }))
    }

    /// Says what it did for its flow.
    pub(super) fn tell(&self, outcome: &mut FlowOutcome) {
        let stats = self.sender.stats();
        outcome.sent = (stats.segments_sent - self.before.segments_sent) as u32;
        outcome.retransmits = (stats.retransmits - self.before.retransmits) as u32;
        outcome.timeouts = (stats.timeouts - self.before.timeouts) as u32;
        outcome.delivered = self.sender.acked() - self.first;
    }
}

/// Takes a deadline that is before the timer event in the queue. A timer that comes too early is set
/// again when it comes, which costs less than moving it with every ACK.
#[inline]
fn earlier_timer(timer: &mut Option<Time>, deadline: Time) -> Option<Time> {
    if timer.is_some_and(|at| at <= deadline) {
        return None;
    }
    *timer = Some(deadline);
    Some(deadline)
}

/// Lets a new sender send a full segment, after a SYN if there is a handshake, and take its ACK.
fn warm_up(sender: &mut Sender, config: &TcpConfig, [one_way_delay, back]: [Time; 2]) {
    sender.write(Time::ZERO, u64::from(config.segment));
    while let Some(segment) = sender.poll_packet(Time::ZERO) {
        sender.departs(Time::ZERO, Time::ZERO);
        let ack = Ack {
            kind: AckKind::Ack,
            ack: segment.end(),
            echo: segment.sent_at,
            one_way_delay,
            ece: false,
            syn: segment.syn,
            ect: config.ect_acks,
            sack: SackBlocks::default(),
        };
        sender.handle_packet(one_way_delay + back, &ack);
    }
}

/// The receiving end of a new connection, with the segment that has warmed it up.
fn receiver(world: &World, connection: u32) -> Receiver {
    let config = world.transport(connection);
    let mut receiver = Receiver::new(config);
    if world.connections == Connections::WarmedUp {
        let segment = Segment {
            seq: 0,
            sent_at: Time::ZERO,
            len: config.segment,
            syn: false,
            retransmission: false,
            cwr: false,
            ect: true,
        };
        receiver.handle_packet(Time::ZERO, &segment, Ecn::Ect0);
        receiver.on_deadline(Time::MAX);
    }
    receiver
}

impl Shard {
    /// Starts a flow on a connection that is kept, or on a new one.
    pub(super) fn start_on_connection(&mut self, flow: u32) {
        let spec = self.world.workload.flows[flow as usize];
        let kept = match self.world.connections {
            Connections::PerFlow => None,
            Connections::Persistent | Connections::WarmedUp => self
                .connections
                .idle
                .get_mut(&Peers::of(&spec))
                .and_then(Vec::pop),
        };
        // A new connection is called like the first flow on it.
        let connection = kept.unwrap_or(flow);
        if connection != flow {
            self.connections.carriers.insert(flow, connection);
        }
        let (world, routing, now) = (&self.world, &self.routing, self.now);
        let source = self.connections.sources[connection as usize].get_or_insert_with(|| {
            let mut sender =
                Sender::new(world.transport(connection), world.line_rate_of(connection));
            if let Some(&delays) = world.warm_ups.get(connection as usize) {
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
    pub(super) fn stop_connection(&mut self, flow: u32) {
        if let Some(source) = self.source_of(flow) {
            let connection = source.forth.connection;
            self.complete(flow);
            self.record(connection);
            self.connections.carriers.remove(&flow);
            self.connections.sources[connection as usize] = None;
        }
    }

    /// The sending end that has something to send of a flow.
    pub(super) fn source_of(&self, flow: u32) -> Option<&Source> {
        let connection = self
            .connections
            .carriers
            .get(&flow)
            .copied()
            .unwrap_or(flow);
        let source = self.connections.sources[connection as usize].as_deref()?;
        (source.flow == flow && !source.sender.is_done()).then_some(source)
    }

    /// The sender of a flow, while it has something to send.
    pub(crate) fn sender(&self, flow: u32) -> Option<&Sender> {
        Some(&self.source_of(flow)?.sender)
    }

    /// Sends what connections send from now on by other ways.
    pub(super) fn reroute_connections(&mut self, routes: &[[u32; 2]]) {
        for (source, route) in self.connections.sources.iter_mut().zip(routes) {
            if let Some(source) = source {
                source.forth.route = route[0];
            }
        }
        for (sink, route) in self.connections.sinks.iter_mut().zip(routes) {
            if let Some(sink) = sink {
                sink.back.route = route[1];
            }
        }
    }

    pub(super) fn take_data(&mut self, packet: Packet) {
        let connection = packet.connection();
        let (flow, segment) = (packet.flow(), packet.to_segment());
        let outcome = &mut self.flows.outcomes[flow as usize];
        outcome.received += u32::from(!segment.syn);
        outcome.marks += u32::from(packet.ecn() == Ecn::Ce);
        let (world, routing, now) = (&self.world, &self.routing, self.now);
        if self.connections.satisfied[connection as usize] {
            return self.answer_late(connection, &packet);
        }
        let sink = self.connections.sinks[connection as usize].get_or_insert_with(|| {
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
        let is_message = self.world.applications.has(connection);
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
    fn got_all(&mut self, connection: u32, flow: u32) {
        if self.world.completion == Completion::Receiver {
            self.complete(flow);
        }
        let Some(sink) = &self.connections.sinks[connection as usize] else {
            return;
        };
        if self.world.connections == Connections::PerFlow && sink.receiver.deadline().is_none() {
            self.connections.sinks[connection as usize] = None;
            self.connections.satisfied[connection as usize] = true;
        }
    }

    /// Answers a packet of a flow that was received long ago: its sender missed an ACK.
    #[cold]
    fn answer_late(&mut self, connection: u32, packet: &Packet) {
        let segment = packet.to_segment();
        let ack = Ack {
            kind: AckKind::Ack,
            ack: self.world.workload.flows[connection as usize].bytes,
            echo: segment.sent_at,
            one_way_delay: self.now - segment.sent_at,
            ece: packet.ecn() == Ecn::Ce,
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
        let selective = (!ack.sack.is_empty()).then(|| {
            self.selective.insert(Selective {
                sack: ack.sack,
                one_way_delay: ack.one_way_delay,
            })
        });
        self.launch(Packet::ack(back, ack, selective));
    }

    pub(super) fn take_ack(&mut self, packet: Packet) {
        let selective = packet.selective().map(|at| {
            self.selective.remove(at);
            *self.selective.get(at)
        });
        let connection = packet.connection();
        // Out of its place for the time being, so that it need not be found again.
        let Some(mut source) = self.connections.sources[connection as usize].take() else {
            return;
        };
        let ack = packet.to_ack(selective);
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
        self.connections.sources[connection as usize] = Some(source);
        if progress == Progress::Done {
            self.finish(connection);
        } else {
            self.send_adapted(connection);
        }
    }

    /// The sending end of a connection has the ACK of all that it had to send.
    fn finish(&mut self, connection: u32) {
        let Some(source) = &self.connections.sources[connection as usize] else {
            return;
        };
        if self.world.applications.has(connection) {
            return;
        }
        let flow = source.flow;
        self.connections.carriers.remove(&flow);
        if self.world.completion == Completion::Sender {
            self.complete(flow);
        }
        self.record(connection);
        match self.world.connections {
            Connections::PerFlow => self.connections.sources[connection as usize] = None,
            Connections::Persistent | Connections::WarmedUp => {
                let spec = self.world.workload.flows[connection as usize];
                let idle = self.connections.idle.entry(Peers::of(&spec)).or_default();
                // The oldest is taken first, from the end.
                let at = idle.partition_point(|&other| other > connection);
                idle.insert(at, connection);
            }
        }
    }

    /// Sends what the sender of a connection may send, and sets its timer.
    pub(super) fn send(&mut self, connection: u32) {
        if self.adapts || !self.hosts.is_empty() {
            return self.send_adapted(connection);
        }
        if let Some(source) = self.connections.sources[connection as usize].take() {
            self.send_from(connection, source);
        }
    }

    /// The same for a sender that is out of its place, and puts it back.
    #[inline(always)]
    fn send_from(&mut self, connection: u32, mut source: Box<Source>) {
        // Runs with other transports are adapted.
        if let Sender::Tcp(sender) = &mut source.sender {
            while let Some(segment) = sender.poll_packet(self.now) {
                let remaining = sender.written() - segment.seq;
                self.launch(Packet::data(source.forth, &segment, source.flow, remaining));
            }
        }
        let timer = source.arm();
        self.connections.sources[connection as usize] = Some(source);
        self.schedule_sender(connection, timer);
    }

    /// The same where gates can hold packets back, or not all of a connection travel alike.
    #[inline(never)]
    fn send_adapted(&mut self, connection: u32) {
        while self.hosts.is_empty() || self.gates_have_room(connection) {
            let Some(source) = &mut self.connections.sources[connection as usize] else {
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
    fn await_sender(&mut self, connection: u32) {
        if let Some(source) = &mut self.connections.sources[connection as usize]
            && source.sender.deadline().is_some_and(|at| at > self.now)
        {
            let timer = source.arm();
            self.schedule_sender(connection, timer);
        }
    }

    /// The last bit of a packet with data leaves its host at `at`.
    pub(super) fn depart_data(&mut self, connection: u32, at: Time) {
        if let Some(source) = &mut self.connections.sources[connection as usize] {
            source.sender.departs(self.now, at);
            self.await_sender(connection);
        }
    }

    #[inline]
    fn schedule_sender(&mut self, connection: u32, timer: Option<Time>) {
        if let Some(at) = timer {
            self.schedule(at, Key::new(Occasion::SenderTimer(connection)));
        }
    }

    #[inline]
    fn schedule_receiver(&mut self, connection: u32, timer: Option<Time>) {
        if let Some(at) = timer {
            self.schedule(at, Key::new(Occasion::ReceiverTimer(connection)));
        }
    }

    /// Returns whether the gates of the sending host have room for a full segment.
    #[inline(never)]
    fn gates_have_room(&mut self, connection: u32) -> bool {
        let Some(source) = &mut self.connections.sources[connection as usize] else {
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
    fn adapt(&mut self, connection: u32, segment: &Segment) -> Envelope {
        let Some(source) = &mut self.connections.sources[connection as usize] else {
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

    pub(super) fn sender_timer(&mut self, connection: u32) {
        let Some(source) = &mut self.connections.sources[connection as usize] else {
            return self.datagram_timer(connection);
        };
        if source.timer != Some(self.now) {
            return;
        }
        source.timer = None;
        source.sender.on_deadline(self.now);
        self.send(connection);
    }

    pub(super) fn receiver_timer(&mut self, connection: u32) {
        let Some(sink) = &mut self.connections.sinks[connection as usize] else {
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
    fn record(&mut self, connection: u32) {
        if let Some(source) = &self.connections.sources[connection as usize] {
            source.tell(&mut self.flows.outcomes[source.flow as usize]);
        }
    }
}
