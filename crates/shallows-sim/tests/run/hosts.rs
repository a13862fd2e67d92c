//! What hosts do to their packets: stage tags and QJUMP's limits.

use shallows_core::host::gate::Refusal;
use shallows_core::host::qjump::{Level, Network, Phase};
use shallows_core::port::{BufferConfig, PortConfig};
use shallows_core::units::Time;
use shallows_model::topology::TopologyConfig;
use shallows_model::workload::{FlowSpec, WorkloadConfig};
use shallows_model::{Connections, HostId, HostSetup, LinkId};
use shallows_sim::{CapturedPacket, Content, Observation};

use crate::udp::RACKS;
use crate::world::{Run, World, flow};

const PAIR: &str = r#"star = { hosts = 2, rate = "1Gbps", delay = "5us" }"#;

/// The packets on a link in a run to the end.
fn packets(mut world: World, link: LinkId) -> (Run, Vec<CapturedPacket>) {
    world.watch.captured.insert(link);
    let mut run = world.run();
    let seen = run.take_observations();
    let packet = |observation| match observation {
        Observation::Packet(packet) => Some(*packet),
        _ => None,
    };
    let packets = seen.into_iter().filter_map(packet).collect();
    (run, packets)
}

/// UDP flows, each a list of keys.
pub(crate) fn udp(topology: &str, setup: &str, flows: &[&str]) -> World {
    let fabric: TopologyConfig = toml::from_str(topology).unwrap();
    let config = |keys: &&str| toml::from_str(&format!("[udp]\n{keys}")).unwrap();
    let configs: Vec<WorkloadConfig> = flows.iter().map(config).collect();
    let mut world = World::new(topology, "", Vec::new());
    world.workload = WorkloadConfig::generate_all(&configs, &fabric.build().unwrap(), 1).unwrap();
    world.setup = hosts(setup);
    world
}

fn hosts(text: &str) -> HostSetup {
    toml::from_str(text).unwrap()
}

/// Two queues, that of level 0 first.
fn priorities(buffer: &str) -> PortConfig {
    toml::from_str(&format!(
        "queues = 2\nbuffer = {buffer}\nscheduler = 'strict'"
    ))
    .unwrap()
}

#[test]
fn stages_follow_the_bytes_sent() {
    let world = || {
        let flows = vec![FlowSpec {
            service: 5,
            ..flow(Time::ZERO, 0, 1, 8)
        }];
        let mut world = World::new(PAIR, "", flows);
        world.setup = hosts("stages = ['2920B', '7300B']");
        world
    };
    let stages = |link| -> Vec<u8> {
        let (_, packets) = packets(world(), LinkId(link));
        packets.iter().map(|packet| packet.dscp).collect()
    };
    assert_eq!(stages(0), [1, 1, 2, 2, 2, 3, 3, 3]);
    assert!(stages(2).iter().all(|&stage| stage == 1), "ACKs");
}

/// EAR as published: the first window of a connection, whatever flows it carries, has its own tag,
/// and so have the ACKs beyond it.
#[test]
fn stages_of_connections_go_on_from_flow_to_flow() {
    let world = |connections| {
        let flows = vec![
            flow(Time::ZERO, 0, 1, 3),
            flow(Time::from_us(1_000), 0, 1, 4),
        ];
        let mut world = World::new(PAIR, "", flows);
        world.setup =
            hosts("stages = { thresholds = ['7300B'], count = 'connection', acks = [1, 3] }");
        world.connections = connections;
        world
    };
    let tags = |connections, link| -> Vec<u8> {
        let (_, packets) = packets(world(connections), LinkId(link));
        packets.iter().map(|packet| packet.dscp).collect()
    };
    // Five of seven segments begin within 7300 B. The ACK of the fifth is of all 7300 B.
    let kept = Connections::Persistent;
    assert_eq!(tags(kept, 0), [1, 1, 1, 1, 1, 2, 2]);
    assert_eq!(tags(kept, 2), [1, 1, 1, 1, 3, 3, 3]);
    // A segment has gone before.
    let warm = Connections::WarmedUp;
    assert_eq!(tags(warm, 0), [1, 1, 1, 1, 2, 2, 2]);
    assert_eq!(tags(warm, 2), [1, 1, 1, 3, 3, 3, 3]);
    // Each flow begins a connection.
    let fresh = Connections::PerFlow;
    assert_eq!(tags(fresh, 0), [1; 7]);
    assert_eq!(tags(fresh, 2), [1; 7]);
}

