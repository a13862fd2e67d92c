//! Standard output.

use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;

/// Prints a text. A reader that has seen enough, such as `head`, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print"),
    }
}
