//! Live runs and the live switch, as far as they can be seen from outside.

use std::process::Output;

use crate::{directory, read_text, shallows, shipped, with_tiny, write};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_cannot_run_live_is_refused_with_the_nearest_that_can() {
    for (name, options, problem, help) in [
        (
            "quickstart.toml",
            &[][..],
            "a leaf-spine has several ways between hosts",
            "nearest are star",
        ),
        (
            "dumbbell.toml",
            &[],
            "a link of 10Gbps is more than this machine can carry live",
            "--scale 0.0200 makes 200Mbps of 10Gbps",
        ),
        (
            "live.toml",
            &["--set", "transport.controller=pfabric"],
            "pFabric's transport is not in the kernel",
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
fn a_scenario_runs_live() {
    let directory = with_tiny();
    let run = shallows(&directory)
        .args([
            "run",
            "tiny.toml",
            "--live",
            "--scale",
            "0.005",
            "--format",
            "csv",
        ])
        .args([
            "--set",
            "transport.controller=reno",
            "--set",
            "transport.ecn=classic",
        ])
        .args(["--set", "live.probes=[{from=0, to=1}]"])
        .args(["--set", "live.commands=[{host=2, run=\"echo at {h2}\"}]"]);
    let output = run.output().unwrap();
    let said = stderr(&output);
    if said.contains("needs root") {
        println!("skipped: {said}");
        return;
    }
    // A busy machine is told so, and the results are there all the same.
    let believed = output.status.success() || said.contains("not to be believed");
    assert!(believed, "{said}");
    let flows = read_text(&directory, "out/tiny/flows.csv");
    assert_eq!(flows.lines().count(), 51, "{flows}");
    assert!(
        flows.lines().skip(1).all(|line| line.ends_with("true")),
        "{flows}"
    );
    let live: serde_json::Value =
        serde_json::from_str(&read_text(&directory, "out/tiny/live.json")).unwrap();
    assert_eq!(live["outputs"][0], "at 10.83.0.3\n");
    assert!(live["rtts"][0]["sent"].as_u64() > Some(0));
    let resolved = read_text(&directory, "out/tiny/scenario.toml");
    assert!(resolved.contains("rate = \"50Mbps\""), "{resolved}");
}

#[test]
fn a_switch_says_what_is_missing() {
    let directory = directory();
    let egress = "egress = { buffer = \"unlimited\", scheduler = \"fifo\" }\n";
    for (text, problem) in [
        ("port = []", "missing field `egress`"),
        (&format!("{egress}port = []"), "the switch has no ports"),
        (
            &format!("{egress}port = [{{ device = \"nowhere0\", rate = \"1Gbps\" }}]"),
            "there is no network device nowhere0",
        ),
        (
            &format!(
                "{egress}metrics = \"0.0.0.0:1\"\nport = [{{ device = \"lo\", rate = \"1Gbps\" }}]"
            ),
            "open to other machines",
        ),
    ] {
        write(&directory, "switch.toml", text);
        let output = shallows(&directory)
            .args(["switch", "--config", "switch.toml"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(stderr(&output).contains(problem), "{}", stderr(&output));
    }
    let status = ["switch", "status", "--at", "127.0.0.1:1"];
    let output = shallows(&directory).args(status).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no switch answers at 127.0.0.1:1"));
}
