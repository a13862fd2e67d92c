//! `shallows repro` and `shallows report`, on a paper that takes no time.

use std::fs;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use nix::sys::signal::SIGINT;
use shallows_testing::{has_program, skip};
use snapbox::str;
use tempfile::TempDir;

use crate::{directory, interrupt, read_text, shallows, write};

const PAPER: &str = r#"
title = "On Toys"
authors = "A. Nobody"
venue = "TOYS 2020"
about = "Toys <are> & small."
figures = ["fig1"]
"#;

const FIGURE: &str = r#"
title = "Figure 1: marking"
caption = "Marking helps."
section = "§1"
scenario = "base.toml"

[[axis]]
key = "workload.poisson.load"
label = "Load (%)"
percent = true
values = [0.3, 0.6, 0.9]

[full]
seeds = 3
set = []

[quick]
seeds = 2
at.load = [0.3, 0.9]
set = ["workload.poisson.flows=100"]

[[axis]]
name = "variant"

[[axis.point]]
id = "low"
label = "K = 5"
set = ["ports.switch.marker.scheme.per-queue.threshold=5pkts"]

[[axis.point]]
id = "none"
label = "No marks"
set = ["ports.switch.marker.scheme=none"]

[[panel]]
title = "(a) Overall"
metric = "all.mean"
normalise = "none"
y = "Normalised FCT"

[[panel]]
kind = "rows"
title = "(b) At 90%"
metric = "small.p99"
at = { load = 0.9 }
y = "FCT (ms)"

[[claim]]
id = "a"
quote = "It is better."
what = "average FCT, largest reduction"
paper = { about = 20 }
measure = "reduction"
metric = "all.mean"
of = "low"
to = "none"
at = "largest"

[[claim]]
id = "b"
quote = "At 60% too."
what = "average FCT at 60%, reduction"
paper = { about = 20 }
measure = "reduction"
metric = "all.mean"
of = "low"
to = "none"
at = 0.6
"#;

const DEVIATIONS: &str = r#"
[[deviation]]
section = "§1"
quote = "Real toys."
ours = "Simulated toys."
reason = "We have none."
"#;

/// A directory with the paper in `papers`.
pub(crate) fn with_paper() -> TempDir {
    let directory = directory();
    fs::create_dir_all(directory.path().join("papers/toy")).expect("there is room");
    write(&directory, "papers/toy/paper.toml", PAPER);
    write(&directory, "papers/toy/deviations.toml", DEVIATIONS);
    write(&directory, "papers/toy/base.toml", crate::TINY);
    write(&directory, "papers/toy/fig1.toml", FIGURE);
    directory
}

fn reproduce(directory: &TempDir) -> serde_json::Value {
    let output = shallows(directory)
        .args([
            "repro", "toy", "--quick", "--from", "papers", "--out", "out", "--json",
        ])
        .args(["--threads", "2"])
        .assert()
        .success();
    serde_json::from_slice(&output.get_output().stdout).expect("it is JSON")
}

/// The results of single runs and when they were written.
fn results(directory: &TempDir) -> Vec<(PathBuf, SystemTime)> {
    let runs = fs::read_dir(directory.path().join("out/runs")).expect("there are runs");
    let mut results: Vec<_> = runs
        .map(|run| {
            let path = run.expect("it can be read").path().join("summary.json");
            let written = fs::metadata(&path).and_then(|data| data.modified());
            (path, written.expect("it is complete"))
        })
        .collect();
    results.sort();
    results
}

