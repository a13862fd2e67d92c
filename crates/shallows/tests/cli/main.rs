//! The command from outside, as transcripts.

mod cc;
mod errors;
mod hostile;
mod interrupt;
mod links;
mod live;
mod other_commands;
mod probes;
mod qjump;
mod repro;
mod results;
mod scenarios;
mod schema;
mod settings;
mod sweep;
#[cfg(all(feature = "live", target_os = "linux"))]
mod xco;

use std::fs;
use std::path::{Path, PathBuf};

use snapbox::cmd::Command;
use tempfile::TempDir;

/// The program, to be run in `directory`.
fn shallows(directory: &TempDir) -> Command {
    Command::new(env!("CARGO_BIN_EXE_shallows")).current_dir(directory.path())
}

/// A directory of its own for each test.
fn directory() -> TempDir {
    tempfile::tempdir().expect("there is room for a directory")
}

/// A directory with a scenario that takes no time: `tiny.toml`.
fn with_tiny() -> TempDir {
    let directory = directory();
    write(&directory, "tiny.toml", TINY);
    directory
}

fn write(directory: &TempDir, name: &str, text: &str) {
    fs::write(directory.path().join(name), text).expect("the directory is there");
}

fn read(directory: &TempDir, name: &str) -> Vec<u8> {
    let path = directory.path().join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_text(directory: &TempDir, name: &str) -> String {
    String::from_utf8(read(directory, name)).expect("it is a text")
}

/// A scenario that is shipped.
fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(name)
}

const TINY: &str = r#"seed = 7

[topology.star]
hosts = 4
rate = "10Gbps"
delay = "1us"

[ports.switch]
queues = 2
buffer = { shared = { size = "100KB" } }
scheduler = { dwrr = { quantum = "1500B" } }
marker = { scheme = { mq-ecn = { threshold = "20pkts" } } }

[workload.poisson]
load = 0.5
size = "30KB"
flows = 50
services = { balanced = 2 }
"#;
