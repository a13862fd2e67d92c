//! Scenarios and studies by name, in a directory that has no files.

use snapbox::str;

use crate::{directory, read_text, shallows, write};

const FEW: [&str; 2] = ["--set", "workload.poisson.flows=60"];

#[test]
fn examples_run_by_name_anywhere() {
    let directory = directory();
    let run = shallows(&directory).args(["run", "quickstart"]).args(FEW);
    run.assert().success();
    let scenario = read_text(&directory, "out/quickstart/scenario.toml");
    assert!(scenario.contains("leaf-spine"), "{scenario}");
    let sweep = shallows(&directory).args(["sweep", "thresholds"]).args(FEW);
    sweep.assert().success();
    let study = read_text(&directory, "out/thresholds/study.json");
    assert!(
        study.contains("Sixteen hosts"),
        "the scenario's text is kept"
    );
    for kind in ["svg", "csv"] {
        let figure = format!("out/thresholds/thresholds.{kind}");
        assert!(directory.path().join(&figure).exists(), "{figure}");
    }
}

#[test]
fn an_example_can_be_written_and_changed() {
    let directory = directory();
    let printed = shallows(&directory).args(["new", "incast"]).output();
    let text = String::from_utf8(printed.unwrap().stdout).unwrap();
    write(&directory, "my.toml", &text);
    let run = ["run", "my.toml", "--set", "workload.incast.rounds=1"];
    shallows(&directory).args(run).assert().success();
}

#[test]
fn a_file_wins_over_a_name() {
    let directory = directory();
    write(&directory, "quickstart", "seed = ");
    let run = shallows(&directory).args(["run", "quickstart"]);
    run.assert().code(2);
}

#[test]
fn examples_are_listed_with_a_sentence_each() {
    let output = shallows(&directory()).arg("examples").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "  quickstart           Sixteen hosts, web-search traffic at 60% load, eight services.\n",
        "  incast               Incast: 40 servers answer one client at the same time",
        "studies, for `shallows sweep NAME`:\n  thresholds           Shallow queues",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_name_that_is_wrong_is_told() {
    shallows(&directory())
        .args(["new", "quickstrat"])
        .assert()
        .code(2)
        .stderr_eq(str![[r#"
error: there is no example "quickstrat"; there are: quickstart, dumbbell, [..]

"#]]);
    shallows(&directory())
        .args(["run", "quickstrat"])
        .assert()
        .code(2)
        .stderr_eq(str![[r#"
error: cannot read quickstrat: there is no such file
  = did you mean quickstart, which is built in?

"#]]);
    shallows(&directory())
        .args(["run", "quickstart.toml"])
        .assert()
        .code(2)
        .stderr_eq(str![[r#"
error: cannot read quickstart.toml: there is no such file
  = quickstart, without path and ending, is one that is built in; `shallows new quickstart > quickstart.toml` writes it to a file

"#]]);
}
