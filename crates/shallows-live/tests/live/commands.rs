//! Programs at hosts, and what they must not be able to do to a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use shallows_core::units::{Rate, Time};
use shallows_live::command::{CommandOutcome, CommandPlace, CommandPlan, CommandUser, Ending};
use shallows_live::experiment::{Experiment, Observed};
use shallows_live::traffic::FlowControllers;

use crate::switching::FIFO;
use crate::{need_a_lab, plan, switch_config};

fn command(line: &str) -> CommandPlan {
    CommandPlan {
        host: 0,
        start: Time::ZERO,
        line: line.to_owned(),
        awaited: true,
        timeout: Time::from_secs(600),
        user: CommandUser::Unprivileged,
        place: CommandPlace::Inside,
        may_fail: false,
    }
}

fn experiment(commands: Vec<CommandPlan>) -> Experiment {
    Experiment {
        lab: plan(2),
        switch: switch_config(2, Rate::from_mbps(100), FIFO),
        workload: Arc::default(),
        controllers: FlowControllers::default(),
        seed: 1,
        applications: Vec::new(),
        goodput_every: shallows_live::traffic::GOODPUT_EVERY,
        probes: Vec::new(),
        commands,
        outputs: None,
        until: None,
        xco: None,
        stages: None,
    }
}

fn run(experiment: &Experiment) -> Observed {
    experiment.run(&|| false).unwrap()
}

fn stdout(outcome: &CommandOutcome) -> String {
    String::from_utf8(outcome.stdout.last.clone()).unwrap()
}

/// Outside of the namespaces nothing but its environment tells whose it is.
#[test]
fn what_is_left_behind_outside_goes_with_the_lab() {
    need_a_lab!();
    let line = "setsid sleep 4321 > /dev/null 2>&1 & echo $!";
    let outside = CommandPlan {
        place: CommandPlace::Outside,
        ..command(line)
    };
    let observed = run(&experiment(vec![outside]));
    assert_eq!(observed.commands[0].ending, Ending::Exited(0));
    let is_left = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.map(|of| std::fs::read(of.path().join("cmdline")));
        lines.flatten().any(|line| line == b"sleep\x004321\0")
    };
    assert!(!is_left());
}

#[test]
fn a_command_is_told_how_it_ended() {
    need_a_lab!();
    let slow = CommandPlan {
        timeout: Time::from_ms(200),
        ..command("echo before; sleep 1000")
    };
    let late = CommandPlan {
        start: Time::from_secs(1000),
        awaited: false,
        ..command("echo never")
    };
    let commands = vec![
        command("echo fine"),
        command("echo why >&2; exit 7"),
        command("no-such-program"),
        command("kill -9 $$"),
        slow,
        late,
    ];
    let observed = run(&experiment(commands));
    let endings: Vec<Ending> = observed.commands.iter().map(|of| of.ending).collect();
    let expected = [
        Ending::Exited(0),
        Ending::Exited(7),
        Ending::Exited(127),
        Ending::Killed(9),
        Ending::TimedOut,
        Ending::NotStarted,
    ];
    assert_eq!(endings, expected);
    let failed: Vec<bool> = observed
        .commands
        .iter()
        .map(CommandOutcome::failed)
        .collect();
    assert_eq!(failed, [false, true, true, true, true, false]);
    assert_eq!(observed.commands[1].stderr.last, b"why\n");
    let said = String::from_utf8_lossy(&observed.commands[2].stderr.last).into_owned();
    assert!(said.contains("no-such-program"), "{said}");
    assert_eq!(stdout(&observed.commands[4]), "before\n");
}

/// Neither holds the run: the test would not end.
#[test]
fn what_a_command_leaves_behind_and_what_ignores_signals_ends_with_the_run() {
    need_a_lab!();
    let stubborn = CommandPlan {
        awaited: false,
        ..command("trap '' TERM INT; echo deaf; while :; do sleep 1000; done")
    };
    let left = command("(setsid sleep 91919 &); echo gone");
    let mut experiment = experiment(vec![left, stubborn]);
    experiment.until = Some(Time::from_ms(500));
    let observed = run(&experiment);
    assert_eq!(observed.commands[0].ending, Ending::Exited(0));
    assert_eq!(stdout(&observed.commands[0]), "gone\n");
    assert_eq!(observed.commands[1].ending, Ending::Stopped);
    assert_eq!(stdout(&observed.commands[1]), "deaf\n");
    let alive = std::process::Command::new("sh")
        .args(["-c", "grep -lz '^91919$' /proc/[0-9]*/cmdline 2>/dev/null"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&alive.stdout), "", "it still runs");
}

#[test]
fn an_interrupted_run_stops_its_commands_and_gives_results() {
    need_a_lab!();
    let experiment = experiment(vec![command(
        "trap '' TERM; echo here; sleep 1000; sleep 1000",
    )]);
    let interrupted = AtomicBool::new(false);
    let observed = thread::scope(|scope| {
        let run = scope.spawn(|| experiment.run(&|| interrupted.load(Ordering::Relaxed)));
        thread::sleep(Duration::from_secs(2));
        interrupted.store(true, Ordering::Relaxed);
        run.join().unwrap().unwrap()
    });
    let ending = observed.commands[0].ending;
    assert!(
        matches!(ending, Ending::Stopped | Ending::NotStarted),
        "{ending}"
    );
}

#[test]
fn commands_are_nobody_unless_they_need_root() {
    need_a_lab!();
    let root = CommandPlan {
        user: CommandUser::Root,
        ..command("id -u")
    };
    let own = "id -u; grep -E 'CapEff|NoNewPrivs' /proc/self/status";
    let observed = run(&experiment(vec![command(own), root]));
    let said = stdout(&observed.commands[0]);
    assert!(!said.starts_with("0\n"), "{said}");
    assert!(said.contains("CapEff:\t0000000000000000"), "{said}");
    assert!(said.contains("NoNewPrivs:\t1"), "{said}");
    assert_eq!(stdout(&observed.commands[1]), "0\n");
}

/// 100 MB go by: 64 MB are kept in a file, and little in memory.
#[test]
fn output_goes_to_files_up_to_a_limit() {
    need_a_lab!();
    let directory = tempfile::tempdir().unwrap();
    let mut experiment = experiment(vec![
        command("head -c 100000000 /dev/zero; echo last"),
        command("echo small; echo odd >&2"),
    ]);
    let outputs = directory.path().join("commands");
    experiment.outputs = Some(outputs.clone());
    let observed = run(&experiment);
    let large = &observed.commands[0].stdout;
    assert_eq!(large.bytes, 100_000_005);
    assert!(large.last.len() <= 1 << 16 && large.last.ends_with(b"last\n"));
    let kept = std::fs::metadata(outputs.join("0-h0.stdout"))
        .unwrap()
        .len();
    assert_eq!(kept, shallows_live::command::MOST_OUTPUT);
    let read = |name: &str| std::fs::read_to_string(outputs.join(name)).unwrap();
    assert_eq!(read("1-h0.stdout"), "small\n");
    assert_eq!(read("1-h0.stderr"), "odd\n");
    assert_eq!(read("0-h0.stderr"), "");

    // A link in the place of the directory is not followed.
    let elsewhere = directory.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::remove_dir_all(&outputs).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &outputs).unwrap();
    experiment.commands.remove(0);
    run(&experiment);
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(read("0-h0.stdout"), "small\n");
}
