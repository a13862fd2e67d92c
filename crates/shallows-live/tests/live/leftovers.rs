use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use shallows_live::lab::{Lab, clean};

use crate::{need_a_lab, plan};

/// Namespaces of the labs of a process.
fn of(process: u32) -> Vec<String> {
    let prefix = format!("shallows-{process}-");
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

#[test]
fn a_lab_leaves_nothing_behind() {
    need_a_lab!();
    let lab = Lab::build(&plan(2)).unwrap();
    assert_eq!(of(std::process::id()).len(), 3);
    let prefix = format!("shallows-{}-", std::process::id());
    let cleaned = clean().unwrap();
    let ours = cleaned.alive.iter();
    let ours = ours.filter(|name| name.starts_with(&prefix)).count();
    assert_eq!(ours, 3, "what lives is left alone: {cleaned:?}");
    lab.remove();
    assert_eq!(of(std::process::id()), [""; 0]);
}

/// Not a test but the program that the next one kills.
#[test]
#[ignore = "run by a_killed_program_leaves_nothing_behind"]
fn a_program_that_waits_to_be_killed() {
    if std::env::var_os("SHALLOWS_VICTIM").is_some() {
        let _lab = Lab::build(&plan(2)).unwrap();
        println!("built");
        thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn a_killed_program_leaves_nothing_behind() {
    need_a_lab!();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leftovers::a_program_that_waits_to_be_killed"])
        .args(["--ignored", "--nocapture"])
        .env("SHALLOWS_VICTIM", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    assert!(
        lines
            .map_while(Result::ok)
            .any(|line| line.ends_with("built"))
    );
    assert_eq!(of(victim.id()).len(), 3);
    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !of(victim.id()).is_empty() {
        assert!(Instant::now() < deadline, "{:?} are left", of(victim.id()));
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn leftovers_without_a_guard_are_found() {
    need_a_lab!();
    // As of a program that was killed together with its guard. No process has this number.
    let name = "shallows-4194305-0-h0";
    let made = Command::new("ip")
        .args(["netns", "add", name])
        .status()
        .unwrap();
    assert!(made.success());
    fs::create_dir_all("/run/shallows").unwrap();
    fs::write("/run/shallows/shallows-4194305-0", name).unwrap();
    let cleaned = clean().unwrap();
    assert!(cleaned.removed.contains(&name.to_owned()), "{cleaned:?}");
    assert_eq!(of(4_194_305), [""; 0]);
}

#[test]
fn namespaces_of_others_are_left_alone() {
    need_a_lab!();
    let name = "shallows-my-db";
    let ip = |verb: &str| Command::new("ip").args(["netns", verb, name]).status();
    assert!(ip("add").unwrap().success());
    // Not even a list names what is not of its lab.
    fs::create_dir_all("/run/shallows").unwrap();
    fs::write("/run/shallows/shallows-4194306-0", name).unwrap();
    let cleaned = clean();
    let left = ip("delete").unwrap().success();
    assert!(!cleaned.unwrap().removed.contains(&name.to_owned()));
    assert!(left, "it is gone");
}
