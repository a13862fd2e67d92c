//! Markers that are functions or classes in Python.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use shallows_core::port::marker::{Marking, Needs, Seen};
use shallows_core::port::{MarkPoint, MarkReason, Queues};
use shallows_core::registry::{ParameterError, Parameters, Registry};
use shallows_core::units::Time;

/// The first exception that a marker has raised in a run, which ends the run.
#[derive(Default)]
pub(crate) struct Problem {
    error: Mutex<Option<PyErr>>,
    /// Ends the run once it is true.
    pub(crate) interrupted: AtomicBool,
}

impl Problem {
    /// Keeps the first exception, and ends the run.
    pub(crate) fn raise(&self, error: PyErr) {
        if let Ok(mut first) = self.error.lock() {
            first.get_or_insert(error);
        }
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// The exception, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.error.lock().ok()?.take()
    }
}

/// A registry of markers by name.
pub(crate) fn registry(markers: &Bound<'_, PyDict>, problem: &Arc<Problem>) -> PyResult<Registry> {
    let mut registry = Registry::default();
    for (name, function) in markers.iter() {
        let name: String = name.extract()?;
        let (function, problem) = (function.unbind(), Arc::clone(problem));
        registry.marker(name.clone(), move |parameters, _| {
            let marker = Python::attach(|py| make(py, &name, &function, parameters));
            let (function, observed) = marker.map_err(|error| ParameterError(error.to_string()))?;
            let problem = Arc::clone(&problem);
            Ok(Box::new(PythonMarker {
                function,
                observed,
                problem,
            }))
        });
    }
    Ok(registry)
}

/// The marker of one port, and its arguments in their order.
fn make(
    py: Python<'_>,
    name: &str,
    function: &Py<PyAny>,
    parameters: &Parameters,
) -> PyResult<(Py<PyAny>, Vec<Observed>)> {
    let parameters: serde_json::Value = parameters
        .read()
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    let make = py.import("shallows._marker")?.getattr("make")?;
    let made = make.call1((name, function, parameters.to_string()))?;
    let (function, names): (Py<PyAny>, Vec<String>) = made.extract()?;
    let observed = names.iter().filter_map(|name| Observed::named(name));
    Ok((function, observed.collect()))
}

/// Something that a marker can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Observed {
    Queue,
    Port,
    Time,
    Sojourn,
    Number,
    Packets,
    Dscp,
    Pool,
}

impl Observed {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "queue" => Self::Queue,
            "port" => Self::Port,
            "time" => Self::Time,
            "sojourn" => Self::Sojourn,
            "number" => Self::Number,
            "packets" => Self::Packets,
            "dscp" => Self::Dscp,
            "pool" => Self::Pool,
            _ => return None,
        })
    }

    fn value<'py>(
        self,
        py: Python<'py>,
        seen: &Seen,
        sojourn: Time,
    ) -> PyResult<Bound<'py, PyAny>> {
        let integer = |value: u64| value.into_pyobject(py).map(Bound::into_any);
        Ok(match self {
            Self::Queue => integer(seen.queue_length)?,
            Self::Port => integer(seen.port_length)?,
            Self::Number => integer(seen.queue as u64)?,
            Self::Packets => integer(u64::from(seen.queue_packets))?,
            Self::Dscp => integer(u64::from(seen.stage))?,
            Self::Pool => integer(seen.pool_length)?,
            Self::Time => seen.now.as_secs_f64().into_pyobject(py)?.into_any(),
            Self::Sojourn => sojourn.as_secs_f64().into_pyobject(py)?.into_any(),
        })
    }
}

/// The marker of one port.
struct PythonMarker {
    function: Py<PyAny>,
    observed: Vec<Observed>,
    problem: Arc<Problem>,
}

impl PythonMarker {
    /// Whether it decides when packets leave, because it asks how long they have waited.
    fn is_at_dequeue(&self) -> bool {
        self.observed.contains(&Observed::Sojourn)
    }

    fn ask(&self, seen: &Seen, sojourn: Time) -> Option<MarkReason> {
        // A port cannot fail: the run ends a moment later.
        if self.problem.interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let answer = Python::attach(|py| {
            let values = self.observed.iter().map(|of| of.value(py, seen, sojourn));
            let values: Vec<Bound<'_, PyAny>> = values.collect::<PyResult<_>>()?;
            let arguments = PyTuple::new(py, values)?;
            self.function.bind(py).call1(arguments)?.is_truthy()
        });
        match answer {
            Ok(marked) => marked.then_some(MarkReason::Queue),
            Err(error) => {
                self.problem.raise(error);
                None
            }
        }
    }
}

impl std::fmt::Debug for PythonMarker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PythonMarker")
    }
}

impl Marking for PythonMarker {
    fn needs(&self) -> Needs {
        Needs {
            dequeue: self.is_at_dequeue(),
            ..Needs::default()
        }
    }

    fn decide(&mut self, seen: Seen, _: &Queues) -> Option<MarkReason> {
        if self.is_at_dequeue() {
            return None;
        }
        self.ask(&seen, Time::ZERO)
    }

    fn at_dequeue(
        &mut self,
        point: MarkPoint,
        seen: Seen,
        queues: &Queues,
        sojourn: Time,
        _noted: bool,
    ) -> Option<MarkReason> {
        if self.is_at_dequeue() {
            return self.ask(&seen, sojourn);
        }
        match point {
            MarkPoint::Enqueue => None,
            MarkPoint::Dequeue => self.decide(seen, queues),
        }
    }
}
