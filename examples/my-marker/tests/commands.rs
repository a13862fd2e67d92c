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

/// A cluster that makes the tasks of an array when they are submitted.
const SBATCH: &str = r#"#!/bin/sh
for option; do
    case "$option" in
        --array=0-*) last=${option#--array=0-} ;;
        --wrap=*) command=${option#--wrap=} ;;
    esac
done
if [ -n "$last" ]; then
    for SLURM_ARRAY_TASK_ID in $(seq 0 "$last"); do
        export SLURM_ARRAY_TASK_ID
        sh -c "$command" >&2 || exit 1
    done
fi
echo 1
"#;

/// Tasks are started by the program that submitted them, so they know the marker too.
#[cfg(unix)]
#[test]
fn tasks_of_a_cluster_know_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let cluster = directory.path().join("bin");
    fs::create_dir(&cluster).unwrap();
    for (name, script) in [("sbatch", SBATCH), ("squeue", "#!/bin/sh\n")] {
        fs::write(cluster.join(name), script).unwrap();
        fs::set_permissions(cluster.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let study = file("study.toml");
    let arguments = [
        "sweep",
        &study,
        "--seeds",
        "1",
        "--set",
        "workload.poisson.flows=40",
    ];
    let here = my_marker(
        directory.path(),
        &[&arguments[..], &["--out", "here"]].concat(),
    );
    let path = std::env::var("PATH").unwrap_or_default();
    let there = Command::new(env!("CARGO_BIN_EXE_my-marker"))
        .args(arguments)
        .args(["--out", "there", "--on", "slurm", "--tasks", "2", "--wait"])
        .env("PATH", format!("{}:{path}", cluster.display()))
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(there.status.success(), "{there:?}");
    let points = |of: &str| fs::read(directory.path().join(of).join("points.parquet")).unwrap();
    assert!(here.status.success(), "{here:?}");
    assert_eq!(points("there"), points("here"));
}

#[test]
fn figures_of_papers_can_be_tried_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let scheme = "ports.switch.marker.scheme.quadratic.full=60pkts";
    let figure = [
        "repro",
        "mq-ecn/fig3",
        "--quick",
        "--at",
        "1",
        "--out",
        "out",
    ];
    let set = ["--set", scheme, "--set", "until=300ms"];
    let output = my_marker(directory.path(), &[&figure[..], &set].concat());
    assert!(output.status.success(), "{output:?}");
    let runs = fs::read_dir(directory.path().join("out/runs")).unwrap();
    let scenario = |run: fs::DirEntry| fs::read_to_string(run.path().join("scenario.toml"));
    let mut scenarios = runs.map(|run| scenario(run.unwrap()).unwrap());
    assert!(scenarios.all(|scenario| scenario.contains("quadratic")));
}
