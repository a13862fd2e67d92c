//! A run: hosts with their connections, on a network.

use rustc_hash::FxHashMap;
use shallows_core::packet::{Ecn, Packet as _};
use shallows_core::port::{ConfigError as PortError, EgressPort};
use shallows_core::tcp::{Acks, ConfigError as TcpError, Receiver, Sender, TcpConfig};
use shallows_core::units::Time;
use thiserror::Error;

use crate::engine::{Class, Key, Wheel};
use crate::network::{Network, PortSetup};
use crate::packet::{Envelope, Packet, Selective};
use crate::paths::{ARRIVED, Paths};
use crate::routing::{NoPath, Router, Selection};
use crate::topology::Fabric;
use crate::workload::{Barrier, FlowSpec, Workload};

/// Everything that a run depends on.
#[derive(Debug)]
pub struct Setup {
    /// Hosts, switches and links.
    pub fabric: Fabric,
    /// Which links a packet takes.
    pub router: Router,
    /// What the ports are made of.
    pub ports: PortSetup,
    /// What the hosts speak.
    pub transport: TcpConfig,
    /// What they have to say.
    pub workload: Workload,
    /// Where a flow's completion is taken.
    pub completion: Completion,
    /// Seed of every random stream.
    pub seed: u64,
}

/// The moment at which a flow is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Completion {
    /// The sender has the ACK of the last byte, as MQ-ECN measures it.
    #[default]
    Sender,
    /// The receiver has the last byte, as ML-ECN measures it.
    Receiver,
}

