//! `shallows sweep` and `shallows run --vary`.

mod claims;
mod refused;

use std::fs;
use std::process::{Command as Process, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use nix::sys::signal::SIGINT;
use shallows_results::frame::{Cells, Frame};
use snapbox::str;
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
