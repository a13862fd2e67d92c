//! What holds in every run, whatever the fabric, the ports and the transport.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::RngSeed;
use shallows_core::port::PortConfig;
use shallows_core::units::{Bytes, Time};
use shallows_model::routing::RoutingConfig;
use shallows_model::workload::FlowSpec;
use shallows_model::{Completion, HostId};
use shallows_sim::{Control, EngineChoice, FlowOutcome, Watch};

use crate::world::World;

/// Rate and delay of a link, as a topology writes them.
fn cable(prefix: &'static str) -> impl Strategy<Value = String> {
    let rate = select(vec!["1Gbps", "10Gbps", "25Gbps", "100Gbps"]);
    (rate, 0..20_000u32).prop_map(move |(rate, delay)| {
        format!("{prefix}rate = \"{rate}\", {prefix}delay = \"{delay}ns\"")
    })
}

fn topology() -> impl Strategy<Value = String> {
    let star = (2..8u32, cable(""))
        .prop_map(|(hosts, cable)| format!("star = {{ hosts = {hosts}, {cable} }}"));
    let dumbbell =
        (1..4u32, 1..4u32, cable(""), cable("uplink-")).prop_map(|(left, right, cable, uplink)| {
            format!("dumbbell = {{ left = {left}, right = {right}, {cable}, {uplink} }}")
        });
    let hosts = prop::collection::vec(1..3u32, 2..5);
    let chain = (hosts, cable(""), cable("uplink-")).prop_map(|(hosts, cable, uplink)| {
        format!("chain = {{ hosts = {hosts:?}, {cable}, {uplink} }}")
    });
    let leaf_spine = (1..4u32, 2..4u32, 1..4u32, cable("host-"), cable("fabric-")).prop_map(
        |(leaves, hosts, spines, host, fabric)| {
            format!(
                "leaf-spine = {{ leaves = {leaves}, hosts-per-leaf = {hosts}, spines = {spines}, {host}, {fabric} }}"
            )
        },
    );
    let fat_tree = (3..5u32, 1..3u32, 1..3u32, cable("host-"), cable("fabric-")).prop_map(
        |(tiers, half, over, host, fabric)| {
            format!(
                "fat-tree = {{ tiers = {tiers}, radix = {}, oversubscription = {over}, {host}, {fabric} }}",
                2 * half
            )
        },
    );
    prop_oneof![star, dumbbell, chain, leaf_spine, fat_tree, custom()]
}

/// Switches in a random tree with a few links more, each with a host or two.
fn custom() -> impl Strategy<Value = String> {
    let switch = (any::<Index>(), cable(""), cable(""), cable(""));
    let extra = (any::<Index>(), any::<Index>(), cable(""));
    (
        prop::collection::vec(switch, 1..6),
        prop::collection::vec(extra, 0..4),
    )
        .prop_map(|(switches, extras)| {
            let count = switches.len();
            let mut links = BTreeMap::new();
            for (number, (parent, uplink, one, two)) in switches.iter().enumerate() {
                let switch = format!("s{number}");
                links.insert((format!("h{}", 2 * number), switch.clone()), one);
                links.insert((format!("h{}", 2 * number + 1), switch.clone()), two);
                if number > 0 {
                    links.insert((format!("s{}", parent.index(number)), switch), uplink);
                }
            }
            for (a, b, cable) in &extras {
                let (a, b) = (a.index(count), b.index(count));
                if a != b {
                    let ends = (format!("s{}", a.min(b)), format!("s{}", a.max(b)));
                    links.insert(ends, cable);
                }
            }
            let links: Vec<_> = links
                .iter()
                .map(|((a, b), cable)| format!("{{ between = [\"{a}\", \"{b}\"], {cable} }}"))
                .collect();
            format!(
                "custom = {{ hosts = {}, switches = {count}, links = [{}] }}",
                2 * count,
                links.join(", ")
            )
        })
}

fn routing() -> impl Strategy<Value = RoutingConfig> {
    select(vec![
        RoutingConfig::Ecmp,
        RoutingConfig::Spray,
        RoutingConfig::DestinationModulo,
    ])
}