#[test]
fn retransmissions_do_not_take_a_flow_back() {
    let mut world = World::new(
        PAIR,
        "initial-window = 40",
        vec![flow(Time::ZERO, 0, 1, 200)],
    );
    world.setup = hosts("stages = ['29.2KB', '73KB', '146KB']");
    world.hosts = PortConfig::fifo(BufferConfig::Shared {
        size: "15KB".parse().unwrap(),
    });
    let (run, packets) = packets(world, LinkId(0));
    let (_, outcome) = run.flows().next().unwrap();
    assert!(outcome.retransmits > 0);
    assert!(packets.is_sorted_by_key(|packet| packet.dscp));
    assert_eq!(packets.last().unwrap().dscp, 4);
}

/// Messages of 228 B are packets of 256 B.
#[test]
fn each_level_has_its_bytes_in_each_epoch() {
    let limits = "qjump = { epoch = '50us', levels = ['512B', '3KB'], phase = 'synchronized', excess = 'hold' }";
    let flows = [
        "src = 0\ndst = 1\nservice = 0\nstop = '2ms'\nstream.send = { saturating = { size = '228B' } }",
        "src = 0\ndst = 1\nservice = 1\nstop = '2ms'\nstream.send = { saturating = {} }",
    ];
    let (run, packets) = packets(udp(PAIR, limits, &flows), LinkId(0));
    for epoch in 0..40 {
        let begin = Time::from_us(50) * epoch;
        let bytes = |level| -> u32 {
            let own = packets.iter().filter(|packet| packet.dscp == level);
            let now = own.filter(|p| p.time > begin && p.time <= begin + Time::from_us(50));
            now.map(|packet| packet.size).sum()
        };
        assert_eq!([bytes(0), bytes(1)], [512, 3000], "epoch {epoch}");
    }
    let counters = run
        .limiter(HostId(0))
        .unwrap()
        .counters(Level::new(1).unwrap());
    assert_eq!(counters.dropped.packets, 0);
    assert!(run.flows().all(|(_, outcome)| outcome.lost_messages == 0));
}

/// Services 5 and 6 are applications; the levels that they leave with are up to the gate.
#[test]
fn automatic_levels_follow_what_applications_send() {
    let limits = "qjump = { epoch = '50us', levels = ['512B', '10KB'], phase = 'synchronized', excess = 'hold', automatic = { settle = '1ms' } }";
    let flows = [
        "src = 0\ndst = 1\nservice = 5\nstop = '5ms'\nstream.send = { message = { size = '228B', interval = '50us' } }",
        "src = 0\ndst = 1\nservice = 6\nstop = '5ms'\nstream.send = { saturating = {} }",
    ];
    let (run, packets) = packets(udp(PAIR, limits, &flows), LinkId(0));
    let small = |level| {
        let own = packets.iter().filter(|packet| packet.size == 256);
        own.filter(|packet| packet.dscp == level).count()
    };
    // A packet of 256 B each 50 us: those of the first millisecond wait behind the other
    // application's, and later ones overtake them.
    assert_eq!([small(0), small(1)], [81, 20]);
    let mut large = packets.iter().filter(|packet| packet.size == 1500);
    assert!(large.all(|packet| packet.dscp == 1));
    let chosen = run.automatic_levels(HostId(0)).unwrap().applications();
    let chosen: Vec<_> = chosen.map(|of| (of.application, of.level)).collect();
    assert_eq!(chosen, [(5, 0), (6, 1)]);
}

