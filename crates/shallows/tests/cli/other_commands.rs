//! Commands other than `run`.

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
fn the_bench_reports_both_workloads() {
    let bench = ["bench", "--json", "--runs", "1"];
    let output = shallows(&directory()).args(bench).output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");
    let lines: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for (line, flows) in lines.as_array().unwrap().iter().zip([144, 3000]) {
        assert_eq!(line["runs"][0]["finished"], flows);
        let useful = line["useful_packet_hops"].as_u64().unwrap();
        let hops = line["runs"][0]["packet_hops"].as_u64().unwrap();
        assert!(
            hops >= useful,
            "retransmissions come on top: {hops} and {useful}"
        );
    }
}
