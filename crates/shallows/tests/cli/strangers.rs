//! A scheduler, a congestion controller and a marker of another crate (this one) in the whole command
//! line. A cluster needs a program of its own: `examples/my-marker` has that test.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{self, Command};

use shallows_core::port::marker::{Marking, Seen};
use shallows_core::port::scheduler::Scheduling;
use shallows_core::port::{MarkReason, QueueSet, Queues, RoundObserver};
use shallows_core::registry::Registry;
use shallows_core::tcp::EcnEcho;
use shallows_core::tcp::congestion::{AckSample, Control, Window};
use shallows_core::units::Time;
use tempfile::TempDir;

use crate::repro::with_paper;
use crate::{with_tiny, write};

/// Marks every packet.
#[derive(Debug)]
struct Every;

impl Marking for Every {
    fn decide(&mut self, _: Seen, _: &Queues) -> Option<MarkReason> {
        Some(MarkReason::Queue)
    }
}

/// Serves the longest queue.
#[derive(Debug)]
struct LongestFirst;

impl Scheduling for LongestFirst {
    fn select(
        &mut self,
        _: Time,
        ready: QueueSet,
        queues: &Queues,
        _: &mut dyn RoundObserver,
    ) -> Option<usize> {
        ready.iter().max_by_key(|&queue| queues.queue_bytes(queue))
    }
}

/// Keeps the initial window for ever.
#[derive(Debug)]
struct Still;

impl Control for Still {
    fn grow(&mut self, _: &mut Window, _: &AckSample) {}
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.marker("every", |_, _| Ok(Box::new(Every)));
    registry.scheduler("longest-first", |_, _| Ok(Box::new(LongestFirst)));
    registry.controller("still", EcnEcho::Precise, |_, _| Ok(Box::new(Still)));
    registry
}

/// Settings that choose all three.
const ALL: [&str; 6] = [
    "--set",
    "ports.switch.marker.scheme=every",
    "--set",
    "ports.switch.scheduler=longest-first",
    "--set",
    "transport.controller=still",
];

/// The arguments of the program, a line each.
const ARGUMENTS: &str = "SHALLOWS_TEST_ARGUMENTS";

#[test]
#[ignore = "the program that the other tests start"]
fn program() {
    if let Ok(arguments) = std::env::var(ARGUMENTS) {
        let arguments = arguments.lines().map(OsString::from);
        process::exit(shallows::command(arguments, &registry()).into());
    }
}

/// Runs a command line with the registry, in a process of its own; what it printed.
fn strange(directory: &TempDir, arguments: &[&str]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "strangers::program", "--ignored", "--nocapture"])
        .env(ARGUMENTS, [&["shallows"], arguments].concat().join("\n"))
        .current_dir(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The scenarios of the runs in a store.
fn scenarios(store: &Path) -> Vec<String> {
    let runs = fs::read_dir(store).unwrap().map(Result::unwrap);
    runs.map(|run| fs::read_to_string(run.path().join("scenario.toml")).unwrap())
        .collect()
}

fn names_all(scenario: &str) -> bool {
    let names = ["every", "longest-first", "still"];
    names.iter().all(|name| scenario.contains(name))
}

#[test]
fn a_run_has_them() {
    let directory = with_tiny();
    strange(
        &directory,
        &[&["run", "tiny.toml", "--out", "out"][..], &ALL].concat(),
    );
    let read = |name| fs::read_to_string(directory.path().join("out").join(name)).unwrap();
    assert!(names_all(&read("scenario.toml")));
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    // 50 flows of 21 segments.
    assert_eq!(summary["marks"][0]["small"], 50 * 21, "{summary}");
}

#[test]
fn they_can_be_varied() {
    let directory = with_tiny();
    let vary = "transport.controller=still,reno";
    let run = [
        "run",
        "tiny.toml",
        "--vary",
        vary,
        "--metric",
        "all.mean",
        "--out",
        "out",
    ];
    let table = strange(&directory, &[&run[..], &ALL[..4]].concat());
    for name in ["still", "reno"] {
        assert!(table.contains(name), "{table}");
    }
}

#[test]
fn a_study_has_them() {
    let directory = with_tiny();
    let study = r#"
scenario = "tiny.toml"
metrics = ["all.mean"]
[[axis]]
name = "scheduler"
point = [
    { label = "ours", set = ["ports.switch.scheduler=strict", "ports.switch.marker.scheme=none"] },
    { label = "theirs", set = ["ports.switch.scheduler=longest-first", "ports.switch.marker.scheme=every"] },
]
"#;
    write(&directory, "study.toml", study);
    let set = ["--set", "transport.controller=still"];
    strange(
        &directory,
        &[&["sweep", "study.toml", "--out", "out"][..], &set].concat(),
    );
    let scenarios = scenarios(&directory.path().join("out/runs"));
    assert_eq!(scenarios.iter().filter(|of| names_all(of)).count(), 1);
    assert!(scenarios.iter().all(|of| of.contains("still")));
}

#[test]
fn figures_of_papers_can_be_tried_with_them() {
    let directory = with_paper();
    let repro = [
        "repro", "toy", "--quick", "--from", "papers", "--out", "out",
    ];
    strange(&directory, &[&repro[..], &ALL].concat());
    let scenarios = scenarios(&directory.path().join("out/runs"));
    assert!(!scenarios.is_empty());
    assert!(scenarios.iter().all(|of| names_all(of)), "{scenarios:?}");
}