/// Schedulers without rounds and with them, which MQ-ECN needs.
const PLAIN_SCHEDULERS: [&str; 3] = [
    "queues = 1\nscheduler = \"fifo\"",
    "queues = 4\nscheduler = \"strict\"",
    "queues = 1\nscheduler = \"pfabric\"",
];
const SHARING_SCHEDULERS: [&str; 5] = [
    "queues = 4\nscheduler = { dwrr = { quantum = \"1500B\" } }",
    "queues = 3\nscheduler = { dwrr = { quantum = [\"700B\", \"1500B\", \"4KB\"] } }",
    "queues = 4\nscheduler = { wrr = { quantum = \"3KB\" } }",
    "queues = 2\nscheduler = { wfq = { weight = [1, 3] } }",
    "queues = 4\nscheduler = { strict-over = { strict = 1, rest = \"dwrr\", quantum = \"1500B\" } }",
];
const BUFFERS: [&str; 4] = [
    "buffer = \"unlimited\"",
    "buffer = { shared = { size = \"30KB\" } }",
    "buffer = { shared = { size = \"4pkts\" } }",
    "buffer = { per-queue = { limit = \"9KB\" } }",
];
const MARKERS: [&str; 13] = [
    "\"none\"",
    "{ per-queue = { threshold = \"10KB\" } }",
    "{ per-queue-minimum = { threshold = \"20KB\" } }",
    "{ per-port = { threshold = \"1pkt\" } }",
    "{ per-pool = { threshold = \"20KB\" } }",
    "{ ecn-star = { threshold = \"5pkts\" } }",
    "{ red = { min = \"3KB\", max = \"9KB\", max-probability = 0.5, gentle = true, average = { ewma = 0.25 } } }",
    "{ tcn = { sojourn = \"10us\" } }",
    "{ pmsb = { port = \"6pkts\", queue = \"2pkts\" } }",
    "{ cedm = { enqueue = \"6pkts\", dequeue = \"3pkts\", rule = \"either\" } }",
    "{ a-ecn = { threshold = \"10pkts\", interval = 20, step = \"1pkt\" } }",
    "{ mm-ecn = { threshold = \"10pkts\", random = 0.25 } }",
    "{ demepro = { threshold = \"10pkts\" } }",
];
const SHARING_MARKERS: [&str; 3] = [
    "{ mq-ecn = { threshold = \"10pkts\" } }",
    "{ mq-ecn = { threshold = \"10pkts\", update = { interval = \"7.2us\" } } }",
    "{ mq-ecn = { threshold = \"10pkts\", ramp = { k-min = \"2pkts\", p-max = 0.1 } } }",
];

fn port() -> impl Strategy<Value = PortConfig> {
    let plain = (select(PLAIN_SCHEDULERS.to_vec()), select(MARKERS.to_vec()));
    let sharing = [MARKERS.as_slice(), SHARING_MARKERS.as_slice()].concat();
    let sharing = (select(SHARING_SCHEDULERS.to_vec()), select(sharing));
    let details = (
        select(BUFFERS.to_vec()),
        select(vec!["enqueue", "dequeue"]),
        select(vec!["pass", "drop"]),
    );
    (prop_oneof![plain, sharing], details).prop_map(
        |((scheduler, marker), (buffer, point, not_ect))| {
            let text = format!(
                "{scheduler}\n{buffer}\nmarker = {{ scheme = {marker}, point = \"{point}\", not-ect = \"{not_ect}\" }}"
            );
            toml::from_str(&text).unwrap_or_else(|error| panic!("{text}\n{error}"))
        },
    )
}

const CONTROLLERS: [&str; 9] = [
    "\"dctcp\"",
    "{ dctcp = { g = 1.0, initial-alpha = 0.0 } }",
    "\"reno\"",
    "\"cubic\"",
    "\"ecn-star\"",
    "\"delay-dctcp\"",
    "{ ear = { t = \"20us\" } }",
    "\"dx\"",
    "\"pfabric\"",
];

