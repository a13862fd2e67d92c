//! Live runs and the live switch, as far as they can be seen from outside.

use std::fs::File;
use std::path::Path;
use std::process::{Command as Process, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use shallows_results::RunRecord;
use shallows_results::ports::LinkRole;
use shallows_results::summary::World;
use tempfile::TempDir;

use crate::{directory, read_text, shallows, shipped, with_tiny, write};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One live run at a time, or they would take each other's CPUs and controllers; the lock is that of
/// the tests of `shallows-live`. None without root, which says itself that it is missing.
fn turn() -> Option<Flock<File>> {
    let file = File::create("/run/shallows-test-turn").ok()?;
    Some(Flock::lock(file, FlockArg::LockExclusive).unwrap())
}

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

fn run_commands(commands: &str, options: &[&str]) -> Option<(TempDir, Output)> {
    let _turn = turn();
    let directory = with_commands(commands);
    let run = ["run", "commands.toml", "--live"];
    let output = shallows(&directory).args(run).args(options).output();
    let output = output.unwrap();
    let said = stderr(&output);
    if said.contains("need root") {
        println!("skipped: {said}");
        return None;
    }
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
    if Process::new("ping").arg("-V").output().is_err() {
        println!("skipped: there is no ping");
        return;
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
    let believed = output.status.success() || said.contains("not to be believed");
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
    let _turn = turn();
    let directory = with_commands(r#"{ host = 0, as-root = true, run = "echo a; echo b" }"#);
    let path = directory.path().join("commands.toml");
    let run = || {
        let run = ["run", "commands.toml", "--live"];
        stderr(&shallows(&directory).args(run).output().unwrap())
    };
    let own = run();
    if own.contains("need root") {
        println!("skipped: {own}");
        return;
    }
    assert!(!own.contains("echo a"), "{own}");
    std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
    let said = run();
    assert!(said.contains("belongs to user 12345, not to you"), "{said}");
    assert!(
        said.contains("host \"0\" as root: echo a; echo b\n"),
        "{said}"
    );
}

/// The first signal ends it, with results, whatever its commands do with theirs.
#[test]
fn a_live_run_ends_at_the_first_signal() {
    let _turn = turn();
    let directory = with_commands(
        r#"{ host = 0, run = "(setsid sleep 1000 &); trap '' TERM; echo up; sleep 1000; sleep 1000" }"#,
    );
    let mut run = Process::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(["run", "commands.toml", "--live"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let printed = directory.path().join("out/commands/commands/0-h0.stdout");
    while std::fs::read_to_string(&printed)
        .unwrap_or_default()
        .is_empty()
    {
        if let Some(status) = run.try_wait().unwrap() {
            println!("skipped: it cannot run here ({status})");
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let id = run.id().to_string();
    assert!(
        Process::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let live = read_text(&directory, "out/commands/live.json");
    assert!(live.contains("stopped at the end of the run"), "{live}");
}

#[test]
fn cleaning_up_is_for_root() {
    let directory = directory();
    if Process::new("setpriv").arg("--version").output().is_err() {
        println!("skipped: there is no setpriv");
        return;
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
        println!("skipped: {said}");
        return;
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
    let _turn = turn();
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
        .args(["--set", "live.probes=[{from=0, to=1, every=\"100us\"}]"])
        .args(["--set", "live.commands=[{host=2, run=\"echo at {h2}\"}]"]);
    let output = run.output().unwrap();
    let said = stderr(&output);
    if said.contains("need root") {
        println!("skipped: {said}");
        return;
    }
    // A busy machine is told so, and the results are there all the same.
    let believed = output.status.success() || said.contains("not to be believed");
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

/// The live run in `out/tiny` has the tables of a simulated one: the same columns, and ports with
/// the same names and roles.
fn one_reader_opens_both_worlds(directory: &TempDir) {
    let probes = "probes={queues={links=\"all\",interval=\"20us\"},goodput={interval=\"20us\"}}";
    let simulate = ["run", "tiny.toml", "--out", "simulated", "--set", probes];
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
    for name in ["queues", "goodput"] {
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
    live.probes = [{ from = 1, to = 2, service = 1, every = "1ms" }]

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
    let _turn = turn();
    let directory = directory();
    write(&directory, "static.toml", STATIC_FLOWS);
    let compare = ["compare", "static.toml", "--scale", "0.05", "--json"];
    let output = shallows(&directory).args(compare).output().unwrap();
    let said = stderr(&output);
    if !output.status.success() {
        let reasons = [
            "need root",
            "needs root",
            "BTF",
            "Linux 6.4",
            "not to be believed",
        ];
        assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
        println!("skipped: {said}");
        return;
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
    let png = cfg!(feature = "png").then_some("png");
    for file in ["svg", "csv", "json"].into_iter().chain(png) {
        let path = format!("out/compare-static/compare.{file}");
        assert!(directory.path().join(&path).exists(), "{path}");
    }
    // What was brought along is gone.
    assert!(is_loaded_by_hand("shl_dctcp") || !kernel_has("shl_dctcp"));
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
    let _turn = turn();
    let name = "shl_ear";
    if is_loaded_by_hand(name) {
        println!("skipped: {name} is loaded, and may be in use");
        return;
    }
    let directory = directory();
    write(&directory, "static.toml", STATIC_FLOWS);
    let mut run = Process::new(env!("CARGO_BIN_EXE_shallows"))
        .current_dir(directory.path())
        .args(["run", "static.toml", "--live", "--scale", "0.01"])
        .args(["--set", "transport.controller=ear"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !kernel_has(name) {
        if let Some(status) = run.try_wait().unwrap() {
            println!("skipped: it cannot run here ({status})");
            return;
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
            &format!(
                "{egress}metrics = \"0.0.0.0:1\"\nport = [{{ device = \"lo\", rate = \"1Gbps\" }}]"
            ),
            "open to other machines",
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
