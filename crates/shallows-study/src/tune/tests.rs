//! Whole searches, small ones and those that have to hold up against an exhaustive grid.

#![allow(clippy::print_stderr)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::*;

/// Eight hosts at a switch with two services.
const STAR: &str = r#"
    [topology.star]
    hosts = 8
    rate = "10Gbps"
    delay = "5us"
    [ports]
    host = "as-switch"
    [ports.switch]
    queues = 2
    buffer = { shared = { size = "300KB" } }
    scheduler = { dwrr = { quantum = ["1500B", "1500B"] } }
    marker = { scheme = { per-queue = { threshold = "100KB" } } }
    [transport]
    rto = { initial = "5ms", minimum = "5ms" }
    [workload.poisson]
    load = 0.6
    size = { cdf = "web-search" }
    flows = 150
    services = { balanced = 2 }
"#;

struct Quiet;

impl Observer for Quiet {}

fn scenario(directory: &TempDir, name: &str, flows: u32) -> PathBuf {
    let path = directory.path().join(name);
    let text = STAR.replace("flows = 150", &format!("flows = {flows}"));
    fs::write(&path, text).unwrap();
    path
}

fn request(directory: &TempDir, scenario: PathBuf, seeds: u64) -> Request {
    Request {
        scenarios: vec![scenario],
        seeds,
        out: directory.path().join("out"),
        store: directory.path().join("runs"),
        threads: 2,
        ..Request::default()
    }
}

fn search_for(request: &Request) -> Outcome {
    tune(request, &AtomicBool::new(false), &Quiet).unwrap()
}

#[test]
fn a_search_says_what_to_do_and_shows_what_it_has_not_seen() {
    let directory = tempfile::tempdir().unwrap();
    let other = scenario(&directory, "other.toml", 40);
    let mut request = request(&directory, scenario(&directory, "star.toml", 30), 2);
    request.minimize = Some("all.slowdown.mean".to_owned());
    request.keep = vec!["throughput >= -50%".to_owned()];
    request.knobs = vec!["ports.switch.marker.scheme.per-queue.threshold=10KB..90KB:9".to_owned()];
    request.across = vec!["transport.initial-window=10,16".to_owned()];
    request.held_out = vec![other];
    request.held_out_at = vec!["workload.poisson.load=0.9".to_owned()];
    let outcome = search_for(&request);
    assert!(outcome.sentence.starts_with("threshold = "), "{outcome:?}");
    assert!(
        outcome
            .sentence
            .contains("KB instead of 100KB: all.slowdown.mean ")
    );
    assert_eq!(outcome.set.len(), 1);
    // Two loads of the search, the same with held-out seeds, each at another load, and the other
    // scenario.
    assert_eq!(
        outcome.table.lines().count(),
        1 + 2 + 2 + 2 + 1,
        "{outcome:?}"
    );
    assert!(
        outcome
            .table
            .contains("star, initial-window = 16, load = 0.9")
    );
    assert_eq!(outcome.grid, 9 * 2 * 2);
    for name in ["candidates.parquet", "tune.json", "front.svg", "front.csv"] {
        assert!(request.out.join(name).is_file(), "{name}");
    }
    // The same again, from the store, on one thread.
    let before = made(&request.store);
    let again = search_for(&Request {
        threads: 1,
        ..request.clone()
    });
    assert_eq!(again, outcome);
    assert_eq!(made(&request.store), before);
}

#[test]
fn a_search_survives_a_held_out_scenario_without_a_metric_and_tells_of_unfinished_flows() {
    let directory = tempfile::tempdir().unwrap();
    let mut request = request(&directory, scenario(&directory, "star.toml", 60), 2);
    request.minimize = Some("all.slowdown.mean".to_owned());
    request.keep = vec!["medium.mean <= +900%".to_owned()];
    request.knobs = vec!["ports.switch.marker.scheme.per-queue.threshold=10KB..90KB:9".to_owned()];
    request.set = vec![Setting::new("until=\"20ms\"")];
    // None of its flows is of medium size.
    let small = directory.path().join("small.toml");
    let text = STAR.replace("{ cdf = \"web-search\" }", "\"30KB\"");
    fs::write(&small, text).unwrap();
    request.held_out = vec![small];
    let outcome = search_for(&request);
    assert_eq!(outcome.set.len(), 1, "{outcome:?}");
    let expected = "no comparison in small (held out, as is the scenario): the run with seed 3 as \
                    it is does not have all of: all.slowdown.mean, medium.mean; ";
    let has = |start: &str| outcome.notes.iter().any(|note| note.starts_with(start));
    assert!(has(expected), "{:?}", outcome.notes);
    let expected = "not over at the end of the run, and in no completion time: ";
    assert!(has(expected), "{:?}", outcome.notes);
}

