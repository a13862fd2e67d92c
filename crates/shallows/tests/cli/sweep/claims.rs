//! Claims of studies and their verdicts.

use super::{STUDY, sweep};
use crate::{read, shallows, with_tiny, write};

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
