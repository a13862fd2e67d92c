//! A run: hosts with their connections, on a network.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::sync::Arc;

use shallows_core::application::ApplicationError;
use shallows_core::host::gate::Refusal;
use shallows_core::host::qjump::{AutomaticLevels, Limiter};
use shallows_core::host::udp::{self, ConfigError as UdpError};
use shallows_core::port::{ConfigError as PortError, DropReason, EgressPort};
use shallows_core::tcp::ConfigError as TcpError;
use shallows_core::transport::SendingEnd as _;
use shallows_core::units::{Bytes, Time};
use shallows_model::{Barriers, ControlError, Id as _, LinkChange, LinkId, Model};
use thiserror::Error;

use crate::applications::Latency;
use crate::broadcast::Trees;
use crate::control::Control;
use crate::execution::{self, Traffic};
use crate::hosts::QjumpError;
use crate::ids::{PortId, ShardId};
use crate::interrupt::{Interrupt, Interrupted};
use crate::layers::{self, Engine, EngineChoice, NoLayers};
use crate::network::Network;
use crate::parallel::Crew;
use crate::partition::Partition;
use crate::paths::Paths;
use crate::routing::{NoPath, Router, selectors};
use crate::setup::{Setup, places, take_hosts};
use crate::shard::{PauseStats, Pauses, Routing, Shard, ShardSetup, World};
use crate::topology::Node;
use crate::watch::{Observation, Watch, watched_links};
use crate::workload::FlowSpec;

/// Settings of a simulation beyond its model.
#[derive(Debug)]
pub struct Settings {
    /// Agents of control protocols.
    pub control: Control,
    /// Packets to observe on their way.
    pub watch: Watch,
    /// Threads to use at most. Results do not depend on it.
    pub threads: u32,
    /// Engine to use. Results do not depend on it.
    pub engine: EngineChoice,
}

impl Default for Settings {
    /// One thread, without agents and observations.
    fn default() -> Self {
        Self {
            control: Control::default(),
            watch: Watch::default(),
            threads: 1,
            engine: EngineChoice::Automatic,
        }
    }
}

