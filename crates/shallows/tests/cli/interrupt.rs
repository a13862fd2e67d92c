//! Ctrl-C.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::{read, with_tiny};

/// Bytes that a pipe holds.
const PIPE: usize = 1 << 16;

#[test]
fn what_is_complete_is_kept() {
    for name in ["-INT", "-TERM"] {
        is_kept_after(name);
    }
}

fn is_kept_after(signal_name: &str) {
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
    signal(&run, signal_name);
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
    assert!(finished > 0, "100,000 events finish some flows");
    for file in ["flows.parquet", "queues.parquet", "ports.csv"] {
        assert!(out.join(file).exists(), "{file}");
    }
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
        signal(&run, "-INT");
        sent += 1;
        assert!(sent < 1000, "it does not end");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(130));
    assert!(sent > 1, "the first lets it go on printing");
    drop(unread);
}

fn signal(run: &Child, name: &str) {
    let id = run.id().to_string();
    let sent = Command::new("kill").args([name, &id]).status().unwrap();
    assert!(sent.success());
}

/// The directory appears once Ctrl-C is watched for.
fn wait_for(path: &Path) {
    while !path.exists() {
        thread::sleep(Duration::from_millis(10));
    }
}
