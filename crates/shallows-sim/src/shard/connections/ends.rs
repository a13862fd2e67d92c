//! The ends of connections, and the table of those that are open.

use rustc_hash::FxHashMap;
use shallows_core::host::stage::{StageCount, StageTagger};
use shallows_core::packet::Ecn;
use shallows_core::tcp::{Ack, AckKind, SackBlocks, Segment, SenderStats, TcpConfig};
use shallows_core::transport::{Receiver, ReceivingEnd as _, Sender, SendingEnd as _};
use shallows_core::units::{Bytes, Time};
use shallows_model::{FlowId, IdVec};

use crate::ids::ConnectionId;
use crate::packet::Envelope;
use crate::shard::World;
use crate::simulation::FlowOutcome;
use crate::transport::Connections;
use crate::workload::Ends;
/// The connections of a part.
#[derive(Debug)]
pub(in crate::shard) struct ConnectionTable {
    /// The ends that are open.
    pub(in crate::shard) sources: IdVec<ConnectionId, Option<Box<Source>>>,
    pub(in crate::shard) sinks: IdVec<ConnectionId, Option<Box<Sink>>>,
    /// Flags of flows whose receiving end has everything.
    pub(super) satisfied: IdVec<ConnectionId, bool>,
    /// Open connections that have nothing to send, by hosts and service.
    pub(super) idle: FxHashMap<Ends, Vec<ConnectionId>>,
    /// The connection of each flow that is not the first on its connection.
    pub(super) carriers: FxHashMap<FlowId, ConnectionId>,
}

impl ConnectionTable {
    pub(in crate::shard) fn new(count: usize) -> Self {
        Self {
            sources: (0..count).map(|_| None).collect(),
            sinks: (0..count).map(|_| None).collect(),
            satisfied: vec![false; count].into(),
            idle: FxHashMap::default(),
            carriers: FxHashMap::default(),
        }
    }
}

/// The sending end of a connection.
#[derive(Debug)]
pub(in crate::shard) struct Source {
    pub(in crate::shard) sender: Sender,
    pub(super) forth: Envelope,
    /// Flow that it sends now, its own number if it is a lane, and the counters before that flow.
    pub(super) flow: FlowId,
    pub(super) before: SenderStats,
    /// The first byte of the flow, and the latest that a segment began with if stages are told.
    pub(super) first: u64,
    pub(super) reached: u64,
    /// Time of the timer event in the queue.
    pub(super) timer: Option<Time>,
    /// Packets sent by a path of their own.
    pub(super) sprayed: u32,
    /// True if the next message is the first on a connection made anew.
    pub(in crate::shard) opens: bool,
}

/// The receiving end of a connection.
#[derive(Debug)]
pub(in crate::shard) struct Sink {
    pub(in crate::shard) receiver: Receiver,
    pub(super) back: Envelope,
    /// Flow that it receives, and the end of that flow.
    pub(super) flow: FlowId,
    pub(super) end: u64,
    pub(super) timer: Option<Time>,
    pub(super) sprayed: u32,
}

impl Sink {
    /// Time of a new timer event, if the receiver needs one before the one in the queue.
    #[inline]
    pub(super) fn arm(&mut self) -> Option<Time> {
        let deadline = self.receiver.deadline()?;
        earlier_timer(&mut self.timer, deadline)
    }
}

impl Source {
    pub(in crate::shard) fn new(sender: Sender, forth: Envelope, flow: FlowId) -> Self {
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
    pub(super) fn arm(&mut self) -> Option<Time> {
        let deadline = self.sender.deadline()?;
        earlier_timer(&mut self.timer, deadline)
    }

    /// Writes a message of an application, whose stage counts from its own beginning if nothing is
    /// before it.
    pub(in crate::shard) fn begin_message(&mut self, now: Time, bytes: u64) {
        if self.sender.is_done() {
            self.first = self.sender.written();
            self.reached = self.first;
        }
        self.sender.write(now, bytes);
    }

    /// The stage of a segment that begins with byte `seq` of the connection.
    pub(super) fn stage(&mut self, stages: &StageTagger, seq: u64) -> u8 {
        // A retransmission does not take its flow back to an earlier stage.
        self.reached = self.reached.max(seq);
        stages.stage(Bytes::new(match stages.count() {
            StageCount::Flow => self.reached - self.first,
            StageCount::Connection => seq,
        }))
    }

    /// Says what it did for its flow.
    pub(in crate::shard) fn tell(&self, outcome: &mut FlowOutcome) {
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
pub(super) fn warm_up(sender: &mut Sender, config: &TcpConfig, [one_way_delay, back]: [Time; 2]) {
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
pub(super) fn receiver(world: &World, connection: ConnectionId) -> Receiver {
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
