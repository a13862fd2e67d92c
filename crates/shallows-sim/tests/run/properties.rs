//! What holds in every run.

use proptest::prelude::*;
use shallows_core::port::PortConfig;
use shallows_core::units::Time;
use shallows_sim::FlowOutcome;
use shallows_sim::workload::FlowSpec;

use crate::world::World;

const TOPOLOGIES: [&str; 4] = [
    r#"star = { hosts = 6, rate = "10Gbps", delay = "1us" }"#,
    r#"leaf-spine = { leaves = 3, hosts-per-leaf = 2, spines = 2, host-rate = "10Gbps", host-delay = "2us", fabric-rate = "25Gbps", fabric-delay = "200ns" }"#,
    r#"dumbbell = { left = 3, right = 3, rate = "10Gbps", delay = "1us", uplink-rate = "1Gbps", uplink-delay = "5us" }"#,
    r#"fat-tree = { tiers = 3, radix = 4, host-rate = "10Gbps", host-delay = "1us", fabric-rate = "10Gbps", fabric-delay = "1us" }"#,
];

const PORTS: [&str; 4] = [
    "buffer = { shared = { size = \"30KB\" } }\nscheduler = \"fifo\"\nmarker = { scheme = { per-queue = { threshold = \"10KB\" } } }",
    "queues = 4\nbuffer = { shared = { size = \"30KB\" } }\nscheduler = { dwrr = { quantum = \"1500B\" } }\nmarker = { scheme = { mq-ecn = { threshold = \"15KB\" } } }",
    "queues = 4\nbuffer = { per-queue = { limit = \"9KB\" } }\nscheduler = \"strict\"\nmarker = { scheme = { tcn = { sojourn = \"10us\" } } }",
    "buffer = { shared = { size = \"6KB\" } }\nscheduler = \"pfabric\"",
];

const TRANSPORTS: [&str; 5] = [
    "controller = { dctcp = {} }",
    "controller = \"reno\"\nrecovery = \"new-reno\"",
    "controller = \"cubic\"\ndelayed-ack = { every = 2, timeout = \"500us\" }\nhandshake = true",
    "controller = \"ecn-star\"\nect-acks = true",
    "controller = { ear = {} }",
];

fn flows() -> impl Strategy<Value = Vec<FlowSpec>> {
    let flow = (0..300u64, 0..6u32, 1..6u32, 1..200_000u64, 0..4u16);
    let flow = flow.prop_map(|(start, src, step, bytes, service)| FlowSpec {
        start: Time::from_us(start),
        src,
        dst: (src + step) % 6,
        bytes,
        service,
    });
    prop::collection::vec(flow, 1..30).prop_map(|mut flows| {
        flows.sort_by_key(|flow| flow.start);
        flows
    })
}

fn world(topology: &str, port: &str, transport: &str, flows: Vec<FlowSpec>) -> World {
    let port: PortConfig = toml::from_str(port).expect("the test's port is sound");
    World {
        switches: port.clone(),
        hosts: port,
        ..World::new(topology, transport, flows)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every flow completes, whatever is lost; nothing is left in a port; every packet that was
    /// accepted by a port has left it.
    #[test]
    fn every_flow_completes_and_nothing_is_left(
        topology in prop::sample::select(TOPOLOGIES.as_slice()),
        port in prop::sample::select(PORTS.as_slice()),
        transport in prop::sample::select(TRANSPORTS.as_slice()),
        flows in flows(),
    ) {
        world(topology, port, transport, flows).run();
    }

    /// The same world gives the same outcome.
    #[test]
    fn runs_repeat(
        topology in prop::sample::select(TOPOLOGIES.as_slice()),
        port in prop::sample::select(PORTS.as_slice()),
        transport in prop::sample::select(TRANSPORTS.as_slice()),
        flows in flows(),
    ) {
        let world = world(topology, port, transport, flows);
        let outcomes = |world: World| -> Vec<FlowOutcome> {
            world.run().flows().map(|(_, outcome)| *outcome).collect()
        };
        prop_assert_eq!(outcomes(world.clone()), outcomes(world));
    }
}
