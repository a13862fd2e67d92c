//! What probes record, and that they change nothing.

use std::fs;
use std::process::Command;

use shallows_testing::{missing_program, skip};
use snapbox::str;
use tempfile::TempDir;

use crate::{TINY, directory, read, read_text, shallows, with_tiny, write};

const PROBES: &str = r#"
[probes]
queues = { links = "*->h3", interval = "10us" }
throughput = { links = ["*->h3", "h0->switch0"], interval = "100us" }
flows = { flows = [0, 5], interval = "10us" }
rtt = true
sojourn = "all"
capture = "switch0<->h3"
"#;

fn with_probes() -> TempDir {
    let directory = with_tiny();
    write(&directory, "probes.toml", &format!("{TINY}{PROBES}"));
    directory
}

/// The rows of a file of numbers, without its header.
fn rows(directory: &TempDir, name: &str) -> Vec<Vec<f64>> {
    let text = read_text(directory, name);
    let numbers = |line: &str| line.split(',').map(|n| n.parse().unwrap()).collect();
    text.lines().skip(1).map(numbers).collect()
}

#[test]
fn files_of_probes_are_written_and_named() {
    let directory = with_probes();
    let run = ["run", "probes.toml", "--format", "csv", "--out", "out"];
    let output = shallows(&directory).args(run).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.ends_with(
            "results: out\nprobes: queues.csv, throughput.csv, flows-cwnd.csv, flows-rtt.csv, \
             sojourn.csv, capture.pcapng\n"
        ),
        "{text}"
    );

    let queues = rows(&directory, "out/queues.csv");
    assert_eq!(queues[0][..3], [10.0, 7.0, 0.0], "the first of two queues");
    assert_eq!(queues[1][..3], [10.0, 7.0, 1.0], "the second");
    assert_eq!(queues[2][0], 20.0);
    assert!(queues.iter().any(|row| row[3] > 0.0), "some hold packets");
    assert!(queues.iter().all(|row| row[3] >= row[4] * 40.0));

    let sent = rows(&directory, "out/throughput.csv");
    assert!(sent.iter().all(|row| row[6] <= 1.02), "no link is faster");
    let to_h3: f64 = sent
        .iter()
        .filter(|row| row[2] == 7.0)
        .map(|row| row[4])
        .sum();
    let captured: f64 = rows(&directory, "out/sojourn.csv")
        .iter()
        .filter(|row| row[0] == 7.0)
        .map(|row| row[3])
        .sum();
    assert!(to_h3 > 0.0 && to_h3 <= captured * 1500.0);

    // From the third interval on the rows are the same: what was sent before does not count.
    let later = r#"probes.throughput={ links = ["*->h3", "h0->switch0"], start = "200us", interval = "100us" }"#;
    let run = ["run", "probes.toml", "--format", "csv", "--out", "later"];
    let run = shallows(&directory).args(run).args(["--set", later]);
    run.assert().success();
    let later = rows(&directory, "later/throughput.csv");
    let first = sent
        .iter()
        .position(|row| row[0] == 300.0)
        .expect("there are more");
    assert_eq!(later, sent[first..]);

    let windows = rows(&directory, "out/flows-cwnd.csv");
    assert!(windows.iter().all(|row| row[1] == 0.0 || row[1] == 5.0));
    assert!(windows.iter().all(|row| row[2] >= 1460.0));
    let rtts = rows(&directory, "out/flows-rtt.csv");
    // Two links of 1 us each way, and each packet is sent twice.
    assert!(
        rtts.iter().all(|row| row[2] >= 4.0),
        "none is below the least"
    );
    assert!(rtts.is_sorted_by_key(|row| row[0]));
}

#[test]
fn probes_change_no_flow() {
    let directory = with_probes();
    for scenario in ["tiny", "probes"] {
        let run = ["run", &format!("{scenario}.toml"), "--out", scenario];
        shallows(&directory).args(run).assert().success();
    }
    let [without, with] =
        ["tiny", "probes"].map(|out| read(&directory, &format!("{out}/flows.parquet")));
    assert!(without == with, "flows differ");
}

