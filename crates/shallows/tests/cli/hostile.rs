//! What must not hang, lie or write where it should not.

use std::fs;
use std::process::{Command as Process, Stdio};

use crate::{directory, read_text, shallows, with_tiny, write};

const FLOWS: &str = "start_s,src,dst,bytes,service\n0,0,1,30000,0\n0.00001,2,1,30000,1\n";

/// Hosts 0 and 1 and a port that holds ten packets.
const PAIR: &str = r#"
until = "20ms"
topology.star = { hosts = 3, rate = "1Gbps", delay = "5us" }
ports.switch = { buffer = { shared = { size = "15KB" } }, scheduler = "fifo" }
"#;

/// Exit code, standard output and standard error of a run in a directory.
fn run(directory: &tempfile::TempDir, args: &[&str]) -> (i32, String, String) {
    let output = shallows(directory).arg("run").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code().expect("it was not killed"),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn flows_from_a_pipe_are_kept_with_the_results() {
    let directory = with_tiny();
    write(&directory, "flows.csv", FLOWS);
    let pipe = "cat flows.csv | $SHALLOWS run tiny.toml --flows /dev/stdin";
    let status = Process::new("sh")
        .env("SHALLOWS", env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(["-c", pipe])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(read_text(&directory, "out/tiny/inputs/0.csv"), FLOWS);
    let (code, _, error) = run(&directory, &["out/tiny/scenario.toml", "--out", "again"]);
    assert_eq!(code, 0, "{error}");
}

#[test]
fn endless_input_ends() {
    let directory = with_tiny();
    let (code, _, error) = run(&directory, &["tiny.toml", "--flows", "/dev/zero"]);
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("/dev/zero: a line is longer than"),
        "{error}"
    );
}

#[test]
fn a_very_deep_setting_is_refused() {
    let directory = with_tiny();
    let key = vec!["a"; 10_000].join(".") + "=1";
    let (code, _, error) = run(&directory, &["tiny.toml", "--set", &key]);
    assert_eq!(code, 2);
    assert!(error.contains("no table is deeper than"), "{error}");
    let value = format!("seed={}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let (code, _, _) = run(&directory, &["tiny.toml", "--set", &value]);
    assert_eq!(code, 2);
}

#[test]
fn a_directory_holds_one_run() {
    let directory = with_tiny();
    let probes = "probes={queues={links=\"all\",interval=\"10us\"},capture=\"*->h0\"}";
    let (code, _, error) = run(&directory, &["tiny.toml", "--out", "o", "--set", probes]);
    assert_eq!(code, 0, "{error}");
    write(&directory, "o/.queues.parquet.abc.tmp", "half");
    write(&directory, "o/notes.txt", "mine");
    let (code, _, error) = run(&directory, &["tiny.toml", "--out", "o", "--format", "csv"]);
    assert_eq!(code, 0, "{error}");
    let entries = fs::read_dir(directory.path().join("o")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["flows.csv", "notes.txt", "scenario.toml", "summary.json"]
    );
}

#[test]
fn flows_that_never_end_by_themselves_are_no_failure() {
    let directory = directory();
    for (workload, what) in [
        ("workload.long-lived = [{ src = 0, dst = 1 }]", "long-lived"),
        (
            "workload.udp = { src = 0, dst = 1, stream = { send = { message = { size = \"1400B\" } } } }",
            "udp",
        ),
    ] {
        write(&directory, "s.toml", &format!("{PAIR}{workload}\n"));
        let (code, _, error) = run(&directory, &["s.toml", "--out", what]);
        assert_eq!(code, 0, "{what}: {error}");
    }
    // Flows that could finish and do not are one.
    write(&directory, "s.toml", PAIR);
    write(&directory, "flows.csv", FLOWS);
    let (code, _, error) = run(
        &directory,
        &["s.toml", "--flows", "flows.csv", "--until", "50us"],
    );
    assert_eq!(code, 1);
    assert!(error.contains("no flow finished before 50us"), "{error}");
}

#[test]
fn drops_have_a_class_only_where_flows_have() {
    let directory = directory();
    let workload = "workload.long-lived = [{ src = 0, dst = 1 }, { src = 2, dst = 1 }]";
    write(&directory, "s.toml", &format!("{PAIR}{workload}\n"));
    let (code, json, error) = run(&directory, &["s.toml", "--json"]);
    assert_eq!(code, 0, "{error}");
    let summary: serde_json::Value = serde_json::from_str(&json).unwrap();
    let drops = summary["drops"].as_array().unwrap();
    let full = drops.iter().find(|of| of["reason"] == "port full").unwrap();
    assert!(full["other"].as_u64().unwrap() > 0, "{full}");
    assert_eq!(full["large"], 0, "{full}");
}

#[test]
fn jumbo_frames_need_no_other_window() {
    let directory = directory();
    write(&directory, "s.toml", PAIR);
    write(&directory, "flows.csv", FLOWS);
    let jumbo = "transport.segment=8960";
    let (code, _, error) = run(
        &directory,
        &["s.toml", "--flows", "flows.csv", "--set", jumbo],
    );
    assert_eq!(code, 0, "{error}");
    // One that was asked for is refused as before.
    let window = "transport.receive-window=1048576";
    let args = [
        "s.toml",
        "--flows",
        "flows.csv",
        "--set",
        jumbo,
        "--set",
        window,
    ];
    assert_eq!(run(&directory, &args).0, 2);
}

#[test]
fn names_are_names() {
    let directory = with_tiny();
    for name in [
        "../x",
        "/tmp/shallows-x",
        "a/b",
        "..",
        ".hidden",
        "",
        "a\\b",
    ] {
        let name = format!("name={name:?}");
        let (code, _, error) = run(&directory, &["tiny.toml", "--set", &name]);
        assert_eq!(code, 2, "{name}");
        assert!(
            error.contains("no name for a directory of results"),
            "{name}: {error}"
        );
    }
    assert_eq!(
        run(&directory, &["tiny.toml", "--set", "name=a b-c.d"]).0,
        0
    );
    assert!(directory.path().join("out/a b-c.d/summary.json").exists());
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let directory = with_tiny();
    write(&directory, "flows.csv", FLOWS);
    let target = directory.path().join("elsewhere");
    fs::create_dir(&target).unwrap();
    write(&directory, "elsewhere/precious", "mine");
    let args = ["tiny.toml", "--flows", "flows.csv", "--out"];
    let with = |out: &'static str| [&args[..], &[out]].concat();

    symlink(&target, directory.path().join("link")).unwrap();
    assert_eq!(run(&directory, &with("link")).0, 1);

    fs::create_dir(directory.path().join("o")).unwrap();
    symlink(&target, directory.path().join("o/inputs")).unwrap();
    let (code, _, error) = run(&directory, &with("o"));
    assert_eq!(code, 1);
    assert!(error.contains("is a symbolic link"), "{error}");

    fs::create_dir(directory.path().join("p")).unwrap();
    symlink(
        target.join("precious"),
        directory.path().join("p/summary.json"),
    )
    .unwrap();
    assert_eq!(run(&directory, &with("p")).0, 0);
    assert_eq!(read_text(&directory, "elsewhere/precious"), "mine");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
}
