//! Studies that are refused, and what is said of them.

use snapbox::{IntoData, str};
use tempfile::TempDir;

use super::{STUDY, sweep, with_study};
use crate::{shallows, with_tiny, write};

#[test]
fn an_axis_without_end_is_refused() {
    let directory = with_study();
    let range = "range = { from = 0.1, to = 0.9, count = 1000000000 }";
    let study = STUDY.replace("values = [0.3, 0.9]", range);
    write(&directory, "study.toml", &study);
    let error = problem(&directory, &["sweep", "study.toml"]);
    assert!(error.contains("write a number from 2 to 100000"), "{error}");
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

fn refused(study: &str, message: impl IntoData) {
    let directory = with_tiny();
    write(&directory, "study.toml", study);
    let assert = shallows(&directory).args(["sweep", "study.toml"]).assert();
    assert.code(2).stderr_eq(message);
}

/// The error of a command with exit code 2.
fn problem(directory: &TempDir, arguments: &[&str]) -> String {
    let assert = shallows(directory).args(arguments).assert().code(2);
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

#[test]
fn tables_of_varied_keys_have_one_format() {
    let directory = with_tiny();
    let vary = [
        "run",
        "tiny.toml",
        "--vary",
        "workload.poisson.load=0.3,0.6",
    ];
    let error = problem(&directory, &[&vary[..], &["--format", "csv"]].concat());
    let expected = "the argument '--vary <KEY=A,B,C>' cannot be used with '--format <FORMAT>'";
    assert!(error.contains(expected), "{error}");
}
