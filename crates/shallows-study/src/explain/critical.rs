//! The critical path of each flow: where its completion time went.
//!
//! A packet leaves a host because of the packet that arrived there before it: an ACK that opened
//! the window, or the data that an ACK answers. Following that chain from a flow's start to its
//! completion gives a path through queues, links and waits whose parts add up to the completion
//! time. Each packet carries the parts so far, so memory grows with the packets in flight only.

use std::collections::{BTreeSet, HashMap, VecDeque};

use shallows_core::units::{Bytes, Time};
use shallows_model::Completion;
use shallows_model::topology::Node;
use shallows_model::workload::FlowSpec;
use shallows_model::{FlowId, IdVec, LinkId};
use shallows_run::{RunPlan, report};
use shallows_sim::{CapturedPacket, Content};

/// Parts of a completion time, at most: tiers of links and the four below.
const PARTS: usize = 16;

/// Time on links: transmission and propagation.
const WIRE: usize = 0;
/// Time before a timeout.
const TIMEOUT: usize = 1;
/// Time in the gates of the host (QJUMP, XCo).
const GATES: usize = 2;
/// Time in which an end had nothing to answer: delayed ACKs, pacing, a wait for the application.
const IDLE: usize = 3;
const FIRST_TIER: usize = 4;

/// Arrivals that an end remembers, to find the one that a packet answers.
const REMEMBERED: usize = 1024;

/// Rounding of a transmission time that is computed from the rate.
const ROUNDING: Time = Time::from_ns(1);

/// Picoseconds by part.
pub(super) type Spent = [u64; PARTS];

/// Follows the critical paths of all TCP flows of a workload.
#[derive(Debug)]
pub(super) struct CriticalPaths {
    parts: Vec<String>,
    /// Part of the time that packets wait before each link.
    part_of_link: IdVec<LinkId, usize>,
    ends_at_host: IdVec<LinkId, bool>,
    begins_at_host: IdVec<LinkId, bool>,
    has_gates: bool,
    completion: Completion,
    connections: HashMap<FlowId, Connection>,
    packets: HashMap<u32, (Time, Spent)>,
    last: HashMap<FlowId, (Time, Spent)>,
}

/// Both ends of a connection.
#[derive(Debug, Default)]
struct Connection {
    flow: Option<FlowId>,
    at_sender: VecDeque<(Time, Spent)>,
    at_receiver: VecDeque<(Time, Spent)>,
    acked: u64,
    /// Next byte that the receiver expects, and the segments beyond it that it has.
    next: u64,
    beyond: BTreeSet<(u64, u64)>,
}

/// A packet that left its host after a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout {
    pub(super) at: Time,
    pub(super) waited: Time,
}

impl CriticalPaths {
    pub(super) fn new(plan: &RunPlan) -> Self {
        let mut parts = vec![
            "wire".to_owned(),
            "timeouts".to_owned(),
            "gates".to_owned(),
            "idle".to_owned(),
        ];
        let links = plan.fabric.links();
        let mut part_of_link = IdVec::from(vec![0; links.len()]);
        for (name, numbers) in report::tiers(&plan.fabric) {
            for link in numbers {
                part_of_link[link] = parts.len();
            }
            parts.push(name);
        }
        let at_host = |node: Node| matches!(node, Node::Host(_));
        let hosts = &plan.hosts;
        Self {
            parts,
            part_of_link,
            ends_at_host: links.iter().map(|link| at_host(link.to)).collect(),
            begins_at_host: links.iter().map(|link| at_host(link.from)).collect(),
            has_gates: hosts.jitter.is_some() || hosts.qjump.is_some() || hosts.xco.is_some(),
            completion: plan.completion,
            connections: HashMap::new(),
            packets: HashMap::new(),
            last: HashMap::new(),
        }
    }

    /// Returns whether a link begins and ends at a host.
    pub(super) fn is_host_link(&self, link: LinkId) -> (bool, bool) {
        (self.begins_at_host[link], self.ends_at_host[link])
    }

    /// Names of the parts.
    pub(super) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Parts of a flow's completion time, and when its critical path ended.
    pub(super) fn of_flow(&self, flow: FlowId) -> Option<&(Time, Spent)> {
        self.last.get(&flow)
    }

    /// Follows a packet over a link. Returns the timeout that the packet follows, if it does.
    pub(super) fn follow(&mut self, plan: &RunPlan, packet: &CapturedPacket) -> Option<Timeout> {
        if matches!(packet.content, Content::Datagram(_)) {
            return None;
        }
        let link = packet.link;
        let mut timeout = None;
        if self.begins_at_host[link] {
            let (at, spent, waited) = self.launch(plan, packet);
            self.packets.insert(packet.number, (at, spent));
            timeout = waited;
        }
        let (at, mut spent) = *self.packets.get(&packet.number)?;
        let Some(arrival) = packet.arrival else {
            self.packets.remove(&packet.number);
            return timeout;
        };
        let total = arrival.saturating_sub(at);
        spent[self.part_of_link[link]] += packet.sojourn.ps();
        spent[WIRE] += total.saturating_sub(packet.sojourn).ps();
        if self.ends_at_host[link] {
            self.packets.remove(&packet.number);
            self.arrive(packet, arrival, spent);
        } else {
            self.packets.insert(packet.number, (arrival, spent));
        }
        timeout
    }

