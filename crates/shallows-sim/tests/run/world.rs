//! What the tests of whole runs share.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use shallows_core::port::pause::PauseConfig;
use shallows_core::port::{BufferConfig, PerIndex, PortConfig};
use shallows_core::tcp::TcpConfig;
use shallows_core::units::Time;
use shallows_model::routing::{Router, RoutingConfig};
use shallows_model::topology::{Fabric, TopologyConfig};
use shallows_model::workload::{FlowSpec, Stop, Workload};
use shallows_model::{
    ApplicationEntry, Completion, Connections, Fault, HostId, HostSetup, LinkChange, LinkId, Model,
    PortSetup, TransportOverride,
};
use shallows_sim::{Control, EngineChoice, Settings, SetupError, Simulation, Status, Watch};

use crate::conservation;

/// The fabric of MQ-ECN §5.2, with the delays of the authors' simulation.
pub(crate) const LEAF_SPINE: &str = r#"leaf-spine = { leaves = 12, hosts-per-leaf = 12, spines = 12, host-rate = "10Gbps", host-delay = "20.2us", fabric-rate = "10Gbps", fabric-delay = "0.2us" }"#;

/// What a test chooses.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) topology: TopologyConfig,
    pub(crate) routing: RoutingConfig,
    pub(crate) switches: PortConfig,
    pub(crate) hosts: PortConfig,
    pub(crate) transport: TcpConfig,
    pub(crate) overrides: Vec<TransportOverride>,
    pub(crate) setup: HostSetup,
    pub(crate) applications: Vec<ApplicationEntry>,
    pub(crate) workload: Workload,
    pub(crate) completion: Completion,
    pub(crate) connections: Connections,
    pub(crate) faults: BTreeMap<LinkId, Fault>,
    pub(crate) changes: Vec<LinkChange>,
    pub(crate) watch: Watch,
    /// More than one demand the event queue, unless the engine is given.
    pub(crate) threads: u32,
    pub(crate) engine: EngineChoice,
    pub(crate) host_delay: PerIndex<Time>,
    pub(crate) pause: Option<PauseConfig>,
}

impl World {
    /// Unlimited FIFOs without marking.
    pub(crate) fn new(topology: &str, transport: &str, flows: Vec<FlowSpec>) -> Self {
        let plain = PortConfig::fifo(BufferConfig::Unlimited);
        Self {
            topology: toml::from_str(topology).expect("the test's topology is sound"),
            routing: RoutingConfig::DestinationModulo,
            switches: plain.clone(),
            hosts: plain,
            transport: toml::from_str(transport).expect("the test's transport is sound"),
            overrides: Vec::new(),
            setup: HostSetup::default(),
            applications: Vec::new(),
            workload: Workload {
                flows: flows.into(),
                ..Workload::default()
            },
            completion: Completion::Sender,
            connections: Connections::PerFlow,
            faults: BTreeMap::new(),
            changes: Vec::new(),
            watch: Watch::default(),
            threads: 1,
            engine: EngineChoice::Automatic,
            host_delay: PerIndex::All(Time::ZERO),
            pause: None,
        }
    }

    /// Stops every flow at this time.
    pub(crate) fn stopping(mut self, at: Time) -> Self {
        let flows = self.workload.flows.ids();
        self.workload.stops = flows.map(|flow| Stop { flow, at }).collect();
        self
    }

    pub(crate) fn start(self) -> Run {
        self.start_with(Control::default())
    }

    /// A world with control agents.
    pub(crate) fn start_with(self, control: Control) -> Run {
        self.try_start(control).expect("the test's world is sound")
    }

    /// The reason why it cannot run.
    pub(crate) fn refusal(self) -> String {
        let refusal = self.try_start(Control::default()).err();
        refusal.expect("it must not run").to_string()
    }

