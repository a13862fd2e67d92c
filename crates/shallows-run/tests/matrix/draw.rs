//! Scenarios drawn over everything that a scenario can have.

use proptest::prelude::*;
use proptest::sample::select;

/// A scheduler with its number of queues, and whether it has rounds or weights, which MQ-ECN needs.
const SCHEDULERS: [(&str, bool); 9] = [
    ("queues = 1\nscheduler = 'fifo'", false),
    ("queues = 4\nscheduler = 'strict'", false),
    ("queues = 1\nscheduler = 'pfabric'", false),
    (
        "queues = 8\nscheduler = { dwrr = { quantum = '1500B' } }",
        true,
    ),
    (
        "queues = 3\nscheduler = { dwrr = { quantum = ['700B', '1500B', '4KB'] } }",
        true,
    ),
    (
        "queues = 4\nscheduler = { wrr = { quantum = '3KB' } }",
        true,
    ),
    (
        "queues = 2\nscheduler = { wfq = { weight = [1, 3] } }",
        true,
    ),
    (
        "queues = 4\nscheduler = { strict-over = { strict = 1, rest = 'dwrr', quantum = '1500B' } }",
        true,
    ),
    (
        "queues = 8\nscheduler = { strict-over = { strict = 2, rest = 'wrr', quantum = '3KB' } }",
        true,
    ),
];

const MARKERS: [&str; 14] = [
    "'none'",
    "{ per-queue = { threshold = '10KB' } }",
    "{ per-queue = { threshold = { rtt = '20us', lambda = 0.6 } } }",
    "{ per-queue-minimum = { threshold = '20KB' } }",
    "{ per-port = { threshold = '1pkt' } }",
    "{ per-pool = { threshold = '20KB' } }",
    "{ ecn-star = { threshold = '5pkts' } }",
    "{ red = { min = '3KB', max = '9KB', max-probability = 0.5, gentle = true, average = { ewma = 0.25 } } }",
    "{ tcn = { sojourn = '10us' } }",
    "{ pmsb = { port = '6pkts', queue = '2pkts' } }",
    "{ cedm = { enqueue = '6pkts', dequeue = '3pkts', rule = 'either' } }",
    "{ a-ecn = { threshold = '10pkts', interval = 20, step = '1pkt' } }",
    "{ mm-ecn = { threshold = '10pkts', random = 0.25 } }",
    "{ demepro = { threshold = '10pkts' } }",
];

const MARKERS_OF_ROUNDS: [&str; 3] = [
    "{ mq-ecn = { threshold = '10pkts' } }",
    "{ mq-ecn = { threshold = '10pkts', update = { interval = '7.2us' } } }",
    "{ mq-ecn = { threshold = '10pkts', ramp = { k-min = '2pkts', p-max = 0.1 } } }",
];

/// ML-ECN has a classifier of its own, and stages in the hosts.
const ML_ECN: &str = "queues = 8\nscheduler = { dwrr = { quantum = '1500B' } }
classifier = { size-class = { small = 3, medium = 3, large = 2, t-small = 1, t-large = 2 } }";
const ML_ECN_MARKER: &str =
    "{ ml-ecn = { threshold = '10pkts', levels = 4, packet-small = 1, packet-large = 4 } }";

const CONTROLLERS: [&str; 9] = [
    "'dctcp'",
    "{ dctcp = { g = 1.0, initial-alpha = 0.0 } }",
    "'reno'",
    "'cubic'",
    "'ecn-star'",
    "'delay-dctcp'",
    "{ ear = { t = '20us' } }",
    "{ dx = { headroom = '5us' } }",
    "'pfabric'",
];

/// Controllers of RoCE, which has few of TCP's keys.
const PACED: [&str; 4] = [
    "'dcqcn'",
    "{ dcqcn = { g = 0.5, n = '5us', k = '7us', t = '11us', b = '20KB', f = 2, minimum-rate = '50Mbps' } }",
    "'timely'",
    "{ timely = { t-low = '10us', t-high = '60us', completion = '2KB', initial-rate = '500Mbps' } }",
];

