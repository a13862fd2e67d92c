//! Bundles of results that another person checks.

use std::fs;
use std::path::Path;

use snapbox::str;
use tempfile::TempDir;

use crate::{directory, read_text, shallows, with_tiny, write};

const FLOWS: &str = "start_s,src,dst,bytes,service\n0.0,0,1,30000,0\n0.0001,2,1,150000,1\n";

const CHECK: [&str; 3] = ["artifact", "check", "moved"];

/// A bundle of a run and a sweep, moved to a directory of its own.
fn moved_bundle() -> TempDir {
    let place = with_tiny();
    write(&place, "flows.csv", FLOWS);
    let listed = "run tiny.toml --flows flows.csv --format csv --out listed --set seed=9";
    let varied = "run tiny.toml --vary workload.poisson.load=0.3,0.5 --seeds 2 --out varied";
    for command in [listed, varied] {
        shallows(&place).args(command.split(' ')).assert().success();
    }
    let bundle = "artifact bundle listed varied --license CC-BY-4.0";
    let assert = shallows(&place).args(bundle.split(' ')).assert();
    assert.success().stdout_eq(str![[r#"
5 runs are in bundle; `shallows artifact check bundle` makes them again

"#]]);
    let elsewhere = directory();
    copy(
        &place.path().join("bundle"),
        &elsewhere.path().join("moved"),
    );
    elsewhere
}

#[test]
fn a_bundle_gives_the_same_bytes_in_another_directory() {
    let elsewhere = moved_bundle();
    let assert = shallows(&elsewhere).args(CHECK).assert();
    assert.success().stdout_eq(str![[r#"
listed: equal (6 files)
varied/runs/[..]: equal (5 files)
varied/runs/[..]: equal (5 files)
varied/runs/[..]: equal (5 files)
varied/runs/[..]: equal (5 files)

"#]]);

    let flows = read_text(&elsewhere, "moved/listed/flows.csv");
    let changed = flows.replace("30000", "30001");
    write(&elsewhere, "moved/listed/flows.csv", &changed);
    let assert = shallows(&elsewhere).args(CHECK).assert();
    assert.code(1).stdout_eq(str![[r#"
listed/flows.csv: changed or missing
listed: different: flows.csv
...
"#]]);
}

#[test]
fn a_bundle_says_what_is_in_it() {
    let elsewhere = moved_bundle();
    let page = read_text(&elsewhere, "moved/README.md");
    assert!(
        page.contains("| `listed` | 9 | simulated | 0.1.0 |"),
        "{page}"
    );
    let checklist = read_text(&elsewhere, "moved/CHECKLIST.md");
    assert!(checklist.contains("- [x] The data have a license: CC-BY-4.0."));
    let about = read_text(&elsewhere, "moved/ro-crate-metadata.json");
    let about: serde_json::Value = serde_json::from_str(&about).unwrap();
    let graph = about["@graph"].as_array().unwrap();
    let of = |id: &str| graph.iter().find(|entity| entity["@id"] == id).unwrap();
    assert_eq!(of("./")["license"], "CC-BY-4.0");
    let inputs = of("#run-listed")["object"].as_array().unwrap();
    assert_eq!(inputs.len(), 2, "{inputs:?}");
    for part in of("./")["hasPart"].as_array().unwrap() {
        let file = part["@id"].as_str().unwrap();
        assert!(
            elsewhere.path().join("moved").join(file).is_file(),
            "{file}"
        );
        assert_eq!(of(file)["@type"], "File");
    }
}

/// A bundle of somebody else: a link to a file without end, and a run that is elsewhere.
#[test]
fn a_hostile_bundle_is_refused() {
    let elsewhere = moved_bundle();
    let flows = elsewhere.path().join("moved/listed/flows.csv");
    fs::remove_file(&flows).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &flows).unwrap();
    let output = shallows(&elsewhere).args(CHECK).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("flows.csv"), "{error}");
    let index = read_text(&elsewhere, "moved/artifact.json");
    let index = index.replace("\"listed\"", "\"../../listed\"");
    write(&elsewhere, "moved/artifact.json", &index);
    let assert = shallows(&elsewhere).args(CHECK).assert();
    assert
        .code(2)
        .stderr_eq("error: ../../listed is outside of the bundle\n");
}

#[test]
fn results_that_cannot_be_made_again_are_refused() {
    let place = with_tiny();
    shallows(&place)
        .args(["run", "tiny.toml", "--out", "a/r"])
        .assert()
        .success();
    shallows(&place)
        .args(["run", "tiny.toml", "--out", "b/r"])
        .assert()
        .success();
    let assert = shallows(&place)
        .args(["artifact", "bundle", "a/r", "b/r"])
        .assert();
    assert.code(2).stderr_eq(str![[r#"
error: two results are called r; rename one of the directories

"#]]);
    let assert = shallows(&place).args(["artifact", "bundle", "a"]).assert();
    assert.code(2).stderr_eq(str![[r#"
error: a has no results of a run or a sweep (summary.json, study.json)

"#]]);
    let assert = shallows(&place)
        .args(["artifact", "bundle", "gone"])
        .assert();
    assert.code(2).stderr_eq(str![[r#"
error: cannot open gone: No such file or directory (os error 2)

"#]]);
    fs::remove_file(place.path().join("a/r/scenario.toml")).unwrap();
    let assert = shallows(&place)
        .args(["artifact", "bundle", "a/r"])
        .assert();
    assert.code(2).stderr_eq(str![[r#"
error: the run in a/r cannot be made again from what it kept[..]
...
"#]]);
    assert!(!place.path().join("bundle").exists());
    let assert = shallows(&place).args(["artifact", "check", "b/r"]).assert();
    assert.code(2).stderr_eq(str![[r#"
error: b/r is not an artifact[..]
"#]]);
}

#[test]
fn the_citation_of_the_repository_is_that_of_bundles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let citation = fs::read_to_string(root.join("CITATION.cff")).unwrap();
    assert_eq!(citation, shallows_study::artifact::citation());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
