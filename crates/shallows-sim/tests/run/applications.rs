//! Applications on simulated hosts, against times worked out by hand.

use shallows_core::units::Time;
use shallows_model::{ApplicationEntry, LinkId};
use shallows_sim::{EngineChoice, Observation};

use crate::udp::RACKS;
use crate::world::{World, flow};

/// Two links of 1 Gbps and 5 us between any two of five hosts.
const STAR: &str = r#"star = { hosts = 5, rate = "1Gbps", delay = "5us" }"#;

fn entry(text: &str) -> ApplicationEntry {
    toml::from_str(text).expect("the test's application is sound")
}

/// Latencies of a run: host, name, start and latency in nanoseconds.
fn latencies(mut world: World, entries: &[&str]) -> Vec<(u32, &'static str, u64, u64)> {
    world.applications = entries.iter().map(|text| entry(text)).collect();
    let mut run = world.start();
    run.until(Time::from_ms(100));
    let nanos = |time: Time| time.ps() / 1000;
    run.latencies()
        .map(|of| (of.host.0, of.name, nanos(of.start), nanos(of.latency)))
        .collect()
}

fn alone(text: &str) -> Vec<(u32, &'static str, u64, u64)> {
    latencies(World::new(STAR, "", Vec::new()), &[text])
}

/// What a packet takes over two links, in nanoseconds: twice 8 ns a byte and 5 us.
fn way(bytes: u64) -> u64 {
    2 * (8 * bytes + 5_000)
}

#[test]
fn a_ping_takes_two_ways() {
    let text =
        "clients = 0\nservers = 1\nrun = { ping = { interval = '1ms', size = '97B', count = 2 } }";
    // 97 B with 28 B of headers.
    let rtt = 2 * way(125);
    assert_eq!(
        alone(text),
        [(0, "ping", 0, rtt), (0, "ping", 1_000_000, rtt)]
    );
}

/// A ping sees the queue that two flows of 50 packets have made.
#[test]
fn a_ping_sees_the_queues_of_others() {
    let flows = vec![flow(Time::ZERO, 1, 2, 50), flow(Time::ZERO, 3, 2, 50)];
    let world = World::new(STAR, "initial-window = 50", flows);
    let text = "clients = 0\nservers = 2\nstart = '600us'\nrun = { ping = { interval = '1s', count = 1 } }";
    // All packets have come to the switch by 605 us, and it sends one of them in 12 us since 17 us.
    // The ping comes at 605.672 us.
    let (start, size) = (600_000, 84);
    let waits = 17_000 + 100 * 12_000 - (start + 8 * size + 5_000);
    let expected = (0, "ping", start, 2 * way(size) + waits);
    assert_eq!(latencies(world, &[text]), [expected]);
}

#[test]
fn requests_take_their_bytes() {
    let get = "clients = 0\nservers = 1\nrun = { requests = { key = '60B', value = '960B', get-share = 1, count = 3 } }";
    let latency = way(100) + way(1000);
    let starts = [0, latency, 2 * latency];
    assert_eq!(alone(get), starts.map(|start| (0, "get", start, latency)));
    let set = get.replace("get-share = 1", "get-share = 0");
    let latency = way(1060) + way(100);
    assert_eq!(alone(&set)[0], (0, "set", 0, latency));
}

/// A response of two segments: the second follows at once on the link.
#[test]
fn messages_end_with_their_last_byte() {
    let text = "clients = 0\nservers = 1\nrun = { requests = { key = '60B', value = '1560B', get-share = 1, count = 1 } }";
    let last = 8 * 1500 + way(140).max(8 * 1500 + 5_000 + 8 * 140 + 5_000);
    assert_eq!(alone(text), [(0, "get", 0, way(100) + last)]);
}

/// SYN and back, the request, the response: two round trips for each connection.
#[test]
fn short_connections_begin_with_a_handshake() {
    let text = "clients = 0\nservers = 1\nrun = { short-connections = { request = '60B', response = '460B', count = 3 } }";
    let latency = 2 * way(40) + way(100) + way(500);
    let starts = [0, latency, 2 * latency];
    assert_eq!(
        alone(text),
        starts.map(|start| (0, "connection", start, latency))
    );
}

