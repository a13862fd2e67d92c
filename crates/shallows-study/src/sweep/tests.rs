//! Sweeps of a small scenario, and two of them compared.

use std::fs;

use shallows_core::units::Time;
use shallows_results::compare::figures_of;
use shallows_results::figure::Plot;
use shallows_results::frame::Cells;
use shallows_results::record::{Completeness, FlowRecord};
use shallows_results::size_class::SizeClasses;
use shallows_results::statistics::PercentileRule;
use shallows_results::summary::{RunFacts, Summary};
use shallows_run::scenario::Setting;
use tempfile::TempDir;

use super::*;
use crate::diff;
use crate::plot::{SweepPlot, plot_sweep};

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

impl Observer for Quiet {}

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
    diff(
        &directory.path().join(first),
        &directory.path().join(second),
    )
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

#[test]
fn an_axis_of_one_sweep_only_has_one_value() {
    let directory = with_tiny();
    let windows = ["transport.initial-window=4,10"];
    vary(&directory, "loads", &LOADS, &[], &["all.mean"]);
    vary(&directory, "windows", &windows, &[], &["all.mean"]);
    let problem = compared(&directory, "loads", "windows").unwrap_err();
    let expected = "only the first sweep has the axis load, with several values (0.3, 0.6); run it \
                    again with one of them, or the other sweep with this axis";
    assert_eq!(problem.to_string(), expected);
    vary(
        &directory,
        "load",
        &["workload.poisson.load=0.3"],
        &[],
        &["all.mean"],
    );
    vary(
        &directory,
        "window",
        &["transport.initial-window=4"],
        &[],
        &["all.mean"],
    );
    let words = compared(&directory, "load", "window").unwrap();
    assert!(words.contains("no axis in common"), "{words}");
}

#[test]
fn a_metric_has_one_meaning_in_both_tables() {
    let directory = with_tiny();
    // Ports count the drops of the whole run, and the metric those of the flows in the window.
    let set = [
        "ports.host=as-switch",
        "workload.poisson.size=\"90KB\"",
        "ports.switch.buffer={shared={size=\"20KB\"}}",
        "ports.switch.marker.scheme=none",
        "workload.poisson.flows=200",
        "measure.from=\"2ms\"",
    ];
    let outcome = vary(&directory, "out", &LOADS, &set, &["drops.small"]);
    let out = directory.path().join("out");
    let runs = Frame::read(&out.join("runs.parquet")).unwrap();
    let means = match outcome.points.column("mean") {
        Some(Cells::Reals(values)) => values.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        runs.column("drops.small"),
        Some(&Cells::Reals(means.clone()))
    );
    let Some(Cells::Texts(keys)) = runs.column("run") else {
        panic!("runs have keys");
    };
    let of_summary = |key: &String| {
        let path = out.join("runs").join(key).join("summary.json");
        let figures = figures_of(&Summary::read_json(&path).unwrap());
        figures
            .into_iter()
            .find(|(name, _)| name == "drops.small")
            .unwrap()
            .1
    };
    assert_ne!(keys.iter().map(of_summary).collect::<Vec<_>>(), means);
}

#[test]
fn unfinished_flows_are_told_below_the_table() {
    let directory = with_tiny();
    let outcome = vary(
        &directory,
        "out",
        &LOADS,
        &["until=\"200us\""],
        &["all.mean", "unfinished"],
    );
    let counts = match outcome.points.column("mean") {
        Some(Cells::Reals(values)) => values.clone(),
        other => panic!("{other:?}"),
    };
    let line = outcome
        .legend
        .lines()
        .find(|line| line.starts_with("not over"));
    let line = line.unwrap_or_else(|| panic!("{}", outcome.legend));
    let start = "not over at the end of the run, and in no completion time: load = 0.";
    assert!(line.starts_with(start), "{line}");
    let last = counts[3].unwrap();
    assert!(last > 0.0);
    assert!(
        line.contains(&format!("load = 0.6: {last} of ")),
        "{line}: {counts:?}"
    );
    let whole = vary(&directory, "whole", &LOADS, &[], &["all.mean"]);
    assert!(!whole.legend.contains("not over"), "{}", whole.legend);
}

#[test]
fn runs_of_other_inputs_are_not_equal() {
    let directory = tempfile::tempdir().unwrap();
    for (run, flows) in [("a", "1,2"), ("b", "1,3"), ("c", "1,2")] {
        let run = directory.path().join(run);
        fs::create_dir_all(run.join("inputs")).unwrap();
        fs::write(
            run.join("scenario.toml"),
            "workload = { list = \"inputs/0.csv\" }",
        )
        .unwrap();
        fs::write(run.join("inputs/0.csv"), flows).unwrap();
        let facts = RunFacts::default();
        let flow = FlowRecord {
            id: 0,
            start: Time::ZERO,
            src: 0,
            dst: 1,
            bytes: 1000,
            service: 0,
            fct: Some(Time::from_us(10)),
            ideal_fct: Time::from_us(10),
            retransmits: 0,
            timeouts: 0,
            marks: 0,
            sent: None,
            dropped: None,
        };
        let (classes, rule) = (SizeClasses::default(), PercentileRule::NearestRank);
        let summary = Summary::new([flow], Completeness::Complete, classes, rule, facts).unwrap();
        summary.write_json(&run.join("summary.json")).unwrap();
    }
    let words = compared(&directory, "a", "b").unwrap();
    assert!(words.contains("inputs/0.csv  sha256 "), "{words}");
    let equal = compared(&directory, "a", "c").unwrap();
    assert_eq!(equal, "scenario: equal\nresults: equal\n");
    #[cfg(unix)]
    {
        let link = directory.path().join("c/inputs/1.csv");
        std::os::unix::fs::symlink("/dev/zero", link).unwrap();
        let problem = format!("{:#}", compared(&directory, "a", "c").unwrap_err());
        assert!(
            problem.ends_with("1.csv: it is not a regular file"),
            "{problem}"
        );
    }
}

#[test]
fn a_plot_of_kept_runs_knows_their_services_and_packets() {
    let directory = with_tiny();
    let set = [
        "report.services.storage=0",
        "probes.throughput={ interval=\"100us\", links=\"*->h0\" }",
    ];
    let outcome = vary(
        &directory,
        "out",
        &LOADS,
        &set,
        &["service.storage.p99", "goodput.1"],
    );
    let means = match outcome.points.column("mean") {
        Some(Cells::Reals(values)) => values.clone(),
        other => panic!("{other:?}"),
    };
    assert!(means.iter().all(Option::is_some), "{means:?}");
    vary(&directory, "plain", &LOADS, &set, &["all.mean"]);
    for (index, metric) in ["service.storage.p99", "goodput.1"].into_iter().enumerate() {
        let plot = SweepPlot {
            metric: metric.to_owned(),
            x: "load".to_owned(),
            curves: None,
            logarithmic: false,
        };
        let (figure, _) = plot_sweep(&directory.path().join("plain"), &plot).unwrap();
        let Plot::Points(curves) = &figure.panels[0].plot else {
            panic!("{figure:?}");
        };
        let drawn: Vec<f64> = curves[0].points.iter().map(|point| point.y).collect();
        assert_eq!(
            drawn,
            [means[index], means[2 + index]].map(Option::unwrap),
            "{metric}"
        );
    }
}