/// Why a run cannot start.
#[derive(Clone, Debug, Error)]
pub enum SetupError {
    /// A port of a switch or host.
    #[error("ports: {0}")]
    Port(#[from] PortError),
    /// The transport.
    #[error("transport: {0}")]
    Transport(#[from] TcpError),
    /// A flow's hosts are not connected.
    #[error("flow {flow}: {reason}")]
    NoPath {
        /// Its number.
        flow: usize,
        /// Which hosts.
        reason: NoPath,
    },
    /// Segments that do not fit a packet's length field.
    #[error("segment and header are {0} bytes together; a packet has at most 65535")]
    PacketTooLarge(u32),
    /// Nothing to simulate.
    #[error("the workload has no flows")]
    NoFlows,
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOutcome {
    /// From its start to its completion, if it was completed.
    pub fct: Option<Time>,
    /// Segments sent more than once.
    pub retransmits: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Segments that arrived marked.
    pub marks: u32,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Flows completed.
    pub done: usize,
    /// Packets put on links so far.
    pub packet_hops: u64,
    /// Events handled so far.
    pub events: u64,
}

/// Whether there is more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Call [`Simulation::run`] again.
    Running,
    /// Nothing can happen any more, or the end has come.
    Finished,
}

/// A simulated fabric and its hosts.
#[derive(Debug)]
pub struct Simulation {
    events: Wheel<Packet>,
    network: Network,
    paths: Paths,
    router: Router,
    transport: TcpConfig,
    workload: Workload,
    completion: Completion,
    /// Position of the next flow to start, of those that wait for no barrier.
    next_flow: usize,
    /// How many those are.
    scheduled: usize,
    barriers: Barriers,
    connections: Vec<Option<Box<Connection>>>,
    outcomes: Vec<FlowOutcome>,
    selective: Vec<Selective>,
    free_selective: Vec<u32>,
    /// Packets sprayed so far, which choose a path each.
    sprayed: u64,
    now: Time,
    done: usize,
    handled: u64,
}

#[derive(Debug)]
struct Connection {
    sender: Sender,
    receiver: Receiver,
    forth: Envelope,
    back: Envelope,
    /// When the timer events in the queue will come.
    sender_timer: Option<Time>,
    receiver_timer: Option<Time>,
}

impl Simulation {
    /// A run at time zero.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        setup.transport.validate()?;
        let largest = setup.transport.segment + setup.transport.header;
        if largest > u32::from(u16::MAX) {
            return Err(SetupError::PacketTooLarge(largest));
        }
        let flows = &setup.workload.flows;
        if flows.is_empty() {
            return Err(SetupError::NoFlows);
        }
        let mut path = Vec::new();
        for (number, flow) in flows.iter().enumerate() {
            for (from, to) in [(flow.src, flow.dst), (flow.dst, flow.src)] {
                let found = setup.router.path(from, to, number as u64, &mut path);
                found.map_err(|reason| SetupError::NoPath {
                    flow: number,
                    reason,
                })?;
            }
        }
        let count = flows.len();
        let scheduled = flows
            .iter()
            .filter(|flow| flow.start != FlowSpec::AT_BARRIER)
            .count();
        let barriers = Barriers::new(&setup.workload.barriers);
        let unfinished = FlowOutcome {
            fct: None,
            retransmits: 0,
            timeouts: 0,
            marks: 0,
        };
        let mut simulation = Self {
            events: Wheel::new(),
            network: Network::new(&setup.fabric, &setup.ports, setup.seed)?,
            paths: Paths::default(),
            router: setup.router,
            transport: setup.transport,
            workload: setup.workload,
            completion: setup.completion,
            next_flow: 0,
            scheduled,
            barriers,
            connections: (0..count).map(|_| None).collect(),
            outcomes: vec![unfinished; count],
            selective: Vec::new(),
            free_selective: Vec::new(),
            sprayed: 0,
            now: Time::ZERO,
            done: 0,
            handled: 0,
        };
        simulation.await_next_flow();
        for stop in simulation.workload.stops.clone() {
            simulation.events.push(stop.at, Key::stop(stop.flow));
        }
        Ok(simulation)
    }

    /// Handles up to `most` events before `end`.
    pub fn run(&mut self, end: Time, most: u64) -> Status {
        for _ in 0..most {
            let Some((now, key, packet)) = self.events.pop_before(end) else {
                return Status::Finished;
            };
            self.now = now;
            self.handled += 1;
            let identity = key.identity();
            match key.class() {
                Class::Arrival => self.arrive(packet),
                Class::PortReady => self.network.ready(&mut self.events, now, identity),
                Class::SenderTimer => self.sender_timer(identity),
                Class::ReceiverTimer => self.receiver_timer(identity),
                Class::Start => self.start_flow(identity),
                Class::Stop => self.stop_flow(identity),
            }
        }
        Status::Running
    }

    /// How far the run has come.
    pub fn progress(&self) -> Progress {
        Progress {
            now: self.now,
            done: self.done,
            packet_hops: self.network.hops(),
            events: self.handled,
        }
    }

    /// The flows, in their order, with what became of them.
    pub fn flows(&self) -> impl Iterator<Item = (&FlowSpec, &FlowOutcome)> {
        self.workload.flows.iter().zip(&self.outcomes)
    }

    /// The port of a link, for its counters.
    pub fn port(&self, link: u32) -> &EgressPort<impl shallows_core::packet::Packet + use<>> {
        self.network.port(link)
    }

    /// Puts the start of the next flow that waits for no barrier into the queue.
    fn await_next_flow(&mut self) {
        if self.next_flow < self.scheduled {
            let start = self.workload.flows[self.next_flow].start;
            self.events.push(start, Key::start(self.next_flow as u32));
        }
    }

    fn start_flow(&mut self, number: u32) {
        if (number as usize) < self.scheduled {
            self.next_flow += 1;
            self.await_next_flow();
        }
        self.open(number);
    }

    /// Opens the connection of a flow and hands it the flow's data.
    fn open(&mut self, number: u32) {
        let flow = self.workload.flows[number as usize];
        let (Some(forth), Some(back)) = (
            self.route(flow.src, flow.dst, u64::from(number)),
            self.route(flow.dst, flow.src, u64::from(number)),
        ) else {
            return;
        };
        let envelope = |route| Envelope {
            connection: number,
            route,
            dscp: flow.service as u8,
            header: self.transport.header as u16,
        };
        let mut connection = Box::new(Connection {
            sender: Sender::new(&self.transport),
            receiver: Receiver::new(&self.transport),
            forth: envelope(forth),
            back: envelope(back),
            sender_timer: None,
            receiver_timer: None,
        });
        connection.sender.write(self.now, flow.bytes);
        self.connections[number as usize] = Some(connection);
        self.send(number);
    }

    fn stop_flow(&mut self, number: u32) {
        if self.connections[number as usize].is_some() {
            self.complete(number);
            self.close(number);
        }
    }

    fn route(&mut self, src: u32, dst: u32, selector: u64) -> Option<u32> {
        let mut path = Vec::new();
        self.router.path(src, dst, selector, &mut path).ok()?;
        Some(self.paths.intern(&path))
    }

    #[inline]
    fn arrive(&mut self, mut packet: Packet) {
        let next = self.paths.link(packet.route);
        if next != ARRIVED {
            packet.route += 1;
            self.forward(next, packet);
        } else if packet.is_ack() {
            self.take_ack(packet);
        } else {
            self.take_data(packet);
        }
    }

    #[inline]
    fn forward(&mut self, link: u32, packet: Packet) {
        let dropped = self
            .network
            .forward(&mut self.events, self.now, link, packet);
        if dropped {
            for packet in self.network.take_dropped(link) {
                self.free_selective.extend(packet.selective());
            }
        }
    }

    /// Puts a packet of a host on its way.
    #[inline]
    fn launch(&mut self, mut packet: Packet) {
        let uplink = self.paths.link(packet.route);
        packet.route += 1;
        self.forward(uplink, packet);
    }

    fn take_data(&mut self, packet: Packet) {
        let number = packet.connection;
        let Some(connection) = &mut self.connections[number as usize] else {
            return;
        };
        let acks = connection
            .receiver
            .on_segment(self.now, &packet.to_segment(), packet.ecn());
        let received = connection.receiver.received();
        let mut back = connection.back;
        self.outcomes[number as usize].marks += u32::from(packet.ecn() == Ecn::Ce);
        let flow = &self.workload.flows[number as usize];
        if self.completion == Completion::Receiver && received == flow.bytes {
            self.complete(number);
        }
        if self.router.selection() == Selection::Packet {
            back.route = self.spray(number, Direction::Back);
        }
        self.acknowledge(back, acks);
        self.arm_receiver(number);
    }

    fn acknowledge(&mut self, back: Envelope, acks: Acks) {
        for ack in acks {
            let selective = (!ack.sack.is_empty()).then(|| {
                self.set_aside(Selective {
                    sack: ack.sack,
                    one_way_delay: ack.one_way_delay,
                })
            });
            self.launch(Packet::ack(back, &ack, selective));
        }
    }

    fn set_aside(&mut self, part: Selective) -> u32 {
        if let Some(at) = self.free_selective.pop() {
            self.selective[at as usize] = part;
            return at;
        }
        self.selective.push(part);
        (self.selective.len() - 1) as u32
    }

    fn take_ack(&mut self, packet: Packet) {
        let selective = packet.selective().map(|at| {
            self.free_selective.push(at);
            self.selective[at as usize]
        });
        let number = packet.connection;
        let Some(connection) = &mut self.connections[number as usize] else {
            return;
        };
        connection
            .sender
            .on_ack(self.now, &packet.to_ack(selective));
        if connection.sender.is_done() {
            if self.completion == Completion::Sender {
                self.complete(number);
            }
            self.close(number);
            return;
        }
        self.send(number);
    }

    /// Sends what the sender of a connection may send, and sets its timer.
    fn send(&mut self, number: u32) {
        loop {
            let Some(connection) = &mut self.connections[number as usize] else {
                return;
            };
            let Some(segment) = connection.sender.poll_segment(self.now) else {
                break;
            };
            let remaining = connection.sender.written() - segment.seq;
            let mut forth = connection.forth;
            if self.router.selection() == Selection::Packet {
                forth.route = self.spray(number, Direction::Forth);
            }
            self.launch(Packet::data(forth, &segment, remaining));
        }
        self.arm_sender(number);
    }

    /// A path for one packet.
    #[cold]
    fn spray(&mut self, number: u32, direction: Direction) -> u32 {
        let flow = self.workload.flows[number as usize];
        let (src, dst) = match direction {
            Direction::Forth => (flow.src, flow.dst),
            Direction::Back => (flow.dst, flow.src),
        };
        self.sprayed += 1;
        // The hosts are connected, or the flow would not have started.
        self.route(src, dst, self.sprayed).unwrap_or_default()
    }

    fn arm_sender(&mut self, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else {
            return;
        };
        // A timer that comes too early is set again when it comes, which costs less than moving it
        // with every ACK.
        if let Some(deadline) = connection.sender.deadline()
            && connection.sender_timer.is_none_or(|at| deadline < at)
        {
            connection.sender_timer = Some(deadline);
            let key = Key::sender_timer(number);
            self.events.push(deadline, key);
        }
    }

    fn sender_timer(&mut self, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else {
            return;
        };
        if connection.sender_timer != Some(self.now) {
            return;
        }
        connection.sender_timer = None;
        connection.sender.on_deadline(self.now);
        self.send(number);
    }

    fn arm_receiver(&mut self, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else {
            return;
        };
        if let Some(deadline) = connection.receiver.deadline()
            && connection.receiver_timer.is_none_or(|at| deadline < at)
        {
            connection.receiver_timer = Some(deadline);
            let key = Key::receiver_timer(number);
            self.events.push(deadline, key);
        }
    }

    fn receiver_timer(&mut self, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else {
            return;
        };
        if connection.receiver_timer != Some(self.now) {
            return;
        }
        connection.receiver_timer = None;
        let ack = connection.receiver.on_deadline(self.now);
        let back = connection.back;
        if let Some(ack) = ack {
            self.acknowledge(back, Acks::One(ack));
        }
        self.arm_receiver(number);
    }

    /// Notes that a flow is complete.
    fn complete(&mut self, number: u32) {
        let start = self.workload.flows[number as usize].start;
        let outcome = &mut self.outcomes[number as usize];
        if outcome.fct.is_none() {
            outcome.fct = Some(self.now - start);
            self.done += 1;
            self.release(number);
        }
    }

    /// Lets the flows go that waited for this one last.
    fn release(&mut self, number: u32) {
        for opened in self.barriers.completed(number) {
            let barrier = &self.workload.barriers[opened];
            let start = self.now + barrier.pause;
            for &flow in &barrier.releases {
                self.workload.flows[flow as usize].start = start;
                self.events.push(start, Key::start(flow));
            }
        }
    }

    /// Forgets a connection; what is still on its way to it is ignored.
    fn close(&mut self, number: u32) {
        if let Some(connection) = self.connections[number as usize].take() {
            let stats = connection.sender.stats();
            let outcome = &mut self.outcomes[number as usize];
            outcome.retransmits = stats.retransmits as u32;
            outcome.timeouts = stats.timeouts as u32;
        }
    }
}

/// Which flows each barrier still waits for.
#[derive(Debug)]
struct Barriers {
    /// The barriers that wait for a flow.
    waiting: FxHashMap<u32, Vec<usize>>,
    /// Flows that each barrier waits for.
    missing: Vec<usize>,
}

impl Barriers {
    fn new(barriers: &[Barrier]) -> Self {
        let mut waiting: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (number, barrier) in barriers.iter().enumerate() {
            for &flow in &barrier.waits_for {
                waiting.entry(flow).or_default().push(number);
            }
        }
        let missing = barriers
            .iter()
            .map(|barrier| barrier.waits_for.len())
            .collect();
        Self { waiting, missing }
    }

    /// A flow is complete; the barriers that open with it.
    fn completed(&mut self, flow: u32) -> Vec<usize> {
        let mut opened = self.waiting.remove(&flow).unwrap_or_default();
        opened.retain(|&number| {
            self.missing[number] -= 1;
            self.missing[number] == 0
        });
        opened
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Forth,
    Back,
}