const APPLICATIONS: [&str; 8] = [
    "{ ping = { interval = '20us', count = 5 } }",
    "{ requests = { count = 10, pace = { closed = { think = '1us' } } } }",
    "{ barrier = { count = 3 } }",
    "{ partition-aggregate = { think = '5us', count = 3 } }",
    "{ striped-read = { block = '40KB', count = 2 } }",
    "{ shuffle = { size = '10KB', parallel = 2, count = 1 } }",
    "{ short-connections = { parallel = 2, count = 4 } }",
    "{ two-phase-commit = { count = 3, timeout = '2ms' } }",
];

/// All that a case is, in its TOML, and what may be checked of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) text: String,
    /// Every packet that is sent arrives or is dropped by a port.
    pub(crate) is_balanced: bool,
    /// A flow's packets are on one path and all have ACKs, so that it cannot be faster than ideal.
    pub(crate) ideal_is_least: bool,
    /// Nothing is dropped, so that all flows come to their end in time.
    pub(crate) finishes: bool,
}

fn cable(prefix: &'static str) -> impl Strategy<Value = String> {
    let rate = select(vec!["100Mbps", "1Gbps", "10Gbps", "25Gbps", "100Gbps"]);
    (rate, 0..20_000u32).prop_map(move |(rate, delay)| {
        format!("{prefix}rate = '{rate}', {prefix}delay = '{delay}ns'")
    })
}

/// A fabric of at least four hosts.
fn topology() -> impl Strategy<Value = String> {
    let star = (4..9u32, cable(""))
        .prop_map(|(hosts, cable)| format!("star = {{ hosts = {hosts}, {cable} }}"));
    let dumbbell =
        (2..5u32, 2..5u32, cable(""), cable("uplink-")).prop_map(|(left, right, cable, uplink)| {
            format!("dumbbell = {{ left = {left}, right = {right}, {cable}, {uplink} }}")
        });
    let chain = (2..5usize, cable(""), cable("uplink-")).prop_map(|(switches, cable, uplink)| {
        format!(
            "chain = {{ hosts = {:?}, {cable}, {uplink} }}",
            vec![2; switches]
        )
    });
    let leaves = (1..3u32, 1..5u32).prop_filter("hosts of several racks", |of| of.0 * of.1 > 1);
    let leaf_spine = (leaves, 2..4u32, 1..4u32, cable("host-"), cable("fabric-")).prop_map(
        |((nics, groups), hosts, spines, host, fabric)| {
            let leaves = nics * groups;
            format!("leaf-spine = {{ leaves = {leaves}, hosts-per-leaf = {hosts}, spines = {spines}, nics = {nics}, {host}, {fabric} }}")
        },
    );
    let fat_tree = (3..5u32, 1..3u32, cable("host-"), cable("fabric-")).prop_map(|(tiers, over, host, fabric)| {
        format!("fat-tree = {{ tiers = {tiers}, radix = 4, oversubscription = {over}, {host}, {fabric} }}")
    });
    prop_oneof![star, dumbbell, chain, leaf_spine, fat_tree]
}

