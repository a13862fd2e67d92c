//! The program `shallows`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use shallows_core::registry::Registry;

fn main() -> ExitCode {
    shallows::main_with(&Registry::default())
}