fn transport() -> impl Strategy<Value = String> {
    (
        select(CONTROLLERS.to_vec()),
        select(vec!["sack", "new-reno", "full-tcp"]),
        select(vec!["never", "in-bursts"]),
        select(vec![
            "",
            "delayed-ack = { every = 2, timeout = \"500us\" }",
            "delayed-ack = { every = 4, timeout = \"1ms\" }",
        ]),
        1..20u32,
        [any::<bool>(), any::<bool>(), any::<bool>()],
    )
        .prop_map(
            |(controller, recovery, growth, delayed, initial, [handshake, ect_acks, limited])| {
                format!(
                    "controller = {controller}\nrecovery = \"{recovery}\"\nmarked-growth = \"{growth}\"\n\
                     initial-window = {initial}\nhandshake = {handshake}\nect-acks = {ect_acks}\n\
                     limited-transmit = {limited}\n{delayed}\n\
                     rto = {{ initial = \"5ms\", minimum = \"5ms\", maximum = \"1s\" }}"
                )
            },
        )
}

/// Start in microseconds, ends, bytes and service.
type Flow = (u64, Index, Index, u64, u16);

fn flows() -> impl Strategy<Value = Vec<Flow>> {
    let bytes = prop_oneof![1..3_000u64, 1..200_000u64];
    let flow = (0..300u64, any::<Index>(), any::<Index>(), bytes, 0..4u16);
    prop::collection::vec(flow, 1..30)
}

prop_compose! {
    fn world()(
        topology in topology(),
        routing in routing(),
        switches in port(),
        hosts in port(),
        transport in transport(),
        flows in flows(),
        at_receiver in any::<bool>(),
    ) -> World {
        let mut world = World::new(&topology, &transport, Vec::new());
        let count = world.topology.build().expect("the test's fabric is sound").hosts() as usize;
        world.workload.flows = flows
            .into_iter()
            .map(|(start, src, step, bytes, service)| {
                let src = src.index(count);
                FlowSpec {
                    start: Time::from_us(start),
                    src: HostId(src as u32),
                    dst: HostId(((src + 1 + step.index(count - 1)) % count) as u32),
                    bytes,
                    service,
                }
            })
            .collect();
        world.workload.flows.as_mut_slice().sort_by_key(|flow| flow.start);
        if at_receiver {
            world.completion = Completion::Receiver;
        }
        World { routing, switches, hosts, ..world }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(500)
    })]

    /// Every flow completes, whatever is lost, and the books balance. A flow takes longer than its
    /// bytes on its own link.
    #[test]
    fn every_flow_completes_and_nothing_is_left(world in world()) {
        let run = world.run();
        for (flow, outcome) in run.flows() {
            let uplink = run.fabric.link(run.fabric.uplink(flow.src));
            let least = uplink.propagation + uplink.rate.transmission_time(Bytes::new(flow.bytes));
            prop_assert!(outcome.fct.is_some_and(|fct| fct > least), "{flow:?}: {outcome:?}");
        }
    }

    /// The same world gives the same outcome, on any number of threads.
    #[test]
    fn runs_repeat(world in world()) {
        let outcomes = |world: World| -> Vec<FlowOutcome> {
            world.run().flows().map(|(_, outcome)| outcome).collect()
        };
        let alone = outcomes(world.clone());
        prop_assert_eq!(&outcomes(world.clone()), &alone);
        for threads in [2, 4] {
            let together = outcomes(World { threads, ..world.clone() });
            prop_assert_eq!(&together, &alone, "with {} threads", threads);
        }
        // Layers where they fit, and the event queue everywhere.
        let events = World { engine: EngineChoice::Events, ..world.clone() };
        prop_assert_eq!(&outcomes(events), &alone, "by events");
        for threads in [1, 2, 4] {
            let layers = World { engine: EngineChoice::Layers, threads, ..world.clone() };
            if let Ok(mut run) = layers.try_start(Control::default()) {
                run.finish();
                let outcomes: Vec<_> = run.flows().map(|(_, outcome)| outcome).collect();
                prop_assert_eq!(&outcomes, &alone, "in layers on {} threads", threads);
            }
        }
        // Who watches keeps all events in order, where otherwise those of a port are.
        let watch = Watch { rtt: true, ..Watch::default() };
        prop_assert_eq!(&outcomes(World { watch, ..world }), &alone, "watched");
    }
}