/// A port of switches, and what hosts need for it.
fn port() -> impl Strategy<Value = (String, &'static str)> {
    let schemes = prop_oneof![
        4 => (select(SCHEDULERS.to_vec()), any::<prop::sample::Index>()).prop_map(|((scheduler, rounds), marker)| {
            let mut markers = MARKERS.to_vec();
            if rounds {
                markers.extend(MARKERS_OF_ROUNDS);
            }
            (scheduler, *marker.get(&markers), "")
        }),
        1 => Just((ML_ECN, ML_ECN_MARKER, "stages = ['5KB', '40KB']")),
    ];
    let buffer = select(vec![
        "'unlimited'",
        "{ shared = { size = '30KB' } }",
        "{ shared = { size = '4pkts' } }",
        "{ per-queue = { limit = '9KB' } }",
        "{ dynamic = { alpha = 1.0 } }",
    ]);
    let details = (
        select(vec!["enqueue", "dequeue"]),
        select(vec!["pass", "drop"]),
        select(vec!["", "shaper = { rate = '900Mbps', bucket = '3KB' }"]),
        select(vec!["none", "ethernet"]),
        select(vec!["packet", "wire"]),
    );
    (schemes, buffer, details).prop_map(
        |((scheduler, marker, stages), buffer, (point, not_ect, shaper, framing, accounting))| {
            let text = format!(
                "{scheduler}\nbuffer = {buffer}\n{shaper}\nframing = '{framing}'\naccounting = '{accounting}'
marker = {{ scheme = {marker}, point = '{point}', not-ect = '{not_ect}' }}"
            );
            (text, stages)
        },
    )
}

/// RoCE, with one of its controllers.
fn paced() -> impl Strategy<Value = String> {
    (select(PACED.to_vec()), 200..2_000u32).prop_map(|(controller, segment)| {
        format!(
            "controller = {controller}\nsegment = {segment}\nheader = 44
rto = {{ initial = '5ms', minimum = '5ms', maximum = '100ms' }}"
        )
    })
}

fn tcp() -> impl Strategy<Value = String> {
    let switches = [any::<bool>(), any::<bool>(), any::<bool>()];
    let choices = (
        select(CONTROLLERS.to_vec()),
        select(vec!["sack", "new-reno", "full-tcp"]),
        select(vec!["never", "in-bursts"]),
        select(vec!["", "delayed-ack = { every = 2, timeout = '500us' }"]),
        select(vec!["restart", "keep", "initial-window"]),
        (
            1..20u32,
            1..4u32,
            select(vec!["fractions", "whole-segments"]),
        ),
    );
    (choices, switches).prop_map(
        |((controller, recovery, marked, delayed, idle, (initial, least, growth)), [handshake, ect_acks, limited])| {
            // CUBIC and DX grow by laws of their own, and refuse another.
            let is_own = ["cubic", "dx"].iter().any(|name| controller.contains(name));
            let growth = if is_own { "fractions" } else { growth };
            format!(
                "controller = {controller}\nrecovery = '{recovery}'\ngrowth = '{growth}'\nmarked-growth = '{marked}'\n{delayed}
after-idle = '{idle}'\ninitial-window = {initial}\nleast-window = {least}\nhandshake = {handshake}\nect-acks = {ect_acks}
limited-transmit = {limited}\nrto = {{ initial = '5ms', minimum = '5ms', maximum = '100ms' }}"
            )
        },
    )
}

fn transport() -> impl Strategy<Value = String> {
    prop_oneof![4 => tcp(), 1 => paced()]
}

/// A workload; whether all of it comes to an end, and whether it is TCP alone.
fn workload() -> impl Strategy<Value = (String, bool, bool)> {
    let ended = |text: String| (text, true, true);
    prop_oneof![
        3 => (1..60u32, select(vec!["0.01", "0.3", "0.9"]), select(vec!["'30KB'", "'100KB'"]), 1..5u32).prop_map(
            move |(flows, load, sizes, services)| ended(format!(
                "poisson = {{ load = {load}, size = {sizes}, flows = {flows}, services = {{ balanced = {services} }} }}"
            ))
        ),
        2 => (1..100u32, 0..50u32).prop_map(move |(kilobytes, spread)| ended(format!(
            "permutation = {{ size = '{kilobytes}KB', spread = '{spread}us' }}"
        ))),
        1 => (1..30u32).prop_map(move |kilobytes| ended(format!(
            "all-to-all = {{ size = '{kilobytes}KB', services = {{ pair = 4 }} }}"
        ))),
        1 => (1..4u32, 1..60u32).prop_map(move |(rounds, kilobytes)| ended(format!(
            "incast = {{ receiver = 0, block = '{kilobytes}KB', rounds = {rounds} }}"
        ))),
        1 => (1..4u32).prop_map(|count| (format!(
            "long-lived = [{{ src = '0-1', dst = 2, count = {count}, stop = '1ms' }}]"
        ), true, true)),
        1 => select(vec![
            "constant = { rate = '300Mbps' }",
            "saturating = {}",
            "burst = { bytes = '30KB', interval = '100us' }",
            "message = { size = '20KB' }",
        ]).prop_map(|send| (format!(
            "udp = {{ src = '1-2', dst = 0, stop = '500us', stream = {{ send = {{ {send} }} }} }}"
        ), true, false)),
    ]
}

