//! What the Python package `shallows` is made of: runs, their tables, and markers in Python.
//!
//! The package around it, in `python/shallows`, has the names that users see.

#![forbid(unsafe_code)]
// They panic when nobody reads the pipe or the disk of a log is full.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod command;
mod failure;
mod marker;
mod run;
mod scenario;
mod table;

use pyo3::prelude::*;

/// The module `shallows._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::run::{NativeRun, Stop, open, run};
    #[pymodule_export]
    use super::scenario::{check, example, examples, hosts, keys, read, resolve, schema};
    #[pymodule_export]
    use super::table::NativeTable;
}
