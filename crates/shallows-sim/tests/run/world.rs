//! What the tests of whole runs share.

use shallows_core::port::{BufferConfig, PortConfig};
use shallows_core::tcp::TcpConfig;
use shallows_core::units::Time;
use shallows_sim::routing::{Router, RoutingConfig};
use shallows_sim::topology::TopologyConfig;
use shallows_sim::workload::{FlowSpec, Workload};
use shallows_sim::{Completion, Connections, PortSetup, Setup, Simulation, Status};

/// The fabric of MQ-ECN §5.2, with the delays of the authors' simulation.
pub(crate) const LEAF_SPINE: &str = r#"leaf-spine = { leaves = 12, hosts-per-leaf = 12, spines = 12, host-rate = "10Gbps", host-delay = "20.2us", fabric-rate = "10Gbps", fabric-delay = "0.2us" }"#;

/// What a test chooses.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) topology: TopologyConfig,
    pub(crate) switches: PortConfig,
    pub(crate) hosts: PortConfig,
    pub(crate) transport: TcpConfig,
    pub(crate) workload: Workload,
    pub(crate) completion: Completion,
    pub(crate) connections: Connections,
    pub(crate) threads: u32,
}

impl World {
    /// Unlimited FIFOs without marking.
    pub(crate) fn new(topology: &str, transport: &str, flows: Vec<FlowSpec>) -> Self {
        let plain = PortConfig::fifo(BufferConfig::Unlimited);
        Self {
            topology: toml::from_str(topology).expect("the test's topology is sound"),
            switches: plain.clone(),
            hosts: plain,
            transport: toml::from_str(transport).expect("the test's transport is sound"),
            workload: Workload {
                flows,
                ..Workload::default()
            },
            completion: Completion::Sender,
            connections: Connections::PerFlow,
            threads: 1,
        }
    }

    pub(crate) fn start(self) -> Simulation {
        let fabric = self.topology.build().expect("the test's fabric is sound");
        let router = Router::new(&fabric, &RoutingConfig::DestinationModulo, 1);
        Simulation::new(Setup {
            router: router.expect("the test's routing is sound"),
            fabric,
            ports: PortSetup {
                switches: self.switches,
                hosts: self.hosts,
                pool: None,
                host_delay: Time::ZERO,
            },
            transport: self.transport,
            connections: self.connections,
            workload: self.workload,
            completion: self.completion,
            seed: 1,
            threads: self.threads,
        })
        .expect("the test's world is sound")
    }

    /// Runs until nothing can happen any more.
    pub(crate) fn run(self) -> Simulation {
        let mut simulation = self.start();
        while simulation.run(Time::MAX, 100_000) == Status::Running {}
        simulation
    }

    /// Completion times of a run, in the order of the flows.
    pub(crate) fn fcts(self) -> Vec<Option<Time>> {
        self.run().flows().map(|(_, outcome)| outcome.fct).collect()
    }
}

/// A flow of `packets` full segments of 1460 B.
pub(crate) fn flow(start: Time, src: u32, dst: u32, packets: u64) -> FlowSpec {
    FlowSpec {
        start,
        src,
        dst,
        bytes: 1460 * packets,
        service: 0,
    }
}
