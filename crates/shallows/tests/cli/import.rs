//! `shallows import`.

use std::fs;

use serde_json::Value;
use shallows_testing::skip;
use snapbox::str;
use tempfile::TempDir;

use crate::{directory, read_text, shallows, write};

/// A run whose packets are captured where hosts send them.
const CAPTURED: &str = r#"
seed = 1
[topology.leaf-spine]
leaves = 2
hosts-per-leaf = 4
spines = 2
host-rate = "10Gbps"
host-delay = "5us"
fabric-rate = "10Gbps"
fabric-delay = "1us"
[ports]
host = "as-switch"
[ports.switch]
queues = 2
buffer = { shared = { size = "300KB" } }
scheduler = { dwrr = { quantum = "1500B" } }
marker = { scheme = { per-queue = { threshold = "30KB" } } }
[transport]
rto = { initial = "5ms", minimum = "5ms" }
[workload.poisson]
load = 0.5
size = { cdf = "web-search" }
flows = 150
services = { balanced = 2 }
[probes]
capture = ["h*->*"]
"#;

fn summary(directory: &TempDir, run: &str) -> Value {
    let text = read_text(directory, &format!("out/{run}/summary.json"));
    serde_json::from_str(&text).expect("it is JSON")
}

/// Mean and p99 of the completion times of all flows.
fn fct(summary: &Value) -> (f64, f64) {
    let fct = &summary["classes"]["all"]["fct_us"];
    let number = |name: &str| fct[name].as_f64().expect("a number");
    (number("mean"), number("p99"))
}

#[test]
fn a_capture_of_a_run_is_the_same_run_again() {
    let directory = directory();
    write(&directory, "fabric.toml", CAPTURED);
    shallows(&directory)
        .args(["run", "fabric.toml"])
        .assert()
        .success();
    shallows(&directory)
        .args(["import", "out/fabric/capture.pcapng", "--out", "traffic", "--rate", "10Gbps"])
        .assert()
        .success()
        .stdout_eq(str![[r#"
150 flows between 8 hosts in [..] s
service 0: [..] flows, [..] bytes, [..]% of the hosts' links
service 1: [..] flows, [..] bytes, [..]% of the hosts' links
written to traffic: load.csv, flows.csv, workload.toml, sizes-0.csv, sizes-1.csv, poisson.toml, hosts.csv

"#]]);
    shallows(&directory)
        .args([
            "run",
            "fabric.toml",
            "--flows",
            "traffic/flows.csv",
            "--out",
            "out/again",
        ])
        .assert()
        .success();
    let (before, after) = (summary(&directory, "fabric"), summary(&directory, "again"));
    let ((mean, p99), (again_mean, again_p99)) = (fct(&before), fct(&after));
    println!("mean {mean} and {again_mean} us, p99 {p99} and {again_p99} us");
    assert!(
        (again_mean / mean - 1.0).abs() < 0.1,
        "{mean} and {again_mean}"
    );
    assert!((again_p99 / p99 - 1.0).abs() < 0.2, "{p99} and {again_p99}");
    // Random arrivals with the loads and sizes make a scenario too.
    let fabric = CAPTURED.split("[workload.poisson]").next().expect("a part");
    let poisson = read_text(&directory, "traffic/poisson.toml");
    write(
        &directory,
        "traffic/random.toml",
        &format!("{fabric}{poisson}"),
    );
    shallows(&directory)
        .args(["run", "traffic/random.toml"])
        .assert()
        .success();
}

#[test]
fn wireshark_reads_the_same_flows() {
    let tool = std::process::Command::new("tshark")
        .arg("--version")
        .output();
    if !tool.is_ok_and(|output| output.status.success()) {
        skip!("tshark is not installed");
    }
    let directory = directory();
    let scenario = CAPTURED.replace("flows = 150", "flows = 20");
    write(&directory, "fabric.toml", &scenario);
    shallows(&directory)
        .args(["run", "fabric.toml"])
        .assert()
        .success();
    // The older format, and one record for each conversation.
    let capture = directory.path().join("out/fabric/capture.pcapng");
    let old = directory.path().join("old.pcap");
    let convert = std::process::Command::new("tshark")
        .args(["-F", "nsecpcap", "-r"])
        .arg(&capture)
        .arg("-w")
        .arg(&old)
        .output()
        .expect("tshark runs");
    assert!(convert.status.success(), "{convert:?}");
    for (source, out) in [("out/fabric/capture.pcapng", "new"), ("old.pcap", "old")] {
        shallows(&directory)
            .args(["import", source, "--out", out])
            .assert()
            .success();
    }
    let flows = read_text(&directory, "new/flows.csv");
    assert_eq!(flows.lines().count(), 21);
    assert_eq!(read_text(&directory, "old/flows.csv"), flows);
}

#[test]
fn sources_that_are_nothing_known_and_bad_maps_are_refused() {
    let directory = directory();
    write(&directory, "conn.log", "#separator \\x09\n#fields\tts\n");
    write(&directory, "noise", "noise");
    write(&directory, "hosts.csv", "prefix,host\n10.0.0.0/40,1\n");
    let import = |arguments: &[&str]| {
        shallows(&directory)
            .arg("import")
            .args(arguments)
            .assert()
            .code(2)
    };
    import(&["none.pcapng"]);
    import(&["noise"]).stderr_eq(str![[r#"
error: noise: this is none of pcapng, pcap, NetFlow v9, IPFIX, sFlow v5, Zeek's conn.log and a log of ss

"#]]);
    import(&["conn.log"]).stderr_eq(str![[r#"
error: conn.log: line 2: conn.log has no column id.orig_h

"#]]);
    import(&["noise", "--hosts", "hosts.csv"]).stderr_eq(str![[r#"
error: hosts.csv: line 2: write a prefix such as 10.0.1.0/24, and a host

"#]]);
    assert!(
        fs::read_dir(directory.path().join("out")).is_err(),
        "nothing is written"
    );
}
