//! Gives the build an id that changes with the code that decides what a run shows.
//!
//! It is a hash of the sources of the mechanisms, the simulator and this crate, and of the versions
//! of what they use. Sources rather than the executable's bytes, so that debug and release builds,
//! and the machines of a cluster, share their kept runs; and not those of figures, pages and
//! commands, which change no run.

use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 4] = [
    "../shallows-core/src",
    "../shallows-sim/src",
    "src",
    "../../Cargo.lock",
];

fn main() {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files);
    }
    files.sort();
    // FNV-1a: not for adversaries, and stable for ever.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for path in files {
        let content = fs::read(&path).unwrap_or_default();
        for byte in path.to_string_lossy().bytes().chain(content) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=SHALLOWS_BUILD_ID={hash:016x}");
}

/// Every file below a path; none where the sources of the other crates are not beside this one.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        files.push(path.to_owned());
    }
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        collect(&entry.path(), files);
    }
}
