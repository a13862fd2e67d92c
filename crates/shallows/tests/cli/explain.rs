//! `shallows explain`, `plot` and `run --trace`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{directory, read, read_text, shallows, write};

/// Ten senders to one host, with a buffer that is too small for them.
const INCAST: &str = r#"
topology.star = { hosts = 11, rate = "1Gbps", delay = "10us" }
[ports.switch]
queues = 1
buffer = { shared = { size = "30KB" } }
scheduler = "fifo"
marker = { scheme = { per-queue = { threshold = "15KB" } } }
[transport]
rto = { initial = "5ms", minimum = "5ms" }
[workload]
incast = { receiver = 0, block = "300KB", rounds = 3 }
"#;

fn with_incast(run: &[&str]) -> TempDir {
    let directory = directory();
    write(&directory, "incast.toml", INCAST);
    let args = ["run", "incast.toml", "--out", "out", "--format", "csv"];
    shallows(&directory).args(args).args(run).assert().success();
    directory
}

fn explained(directory: &TempDir, args: &[&str]) -> Value {
    let command = shallows(directory);
    let output = command
        .args(["explain", "out", "--json"])
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_run_has_the_counters_of_its_ports() {
    let directory = with_incast(&[]);
    let table = read_text(&directory, "out/ports.csv");
    let row = table
        .lines()
        .find(|line| line.contains("switch0->h0,"))
        .unwrap();
    let cells: Vec<&str> = row.split(',').collect();
    let summary: Value = serde_json::from_str(&read_text(&directory, "out/summary.json")).unwrap();
    let dropped: u64 = summary["drops"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|of| {
            ["small", "medium", "large", "other"].map(|class| of[class].as_u64().unwrap())
        })
        .sum();
    assert!(dropped > 0);
    assert_eq!(
        cells[9],
        dropped.to_string(),
        "all are dropped before the receiver: {row}"
    );
    let peak: u64 = cells[7].parse().unwrap();
    assert!((15_000..=30_000).contains(&peak), "{row}");
}

#[test]
fn parts_of_completion_times_add_up_and_drops_have_their_port() {
    let directory = with_incast(&[]);
    let answer = explained(&directory, &[]);
    assert_eq!(answer["ports"][0]["port"], "switch0->h0");
    let observed = &answer["observed"];
    assert_eq!(observed["same_flows"], true);
    let group = &observed["groups"][0];
    let parts = group["parts_us"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|part| part.as_f64().unwrap()).sum();
    let mean = group["mean_fct_us"].as_f64().unwrap();
    assert!((sum / mean - 1.0).abs() < 1e-9, "{sum} of {mean}");
    let names = observed["parts"].as_array().unwrap();
    let waited = names.iter().position(|name| name == "timeouts").unwrap();
    assert!(parts[waited].as_f64().unwrap() > 0.0, "flows had timeouts");

    let drops = observed["drops"].as_array().unwrap();
    let of_flows: u64 = answer["timeouts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flow| flow["drops"].as_u64().unwrap())
        .sum();
    assert!(of_flows > 0 && drops.len() as u64 >= of_flows);
    for drop in drops {
        assert_eq!(drop["port"], "switch0->h0");
        let queued: BTreeMap<String, u64> = serde_json::from_value(drop["queued"].clone()).unwrap();
        let packets: u64 = queued.values().sum();
        // 30 KB are 20 packets of 1,500 bytes.
        assert!((1..=20).contains(&packets), "{drop}");
    }
}

#[test]
fn one_flow_and_one_port_can_be_asked_for() {
    let directory = with_incast(&[]);
    let answer = explained(&directory, &[]);
    let flow = answer["timeouts"][0]["flow"].as_u64().unwrap().to_string();
    let of_flow = explained(&directory, &["--flow", &flow]);
    let life = &of_flow["observed"]["flow"];
    assert_eq!(life["path"][1], "switch0->h0");
    let events = life["events"].to_string();
    assert!(
        events.contains("timeout after") && events.contains("dropped at"),
        "{events}"
    );
    assert!(!life["windows"].as_array().unwrap().is_empty());

    let of_port = explained(&directory, &["--port", "switch0->h0"]);
    let port = &of_port["observed"]["port"];
    let table = read_text(&directory, "out/ports.csv");
    let row = table
        .lines()
        .find(|line| line.contains("switch0->h0,"))
        .unwrap();
    let packets = row.split(',').nth(4).unwrap();
    assert_eq!(port["packets"].to_string(), packets);

    let unknown = ["explain", "out", "--port", "leaf9->h0"];
    let output = shallows(&directory).args(unknown).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && text.contains("no port leaf9->h0"),
        "{text}"
    );
}

#[test]
fn gates_of_hosts_have_their_part() {
    let directory = directory();
    let gated = format!(
        "{INCAST}\n[hosts]\nqjump = {{ epoch = \"100us\", excess = \"hold\", levels = [\"3000B\"] }}\n"
    );
    write(&directory, "gated.toml", &gated);
    let args = ["run", "gated.toml", "--out", "out"];
    shallows(&directory).args(args).assert().success();
    let observed = &explained(&directory, &[])["observed"];
    let names = observed["parts"].as_array().unwrap();
    let gates = names.iter().position(|name| name == "gates").unwrap();
    assert!(observed["groups"][0]["parts_us"][gates].as_f64().unwrap() > 0.0);
}

#[test]
fn a_run_can_be_drawn() {
    let directory = with_incast(&[]);
    for (args, name) in [
        (&["plot", "out"][..], "overview"),
        (&["plot", "out", "--port", "switch0->h0"], "queue"),
        (
            &[
                "plot",
                "out",
                "--flows",
                "0,1",
                "--width",
                "one-column",
                "--no-title",
            ],
            "cwnd",
        ),
    ] {
        shallows(&directory).args(args).assert().success();
        let svg = read_text(&directory, &format!("out/plots/{name}.svg"));
        assert!(!svg.contains("NaN"), "{name}");
        let pdf = read(&directory, &format!("out/plots/{name}.pdf"));
        assert!(
            pdf.starts_with(b"%PDF-1.7") && pdf.ends_with(b"%%EOF\n"),
            "{name}"
        );
        let png = read(&directory, &format!("out/plots/{name}.png"));
        assert_eq!(&png[1..4], b"PNG");
    }
    let data = read_text(&directory, "out/plots/queue.csv");
    assert!(
        data.contains("threshold of queue,") && data.contains(",15,"),
        "{data}"
    );
}

#[test]
fn a_metric_of_a_sweep_can_be_drawn_against_an_axis() {
    let directory = directory();
    write(&directory, "incast.toml", INCAST);
    let vary = "ports.switch.buffer.shared.size=30KB,60KB";
    let rounds = "workload.incast.rounds=1,2,3";
    let args = [
        "run",
        "incast.toml",
        "--vary",
        vary,
        "--vary",
        rounds,
        "--out",
        "out",
    ];
    shallows(&directory).args(args).assert().success();
    let axes = ["--x", "rounds", "--curves", "size"];
    let plot = ["plot", "out", "--metric", "all.p95"];
    let output = shallows(&directory).args(plot).args(axes).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let data = read_text(&directory, "out/plots/all.p95-by-rounds.csv");
    assert_eq!(data.lines().count(), 1 + 2 * 3, "{data}");
}

/// A field of a protobuf message: its number, and its value or its bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content)
            }
            kind => panic!("no field of kind {kind} is written"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn number(fields: &[(u64, Field<'_>)], field: u64) -> Option<u64> {
    fields.iter().find_map(|(number, value)| match value {
        Field::Number(value) if *number == field => Some(*value),
        _ => None,
    })
}

fn bytes<'a>(fields: &[(u64, Field<'a>)], field: u64) -> Option<&'a [u8]> {
    fields.iter().find_map(|(number, value)| match value {
        Field::Bytes(value) if *number == field => Some(*value),
        _ => None,
    })
}

