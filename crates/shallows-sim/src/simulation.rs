//! A run: hosts with their connections, on a network.

use std::sync::Arc;

use shallows_core::port::{ConfigError as PortError, EgressPort};
use shallows_core::tcp::{ConfigError as TcpError, TcpConfig};
use shallows_core::units::Time;
use thiserror::Error;

use crate::engine::Wheel;
use crate::network::{Network, PortSetup};
use crate::parallel;
use crate::partition::Partition;
use crate::paths::Paths;
use crate::routing::{NoPath, Router, Selection};
use crate::shard::{Shard, World};
use crate::topology::{Fabric, Node};
use crate::workload::{FlowSpec, Workload};

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
    /// How long connections last.
    pub connections: Connections,
    /// What they have to say.
    pub workload: Workload,
    /// Where a flow's completion is taken.
    pub completion: Completion,
    /// Seed of every random stream.
    pub seed: u64,
    /// Threads to use at most. Results do not depend on it.
    pub threads: u32,
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

/// How long a connection lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// As long as its flow.
    #[default]
    PerFlow,
    /// For all of the run: a flow takes over the oldest connection from its source to its
    /// destination for its service that has nothing to send, with all that it has learned, and a
    /// new one is made when there is none (MQ-ECN's simulations).
    Persistent,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowOutcome {
    /// When it started, or will start.
    pub start: Time,
    /// From its start to its completion, if it was completed.
    pub fct: Option<Time>,
    /// Segments sent more than once.
    pub retransmits: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Segments that arrived marked.
    pub marks: u32,
    /// Bytes that its sender knows to have arrived.
    pub delivered: u64,
}

impl FlowOutcome {
    /// Nothing yet.
    pub(crate) fn of(flow: &FlowSpec) -> Self {
        Self {
            start: flow.start,
            fct: None,
            retransmits: 0,
            timeouts: 0,
            marks: 0,
            delivered: 0,
        }
    }

    /// What two parts saw of a flow, together.
    fn merge(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            fct: self.fct.or(other.fct),
            retransmits: self.retransmits + other.retransmits,
            timeouts: self.timeouts + other.timeouts,
            marks: self.marks + other.marks,
            delivered: self.delivered + other.delivered,
        }
    }
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
    world: Arc<World>,
    shards: Vec<Shard>,
    partition: Partition,
    lookaheads: Vec<Vec<Time>>,
}

impl Simulation {
    /// A run at time zero.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        setup.transport.validate()?;
        let largest = setup.transport.segment + setup.transport.header;
        if largest > u32::from(u16::MAX) {
            return Err(SetupError::PacketTooLarge(largest));
        }
        if setup.workload.flows.is_empty() {
            return Err(SetupError::NoFlows);
        }
        let partition = Partition::new(&setup.fabric, setup.usable_threads());
        let (paths, routes) = setup.routes()?;
        let lookaheads = partition.lookaheads(&setup.fabric, &setup.ports, setup.transport.header);
        let world = Arc::new(World {
            workload: setup.workload,
            transport: setup.transport,
            connections: setup.connections,
            completion: setup.completion,
            router: setup.router,
            routes,
        });
        let make = |part| {
            let mut events = Wheel::new();
            let parts = (&setup.fabric, &setup.ports, setup.seed);
            let network = Network::new(part, &partition, parts, &mut events)?;
            let local = |flow: &u32| {
                let src = world.workload.flows[*flow as usize].src;
                partition.part_of(Node::Host(src)) == part
            };
            let flows = (0..).zip(&world.workload.flows);
            let starting = flows
                .filter(|(_, spec)| spec.start != FlowSpec::AT_BARRIER)
                .map(|(flow, _)| flow)
                .filter(local)
                .collect();
            let stops = world.workload.stops.iter().copied();
            let stops: Vec<_> = stops.filter(|stop| local(&stop.flow)).collect();
            let paths = match partition.parts() {
                1 => paths.clone(),
                _ => paths.renamed(|link| match partition.place(link) {
                    (of, place) if of == part => place,
                    _ => u32::MAX - 1,
                }),
            };
            Ok(Shard::new(
                (part, partition.parts()),
                Arc::clone(&world),
                (events, network),
                paths,
                starting,
                &stops,
            ))
        };
        let shards: Result<Vec<_>, PortError> = (0..partition.parts()).map(make).collect();
        Ok(Self {
            shards: shards?,
            world,
            partition,
            lookaheads,
        })
    }

    /// Handles about `most` events before `end`.
    pub fn run(&mut self, end: Time, most: u64) -> Status {
        let finished = match &mut self.shards[..] {
            [shard] => shard.run(end, most) < most,
            shards => parallel::run(shards, &self.lookaheads, end, most),
        };
        if !finished {
            return Status::Running;
        }
        for shard in &mut self.shards {
            shard.settle(end);
        }
        Status::Finished
    }

    /// How many threads it uses.
    pub fn threads(&self) -> usize {
        self.shards.len()
    }

    /// How far the run has come.
    pub fn progress(&self) -> Progress {
        let now = self.shards.iter().map(Shard::now).max();
        Progress {
            now: now.unwrap_or(Time::ZERO),
            done: self.shards.iter().map(Shard::done).sum(),
            packet_hops: self.shards.iter().map(|shard| shard.network().hops()).sum(),
            events: self.shards.iter().map(Shard::handled).sum(),
        }
    }

    /// The flows, in their order, with what became of them.
    pub fn flows(&self) -> impl Iterator<Item = (&FlowSpec, FlowOutcome)> {
        let specs = self.world.workload.flows.iter().enumerate();
        specs.map(|(flow, spec)| {
            let seen = self.shards.iter().map(|shard| *shard.outcome(flow));
            let outcome = seen.reduce(FlowOutcome::merge);
            (spec, outcome.unwrap_or_else(|| FlowOutcome::of(spec)))
        })
    }

    /// The port of a link, for its counters.
    pub fn port(&self, link: u32) -> &EgressPort<impl shallows_core::packet::Packet + use<>> {
        let (part, port) = self.partition.place(link);
        self.shards[part as usize].network().port(port)
    }
}

impl Setup {
    /// Flows that wait for others far away, and paths that are found packet by packet, are for one
    /// thread.
    fn usable_threads(&self) -> u32 {
        let sprays = self.router.selection() == Selection::Packet;
        if sprays || !self.workload.barriers.is_empty() {
            return 1;
        }
        self.threads
    }

    /// All paths in use, and where those of each flow begin.
    fn routes(&self) -> Result<(Paths, Vec<[u32; 2]>), SetupError> {
        let mut paths = Paths::default();
        let mut routes = Vec::with_capacity(self.workload.flows.len());
        let mut links = Vec::new();
        for (flow, spec) in self.workload.flows.iter().enumerate() {
            let mut find = |from, to| {
                let found = self.router.path(from, to, flow as u64, &mut links);
                found.map_err(|reason| SetupError::NoPath { flow, reason })?;
                Ok::<_, SetupError>(paths.intern(&links))
            };
            routes.push([find(spec.src, spec.dst)?, find(spec.dst, spec.src)?]);
        }
        Ok((paths, routes))
    }
}
