//! `shallows sweep` and `shallows run --vary`.

use std::fs;
use std::process::{Command as Process, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use nix::sys::signal::SIGINT;
use shallows_results::frame::{Cells, Frame};
use snapbox::{IntoData, str};
use tempfile::TempDir;

use crate::{interrupt, read, shallows, shipped, with_tiny, write};

const STUDY: &str = r#"title = "Toys"
scenario = "tiny.toml"
seeds = 3
metrics = ["all.mean", "marks"]

[[axis]]
name = "scheme"
point = [
    { label = "MQ-ECN" },
    { label = "none", set = ["ports.switch.marker.scheme=none"] },
]

[[axis]]
key = "workload.poisson.load"
percent = true
values = [0.3, 0.9]

[[figure]]
name = "fct"

[[figure.panel]]
title = "(a)"
metric = "all.mean"
x = "load"
curves = "scheme"
normalise = "none"
"#;

fn with_study() -> TempDir {
    let directory = with_tiny();
    write(&directory, "study.toml", STUDY);
    directory
}

fn sweep(directory: &TempDir, options: &[&str]) -> String {
    let output = shallows(directory)
        .args(["sweep", "study.toml", "--threads", "2"])
        .args(options)
        .assert()
        .success();
    String::from_utf8_lossy(&output.get_output().stdout).into_owned()
}

const CLAIMS: &str = r#"
[[claim]]
what = "mean, largest reduction by marking"
expected = { at-least = -1000 }
measure = "reduction"
metric = "all.mean"
of = "MQ-ECN"
to = "none"
at = "largest"

[[claim]]
what = "marks without marking, at 90%"
expected = { at-most = 0 }
measure = "value"
metric = "marks"
of = "none"
at = 0.9

[[claim]]
what = "drops at 30%"
expected = { at-least = 1000000 }
measure = "value"
metric = "drops"
of = "MQ-ECN"
at = 0.3
"#;

#[test]
fn a_study_has_claims_and_each_gets_a_verdict() {
    let directory = with_tiny();
    write(&directory, "study.toml", &format!("{STUDY}{CLAIMS}"));
    let text = sweep(&directory, &["--out", "out"]);
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|l| !l.starts_with("claim"))
        .collect();
    assert!(
        rows[0].contains("expected") && rows[0].ends_with("verdict"),
        "{text}"
    );
    assert!(rows[1].ends_with("  reproduced"), "{text}");
    assert!(rows[2].ends_with("  reproduced"), "{text}");
    assert!(rows[3].ends_with("  not reproduced"), "{text}");
    // Machines find them beside the tables.
    let study = read(&directory, "out/study.json");
    let study: serde_json::Value = serde_json::from_slice(&study).expect("it is JSON");
    assert_eq!(study["claims"][2]["verdict"], "not-reproduced");
    assert_eq!(study["claims"][1]["points"][0]["of"], "none");
}

#[test]
fn claims_that_lead_nowhere_are_refused_before_any_run() {
    let with = |from: &str, to: &str| format!("{STUDY}{CLAIMS}").replacen(from, to, 1);
    for (study, message) in [
        (
            with("of = \"MQ-ECN\"", "of = \"MQ\""),
            "no axis has a point \"MQ\"",
        ),
        (
            with("to = \"none\"", "to = \"some\""),
            "scheme has no point \"some\"; it has: MQ-ECN, none",
        ),
        (
            with("at = 0.9", "at = 0.8"),
            "load has no point 0.8; it has: 0.3, 0.9",
        ),
        (
            with("at = 0.9\n", ""),
            "the claim does not say where it is on the axis load",
        ),
        (with("to = \"none\"\n", ""), "this compares two points"),
    ] {
        let directory = with_tiny();
        write(&directory, "study.toml", &study);
        let output = shallows(&directory)
            .args(["sweep", "study.toml"])
            .assert()
            .failure();
        let error = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(error.contains(message), "{message} in {error}");
        assert!(error.contains("--> study.toml:"), "{error}");
        assert!(!directory.path().join("out").exists());
    }
}

