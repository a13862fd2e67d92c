//! Sweeps of a small scenario, and two of them compared.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::diff;
use shallows_run::scenario::Setting;

/// Four hosts at a switch.
const TINY: &str = r#"
    [topology.star]
    hosts = 4
    rate = "10Gbps"
    delay = "1us"
    [ports.switch]
    scheduler = "fifo"
    buffer = { shared = { size = "100KB" } }
    marker = { scheme = { per-queue = { threshold = "20pkts" } } }
    [workload.poisson]
    load = 0.5
    size = "30KB"
    flows = 50
"#;

struct Quiet;

impl Observer for Quiet {
    fn begin(&self, _: usize, _: usize, _: u64) {}
    fn update(&self, _: usize, _: f64, _: u64) {}
    fn finish(&self, _: usize, _: u64, _: u64) {}
    fn end(&self) {}
    fn note(&self, _: &str) {}
}

fn with_tiny() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("tiny.toml"), TINY).unwrap();
    directory
}

/// `shallows run tiny.toml --vary ... --set ... --metric ... --out OUT`.
fn vary(directory: &TempDir, out: &str, vary: &[&str], set: &[&str], metrics: &[&str]) -> Outcome {
    let texts = |of: &[&str]| of.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
    let on_top = OnTop {
        set: set.iter().map(|&one| Setting::new(one)).collect(),
        ..OnTop::default()
    };
    let scenario = directory.path().join("tiny.toml");
    let study = Study::vary(&scenario, &texts(vary), &on_top, &texts(metrics)).unwrap();
    run(directory, out, &study)
}

fn run(directory: &TempDir, out: &str, study: &Study) -> Outcome {
    let request = Request {
        out: directory.path().join(out),
        store: directory.path().join(out).join("runs"),
        threads: 2,
        fresh: false,
        look: Look::default(),
    };
    sweep(study, &request, &AtomicBool::new(false), &Quiet).unwrap()
}

fn compared(directory: &TempDir, first: &str, second: &str) -> anyhow::Result<String> {
    diff(&directory.path().join(first), &directory.path().join(second))
}

const LOADS: [&str; 1] = ["workload.poisson.load=0.3,0.6"];

#[test]
fn settings_and_size_of_a_command_are_compared() {
    let directory = with_tiny();
    let (one, other) = (["transport.controller=reno"], ["until=\"5ms\""]);
    vary(&directory, "one", &LOADS, &one, &[]);
    vary(&directory, "other", &LOADS, &other, &[]);
    let words = compared(&directory, "one", "other").unwrap();
    let expected = "key                       first  second\n\
                    set.transport.controller  reno   -\n\
                    set.until                 -      \"5ms\"\n";
    assert!(words.starts_with(expected), "{words}");
    let words = compared(&directory, "one", "one").unwrap();
    assert!(words.starts_with("scenario: equal\n"), "{words}");

    let study = "scenario = \"tiny.toml\"\n[quick]\nset = [\"workload.poisson.flows=20\"]\n";
    let path = directory.path().join("study.toml");
    fs::write(&path, study).unwrap();
    for (out, size) in [("full", None), ("quick", Some(Size::Quick))] {
        let on_top = OnTop {
            size,
            ..OnTop::default()
        };
        run(&directory, out, &Study::read(&path, &on_top).unwrap());
    }
    let words = compared(&directory, "full", "quick").unwrap();
    let expected = "key   first  second\nsize  full   quick\n";
    assert!(words.starts_with(expected), "{words}");
}

#[test]
fn the_scenario_of_the_record_is_the_one_of_the_runs() {
    let directory = with_tiny();
    let vary = LOADS.map(str::to_owned);
    let path = directory.path().join("tiny.toml");
    let study = Study::vary(&path, &vary, &OnTop::default(), &[]).unwrap();
    let jobs = study.jobs().unwrap();
    fs::write(&path, TINY.replace("flows = 50", "flows = 60")).unwrap();
    assert!(jobs.iter().all(|job| job.scenario.text() == TINY));
}
