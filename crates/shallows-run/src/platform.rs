//! What the operating system provides: CPUs, memory, the clock.
//!
//! Everything that another target may lack is asked for here, and answered with "unknown" where it
//! is. Linux is tested; on macOS the memory is unknown, and on `wasm32` the clock too. Neither of
//! these two targets has been built so far.

use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

/// How many threads can run at once.
pub(crate) fn cpus() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Bytes of memory that can be had without swapping, where the system tells.
pub(crate) fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let mut lines = text.lines();
    let kib = lines.find_map(|line| line.strip_prefix("MemAvailable:")?.strip_suffix("kB"))?;
    Some(kib.trim().parse::<u64>().ok()? * 1024)
}

/// Measures wall-clock time, where there is a clock.
#[derive(Debug)]
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self((!cfg!(target_arch = "wasm32")).then(Instant::now))
    }

    /// Zero without a clock.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}
