//! QJUMP's guarantee (§3.1): no packet of the level of f = 1 takes longer than a network epoch,
//! whatever the other levels send; and what happens where an assumption of it does not hold.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use shallows_core::host::qjump::{Network, Phase};
use shallows_core::port::{BufferConfig, Framing, PortConfig};
use shallows_core::units::{Bytes, Rate, Time};
use shallows_model::workload::FlowSpec;

use crate::hosts::udp;
use crate::world::{World, flow};

/// P: messages of 228 B.
const PACKET: Bytes = Bytes::new(256);
const LARGEST: Bytes = Bytes::new(1500);

/// A fabric whose links are nowhere slower than those of hosts.
#[derive(Clone, Debug)]
struct Fabric {
    topology: String,
    hosts: u32,
    /// Rate and delay of each link of the longest path.
    path: Vec<(Rate, Time)>,
}

impl Fabric {
    /// ε: on each link the delay, the packet's own time and a packet of a lower level before it.
    fn processing(&self, framing: Framing) -> Time {
        let links = self.path.iter();
        let time = |&(rate, delay): &(Rate, Time)| {
            let own = rate.transmission_time(on_link(PACKET, framing));
            delay + own + rate.transmission_time(on_link(LARGEST, framing))
        };
        links.map(time).sum()
    }

    fn network(&self, framing: Framing) -> Network {
        Network {
            hosts: self.hosts,
            packet: on_link(PACKET, framing),
            rate: self.path[0].0,
            processing: self.processing(framing),
        }
    }
}

/// What a packet takes on a link.
fn on_link(packet: Bytes, framing: Framing) -> Bytes {
    Bytes::new(u64::from(framing.wire_size(packet.get() as u32)))
}

fn fabric() -> impl Strategy<Value = Fabric> {
    let shape = (0..3u32, 2..5u32, 1..4u32, 1..3u32);
    let rates = select(vec![(1, 1), (10, 10), (10, 40), (25, 100)]);
    (shape, rates, 0..2_000u64, 0..2_000u64).prop_map(
        |((shape, some, few, spines), (edge, core), edge_ns, core_ns)| {
            let host = (Rate::from_gbps(edge), Time::from_ns(edge_ns));
            let trunk = (Rate::from_gbps(core), Time::from_ns(core_ns));
            let (hosts, topology) = match shape {
                0 => (
                    some + few,
                    format!(
                        "star = {{ hosts = {}, rate = '{edge}Gbps', delay = '{edge_ns}ns' }}",
                        some + few
                    ),
                ),
                1 => (
                    some + few,
                    format!(
                        "dumbbell = {{ left = {some}, right = {few}, rate = '{edge}Gbps', \
                         delay = '{edge_ns}ns', uplink-rate = '{core}Gbps', \
                         uplink-delay = '{core_ns}ns' }}"
                    ),
                ),
                _ => (
                    some * few,
                    format!(
                        "leaf-spine = {{ leaves = {few}, hosts-per-leaf = {some}, \
                         spines = {spines}, host-rate = '{edge}Gbps', \
                         host-delay = '{edge_ns}ns', fabric-rate = '{core}Gbps', \
                         fabric-delay = '{core_ns}ns' }}"
                    ),
                ),
            };
            let trunks = shape as usize;
            let mut path = vec![host; 2];
            path.extend(vec![trunk; trunks]);
            Fabric {
                topology,
                hosts,
                path,
            }
        },
    )
}

/// Three levels in strict priority, the first one first.
fn priorities() -> PortConfig {
    toml::from_str("queues = 3\nbuffer = { per-queue = { limit = '200KB' } }\nscheduler = 'strict'")
        .expect("the test's port is sound")
}

