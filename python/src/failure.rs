//! Errors as exceptions.

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use shallows_run::{Diagnostic, Failure};

/// The exception of a failure: a scenario's has `file`, `line` and `hint`.
pub(crate) fn exception(py: Python<'_>, failure: &Failure) -> PyErr {
    match failure {
        Failure::Scenario(diagnostic) => {
            of_diagnostic(py, diagnostic).unwrap_or_else(|error| error)
        }
        Failure::Interrupted | Failure::NotBegun => PyKeyboardInterrupt::new_err(()),
        Failure::File(_) | Failure::Run(_) => {
            let message = failure.to_string();
            let message = message.strip_prefix("error: ").unwrap_or(&message);
            PyRuntimeError::new_err(message.to_owned())
        }
    }
}

fn of_diagnostic(py: Python<'_>, diagnostic: &Diagnostic) -> PyResult<PyErr> {
    let class = py.import("shallows._errors")?.getattr("ScenarioError")?;
    let (file, line) = match diagnostic.location() {
        Some((file, line)) => (Some(file.display().to_string()), line),
        None => (None, None),
    };
    let shown = diagnostic.to_string();
    let shown = shown.strip_prefix("error: ").unwrap_or(&shown);
    let arguments = (shown, diagnostic.message(), file, line, diagnostic.hint());
    Ok(PyErr::from_value(class.call1(arguments)?))
}
