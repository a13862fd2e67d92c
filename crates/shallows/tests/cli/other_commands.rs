//! Commands other than `run`.

use std::fs;

use crate::{directory, shallows};

#[test]
fn completions_are_printed_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let output = shallows(&directory())
            .args(["completions", shell])
            .output()
            .unwrap();
        assert!(output.status.success());
        assert!(
            String::from_utf8(output.stdout).unwrap().contains("until"),
            "{shell}"
        );
    }
}

#[test]
fn man_pages_are_written_for_each_command() {
    let directory = directory();
    let man = shallows(&directory);
    man.args(["man", "pages"]).assert().success();
    let page = |name: &str| fs::read_to_string(directory.path().join("pages").join(name)).unwrap();
    assert!(page("shallows-run.1").contains("until"));
    assert!(page("shallows-qjump-plan.1").contains("guaranteed"));
}

/// One run of the bench.
fn measured(workload: &str, threads: &str) -> serde_json::Value {
    let bench = ["bench", "--only", workload, "--threads", threads];
    let output = shallows(&directory()).args(bench).output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_bench_measures_its_workloads() {
    for (workload, flows, useful) in [("a", 144, 7_891_200), ("b", 3000, 27_547_052)] {
        let run = measured(workload, "1");
        assert_eq!(run["finished"], flows);
        let hops = run["packet_hops"].as_u64().unwrap();
        assert!(
            hops >= useful,
            "retransmissions come on top: {hops} and {useful}"
        );
    }
    assert!(measured("idle", "1").as_f64().unwrap() < 1000.0);
}

#[test]
fn the_bench_has_the_same_outcome_on_several_threads() {
    // One thread runs in layers; with so many threads the event queue is used.
    let (alone, together) = (measured("a", "1"), measured("a", "8"));
    assert_eq!(together["threads"], 8);
    assert_eq!(together["fingerprint"], alone["fingerprint"]);
}

/// Layers and two threads of the event queue, on workload A and others.
#[test]
fn two_threads_of_the_event_queue_have_the_same_outcome() {
    let bench = ["bench", "threads", "--threads", "2", "--runs", "1"];
    let output = shallows(&directory()).args(bench).output().unwrap();
    // It compares the outcomes of all flows.
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let of_a = printed.lines().filter(|line| line.starts_with("reference"));
    let engines: Vec<&str> = of_a.map(|line| &line[28..39]).collect();
    assert_eq!(engines, ["layers     ", "event queue"], "{printed}");
}

#[test]
fn a_simulator_without_results_is_refused() {
    let validate = ["validate", "ns-3"];
    let output = shallows(&directory()).args(validate).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("values: mq-ecn, ear, qjump"), "{error}");
}