#[test]
fn a_search_takes_the_scenario_as_it_was_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(&directory, "star.toml", 30);
    let mut request = request(&directory, path.clone(), 1);
    request.minimize = Some("small.mean".to_owned());
    request.knobs = vec!["transport.initial-window=8,16".to_owned()];
    let plan = Plan::new(&request).unwrap();
    fs::write(&path, "edited").unwrap();
    let case = plan.cases[0].as_it_is(&Registry::default()).unwrap();
    assert_eq!(case.text(), STAR.replace("flows = 150", "flows = 30"));
}

fn made(store: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let entries = fs::read_dir(store).unwrap().flatten();
    let mut made: Vec<_> = entries
        .map(|entry| (entry.path(), entry.metadata().unwrap().modified().unwrap()))
        .collect();
    made.sort();
    made
}

#[test]
fn choices_with_names_are_compared_in_the_same_form() {
    let directory = tempfile::tempdir().unwrap();
    let knobs = directory.path().join("knobs.toml");
    let text = r#"
        [[knob]]
        name = "marker"
        point = [
            { label = "none", set = ["ports.switch.marker.scheme=none"] },
            { label = "MQ-ECN", set = ["ports.switch.marker.scheme={mq-ecn={threshold=\"30KB\"}}"] },
        ]
    "#;
    fs::write(&knobs, text).unwrap();
    let mut request = request(&directory, scenario(&directory, "star.toml", 60), 2);
    request.minimize = Some("small.mean".to_owned());
    request.knob_file = Some(knobs);
    let outcome = search_for(&request);
    let expected = "marker = MQ-ECN: small.mean falls by";
    assert!(outcome.sentence.starts_with(expected), "{outcome:?}");
    // Nothing is better than what the scenario has, within an impossible bound.
    request.keep = vec!["all.mean <= -99%".to_owned()];
    let outcome = search_for(&request);
    assert_eq!(
        outcome.sentence,
        "keep the scenario as it is: none of 2 candidates within all.mean <= -99% has a better \
         small.mean"
    );
    assert!(outcome.set.is_empty());
    assert!(
        outcome.table.contains("\nmarker = MQ-ECN  2 "),
        "{outcome:?}"
    );
}

#[test]
fn mistakes_come_to_light_before_any_run() {
    let directory = tempfile::tempdir().unwrap();
    let good = || {
        let mut request = request(&directory, scenario(&directory, "star.toml", 30), 2);
        request.minimize = Some("small.mean".to_owned());
        request.knobs = vec!["transport.initial-window=8,16".to_owned()];
        request
    };
    let wrong: [fn(&mut Request); 7] = [
        |of| of.minimize = Some("tiny.mean".to_owned()),
        |of| of.minimize = None,
        |of| of.keep = vec!["large.mean".to_owned()],
        |of| of.knobs = vec!["ports.switch.quues=2,3".to_owned()],
        |of| of.knobs = vec!["ports.switch.queues=2,3".to_owned()],
        |of| of.set = vec![Setting::new("seed=3")],
        |of| of.across = vec!["workload.poisson.lod=0.3".to_owned()],
    ];
    for (index, change) in wrong.into_iter().enumerate() {
        let mut request = good();
        change(&mut request);
        let result = tune(&request, &AtomicBool::new(false), &Quiet);
        assert!(
            matches!(result, Err(Failure::Scenario(_))),
            "{index}: {result:?}"
        );
        assert_eq!(fs::read_dir(&request.store).map_or(0, Iterator::count), 0);
    }
    let mut request = good();
    request.minimize = Some("rtt.data.p99".to_owned());
    let result = tune(&request, &AtomicBool::new(false), &Quiet);
    let problem = result.unwrap_err().to_string();
    assert!(
        problem.contains("does not have all of: rtt.data.p99"),
        "{problem}"
    );
}

