//! What a packet costs: nanoseconds, and instructions counted by callgrind.
//!
//! `cargo bench -p shallows-core` prints one line for each scheduler and marker, with 1, 8 and 32
//! backlogged queues, and ends with the lines that are compared with our goals. An argument keeps
//! only the cases whose name contains it: `cargo bench -p shallows-core -- dwrr`.
//!
//! A packet is offered and transmitted at a port whose queues hold four packets each. Thresholds
//! are above that, so every comparison runs and no packet is marked, but for the line that says so
//! and for the random marks of RED and ML-ECN. The lines that begin with "empty" are of packets
//! that find the port empty and pass it at once. Times are the best of several runs, since a shared machine can only make them longer.
//! Instructions are the difference between two runs of different length under valgrind, so start-up
//! cancels out, less those of the same loop without the port, which makes up the packets; without
//! valgrind the column is empty.

use std::env;
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use shallows_core::host::qjump::{Level, Limiter, LimiterConfig};
use shallows_core::packet::{Descriptor, Ecn};
use shallows_core::port::{EgressPort, Forward, Pool, PortConfig, Transmit};
use shallows_core::units::{Bytes, Rate, Time};

const QUEUES: [usize; 3] = [1, 8, 32];
const DRIVER: &str = "driver";
const RUNS: usize = 15;
const PACKETS: u64 = 100_000;

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, case, queues, packets] = args.as_slice()
        && flag == "--count"
    {
        let number = |text: &String| text.parse().expect("callgrind runs pass numbers");
        run(case, number(queues) as usize, number(packets));
        return;
    }
    let filter = args.first().map_or("", String::as_str);
    report(filter);
}

fn report(filter: &str) {
    let cycle = cycle_time();
    println!("best of {RUNS} runs of {PACKETS} packets; a cycle takes {cycle:.3} ns\n");
    println!(
        "{:<28} {:^24} {:^24}",
        "", "ns a packet", "instructions a packet"
    );
    println!(
        "{:<28} {:>24} {:>24}",
        "backlogged queues", "1      8     32", "1      8     32"
    );
    for name in cases().filter(|name| name.contains(filter)) {
        let row = |measure: &dyn Fn(usize) -> Option<f64>, digits| -> String {
            let cell = |&queues: &usize| match measure(queues) {
                Some(value) => format!("{value:>6.digits$} "),
                None => format!("{:>6} ", "-"),
            };
            QUEUES.iter().map(cell).collect()
        };
        let ns = row(&|queues| nanoseconds(&name, queues), 1);
        let instructions = row(&|queues| instructions(&name, queues), 0);
        println!("{name:<28} {ns:>24} {instructions:>24}");
    }
    compare("dwrr + mq-ecn", 8, filter, |ns| {
        format!("{ns:.1} ns (goal 60)")
    });
    compare("qjump limiter", 1, filter, |ns| {
        let cycles = ns / cycle;
        format!("{cycles:.1} cycles (the paper's kernel module: 35.2)")
    });
}

fn compare(name: &str, queues: usize, filter: &str, time: impl Fn(f64) -> String) {
    if !name.contains(filter) {
        return;
    }
    let Some(ns) = nanoseconds(name, queues) else {
        return;
    };
    let count = match instructions(name, queues) {
        Some(count) if name == "qjump limiter" => format!("{count:.0} instructions"),
        Some(count) => format!("{count:.0} instructions (goal 350)"),
        None => "instructions not counted: valgrind is not installed".into(),
    };
    println!("\n{name}, {queues} active: {}, {count}", time(ns));
}

/// Every case by name: a scheduler and a marker, or a host mechanism.
fn cases() -> impl Iterator<Item = String> {
    let schedulers = SCHEDULERS
        .iter()
        .map(|(name, _)| format!("{name} + per-queue"))
        .filter(|name| name != "dwrr + per-queue");
    let markers = MARKERS.iter().map(|(name, _)| format!("dwrr + {name}"));
    let others = [
        "empty fifo + per-queue",
        "empty dwrr + mq-ecn",
        "qjump limiter",
    ];
    schedulers.chain(markers).chain(others.map(Into::into))
}