/// Every connection begins with the initial window, however many there were before.
#[test]
fn short_connections_forget_their_windows() {
    let text = "clients = 0\nservers = 1\nrun = { short-connections = { request = '60B', response = '14600B', count = 4 } }";
    let world = World::new(STAR, "initial-window = 2", Vec::new());
    let seen = latencies(world, &[text]);
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|of| of.3 == seen[0].3), "{seen:?}");
    // Windows of 2, 4 and 4 of 10 segments, not one.
    assert!(seen[0].3 > 3 * 2 * way(40), "{seen:?}");
}

#[test]
fn a_striped_read_is_an_incast() {
    let text = "clients = 0\nservers = '1-4'\nrun = { striped-read = { block = '5840B', request = '60B', count = 2 } }";
    // The requests leave one after the other, and the answers meet at the link to the client, which
    // is never idle. The last is behind the ACKs of the three requests before its own.
    let first = way(100) + 8 * 1500 + 5_000;
    let last = first + 4 * 8 * 1500 + 3 * 8 * 40 + 5_000;
    let seen = alone(text);
    assert_eq!(seen[0], (0, "block", 0, last));
    assert_eq!(seen.len(), 2);
}

/// All kinds at once, over parts of the fabric that run on their own.
#[test]
fn applications_are_the_same_on_any_number_of_threads() {
    let entries = [
        "clients = '0,5,9'\nservers = '3,14'\nrun = { requests = { pace = { closed = { outstanding = 2 } }, value = '5KB' } }",
        "clients = '1,6'\nservers = '12-13'\nrun = { ping = { interval = '37us' } }",
        "clients = '0,4,8,12'\nrun = { barrier = { think = '10us' } }",
        "clients = 2\nservers = '7,11,15'\nrun = { partition-aggregate = { interval = '100us' } }",
        "clients = 10\nservers = '0-3'\nrun = { striped-read = { block = '200KB' } }",
        "clients = '1,5,9,13'\nrun = { shuffle = { size = '30KB', parallel = 2 } }",
        "clients = 4\nservers = '8-9'\nrun = { short-connections = { parallel = 2 } }",
        "clients = 6\nservers = '11,14'\nrun = { two-phase-commit = { timeout = '200us' } }",
    ];
    let outcome = |engine, threads| {
        let mut world = World::new(
            RACKS,
            "rto = { initial = '2ms', minimum = '2ms' }",
            Vec::new(),
        );
        world.switches =
            toml::from_str("buffer = { shared = { size = '40KB' } }\nscheduler = 'fifo'").unwrap();
        (world.engine, world.threads) = (engine, threads);
        world.applications = entries.iter().map(|text| entry(text)).collect();
        let mut run = world.start();
        run.until(Time::from_ms(4));
        assert_eq!(run.threads(), threads as usize);
        let seen: Vec<_> = run
            .latencies()
            .map(|of| {
                (
                    of.application.to_owned(),
                    of.host,
                    of.name,
                    of.start,
                    of.latency,
                )
            })
            .collect();
        (seen, run.progress().packet_hops)
    };
    let one = outcome(EngineChoice::Automatic, 1);
    let names = [
        "get",
        "ping",
        "barrier",
        "query",
        "block",
        "transfer",
        "shuffle",
        "connection",
        "commit",
    ];
    for name in names {
        let count = one.0.iter().filter(|of| of.2 == name).count();
        println!("{name}: {count}");
        assert!(
            count > 5 || name == "shuffle" && count > 0,
            "{name}: {count}"
        );
    }
    for engine in [EngineChoice::Events, EngineChoice::Layers] {
        assert!(one == outcome(engine, 2), "{engine:?}");
        assert!(one == outcome(engine, 4), "{engine:?}");
    }
}

