//! The CPU and the niceness of the switch.

#![allow(unsafe_code)]

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::io::IoError;
use crate::lab::Urgency;

/// CPU and priority of the switch's thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuPlacement {
    pub(super) cpu: Option<usize>,
    pub(super) nice: Option<i32>,
}

impl CpuPlacement {
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
            return Ok(Urgency::none());
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

/// Lets sleeps of this thread, and of those that it starts, end when they should.
pub(crate) fn sharpen_timers() {
    // SAFETY: plain arguments. A kernel without it sleeps a little longer.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_000);
    }
}
