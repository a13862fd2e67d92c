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
        .args(["--app", "ptpd=guaranteed@128B", "--app", "memcached=1Gbps"])
        .args(["--app", "hadoop=bulk", "--write", "plan"])
        .assert()
        .success()
        .stdout_eq(str![[r#"
P = 280B: a frame of 256B with preamble, check sequence and gap
network epoch 9.376us = 2 x 12 hosts x 280B / 10.0 Gbps + 4us (eq. 2)

level DSCP service        f  senders  per epoch       rate  latency              applications
    2   19       0        1       12       280B   239 Mbps  guaranteed 9.38 us   ptpd
    1   11       1     5.49     2.18      1538B  1.31 Gbps  expected 14.8 us     memcached
    0    0       2       12        1  unlimited  10.0 Gbps  no bound             hadoop

level and DSCP: on real hosts; service: in a simulated scenario, where strict switches serve service 0 first
expected: while no more than n / f hosts (senders) of each level send to one host at once
written to plan: qjump.toml, hosts.toml, levels.svg,[..] levels.csv

"#]]);
    let limits = read_text(&directory, "plan/qjump.toml");
    assert!(limits.contains("epoch = \"9.376us\""), "{limits}");
    assert!(
        limits.contains("levels = [\"unlimited\", \"1538B\", \"280B\"]"),
        "{limits}"
    );
    let png = fs::read(directory.path().join("plan/levels.png"));
    assert!(png.is_ok_and(|png| png.len() > 1000));
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
    // The smallest flows have six full frames, of 1,538 B on the wire each.
    let network = ["--hosts", "144", "--packet", "9204B", "--rate", "10Gbps"];
    let output = shallows(&directory)
        .args(["qjump", "plan", "--sizes", "web-search", "--json"])
        .args(network)
        .output()
        .unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let levels = plan["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 8);
    // 24 B more on the wire.
    assert_eq!(levels[7]["bytes-per-epoch"], 6 * 1538);
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
        .code(2)
        .stderr_eq(str![[r#"
error: bad.toml: no packet can meet the limit of level 1: the smallest frame takes 84B on the wire, and it may send 10B per epoch

"#]]);
    shallows(&directory)
        .args(["qjump", "plan", "--hosts", "12", "--rate", "1Gbps"])
        .assert()
        .code(1)
        .stderr_eq(str![[r#"
error: there is nothing to plan for: name applications, factors or a distribution

"#]]);
}

#[test]
fn a_load_is_a_share_of_a_link() {
    for load in ["nan", "0", "1e300", "-1"] {
        let plan = ["qjump", "plan", "--hosts", "12", "--rate", "1Gbps"];
        let error = shallows(&directory())
            .args(plan)
            .args(["--sizes", "web-search", &format!("--load={load}")])
            .assert()
            .code(2);
        let error = String::from_utf8_lossy(&error.get_output().stderr).into_owned();
        assert!(error.contains("a share is a number above 0"), "{error}");
    }
}

#[test]
fn a_top_level_that_no_flow_fits_is_noted() {
    let plan = ["qjump", "plan", "--hosts", "144", "--rate", "10Gbps"];
    let output = shallows(&directory())
        .args(plan)
        .args(["--sizes", "web-search"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let note = "note: no flow belongs to level 6, which may send 280B per epoch: the smallest takes \
                9.228KB on the link";
    assert!(said.contains(note), "{said}");
    assert!(!said.contains("-0.0%"), "{said}");
}

#[cfg(live)]
#[test]
fn whoever_answers_probes_ends_in_order_at_ctrl_c() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use nix::sys::signal::{SIGINT, kill};
    use nix::unistd::Pid;

    let free = || std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr();
    let port = free().unwrap().port().to_string();
    let mut answering = Command::new(env!("CARGO_BIN_EXE_shallows"))
        .args(["qjump", "verify", "--answer", "127.0.0.1", "--port", &port])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut printed = BufReader::new(answering.stdout.take().unwrap());
    printed.read_line(&mut line).unwrap();
    assert!(line.starts_with("answering at 127.0.0.1"), "{line}");
    kill(Pid::from_raw(answering.id().cast_signed()), SIGINT).unwrap();
    let output = answering.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(0), ""));
}
