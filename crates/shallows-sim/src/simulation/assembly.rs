//! From a model to the shards of a run.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use shallows_core::host::stack::HostStack;
use shallows_model::{Barriers, FlowId, HostId, IdVec, LinkId, Model};

use super::{FlowOutcome, Settings, SetupError, Simulation, local_paths};
use crate::broadcast::Trees;
use crate::execution::{self, Traffic};
use crate::ids::{PortId, ShardId};
use crate::interrupt::Interrupt;
use crate::layers::{self, PartPlan};
use crate::network::Network;
use crate::parallel::Crew;
use crate::partition::Partition;
use crate::paths::Paths;
use crate::setup::{Setup, places, take_hosts};
use crate::shard::{Homes, Hosts, Pauses, Routing, Shard, ShardSetup, World};
use crate::ticket::Ticket;
use crate::topology::Node;
use crate::watch::{Watched, watched_links};

impl Simulation {
    /// A run at time zero.
    pub fn new(model: Model, settings: Settings) -> Result<Self, SetupError> {
        Self::new_unless(model, settings, Interrupt::Never)
    }

    /// A run at time zero, unless it is interrupted before: many flows take a while.
    pub fn new_unless(
        model: Model,
        settings: Settings,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, SetupError> {
        let mut setup = Setup::new(model, settings);
        setup.check()?;
        setup.choose_levels();
        let names = setup.applications.iter().map(|of| of.name.clone());
        let names = names.collect();
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
        let partition = execution.partition;
        let watched = watched_links(&setup, &partition);
        let warm_ups = setup.warm_ups((&paths, &routes), interrupt)?;
        let kept_routes = if is_fixed {
            IdVec::new()
        } else {
            routes.clone()
        };
        let routing = Arc::new(Routing {
            router: setup.router.clone(),
            routes,
            trees,
        });
        let places = places(&setup.fabric, &partition);
        let world = Arc::new(setup.world(control, applications, warm_ups, places));
        let assembly = Assembly {
            setup: &setup,
            partition: &partition,
            watched,
            world: &world,
            routing: &routing,
            interrupt,
        };
        let shards = assembly.shards(hosts, &mut paths, execution.layers)?;
        let crew = Crew::new(&execution.ties, setup.engine).map_err(Arc::new)?;
        setup.changes.sort_by_key(|change| Reverse(change.at));
        Ok(Self {
            shards,
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
}

/// Parts that all shards are made of.
struct Assembly<'a> {
    setup: &'a Setup,
    partition: &'a Partition,
    watched: FxHashMap<LinkId, Watched>,
    world: &'a Arc<World>,
    routing: &'a Arc<Routing>,
    interrupt: Interrupt<'a>,
}

impl Assembly<'_> {
    /// All shards. Takes the paths where one has them all and they do not change.
    fn shards(
        &self,
        mut hosts: BTreeMap<HostId, HostStack<Ticket>>,
        paths: &mut Paths<LinkId>,
        layers: Vec<PartPlan>,
    ) -> Result<Vec<Shard>, SetupError> {
        let is_fixed = self.setup.changes.is_empty();
        let mut layers = layers.into_iter();
        let make = |part| {
            let hosts = take_hosts(part, &self.world.places, &mut hosts);
            let paths = match self.partition.parts() {
                1 if is_fixed => mem::take(paths).of_only_shard(),
                _ => local_paths(paths, self.partition, part),
            };
            self.shard(part, hosts, paths, layers.next())
        };
        self.partition.shards().map(make).collect()
    }

    /// The first NIC for each other NIC of the hosts of a part.
    fn homes(&self, part: ShardId) -> Homes {
        let fabric = &self.setup.fabric;
        let others = fabric.host_ids().flat_map(|host| {
            let first = fabric.uplink(host);
            fabric.nics(host).skip(1).map(move |nic| (nic.up, first))
        });
        let others = others.map(|(nic, first)| [nic, first].map(|link| self.partition.place(link)));
        let own = others.filter(|[(of, _), _]| *of == part);
        own.map(|[(_, nic), (_, first)]| (nic, first)).collect()
    }

    fn shard(
        &self,
        part: ShardId,
        hosts: Hosts,
        paths: Paths<PortId>,
        layers: Option<PartPlan>,
    ) -> Result<Shard, SetupError> {
        let (partition, workload) = (self.partition, &self.world.workload);
        let Setup {
            fabric,
            ports,
            watch,
            seed,
            ..
        } = self.setup;
        let pauses = Pauses::new(part, fabric, ports, partition)?;
        let is_watched = |link| pauses.is_some() || self.watched.contains_key(&link);
        let network = Network::new(part, partition, (fabric, ports, *seed), is_watched)?;
        let local = |flow: &FlowId| {
            let src = workload.flows[*flow].src;
            partition.part_of(Node::Host(src)) == part
        };
        let stops = workload.stops.iter().copied();
        let outcomes = workload.flows.iter().map(FlowOutcome::of);
        Ok(Shard::new(ShardSetup {
            outcomes: self.interrupt.collect(outcomes)?.into(),
            barriers: Barriers::new(&workload.barriers, self.interrupt)?,
            part,
            parts: partition.parts(),
            world: Arc::clone(self.world),
            network,
            hosts,
            homes: self.homes(part),
            routing: Arc::clone(self.routing),
            paths,
            watched: self.watched.clone(),
            keeps: (watch.rtt, watch.drops),
            pauses,
            layers,
            starting: workload.timed().filter(local).collect(),
            stops: stops.filter(|stop| local(&stop.flow)).collect(),
        }))
    }
}
