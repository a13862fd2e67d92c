//! Facts about the operating system: CPUs, memory, the clock.
//!
//! Everything that another target may lack is asked for here, and answered with "unknown" where it
//! is. Linux is tested; on macOS the memory is unknown, and on `wasm32` the clock too. Neither of
//! these two targets has been built so far.

use std::fs::File;
use std::io::Read as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, io, thread};

/// The program that other processes of a run start: this one, or what `SHALLOWS_PROGRAM` names where
/// this is an interpreter (the command of the Python package).
pub fn program() -> io::Result<PathBuf> {
    match env::var_os("SHALLOWS_PROGRAM") {
        Some(program) => Ok(program.into()),
        None => env::current_exe(),
    }
}

/// Number of threads that can run at once.
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

/// Bytes of the longest text that a command reads as a whole.
const LONGEST_TEXT: u64 = 64_000_000;

/// The text of a file, such as a scenario. One that is too long to be meant is refused, because a
/// device may have no end.
pub fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?.take(LONGEST_TEXT + 1);
    io::BufReader::new(file).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST_TEXT {
        let problem = format!("it has more than {} MB", LONGEST_TEXT / 1_000_000);
        return Err(io::Error::other(problem));
    }
    Ok(text)
}

/// The bytes of a file that may be long, such as a capture. A device is refused, and a pipe that
/// brings more than half of the memory that is free.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if is_device(&file.metadata()?) {
        return Err(io::Error::other("it is a device and not a file"));
    }
    let most = available_memory().map_or(u64::MAX - 1, |free| free / 2);
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let problem = format!(
            "it has more than {} MB, half of the free memory",
            most >> 20
        );
        return Err(io::Error::other(problem));
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_device(of: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = of.file_type();
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: &std::fs::Metadata) -> bool {
    false
}