/// A host adds a time of its own to each packet: of 0 to 20 us here, twice for a ping.
#[test]
fn jitter_is_added_at_each_host_on_any_number_of_threads() {
    let pings = |jitter: &str, threads| {
        let mut world = World::new(RACKS, "", Vec::new());
        world.setup = toml::from_str(jitter).unwrap();
        world.threads = threads;
        let entries =
            ["clients = 0\nservers = 12\nrun = { ping = { interval = '100us', count = 800 } }"];
        latencies(world, &entries)
    };
    let even = pings("", 1);
    let way = even[0].3;
    assert!(even.iter().all(|&(.., latency)| latency == way));
    let uneven = "jitter = { mean = '10us', distribution = 'uniform' }";
    let late = pings(uneven, 1);
    assert_eq!(late.len(), even.len());
    let added: Vec<u64> = late.iter().map(|&(.., latency)| latency - way).collect();
    assert!(added.iter().all(|&added| added < 40_000));
    let mean = added.iter().sum::<u64>() as f64 / added.len() as f64;
    // Three standard errors of 800 sums of two uniform times are 0.87 us.
    assert!((mean - 20_000.0).abs() < 866.0, "{mean}");
    for threads in [2, 4] {
        assert_eq!(pings(uneven, threads), late, "{threads} threads");
    }
    // Hosts without any: the servers answer at once.
    let means: Vec<&str> = (0..16)
        .map(|host| if host < 12 { "'10us'" } else { "'0s'" })
        .collect();
    let clients = pings(
        &format!(
            "jitter = {{ mean = [{}], distribution = 'uniform' }}",
            means.join(", ")
        ),
        1,
    );
    assert!(clients.iter().all(|&(.., latency)| latency - way < 20_000));
}

/// Packets that have entered a link within the run.
fn packets_on(mut world: World, entries: &[&str], link: u32) -> usize {
    world.watch.captured.insert(LinkId(link));
    world.applications = entries.iter().map(|text| entry(text)).collect();
    let mut run = world.start();
    run.until(Time::from_ms(100));
    let seen = run.take_observations();
    let is_packet = |of: &&Observation| matches!(of, Observation::Packet(_));
    seen.iter().filter(is_packet).count()
}

/// Messages of 97 B are packets of 125 B, 1 us on a link. The switch copies a broadcast to four
/// servers at once, and their answers come out of its port to the coordinator one after the other.
#[test]
fn a_switch_copies_a_broadcast() {
    let text = "clients = 0\nservers = '1-4'\nrun = { two-phase-commit = { size = '97B', count = 1, fan-out = 'broadcast' } }";
    let phase = 2 * way(125) + 3_000;
    assert_eq!(alone(text), [(0, "commit", 0, 2 * phase)]);
    let unicast = text.replace("broadcast", "unicast");
    let on_uplink = |text: &str| packets_on(World::new(STAR, "", Vec::new()), &[text], 0);
    assert_eq!((on_uplink(text), on_uplink(&unicast)), (2, 8));
    // Each server has its copy on a link of its own.
    let to_server = |text: &str| packets_on(World::new(STAR, "", Vec::new()), &[text], 3);
    assert_eq!((to_server(text), to_server(&unicast)), (2, 2));
}

/// A limiter that passes one packet an epoch has to pass one for a phase, not one for each server.
#[test]
fn a_broadcast_is_one_packet_of_its_level() {
    let limited = |fan_out: &str| {
        let mut world = World::new(STAR, "", Vec::new());
        world.setup = toml::from_str("qjump = { epoch = '50us', levels = ['125B'], phase = 'synchronized', excess = 'hold' }").unwrap();
        let text = format!(
            "clients = 0\nservers = '1-4'\nrun = {{ two-phase-commit = {{ size = '97B', count = 1, fan-out = '{fan_out}' }} }}"
        );
        latencies(world, &[&text])[0].3
    };
    let phase = 2 * way(125) + 3_000;
    // The second broadcast has an epoch of its own, from 50 us on.
    assert_eq!(limited("broadcast"), 50_000 + phase);
    // The last of four leaves 150 us after the first, its answer alone; so does the last commit, of
    // the four epochs after it.
    assert_eq!(limited("unicast"), 350_000 + 2 * way(125));
}

/// Each rack is entered once, by whichever spine, and the same datagram reaches all servers.
#[test]
fn a_broadcast_reaches_all_racks() {
    let text = "clients = 0\nservers = '1,5,6,9,15'\nrun = { two-phase-commit = { count = 100, timeout = '1ms', fan-out = 'broadcast' } }";
    let mut world = World::new(RACKS, "", Vec::new());
    world.routing = toml::from_str("routing = 'ecmp'")
        .map(|table: toml::Table| table["routing"].clone().try_into().unwrap())
        .unwrap();
    world.threads = 2;
    let seen = latencies(world.clone(), &[text]);
    assert_eq!(seen.len(), 100);
    assert!(seen.iter().all(|&(_, name, ..)| name == "commit"));
    world.threads = 1;
    assert_eq!(latencies(world, &[text]), seen);
}