#[test]
fn a_study_has_a_quick_version() {
    let directory = with_tiny();
    let quick = "\n[quick]\nseeds = 1\nat.load = [0.9]\n";
    write(&directory, "study.toml", &format!("{STUDY}{quick}"));
    sweep(&directory, &["--out", "out", "--quick"]);
    let runs = Frame::read(&directory.path().join("out/runs.parquet")).expect("it is there");
    assert_eq!(runs.column("load"), Some(&Cells::Reals(vec![Some(0.9); 2])));
    write(&directory, "study.toml", STUDY);
    let output = shallows(&directory)
        .args(["sweep", "study.toml", "--quick"])
        .assert()
        .failure();
    let error = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(error.contains("the study has no [quick] table"), "{error}");
}

fn refused(study: &str, message: impl IntoData) {
    let directory = with_tiny();
    write(&directory, "study.toml", study);
    let assert = shallows(&directory).args(["sweep", "study.toml"]).assert();
    assert.code(2).stderr_eq(message);
}

/// The runs of a store and when they were made.
fn made(directory: &TempDir, store: &str) -> Vec<(String, SystemTime)> {
    let entries = fs::read_dir(directory.path().join(store)).expect("there is a store");
    let mut made: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("it can be read").path();
            let written = fs::metadata(path.join("summary.json")).and_then(|data| data.modified());
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (name.into_owned(), written.expect("it is complete"))
        })
        .collect();
    made.sort();
    made
}

fn frame(directory: &TempDir, name: &str) -> Frame {
    Frame::read(&directory.path().join(name)).expect("it is a frame")
}