#[test]
fn built_in_figures_are_listed() {
    let output = shallows(&directory())
        .args(["repro", "--list"])
        .assert()
        .success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    for figure in [
        "mq-ecn/fig1 ",
        "mq-ecn/fig9 ",
        "mq-ecn/fig13 ",
        "mq-ecn/beyond ",
    ] {
        assert!(text.contains(figure), "{figure} in {text}");
    }
    let lines: Vec<&str> = text.lines().collect();
    let title = lines[0].find("title").unwrap();
    // All titles begin in one column, with the numbers of runs before them.
    let fig9 = lines.iter().find(|line| line.starts_with("mq-ecn/fig9 "));
    let (numbers, words) = fig9.unwrap().split_at(title);
    assert!(words.starts_with("Figure 9"), "{words}");
    let numbers: Vec<&str> = numbers.split_whitespace().skip(1).collect();
    assert!(numbers[0].parse::<u32>().unwrap() < numbers[1].parse().unwrap());
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    let directory = with_paper();
    shallows(&directory)
        .args(["repro", "tcp"])
        .assert()
        .failure()
        .stderr_eq(str![[r#"
error: there is no paper "tcp"; there are: ear, ml-ecn, mq-ecn, qjump, stacks, xco

"#]]);
    shallows(&directory)
        .args(["repro", "toy/fig2", "--from", "papers"])
        .assert()
        .failure()
        .stderr_eq(str![[r#"
error: toy has no figure "fig2"; it has: fig1

"#]]);
    shallows(&directory)
        .args(["report", "nowhere"])
        .assert()
        .failure()
        .stderr_eq(str![[r#"
error: there is no reproduction in nowhere; make one with: shallows repro mq-ecn --quick --out nowhere

"#]]);
}

#[test]
fn a_figure_has_runs_claims_and_files() {
    let directory = with_paper();
    let outcomes = reproduce(&directory);
    let figure = &outcomes[0];
    // Two variants, two loads, two seeds.
    assert_eq!(figure["runs"], 8);
    assert_eq!(results(&directory).len(), 8);
    let points = &figure["figure"]["panels"][0]["plot"]["points"];
    assert_eq!(points[0]["points"][1]["x"], 90.0);
    assert_eq!(points[1]["points"][0]["y"], 1.0);
    let (first, second) = (&figure["claims"][0], &figure["claims"][1]);
    assert!(first["spread"].is_string(), "{first}");
    assert_ne!(first["verdict"], "not-measured");
    assert_eq!(second["verdict"], "not-measured");
    for end in ["svg", "csv"] {
        let text = read_text(&directory, &format!("out/figures/toy-fig1.{end}"));
        assert!(text.contains("No marks"), "{end}");
    }
    let page = read_text(&directory, "out/report.html");
    let png = fs::read(directory.path().join("out/figures/toy-fig1.png"));
    assert!(page.contains("toy-fig1.png") && page.contains("toy-fig1.pdf"));
    assert!(png.is_ok_and(|png| &png[1..4] == b"PNG"));
    for text in [
        "On Toys",
        "&lt;are&gt; &amp; small",
        "It is better.",
        "Simulated toys.",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn finished_runs_are_kept_and_missing_ones_made() {
    let directory = with_paper();
    let first = reproduce(&directory);
    let page = read_text(&directory, "out/report.html");
    let before = results(&directory);
    fs::remove_file(&before[3].0).expect("it is there");
    let second = reproduce(&directory);
    let after = results(&directory);
    assert_eq!(first, second);
    for (index, (before, after)) in before.iter().zip(&after).enumerate() {
        assert_eq!(before.0, after.0);
        assert_eq!(before.1 == after.1, index != 3, "run {index}");
    }
    assert_eq!(page, read_text(&directory, "out/report.html"));
}

#[test]
fn values_of_x_and_seeds_can_be_chosen() {
    let directory = with_paper();
    let output = shallows(&directory)
        .args([
            "repro", "toy/fig1", "--quick", "--from", "papers", "--out", "out",
        ])
        .args(["--at", "0.6", "--seeds", "1"])
        .assert()
        .success();
    assert_eq!(results(&directory).len(), 2);
    // Verdicts are of what was run, so everything that shows them says what that was.
    let part = "only at Load (%) 60 (the figure has 30, 90)";
    let stdout = String::from_utf8_lossy(&output.get_output().stdout);
    assert!(stdout.contains(&format!("fig1: {part}")), "{stdout}");
    assert!(read_text(&directory, "out/toy-claims.md").contains(part));
    let page = read_text(&directory, "out/report.html");
    assert!(page.contains(part));
    assert!(page.contains("fig1 --quick --at 0.6 --seeds 1"));
    shallows(&directory)
        .args([
            "repro", "toy/fig1", "--quick", "--from", "papers", "--at", "0.7",
        ])
        .assert()
        .failure()
        .stderr_eq(str![[r#"
error: fig1 has no point at these values of x; it has 0.3, 0.6, 0.9

"#]]);
}

#[test]
fn ctrl_c_keeps_the_runs_that_are_done() {
    let directory = with_paper();
    let endless = FIGURE.replace(
        "set = [\"ports.switch.marker.scheme=none\"]",
        "set = [\"workload.poisson.flows=2000000\"]",
    );
    write(&directory, "papers/toy/fig1.toml", &endless);
    let repro = Process::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args([
            "repro", "toy", "--quick", "--from", "papers", "--out", "out",
        ])
        .args(["--at", "0.3", "--seeds", "1", "--threads", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let runs = directory.path().join("out/runs");
    let is_done = || {
        let runs = fs::read_dir(&runs).into_iter().flatten().flatten();
        runs.into_iter()
            .any(|run| run.path().join("summary.json").exists())
    };
    while !is_done() {
        thread::sleep(Duration::from_millis(10));
    }
    interrupt::send(&repro, SIGINT);
    let output = repro.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let messages = String::from_utf8_lossy(&output.stderr);
    let kept = "1 of 2 runs are done and kept; the same command goes on from there\n";
    assert!(messages.contains(kept), "{messages}");
    assert_eq!(results(&directory).len(), 1);
}

#[test]
fn settings_on_top_are_for_all_variants_or_one() {
    let directory = with_paper();
    let repro = |out: &str, set: &str| {
        let args = ["repro", "toy", "--quick", "--from", "papers", "--at", "0.3"];
        let run = shallows(&directory)
            .args(args)
            .args(["--seeds", "1", "--out", out]);
        run.args(["--set", set]).assert().success();
        let runs = directory.path().join(out).join("runs");
        fs::read_dir(runs).expect("there are runs").count()
    };
    assert_eq!(repro("both", "ports.switch.buffer.shared.size=50KB"), 2);
    // With the marker of the other variant it is the same run, and is made once.
    assert_eq!(repro("one", "low:ports.switch.marker.scheme=none"), 1);
}

/// Where a browser is, if there is one.
fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = |name: &&str| has_program(name);
    names.into_iter().find(found)
}

#[test]
fn a_browser_shows_the_page_fetches_nothing_and_has_no_error() {
    let Some(chromium) = chromium() else {
        skip!("it needs the program chromium");
    };
    let directory = with_paper();
    reproduce(&directory);
    let path = directory.path();
    let output = Process::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args([
            "--no-first-run",
            "--enable-logging=stderr",
            "--disable-dev-shm-usage",
        ])
        .arg(format!(
            "--user-data-dir={}",
            path.join("profile").display()
        ))
        .arg(format!("file://{}", path.join("out/report.html").display()))
        .output()
        .expect("the browser starts");
    let page = String::from_utf8_lossy(&output.stdout);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    // The page's policy lets it fetch nothing; the browser would complain here, as of scripts.
    assert!(page.contains("default-src 'none'"), "{page}");
    assert!(!messages.contains("CONSOLE"), "{messages}");
    assert_eq!(page.matches("role=\"img\"").count(), 2, "two panels");
    assert_eq!(page.matches("<table class=\"claims\">").count(), 1);
    assert_eq!(
        page.matches("<tr><td><a href=\"#toy-fig1\">").count(),
        2,
        "two claims"
    );
    assert_eq!(page.matches("<h3>§1</h3>").count(), 1, "one deviation");
}

#[test]
fn a_figure_of_programs_needs_the_live_world() {
    let directory = directory();
    shallows(&directory)
        .args(["repro", "qjump/fig5", "--quick"])
        .assert()
        .failure()
        .stderr_eq(str![[r#"
error: fig5: of real programs, with nothing to simulate; run it with --live

"#]]);
}