    /// The same, or why it cannot run.
    pub(crate) fn try_start(self, control: Control) -> Result<Run, SetupError> {
        let transport = self.transport.clone();
        let (model, settings) = self.setup(control);
        let fabric = model.fabric.clone();
        Ok(Run {
            simulation: Simulation::new(model, settings)?,
            fabric,
            transport,
        })
    }

    /// What the simulation is made of.
    pub(crate) fn setup(self, control: Control) -> (Model, Settings) {
        let fabric = self.topology.build().expect("the test's fabric is sound");
        let router = Router::new(&fabric, &self.routing, 1).expect("the test's routing is sound");
        let ports = PortSetup {
            switches: self.switches,
            hosts: self.hosts,
            special: BTreeMap::new(),
            pool: None,
            pause: self.pause,
            host_delay: self.host_delay,
        };
        let control = match &self.setup.xco {
            Some(xco) => {
                Control::xco(xco, &fabric, &router, &ports).expect("the test's XCo is sound")
            }
            None => control,
        };
        let applications = self.applications.iter();
        let applications = applications.map(|entry| entry.build(&fabric));
        let model = Model {
            applications: applications
                .collect::<Result<_, _>>()
                .expect("the test's applications are sound"),
            router,
            fabric,
            ports,
            transport: self.transport,
            overrides: self.overrides,
            hosts: self.setup,
            connections: self.connections,
            workload: Arc::new(self.workload),
            completion: self.completion,
            faults: self.faults,
            changes: self.changes,
            seed: 1,
            until: None,
        };
        let settings = Settings {
            control,
            watch: self.watch,
            threads: self.threads,
            engine: match self.engine {
                EngineChoice::Automatic if self.threads > 1 => EngineChoice::Events,
                engine => engine,
            },
        };
        (model, settings)
    }

    /// Runs until nothing can happen any more.
    pub(crate) fn run(self) -> Run {
        let mut run = self.start();
        run.finish();
        run
    }

    /// Completion times of a run, in the order of the flows.
    pub(crate) fn fcts(self) -> Vec<Option<Time>> {
        self.run().flows().map(|(_, outcome)| outcome.fct).collect()
    }
}

/// A world under way. Every test leads its runs to the [`finish`](Run::finish), where packets and
/// bytes are balanced.
pub(crate) struct Run {
    simulation: Simulation,
    pub(crate) fabric: Fabric,
    pub(crate) transport: TcpConfig,
}

impl Run {
    /// Runs up to `end`.
    pub(crate) fn until(&mut self, end: Time) {
        while self.simulation.run(end, 1_000_000) == Status::Running {}
    }

    /// Runs until nothing can happen any more on links that lose packets, which no port counts.
    pub(crate) fn finish_lossy(&mut self) {
        self.until(Time::MAX);
    }

    /// Runs until nothing can happen any more, and checks that every flow is complete and that
    /// nothing was lost but what was dropped.
    pub(crate) fn finish(&mut self) {
        let mut rounds = 0;
        while self.simulation.run(Time::MAX, 1_000_000) == Status::Running {
            rounds += 1;
            assert!(rounds < 1_000, "no end in sight");
        }
        conservation::check(self);
    }
}

impl Deref for Run {
    type Target = Simulation;

    fn deref(&self) -> &Simulation {
        &self.simulation
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut Simulation {
        &mut self.simulation
    }
}

/// A flow of `packets` full segments of 1460 B.
pub(crate) fn flow(start: Time, src: u32, dst: u32, packets: u64) -> FlowSpec {
    FlowSpec {
        start,
        src: HostId(src),
        dst: HostId(dst),
        bytes: 1460 * packets,
        service: 0,
    }
}

/// A flow that lasts until it is [stopped](World::stopping).
pub(crate) fn endless(src: u32, dst: u32) -> FlowSpec {
    FlowSpec {
        bytes: FlowSpec::ENDLESS,
        ..flow(Time::ZERO, src, dst, 0)
    }
}