/// The reason why a run cannot start.
#[derive(Clone, Debug, Error)]
pub enum SetupError {
    /// Somebody gave up waiting for it.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A port of a switch or host.
    #[error("ports: {0}")]
    Port(#[from] PortError),
    /// The transport.
    #[error("transport: {0}")]
    Transport(#[from] TcpError),
    /// Configuration of UDP flows.
    #[error("datagrams: {0}")]
    Datagrams(#[from] UdpError),
    /// The limits of hosts.
    #[error("qjump: {0}")]
    Limits(#[from] QjumpError),
    /// A flow of which no packet passes the limits, not even an ACK.
    #[error("qjump: packets of {size} bytes of flow {flow}, service {level}, never pass: {}", match .allotment {
        Some(bytes) => format!("the service may send {bytes} per epoch"),
        None => "it has no limit in levels".to_owned(),
    })]
    NeverPasses {
        /// Its number.
        flow: usize,
        /// Its level.
        level: u16,
        /// Its smallest packets.
        size: u32,
        /// Bytes per epoch of the level.
        allotment: Option<Bytes>,
    },
    /// An application.
    #[error("application: {0}")]
    Application(#[from] ApplicationError),
    /// Agents of control protocols.
    #[error("control: {0}")]
    Control(#[from] ControlError),
    /// A flow's hosts are not connected.
    #[error("flow {flow}: {reason}")]
    NoPath {
        /// Its number.
        flow: usize,
        /// The two hosts.
        reason: NoPath,
    },
    /// The system gives us no threads.
    #[error("threads: {0}; ask for fewer")]
    Threads(#[from] Arc<io::Error>),
    /// The setup demands layers, and the run does not fit.
    #[error("layers: {0}")]
    Layers(#[from] NoLayers),
    /// Nothing to simulate.
    #[error("the workload has no flows")]
    NoFlows,
}

/// Outcome of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowOutcome {
    /// Start time; may be in the future.
    pub start: Time,
    /// From its start to its completion, if it was completed.
    pub fct: Option<Time>,
    /// Segments with data that its sender has sent, and those that have arrived.
    pub sent: u32,
    /// See [`sent`](Self::sent).
    pub received: u32,
    /// Segments sent more than once.
    pub retransmits: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Segments that arrived marked.
    pub marks: u32,
    /// Packets of its sender that ports and the gates of its host have dropped.
    pub drops: u32,
    /// Messages of UDP that were sent and have not arrived whole.
    pub lost_messages: u32,
    /// Bytes that its sender knows to have arrived; of UDP, bytes of messages that arrived whole.
    pub delivered: u64,
}

/// Counters of both ends of a UDP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramStats {
    /// The sender.
    pub sent: udp::SenderStats,
    /// The receiver.
    pub received: udp::ReceiverStats,
}

impl DatagramStats {
    /// Messages that were sent and have not arrived whole.
    pub fn lost_messages(&self) -> u64 {
        self.sent.messages - self.received.delivered.packets
    }
}

impl FlowOutcome {
    /// Nothing yet.
    pub(crate) fn of(flow: &FlowSpec) -> Self {
        Self {
            start: flow.start,
            fct: None,
            sent: 0,
            received: 0,
            retransmits: 0,
            timeouts: 0,
            marks: 0,
            drops: 0,
            lost_messages: 0,
            delivered: 0,
        }
    }

    /// Merges the views of two shards on a flow.
    fn merge(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            // Both ends may have ended it: the receiver with the last byte, and a stop of its sender.
            fct: self.fct.into_iter().chain(other.fct).min(),
            sent: self.sent + other.sent,
            received: self.received + other.received,
            retransmits: self.retransmits + other.retransmits,
            timeouts: self.timeouts + other.timeouts,
            marks: self.marks + other.marks,
            drops: self.drops + other.drops,
            lost_messages: 0,
            delivered: self.delivered + other.delivered,
        }
    }
}

/// Progress of a run.
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

/// Status of a run: events left, or none.
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
    /// Number of flows of the workload; those of applications follow.
    flows: usize,
    /// Names of the applications.
    applications: Vec<String>,
    shards: Vec<Shard>,
    partition: Partition,
    /// The NIC of each host.
    uplinks: Vec<LinkId>,
    /// The threads, if there are several parts.
    crew: Option<Crew>,
    engine: Engine,
    router: Router,
    /// Paths that are in use, and where those of each flow begin, while links may change.
    paths: Paths<LinkId>,
    routes: Vec<[u32; 2]>,
    /// Changes of links that are still to come, the next one last.
    changes: Vec<LinkChange>,
}

/// State of a flow's sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderState {
    /// Congestion window in bytes.
    pub cwnd: f64,
    /// The smoothed fraction of congestion, of controllers that have one.
    pub alpha: Option<f64>,
    /// Smoothed round-trip time, once there is one.
    pub srtt: Option<Time>,
}

impl Simulation {
    /// A run at time zero.
    pub fn new(model: Model, settings: Settings) -> Result<Self, SetupError> {
        Self::new_unless(model, settings, Interrupt::Never)
    }

