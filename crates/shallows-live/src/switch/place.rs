use std::fs;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::io::IoError;

/// The kernel's knob for the niceness of a whole session.
const AUTOGROUP: &str = "/proc/self/autogroup";

/// Where the switch's thread runs, and how urgently.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) cpu: Option<usize>,
    pub(super) nice: Option<i32>,
}

/// The session's niceness, which is as before once this is dropped.
#[derive(Debug)]
pub(super) struct Urgency {
    before: Option<String>,
}

impl Place {
    /// Moves the calling thread there.
    pub(super) fn take(self) -> Result<Urgency, IoError> {
        sharpen_timers();
        if let Some(cpu) = self.cpu {
            let mut set = CpuSet::new();
            set.set(cpu)
                .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
                .map_err(|error| {
                    IoError::new(format!("pinning the switch to CPU {cpu}"), error.into())
                })?;
        }
        let Some(nice) = self.nice else {
            return Ok(Urgency { before: None });
        };
        set_nice(nice)?;
        Ok(Urgency::raise(nice))
    }
}

/// Sets the niceness of the calling thread alone, and of what it starts.
pub(crate) fn set_nice(nice: i32) -> Result<(), IoError> {
    // SAFETY: plain arguments. On Linux a "process" here is a thread.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } != 0 {
        return Err(IoError::last(format!("setting the niceness to {nice}")));
    }
    Ok(())
}

impl Urgency {
    /// Where sessions share the CPUs as groups, niceness counts within a session only, and the
    /// session needs it as well to count against others.
    fn raise(nice: i32) -> Self {
        let text = fs::read_to_string(AUTOGROUP).unwrap_or_default();
        let before = text.split_whitespace().last().map(str::to_owned);
        let raised = fs::write(AUTOGROUP, nice.to_string()).is_ok();
        Self {
            before: before.filter(|_| raised),
        }
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // It worked a moment ago, and nothing depends on it any more.
            let _ = fs::write(AUTOGROUP, before);
        }
    }
}

/// Lets sleeps of this thread, and of those that it starts, end when they should.
pub(crate) fn sharpen_timers() {
    // SAFETY: plain arguments. A kernel without it sleeps a little longer.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_000);
    }
}
