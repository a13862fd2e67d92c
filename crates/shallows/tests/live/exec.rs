//! Programs with a level: the signals that they get, and what a killed `exec` leaves.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, Signal, kill};
use nix::unistd::Pid;
use shallows_testing::{alone, skip};

use crate::cluster::lab;
use crate::runs::unable;
use crate::support::{directory, shallows, write};

fn send(to: u32, signal: Signal) {
    kill(Pid::from_raw(to.cast_signed()), signal).unwrap();
}

/// Starts a script in a cgroup with level 0; it has printed its process number when this returns.
fn exec(script: &str) -> Result<(Child, u32), String> {
    let mut run = Command::new(env!("CARGO_BIN_EXE_shallows"))
        .args(["exec", "--level", "0", "--by", "cgroup", "--", "sh", "-c"])
        .arg(format!("{script}; echo $$; while :; do sleep 0.05; done"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut printed = BufReader::new(run.stdout.take().unwrap());
    printed.read_line(&mut line).unwrap();
    match line.trim().parse() {
        Ok(pid) => Ok((run, pid)),
        Err(_) => Err(String::from_utf8_lossy(&run.wait_with_output().unwrap().stderr).into()),
    }
}

/// A reason why this machine has no cgroups with BPF, or the started script.
macro_rules! exec_or_skip {
    ($script:expr) => {
        match exec($script) {
            Ok(started) => started,
            Err(reason) => {
                assert!(
                    reason.contains("root") || reason.contains("BTF"),
                    "{reason}"
                );
                skip!("{reason}");
            }
        }
    };
}

#[test]
fn signals_to_exec_alone_reach_the_program() {
    let _alone = alone();
    for (signal, name, code) in [
        (SIGINT, "INT", 41),
        (SIGQUIT, "QUIT", 42),
        (SIGTERM, "TERM", 43),
        (SIGHUP, "HUP", 44),
    ] {
        // A shell cannot trap what its parents ignore, as `nohup` does with SIGHUP.
        if is_ignored(signal) {
            continue;
        }
        let (mut run, _) = exec_or_skip!(&format!("trap 'exit {code}' {name}"));
        send(run.id(), signal);
        assert_eq!(run.wait().unwrap().code(), Some(code), "{name}");
    }
}

/// Returns whether this process ignores a signal, and so do the programs that it starts.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("SigIgn"));
    let mask = line.unwrap().split_whitespace().nth(1).unwrap();
    u64::from_str_radix(mask, 16).unwrap() >> (signal as u32 - 1) & 1 == 1
}

/// The cgroups that `exec` with this process number has made.
fn cgroups_of(process: u32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let cgroup2 = mounts.lines().filter(|line| line.contains(" cgroup2 "));
    let roots = cgroup2.filter_map(|line| line.split(' ').nth(1));
    let entries = roots.flat_map(|root| fs::read_dir(root).unwrap().flatten());
    let name = format!("shallows-exec-{process}-");
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&name));
    ours.map(|entry| entry.path()).collect()
}

#[test]
fn what_a_killed_exec_leaves_is_cleaned_up() {
    let _alone = alone();
    let (mut run, program) = exec_or_skip!(":");
    let exec = run.id();
    send(exec, SIGKILL);
    run.wait().unwrap();
    assert_eq!(cgroups_of(exec).len(), 1);
    // The program itself goes on: its cgroup is in use.
    let clean = || shallows(&directory()).args(["lab", "clean"]).assert();
    clean().success();
    assert_eq!(cgroups_of(exec).len(), 1);
    let members = || fs::read_to_string(cgroups_of(exec)[0].join("cgroup.procs")).unwrap();
    send(program, SIGKILL);
    while !members().is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
    clean().success();
    assert_eq!(cgroups_of(exec), Vec::<PathBuf>::new());
}

/// `apply --dry-run` changes nothing, and a level that no limiter has is refused: its packets would
/// go at the lowest.
#[test]
fn a_level_that_no_limiter_has_is_refused() {
    if let Some(reason) = unable() {
        skip!("{reason}");
    }
    if let Err(reason) = shallows_bpf::check() {
        skip!("{reason}");
    }
    let _alone = alone();
    let (lab, directory) = (lab(2), directory());
    write(
        &directory,
        "qjump.toml",
        "epoch = '1ms'\nlevels = ['unlimited', '15380B', '1538B']\n",
    );
    let name = lab.host(0).name().to_owned();
    let run = |arguments: &str| {
        let output = shallows(&directory).args(arguments.split(' ')).output();
        let output = output.unwrap();
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (output.status.success(), text)
    };
    let apply = format!("qjump apply --netns {name} --dev eth0 qjump.toml");
    let (_, planned) = run(&format!("{apply} --dry-run"));
    assert!(planned.contains("nothing was changed"), "{planned}");
    let (_, status) = run("qjump status");
    assert!(!status.contains(&name), "{status}");
    let (is_applied, text) = run(&apply);
    assert!(is_applied, "{text}");
    let (_, status) = run("qjump status");
    assert!(status.contains(&name), "{status}");
    let (is_run, text) = run("exec --level 5 -- true");
    assert!(!is_run && text.contains("no limiter has level 5"), "{text}");
    let (is_run, text) = run("exec --level 2 -- true");
    assert!(is_run, "{text}");
    let (is_removed, text) = run(&format!("qjump remove --netns {name} --dev eth0"));
    assert!(is_removed, "{text}");
}
