//! QJUMP's planner from the command line.

use std::fs;

use snapbox::str;

use crate::{directory, read_text, shallows, shipped, write};

#[test]
fn the_papers_mix_is_planned_and_written() {
    let directory = directory();
    let network = ["--hosts", "12", "--rate", "10Gbps", "--processing", "4us"];
    shallows(&directory)
        .args(["qjump", "plan"])
        .args(network)
        .args(["--app", "ptpd=guaranteed", "--app", "memcached=1Gbps"])
        .args(["--app", "hadoop=bulk", "--write", "plan"])
        .assert()
        .success()
        .stdout_eq(str![[r#"
network epoch 8.9152us = 2 x 12 hosts x 256B / 10.0 Gbps + 4us (eq. 2)

level DSCP service        f  senders   an epoch       rate  latency              applications
    2   16       0        1       12       256B   230 Mbps  guaranteed 8.92 us   ptpd
    1    8       1     4.36     2.76      1115B  1.00 Gbps  expected 13.8 us     memcached
    0    0       2       12        1  unlimited  10.0 Gbps  no bound             hadoop

level and DSCP: on real hosts; service: in a simulated scenario, where strict switches serve service 0 first
expected: while no more than so many senders a level send to one host at once
written to plan: qjump.toml, hosts.toml, levels.svg,[..] levels.csv

"#]]);
    let limits = read_text(&directory, "plan/qjump.toml");
    // 8.9152 us, rounded up to whole nanoseconds.
    assert!(limits.contains("epoch = \"8.916us\""), "{limits}");
    assert!(
        limits.contains("levels = [\"unlimited\", \"1115B\", \"256B\"]"),
        "{limits}"
    );
    let png = fs::read(directory.path().join("plan/levels.png"));
    assert!(png.is_ok_and(|png| png.len() > 1000) || !cfg!(feature = "png"));
}

#[test]
fn what_is_written_runs_as_a_scenario() {
    let directory = directory();
    let scenario = shipped("quickstart.toml");
    let plan = ["qjump", "plan", "--factors", "16,4,1", "--packet", "1500B"];
    shallows(&directory)
        .args(plan)
        .arg("--scenario")
        .arg(&scenario)
        .args(["--write", "plan"])
        .assert()
        .success();
    let hosts = read_text(&directory, "plan/hosts.toml");
    write(
        &directory,
        "with.toml",
        &(crate::TINY.to_owned() + "\n" + &hosts),
    );
    shallows(&directory)
        .args(["run", "with.toml"])
        .assert()
        .success();
}

#[test]
fn levels_in_the_papers_order_are_refused_in_a_scenario() {
    let directory = directory();
    let levels = r#"hosts.qjump={ epoch = "20us", levels = ["20KB", "256B"] }"#;
    write(&directory, "tiny.toml", crate::TINY);
    let run = |scheduler: &str| {
        shallows(&directory)
            .args(["run", "tiny.toml", "--set", levels])
            .args(["--set", "ports.switch.queues=2", "--set", scheduler])
            .output()
            .unwrap()
    };
    let output = run("ports.switch.scheduler=strict");
    let text = String::from_utf8(output.stderr).unwrap();
    let problem = "service 0 is served before service 1 and may send more";
    assert!(!output.status.success() && text.contains(problem), "{text}");
    let output = run("ports.switch.scheduler={ dwrr = { quantum = \"1500B\" } }");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains(problem), "{text}");
}

#[test]
fn a_scenario_gives_the_network_and_what_breaks_the_bound() {
    let directory = directory();
    let output = shallows(&directory)
        .args(["qjump", "plan", "--factors", "16,1", "--scenario"])
        .arg(shipped("quickstart.toml"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("2 x 16 hosts x 256B / 10.0 Gbps"), "{text}");
    assert!(text.contains("hosts send up to 1500B"), "{text}");
    // It has DWRR queues.
    assert!(
        text.contains("serve 1 queues in strict priority, there are 2 levels"),
        "{text}"
    );
}

#[test]
fn a_distribution_is_cut_into_levels() {
    let directory = directory();
    let network = ["--hosts", "144", "--packet", "9KB", "--rate", "10Gbps"];
    let output = shallows(&directory)
        .args(["qjump", "plan", "--sizes", "web-search", "--json"])
        .args(network)
        .output()
        .unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let levels = plan["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 8);
    assert_eq!(levels[7]["bytes-per-epoch"], 9000);
    let shares = levels
        .iter()
        .map(|level| level["share-of-flows"].as_f64().unwrap());
    let shares: Vec<f64> = shares.collect();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    // Those between the first and the last are alike.
    for share in &shares[1..7] {
        assert!((share - shares[1]).abs() < 0.01, "{shares:?}");
    }
}

#[test]
fn impossible_limits_are_refused_with_the_reason() {
    let directory = directory();
    write(
        &directory,
        "bad.toml",
        "epoch = \"100us\"\nlevels = [\"unlimited\", \"10B\"]\n",
    );
    shallows(&directory)
        .args(["qjump", "apply", "--dev", "lo", "bad.toml"])
        .assert()
        .code(1)
        .stderr_eq(str![[r#"
error: bad.toml: no packet can meet the limit of level 1: the smallest frame has 60B, and it may send 10B an epoch

"#]]);
    shallows(&directory)
        .args(["qjump", "plan", "--hosts", "12", "--rate", "1Gbps"])
        .assert()
        .code(1)
        .stderr_eq(str![[r#"
error: there is nothing to plan for: name applications, factors or a distribution

"#]]);
}
