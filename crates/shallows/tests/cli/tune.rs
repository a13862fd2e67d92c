//! `shallows tune`.

use snapbox::data::Inline;
use snapbox::str;

use crate::{directory, read_text, shallows, write};

const STAR: &str = r#"
[topology.star]
hosts = 4
rate = "10Gbps"
delay = "5us"
[ports.switch]
queues = 1
scheduler = "fifo"
buffer = { shared = { size = "300KB" } }
marker = { scheme = { per-queue = { threshold = "200KB" } } }
[workload.poisson]
load = 0.7
size = { cdf = "web-search" }
flows = 30
"#;

const THRESHOLD: &str = "ports.switch.marker.scheme.per-queue.threshold";

#[test]
fn a_search_ends_in_a_sentence_a_table_and_settings() {
    let directory = directory();
    write(&directory, "star.toml", STAR);
    shallows(&directory)
        .args(["tune", "star.toml", "--minimize", "small.mean", "--seeds", "3"])
        .args(["--keep", "all.mean <= +20%", "--threads", "2", "--knob"])
        .arg(format!("{THRESHOLD}=15KB..120KB:4"))
        .args(["--held-out-at", "workload.poisson.load=0.3"])
        .assert()
        .success()
        .stdout_eq(str![[r#"
threshold = [..]KB instead of 200KB: small.mean [..] by [..]% ([..] to [..]), all.mean [..]
...
scenario          seeds                                       small.mean[..]all.mean
star              of the search[..]
star              held out[..]
star, load = 0.3  held out, as is the scenario[..]

use it: --set 'ports.switch.marker.scheme.per-queue.threshold="[..]KB"'
runs: [..] in the search; a grid takes 12
results: out/star-tune/candidates.parquet, out/star-tune/tune.json, out/star-tune/front.svg, out/star-tune/front.pdf, out/star-tune/front.png, out/star-tune/front.csv

"#]]);
    let json = read_text(&directory, "out/star-tune/tune.json");
    let report: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let comparisons = report["comparisons"].as_array().expect("a list");
    assert_eq!(comparisons.len(), 3);
    assert!(comparisons[0]["ratios"]["small.mean"]["low"].is_number());
    let before = json;
    // The same again, from the store, as JSON and on one thread.
    let again = shallows(&directory)
        .args([
            "tune",
            "star.toml",
            "--minimize",
            "small.mean",
            "--seeds",
            "3",
            "--json",
        ])
        .args(["--keep", "all.mean <= +20%", "--threads", "1", "--knob"])
        .arg(format!("{THRESHOLD}=15KB..120KB:4"))
        .args(["--held-out-at", "workload.poisson.load=0.3"])
        .assert()
        .success();
    assert_eq!(again.get_output().stdout, before.as_bytes());
}

#[test]
fn mistakes_are_named() {
    let directory = directory();
    write(&directory, "star.toml", STAR);
    write(&directory, "knobs.toml", "[[knob]]\nname = \"x\"\n");
    let refused = |options: &[&str], message: Inline| {
        shallows(&directory)
            .args(["tune", "star.toml", "--minimize", "small.mean"])
            .args(options)
            .assert()
            .code(2)
            .stderr_eq(message);
    };
    refused(
        &[],
        str![[r#"
error: there is nothing to turn; write --knob KEY=A..B, --knob KEY=A,B,C or --knobs FILE

"#]],
    );
    refused(
        &["--knob", "ports.switch.queues=1KB..2MB"],
        str![[r#"
error: --knob ports.switch.queues=1KB..2MB: both ends need one unit; 1KB and 2MB differ

"#]],
    );
    refused(
        &["--knob", "seed=1,2"],
        str![[r#"
error: --knob seed=1,2: seeds are no axis: every point runs with all of them; write seeds = [5, 6]

"#]],
    );
    refused(
        &[
            "--knob",
            "ports.switch.queues=1,2",
            "--keep",
            "large.mean <= 2%",
        ],
        str![[r#"
error: --keep "large.mean <= 2%": a change in percent has a sign, such as +2% or -5%

"#]],
    );
    refused(
        &["--knobs", "knobs.toml"],
        str![[r#"
error: the axis has no key; write key and values, or points
 --> knobs.toml:1:1
...
"#]],
    );
}
