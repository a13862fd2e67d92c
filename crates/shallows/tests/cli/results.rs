//! What a run leaves behind.

use std::fs;

use snapbox::str;

use shallows_core::units::Time;
use shallows_results::RunRecord;

use crate::{directory, read, read_text, shallows, with_tiny, write};

const FILES: [&str; 3] = ["flows.parquet", "summary.json", "scenario.toml"];

#[test]
fn a_table_is_printed_and_files_are_written() {
    let directory = with_tiny();
    let assert = shallows(&directory).args(["run", "tiny.toml"]).assert();
    assert.success().stderr_eq("").stdout_eq(str![[r#"
load: 50.0% requested, 42.9% offered of 40 Gbps; [..]% carried by the hosts' links

[..] flow completion time [..] slowdown[..]
class   flows  unfinished [..] p99.9 [..] throughput
[..] us [..] Gbps
all        50           0  [..]
small      50           0  [..]
medium      0           0 [..] - [..] -
large       0           0 [..] - [..] -

                         all  small  medium  large
marks[..]
  queue above threshold[..]
drops                      0      0       0      0
timeouts                   0      0       0      0
retransmits                0      0       0      0

utilisation     links    mean     min     max
host to switch      4  [..]
switch to host      4  [..]

[..] of virtual time, [..] packet-hops, [..] events, [..] s on the wall
results: out/tiny

"#]]);
    let mut files: Vec<_> = fs::read_dir(directory.path().join("out/tiny"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort_unstable();
    assert_eq!(
        files,
        [
            "flows.parquet",
            "ports.csv",
            "run.sha256",
            "scenario.toml",
            "summary.json"
        ]
    );
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let directory = with_tiny();
    for out in ["one", "two"] {
        let run = ["run", "tiny.toml", "--out", out];
        shallows(&directory).args(run).assert().success();
    }
    for file in FILES {
        let [one, two] = ["one", "two"].map(|out| read(&directory, &format!("{out}/{file}")));
        assert!(one == two, "{file} differs");
    }
    let run = ["run", "tiny.toml", "--out", "three", "--seed", "8"];
    shallows(&directory).args(run).assert().success();
    assert!(read(&directory, "one/flows.parquet") != read(&directory, "three/flows.parquet"));
}

#[test]
fn the_resolved_scenario_repeats_the_run() {
    let directory = with_tiny();
    write(
        &directory,
        "flows.csv",
        "start_s,src,dst,bytes,service\n0.001,2,3,300000,1\n0,0,3,400000,0\n",
    );
    for (name, options) in [
        ("plain", &["--seed", "18446744073709551615"][..]),
        ("list", &["--flows", "flows.csv", "--until", "1s"]),
        (
            "links",
            &[
                "--set",
                "links=[{link=\"*<->h1\", loss=0.02, down=\"50us\", up=\"80us\"}]",
                "--set",
                "ports.special=[{links=\"*->h3\", port={buffer=\"unlimited\", scheduler=\"fifo\"}}]",
                "--set",
                "probes={rtt=true, sojourn=\"all\", flows={flows=\"all\", interval=\"9us\"}}",
                "--set",
                "connections=persistent",
            ],
        ),
        (
            "other",
            &[
                "--set",
                "ports.host=as-switch",
                "--set",
                "routing=spray",
                "--set",
                "transport.controller=cubic",
                "--set",
                "ports.switch.framing=ethernet",
                "--set",
                "completion=receiver",
            ],
        ),
    ] {
        let (first, second) = (format!("{name}/first"), format!("{name}/second"));
        let run = ["run", "tiny.toml", "--out", &first];
        shallows(&directory)
            .args(run)
            .args(options)
            .assert()
            .success();
        let scenario = format!("{first}/scenario.toml");
        let run = ["run", &scenario, "--out", &second];
        shallows(&directory).args(run).assert().success();
        for file in FILES {
            let [one, two] =
                [&first, &second].map(|out| read(&directory, &format!("{out}/{file}")));
            assert!(one == two, "{name}: {file} differs");
        }
    }
}

#[test]
fn a_copy_of_a_list_may_be_run_in_place() {
    let directory = with_tiny();
    write(
        &directory,
        "flows.csv",
        "start_s,src,dst,bytes,service\n0,0,3,400000,0\n",
    );
    let run = ["run", "tiny.toml", "--flows", "flows.csv", "--out", "here"];
    shallows(&directory).args(run).assert().success();
    fs::remove_file(directory.path().join("flows.csv")).unwrap();
    let before = read(&directory, "here/flows.parquet");
    let run = ["run", "here/scenario.toml", "--out", "here"];
    shallows(&directory).args(run).assert().success();
    assert!(read(&directory, "here/flows.parquet") == before);
}

#[test]
fn json_is_the_summary() {
    let directory = with_tiny();
    let run = ["run", "tiny.toml", "--json"];
    let output = shallows(&directory).args(run).output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, read(&directory, "out/tiny/summary.json"));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["partial"], false);
    assert_eq!(summary["classes"]["small"]["flows"], 50);
    assert_eq!(summary["classes"]["all"]["unfinished"], 0);
}

#[test]
fn a_run_that_ends_early_counts_what_is_unfinished() {
    let directory = with_tiny();
    let run = ["run", "tiny.toml", "--json", "--until", "100us"];
    let output = shallows(&directory).args(run).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        summary["partial"], false,
        "it came to the end that was asked for"
    );
    let flows = summary["classes"]["all"]["flows"].as_u64().unwrap();
    assert!((1..50).contains(&flows), "{flows} flows have started");
}

#[test]
fn an_empty_result_is_an_error() {
    let directory = with_tiny();
    let run = ["run", "tiny.toml", "--until"];
    let assert = shallows(&directory).args(run).arg("1ps").assert();
    assert.code(1).stdout_eq("").stderr_eq(str![[r#"
error: no flow started before 1ps; let the run last longer

"#]]);
    let assert = shallows(&directory).args(run).arg("4us").assert();
    assert.code(1).stderr_eq(str![[r#"
error: no flow started before 4us; let the run last longer

"#]]);
}

#[test]
fn another_version_is_warned_of() {
    let directory = with_tiny();
    let text = format!(
        "version = \"0.0.0\"\n{}",
        read_text(&directory, "tiny.toml")
    );
    write(&directory, "old.toml", &text);
    let assert = shallows(&directory).args(["run", "old.toml"]).assert();
    assert.success().stderr_eq(str![[r#"
warning: the scenario was written by version 0.0.0; results of version 0.1.0 may differ

"#]]);
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let directory = with_tiny();
    write(&directory, "taken", "");
    let run = ["run", "tiny.toml", "--out", "taken"];
    shallows(&directory)
        .args(run)
        .assert()
        .code(1)
        .stderr_eq(str![[r#"
error: cannot write taken: File exists (os error 17)

"#]]);
}

#[test]
fn latencies_of_applications_are_recorded() {
    let directory = directory();
    let scenario = r#"
        topology.star = { hosts = 2, rate = "1Gbps", delay = "5us" }
        ports.switch = { buffer = "unlimited", scheduler = "fifo" }
        probes.queues = { links = "all", interval = "50us" }
        [[application]]
        name = "probe"
        clients = 0
        servers = 1
        run = { ping = { interval = "100us", count = 5 } }
    "#;
    write(&directory, "a.toml", scenario);
    let run = shallows(&directory).args(["run", "a.toml", "--out", "o"]);
    let output = run.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let row = said.lines().find(|line| line.starts_with("probe ping"));
    assert!(
        row.unwrap().split_whitespace().nth(2) == Some("5"),
        "{said}"
    );

    let record = RunRecord::open(&directory.path().join("o")).unwrap();
    let [latency] = &record.summary.as_ref().unwrap().facts.latencies[..] else {
        panic!("there is one operation");
    };
    assert_eq!(record.operations.first(), Some(&latency.operation));
    assert_eq!(
        (latency.operation.name.as_str(), latency.count),
        ("ping", 5)
    );
    // Two links of 5 us there, and two back.
    let fastest = latency.latency.unwrap().p50;
    assert!(
        fastest > Time::from_us(20) && fastest < Time::from_us(30),
        "{fastest}"
    );
    assert_eq!(record.table("latencies").unwrap().unwrap().rows(), 5);
    // Samples go on without flows.
    assert!(record.table("queues").unwrap().unwrap().rows() > 8);
}

/// What the reader of a summary has to know is said with it.
#[test]
fn a_summary_notes_what_may_mislead() {
    let directory = with_tiny();
    let said = |settings: &[&str]| {
        let mut run = shallows(&directory).args(["run", "tiny.toml", "--out", "noted"]);
        for setting in settings {
            run = run.args(["--set", setting]);
        }
        let output = run.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let notes = text.lines().filter(|line| line.starts_with("note: "));
        notes.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(said(&[]).is_empty());
    let over = said(&["workload.poisson.load=1.5"]);
    assert!(
        over[0].contains("a load of 150% exceeds the capacity"),
        "{over:?}"
    );
    let shared = said(&["workload.poisson.services.balanced=4"]);
    let expected = "note: ports have 2 queues: services 2, 3 share the last one with service 1";
    assert_eq!(shared, [expected]);
    let one = said(&["workload.poisson.services.balanced=3"]);
    let expected = "note: ports have 2 queues: service 2 shares the last one with service 1";
    assert_eq!(one, [expected]);
    let limited = said(&[
        "hosts.qjump={ epoch = \"100us\", levels = [\"1538B\", \"90KB\"] }",
        "transport.controller=reno",
    ]);
    let limit = limited.iter().find(|note| note.contains("QJUMP's limit"));
    assert!(
        limit.is_some_and(|note| note.contains(
            "of service 0 over QJUMP's limit, which may send 1538B per 100us (123 Mbps)"
        )),
        "{limited:?}"
    );
    let tail = said(&["workload.poisson.flows=3", "workload.poisson.size=30MB"]);
    assert!(
        tail[0].contains("of the simulated time came after the last flow started"),
        "{tail:?}"
    );
}

#[test]
fn flows_without_an_end_have_their_goodput() {
    let directory = directory();
    let output = shallows(&directory).args(["run", "sawtooth"]).assert();
    let text = String::from_utf8_lossy(&output.success().get_output().stdout).into_owned();
    let lines: Vec<&str> = text.lines().take(3).collect();
    assert!(
        lines[0].starts_with("without end       flows  goodput"),
        "{text}"
    );
    let row: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(row[..3], ["long-lived", "flows", "2"], "{text}");
    let number = |at: usize| row[at].parse::<f64>().unwrap();
    // Two flows fill 10 Gbps but for headers, in about equal parts.
    let (all, fairness) = (number(3), number(7));
    assert!((9_000.0..9_800.0).contains(&all), "{text}");
    assert!(fairness > 0.9, "{text}");
    // No table of completion times that none has.
    assert!(!text.contains("flow completion time"), "{text}");
}