    /// A run at time zero, unless it is interrupted before: many flows take a while.
    #[expect(
        clippy::too_many_lines,
        reason = "each step of the set-up needs those before it"
    )]
    pub fn new_unless(
        model: Model,
        settings: Settings,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, SetupError> {
        let mut setup = Setup::new(model, settings);
        setup.check()?;
        setup.choose_levels();
        let flows = setup.workload.flows.len();
        let names = setup.applications.iter().map(|of| of.name.clone());
        let names: Vec<String> = names.collect();
        let mut hosts = BTreeMap::new();
        let applications = setup.add_applications(&mut hosts)?;
        setup.add_gates(&mut hosts, interrupt)?;
        setup.control.check(&setup.fabric)?;
        let (threads, letters) = (setup.usable_threads(), setup.control.delay());
        let fits = layers::refuse(&setup);
        let control = setup.add_agents(&mut hosts);
        let (mut paths, routes) = setup.routes(interrupt)?;
        let trees = Trees::new(&applications.broadcasts, &mut paths, &routes);
        let is_fixed = setup.changes.is_empty();
        let traffic = Traffic {
            paths: &paths,
            routes: &routes,
            smallest: setup.smallest_packet(&control, &applications),
            letters,
            has_others: !applications.connections.is_empty() || !control.hosts.is_empty(),
        };
        let execution = execution::choose(&setup, fits, threads, traffic)?;
        let (partition, mut plans) = (execution.partition, execution.layers.into_iter());
        let watched = watched_links(&setup, &partition);
        let warm_ups = setup.warm_ups((&paths, &routes), interrupt)?;
        let kept_routes = if is_fixed { Vec::new() } else { routes.clone() };
        let routing = Arc::new(Routing {
            router: setup.router.clone(),
            routes,
            trees,
        });
        let has_pace = setup.has_pace();
        let world = Arc::new(World {
            warm_ups,
            workload: setup.workload,
            has_pace,
            transport: setup.transport,
            overrides: setup.overrides,
            connections: setup.connections,
            completion: setup.completion,
            stages: setup.hosts.stages,
            control,
            applications,
            places: places(&setup.fabric, &partition),
            seed: setup.seed,
        });
        let make = |part| {
            let parts = (&setup.fabric, &setup.ports, setup.seed);
            let pauses = Pauses::new(part, &setup.fabric, &setup.ports, &partition)?;
            let is_watched = |link| pauses.is_some() || watched.contains_key(&link);
            let network = Network::new(part, &partition, parts, is_watched)?;
            let local = |flow: &u32| {
                let src = world.workload.flows[*flow as usize].src;
                partition.part_of(Node::Host(src)) == part
            };
            let stops = world.workload.stops.iter().copied();
            let outcomes = world.workload.flows.iter().map(FlowOutcome::of);
            Ok(Shard::new(ShardSetup {
                outcomes: interrupt.collect(outcomes)?,
                barriers: Barriers::new(&world.workload.barriers, interrupt)?,
                part,
                parts: partition.parts(),
                world: Arc::clone(&world),
                network,
                hosts: take_hosts(part, &world.places, &mut hosts),
                routing: Arc::clone(&routing),
                paths: match partition.parts() {
                    1 if is_fixed => mem::take(&mut paths).of_only_shard(),
                    _ => local_paths(&paths, &partition, part),
                },
                watched: watched.clone(),
                keeps: (setup.watch.rtt, setup.watch.drops),
                pauses,
                layers: plans.next(),
                starting: world.workload.timed().filter(local).collect(),
                stops: stops.filter(|stop| local(&stop.flow)).collect(),
            }))
        };
        let shards: Result<Vec<_>, SetupError> = partition.shards().map(make).collect();
        let crew = Crew::new(&execution.ties, setup.engine).map_err(Arc::new)?;
        setup.changes.sort_by_key(|change| Reverse(change.at));
        Ok(Self {
            shards: shards?,
            flows,
            applications: names,
            world,
            uplinks: setup.fabric.uplinks(),
            partition,
            crew,
            engine: execution.engine,
            router: setup.router,
            paths: if is_fixed { Paths::default() } else { paths },
            routes: kept_routes,
            changes: setup.changes,
        })
    }

    /// Handles about `most` events before `end`.
    pub fn run(&mut self, end: Time, most: u64) -> Status {
        while let Some(&change) = self.changes.last()
            && change.at < end
        {
            // A change at some time comes before all else at that time.
            if self.run_unchanged(change.at, most) == Status::Running {
                return Status::Running;
            }
            if self.next_time().is_none() {
                return Status::Finished;
            }
            self.changes.pop();
            self.change(change);
        }
        self.run_unchanged(end, most)
    }

    /// Takes a link away or brings it back.
    fn change(&mut self, change: LinkChange) {
        self.router.set_link(change.link, change.state);
        if let [shard] = &self.shards[..] {
            // Sprayed packets have added paths, and those on their way hold positions in them.
            self.paths = shard.paths().clone().of_fabric();
        }
        let mut links = Vec::new();
        let flows = &self.world.workload.flows;
        let selectors = selectors(&self.router, flows, self.world.connections);
        for ((spec, selector), routes) in flows.iter().zip(selectors).zip(&mut self.routes) {
            let ways = [(spec.src, spec.dst), (spec.dst, spec.src)];
            for ((from, to), route) in ways.into_iter().zip(routes) {
                // Without another way packets go where they went, and are lost there.
                if self.router.path(from, to, selector, &mut links).is_ok() {
                    *route = self.paths.intern(&links, self.uplinks[to as usize]);
                }
            }
        }
        let routing = Arc::new(Routing {
            router: self.router.clone(),
            trees: Trees::new(
                &self.world.applications.broadcasts,
                &mut self.paths,
                &self.routes,
            ),
            routes: self.routes.clone(),
        });
        for (part, shard) in self.partition.shards().zip(&mut self.shards) {
            let paths = local_paths(&self.paths, &self.partition, part);
            shard.change_link(change.link, change.state);
            shard.reroute(Arc::clone(&routing), paths);
            shard.tell_agents(change.at, change.link, change.state);
        }
    }

    fn run_unchanged(&mut self, end: Time, most: u64) -> Status {
        let finished = match &mut self.crew {
            None => self.shards[0].run(end, most) < most,
            Some(crew) => crew.run(&mut self.shards, end, most),
        };
        if !finished {
            return Status::Running;
        }
        for shard in &mut self.shards {
            shard.settle(end);
        }
        Status::Finished
    }

    /// Time of the next event, if there is one.
    pub fn next_time(&self) -> Option<Time> {
        self.shards.iter().filter_map(Shard::next_time).min()
    }

    /// Observations since the last call, in order of time; waiting times are in order within their
    /// link only.
    pub fn take_observations(&mut self) -> Vec<Observation> {
        let seen = self.shards.iter_mut().map(Shard::take_observations);
        seen.reduce(|mut all, more| {
            all.extend(more);
            all
        })
        .unwrap_or_default()
    }

    /// Current state of a flow's sender, if it has something to send.
    pub fn sender(&self, flow: u32) -> Option<SenderState> {
        let sender = self.shards.iter().find_map(|shard| shard.sender(flow))?;
        Some(SenderState {
            cwnd: sender.cwnd_bytes(),
            alpha: sender.alpha(),
            srtt: sender.srtt(),
        })
    }

    /// Packets that a link has lost by its faults or while it was down.
    pub fn lost_on(&self, link: LinkId) -> u64 {
        let (part, _) = self.partition.place(link);
        self.shards[part.index()].lost_on(link)
    }

    /// Number and total duration of a link's pauses.
    pub fn pauses(&self, link: LinkId) -> PauseStats {
        let (part, _) = self.partition.place(link);
        self.shards[part.index()].pauses(link, self.progress().now)
    }

    /// The limiter of a host, for its counters, if there are limits.
    pub fn limiter(&self, host: u32) -> Option<&Limiter> {
        let (part, port) = self.partition.place(self.uplinks[host as usize]);
        Some(self.shards[part.index()].qjump(port)?.limiter())
    }

    /// The levels that the applications of a host have chosen, if they do.
    pub fn automatic_levels(&self, host: u32) -> Option<&AutomaticLevels> {
        let (part, port) = self.partition.place(self.uplinks[host as usize]);
        self.shards[part.index()].qjump(port)?.automatic_levels()
    }

    /// The longest time in which packets of a host waited for a destination and none was sent to
    /// it, if hosts have gates that tell.
    pub fn longest_wait(&self, host: u32) -> Option<Time> {
        let (part, port) = self.partition.place(self.uplinks[host as usize]);
        self.shards[part.index()].longest_wait(port)
    }

    /// The engine that runs it, and why it is this one.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Makes windows longer than they may be.
    #[cfg(test)]
    pub(crate) fn stretch_windows(&mut self, up: Time, down: Time) {
        for shard in &mut self.shards {
            shard.stretch_windows(up, down);
        }
    }

    /// Number of threads in use.
    pub fn threads(&self) -> usize {
        self.shards.len()
    }

    /// Events that several threads have handled at once. Those of sparse traffic run on one.
    pub fn shared_events(&self) -> u64 {
        self.crew.as_ref().map_or(0, Crew::together)
    }

    /// Progress of the run.
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
    pub fn flows(&self) -> impl ExactSizeIterator<Item = (&FlowSpec, FlowOutcome)> {
        (0..self.flows).map(|number| self.flow(number as u32))
    }

    /// A flow of the workload, by its number, with what became of it.
    pub fn flow(&self, number: u32) -> (&FlowSpec, FlowOutcome) {
        let spec = &self.world.workload.flows[number as usize];
        let seen = self.shards.iter().map(|shard| shard.outcome(number));
        let outcome = seen.reduce(FlowOutcome::merge);
        let mut outcome = outcome.unwrap_or_else(|| FlowOutcome::of(spec));
        if let Some(datagrams) = self.datagrams(number) {
            outcome.lost_messages = datagrams.lost_messages() as u32;
        }
        (spec, outcome)
    }

    /// Number of a flow's data packets that ports dropped, by reason, in no order.
    pub fn drops(&self) -> impl Iterator<Item = (&FlowSpec, DropReason, u32)> {
        let drops = self.shards.iter().flat_map(Shard::drops);
        let drops = drops.filter(|drop| (drop.0 as usize) < self.flows);
        drops
            .map(|(flow, reason, count)| (&self.world.workload.flows[flow as usize], reason, count))
    }

    /// Number of a flow's data packets that gates of its host dropped, by reason, in no order.
    pub fn refusals(&self) -> impl Iterator<Item = (&FlowSpec, Refusal, u32)> {
        let refusals = self.shards.iter().flat_map(Shard::refusals);
        let refusals = refusals.filter(|refusal| (refusal.0 as usize) < self.flows);
        refusals.map(|(flow, refusal, count)| {
            let spec = &self.world.workload.flows[flow as usize];
            (spec, refusal, count)
        })
    }

    /// The latencies that applications have seen, by application and member, each in its order, and
    /// then those of messages of UDP flows, where they are kept.
    pub fn latencies(&self) -> impl Iterator<Item = Latency<'_>> {
        self.latencies_of_applications()
            .chain(self.latencies_of_messages())
    }

    fn latencies_of_messages(&self) -> impl Iterator<Item = Latency<'_>> {
        let flows = self.world.workload.datagrams.iter().map(|of| of.flow);
        let pairs = flows.flat_map(|flow| self.shards.iter().map(move |shard| (flow, shard)));
        pairs.flat_map(|(flow, shard)| {
            let host = self.world.workload.flows[flow as usize].dst;
            let messages = shard.message_latencies(flow).iter();
            messages.map(move |message| Latency {
                application: "udp",
                number: None,
                host,
                name: "message",
                start: message.start,
                latency: message.latency,
            })
        })
    }

    fn latencies_of_applications(&self) -> impl Iterator<Item = Latency<'_>> {
        let members = self.shards.iter().flat_map(Shard::members);
        let mut members: Vec<_> = members.collect();
        members.sort_by_key(|member| (member.seat().application, member.seat().member));
        members.into_iter().flat_map(|member| {
            let number = member.seat().application;
            let application = &self.applications[number as usize];
            let host = self.world.applications.host(member.seat());
            member.samples().iter().map(move |sample| Latency {
                application,
                number: Some(number),
                host,
                name: sample.name,
                start: sample.start,
                latency: sample.latency,
            })
        })
    }

    /// Counters of both ends of a flow, if it is UDP.
    pub fn datagrams(&self, flow: u32) -> Option<DatagramStats> {
        self.world.workload.stream(flow)?;
        let mut stats = DatagramStats::default();
        for shard in &self.shards {
            let (sent, received) = shard.datagrams(flow);
            stats.sent = sent.copied().unwrap_or(stats.sent);
            stats.received = received.copied().unwrap_or(stats.received);
        }
        Some(stats)
    }

    /// The port of a link, for its counters.
    pub fn port(&self, link: LinkId) -> &EgressPort<impl shallows_core::packet::Packet + use<>> {
        let (part, port) = self.partition.place(link);
        self.shards[part.index()].network().port(port)
    }
}

/// The paths as a part sees them, by the numbers of its own ports.
fn local_paths(paths: &Paths<LinkId>, partition: &Partition, shard: ShardId) -> Paths<PortId> {
    match partition.parts() {
        1 => paths.clone().of_only_shard(),
        _ => paths.of_shard(shard, |link| partition.place(link)),
    }
}