#[test]
fn a_trace_replaces_no_file_that_the_run_reads() {
    let directory = directory();
    write(&directory, "incast.toml", INCAST);
    let args = [
        "run",
        "incast.toml",
        "--out",
        "out",
        "--trace",
        "./incast.toml",
    ];
    let output = shallows(&directory).args(args).output().unwrap();
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("which its trace would replace"), "{error}");
    assert_eq!(read_text(&directory, "incast.toml"), INCAST);
}

#[test]
fn a_trace_has_flows_queues_windows_marks_and_drops() {
    let directory = with_incast(&["--trace", "run.pftrace"]);
    let trace = read(&directory, "run.pftrace");
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut kinds: BTreeMap<u64, u64> = BTreeMap::new();
    let mut depth: BTreeMap<u64, i64> = BTreeMap::new();
    let mut instants: BTreeMap<String, u64> = BTreeMap::new();
    for (field, packet) in fields(&trace) {
        let Field::Bytes(packet) = packet else {
            panic!("a packet is a message")
        };
        assert_eq!(field, 1);
        let packet = fields(packet);
        if let Some(track) = bytes(&packet, 60) {
            let track = fields(track);
            let name = String::from_utf8(bytes(&track, 2).unwrap().to_vec()).unwrap();
            tracks.insert(number(&track, 1).unwrap(), name);
            continue;
        }
        assert!(number(&packet, 8).is_some(), "an event has a time");
        let event = fields(bytes(&packet, 11).unwrap());
        let (kind, track) = (number(&event, 9).unwrap(), number(&event, 11).unwrap());
        assert!(
            tracks.contains_key(&track),
            "a track is described before its events"
        );
        *kinds.entry(kind).or_default() += 1;
        match kind {
            1 => *depth.entry(track).or_default() += 1,
            2 => *depth.entry(track).or_default() -= 1,
            3 => {
                let name = String::from_utf8(bytes(&event, 23).unwrap().to_vec()).unwrap();
                let of = fields(bytes(&event, 4).unwrap());
                *instants.entry(name).or_default() += number(&of, 3).unwrap();
            }
            _ => {}
        }
        assert!(
            depth.values().all(|&depth| (0..=1).contains(&depth)),
            "slices do not overlap"
        );
    }
    assert_eq!(kinds[&1], 30, "a slice for each flow");
    assert_eq!(kinds[&1], kinds[&2]);
    assert!(kinds[&4] > 30, "queues and windows");
    assert!(tracks.values().any(|name| name == "queue switch0->h0"));
    assert!(tracks.values().any(|name| name == "cwnd of flow 0"));
    let table = read_text(&directory, "out/ports.csv");
    let drops = table
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(9).unwrap().parse::<u64>().unwrap());
    let (shown, all): (u64, u64) = (instants["drops"], drops.sum());
    assert!(
        shown > 0 && shown <= all,
        "{shown} of {all}; the last sample may miss some"
    );
    assert!(
        fs::metadata(directory.path().join("run.pftrace"))
            .unwrap()
            .len()
            < 1_000_000
    );
}

