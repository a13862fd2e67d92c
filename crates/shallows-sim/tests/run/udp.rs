//! UDP: exact times, full links, fragments, and what they do to each other.

use shallows_core::port::{BufferConfig, PortConfig};
use shallows_core::tally::Tally;
use shallows_core::units::Time;
use shallows_model::topology::TopologyConfig;
use shallows_model::workload::{Workload, WorkloadConfig};
use shallows_model::{FlowId, HostId, LinkId};
use shallows_sim::{DatagramStats, Observation};

use crate::world::{Run, World, flow};

/// Two hosts, 10 us from each other with the switch half way.
const PAIR: &str = r#"star = { hosts = 2, rate = "1Gbps", delay = "5us" }"#;
/// A packet of 1250 B takes 10 us at 1 Gbps; 28 B are headers.
const PACKET: Time = Time::from_us(10);
/// The same packet at other rates.
const NIC_RATES: [(&str, Time); 3] = [
    ("100Mbps", Time::from_us(100)),
    ("1Gbps", PACKET),
    ("10Gbps", Time::from_us(1)),
];

/// The two hosts with links of another rate.
fn pair(rate: &str) -> String {
    PAIR.replace("1Gbps", rate)
}

pub(crate) fn workload(topology: &str, text: &str) -> Workload {
    let topology: TopologyConfig = toml::from_str(topology).unwrap();
    let config: WorkloadConfig = toml::from_str(text).unwrap();
    config.generate(&topology.build().unwrap(), 1).unwrap()
}

fn world(topology: &str, text: &str) -> World {
    let mut world = World::new(topology, "", Vec::new());
    world.workload = workload(topology, text);
    world
}

fn buffer(size: &str) -> PortConfig {
    PortConfig::fifo(BufferConfig::Shared {
        size: size.parse().unwrap(),
    })
}

/// Runs to the end and balances the books: what was sent has arrived or was dropped.
fn run(world: World) -> (Run, Vec<DatagramStats>) {
    let mut run = world.start();
    run.finish();
    let flows = (0..run.flows().count() as u32).map(FlowId);
    let stats: Vec<_> = flows.filter_map(|flow| run.datagrams(flow)).collect();
    let sent: Tally = stats.iter().map(|stats| stats.sent.datagrams).sum();
    let received: Tally = stats.iter().map(|stats| stats.received.datagrams).sum();
    if stats.len() == run.flows().count() {
        let links = run.fabric.links().ids();
        let dropped: Tally = links.map(|link| drops(&run, link)).sum();
        assert_eq!(sent, [received, dropped].into_iter().sum());
    }
    for ((_, outcome), stats) in run.flows().zip(&stats) {
        assert_eq!(outcome.delivered, stats.received.delivered.bytes);
        assert_eq!(u64::from(outcome.lost_messages), stats.lost_messages());
    }
    (run, stats)
}

pub(crate) fn drops(run: &Run, link: LinkId) -> Tally {
    let port = run.port(link);
    let queues = 0..port.queue_count();
    queues.map(|queue| port.counters(queue).all_drops()).sum()
}

/// When the last bit of each packet was on a link.
fn times(mut world: World, link: LinkId) -> Vec<Time> {
    world.watch.captured.insert(link);
    let (mut run, _) = run(world);
    let seen = run.take_observations();
    let packet = |observation: &Observation| match observation {
        Observation::Packet(packet) => Some(packet.time),
        _ => None,
    };
    seen.iter().filter_map(packet).collect()
}

#[test]
fn a_constant_rate_is_exact() {
    // 1222 B every 50 us.
    let text = "[udp]\nsrc = 0\ndst = 1\nstart = '7us'\nstop = '250us'
        stream = { send = { constant = { rate = '195.52Mbps', size = '1222B' } } }";
    let first = Time::from_us(7) + PACKET;
    let expected =
        |first: Time| -> Vec<Time> { (0..5).map(|n| first + Time::from_us(50) * n).collect() };
    assert_eq!(times(world(PAIR, text), LinkId(0)), expected(first));
    // One link and one packet time later on the way to the receiver.
    let second = first + Time::from_us(5) + PACKET;
    assert_eq!(times(world(PAIR, text), LinkId(3)), expected(second));
    let (run, stats) = run(world(PAIR, text));
    assert_eq!(
        stats[0].received.delivered,
        Tally {
            packets: 5,
            bytes: 6110
        }
    );
    let (_, outcome) = run.flows().next().unwrap();
    assert_eq!(outcome.fct, Some(Time::from_us(243)), "until it is stopped");
    assert_eq!((outcome.delivered, outcome.lost_messages), (6110, 0));
}

