//! Figures that run live: what is recorded of them, and the tables made from it.

use std::fs;

use shallows_testing::{alone, skip};

use crate::runs::{UNFAITHFUL, stderr, unable};
use crate::support::{TINY, directory, read_text, shallows, write};

const PAPER: &str = r#"
title = "On Toys"
authors = "A. Nobody"
venue = "TOYS 2020"
about = "Toys."
figures = ["fig1"]
"#;

const FIGURE: &str = r#"
title = "Figure 1: completion"
scenario = "tiny.toml"
set = ["transport.controller=reno", "transport.ecn=classic"]

[live]
scale = 0.005
seeds = 1

[[axis]]
name = "variant"

[[axis.point]]
id = "plain"
label = "Plain"
set = []

[[panel]]
kind = "rows"
title = "(a) Overall"
metric = "all.mean"
y = "FCT (ms)"

[[claim]]
id = "takes-time"
quote = "It takes time."
what = "average FCT"
paper = { at-least = 0 }
measure = "value"
unit = "ms"
metric = "all.mean"
of = "plain"
"#;

#[test]
fn live_results_are_recorded_and_shown_without_a_run() {
    if let Some(reason) = unable() {
        skip!("{reason}");
    }
    let _alone = alone();
    let directory = directory();
    fs::create_dir_all(directory.path().join("papers/toy")).expect("there is room");
    write(&directory, "papers/toy/paper.toml", PAPER);
    write(&directory, "papers/toy/deviations.toml", "");
    write(&directory, "papers/toy/tiny.toml", TINY);
    write(&directory, "papers/toy/fig1.toml", FIGURE);
    let repro = ["repro", "toy", "--live", "--from", "papers"];
    let output = shallows(&directory)
        .args(repro)
        .args(["--out", "out", "--record", "papers"])
        .output()
        .unwrap();
    let said = stderr(&output);
    if said.contains(UNFAITHFUL) {
        return;
    }
    assert!(output.status.success(), "{said}");
    let recorded = read_text(&directory, "papers/toy/results/live.csv");
    let heads: Vec<&str> = recorded.lines().filter(|l| l.starts_with('#')).collect();
    assert!(heads[0].starts_with("# fig1 | shallows repro toy/fig1 --live | "));
    assert!(heads[1].starts_with("# fig1-live | "), "{recorded}");
    assert!(
        heads[1].contains(" | live at 0.005, 1 runs, late "),
        "{recorded}"
    );
    for world in [
        "\nfig1,plain,0,1,all.mean,",
        "\nfig1-live,plain,0,1,all.mean,",
    ] {
        assert!(recorded.contains(world), "{recorded}");
    }
    let shown = shallows(&directory)
        .args(repro)
        .args(["--show", "--out", "shown"])
        .output()
        .unwrap();
    let table = |output: &[u8]| {
        let text = String::from_utf8_lossy(output).into_owned();
        let claims = text.lines().find(|line| line.starts_with("fig1 "));
        claims.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert_eq!(table(&shown.stdout), table(&output.stdout));
}
