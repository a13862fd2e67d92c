//! RoCE with DCQCN and TIMELY: exact times, the NIC that connections share, pauses, losses, and the
//! same results on any number of threads.

use shallows_core::port::pause::{PauseConfig, PauseScope};
use shallows_core::port::{BufferConfig, PerIndex, PortConfig};
use shallows_core::units::{Bytes, Time};
use shallows_model::workload::FlowSpec;
use shallows_model::{FlowId, HostId, LinkId, TransportOverride};
use shallows_sim::{FlowOutcome, PauseStats};

use crate::world::{LEAF_SPINE, World, flow};

/// 1500 B at 10 Gbps.
const DATA: Time = Time::from_ns(1200);
/// There and back over four links, as of TCP: 4 x 1.2 + 40.8 + 4 x 0.032 + 40.8 us.
const ACROSS: Time = Time::from_ps(86_528_000);
/// There and back over two links.
const WITHIN: Time = Time::from_ps(83_264_000);

fn dcqcn() -> String {
    transport("dcqcn")
}

fn transport(controller: &str) -> String {
    format!("controller = '{controller}'\nrto = {{ initial = '5ms', minimum = '5ms' }}")
}

fn star(hosts: u32) -> String {
    format!("star = {{ hosts = {hosts}, rate = '10Gbps', delay = '1us' }}")
}

/// Marks from 5 KB on, all above 20 KB.
fn marking(buffer: &str) -> PortConfig {
    let text = format!(
        "buffer = {{ shared = {{ size = '{buffer}' }} }}\nscheduler = 'fifo'
marker = {{ scheme = {{ red = {{ min = '5KB', max = '20KB', max-probability = 0.1 }} }} }}"
    );
    toml::from_str(&text).expect("the test's port is sound")
}

#[test]
fn an_idle_fabric_is_filled_from_the_first_packet_on() {
    for controller in ["dcqcn", "timely"] {
        for packets in [1, 2, 500] {
            let flows = vec![flow(Time::from_us(7), 0, 143, packets)];
            let world = World::new(LEAF_SPINE, &transport(controller), flows);
            let last = ACROSS + DATA * (packets - 1);
            assert_eq!(world.fcts(), [Some(last)], "{controller}, {packets}");
        }
    }
}

#[test]
fn connections_of_a_host_take_turns_at_its_nic() {
    let flows = vec![flow(Time::ZERO, 0, 11, 10), flow(Time::ZERO, 0, 10, 10)];
    let world = World::new(LEAF_SPINE, &dcqcn(), flows);
    // The first sends the packets 0, 2, ..., 18 of the NIC, the second 1, 3, ..., 19.
    let fcts = [18, 19].map(|packets| Some(WITHIN + DATA * packets));
    assert_eq!(world.fcts(), fcts);
}

/// Host 0 has ten times the rate of host 1.
const SLOW_RECEIVER: &str = r#"
    [custom]
    hosts = 2
    switches = 1
    links = [
        { between = ["h0", "s0"], rate = "10Gbps", delay = "1us" },
        { between = ["h1", "s0"], rate = "1Gbps", delay = "1us" },
    ]
"#;

#[test]
fn a_paused_nic_holds_one_packet_of_a_connection() {
    let transport = "controller = 'dcqcn'\nrto = { initial = '1s', minimum = '1s' }";
    let mut world = World::new(SLOW_RECEIVER, transport, vec![flow(Time::ZERO, 0, 1, 40)]);
    world.pause = Some(PauseConfig {
        high: Bytes::new(4500),
        low: Bytes::new(1500),
        per: PauseScope::Link,
    });
    let mut run = world.start();
    // The pause of `pauses.rs`: it stops the host at 8.0368 us, while it sends packet 6.
    run.until(Time::from_us(60));
    assert_eq!(run.pauses(LinkId(0)).pauses, 1);
    assert_eq!(
        run.port(LinkId(0)).packets(),
        1,
        "the connection waits for the NIC"
    );
    run.finish();
    let (_, outcome) = run.flow(FlowId(0));
    assert_eq!((outcome.sent, outcome.retransmits), (40, 0));
    // The slow link is never idle: 1.2 + 1 us to the switch, 40 x 12 us, 1 us; the ACK takes
    // 0.32 + 1 + 0.032 + 1 us.
    assert_eq!(
        outcome.fct,
        Some(Time::from_ns(2_200 + 480_000 + 1_000 + 2_352))
    );
}