const SCHEDULERS: [(&str, &str); 8] = [
    ("fifo", r#""fifo""#),
    ("strict", r#""strict""#),
    ("wrr", r#"{ wrr = { quantum = "1500B" } }"#),
    ("dwrr", r#"{ dwrr = { quantum = "1500B" } }"#),
    ("wfq", "{ wfq = { weight = 1 } }"),
    (
        "strict over wrr",
        r#"{ strict-over = { strict = 1, rest = "wrr", quantum = "1500B" } }"#,
    ),
    (
        "strict over dwrr",
        r#"{ strict-over = { strict = 1, rest = "dwrr", quantum = "1500B" } }"#,
    ),
    ("pfabric", r#""pfabric""#),
];

/// `K` stands for five packets times the number of queues.
const MARKERS: [(&str, &str); 18] = [
    ("none", r#""none""#),
    ("per-queue", r#"{ per-queue = { threshold = "5pkts" } }"#),
    (
        "per-queue-minimum",
        r#"{ per-queue-minimum = { threshold = "Kpkts" } }"#,
    ),
    ("per-port", r#"{ per-port = { threshold = "Kpkts" } }"#),
    ("per-pool", r#"{ per-pool = { threshold = "Kpkts" } }"#),
    ("ecn-star", r#"{ ecn-star = { threshold = "5pkts" } }"#),
    ("mq-ecn", r#"{ mq-ecn = { threshold = "Kpkts" } }"#),
    (
        "mq-ecn marking all",
        r#"{ mq-ecn = { threshold = "1pkt" } }"#,
    ),
    (
        "mq-ecn interval",
        r#"{ mq-ecn = { threshold = "Kpkts", update = { interval = "7.2us" } } }"#,
    ),
    (
        "mq-ecn ramp",
        r#"{ mq-ecn = { threshold = "Kpkts", ramp = { k-min = "1pkt", p-max = 0.01 } } }"#,
    ),
    ("ml-ecn", r#"{ ml-ecn = { threshold = "Kpkts" } }"#),
    (
        "red",
        r#"{ red = { min = "2pkts", max = "80pkts", max-probability = 0.1, average = { ewma = 0.002 } } }"#,
    ),
    ("tcn", r#"{ tcn = { sojourn = "1ms" } }"#),
    ("pmsb", r#"{ pmsb = { port = "Kpkts", queue = "5pkts" } }"#),
    (
        "cedm",
        r#"{ cedm = { enqueue = "5pkts", dequeue = "5pkts" } }"#,
    ),
    ("a-ecn", r#"{ a-ecn = { threshold = "Kpkts" } }"#),
    ("mm-ecn", r#"{ mm-ecn = { threshold = "5pkts" } }"#),
    ("demepro", r#"{ demepro = { threshold = "Kpkts" } }"#),
];

/// Runs `packets` packets of a case; the time per packet is the caller's to measure. `None` if the
/// case does not exist with this many queues.
fn run(case: &str, queues: usize, packets: u64) -> Option<Duration> {
    if case == "qjump limiter" {
        return (queues == 1).then(|| run_limiter(packets));
    }
    if case == DRIVER {
        return Some(run_driver(queues, packets));
    }
    let empty = case.starts_with("empty ");
    let (scheduler, marker) = case.trim_start_matches("empty ").split_once(" + ")?;
    let find = |list: &[(&str, &'static str)], name: &str| {
        list.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, toml)| *toml)
    };
    let scheduler = find(&SCHEDULERS, scheduler)?;
    let marker = find(&MARKERS, marker)?.replace("Kpkts", &format!("{}pkts", 5 * queues));
    let large = queues.saturating_sub(5);
    let classes = format!("small = 2, medium = 3, large = {large}, t-small = 2, t-large = 7");
    let classifier = if marker.contains("ml-ecn") {
        format!("{{ size-class = {{ {classes} }} }}")
    } else {
        r#""dscp""#.to_owned()
    };
    let config: PortConfig = toml::from_str(&format!(
        r#"
        queues = {queues}
        classifier = {classifier}
        buffer = {{ shared = {{ size = "300KB" }} }}
        scheduler = {scheduler}
        marker = {{ scheme = {marker} }}
        "#
    ))
    .ok()?;
    let port = EgressPort::new(Rate::from_gbps(10), &config, 1, 1).ok()?;
    Some(if empty {
        run_empty_port(port, queues, packets)
    } else {
        run_port(port, queues, packets)
    })
}

fn test_packet(queue: usize) -> Descriptor {
    Descriptor {
        size: 1500,
        flow: queue as u64,
        // With ML-ECN's classifier this is a stage, and eight of them cover all classes.
        dscp: queue as u8,
        ecn: Ecn::Ect0,
        remaining: 1500,
        ..Descriptor::default()
    }
}

/// The loop of the port's cases without the port.
fn run_driver(queues: usize, packets: u64) -> Duration {
    let mut queue = 0;
    let start = Instant::now();
    for _ in 0..packets {
        black_box(test_packet(queue));
        queue = if queue + 1 == queues { 0 } else { queue + 1 };
    }
    start.elapsed()
}

fn run_empty_port(mut port: EgressPort<Descriptor>, queues: usize, packets: u64) -> Duration {
    let mut pool = Pool::unlimited();
    let mut queue = 0;
    let start = Instant::now();
    for _ in 0..packets {
        let now = port.busy_until();
        let mut packet = test_packet(queue);
        if let Forward::Sent(passage) = port.forward(now, &mut packet, &mut pool) {
            black_box((packet.tag, passage.finish));
        }
        queue = if queue + 1 == queues { 0 } else { queue + 1 };
    }
    start.elapsed()
}

fn run_port(mut port: EgressPort<Descriptor>, queues: usize, packets: u64) -> Duration {
    let mut pool = Pool::unlimited();
    for n in 0..4 * queues {
        port.offer(Time::ZERO, test_packet(n % queues), &mut pool);
    }
    let mut queue = 0;
    let start = Instant::now();
    for _ in 0..packets {
        let now = port.busy_until();
        if let Transmit::Packet(departure) = port.transmit(now, &mut pool) {
            black_box(departure.packet.tag);
        }
        port.offer(now, test_packet(queue), &mut pool);
        queue = if queue + 1 == queues { 0 } else { queue + 1 };
    }
    start.elapsed()
}

fn run_limiter(packets: u64) -> Duration {
    let config = LimiterConfig {
        epoch: Time::from_us(100),
        levels: (0..8).map(|level| Bytes::new(128 << level)).collect(),
        ..LimiterConfig::default()
    };
    let mut limiter = Limiter::new(&config, Time::ZERO).expect("the limits are sound");
    let level = |n: u64| Level::new((n % 8) as u8).expect("there are eight levels");
    let start = Instant::now();
    for n in 0..packets {
        black_box(limiter.admit(Time::from_ns(n * 500), level(n), 128));
    }
    start.elapsed()
}

fn nanoseconds(case: &str, queues: usize) -> Option<f64> {
    let best = (0..RUNS).map(|_| run(case, queues, PACKETS)).min()??;
    Some(best.as_secs_f64() * 1e9 / PACKETS as f64)
}

/// Instructions per packet that the mechanism itself takes.
fn instructions(case: &str, queues: usize) -> Option<f64> {
    let all = counted_instructions(case, queues)?;
    match case {
        "qjump limiter" => Some(all),
        _ => Some(all - counted_instructions(DRIVER, queues)?),
    }
}

/// Instructions per packet, as the difference of a long and a short run.
fn counted_instructions(case: &str, queues: usize) -> Option<f64> {
    const SHORT: u64 = 1_000;
    const LONG: u64 = 11_000;
    run(case, queues, 1)?;
    let count = |packets: u64| -> Option<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(env::current_exe().ok()?)
            .args(["--count", case, &queues.to_string(), &packets.to_string()])
            .output()
            .ok()?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let collected = log
            .lines()
            .find_map(|line| line.split_once("Collected : "))?;
        collected.1.trim().parse().ok()
    };
    Some((count(LONG)? - count(SHORT)?) / (LONG - SHORT) as f64)
}

/// Nanoseconds per core cycle, from a chain of dependent multiplications and additions that takes
/// four cycles a link on every x86-64 and AArch64 core of the last decade.
fn cycle_time() -> f64 {
    const LINKS: u32 = 1_000_000;
    let chain = || {
        let start = Instant::now();
        let mut x = black_box(1_u64);
        for _ in 0..LINKS {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(x >> 63);
        }
        black_box(x);
        start.elapsed()
    };
    let best = (0..RUNS).map(|_| chain()).min().expect("there is a run");
    best.as_secs_f64() * 1e9 / f64::from(LINKS) / 4.0
}
