use std::thread;
use std::time::Duration;

use shallows_core::units::Rate;
use shallows_live::lab::{self, Lab};
use shallows_live::switch::Forwarding;
use shallows_testing::{missing_program, skip};

use crate::{Running, at, need_a_lab, ping, plan, switch_config};

pub(crate) const FIFO: &str = "buffer = { shared = { size = \"96KB\" } }\nscheduler = \"fifo\"";

#[test]
fn a_learning_switch_carries_arp_and_ping() {
    need_a_lab!();
    let lab = Lab::build(&plan(3)).unwrap();
    let mut config = switch_config(3, Rate::from_mbps(100), FIFO);
    config.forwarding = Forwarding::Learning;
    let switch = Running::start(&lab, config);
    // Without the neighbours that the lab knows, hosts have to ask.
    at(&lab, 0, "ip neigh flush all nud permanent");
    ping(&lab, 0, lab::address(2), 0, 5);
    let report = switch.stop();
    let received: Vec<u64> = report
        .snapshot
        .devices
        .iter()
        .map(|(_, counters)| counters.frames)
        .collect();
    assert!(received[0] >= 5 && received[2] >= 5, "{received:?}");
    let not_ip = report.snapshot.devices[0].1.not_ip;
    assert!(not_ip > 0, "ARP came through");
    assert_eq!(report.snapshot.frames, 0, "nothing stays behind");
}

#[test]
fn iperf3_is_shaped_and_nothing_is_lost_on_the_way() {
    need_a_lab!();
    if let Some(reason) = missing_program(&["iperf3"]) {
        skip!("{reason}");
    }
    let lab = Lab::build(&plan(2)).unwrap();
    let egress = "buffer = { shared = { size = \"300KB\" } }\nscheduler = \"fifo\"
        marker = { scheme = { per-queue = { threshold = \"32KB\" } } }";
    let switch = Running::start(&lab, switch_config(2, Rate::from_mbps(50), egress));
    at(&lab, 1, "iperf3 -s -D -1");
    thread::sleep(Duration::from_millis(300));
    let client = at(&lab, 0, &format!("iperf3 -c {} -t 2 -J", lab::address(1)));
    let report = switch.stop();
    let text = String::from_utf8_lossy(&client.stdout);
    assert!(client.status.success(), "{text}");
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mbps = result["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .unwrap()
        / 1e6;
    // 50 Mbps x 1448 / 1538 is the most that fits; the least only shows that it works at all.
    assert!(mbps < 47.2, "{mbps} Mbps is more than the link carries");
    assert!(mbps > 5.0, "{mbps} Mbps");
    let snapshot = &report.snapshot;
    assert!(
        snapshot.marks() > 0,
        "a window of 300 KB must pass the threshold"
    );
    for (device, counters) in &snapshot.devices {
        let odd = counters.oversized + counters.unfinished + counters.runts + counters.missed;
        assert_eq!(odd, 0, "{device}: {counters:?}");
    }
    println!("{mbps:.1} Mbps\n{snapshot}");
}