/// Whatever the send buffer and the queues of the NIC are.
#[test]
fn a_saturating_sender_fills_its_link_exactly() {
    let text = |buffer: &str| {
        format!(
            "[udp]\nsrc = 0\ndst = 1\nstop = '995us'
            stream = {{ send-buffer = '{buffer}', send = {{ saturating = {{ size = '1222B' }} }} }}"
        )
    };
    let two_queues: PortConfig =
        toml::from_str("queues = 2\nbuffer = 'unlimited'\nscheduler = 'strict'").unwrap();
    let nics = [
        PortConfig::fifo(BufferConfig::Unlimited),
        two_queues,
        buffer("12500B"),
    ];
    for nic in nics {
        for (size, packets) in [("1B", 100), ("208KiB", 270)] {
            let mut world = world(PAIR, &text(size));
            world.hosts = nic.clone();
            let times = times(world, LinkId(0));
            let back_to_back = (1..=times.len() as u64).map(|n| PACKET * n);
            assert!(times.iter().copied().eq(back_to_back), "{nic:?} {size}");
            if nic.buffer == BufferConfig::Unlimited {
                // The 171 that fit in the buffer, and one for each of 99 that left.
                assert_eq!(times.len(), packets, "{nic:?} {size}");
            }
        }
    }
}

/// Back to back, at an unlimited NIC and at one with room for two packets: what it drops counts as departed at its rate too, so the link is never idle.
#[test]
fn a_stream_without_end_is_held_to_the_rate_of_its_nic() {
    for (rate, packet) in NIC_RATES {
        let stop = packet * 100 - Time::from_ps(1);
        let text = format!(
            "[udp]\nsrc = 0\ndst = 1\nstop = '{}ps'\nstream.send = {{ saturating = {{ size = '1222B' }} }}",
            stop.ps()
        );
        for nic in [PortConfig::fifo(BufferConfig::Unlimited), buffer("2500B")] {
            let mut world = world(&pair(rate), &text);
            world.hosts = nic;
            let times = times(world, LinkId(0));
            let back_to_back = (1..=times.len() as u64).map(|n| packet * n);
            assert!(times.len() >= 100, "{rate}: {}", times.len());
            assert!(times.iter().copied().eq(back_to_back), "{rate}: {times:?}");
        }
    }
}

/// A gate lets no packet pass, and a send buffer of one packet is free again after the time that
/// the packet would have taken: 10 packets in 10 of these times.
#[test]
fn what_a_gate_drops_takes_its_time_at_the_rate_of_the_nic() {
    for (rate, packet) in NIC_RATES {
        let stop = packet * 10 - Time::from_ps(1);
        let text = format!(
            "[udp]\nsrc = 0\ndst = 1\nstop = '{}ps'
            stream = {{ send-buffer = '1B', send = {{ saturating = {{ size = '1222B' }} }} }}",
            stop.ps()
        );
        let mut world = world(&pair(rate), &text);
        let limits = "qjump = { epoch = '1ms', levels = ['1KB'] }";
        world.setup = toml::from_str(limits).unwrap();
        let run = world.run();
        let (_, outcome) = run.flows().next().unwrap();
        assert_eq!((outcome.delivered, outcome.drops), (0, 10), "{rate}");
    }
}

/// Two messages of two full packets meet where one can wait: the second packet of the second sender
/// finds no room, and its first has come for nothing.
#[test]
fn one_lost_fragment_loses_the_message() {
    let star = r#"star = { hosts = 3, rate = "1Gbps", delay = "5us" }"#;
    let text = "[udp]\nsrc = '0-1'\ndst = 2\nstop = '1us'
        stream = { send = { message = { size = '2952B', interval = '1s' } } }";
    let mut small = world(star, text);
    small.switches = buffer("1500B");
    let (run, stats) = run(small);
    let delivered: Vec<_> = stats.iter().map(|s| s.received.delivered.bytes).collect();
    assert_eq!(delivered, [2952, 0]);
    assert_eq!(stats[1].received.datagrams.packets, 1);
    let lost: Vec<_> = run
        .flows()
        .map(|(_, outcome)| outcome.lost_messages)
        .collect();
    assert_eq!(lost, [0, 1]);
}

