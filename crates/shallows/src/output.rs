//! Standard output and standard error: the one place that writes to them.
//!
//! `println!` and `eprintln!` panic when nobody reads the pipe or the disk of a log is full, so a lint
//! forbids them in all crates that commands and daemons are made of. Results that cannot be printed are an error; messages are dropped,
//! because a daemon must not end for want of a reader.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;

/// Prints a result. A reader that has seen enough, such as `head`, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print"),
    }
}

/// Writes a message and the end of its line to standard error, or drops it.
pub(crate) fn note(message: impl Display) {
    let line = format!("{message}\n");
    _ = io::stderr().write_all(line.as_bytes());
}
