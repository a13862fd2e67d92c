//! What the tests of the command share.

use std::fs;

use snapbox::cmd::Command;
use tempfile::TempDir;

/// The program, to be run in `directory`.
pub(crate) fn shallows(directory: &TempDir) -> Command {
    Command::new(env!("CARGO_BIN_EXE_shallows")).current_dir(directory.path())
}

/// A directory of its own for each test.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().expect("there is room for a directory")
}

/// A directory with a scenario that takes no time: `tiny.toml`.
pub(crate) fn with_tiny() -> TempDir {
    let directory = directory();
    write(&directory, "tiny.toml", TINY);
    directory
}

pub(crate) fn write(directory: &TempDir, name: &str, text: &str) {
    fs::write(directory.path().join(name), text).expect("the directory is there");
}

pub(crate) fn read(directory: &TempDir, name: &str) -> Vec<u8> {
    let path = directory.path().join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn read_text(directory: &TempDir, name: &str) -> String {
    String::from_utf8(read(directory, name)).expect("it is a text")
}

/// A scenario that takes no time.
pub(crate) const TINY: &str = r#"seed = 7

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
