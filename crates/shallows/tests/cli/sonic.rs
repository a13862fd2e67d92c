//! SONiC configurations from the command line.

use snapbox::str;

use crate::{directory, shallows, shipped, write};

const LEAF: &str = "sonic/leaf.config_db.json";

#[test]
fn findings_are_sentences_with_a_number_a_place_and_a_fix() {
    let directory = directory();
    write(
        &directory,
        "config_db.json",
        r#"{
    "PORT": { "Ethernet0": { "speed": "25000" } },
    "WRED_PROFILE": { "DEEP": { "ecn": "ecn_all", "green_min_threshold": "1048576",
        "green_max_threshold": "2097152", "green_drop_probability": "5" } },
    "QUEUE": { "Ethernet0|0": { "wred_profile": "DEEP" } },
    "DSCP_TO_TC_MAP": { "M": { "0": "0" } },
    "PORT_QOS_MAP": { "Ethernet0": { "dscp_to_tc_map": "M" } }
}"#,
    );
    shallows(&directory)
        .args(["sonic", "check", "config_db.json", "--rtt", "20us"])
        .assert()
        .code(1)
        .stdout_eq(str![[r#"
config_db.json, with a round-trip time of 20us

1. error S03: WRED_PROFILE|DEEP (line 3)
   wred_green_enable is missing in DEEP: nothing is marked on platforms that follow SAI, whose default is off.
   fix: set "wred_green_enable": "true"
2. warning S08: QUEUE|Ethernet0|0 (line 5)
   queue 0 of Ethernet0 may hold 336 us of packets before anything is marked, 16.8 times C x RTT: that is delay for every flow of the queue without more throughput.
   fix: set min = max between 8929 B (C x RTT / 7, DCTCP) and 62.5 KB (C x RTT) in DEEP, and measure: shallows run --vary
3. note S07: QUEUE|Ethernet0|0 (line 5)
   queue 0 of Ethernet0 starts to mark at 1 MiB, which is 336 us at 25G and 16.8 times C x RTT; the probability rises to 5% at 2 MiB and is 1 above.

1 error, 1 warning, 1 note

"#]])
        .stderr_eq(str![[r#"
error: 1 error in config_db.json

"#]]);
}

#[test]
fn the_round_trip_time_and_qjumps_levels_come_from_a_scenario() {
    let directory = directory();
    write(
        &directory,
        "fabric.toml",
        r#"
            [topology.star]
            hosts = 4
            rate = "25Gbps"
            delay = "2us"
            [ports.switch]
            queues = 2
            scheduler = "strict"
            buffer = "unlimited"
            [hosts.qjump]
            epoch = "20us"
            levels = ["256B", "20KB"]
            [workload]
            flows = [{ src = 0, dst = 1, size = "1MB" }]
        "#,
    );
    let output = shallows(&directory)
        .args(["sonic", "check", "--scenario", "fabric.toml", "--json"])
        .arg(shipped(LEAF))
        .assert()
        .code(1);
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    // Two links of 2 us with 1500 B at 25 Gbps (480 ns) there and 40 B (12.8 ns) back.
    assert_eq!(report["rtt"], "8.9856us");
    let rules = report["findings"].as_array().expect("a list");
    let qjump = rules.iter().find(|finding| finding["rule"] == "S16");
    let qjump = qjump.expect("QJUMP's levels share queue 0");
    assert_eq!(qjump["severity"], "error");
    assert_eq!(report["errors"], 1);
}

#[test]
fn a_sound_configuration_succeeds_and_a_malformed_one_names_every_problem() {
    let directory = directory();
    let leaf = shipped(LEAF);
    let check = || shallows(&directory).args(["sonic", "check"]);
    check().arg(&leaf).assert().success();
    write(
        &directory,
        "bad.json",
        "{\"QUEUE\": {\"Ethernet0\": {}},\n\"SCHEDULER\": {\"s\": {\"weight\": \"x\"}}}",
    );
    check().arg("bad.json").assert().code(2).stderr_eq(str![[r#"
error: bad.json:2: SCHEDULER|s, weight: "x" is not a whole number from 0 to 4294967295
bad.json:1: QUEUE|Ethernet0: the key names no queue; write a key such as "Ethernet0|3" or "Ethernet0|3-4"

"#]]);
    check().arg("none.json").assert().code(2);
}

#[test]
fn imported_ports_complete_a_scenario() {
    let directory = directory();
    let import = shallows(&directory)
        .args(["sonic", "import", "--links", "Ethernet48=leaf*->spine*"])
        .arg(shipped(LEAF))
        .assert()
        .success();
    let ports = String::from_utf8_lossy(&import.get_output().stdout).into_owned();
    let fabric = r#"
        [topology.leaf-spine]
        leaves = 2
        hosts-per-leaf = 2
        spines = 2
        host-rate = "25Gbps"
        host-delay = "2us"
        fabric-rate = "100Gbps"
        fabric-delay = "1us"
        [workload]
        flows = [{ src = 0, dst = 3, size = "1MB", service = 26 }]
    "#;
    write(&directory, "fabric.toml", &format!("{ports}{fabric}"));
    shallows(&directory)
        .args(["run", "fabric.toml"])
        .assert()
        .success();
    shallows(&directory)
        .args(["sonic", "import", "--links", "Ethernet99=leaf*->spine*"])
        .arg(shipped(LEAF))
        .assert()
        .code(2)
        .stderr_eq(str![[r#"
error: [..]leaf.config_db.json: there is no port Ethernet99 with queues; one is Ethernet0

"#]]);
}

#[test]
fn a_step_at_c_times_rtt_becomes_a_profile_for_each_speed() {
    let directory = directory();
    let export = shallows(&directory)
        .args(["sonic", "export", "--set"])
        .arg("ports.switch.marker.scheme={per-queue={threshold={rtt=\"20us\",lambda=1.0}}}")
        .arg("--base")
        .args([shipped(LEAF), shipped("sonic/fabric.toml")])
        .assert()
        .success();
    let output = export.get_output();
    let patch: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a patch");
    let steps = patch.as_array().expect("a list");
    let added: Vec<&str> = steps
        .iter()
        .filter(|step| step["op"] == "add")
        .filter_map(|step| step["path"].as_str())
        .filter(|path| path.starts_with("/WRED_PROFILE"))
        .collect();
    assert_eq!(
        added,
        [
            "/WRED_PROFILE/SHALLOWS_250000",
            "/WRED_PROFILE/SHALLOWS_62500"
        ]
    );
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        words.contains("exact: marker: a step at K is min = max = K with 100%"),
        "{words}"
    );
}

#[test]
fn mq_ecn_is_exported_as_the_nearest_with_a_way_to_measure_its_cost() {
    let directory = directory();
    let export = shallows(&directory)
        .args(["sonic", "export", "--fragment", "--set"])
        .arg("ports.switch.marker.scheme={mq-ecn={threshold=\"62.5KB\"}}")
        .arg("--base")
        .args([shipped(LEAF), shipped("sonic/fabric.toml")])
        .assert()
        .success();
    let output = export.get_output();
    let fragment: serde_json::Value = serde_json::from_slice(&output.stdout).expect("tables");
    assert!(fragment["WRED_PROFILE"].is_object());
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        words.contains("nearest: marker: no table has MQ-ECN"),
        "{words}"
    );
    assert!(
        words.contains("to see what the nearest marker costs: shallows run"),
        "{words}"
    );
}

#[test]
fn the_commands_of_the_page_run() {
    let directory = directory();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::os::unix::fs::symlink(root.join("scenarios"), directory.path().join("scenarios"))
        .expect("the directory takes a link");
    let page = std::fs::read_to_string(root.join("docs/operate.md")).expect("the page is there");
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_shallows"))
        .parent()
        .expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut commands = 0;
    for command in page.replace("\\\n", " ").lines() {
        if !command.starts_with("shallows ") {
            continue;
        }
        commands += 1;
        snapbox::cmd::Command::new("sh")
            .current_dir(directory.path())
            .env("PATH", format!("{}:{path}", programs.display()))
            .args(["-c", command])
            .assert()
            .success();
    }
    assert!(commands >= 5, "{commands} commands");
}
