//! A run: hosts with their connections, on a network.

mod assembly;
mod outcome;
mod settings;

use std::sync::Arc;

use shallows_core::host::gate::Refusal;
use shallows_core::host::qjump::{AutomaticLevels, Limiter};
use shallows_core::port::{DropReason, EgressPort};
use shallows_core::transport::SendingEnd as _;
use shallows_core::units::Time;
use shallows_model::{FlowId, HostId, Id as _, IdVec, LinkChange, LinkId};

pub use outcome::{DatagramStats, FlowOutcome, Progress, SenderState, Status};
pub use settings::{Settings, SetupError};

use crate::applications::Latency;
use crate::broadcast::Trees;
use crate::connections::Routes;
use crate::ids::{PortId, ShardId};
use crate::layers::Engine;
use crate::parallel::Crew;
use crate::partition::Partition;
use crate::paths::Paths;
use crate::routing::{Router, selectors};
use crate::shard::{PauseStats, Routing, Shard, World};
use crate::watch::Observation;
use crate::workload::{Ends, FlowSpec};

/// A simulated fabric and its hosts.
#[derive(Debug)]
pub struct Simulation {
    world: Arc<World>,
    /// Names of the applications.
    applications: Vec<String>,
    shards: Vec<Shard>,
    partition: Partition,
    /// The NIC of each host.
    uplinks: IdVec<HostId, LinkId>,
    /// The threads, if there are several parts.
    crew: Option<Crew>,
    engine: Engine,
    router: Router,
    /// Paths that are in use, and where those of each connection begin, while links may change.
    paths: Paths<LinkId>,
    routes: Routes,
    /// Changes of links that are still to come, the next one last.
    changes: Vec<LinkChange>,
}

impl Simulation {
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
        let all = || self.world.directory.all(&self.world.workload);
        let selectors = selectors(&self.router, all(), self.world.connections);
        let routes = self.routes.as_mut_slice();
        for ((Ends { src, dst, .. }, selector), routes) in all().zip(selectors).zip(routes) {
            let ways = [(src, dst), (dst, src)];
            for ((from, to), route) in ways.into_iter().zip(routes) {
                // Without another way packets go where they went, and are lost there.
                if self.router.path(from, to, selector, &mut links).is_ok() {
                    *route = self.paths.intern(links.iter().copied(), self.uplinks[to]);
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
    pub fn sender(&self, flow: FlowId) -> Option<SenderState> {
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
    pub fn limiter(&self, host: HostId) -> Option<&Limiter> {
        let (part, port) = self.partition.place(self.uplinks[host]);
        Some(self.shards[part.index()].qjump(port)?.limiter())
    }

    /// The levels that the applications of a host have chosen, if they do.
    pub fn automatic_levels(&self, host: HostId) -> Option<&AutomaticLevels> {
        let (part, port) = self.partition.place(self.uplinks[host]);
        self.shards[part.index()].qjump(port)?.automatic_levels()
    }

    /// The longest time in which packets of a host waited for a destination and none was sent to
    /// it, if hosts have gates that tell.
    pub fn longest_wait(&self, host: HostId) -> Option<Time> {
        let (part, port) = self.partition.place(self.uplinks[host]);
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
        self.world.workload.flows.ids().map(|flow| self.flow(flow))
    }

    /// A flow of the workload, by its number, with what became of it.
    pub fn flow(&self, number: FlowId) -> (&FlowSpec, FlowOutcome) {
        let spec = &self.world.workload.flows[number];
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
        let flows = &self.world.workload.flows;
        // Lanes have drops too.
        drops.filter_map(|(flow, reason, count)| Some((flows.get(flow)?, reason, count)))
    }

    /// Number of a flow's data packets that gates of its host dropped, by reason, in no order.
    pub fn refusals(&self) -> impl Iterator<Item = (&FlowSpec, Refusal, u32)> {
        let refusals = self.shards.iter().flat_map(Shard::refusals);
        let flows = &self.world.workload.flows;
        let of_flow = |(flow, refusal, count)| Some((flows.get(flow)?, refusal, count));
        refusals.filter_map(of_flow)
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
            let host = self.world.workload.flows[flow].dst;
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
    pub fn datagrams(&self, flow: FlowId) -> Option<DatagramStats> {
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
