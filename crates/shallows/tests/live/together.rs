//! QJUMP and XCo in one live run.

use shallows_testing::{alone, skip};

use crate::runs::unable;
use crate::support::{directory, read_text, shallows, write};

/// Two hosts flood a third one; a fourth sends it packets of 1 KB at QJUMP's top level.
const SCENARIO: &str = r#"
until = "600ms"
topology.star = { hosts = 4, rate = "50Mbps", delay = "50us" }
[ports.switch]
queues = 2
buffer = { per-queue = { limit = "100KB" } }
scheduler = "strict"
[[workload]]
udp = { src = "0-1", dst = 3, service = 1, stream = { send = { constant = { rate = "40Mbps", size = "1400B" } } } }
[[application]]
name = "ping"
clients = 2
servers = 3
start = "100ms"
run = { ping = { interval = "20ms", size = "1000B" } }
[hosts]
qjump = { epoch = "5ms", levels = ["3KB", "1MB"], excess = "hold" }
xco = { slot = "10ms" }
"#;

/// Slots that the coordinator of host 2 received, and the median round trip in us.
fn run(settings: &[&str]) -> (u64, f64) {
    let directory = directory();
    write(&directory, "both.toml", SCENARIO);
    let mut command = shallows(&directory).args(["run", "--live", "both.toml", "--out", "out"]);
    for setting in settings {
        command = command.args(["--set", setting]);
    }
    let output = command.output().unwrap();
    // A busy machine is late, which changes no count.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() || said.contains("not to be believed"),
        "{said}"
    );
    let json =
        |name| -> serde_json::Value { serde_json::from_str(&read_text(&directory, name)).unwrap() };
    let latencies = &json("out/summary.json")["latencies"][0];
    assert!(latencies["count"].as_u64() > Some(10), "{latencies}");
    let coordinators = json("out/live.json")["switch"]["coordinators"].clone();
    let slots = coordinators[2]["slots"].as_u64();
    let slots = slots.unwrap_or_else(|| panic!("{coordinators}"));
    (slots, latencies["latency_us"]["p50"].as_f64().unwrap())
}

#[test]
fn qjumps_top_level_passes_xcos_gates() {
    if let Some(reason) = unable() {
        skip!("{reason}");
    }
    let _alone = alone();
    let (slots, waits) = run(&[]);
    assert!(slots > 5, "{slots}");
    let (slots, passes) = run(&["hosts.xco.gate.pass-dscp=0"]);
    assert_eq!(slots, 0, "nothing waits for permission");
    println!("median round trip: {waits:.0} us by slots, {passes:.0} us past the gates");
}