fn reals(frame: &Frame, column: &str) -> Vec<f64> {
    match frame.column(column) {
        Some(Cells::Reals(values)) => values.iter().copied().flatten().collect(),
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn every_run_is_a_row_with_its_axis_values() {
    let directory = with_study();
    let words = sweep(&directory, &[]);
    let head: Vec<&str> = words
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(head, ["scheme", "load", "all.mean", "ms", "marks"]);
    assert!(
        words.contains("relative to scheme = MQ-ECN, same seeds"),
        "{words}"
    );
    let runs = frame(&directory, "out/study/runs.parquet");
    assert_eq!(runs.rows(), 2 * 2 * 3);
    let Some(Cells::Texts(schemes)) = runs.column("scheme") else {
        panic!("schemes are texts");
    };
    assert_eq!((&*schemes[5], &*schemes[6]), ("MQ-ECN", "none"));
    let loads = reals(&runs, "load");
    assert_eq!(loads[..7], [0.3, 0.3, 0.3, 0.9, 0.9, 0.9, 0.3]);
    assert_eq!(
        runs.column("seed"),
        Some(&Cells::Integers([1, 2, 3].repeat(4)))
    );
    // Two names of one number, from the summary and as a metric.
    for (us, ms) in reals(&runs, "all.fct_us.mean")
        .iter()
        .zip(reals(&runs, "all.mean"))
    {
        assert!((us / 1e3 - ms).abs() < 1e-9, "{us} us, {ms} ms");
    }
    // Without a marker nothing is marked.
    assert!(
        reals(&runs, "marks.all")[6..]
            .iter()
            .all(|&marks| marks == 0.0)
    );
    for file in ["fct.svg", "fct.pdf", "fct.png", "fct.csv", "study.json"] {
        assert!(
            directory.path().join("out/study").join(file).exists(),
            "{file}"
        );
    }
}

#[test]
fn means_and_ratios_are_those_of_the_runs() {
    let directory = with_study();
    sweep(&directory, &[]);
    let runs = frame(&directory, "out/study/runs.parquet");
    let points = frame(&directory, "out/study/points.parquet");
    let fct = reals(&runs, "all.mean");
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    // By scheme, load and metric: the third pair is none at 30%.
    assert!((reals(&points, "mean")[4] - mean(&fct[6..9])).abs() < 1e-9);
    let ratios: Vec<f64> = (0..3).map(|seed| fct[6 + seed] / fct[seed]).collect();
    assert!((reals(&points, "ratio_mean")[4] - mean(&ratios)).abs() < 1e-9);
    let high = reals(&points, "ratio_high")[4];
    let squares: f64 = ratios
        .iter()
        .map(|ratio| (ratio - mean(&ratios)).powi(2))
        .sum();
    let half = 4.303 * (squares / 2.0).sqrt() / 3_f64.sqrt();
    assert!((high - mean(&ratios) - half).abs() < 1e-9, "{high}");
}

#[test]
fn a_study_grows_without_running_anything_twice() {
    let directory = with_study();
    sweep(&directory, &["--store", "store"]);
    let before = made(&directory, "store");
    assert_eq!(before.len(), 12);
    let first = read(&directory, "out/study/runs.parquet");
    let grown = STUDY.replace("[0.3, 0.9]", "[0.3, 0.6, 0.9]");
    write(&directory, "study.toml", &grown);
    sweep(&directory, &["--store", "store"]);
    let after = made(&directory, "store");
    assert_eq!(after.len(), 18);
    assert!(before.iter().all(|run| after.contains(run)), "made again");
    // The same study anew gives the same bytes.
    write(&directory, "study.toml", STUDY);
    sweep(&directory, &["--out", "again"]);
    assert_eq!(read(&directory, "again/runs.parquet"), first);
}

#[test]
fn summaries_alone_give_the_same_table() {
    let directory = with_study();
    let all = sweep(&directory, &["--out", "o"]);
    write(
        &directory,
        "study.toml",
        &format!("keep = \"summary\"\n{STUDY}"),
    );
    let summaries = sweep(&directory, &["--out", "o", "--store", "other"]);
    assert_eq!(all, summaries);
    let kept = sweep(&directory, &["--out", "o", "--store", "other"]);
    assert_eq!(all, kept);
    let (run, _) = &made(&directory, "other")[0];
    assert!(
        !directory
            .path()
            .join("other")
            .join(run)
            .join("flows.parquet")
            .exists()
    );
}

#[test]
fn what_is_broken_is_made_again() {
    let directory = with_study();
    sweep(&directory, &["--store", "store"]);
    let before = read(&directory, "out/study/runs.parquet");
    let (run, _) = &made(&directory, "store")[0];
    let run = directory.path().join("store").join(run);
    fs::remove_file(run.join("summary.json")).unwrap();
    sweep(&directory, &["--store", "store"]);
    assert!(run.join("summary.json").exists());
    assert_eq!(read(&directory, "out/study/runs.parquet"), before);
}

/// What a process that was killed has left half made, and nothing else.
#[cfg(target_os = "linux")]
#[test]
fn what_a_killed_sweep_has_left_is_removed() {
    let directory = with_study();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim();
    // No process has this number.
    let gone = format!("store/.abc-{host}-4194305-0/flows.parquet");
    let alive = format!("store/.abc-{host}-{}-0/flows.parquet", std::process::id());
    let elsewhere = "store/.abc-another.machine-4194305-0/flows.parquet";
    let of_user = "store/.notes-4194305/text";
    for file in [&gone, &alive, elsewhere, of_user] {
        let parent = directory.path().join(file);
        fs::create_dir_all(parent.parent().unwrap()).unwrap();
        write(&directory, file, "half");
    }
    sweep(&directory, &["--store", "store", "--seeds", "1"]);
    let is_there = |file: &str| directory.path().join(file).exists();
    assert!(!is_there(&gone));
    for file in [&alive, elsewhere, of_user] {
        assert!(is_there(file), "{file}");
    }
}

#[test]
fn an_axis_without_end_is_refused() {
    let directory = with_study();
    let range = "range = { from = 0.1, to = 0.9, count = 1000000000 }";
    let study = STUDY.replace("values = [0.3, 0.9]", range);
    write(&directory, "study.toml", &study);
    let error = problem(&directory, &["sweep", "study.toml"]);
    assert!(error.contains("write a number from 2 to 100000"), "{error}");
}

/// A legend has the number of seeds that have run.
#[test]
fn seeds_that_failed_are_not_counted() {
    // Whether a flow is over by then depends on the seed. A run in which none has started fails.
    const UNTIL: &str = "40us";
    let directory = with_study();
    let study = STUDY.replace("values = [0.3, 0.9]", "values = [0.3]");
    write(&directory, "study.toml", &study);
    let run = |seed: u64| {
        let run = shallows(&directory).args(["run", "tiny.toml", "--until", UNTIL]);
        let run = run.args(["--out", "one", "--set", "workload.poisson.load=0.3"]);
        run.args(["--seed", &seed.to_string()]).output().unwrap()
    };
    let (mut some, mut none) = (Vec::new(), Vec::new());
    for seed in 1..40 {
        let output = run(seed);
        if output.status.success() {
            some.push(seed);
        } else if String::from_utf8_lossy(&output.stderr).contains("no flow started") {
            none.push(seed);
        }
    }
    assert!(some.len() >= 2 && !none.is_empty(), "{some:?} {none:?}");
    let seeds = format!("seeds = [{}, {}, {}]", some[0], some[1], none[0]);
    let study = study.replace("seeds = 3", &format!("{seeds}\nset = [\"until={UNTIL}\"]"));
    write(&directory, "study.toml", &study);
    let output = shallows(&directory).args(["sweep", "study.toml"]);
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(words.contains("over 2 of 3 seeds"), "{words}");
}

#[test]
fn a_run_that_fails_is_told_with_its_command_and_the_others_go_on() {
    let directory = with_study();
    let study = STUDY
        .replace("values = [0.3, 0.9]", "values = [0.3]")
        .replace(
            "set = [\"ports.switch.marker.scheme=none\"]",
            "set = [\"until=1ns\"]",
        );
    let study = study.replace("seeds = 3", "seeds = 1");
    write(&directory, "study.toml", &study);
    let assert = shallows(&directory).args(["sweep", "study.toml"]).assert();
    let output = assert.code(1).get_output().clone();
    let problem = String::from_utf8_lossy(&output.stderr);
    let command =
        "shallows run tiny.toml --set until=1ns --set workload.poisson.load=0.3 --set seed=1";
    assert!(problem.contains("no flow started before 1ns"), "{problem}");
    assert!(problem.contains(command), "{problem}");
    assert!(
        problem.ends_with("error: 1 of 2 runs failed\n"),
        "{problem}"
    );
    assert_eq!(frame(&directory, "out/study/runs.parquet").rows(), 1);
}

#[test]
fn ctrl_c_keeps_what_is_done() {
    let directory = with_study();
    let long = STUDY.replace(
        "scenario =",
        "set = [\"workload.poisson.flows=20000\"]\nscenario =",
    );
    write(&directory, "study.toml", &long);
    let mut child = Process::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(["sweep", "study.toml", "--threads", "1", "--store", "store"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let complete = || {
        let entries = fs::read_dir(directory.path().join("store"))
            .into_iter()
            .flatten();
        entries
            .flatten()
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .count()
    };
    while complete() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    interrupt::send(&child, SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let kept = made(&directory, "store").len();
    assert!((1..12).contains(&kept), "{kept} runs");
    let problem = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(
        problem.contains("the same command goes on from there"),
        "{problem}"
    );
}

#[test]
fn a_bad_study_is_refused_where_it_is_bad() {
    refused(
        &STUDY.replace("values = [0.3, 0.9]", "value = [0.3]"),
        str![[r#"
error: unknown key "value", did you mean "values"?
  --> study.toml:16:1
   |
16 | value = [0.3]
   | ^^^^^
   = expected one of name, label, percent, key, keys, values, range, set, each, point

"#]],
    );
    refused(
        &STUDY.replace("x = \"load\"", "x = \"laod\""),
        str![[r#"
error: there is no axis "laod"; there are: scheme, load
  --> study.toml:24:1
   |
24 | x = "laod"
   | ^

"#]],
    );
    refused(
        &STUDY.replace("metric = \"all.mean\"", "metric = \"all.men\""),
        str![[r#"
error: "all.men" is not a metric; write one such as all.mean, small.p99, rtt.mean, goodput.1, timeouts (`shallows metrics` lists all)
  --> study.toml:23:10
   |
23 | metric = "all.men"
   |          ^^^^^^^^^

"#]],
    );
    // What is wrong with a value comes to light in the scenario.
    refused(
        &STUDY.replace("[0.3, 0.9]", "[0.3, -1.0]"),
        str![[r#"
error: load is -1, it must be a positive number (in point "-1.0" of axis load)
 --> study.toml:16: workload.poisson.load=-1.0

"#]],
    );
}

#[test]
fn one_key_is_varied_without_a_study() {
    let directory = with_tiny();
    let output = shallows(&directory)
        .args([
            "run",
            "tiny.toml",
            "--vary",
            "workload.poisson.load=0.3,0.6",
        ])
        .args([
            "--vary",
            "ports.switch.marker.scheme={per-queue={threshold=\"5pkts\"}},none",
        ])
        .args(["--metric", "all.mean", "--threads", "2"])
        .assert()
        .success();
    let words = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    let rows: Vec<&str> = words.lines().collect();
    assert!(rows[0].starts_with("load  scheme"), "{words}");
    assert!(rows[2].starts_with("0.3   none"), "{words}");
    assert!(
        rows[4].starts_with("0.6   none") && rows[4].contains('%'),
        "{words}"
    );
    assert!(
        words.contains("percentages: relative to load = 0.3, same seeds"),
        "{words}"
    );
    assert!(
        directory
            .path()
            .join("out/tiny-vary-load-scheme/tiny-vary-load-scheme.svg")
            .exists()
    );
    // A run alone gives the same.
    let alone = [
        "run",
        "tiny.toml",
        "--set",
        "workload.poisson.load=0.6",
        "--json",
    ];
    let alone = shallows(&directory)
        .args(alone)
        .args(["--set", "ports.switch.marker.scheme=none"])
        .assert();
    let summary: serde_json::Value = serde_json::from_slice(&alone.get_output().stdout).unwrap();
    let us = summary["classes"]["all"]["fct_us"]["mean"]
        .as_f64()
        .unwrap();
    let runs = frame(&directory, "out/tiny-vary-load-scheme/runs.parquet");
    assert_eq!(reals(&runs, "all.fct_us.mean")[3], us);
}

#[test]
fn shipped_studies_are_sound() {
    for entry in fs::read_dir(shipped("studies")).unwrap() {
        let path = entry.unwrap().path();
        let directory = with_tiny();
        shallows(&directory)
            .arg("sweep")
            .arg(&path)
            .args([
                "--set",
                "workload.poisson.flows=30",
                "--seeds",
                "1",
                "--out",
                "o",
            ])
            .assert()
            .success();
    }
}

#[test]
fn two_runs_and_two_sweeps_are_compared() {
    let directory = with_study();
    for (load, out) in [("0.3", "a"), ("0.3", "b"), ("0.6", "c")] {
        let load = format!("workload.poisson.load={load}");
        let run = ["run", "tiny.toml", "--set", &load, "--out", out];
        shallows(&directory).args(run).assert().success();
    }
    let diff = |first: &str, second: &str| {
        let assert = shallows(&directory).args(["diff", first, second]).assert();
        String::from_utf8_lossy(&assert.success().get_output().stdout).into_owned()
    };
    assert_eq!(diff("a", "b"), "scenario: equal\nresults: equal\n");
    let words = diff("a", "c");
    assert!(
        words.contains("workload.0.poisson.load  0.3    0.6"),
        "{words}"
    );
    assert!(words.contains("all.fct_us.mean"), "{words}");
    sweep(&directory, &["--out", "one"]);
    let other = STUDY.replace("title = \"Toys\"", "title = \"Reno\"");
    write(&directory, "study.toml", &other);
    sweep(
        &directory,
        &["--out", "two", "--set", "transport.controller=reno"],
    );
    let words = diff("one", "two");
    assert!(words.contains("study.title"), "{words}");
    let row = words
        .lines()
        .find(|line| line.starts_with("MQ-ECN  0.9   all.mean"));
    assert!(row.is_some_and(|row| row.contains("% ±")), "{words}");
    let nothing = shallows(&directory).args(["diff", "a", "nowhere"]).assert();
    nothing.code(1).stderr_eq(str![[r#"
error: nowhere has no results of a run or a sweep (summary.json, runs.parquet)

"#]]);
}

/// The error of a command with exit code 2.
fn problem(directory: &TempDir, arguments: &[&str]) -> String {
    let assert = shallows(directory).args(arguments).assert().code(2);
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

#[test]
fn seeds_are_each_there_once_and_no_axis() {
    let directory = with_tiny();
    for (seeds, said) in [
        ("seeds = [1, 1, 1]", "seed 1 is there twice"),
        ("seeds = []", "a study needs one seed at least"),
        ("seeds = 0", "a study needs one seed at least"),
        (
            "seeds = 9223372036854775807",
            "a study has 100000 runs at most",
        ),
        ("seeds = 3\nset = [\"seed=7\"]", "write seeds = [7]"),
    ] {
        write(&directory, "study.toml", &STUDY.replace("seeds = 3", seeds));
        let error = problem(&directory, &["sweep", "study.toml"]);
        assert!(error.contains(said), "{seeds}: {error}");
    }
    let by_seed = "name = \"s\"\nkey = \"seed\"";
    let study = STUDY.replace("key = \"workload.poisson.load\"", by_seed);
    write(&directory, "study.toml", &study);
    let error = problem(&directory, &["sweep", "study.toml"]);
    assert!(error.contains("seeds are no axis"), "{error}");

    write(&directory, "study.toml", STUDY);
    let error = problem(&directory, &["sweep", "study.toml", "--set", "seed=9"]);
    assert!(
        error.contains("--set seed=9: the seeds of a study"),
        "{error}"
    );
    let most = "18446744073709551615";
    let error = problem(&directory, &["sweep", "study.toml", "--seeds", most]);
    assert!(error.contains("a study has 100000 runs at most"), "{error}");
    let vary = [
        "run",
        "tiny.toml",
        "--vary",
        "workload.poisson.load=0.3,0.6",
    ];
    let error = problem(&directory, &[&vary[..], &["--seeds", most]].concat());
    assert!(error.contains("a study has 100000 runs at most"), "{error}");
    let error = problem(
        &directory,
        &[&vary[..], &["--seeds", "2", "--set", "seed=9"]].concat(),
    );
    assert!(error.contains("leave out the seed"), "{error}");
}

#[test]
fn a_metric_that_no_run_has_is_told() {
    let directory = with_tiny();
    let study = STUDY.replace("\"marks\"", "\"latency.foo.bar.p99\"");
    write(&directory, "study.toml", &study);
    let words = sweep(&directory, &["--seeds", "2"]);
    assert!(
        words.contains("-: no run has latency.foo.bar.p99, which needs an application"),
        "{words}"
    );
    assert!(
        words.contains("confidence interval over 2 seeds"),
        "{words}"
    );
}

#[test]
fn a_collection_of_nothing_is_told() {
    let directory = with_study();
    let assert = shallows(&directory).args(["sweep", "collect", "study.toml"]);
    let assert = assert.assert().code(1);
    let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(
        error.contains("none of the 12 runs has been made"),
        "{error}"
    );
}

#[test]
fn a_mistake_in_a_point_names_its_line() {
    let directory = with_tiny();
    let study = "scenario = \"tiny.toml\"\n\n[[axis]]\nname = \"scheme\"\npoint = [\n    \
                 { label = \"K\", set = [\"ports.switch.marker.scheme.per-queue.threshold=20pkts\"] },\n    \
                 { label = \"mine\", set = [\"ports.switch.marker.scheme.mine.full=20pkts\"] },\n]\n";
    write(&directory, "study.toml", study);
    let assert = shallows(&directory).args(["sweep", "study.toml"]).assert();
    assert.code(2).stderr_eq(snapbox::str![[r#"
error: unknown name "mine"
 --> study.toml:7: ports.switch.marker.scheme.mine.full=20pkts
  = expected one of none, [..]; a marker of your own needs a program of your own, as examples/my-marker is

"#]]);
}