#[test]
fn a_measuring_window_counts_its_flows_and_ends_the_run() {
    let scenario = r#"
topology.star = { hosts = 4, rate = "1Gbps", delay = "10us" }
[ports.switch]
queues = 1
buffer = { shared = { size = "300KB" } }
scheduler = "fifo"
marker = { scheme = { per-queue = { threshold = "30KB" } } }
[workload.poisson]
load = 0.5
duration = "200ms"
size.cdf = "cache"
"#;
    let directory = directory();
    write(&directory, "steady.toml", scenario);
    let run = |args: &[&str]| {
        let fixed = ["run", "steady.toml", "--out", "out", "--format", "csv"];
        let output = shallows(&directory)
            .args(fixed)
            .args(args)
            .output()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (all_well, all) = run(&[]);
    assert!(
        all_well && all.contains("% carried by the hosts' links"),
        "{all}"
    );
    let window = ["--set", "measure={ from = \"50ms\", to = \"100ms\" }"];
    let (well, text) = run(&window);
    assert!(well, "{text}");
    let flows = read_text(&directory, "out/flows.csv");
    let starts: Vec<f64> = flows
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(starts.len() > 5 && starts.iter().all(|start| (0.05..0.1).contains(start)));
    let summary: Value = serde_json::from_str(&read_text(&directory, "out/summary.json")).unwrap();
    assert!(
        summary["simulated_s"].as_f64().unwrap() < 0.15,
        "it ends with the counted flows"
    );
    assert_eq!(summary["classes"]["all"]["unfinished"], 0);
    let carried = summary["loads"][0]["carried"].as_f64().unwrap();
    assert!((0.1..0.7).contains(&carried), "{carried}");

    let (well, text) = run(&["--set", "measure={ from = \"1s\" }"]);
    assert!(
        !well && text.contains("no flow starts in the window"),
        "{text}"
    );
    let (well, text) = run(&["--set", "measure={ from = \"50ms\", to = \"50ms\" }"]);
    assert!(
        !well && text.contains("the window ends before it begins"),
        "{text}"
    );
}

#[test]
fn a_directory_that_is_not_there_is_told() {
    let directory = directory();
    for command in ["explain", "plot"] {
        let assert = shallows(&directory).args([command, "out/nowhere"]).assert();
        assert.code(2).stderr_eq(snapbox::str![[r#"
error: there is no directory out/nowhere; `shallows run SCENARIO` writes out/NAME

"#]]);
    }
}