/// Something that not every scenario has.
fn sometimes(text: Vec<&'static str>) -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just(""), 1 => select(text)]
}

/// Hosts, switches and the ports of both.
#[derive(Debug)]
struct Fabric {
    topology: String,
    routing: &'static str,
    switch: String,
    /// What hosts need for the ports of switches.
    stages: &'static str,
    host: &'static str,
    pause: String,
    host_delay: &'static str,
}

fn fabric() -> impl Strategy<Value = Fabric> {
    let choices = (
        topology(),
        select(vec![
            "ecmp",
            "spray",
            "destination-modulo",
            "ns2-hash",
            "ttl-hash",
        ]),
        port(),
        select(vec!["fifo", "as-switch"]),
        sometimes(vec![
            "pause = { high = '6KB', low = '3KB' }",
            "pause = { high = '20KB', low = '1KB' }",
            "pause = { high = '10KB', low = '5KB', per = 'queue' }",
        ]),
        select(vec!["0s", "3us"]),
    );
    choices.prop_map(
        |(topology, routing, (switch, stages), host, pause, host_delay)| Fabric {
            topology,
            routing,
            switch,
            stages,
            host,
            // A pause of one queue needs as many at hosts.
            pause: match host {
                "as-switch" => pause.to_owned(),
                _ => pause.replace(", per = 'queue'", ""),
            },
            host_delay,
        },
    )
}

/// What hosts send.
#[derive(Debug)]
struct Traffic {
    transport: String,
    workload: String,
    /// Whether all of the workload comes to an end, and whether it is TCP alone.
    ends: bool,
    is_tcp: bool,
    transports: &'static str,
    application: Option<&'static str>,
    gates: &'static str,
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let choices = (
        transport(),
        workload(),
        sometimes(vec![
            "[[transports]]\nservices = [1]\nset = { controller = 'cubic', growth = 'fractions', ecn = 'off' }",
            "[[transports]]\nservices = [1]\nset = { controller = 'dcqcn' }",
        ]),
        prop_oneof![2 => Just(None), 1 => select(APPLICATIONS.to_vec()).prop_map(Some)],
        sometimes(vec![
            "[hosts.qjump]\nepoch = '20us'\nexcess = 'hold'\nlevels = ['4KB', '8KB', '16KB', '20KB', '20KB', '20KB', '20KB', '20KB']",
            "[hosts.qjump]\nepoch = '20us'\nexcess = 'hold'\nlevels = ['256B', '4KB', '20KB']\nautomatic = { settle = '100us' }",
            "[hosts.jitter]\nmean = '5us'",
            "[hosts.jitter]\nmean = '30us'\ndistribution = 'uniform'\n[hosts.qjump]\nepoch = '20us'\nexcess = 'hold'\nlevels = ['4KB', '8KB', '16KB', '20KB', '20KB', '20KB', '20KB', '20KB']",
        ]),
    );
    choices.prop_map(
        |(transport, (workload, ends, is_tcp), transports, application, gates)| Traffic {
            transport,
            workload,
            ends,
            is_tcp,
            transports,
            application,
            gates,
        },
    )
}

