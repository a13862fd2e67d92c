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

/// Files that are read as a whole have an end.
#[cfg(target_os = "linux")]
#[test]
fn a_device_without_end_is_no_file_of_ours() {
    let directory = directory();
    for command in [
        &["run"][..],
        &["sweep"],
        &["linux", "--device", "eth0"],
        &["sonic", "check"],
        &["sonic", "import"],
    ] {
        let run = shallows(&directory).args(command).arg("/dev/zero");
        let output = run.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{command:?}: {error}");
        assert!(
            error.contains("it has more than 64 MB"),
            "{command:?}: {error}"
        );
    }
    // A capture may be longer than that, and is read as a whole.
    let run = shallows(&directory).args(["import", "/dev/zero"]);
    run.assert()
        .code(2)
        .stderr_eq("error: cannot read /dev/zero: it is a device and not a file\n");
}

/// What `linux` prints is run by a shell.
#[cfg(target_os = "linux")]
#[test]
fn no_argument_becomes_a_command_of_a_script() {
    let directory = with_tiny();
    for prefix in [
        "$(reboot)",
        "10.0.0.0/8;reboot",
        "10.0.0.0/33",
        "10.0.0.0",
        "",
    ] {
        let linux = ["linux", "--device", "eth0", "--prefix", prefix, "tiny.toml"];
        shallows(&directory).args(linux).assert().code(2);
    }
    let name = "a\nreboot\n.toml";
    write(&directory, name, &read_text(&directory, "tiny.toml"));
    let set = ["--set", "ports.switch.marker.scheme=none"];
    let linux = ["linux", "--device", "eth0", name];
    let output = shallows(&directory).args(linux).args(set).output().unwrap();
    let script = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !script.lines().any(|line| line.starts_with("reboot")),
        "{script}"
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
    // What a killed run leaves, and a file of the user's.
    fs::create_dir(directory.path().join("o/.shallows-unfinished")).unwrap();
    write(&directory, "o/.shallows-unfinished/queues.parquet", "half");
    write(&directory, "o/notes.txt", "mine");
    let (code, _, error) = run(&directory, &["tiny.toml", "--out", "o", "--format", "csv"]);
    assert_eq!(code, 0, "{error}");
    let entries = fs::read_dir(directory.path().join("o")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "flows.csv",
            "notes.txt",
            "ports.csv",
            "run.sha256",
            "scenario.toml",
            "summary.json"
        ]
    );
}

#[test]
fn a_run_never_deletes_what_it_reads() {
    let directory = with_tiny();
    write(&directory, "flows.csv", FLOWS);
    let into = ["tiny.toml", "--format", "csv", "--out", "re"];
    assert_eq!(run(&directory, &into).0, 0);
    let before = read_text(&directory, "re/flows.csv");
    let again = ["tiny.toml", "--flows", "re/flows.csv", "--out", "re"];
    let (code, _, error) = run(&directory, &again);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("which its results would replace"), "{error}");
    assert_eq!(read_text(&directory, "re/flows.csv"), before);

    // A list that is kept as a copy may be read from there.
    let from_list = ["tiny.toml", "--flows", "flows.csv", "--out", "list"];
    assert_eq!(run(&directory, &from_list).0, 0);
    let in_place = ["list/scenario.toml", "--out", "list"];
    let (code, _, error) = run(&directory, &in_place);
    assert_eq!(code, 0, "{error}");
    assert_eq!(read_text(&directory, "list/inputs/0.csv"), FLOWS);
    let (code, _, error) = run(
        &directory,
        &["list/scenario.toml", "--out", "list", "--seed", "9"],
    );
    assert_eq!(code, 1, "{error}");
}

#[test]
fn a_directory_that_is_not_of_a_run_is_refused() {
    let directory = with_tiny();
    fs::create_dir(directory.path().join("commands")).unwrap();
    write(&directory, "commands/tool.c", "mine");
    write(&directory, "result.json", "mine");
    let (code, _, error) = run(&directory, &["tiny.toml", "--out", "."]);
    assert_eq!(code, 1);
    assert!(error.contains("which is not of a run"), "{error}");
    assert_eq!(read_text(&directory, "commands/tool.c"), "mine");
    assert_eq!(read_text(&directory, "result.json"), "mine");
}

