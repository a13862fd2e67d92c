//! What live runs and the live switch refuse.

use std::process::{Command as Process, Output};

use shallows_testing::{missing_program, skip};

use crate::{directory, shallows, shipped, write};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn cleaning_up_is_for_root() {
    let directory = directory();
    if let Some(reason) = missing_program(&["setpriv"]) {
        skip!("{reason}");
    }
    // Where everybody may run it.
    let program = directory.path().join("shallows");
    std::fs::copy(env!("CARGO_BIN_EXE_shallows"), &program).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let output = Process::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["lab", "clean"])
        .output()
        .unwrap();
    let said = stderr(&output);
    if said.contains("setpriv") {
        skip!("{said}");
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("need root"), "{said}");
}

#[test]
fn what_cannot_run_live_is_refused_with_the_nearest_that_can() {
    for (name, options, problem, help) in [
        (
            "quickstart.toml",
            &[][..],
            "a leaf-spine has several paths between hosts",
            "use a tree: star",
        ),
        (
            "dumbbell.toml",
            &[],
            "a link of 10Gbps is more than this machine can carry live",
            "--scale 0.0200 makes 200Mbps of 10Gbps",
        ),
        (
            "dumbbell.toml",
            &[
                "--set",
                "application=[{ clients = 0, servers = 1, run.ping = { interval = \"1ms\", count = 5 } }]",
            ],
            "a live run does not know when its applications are done",
            "set until",
        ),
        (
            "live.toml",
            &[
                "--set",
                "until=1s",
                "--set",
                "workload={ udp = { src = 0, dst = 1, stream.send.message = { size = \"10B\", interval = \"1ms\" } } }",
            ],
            "says in its first 20 bytes which one it is",
            "make it longer",
        ),
        (
            "live.toml",
            &["--set", "transport.controller=pfabric"],
            "the kernel has no such congestion controller",
            "choose dctcp",
        ),
        (
            "live.toml",
            &[
                "--set",
                "ports.switch.scheduler=pfabric",
                "--set",
                "ports.switch.queues=1",
                "--set",
                "ports.switch.marker.scheme=none",
            ],
            "pfabric needs the remaining size",
            "choose strict",
        ),
    ] {
        let directory = directory();
        let run = shallows(&directory)
            .args(["run", "--live"])
            .arg(shipped(name))
            .args(options);
        let output = run.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        let said = stderr(&output);
        assert!(said.contains(problem) && said.contains(help), "{said}");
    }
}

#[test]
fn a_switch_says_what_is_missing() {
    let directory = directory();
    let egress = "egress = { buffer = \"unlimited\", scheduler = \"fifo\" }\n";
    for (text, problem, code) in [
        ("port = []", "missing field `egress`", 2),
        ("port = [", "TOML parse error", 2),
        (&format!("{egress}port = []"), "the switch has no ports", 2),
        (
            &format!("{egress}port = [{{ device = \"nowhere0\", rate = \"1Gbps\" }}]"),
            "there is no network device nowhere0",
            1,
        ),
        (
            &format!("cpu = 9999999999\n{egress}port = [{{ device = \"lo\", rate = \"1Gbps\" }}]"),
            "there is no CPU 9999999999",
            2,
        ),
    ] {
        write(&directory, "switch.toml", text);
        let output = shallows(&directory)
            .args(["switch", "--config", "switch.toml"])
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert_eq!(said.matches(problem).count(), 1, "{said}");
    }
    let missing = ["switch", "--config", "missing.toml"];
    let output = shallows(&directory).args(missing).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let status = ["switch", "status", "--at", "127.0.0.1:1"];
    let output = shallows(&directory).args(status).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no switch answers at 127.0.0.1:1"));
}