#[test]
fn levels_are_chosen_in_one_way() {
    let fabric: TopologyConfig = toml::from_str(PAIR).unwrap();
    let fabric = fabric.build().unwrap();
    let refused = |levels: &str, rest: &str| {
        let text = format!("qjump = {{ epoch = '50us', levels = {levels}, {rest} }}");
        let qjump = hosts(&text).qjump.unwrap();
        qjump.limits(&fabric).unwrap_err().to_string()
    };
    let increasing = "['512B', '10KB']";
    for (levels, rest, message) in [
        (
            "['10KB', '512B']",
            "automatic = {}",
            "must have more bytes each",
        ),
        (
            increasing,
            "automatic = { patience = 0 }",
            "at least 1 epoch",
        ),
        (increasing, "automatic = {}, by-size = ['1KB']", "not both"),
        (
            increasing,
            "automatic = {}, scope = 'flow'",
            "those of a host",
        ),
        (
            increasing,
            "automatic = {}, excess = 'hold', hold-limit = '4KB'",
            "8 epochs of level 0 are 4.096KB",
        ),
    ] {
        let error = refused(levels, rest);
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn what_is_over_the_limit_is_dropped() {
    let limits = "qjump = { epoch = '50us', levels = ['256B'], phase = 'synchronized' }";
    // Two messages an epoch.
    let flows = ["src = 0\ndst = 1\nstop = '990us'
        stream.send = { message = { size = '228B', interval = '25us' } }"];
    let run = udp(PAIR, limits, &flows).run();
    let (_, outcome) = run.flows().next().unwrap();
    assert_eq!((outcome.lost_messages, outcome.delivered), (20, 20 * 228));
    let counters = run
        .limiter(HostId(0))
        .unwrap()
        .counters(Level::new(0).unwrap());
    assert_eq!(
        (counters.passed.packets, counters.dropped.packets),
        (20, 20)
    );
    assert_eq!(outcome.drops, 20);
    let refusals: Vec<_> = run.refusals().map(|(_, why, n)| (why, n)).collect();
    assert_eq!(refusals, [(Refusal::OverLimit, 20)]);
}

/// Fig. 10 of the paper: a level that is too small for full packets lets none of them pass.
#[test]
fn packets_larger_than_the_allotment_are_dropped() {
    let limits = "qjump = { epoch = '50us', levels = ['1KB'], excess = 'hold' }";
    let flows = [
        "src = 0\ndst = 1\nstop = '95us'\nstream.send = { message = { size = '1472B', interval = '10us' } }",
    ];
    let run = udp(PAIR, limits, &flows).run();
    let (_, outcome) = run.flows().next().unwrap();
    assert_eq!((outcome.lost_messages, outcome.drops), (10, 10));
    let refusals: Vec<_> = run.refusals().map(|(_, why, n)| (why, n)).collect();
    assert_eq!(refusals, [(Refusal::NeverFits, 10)]);
}

/// A TCP sender waits for room at its gate, so nothing is dropped and little is held; without a
/// limit its whole window waits there.
#[test]
fn tcp_waits_for_room_at_the_gate() {
    let held = |limit: &str| {
        let flows = vec![flow(Time::ZERO, 0, 1, 100), flow(Time::ZERO, 0, 1, 100)];
        let mut world = World::new(PAIR, "initial-window = 40\nrto = { minimum = '1s' }", flows);
        world.setup = hosts(&format!(
            "qjump = {{ epoch = '100us', levels = ['3KB'], phase = 'synchronized', excess = 'hold'{limit} }}"
        ));
        let mut run = world.start();
        // The first ACK comes after 44 us.
        run.until(Time::from_us(40));
        let sent: u32 = run.flows().map(|(_, outcome)| outcome.sent).sum();
        run.finish();
        assert!(run.flows().all(|(_, outcome)| outcome.drops == 0));
        let fcts: Vec<_> = run
            .flows()
            .map(|(_, outcome)| outcome.fct.unwrap())
            .collect();
        // 200 packets at two per epoch.
        assert!(
            fcts.iter().all(|&fct| fct < Time::from_us(10_100)),
            "{fcts:?}"
        );
        (sent, fcts[0])
    };
    // The second window of the first flow is behind the first of the second: 140 packets.
    let (sent, first) = held("");
    assert_eq!(sent, 80);
    assert!(first < Time::from_us(7_100), "{first}");
    // Two have passed, and four are in the queue; then both take turns.
    let (sent, first) = held(", hold-limit = '6KB'");
    assert_eq!(sent, 6);
    assert!(first > Time::from_us(9_300), "{first}");
}

#[test]
fn the_network_gives_epoch_and_levels() {
    let topology: TopologyConfig =
        toml::from_str(r#"star = { hosts = 12, rate = "10Gbps", delay = "1us" }"#).unwrap();
    let fabric = topology.build().unwrap();
    let limits = |text: &str| hosts(text).qjump.unwrap().limits(&fabric);
    let network = "network = { packet = '256B', processing = '4us' }";
    let given = limits(&format!("[qjump]\n{network}\nfactors = [1, 1.5, 12]")).unwrap();
    // 2 x 12 x 256 B at 10 Gbps are 4.9152 us.
    assert_eq!(given.epoch, Time::from_ps(8_915_200));
    assert_eq!(
        given.levels,
        ["256B", "384B", "3072B"].map(|b| b.parse().unwrap())
    );
    let synchronized = format!("[qjump]\n{network}\nfactors = [1]\nphase = 'synchronized'");
    assert_eq!(
        limits(&synchronized).unwrap().epoch,
        Time::from_ps(6_457_600)
    );
    let problem = |text: &str| limits(text).unwrap_err().to_string();
    assert_eq!(
        problem(&format!("[qjump]\n{network}\nfactors = [13]")),
        "factors: 13 is not from 1 to the number of hosts, 12"
    );
    let either = "give either epoch and levels, or network and factors";
    assert_eq!(
        problem(&format!("[qjump]\n{network}\nlevels = ['1KB']")),
        either
    );
    assert_eq!(problem("[qjump]\nepoch = '1us'"), either);
}

#[test]
fn flows_have_the_level_of_their_size() {
    let flows = vec![
        flow(Time::ZERO, 0, 1, 6),
        flow(Time::from_ms(1), 0, 1, 7),
        flow(Time::from_ms(2), 0, 1, 30),
    ];
    let world = |sizes: &str| {
        let mut world = World::new(PAIR, "", flows.clone());
        world.setup = hosts(&format!(
            "qjump = {{ epoch = '1ms', levels = ['9KB', '20KB', '2MB'], by-size = {sizes}, phase = 'synchronized' }}"
        ));
        world
    };
    let (_, packets) = packets(world("['8760B', '18980B']"), LinkId(0));
    let sent = |level| packets.iter().filter(|p| p.dscp == level).count();
    assert_eq!([sent(0), sent(1), sent(2)], [6, 7, 30]);
    assert_eq!(
        world("['18980B', '8760B']").refusal(),
        "qjump: the sizes of by-size must increase"
    );
}

/// Each flow has its own 9,000 B in the first millisecond, in which a host has but one limiter.
#[test]
fn flows_are_limited_by_host_or_one_by_one() {
    let fcts = |scope: &str| {
        let flows = [0, 100, 200].map(|us| flow(Time::from_us(us), 0, 1, 6));
        let mut world = World::new(PAIR, "", flows.to_vec());
        world.setup = hosts(&format!(
            "qjump = {{ epoch = '1ms', levels = ['9000B'], phase = 'synchronized', {scope} }}"
        ));
        let fcts = world.fcts();
        fcts.into_iter()
            .map(|fct| fct.unwrap() > Time::from_us(500))
            .collect::<Vec<_>>()
    };
    assert_eq!(fcts("scope = 'flow'"), [false; 3]);
    assert_eq!(fcts("excess = 'hold'"), [false, true, true]);
}

/// QJUMP §3: n hosts send one packet each at once to one host, on links that lower levels fill.
/// Beside the n packets a packet waits for at most one of a lower level at its NIC and one at the
/// switch, takes its own time at the NIC, and the two links: that is ε here.
#[test]
fn the_guaranteed_latency_holds_under_load() {
    let star = r#"star = { hosts = 5, rate = "10Gbps", delay = "1us" }"#;
    let network = Network {
        hosts: 4,
        packet: "256B".parse().unwrap(),
        rate: "10Gbps".parse().unwrap(),
        processing: "4604.8ns".parse().unwrap(),
    };
    let epoch = network.network_epoch(Phase::Mesochronous);
    let limits = format!(
        "qjump = {{ epoch = '{}ns', levels = ['256B', '7500B'], excess = 'hold' }}",
        epoch.ps() / 1000
    );
    let flows = [
        "src = '0-3'\ndst = 4\nservice = 0\nstart = '100us'\nstop = '2ms'
        stream.send = { message = { size = '228B', interval = '13.7us' } }",
        "src = '0-3'\ndst = 4\nservice = 1\nstop = '2ms'",
    ];
    let slowest = |ports: PortConfig, nics: PortConfig| {
        let mut world = udp(star, &limits, &flows);
        (world.switches, world.hosts) = (ports, nics);
        let (_, packets) = packets(world, LinkId(9));
        let busy = packets
            .iter()
            .map(|packet| u64::from(packet.size))
            .sum::<u64>()
            * 8;
        assert!(busy > 19_000_000, "{busy} bits in 2 ms at 10 Gbps");
        let delay = |packet: &CapturedPacket| match packet.content {
            Content::Datagram(datagram) if packet.dscp == 0 => {
                Some(packet.time + Time::from_us(1) - datagram.sent_at)
            }
            _ => None,
        };
        let delays: Vec<_> = packets.iter().filter_map(delay).collect();
        assert_eq!(delays.len(), 4 * 139);
        delays.into_iter().max().unwrap()
    };
    let guaranteed = slowest(
        priorities("{ per-queue = { limit = '96KB' } }"),
        priorities("'unlimited'"),
    );
    println!("slowest {guaranteed}, bound {}", network.worst_case_delay());
    assert!(guaranteed <= network.worst_case_delay());
    let fifo = || PortConfig::fifo(BufferConfig::Unlimited);
    assert!(slowest(fifo(), fifo()) > epoch, "priorities matter");
}

#[test]
fn limits_that_nothing_passes_are_refused() {
    let refusal = |limits: &str, service| {
        let flows = vec![FlowSpec {
            service,
            ..flow(Time::ZERO, 0, 1, 1)
        }];
        let mut world = World::new(PAIR, "", flows);
        world.setup = hosts(limits);
        world.refusal()
    };
    let limits = "qjump = { epoch = '50us', levels = ['9KB', '39B'] }";
    assert_eq!(
        refusal(limits, 1),
        "qjump: packets of 40 bytes of flow 0, service 1, never pass: the service may send 39B per epoch"
    );
    assert_eq!(
        refusal(limits, 2),
        "qjump: packets of 40 bytes of flow 0, service 2, never pass: it has no limit in levels"
    );
    assert_eq!(
        refusal("qjump = { epoch = '0us', levels = ['9KB'] }", 0),
        "qjump: an epoch must last longer than 0s"
    );
}

#[test]
fn limits_are_the_same_on_any_number_of_threads() {
    let limits = "stages = ['10KB']\nqjump = { epoch = '10us', levels = ['9KB', '6KB', '3KB'], excess = 'hold' }";
    let outcome = |threads| {
        let mut world = udp(RACKS, limits, &["src = '0,5,9'\ndst = 3\nstop = '300us'"]);
        for n in 0..10 {
            let start = Time::from_us(30) * u64::from(n);
            let flows = [(4 + n % 4, 3), (8 + n % 8, 2)];
            let flows = flows.map(|(src, dst)| flow(start, src, dst, 30));
            world.workload.flows.extend(flows);
        }
        world.threads = threads;
        let run = world.run();
        assert_eq!(run.threads(), threads as usize);
        let outcomes: Vec<_> = run.flows().map(|(_, outcome)| outcome).collect();
        let stage = |host| {
            *run.limiter(HostId(host))
                .unwrap()
                .counters(Level::new(2).unwrap())
        };
        let held = [0, 4, 5, 8, 9].map(stage);
        (outcomes, held, run.progress().packet_hops)
    };
    let one = outcome(1);
    assert!(one.1.iter().all(|counters| counters.held.packets > 0));
    assert!(one == outcome(2));
    assert!(one == outcome(4));
}