/// A stream of messages of P; its times are fractions of the epoch, in thousandths.
fn stream(epoch: Time, src: u32, dst: u32, start: u64, interval: u64) -> String {
    let part = |thousandths: u64| epoch.ps() * thousandths / 1_000_000;
    format!(
        "src = {src}\ndst = {dst}\nservice = 0\nstart = '{}ns'\nstop = '{}ns'\n\
         stream = {{ send = {{ message = {{ size = '228B', interval = '{}ns' }} }}, latencies = true }}",
        part(start),
        part(20_000),
        part(interval).max(1),
    )
}

fn limits(epoch: Time, bytes: u64, phase: &str) -> String {
    format!(
        "qjump = {{ epoch = '{}ps', levels = ['{bytes}B', '1MB', '1MB'], phase = '{phase}' }}",
        epoch.ps()
    )
}

/// The longest that a message took, and how many arrived.
fn slowest(mut world: World, ports: PortConfig) -> (Time, usize) {
    (world.switches, world.hosts) = (ports.clone(), ports);
    let run = world.run();
    let latencies: Vec<Time> = run.latencies().map(|message| message.latency).collect();
    let most = latencies.iter().copied().max().unwrap_or_default();
    (most, latencies.len())
}

fn bulk(hosts: u32, epoch: Time) -> Vec<String> {
    let stop = epoch.ps() * 20 / 1000;
    let send = |(src, service)| {
        let dst = u32::from(src == 0);
        format!("src = {src}\ndst = {dst}\nservice = {service}\nstop = '{stop}ns'")
    };
    (0..hosts).map(|src| (src, 1 + src % 2)).map(send).collect()
}

fn world(topology: &str, setup: &str, streams: &[String]) -> World {
    let streams: Vec<&str> = streams.iter().map(String::as_str).collect();
    udp(topology, setup, &streams)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        rng_seed: RngSeed::Fixed(14),
        ..ProptestConfig::default()
    })]

    /// Each host tries to send up to four times what it may, from any time on and to any host, while
    /// lower levels fill the links by UDP and TCP. Hosts begin their epochs anywhere.
    #[test]
    fn no_packet_of_the_first_level_takes_longer_than_an_epoch(
        fabric in fabric(),
        framing in select(vec![Framing::NONE, Framing::ETHERNET]),
        senders in prop::collection::vec((0..1_000u64, 250..1_100u64, any::<bool>(), any::<u32>()), 16),
        tcp in prop::collection::vec((any::<u32>(), any::<u32>(), 1..60u64), 0..6),
    ) {
        let hosts = fabric.hosts;
        let network = fabric.network(framing);
        let epoch = network.network_epoch(Phase::Mesochronous);
        let mut streams = bulk(hosts, epoch);
        for (src, &(start, interval, is_incast, other)) in (0..hosts).zip(&senders) {
            let other = (src + 1 + other % (hosts - 1)) % hosts;
            let dst = if is_incast && src != 0 { 0 } else { other };
            streams.push(stream(epoch, src, dst, start, interval));
        }
        let mut world = world(&fabric.topology, &limits(epoch, network.packet.get(), "mesochronous"), &streams);
        for &(src, dst, packets) in &tcp {
            let (src, dst) = (src % hosts, (src % hosts + 1 + dst % (hosts - 1)) % hosts);
            // Flows are in the order of their starts.
            let flow = flow(epoch, src, dst, packets);
            world.workload.flows.push(FlowSpec { service: 2, ..flow });
        }
        let ports = PortConfig { framing, ..priorities() };
        let (most, messages) = slowest(world, ports);
        prop_assert!(messages >= hosts as usize * 10, "{messages} messages arrived");
        prop_assert!(most <= epoch, "{most} of {epoch}");
    }
}

/// Eight hosts at 10 Gbps send to a ninth at once.
fn incast(epoch: Time, starts: &[u64], bytes: u64) -> World {
    let mut streams = Vec::new();
    for src in 1..9 {
        for &start in starts {
            streams.push(stream(epoch, src, 0, start, 100_000));
        }
    }
    let star = "star = { hosts = 9, rate = '10Gbps', delay = '10ns' }";
    world(star, &limits(epoch, bytes, "synchronized"), &streams)
}

