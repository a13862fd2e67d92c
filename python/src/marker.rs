//! Markers that are functions in Python.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use shallows_core::port::marker::{Marking, Seen};
use shallows_core::port::{MarkReason, Queues};
use shallows_core::registry::Registry;

/// The first exception that a marker has raised in a run.
pub(crate) type Problem = Arc<Mutex<Option<PyErr>>>;

/// A registry of functions by name.
pub(crate) fn registry(markers: &Bound<'_, PyDict>, problem: &Problem) -> PyResult<Registry> {
    let mut registry = Registry::default();
    for (name, function) in markers.iter() {
        let (function, problem) = (function.unbind(), Arc::clone(problem));
        registry.marker(name.extract::<String>()?, move |_, _| {
            let function = Python::attach(|py| function.clone_ref(py));
            let problem = Arc::clone(&problem);
            Ok(Box::new(PythonMarker { function, problem }))
        });
    }
    Ok(registry)
}

/// The marker of one port: a function of the queue's and the port's length in bytes.
struct PythonMarker {
    function: Py<PyAny>,
    problem: Problem,
}

impl std::fmt::Debug for PythonMarker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PythonMarker")
    }
}

impl Marking for PythonMarker {
    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        let answer = Python::attach(|py| {
            let lengths = (seen.queue_length, seen.port_length);
            self.function.bind(py).call1(lengths)?.is_truthy()
        });
        match answer {
            Ok(marked) => marked.then_some(MarkReason::Queue),
            Err(error) => {
                // The run goes on, since a port cannot fail, and ends in the exception.
                if let Ok(mut problem) = self.problem.lock() {
                    problem.get_or_insert(error);
                }
                None
            }
        }
    }
}
