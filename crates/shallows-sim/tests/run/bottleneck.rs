//! Long flows through one bottleneck behave as the theory of their congestion control says.

use shallows_core::port::PortConfig;
use shallows_core::units::Time;
use shallows_sim::Status;

use crate::world::{World, flow};

/// Ten 10 Gbps hosts around a switch, 20 us apart: a round trip of about 82 us, 69 packets.
const STAR: &str = r#"star = { hosts = 11, rate = "10Gbps", delay = "20us" }"#;

fn marked(threshold: &str) -> PortConfig {
    toml::from_str(&format!(
        r#"
        buffer = {{ shared = {{ size = "2MB" }} }}
        scheduler = "fifo"
        marker = {{ scheme = {{ per-queue = {{ threshold = "{threshold}" }} }} }}
        "#
    ))
    .expect("the test's port is sound")
}

/// Share of the bottleneck's capacity that `senders` long flows use between 20 and 60 ms.
fn utilisation(controller: &str, threshold: &str, senders: u32) -> f64 {
    let transport = format!("initial-window = 16\ncontroller = {controller}");
    let flows = (0..senders)
        .map(|src| flow(Time::ZERO, src, 10, 1_000_000))
        .collect();
    // A single sender's bottleneck is its own port.
    let world = World {
        switches: marked(threshold),
        hosts: marked(threshold),
        ..World::new(STAR, &transport, flows)
    };
    let mut simulation = world.start();
    // Host 10 receives from link 21.
    let mut sent_until = |end: Time| {
        while simulation.run(end, 1_000_000) == Status::Running {}
        simulation.port(21).queued(0).bytes
    };
    let before = sent_until(Time::from_ms(20));
    let after = sent_until(Time::from_ms(60));
    (after - before) as f64 * 8.0 / 0.040 / 10e9
}

#[test]
fn dctcp_fills_the_link_at_the_recommended_threshold() {
    for senders in [1, 2, 5, 10] {
        let share = utilisation("{ dctcp = {} }", "65pkts", senders);
        assert!(share >= 0.99, "{senders} senders: {share:.4}");
    }
}

/// MQ-ECN §5.3.2: "with zero buffering, DCTCP can maintain 94% throughput in theory while ECN*
/// only achieves 75%".
#[test]
fn without_a_buffer_dctcp_keeps_94_percent_and_ecn_star_75() {
    let dctcp = utilisation("{ dctcp = {} }", "1pkt", 1);
    assert!(dctcp >= 0.90, "{dctcp:.4}");
    let ecn_star = utilisation("\"ecn-star\"", "1pkt", 1);
    assert!((0.72..0.82).contains(&ecn_star), "{ecn_star:.4}");
    assert!(dctcp > ecn_star + 0.1);
}

#[test]
fn equal_long_flows_share_equally() {
    let flows = (0..10)
        .map(|src| flow(Time::ZERO, src, 10, 1_000_000))
        .collect();
    let world = World {
        switches: marked("65pkts"),
        ..World::new(STAR, "controller = { dctcp = {} }", flows)
    };
    let mut simulation = world.start();
    let mut queued_until = |end: Time| -> Vec<f64> {
        while simulation.run(end, 1_000_000) == Status::Running {}
        (0..10)
            .map(|host| simulation.port(2 * host).queued(0).bytes as f64)
            .collect()
    };
    let before = queued_until(Time::from_ms(50));
    let after = queued_until(Time::from_ms(250));
    let shares: Vec<_> = after.iter().zip(before).map(|(a, b)| a - b).collect();
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let jain = sum * sum / (10.0 * squares);
    assert!(jain > 0.99, "{jain:.4}");
}

/// Fig. 6 in small: one flow in one queue against four in the other, under DWRR and MQ-ECN.
#[test]
fn dwrr_shares_do_not_depend_on_the_number_of_flows() {
    let mut flows: Vec<_> = (0..5)
        .map(|src| flow(Time::ZERO, src, 10, 1_000_000))
        .collect();
    for (src, flow) in flows.iter_mut().enumerate() {
        flow.service = u16::from(src > 0);
    }
    let switches = toml::from_str(
        r#"
        queues = 2
        buffer = { shared = { size = "300KB" } }
        scheduler = { dwrr = { quantum = "1500B" } }
        marker = { scheme = { mq-ecn = { threshold = "65pkts" } } }
        "#,
    )
    .expect("the test's port is sound");
    let world = World {
        switches,
        ..World::new(
            STAR,
            "initial-window = 16\ncontroller = { dctcp = {} }",
            flows,
        )
    };
    let mut simulation = world.start();
    let mut queued_until = |end: Time| {
        while simulation.run(end, 1_000_000) == Status::Running {}
        [0, 1].map(|queue| simulation.port(21).queued(queue).bytes)
    };
    let before = queued_until(Time::from_ms(20));
    let after = queued_until(Time::from_ms(100));
    let [one, four] = [0, 1].map(|queue| (after[queue] - before[queue]) as f64);
    let total = (one + four) * 8.0 / 0.080 / 10e9;
    assert!((one / four - 1.0).abs() < 0.01, "{:.4}", one / four);
    assert!(total > 0.99, "{total:.4}");
}