/// The same without lower levels, so that ε is 20 ns and one packet's time.
const BARE: Network = Network {
    hosts: 8,
    packet: PACKET,
    rate: Rate::from_gbps(10),
    processing: Time::from_ns(225),
};

#[test]
fn epochs_that_are_not_aligned_need_the_doubled_bound() {
    let epoch = BARE.network_epoch(Phase::Synchronized);
    // At the end of the third epoch and at the begin of the fourth.
    let twice = slowest(incast(epoch, &[2_999, 3_001], 256), priorities());
    assert_eq!(twice.1, 16);
    assert!(twice.0 > epoch, "{} of {epoch}", twice.0);
    assert!(twice.0 <= BARE.network_epoch(Phase::Mesochronous));
    let once = slowest(incast(epoch, &[3_001], 256), priorities());
    assert!(once.0 <= epoch, "{} of {epoch}", once.0);
}

#[test]
fn more_than_p_in_an_epoch_breaks_the_bound() {
    let epoch = BARE.network_epoch(Phase::Mesochronous);
    let (most, messages) = slowest(incast(epoch, &[3_000, 3_001, 3_002], 768), priorities());
    assert_eq!(messages, 24);
    assert!(most > epoch, "{most} of {epoch}");
}

#[test]
fn hosts_beyond_n_break_the_bound() {
    let few = Network { hosts: 3, ..BARE };
    let epoch = few.network_epoch(Phase::Mesochronous);
    let (most, messages) = slowest(incast(epoch, &[3_000], 256), priorities());
    assert_eq!(messages, 8);
    assert!(most > epoch, "{most} of {epoch}");
}

#[test]
fn a_link_slower_than_the_edge_breaks_the_bound() {
    let path = |uplink| {
        let (edge, trunk) = (Rate::from_gbps(10), Rate::from_gbps(uplink));
        let topology = format!(
            "dumbbell = {{ left = 16, right = 16, rate = '10Gbps', delay = '10ns', \
             uplink-rate = '{uplink}Gbps', uplink-delay = '10ns' }}"
        );
        let delay = Time::from_ns(10);
        let fabric = Fabric {
            topology,
            hosts: 32,
            path: vec![(edge, delay), (trunk, delay), (edge, delay)],
        };
        let epoch = fabric
            .network(Framing::NONE)
            .network_epoch(Phase::Mesochronous);
        let across = |src| stream(epoch, src, src + 16, 3_000, 1_000);
        let streams: Vec<String> = (0..16).map(across).collect();
        let world = world(
            &fabric.topology,
            &limits(epoch, 256, "synchronized"),
            &streams,
        );
        (slowest(world, priorities()).0, epoch)
    };
    let (most, epoch) = path(10);
    assert!(most <= epoch, "{most} of {epoch}");
    let (most, epoch) = path(1);
    assert!(most > epoch, "{most} of {epoch}");
}

#[test]
fn without_priorities_lower_levels_break_the_bound() {
    let fabric = Fabric {
        topology: "star = { hosts = 9, rate = '10Gbps', delay = '1us' }".to_owned(),
        hosts: 9,
        path: vec![(Rate::from_gbps(10), Time::from_us(1)); 2],
    };
    let epoch = fabric
        .network(Framing::NONE)
        .network_epoch(Phase::Mesochronous);
    let mut streams = bulk(9, epoch);
    streams.extend((1..9).map(|src| stream(epoch, src, 0, 3_000, 1_000)));
    let limits = limits(epoch, 256, "mesochronous");
    let most = |ports| slowest(world(&fabric.topology, &limits, &streams), ports).0;
    let guaranteed = most(priorities());
    assert!(guaranteed <= epoch, "{guaranteed} of {epoch}");
    let fifo = most(PortConfig::fifo(BufferConfig::Shared {
        size: "200KB".parse().expect("a size"),
    }));
    assert!(fifo > epoch, "{fifo} of {epoch}");
}