/// XCo §2.2 and Fig. 1: the link to the receiver is always busy, and with every sender more of
/// what it carries is of no use. Messages differ a little in size, or the senders would keep step
/// and one of them would always find room.
#[test]
fn goodput_collapses_under_incast() {
    let goodput = |senders: u32, size: u32| {
        let hosts = senders + 1;
        let star = format!(r#"star = {{ hosts = {hosts}, rate = "1Gbps", delay = "5us" }}"#);
        let topology: TopologyConfig = toml::from_str(&star).unwrap();
        let stream = |src| {
            let text = format!(
                "[udp]\nsrc = {src}\ndst = {senders}\nstop = '200ms'
                stream = {{ send = {{ message = {{ size = '{}B' }} }} }}",
                size - size / 100 * src
            );
            toml::from_str(&text).unwrap()
        };
        let configs: Vec<WorkloadConfig> = (0..senders).map(stream).collect();
        let fabric = topology.build().unwrap();
        let mut world = World::new(&star, "", Vec::new());
        world.workload = WorkloadConfig::generate_all(&configs, &fabric, 1).unwrap();
        world.switches = buffer("96KB");
        let (run, stats) = run(world);
        let share = |bytes: u64| bytes as f64 * 8.0 / 0.2e9;
        let carried = share(
            run.port(run.fabric.downlink(HostId(senders)))
                .queued(0)
                .bytes,
        );
        assert!(
            carried > 0.99,
            "{senders} senders use {carried} of the link"
        );
        share(stats.iter().map(|s| s.received.delivered.bytes).sum())
    };
    let whole = [1, 2, 4, 8].map(|senders| goodput(senders, 1472));
    let cut = [1, 2, 4, 8].map(|senders| goodput(senders, 64_000));
    println!("goodput of 1, 2, 4, 8 senders: {whole:.3?} in packets, {cut:.3?} in 64 KB");
    assert!(whole.iter().all(|&share| share > 0.97));
    assert!(cut[0] > 0.98 && cut[3] < 0.1, "{cut:?}");
    assert!(cut.is_sorted_by(|more, less| more > less), "{cut:?}");
}

/// Four racks, far enough from each other for threads to run on their own for a while.
pub(crate) const RACKS: &str = r#"leaf-spine = { leaves = 4, hosts-per-leaf = 4, spines = 2, host-rate = "10Gbps", host-delay = "5us", fabric-rate = "10Gbps", fabric-delay = "20us" }"#;

#[test]
fn no_number_of_threads_changes_anything() {
    let text = "[udp]\nsrc = '0,5,9,15'\ndst = '3'\nstop = '500us'
        stream = { ect = true, send = { message = { size = '20KB' } } }";
    let outcome = |threads| {
        let mut world = world(RACKS, text);
        // TCP to the same host, and to another.
        let flows = &mut world.workload.flows;
        let ends = |n: u32| [(4 + n % 4, 3), (8 + n % 8, 2)];
        let start = |n: u32| Time::from_us(50) * u64::from(n);
        for n in 0..10 {
            flows.extend(ends(n).map(|(src, dst)| flow(start(n), src, dst, 30)));
        }
        world.switches = buffer("60KB");
        world.threads = threads;
        let rto = "rto = { initial = '5ms', minimum = '5ms' }";
        world.transport = toml::from_str(rto).unwrap();
        let (run, stats) = run(world);
        assert_eq!(run.threads(), threads as usize);
        let outcomes: Vec<_> = run.flows().map(|(_, outcome)| outcome).collect();
        (outcomes, stats, run.progress().packet_hops)
    };
    let one = outcome(1);
    assert!(
        one.1.iter().any(|stats| stats.lost_messages() > 0),
        "they met"
    );
    assert!(one == outcome(2));
    assert!(one == outcome(4));
}

/// A message of two packets in each of two bursts: 1500 B and 1500 B one after the other.
#[test]
fn messages_have_latencies() {
    let text = "[udp]\nsrc = 0\ndst = 1\nstop = '1900us'
        stream = { latencies = true, send = { burst = { bytes = '2952B', size = '2952B', interval = '1ms' } } }";
    let (run, _) = run(world(PAIR, text));
    let seen: Vec<_> = run
        .latencies()
        .map(|of| (of.application, of.host, of.start, of.latency))
        .collect();
    // The first packet is at the switch after 12 + 5 us; both take 12 us on the second link.
    let latency = Time::from_us(12 + 5 + 24 + 5);
    let message = |start| ("udp", HostId(1), Time::from_us(start), latency);
    assert_eq!(seen, [message(0), message(1000)]);
}
