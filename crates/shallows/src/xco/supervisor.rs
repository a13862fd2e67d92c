//! Keeps an agent running, because the guests behind it have no network without it.
//!
//! The agent works in a process of its own. When that dies by a signal or a panic, it is started
//! again at once; one that ends in an orderly way, or does not start the first time, is not.

use std::env;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use crate::output;

/// Says to a process that it is the worker.
const WORKER: &str = "SHALLOWS_AGENT_WORKER";

/// The exit code of a panic.
const PANICKED: i32 = 101;

/// A worker that lived for less is started again after this long.
const BREATHER: Duration = Duration::from_secs(1);

/// Returns whether this process is the one that works. It has inherited the supervisor's blocked signals,
/// which it wants itself.
pub(super) fn is_worker() -> bool {
    let is_worker = env::var_os(WORKER).is_some();
    if is_worker {
        // Signals that stay blocked make a worker that only SIGKILL ends, and no worse.
        let _ = SigSet::all().thread_unblock();
    }
    is_worker
}

/// Runs this command again as a worker, for as long as it is not told to end.
pub(super) fn supervise() -> anyhow::Result<ExitStatus> {
    let mut signals = SigSet::empty();
    let wanted = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    signals.extend(wanted.into_iter().chain([Signal::SIGCHLD]));
    // Taken one by one below.
    signals.thread_block().context("cannot block signals")?;
    let mut is_first = true;
    loop {
        let begun = Instant::now();
        let mut worker = start().context("cannot start the agent's process")?;
        let (status, is_told) = wait(&mut worker, &signals)?;
        let has_failed = status.code().is_none_or(|code| code == PANICKED);
        if is_told || is_first && !has_failed || status.success() {
            return Ok(status);
        }
        is_first = false;
        output::note(format!(
            "the agent died ({status}) and is started again: its guests need it"
        ));
        if begun.elapsed() < BREATHER {
            thread::sleep(BREATHER);
        }
    }
}

fn start() -> io::Result<Child> {
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_default();
    // The same program, whatever has become of its file.
    Command::new("/proc/self/exe")
        .arg0(name)
        .args(arguments)
        .env(WORKER, "1")
        // Ctrl-C is for the supervisor, which passes it on.
        .process_group(0)
        .spawn()
}

/// Waits for the worker's end and passes signals on to it; whether it was told to end.
fn wait(worker: &mut Child, signals: &SigSet) -> anyhow::Result<(ExitStatus, bool)> {
    let process = Pid::from_raw(worker.id().cast_signed());
    let mut is_told = false;
    loop {
        if let Some(status) = worker.try_wait().context("cannot wait for the agent")? {
            return Ok((status, is_told));
        }
        let signal = signals.wait().context("cannot wait for signals")?;
        if signal != Signal::SIGCHLD {
            is_told |= signal != Signal::SIGHUP;
            // It may have ended meanwhile.
            let _ = kill(process, signal);
        }
    }
}

/// The exit code that a shell would show.
pub(super) fn code(status: ExitStatus) -> i32 {
    let by_signal = || 128 + status.signal().unwrap_or(0);
    status.code().unwrap_or_else(by_signal)
}