/// A message that cannot be written must not change how a command ends.
#[cfg(target_os = "linux")]
#[test]
fn messages_that_cannot_be_printed_are_dropped() {
    let directory = with_tiny();
    write(&directory, "bad.toml", "seed = \"x\"\n");
    let old = format!(
        "version = \"0.0.0\"\n{}",
        read_text(&directory, "tiny.toml")
    );
    write(&directory, "old.toml", &old);
    for (scenario, code) in [("bad.toml", 2), ("old.toml", 0)] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let (reader, unread) = std::io::pipe().unwrap();
        drop(reader);
        for stderr in [Stdio::from(full.unwrap()), Stdio::from(unread)] {
            let run = Process::new(env!("CARGO_BIN_EXE_shallows"))
                .current_dir(directory.path())
                .args(["run", scenario])
                .stdout(Stdio::null())
                .stderr(stderr)
                .status();
            assert_eq!(run.unwrap().code(), Some(code), "{scenario}");
        }
    }
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
            error.contains("not a valid name of a directory of results"),
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
    for link in ["link", "link/", "link/."] {
        let (code, _, error) = run(&directory, &with(link));
        assert_eq!(code, 1, "{link}");
        assert!(error.contains("is a symbolic link"), "{error}");
    }

    assert_eq!(run(&directory, &with("o")).0, 0);
    fs::remove_dir_all(directory.path().join("o/inputs")).unwrap();
    symlink(&target, directory.path().join("o/inputs")).unwrap();
    let (code, _, error) = run(&directory, &with("o"));
    assert_eq!(code, 1);
    assert!(error.contains("is a symbolic link"), "{error}");

    assert_eq!(run(&directory, &with("p")).0, 0);
    fs::remove_file(directory.path().join("p/summary.json")).unwrap();
    symlink(
        target.join("precious"),
        directory.path().join("p/summary.json"),
    )
    .unwrap();
    let (code, _, error) = run(&directory, &with("p"));
    assert_eq!(code, 1);
    assert!(error.contains("is a symbolic link"), "{error}");
    assert_eq!(read_text(&directory, "elsewhere/precious"), "mine");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
}

/// As root a trace in `/dev/full` would otherwise be that device's end.
#[cfg(unix)]
#[test]
fn no_device_pipe_or_link_is_replaced() {
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    let directory = with_tiny();
    let place = |name: &str| directory.path().join(name);
    let made = Process::new("mkfifo").arg(place("pipe")).status();
    assert!(made.unwrap().success());
    write(&directory, "mine", "mine");
    symlink(place("mine"), place("link")).unwrap();
    for name in ["pipe", "link", "/dev/full"] {
        let (code, _, error) = run(&directory, &["tiny.toml", "--trace", name]);
        assert_eq!(code, 1, "{name}: {error}");
        assert!(error.contains("not a regular file"), "{name}: {error}");
    }
    assert!(fs::metadata(place("pipe")).unwrap().file_type().is_fifo());
    assert!(place("link").is_symlink());
    assert_eq!(read_text(&directory, "mine"), "mine");
}

/// A run of somebody else may have links to devices, and pipes that nobody writes to.
#[cfg(unix)]
#[test]
fn a_run_whose_files_have_no_end_is_refused() {
    let directory = with_tiny();
    let (code, _, error) = run(&directory, &["tiny.toml", "--out", "o", "--format", "csv"]);
    assert_eq!(code, 0, "{error}");
    for file in ["summary.json", "flows.csv"] {
        let path = directory.path().join("o").join(file);
        let kept = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        for command in ["explain", "plot"] {
            let output = shallows(&directory).args([command, "o"]).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{command} {file}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, kept).unwrap();
    }
}

/// A flow of four days in a column of doubles, which cannot have all its picoseconds.
#[test]
fn a_very_long_flow_is_written_in_every_format() {
    let directory = directory();
    write(
        &directory,
        "slow.toml",
        r#"
topology.star = { hosts = 2, rate = "100bps", delay = "5us" }
transport = { controller = "reno", rto = { initial = "2000s", minimum = "2000s", maximum = "3600s" } }
ports.switch = { buffer = { shared = { size = "1MB" } }, scheduler = "fifo" }
workload.list = "flows.csv"
"#,
    );
    let flow = "start_s,src,dst,bytes,service\n0,0,1,4300000,0\n";
    write(&directory, "flows.csv", flow);
    for format in ["parquet", "csv"] {
        let (code, _, error) = run(
            &directory,
            &["slow.toml", "--format", format, "--out", format],
        );
        assert_eq!(code, 0, "{error}");
        let explained = shallows(&directory).args(["explain", format]).output();
        assert!(explained.unwrap().status.success(), "{format} reads back");
        // 2,945 packets of 1,500 B and one of 300 B at 100 bps: 353,553.6 s and two delays.
        let summary = read_text(&directory, &format!("{format}/summary.json"));
        assert!(summary.contains("\"max\": 353553600020.0"), "{summary}");
    }
}