/// Faults, probes and what is of the run as a whole.
#[derive(Debug)]
struct Rest {
    links: &'static str,
    probes: &'static str,
    connections: &'static str,
    completion: &'static str,
    seed: u16,
    until: &'static str,
}

fn rest() -> impl Strategy<Value = Rest> {
    let choices = (
        sometimes(vec![
            "[[links]]\nlink = 'h0->*'\nloss = 0.05",
            "[[links]]\nlink = '*->h1'\ncorruption = 0.1",
            "[[links]]\nlink = 'h0->*'\ndown = '50us'\nup = '300us'",
        ]),
        sometimes(vec![
            "[probes]\nqueues = { links = 'all', interval = '130us' }",
            "[probes]\nthroughput = { links = '*->h0', interval = '50us' }\ngoodput = { interval = '70us' }",
            "[probes]\nflows = { flows = 'all', interval = '200us' }\nrtt = true",
            "[probes]\nsojourn = ['*->h0']\ncapture = ['*->h1']",
            "[probes]\nping = [{ from = 0, to = 1, start = '10us', interval = '2ms' }]\nthroughput = { links = '*->h1', start = '100us', interval = '50us' }",
        ]),
        select(vec!["per-flow", "persistent"]),
        select(vec!["sender", "receiver"]),
        any::<u16>(),
        prop_oneof![4 => Just("2s"), 1 => Just("400us")],
    );
    choices.prop_map(
        |(links, probes, connections, completion, seed, until)| Rest {
            links,
            probes,
            connections,
            completion,
            seed,
            until,
        },
    )
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    (fabric(), traffic(), rest()).prop_map(|(fabric, traffic, rest)| {
        let hosts = hosts(&fabric, &traffic);
        let is_whole = rest.until == "2s" && rest.links.is_empty();
        Case {
            text: text(&fabric, &traffic, &rest, &hosts),
            is_balanced: is_whole
                && hosts.is_empty()
                && traffic.is_tcp
                && traffic.transports.is_empty()
                && traffic.application.is_none(),
            ideal_is_least: fabric.routing != "spray" && !traffic.transport.contains("delayed-ack"),
            finishes: is_whole
                && traffic.ends
                && fabric.switch.contains("buffer = 'unlimited'")
                && !fabric.switch.contains("not-ect = 'drop'"),
        }
    })
}

/// The table of hosts, which tag either stages or levels.
fn hosts(fabric: &Fabric, traffic: &Traffic) -> String {
    match fabric.stages {
        "" => traffic.gates.to_owned(),
        stages => format!("[hosts]\n{stages}"),
    }
}

fn text(fabric: &Fabric, traffic: &Traffic, rest: &Rest, hosts: &str) -> String {
    let Fabric {
        topology,
        routing,
        switch,
        stages: _,
        host,
        pause,
        host_delay,
    } = fabric;
    let Traffic {
        transport,
        workload,
        transports,
        application,
        ..
    } = traffic;
    let Rest {
        links,
        probes,
        connections,
        completion,
        seed,
        until,
    } = rest;
    let applications = application.map_or_else(String::new, |run| {
        let among_clients = run.contains("barrier") || run.contains("shuffle");
        let servers = if among_clients { "" } else { "servers = '2-3'" };
        format!("[[application]]\nclients = '0-1'\n{servers}\nrun = {run}\n")
    });
    format!(
        "seed = {seed}\nrouting = '{routing}'\nconnections = '{connections}'\ncompletion = '{completion}'\nuntil = '{until}'
topology.{topology}
[ports]\nhost = '{host}'\nhost-delay = '{host_delay}'\npool = '200KB'\n{pause}
[ports.switch]\n{switch}
[transport]\n{transport}
{transports}
{hosts}
[workload]\n{workload}
{applications}
{links}
{probes}\n"
    )
}
