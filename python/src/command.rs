//! The command `shallows`, in the process of the interpreter.

use std::ffi::OsString;

use pyo3::prelude::*;
use shallows_core::registry::Registry;

/// Runs a command line, whose first word is the program's name; its exit code.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| shallows::command(arguments, &Registry::default()))
}