    /// The time at which a packet joined the queue of its NIC, and the parts until then.
    fn launch(
        &mut self,
        plan: &RunPlan,
        packet: &CapturedPacket,
    ) -> (Time, Spent, Option<Timeout>) {
        let rate = plan.fabric.link(packet.link).rate;
        let framing = plan.ports.config(&plan.fabric, packet.link).framing;
        let size = Bytes::new(u64::from(framing.wire_size(packet.size)));
        let queued = packet.time.saturating_sub(rate.transmission_time(size));
        let queued = queued.saturating_sub(packet.sojourn);
        let connection = self.connections.entry(packet.connection).or_default();
        let (sent, answers, is_timed) = match packet.content {
            Content::Segment(segment) => {
                if connection.flow != packet.flow {
                    let flow = packet.flow.unwrap_or(packet.connection);
                    connection.begin(flow, &plan.workload.flows, (segment.seq, segment.sent_at));
                }
                let is_timed = segment.retransmission || segment.syn;
                (segment.sent_at, &connection.at_sender, is_timed)
            }
            _ => (queued, &connection.at_receiver, false),
        };
        let (arrived, mut spent) = latest(answers, sent).unwrap_or((sent, [0; PARTS]));
        let waited = sent.saturating_sub(arrived);
        let part = match () {
            () if is_timed => TIMEOUT,
            () if self.has_gates => GATES,
            () => IDLE,
        };
        spent[part] += waited.ps();
        let timeout = (is_timed && waited > ROUNDING).then_some(Timeout { at: sent, waited });
        // Without a gate the difference is rounding.
        let held = queued.saturating_sub(sent);
        if self.has_gates && held > ROUNDING {
            spent[GATES] += held.ps();
            return (queued, spent, timeout);
        }
        (sent.max(arrived), spent, timeout)
    }

    fn arrive(&mut self, packet: &CapturedPacket, arrival: Time, spent: Spent) {
        let connection = self.connections.entry(packet.connection).or_default();
        let completes = match packet.content {
            Content::Ack(ack) => {
                remember(&mut connection.at_sender, (arrival, spent));
                let is_new = ack.ack > connection.acked;
                connection.acked = connection.acked.max(ack.ack);
                is_new && self.completion == Completion::Sender
            }
            Content::Segment(segment) => {
                remember(&mut connection.at_receiver, (arrival, spent));
                let is_new = connection.receive((segment.seq, segment.end()));
                is_new && self.completion == Completion::Receiver
            }
            Content::Datagram(_) => false,
        };
        if let (true, Some(flow)) = (completes, connection.flow) {
            self.last.insert(flow, (arrival, spent));
        }
    }
}

impl Connection {
    /// Begins a flow on the connection, with a first segment.
    fn begin(
        &mut self,
        flow: FlowId,
        flows: &IdVec<FlowId, FlowSpec>,
        (seq, sent_at): (u64, Time),
    ) {
        let start = flows
            .get(flow)
            .map(|flow| flow.start)
            .filter(|&start| start != FlowSpec::AT_BARRIER);
        *self = Self {
            flow: Some(flow),
            acked: seq,
            next: seq,
            ..Self::default()
        };
        let start = start.unwrap_or(sent_at).min(sent_at);
        self.at_sender.push_back((start, [0; PARTS]));
    }

    /// Returns whether the receiver had not got these bytes before.
    fn receive(&mut self, (seq, end): (u64, u64)) -> bool {
        if end <= self.next || !self.beyond.insert((seq, end)) {
            return false;
        }
        while let Some(&(seq, end)) = self.beyond.first()
            && seq <= self.next
        {
            self.next = self.next.max(end);
            self.beyond.pop_first();
        }
        true
    }
}

/// The last arrival that a packet sent at a time can answer.
fn latest(arrivals: &VecDeque<(Time, Spent)>, sent: Time) -> Option<(Time, Spent)> {
    let by = sent.saturating_add(ROUNDING);
    arrivals.iter().rev().find(|(at, _)| *at <= by).copied()
}

fn remember(arrivals: &mut VecDeque<(Time, Spent)>, arrival: (Time, Spent)) {
    if arrivals.len() == REMEMBERED {
        arrivals.pop_front();
    }
    arrivals.push_back(arrival);
}

/// Parts that are not tiers of links.
pub(super) const OTHER_PARTS: usize = FIRST_TIER;