#[test]
fn tshark_opens_a_capture() {
    if let Some(reason) = missing_program(&["tshark"]) {
        skip!("{reason}");
    }
    let directory = with_probes();
    let run = ["run", "probes.toml", "--out", "out"];
    shallows(&directory).args(run).assert().success();
    let fields = ["-T", "fields", "-e", "tcp.len", "-e", "frame.time_delta"];
    let output = Command::new("tshark")
        .args(["-r", "out/capture.pcapng"])
        .args(fields)
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let packets: Vec<(u32, f64)> = text
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(len, delta)| (len.parse().unwrap(), delta.parse().unwrap()))
        .collect();
    assert!(packets.iter().any(|&(len, _)| len == 1460), "there is data");
    assert!(packets.iter().any(|&(len, _)| len == 0), "there are ACKs");
    assert!(packets.iter().all(|&(_, delta)| delta >= 0.0), "in order");
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let directory = directory();
    let scenario = r#"
        [topology.leaf-spine]
        leaves = 4
        hosts-per-leaf = 2
        spines = 2
        host-rate = "10Gbps"
        host-delay = "1us"
        fabric-rate = "10Gbps"
        fabric-delay = "1us"
        [ports.switch]
        buffer = { shared = { size = "50KB" } }
        scheduler = "fifo"
        marker = { scheme = { per-queue = { threshold = "10pkts" } } }
        [workload.poisson]
        load = 0.7
        size = "40KB"
        flows = 100
        [[links]]
        link = "leaf0->spine1"
        loss = 0.01
        [probes]
        queues = { links = "*->h*", interval = "20us" }
        throughput = { links = "leaf*<->spine*", interval = "20us" }
        flows = { flows = "all", interval = "20us" }
    "#;
    write(&directory, "fabric.toml", scenario);
    for threads in ["1", "2", "4"] {
        let run = ["run", "fabric.toml", "--threads", threads, "--out", threads];
        shallows(&directory).args(run).assert().success();
    }
    for entry in fs::read_dir(directory.path().join("1")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let [one, two, four] =
            ["1", "2", "4"].map(|out| read(&directory, &format!("{out}/{name}")));
        assert!(one == two && two == four, "{name} differs");
    }
}

/// Runs the tiny scenario with one more line.
fn refused(line: &str, message: impl snapbox::IntoData) {
    let directory = directory();
    write(
        &directory,
        "tiny.toml",
        &format!("{TINY}[probes]\n{line}\n"),
    );
    let assert = shallows(&directory).args(["run", "tiny.toml"]).assert();
    assert.code(2).stdout_eq("").stderr_eq(message);
    assert!(!directory.path().join("out").exists(), "work was begun");
}

#[test]
fn mistakes_are_pointed_at() {
    refused(
        "sojourn = [\"switch->h3\"]",
        str![[r#"
error: there is no link "switch->h3", did you mean "switch0->h3"?
  --> tiny.toml:20:1
   |
20 | sojourn = ["switch->h3"]
   | ^^^^^^^

"#]],
    );
    refused(
        "capture = \"h3\"",
        str![[r#"
error: "h3" is not a link: write one such as "h0->switch0", "*->h0" or "all"
  --> tiny.toml:20:1
   |
20 | capture = "h3"
   | ^^^^^^^

"#]],
    );
    refused(
        "queues = { links = \"all\", interval = \"0s\" }",
        str![[r#"
error: the interval is zero; write one such as "10us"
  --> tiny.toml:20:27
   |
20 | queues = { links = "all", interval = "0s" }
   |                           ^^^^^^^^

"#]],
    );
    refused(
        "flows = { flows = [3, 50], interval = \"10us\" }",
        str![[r#"
error: there is no flow 50; the last is 49
  --> tiny.toml:20:11
   |
20 | flows = { flows = [3, 50], interval = "10us" }
   |           ^^^^^

"#]],
    );
}

/// Four links of 5 us, each of which takes 672 ns for 84 bytes, where nobody is in the way.
#[test]
fn pings_have_their_round_trip_times() {
    let directory = directory();
    let text = r#"
        until = "10ms"
        topology.star = { hosts = 4, rate = "1Gbps", delay = "5us" }
        ports.switch = { buffer = "unlimited", scheduler = "fifo" }
        workload.flows = [{ start = "1ms", src = 0, dst = 1, size = "100KB" }]
        probes.ping = [{ from = 2, to = 3, start = "1ms", interval = "2ms" }]
        links = [{ link = "*->h3", down = "4ms", up = "6ms" }]
    "#;
    write(&directory, "ping.toml", text);
    let run = ["run", "ping.toml", "--format", "csv", "--out", "out"];
    shallows(&directory).args(run).assert().success();
    let pings = [(1, false), (3, false), (5, true), (7, false), (9, false)];
    let expected = pings.map(|(ms, lost)| {
        let rtt = if lost { 0.0 } else { 22.688 };
        vec![f64::from(ms) * 1e3, 0.0, f64::from(u8::from(lost)), rtt]
    });
    assert_eq!(rows(&directory, "out/pings.csv"), expected);
    // They are no operations of an application.
    assert!(!directory.path().join("out/latencies.csv").exists());
    assert_eq!(rows_of(&directory, "out/flows.csv"), 1);

    let endless = ["run", "ping.toml", "--set", "probes.ping.0.interval=0s"];
    shallows(&directory).args(endless).assert().code(2);
    let to_itself = ["run", "ping.toml", "--set", "probes.ping.0.to=2"];
    shallows(&directory).args(to_itself).assert().code(2);
    write(
        &directory,
        "ping.toml",
        &text.replace("until = \"10ms\"", ""),
    );
    let output = shallows(&directory)
        .args(["run", "ping.toml"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("pings never stop"), "{said}");
}

/// Number of rows of a file, without its header.
fn rows_of(directory: &TempDir, name: &str) -> usize {
    read_text(directory, name).lines().skip(1).count()
}