#[test]
fn a_full_buffer_sends_the_sender_back() {
    for controller in ["dcqcn", "timely"] {
        let flows = (1..6).map(|src| flow(Time::ZERO, src, 0, 200)).collect();
        let mut world = World::new(&star(6), &transport(controller), flows);
        world.switches = PortConfig::fifo(BufferConfig::Shared {
            size: "30KB".parse().expect("it is a size"),
        });
        let run = world.run();
        let flows: Vec<FlowOutcome> = run.flows().map(|(_, outcome)| outcome).collect();
        assert!(flows.iter().any(|flow| flow.drops > 0), "{controller}");
        assert!(flows.iter().any(|flow| flow.retransmits > flow.drops));
    }
}

#[test]
fn marks_keep_the_queue_short_and_share_the_link() {
    let flows: Vec<_> = (1..3).map(|src| flow(Time::ZERO, src, 0, 4_000)).collect();
    let mut world = World::new(&star(3), &dcqcn(), flows);
    world.switches = marking("1MB");
    let mut run = world.start();
    run.until(Time::from_ms(3));
    let alpha = run.sender(FlowId(1)).and_then(|sender| sender.alpha);
    assert!(alpha.is_some_and(|alpha| alpha < 1.0), "{alpha:?}");
    run.finish();
    let flows: Vec<FlowOutcome> = run.flows().map(|(_, outcome)| outcome).collect();
    assert!(flows.iter().all(|flow| flow.marks > 0 && flow.drops == 0));
    // 12 MB at 10 Gbps take 9.6 ms.
    let last = flows.iter().filter_map(|flow| flow.fct).max();
    assert!(last < Some(Time::from_ms(15)), "{last:?}");
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let outcomes = |controller: &str, threads| {
        let far = |src| flow(Time::ZERO, src, (src + 31) % 144, 200);
        let near = |src| flow(Time::from_us(20), src, src / 12 * 12 + (src + 5) % 12, 50);
        let flows = (0..144).map(far).chain((0..144).map(near)).collect();
        let mut world = World::new(LEAF_SPINE, &transport(controller), flows);
        world.switches = marking("100KB");
        // Every third host speaks TCP.
        world.overrides = vec![TransportOverride {
            services: Vec::new(),
            hosts: (0..144).step_by(3).map(HostId).collect(),
            transport: toml::from_str("controller = 'dctcp'").expect("it is a transport"),
        }];
        world.threads = threads;
        let run = world.run();
        run.flows().map(|(_, outcome)| outcome).collect::<Vec<_>>()
    };
    for controller in ["dcqcn", "timely"] {
        let alone = outcomes(controller, 1);
        assert!(alone.iter().any(|flow| flow.marks > 0));
        for threads in [2, 4] {
            assert_eq!(
                outcomes(controller, threads),
                alone,
                "{controller}, {threads}"
            );
        }
    }
}

/// Hosts of other racks write to two hosts at once, and pauses go from leaf to spine to leaf to host.
/// Where hosts have long cables they are shards of their own, and so pauses leave the switches'.
#[test]
fn pauses_cross_shards() {
    let short = LEAF_SPINE.replace("20.2us", "0.3us");
    for (topology, per) in [
        (LEAF_SPINE, PauseScope::Link),
        (&short, PauseScope::Link),
        (&short, PauseScope::Queue),
    ] {
        let outcome = |threads| {
            let to = |src| if src % 2 == 0 { 0 } else { 17 };
            let service = |src| (src / 2 % 2) as u16;
            let flows = (20..80).map(|src| FlowSpec {
                service: service(src),
                ..flow(Time::from_ns(u64::from(src) * 70), src, to(src), 100)
            });
            let mut world = World::new(topology, &dcqcn(), flows.collect());
            let port = "queues = 2\nbuffer = { shared = { size = '2MB' } }\n\
                scheduler = { dwrr = { quantum = '1.5KB' } }\n\
                marker = { scheme = { per-queue = { threshold = '100KB' } } }";
            world.switches = toml::from_str(port).expect("it is a port");
            world.hosts = world.switches.clone();
            world.host_delay = PerIndex::All(Time::from_us(3));
            world.pause = Some(PauseConfig {
                high: Bytes::new(20_000),
                low: Bytes::new(8_000),
                per,
            });
            world.threads = threads;
            let mut run = world.start();
            assert_eq!(run.threads(), threads as usize);
            // In the middle of pauses, and at the end.
            run.until(Time::from_us(400));
            let half: Vec<PauseStats> = run.fabric.links().ids().map(|l| run.pauses(l)).collect();
            run.finish();
            let all: Vec<PauseStats> = run.fabric.links().ids().map(|l| run.pauses(l)).collect();
            let flows: Vec<FlowOutcome> = run.flows().map(|(_, outcome)| outcome).collect();
            (flows, half, all)
        };
        let alone = outcome(1);
        let paused = |link: &PauseStats| link.pauses > 0;
        assert!(alone.1.iter().filter(|link| paused(link)).count() > 60);
        for threads in [2, 4] {
            assert_eq!(outcome(threads), alone, "{threads} threads, {per:?}");
        }
    }
}
