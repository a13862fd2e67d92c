//! Ctrl-C.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SIGINT, SIGTERM, Signal, kill};
use nix::unistd::Pid;

use crate::{read, with_tiny};

/// Bytes that a pipe holds.
const PIPE: usize = 1 << 16;

#[test]
fn what_is_complete_is_kept() {
    for signal in [SIGINT, SIGTERM] {
        is_kept_after(signal);
    }
}

fn is_kept_after(signal: Signal) {
    let directory = with_tiny();
    let out = directory.path().join("out/tiny");
    let mut run = Command::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args([
            "run",
            "tiny.toml",
            "--set",
            "workload.poisson.flows=2000000",
            "--set",
            "probes.queues={links=\"*->h0\", interval=\"100us\"}",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&out);
    // Until some flows have finished.
    thread::sleep(Duration::from_millis(300));
    send(&run, signal);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let output = run.wait_with_output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("PARTIAL: interrupted at "), "{table}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "interrupted: the results are partial\n"
    );

    let summary: serde_json::Value =
        serde_json::from_slice(&read(&directory, "out/tiny/summary.json")).unwrap();
    assert_eq!(summary["partial"], true);
    let flows = &summary["classes"]["all"];
    let finished = flows["flows"].as_u64().unwrap() - flows["unfinished"].as_u64().unwrap();
    assert!(finished > 0, "a third of a second finishes some flows");
    for file in ["flows.parquet", "queues.parquet", "ports.csv"] {
        assert!(out.join(file).exists(), "{file}");
    }
}

/// Before the first flow as well: there are no flows, but what the probes have seen.
#[test]
fn an_interrupt_before_the_first_flow_keeps_what_there_is() {
    let directory = with_tiny();
    let flows = "start_s,src,dst,bytes,service\n900000,0,1,30000,0\n";
    std::fs::write(directory.path().join("late.csv"), flows).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(["run", "tiny.toml", "--flows", "late.csv", "--set"])
        .arg("probes.queues={links=\"*->h0\", interval=\"1us\"}")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = directory.path().join("out/tiny");
    wait_for(&out.join(".shallows-unfinished/scenario.toml"));
    thread::sleep(Duration::from_millis(100));
    send(&run, SIGINT);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let output = run.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "interrupted: the results are partial\n"
    );
    for file in ["queues.parquet", "ports.csv", "scenario.toml"] {
        assert!(out.join(file).exists(), "{file}");
    }
}

/// Ten million flows take seconds to draw, and nothing is written before they are there.
#[test]
fn an_interrupt_while_flows_are_drawn_ends_the_run() {
    let directory = with_tiny();
    let run = Command::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args([
            "run",
            "tiny.toml",
            "--set",
            "workload.poisson.flows=10000000",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !catches(&run, SIGINT) {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(50));
    send(&run, SIGINT);
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(
        said,
        "interrupted before the run began; there are no results\n"
    );
    assert!(!directory.path().join("out").exists());
}

/// Returns whether a program has a handler for a signal.
fn catches(run: &Child, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    caught >> (signal as u32 - 1) & 1 == 1
}

/// A program that cannot go on, because nobody reads what it prints, still ends.
#[test]
fn the_second_signal_ends_the_program_at_once() {
    let directory = with_tiny();
    let (unread, mut full) = io::pipe().unwrap();
    full.write_all(&vec![0; PIPE]).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(["run", "tiny.toml"])
        .stdout(full)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&directory.path().join("out/tiny/summary.json"));
    // Two that come too close are one.
    let mut sent = 0;
    let status = loop {
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        send(&run, SIGINT);
        sent += 1;
        assert!(sent < 1000, "it does not end");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(130));
    assert!(sent > 1, "the first lets it go on printing");
    drop(unread);
}

pub(crate) fn send(run: &Child, signal: Signal) {
    kill(Pid::from_raw(run.id().cast_signed()), signal).unwrap();
}

/// The directory appears once Ctrl-C is watched for.
fn wait_for(path: &Path) {
    while !path.exists() {
        thread::sleep(Duration::from_millis(10));
    }
}
