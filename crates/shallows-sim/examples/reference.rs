//! temp bench
use shallows_core::port::PortConfig;
use shallows_core::tcp::TcpConfig;
use shallows_core::units::Time;
use shallows_sim::routing::{Router, RoutingConfig};
use shallows_sim::topology::TopologyConfig;
use shallows_sim::workload::{Workload, list};
use shallows_sim::{Completion, PortSetup, Setup, Simulation, Status};
use std::time::Instant;
fn main() {
    let which = std::env::args().nth(1).unwrap_or("A".into());
    let topo: TopologyConfig = toml::from_str("leaf-spine = { leaves = 12, hosts-per-leaf = 12, spines = 12, host-rate = \"10Gbps\", host-delay = \"20.2us\", fabric-rate = \"10Gbps\", fabric-delay = \"0.2us\" }").unwrap();
    let fabric = topo.build().unwrap();
    let router = Router::new(&fabric, &RoutingConfig::DestinationModulo, 1).unwrap();
    let (file, port, hops) = if which == "A" {
        (
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../data/flows/permutation-10mb.csv"
            ),
            "buffer = { shared = { size = \"300KB\" } }\nscheduler = \"fifo\"\nmarker = { scheme = { per-queue = { threshold = \"65pkts\" } } }",
            7_891_200.0,
        )
    } else {
        (
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../data/flows/web-search-60.csv"
            ),
            "queues = 8\nbuffer = { shared = { size = \"300KB\" } }\nscheduler = { dwrr = { quantum = \"1500B\" } }\nmarker = { scheme = { mq-ecn = { threshold = \"65pkts\" } } }",
            27_547_052.0,
        )
    };
    let port: PortConfig = toml::from_str(port).unwrap();
    let transport: TcpConfig = toml::from_str("initial-window = 16\nreceive-window = 1256\nrto = { initial = \"5ms\", minimum = \"5ms\" }\nect-acks = true\ncontroller = { dctcp = { initial-alpha = 0.0 } }").unwrap();
    let flows = list::read(std::path::Path::new(file), fabric.hosts()).unwrap();
    let setup = Setup {
        fabric,
        router,
        ports: PortSetup {
            switches: port.clone(),
            hosts: port,
            pool: None,
            host_delay: Time::ZERO,
        },
        transport,
        workload: Workload {
            flows,
            ..Workload::default()
        },
        completion: Completion::Sender,
        seed: 1,
    };
    let mut sim = Simulation::new(setup).unwrap();
    let start = Instant::now();
    while sim.run(Time::MAX, 1_000_000) == Status::Running {}
    let wall = start.elapsed().as_secs_f64();
    let p = sim.progress();
    let fcts: Vec<f64> = sim
        .flows()
        .filter_map(|(_, o)| o.fct)
        .map(|t| t.as_secs_f64())
        .collect();
    let mean = fcts.iter().sum::<f64>() / fcts.len() as f64;
    let (rt, to): (u32, u32) = sim
        .flows()
        .fold((0, 0), |a, (_, o)| (a.0 + o.retransmits, a.1 + o.timeouts));
    println!(
        "{which}: {:.2} M useful hops/s, {wall:.3} s, {} hops, {:.3} events/hop, done {}, mean fct {:.3} ms, retx {rt} timeouts {to}, sim {}",
        hops / wall / 1e6,
        p.packet_hops,
        p.events as f64 / p.packet_hops as f64,
        p.done,
        mean * 1e3,
        p.now
    );
}
