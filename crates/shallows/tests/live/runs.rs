//! Live runs, as far as they can be seen from outside.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command as Process, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SIGTERM, kill};
use nix::unistd::Pid;
use shallows_results::RunRecord;
use shallows_results::ports::LinkRole;
use shallows_results::series::Values;
use shallows_results::summary::World;
use shallows_testing::{alone, missing_program, skip, skipped};
use tempfile::TempDir;

use crate::support::{directory, read_text, shallows, with_tiny, write};

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Says why live runs are not possible here, if they are not.
pub(crate) fn unable() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("it needs root".to_owned());
    }
    missing_program(&["ip"])
}

/// Skips the test where live runs are not possible, and waits until it is alone.
macro_rules! need_a_lab {
    () => {
        if let Some(reason) = unable() {
            skip!("{reason}");
        }
        let _alone = alone();
    };
}

/// Returns whether a program ended because this kernel takes no congestion controllers.
fn lacks_bpf(said: &str) -> bool {
    said.contains("BTF") || said.contains("Linux 6.4")
}

/// In the message of a live run that the machine was too busy for.
pub(crate) const UNFAITHFUL: &str = "not to be believed";

/// A live run of nothing but commands, of 0.3 s unless they take longer.
fn with_commands(commands: &str) -> TempDir {
    let directory = directory();
    let text = format!(
        "topology.star = {{ hosts = 2, rate = \"100Mbps\", delay = \"1us\" }}
         transport = {{ controller = \"reno\", ecn = \"classic\" }}
         live.commands = [{commands}]
         [ports.switch]
         buffer = {{ shared = {{ size = \"100KB\" }} }}
         scheduler = \"fifo\"\n"
    );
    write(&directory, "commands.toml", &text);
    directory
}

/// None, with a recorded reason, where live runs are not possible.
fn run_commands(commands: &str, options: &[&str]) -> Option<(TempDir, Output)> {
    if let Some(reason) = unable() {
        skipped(&reason);
        return None;
    }
    let _alone = alone();
    let directory = with_commands(commands);
    let run = ["run", "commands.toml", "--live"];
    let output = shallows(&directory).args(run).args(options).output();
    let output = output.unwrap();
    Some((directory, output))
}

#[test]
fn a_command_that_fails_fails_the_run_unless_it_may() {
    let fails = r#"{ host = 1, run = "echo out; echo the reason >&2; exit 7" }"#;
    let Some((directory, output)) = run_commands(fails, &[]) else {
        return;
    };
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("at host 1 failed (exit status 7); it said: the reason"),
        "{said}"
    );
    let kept = read_text(&directory, "out/commands/commands/0-h1.stderr");
    assert_eq!(kept, "the reason\n");

    let may = fails.replace("host = 1,", "host = 1, may-fail = true,");
    let (directory, output) = run_commands(&may, &[]).unwrap();
    let said = stderr(&output);
    assert!(!said.contains("the reason"), "{said}");
    let live = read_text(&directory, "out/commands/live.json");
    assert!(live.contains("\"ending\": \"exit status 7\""), "{live}");

    let missing = r#"{ host = 0, run = "no-such-program" }"#;
    let (_, output) = run_commands(missing, &[]).unwrap();
    assert!(stderr(&output).contains("failed (exit status 127)"));
}

/// What ping prints and what an application of ours does are in one record.
#[test]
fn latencies_that_programs_print_are_in_the_record() {
    if let Some(reason) = missing_program(&["ping"]) {
        skip!("{reason}");
    }
    let commands =
        r#"{ host = 0, run = "ping -D -i 0.02 -c 20 {h1}", as-root = true, latencies = "ping" }"#;
    let options = [
        "--set",
        "until=1.5s",
        "--set",
        "application=[{ clients = 0, servers = 1, run.ping = { interval = \"50ms\" }, name = \"ours\" }]",
    ];
    let Some((directory, output)) = run_commands(commands, &options) else {
        return;
    };
    let said = stderr(&output);
    let believed = output.status.success() || said.contains(UNFAITHFUL);
    assert!(believed, "{said}");
    let record = RunRecord::open(&directory.path().join("out/commands")).unwrap();
    let latencies = &record.summary.as_ref().unwrap().facts.latencies;
    let counts: Vec<(&str, u64)> = latencies
        .iter()
        .map(|of| (&*of.operation.application, of.count))
        .collect();
    assert_eq!(counts.len(), 2, "{counts:?}");
    assert!(counts[0].0 == "ours" && counts[0].1 > 10, "{counts:?}");
    assert_eq!(counts[1], ("ping", 20));

    let quiet = r#"{ host = 0, run = "ping -q -c 1 {h1}", as-root = true, latencies = "ping" }"#;
    let (_directory, output) = run_commands(quiet, &[]).unwrap();
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(
        said.contains("ping must run with -D and without -q"),
        "{said}"
    );
}

#[test]
fn commands_can_be_left_out() {
    let commands = r#"{ host = 0, run = "exit 1" }, { host = 1, run = "exit 1" }"#;
    let flows = "workload.poisson={ load = 0.1, size = \"10KB\", flows = 5 }";
    let options = ["--no-commands", "--set", flows];
    let Some((directory, output)) = run_commands(commands, &options) else {
        return;
    };
    assert!(!directory.path().join("out/commands/commands").exists());
    let live = read_text(&directory, "out/commands/live.json");
    assert!(live.contains("\"commands\": []"), "{live}");
    assert!(!stderr(&output).contains("failed"), "{}", stderr(&output));
}

#[test]
fn what_another_users_file_runs_is_shown() {
    need_a_lab!();
    let directory = with_commands(r#"{ host = 0, as-root = true, run = "echo a; echo b" }"#);
    let path = directory.path().join("commands.toml");
    let run = || {
        let run = ["run", "commands.toml", "--live"];
        stderr(&shallows(&directory).args(run).output().unwrap())
    };
    let own = run();
    assert!(!own.contains("echo a"), "{own}");
    std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
    let said = run();
    assert!(said.contains("belongs to user 12345, not to you"), "{said}");
    assert!(
        said.contains("host \"0\" as root: echo a; echo b\n"),
        "{said}"
    );
}

/// Starts the live run of a directory made by [`with_commands`].
fn start_commands(directory: &TempDir) -> Child {
    Process::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(["run", "commands.toml", "--live"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the first command has printed something.
fn wait_for_the_first_word(run: &mut Child, directory: &TempDir) {
    let printed = "out/commands/.shallows-unfinished/commands/0-h0.stdout";
    let printed = directory.path().join(printed);
    while std::fs::read(&printed).unwrap_or_default().is_empty() {
        let ended = run.try_wait().unwrap();
        assert_eq!(ended, None, "it ends by itself");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The first signal ends it, with results, whatever its commands do with theirs.
#[test]
fn a_live_run_ends_at_the_first_signal() {
    need_a_lab!();
    let directory = with_commands(
        r#"{ host = 0, run = "(setsid sleep 1000 &); trap '' TERM; echo up; sleep 1000; sleep 1000" }"#,
    );
    let mut run = start_commands(&directory);
    wait_for_the_first_word(&mut run, &directory);
    kill(Pid::from_raw(run.id().cast_signed()), SIGTERM).unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let live = read_text(&directory, "out/commands/live.json");
    assert!(live.contains("stopped at the end of the run"), "{live}");
}

/// Results of a switch that lost a port are refused, whatever it did after that.
#[test]
fn a_port_lost_during_the_run_fails_it() {
    need_a_lab!();
    let directory = with_commands(r#"{ host = 0, run = "echo up; sleep 2" }"#);
    let mut run = start_commands(&directory);
    wait_for_the_first_word(&mut run, &directory);
    let namespace = format!("shallows-{}-0-switch", run.id());
    let delete = ["-n", &namespace, "link", "delete", "p1"];
    assert!(Process::new("ip").args(delete).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the switch lost its port"), "{said}");
}

#[test]
fn a_scenario_runs_live() {
    need_a_lab!();
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
        .args(["--set", PROBES])
        .args(["--set", "probes.ping=[{from=0, to=1, interval=\"100us\"}]"])
        .args(["--until", "10ms"])
        .args(["--set", "live.commands=[{host=2, run=\"echo at {h2}\"}]"]);
    let output = run.output().unwrap();
    let said = stderr(&output);
    // A busy machine is told so, and the results are there all the same.
    let believed = output.status.success() || said.contains(UNFAITHFUL);
    assert!(believed, "{said}");
    let flows = read_text(&directory, "out/tiny/flows.csv");
    assert_eq!(flows.lines().count(), 51, "{flows}");
    assert!(
        flows.lines().skip(1).all(|line| line.ends_with("true,,")),
        "{flows}"
    );
    let live: serde_json::Value =
        serde_json::from_str(&read_text(&directory, "out/tiny/live.json")).unwrap();
    let command = &live["commands"][0];
    assert_eq!(command["ending"], "exit status 0");
    assert_eq!(command["stdout"]["file"], "commands/0-h2.stdout");
    let printed = read_text(&directory, "out/tiny/commands/0-h2.stdout");
    assert_eq!(printed, "at 10.83.0.3\n");
    assert!(live["rtts"][0]["sent"].as_u64() > Some(0));
    let resolved = read_text(&directory, "out/tiny/scenario.toml");
    assert!(resolved.contains("rate = \"50Mbps\""), "{resolved}");
    one_reader_opens_both_worlds(&directory);
}

/// Probes that both worlds have.
const PROBES: &str = r#"probes={queues={links="all",interval="20us"},throughput={links="*->h1",interval="20us"},goodput={interval="20us"}}"#;

/// The live run in `out/tiny` has the tables of a simulated one: the same columns, ports with the
/// same names and roles, and samples of the same ports.
fn one_reader_opens_both_worlds(directory: &TempDir) {
    let simulate = ["run", "tiny.toml", "--out", "simulated", "--set", PROBES];
    shallows(directory).args(simulate).assert().success();
    let open = |name: &str| RunRecord::open(&directory.path().join(name)).unwrap();
    let (live, simulated) = (open("out/tiny"), open("simulated"));
    assert_eq!(live.flows.len(), simulated.flows.len());
    let summary = |record: &RunRecord| record.summary.clone().expect("there are flows");
    assert_eq!(summary(&live).facts.world, World::Live);
    assert_eq!(summary(&simulated).facts.world, World::Simulated);
    let ports = |record: &RunRecord| -> Vec<(String, LinkRole)> {
        let ports = record.ports.iter();
        ports.map(|port| (port.name.clone(), port.role)).collect()
    };
    assert_eq!(ports(&live), ports(&simulated));
    let sampled = |record: &RunRecord, name: &str| -> BTreeSet<i64> {
        let table = record.table(name).unwrap().expect("both have it");
        match table.column("port") {
            Some(Values::Integers(ports)) => ports.iter().copied().collect(),
            other => panic!("{name}: {other:?}"),
        }
    };
    for name in ["queues", "throughput"] {
        assert_eq!(sampled(&live, name), sampled(&simulated, name), "{name}");
    }
    for name in ["queues", "throughput", "goodput"] {
        let columns = |record: &RunRecord| -> Vec<String> {
            let table = record.table(name).unwrap().expect("both have it");
            assert!(table.rows() > 0, "{name}");
            let columns = table.columns().iter();
            columns.map(|column| column.name.clone()).collect()
        };
        assert_eq!(columns(&live), columns(&simulated), "{name}");
    }
    assert!(live.table("pings").unwrap().is_some());
}

/// Two services into one host at 50 Mbps: one flow against four.
const STATIC_FLOWS: &str = r#"
    until = "100ms"
    topology.star = { hosts = 3, rate = "1Gbps", delay = "50us" }
    transport = { rto = { initial = "10ms", minimum = "10ms" }, controller = "dctcp" }
    workload.long-lived = [
        { src = 0, dst = 2, service = 0 },
        { src = 1, dst = 2, service = 1, count = 4 },
    ]
    probes.ping = [{ from = 1, to = 2, service = 1, interval = "1ms" }]

    [ports.switch]
    queues = 2
    framing = "ethernet"
    buffer = { shared = { size = "192KB" } }
    scheduler = { dwrr = { quantum = "1500B" } }
    marker = { scheme = { mq-ecn = { threshold = "32KB", t-idle = "12us" } } }
"#;

/// Both worlds, with the kernel's DCTCP brought along. Bounds are far wider than what is measured
/// on a quiet machine, and where the machine was too busy nothing is judged.
#[test]
fn both_worlds_agree_on_dctcp() {
    need_a_lab!();
    let directory = directory();
    write(&directory, "static.toml", STATIC_FLOWS);
    let compare = ["compare", "static.toml", "--scale", "0.05", "--json"];
    let compare = || shallows(&directory).args(compare).output().unwrap();
    let mut output = compare();
    // The run says itself that the machine was too busy for it.
    for _ in 0..2 {
        if stderr(&output).contains(UNFAITHFUL) {
            output = compare();
        }
    }
    let said = stderr(&output);
    if !output.status.success() {
        assert!(lacks_bpf(&said) || said.contains(UNFAITHFUL), "{said}");
        skip!("{said}");
    }
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let find = |of: &str, what: &str| {
        let mut rows = result["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["of"] == of && row["what"] == what);
        row.unwrap_or_else(|| panic!("{of}, {what}: {result}"))["difference"]
            .as_f64()
            .unwrap()
    };
    for (of, what, most) in [
        ("service 0", "goodput", 0.2),
        ("service 1", "goodput", 0.2),
        ("p2 all queues", "mean", 0.5),
        ("ping 0", "mean RTT", 0.5),
    ] {
        let difference = find(of, what);
        println!("{of}, {what}: {:+.1}%", 100.0 * difference);
        assert!(difference.abs() < most, "{of}, {what}: {difference}");
    }
    for file in ["svg", "pdf", "png", "csv", "json"] {
        let path = format!("out/compare-static/compare.{file}");
        assert!(directory.path().join(&path).exists(), "{path}");
    }
    // What was brought along is gone.
    assert!(is_loaded_by_hand("shl_dctcp") || !kernel_has("shl_dctcp"));
}

/// Two services of one pair of hosts: DCTCP negotiates ECN by itself, CUBIC without ECN does not.
#[test]
fn services_of_a_host_can_have_controllers_of_their_own() {
    need_a_lab!();
    let directory = directory();
    let text = r#"
        until = "1s"
        topology.star = { hosts = 3, rate = "100Mbps", delay = "50us" }
        transport.controller = "dctcp"
        transports = [{ services = [1], set = { controller = "cubic", ecn = "off" } }]
        [workload]
        flows = [
            { start = "0s", src = 0, dst = 2, size = "2MB", service = 0 },
            { start = "0s", src = 0, dst = 2, size = "2MB", service = 1 },
            { start = "0s", src = 1, dst = 2, size = "2MB", service = 0 },
        ]
        [ports.switch]
        queues = 2
        buffer = { shared = { size = "100KB" } }
        scheduler = { dwrr = { quantum = "1500B" } }
        marker = { scheme = { per-queue = { threshold = "15KB" } } }
    "#;
    write(&directory, "mixed.toml", text);
    let run = ["run", "mixed.toml", "--live"];
    let output = shallows(&directory).args(run).output().unwrap();
    let said = stderr(&output);
    if lacks_bpf(&said) {
        skip!("{said}");
    }
    assert!(
        output.status.success() || said.contains(UNFAITHFUL),
        "{said}"
    );
    let flows = RunRecord::open(&directory.path().join("out/mixed"))
        .unwrap()
        .flows;
    let marks = |service: u16| -> u64 {
        let of = flows.iter().filter(|flow| flow.service == service);
        of.map(|flow| u64::from(flow.marks)).sum()
    };
    assert_eq!(flows.len(), 3, "{flows:?}");
    assert!(marks(0) > 0, "{flows:?}");
    assert_eq!(marks(1), 0, "{flows:?}");
}

fn kernel_has(controller: &str) -> bool {
    let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(list).unwrap().contains(controller)
}

fn is_loaded_by_hand(controller: &str) -> bool {
    Path::new("/sys/fs/bpf/shallows").join(controller).exists()
}

#[test]
fn a_killed_run_takes_its_controller_along() {
    need_a_lab!();
    let name = "shl_ear";
    if is_loaded_by_hand(name) {
        skip!("{name} is loaded, and may be in use");
    }
    let directory = directory();
    write(&directory, "static.toml", STATIC_FLOWS);
    let mut run = Process::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(["run", "static.toml", "--live", "--scale", "0.01"])
        .args(["--set", "transport.controller=ear"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !kernel_has(name) {
        if run.try_wait().unwrap().is_some() {
            let said = stderr(&run.wait_with_output().unwrap());
            assert!(lacks_bpf(&said), "{said}");
            skip!("{said}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while kernel_has(name) {
        assert!(Instant::now() < deadline, "{name} is left");
        thread::sleep(Duration::from_millis(20));
    }
}
