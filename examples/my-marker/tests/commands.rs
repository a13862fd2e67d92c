//! The commands of Shallows know the marker.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn my_marker(directory: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_my-marker");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    command.output().expect("the program starts")
}

/// A file of the example.
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    path.display().to_string()
}

#[test]
fn a_study_compares_it_with_others() {
    let directory = tempfile::tempdir().unwrap();
    let sweep = |more: &[&str]| {
        let study = file("study.toml");
        let mut arguments = vec!["sweep", &study, "--seeds", "1", "--out", "out"];
        arguments.extend(more);
        let output = my_marker(directory.path(), &arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let table = sweep(&["--set", "workload.poisson.flows=40"]);
    for label in ["quadratic", "step at K", "RED", "TCN", "none"] {
        let rows = table.lines().filter(|line| line.starts_with(label));
        assert_eq!(rows.count(), 2, "{label}: {table}");
    }
    assert!(directory.path().join("out/study.svg").is_file());
    // Kept runs are found again.
    let runs = || {
        fs::read_dir(directory.path().join("out/runs"))
            .unwrap()
            .count()
    };
    let before = runs();
    assert_eq!(sweep(&["--set", "workload.poisson.flows=40"]), table);
    assert_eq!(runs(), before);
}

#[test]
fn its_parameters_are_varied_and_checked() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = file("scenario.toml");
    let vary = "ports.switch.marker.scheme.quadratic.full=10pkts,60pkts";
    let few = "workload.poisson.flows=40";
    let arguments = [
        "run", &scenario, "--set", few, "--vary", vary, "--metric", "marks",
    ];
    let output = my_marker(directory.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    let wrong = "ports.switch.marker.scheme.quadratic.ful=10pkts";
    let output = my_marker(directory.path(), &["run", &scenario, "--set", wrong]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("ful"), "{said}");
}