/// A search and the grid that it stands for, over the same seeds.
fn against_the_grid(name: &str, request: &Request) {
    let plan = Plan::new(request).unwrap();
    let interrupted = AtomicBool::new(false);
    let executor = || Executor {
        store: &request.store,
        threads: request.threads,
        fresh: false,
        interrupted: &interrupted,
        observer: &Quiet,
    };
    let seeds = request.seeds;
    let mut trials = plan.trials(request, executor());
    let pool = search::search(&plan.space(), seeds as usize, &mut trials).unwrap();
    let runs = trials.runs();
    let chosen = choose(&trials, &pool, seeds).expect("there is something better");
    let mut grid: Vec<Candidate> = vec![Vec::new()];
    for knob in &plan.knobs {
        let longer = |start: &Candidate, point| [&start[..], &[point]].concat();
        grid = grid
            .iter()
            .flat_map(|start| (0..knob.points().len()).map(move |point| longer(start, point)))
            .collect();
    }
    trials.make(&grid, 0..1, 1..=seeds).unwrap();
    let everything: Pool = grid.iter().map(|of| (of.clone(), seeds as usize)).collect();
    let best = choose(&trials, &everything, seeds).expect("there is something better");
    let both = [chosen.clone(), best.clone()];
    trials.make(&both, 0..1, seeds + 1..=2 * seeds).unwrap();
    let [of_search, of_grid] = both.map(|of| {
        let standing = trials.standing(&of, 0..1, seeds + 1..=2 * seeds).unwrap();
        plan.goal.cost(standing.goal.mean)
    });
    let all = grid.len() * seeds as usize;
    eprintln!(
        "{name}: {} with {runs} of {all} runs ({:.1}%); best of the grid {}; on held-out seeds \
         {of_search:.4} and {of_grid:.4} of the scenario as it is ({:+.2}%)",
        trials.label(&chosen),
        100.0 * runs as f64 / all as f64,
        trials.label(&best),
        100.0 * (of_search / of_grid - 1.0),
    );
    assert!(10 * runs <= all, "{name}: {runs} of {all} runs");
    assert!(
        of_search <= 1.03 * of_grid,
        "{name}: {of_search} and {of_grid}"
    );
}

const THRESHOLD: &str = "ports.switch.marker.scheme.per-queue.threshold";

#[test]
#[ignore = "long: cargo test --release -p shallows-study --lib against_the_grid -- --ignored --nocapture"]
fn k_holds_up_against_the_grid() {
    let directory = tempfile::tempdir().unwrap();
    let mut request = request(&directory, scenario(&directory, "star.toml", 300), 16);
    request.minimize = Some("small.p99".to_owned());
    request.keep = vec!["large.mean <= +5%".to_owned()];
    request.knobs = vec![format!("{THRESHOLD}=1.6KB..240KB:97")];
    against_the_grid("K", &request);
}

#[test]
#[ignore = "long: cargo test --release -p shallows-study --lib against_the_grid -- --ignored --nocapture"]
fn k_and_the_scheduler_hold_up_against_the_grid() {
    let directory = tempfile::tempdir().unwrap();
    let knobs = directory.path().join("knobs.toml");
    let text = r#"
        [[knob]]
        name = "scheduler"
        point = [
            { label = "DWRR", set = ["ports.switch.scheduler={dwrr={quantum=\"1500B\"}}"] },
            { label = "WRR", set = ["ports.switch.scheduler={wrr={quantum=\"1500B\"}}"] },
            { label = "strict", set = ["ports.switch.scheduler=strict"] },
            { label = "WFQ", set = ["ports.switch.scheduler={wfq={weight=1}}"] },
        ]
    "#;
    fs::write(&knobs, text).unwrap();
    let mut request = request(&directory, scenario(&directory, "star.toml", 150), 8);
    request.minimize = Some("all.slowdown.mean".to_owned());
    request.knobs = vec![format!("{THRESHOLD}=1.6KB..240KB:33")];
    request.knob_file = Some(knobs);
    against_the_grid("K and the scheduler", &request);
}

#[test]
#[ignore = "long: cargo test --release -p shallows-study --lib against_the_grid -- --ignored --nocapture"]
fn k_and_a_weight_hold_up_against_the_grid() {
    let directory = tempfile::tempdir().unwrap();
    let mut request = request(&directory, scenario(&directory, "star.toml", 150), 8);
    request.minimize = Some("service.0.mean".to_owned());
    request.keep = vec!["service.1.mean <= +10%".to_owned()];
    request.knobs = vec![
        format!("{THRESHOLD}=1.6KB..240KB:17"),
        "ports.switch.scheduler.dwrr.quantum.0=1500B..24000B:17".to_owned(),
    ];
    against_the_grid("K and a weight", &request);
}
