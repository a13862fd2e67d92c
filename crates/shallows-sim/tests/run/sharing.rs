//! Long flows of every controller: one alone, and three in a parking lot where each has a queue of
//! its own. Losses, recoveries and timeouts must not keep them from their share.

use shallows_core::port::PortConfig;
use shallows_core::tcp::{ControllerConfig, TcpConfig};
use shallows_core::units::Time;
use shallows_model::workload::FlowSpec;

use crate::world::{World, endless};

/// A flow across two links of 15 Gbps, and one across each of them: 7.5 Gbps each by max-min.
const PARKING_LOT: &str = r#"
    [custom]
    hosts = 6
    switches = 3
    links = [
        { between = ["h0", "s0"], rate = "40Gbps", delay = "5us" },
        { between = ["h1", "s0"], rate = "40Gbps", delay = "5us" },
        { between = ["h2", "s1"], rate = "40Gbps", delay = "5us" },
        { between = ["h3", "s2"], rate = "40Gbps", delay = "5us" },
        { between = ["h4", "s1"], rate = "40Gbps", delay = "5us" },
        { between = ["h5", "s2"], rate = "40Gbps", delay = "5us" },
        { between = ["s0", "s1"], rate = "15Gbps", delay = "5us" },
        { between = ["s1", "s2"], rate = "15Gbps", delay = "5us" },
    ]"#;

/// A path with a bottleneck of 7.5 Gbps and a round trip of 100 us: 94 KB.
const LONE: &str = r#"dumbbell = { left = 1, right = 1, rate = "40Gbps", delay = "2us", uplink-rate = "7.5Gbps", uplink-delay = "46us" }"#;

/// 100 KB for each queue, without marks: those that wait for marks hear of losses only.
fn queues(count: usize) -> PortConfig {
    toml::from_str(&format!(
        r#"
        queues = {count}
        buffer = {{ per-queue = {{ limit = "100KB" }} }}
        scheduler = {{ dwrr = {{ quantum = "1500B" }} }}
        "#
    ))
    .expect("the test's port is sound")
}

/// 7.5 Gbps as payload: 1460 of 1500 bytes.
const SHARE: f64 = 7.5 * 1460.0 / 1500.0;

fn transport(controller: &str) -> String {
    // Delays below any that these paths have would make a controller that listens to them yield.
    let controller = match controller {
        "delay-dctcp" | "ear" => format!("{{ {controller} = {{ t = \"500us\" }} }}"),
        name => format!("\"{name}\""),
    };
    format!("rto = {{ initial = \"10ms\", minimum = \"10ms\" }}\ncontroller = {controller}")
}

/// All but those of RoCE: they do not slow down for losses, and need marks or pauses.
fn controllers() -> impl Iterator<Item = &'static str> {
    let is_paced = |name: &str| {
        let config: TcpConfig = toml::from_str(&transport(name)).expect("it is a transport");
        config.is_paced()
    };
    let names = ControllerConfig::names().iter().copied();
    names.filter(move |name| !is_paced(name))
}

/// Rates of the flows between 0.1 s and 0.5 s, in Gbps of payload, and their timeouts then.
fn rates(topology: &str, controller: &str, flows: &[(u32, u32)]) -> Vec<(f64, u32)> {
    let specs = flows.iter().zip(0..);
    let specs = specs.map(|(&(src, dst), service)| FlowSpec {
        service,
        ..endless(src, dst)
    });
    let world = World {
        switches: queues(flows.len()),
        ..World::new(topology, &transport(controller), specs.collect())
    };
    let (begin, end) = (Time::from_ms(100), Time::from_ms(500));
    let mut run = world.stopping(end).start();
    run.until(begin);
    let before: Vec<_> = run.flows().map(|(_, of)| of).collect();
    run.until(end);
    let after = run.flows().zip(before);
    after
        .map(|((_, of), before)| {
            let bits = (of.delivered - before.delivered) as f64 * 8.0;
            (bits / 0.4 / 1e9, of.timeouts - before.timeouts)
        })
        .collect()
}

#[test]
fn a_lone_flow_fills_its_path_without_timeouts() {
    for controller in controllers() {
        let (rate, timeouts) = rates(LONE, controller, &[(0, 1)])[0];
        assert!(rate > 0.99 * SHARE, "{controller}: {rate:.3} Gbps");
        assert_eq!(timeouts, 0, "{controller}");
    }
}

#[test]
fn a_parking_lot_with_a_queue_for_each_flow_is_max_min_fair() {
    for controller in controllers() {
        let rates = rates(PARKING_LOT, controller, &[(0, 3), (1, 4), (2, 5)]);
        for (rate, _) in &rates {
            assert!(*rate > 0.99 * SHARE, "{controller}: {rates:.3?}");
        }
    }
}
