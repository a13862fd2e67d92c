//! The command from outside, as transcripts.

mod artifact;
mod errors;
mod examples;
mod explain;
mod hostile;
mod import;
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
mod sonic;
mod strangers;
#[path = "../support/mod.rs"]
mod support;
mod sweep;
mod tune;
#[cfg(live)]
mod xco;

use std::path::{Path, PathBuf};

use support::{TINY, directory, read, read_text, shallows, with_tiny, write};

/// A scenario that is shipped.
fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(name)
}
