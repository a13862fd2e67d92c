//! Runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shallows_results::flows::record_batch;
use shallows_results::record::Completeness;
use shallows_results::{Format, RunRecord};
use shallows_run::examples::read_text;
use shallows_run::{Failure, Interrupt, Run, Runner, Scenario, save};
use shallows_study::overview::{MeasuredRun, overview};

use crate::failure::exception;
use crate::marker::{Problem, registry};
use crate::scenario::Source;
use crate::table::NativeTable;

/// A finished run.
#[pyclass(frozen)]
pub(crate) struct NativeRun {
    run: MeasuredRun,
    scenario: Scenario,
    /// The scenario with every key, in TOML.
    resolved: String,
    /// The directory that it was read from.
    directory: Option<PathBuf>,
}

#[pymethods]
impl NativeRun {
    /// The summary as JSON.
    fn summary(&self) -> Option<String> {
        self.run
            .record
            .summary
            .as_ref()
            .map(shallows_results::summary::Summary::to_json)
    }

    /// The summary as people read it.
    fn __str__(&self) -> String {
        self.run
            .record
            .summary
            .as_ref()
            .map_or_else(String::new, ToString::to_string)
    }

    /// The scenario as it was run, in TOML.
    fn scenario(&self) -> &str {
        &self.resolved
    }

    /// Writes the run into a directory, as the command does.
    #[expect(clippy::needless_pass_by_value, reason = "arguments come from Python")]
    fn save(&self, py: Python<'_>, directory: PathBuf, format: &str) -> PyResult<()> {
        if let Some(from) = &self.directory {
            let message = format!("the run was read from {}: copy that", from.display());
            return Err(PyValueError::new_err(message));
        }
        let format = match format {
            "parquet" => Format::Parquet,
            "csv" => Format::Csv,
            _ => return Err(PyValueError::new_err("a format is \"parquet\" or \"csv\"")),
        };
        py.detach(|| save(&self.run.record, &self.scenario, &directory, format))
            .map_err(|failure| exception(py, &failure))
    }

    /// A table by name; the flows are one.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<NativeTable> {
        let batch = py.detach(|| match name {
            "flows" => record_batch(&self.run.record.flows).map(Some),
            _ => self
                .run
                .record
                .table(name)?
                .map(|table| table.record_batch())
                .transpose(),
        });
        match batch {
            Ok(Some(batch)) => Ok(NativeTable::new(batch)),
            Ok(None) => Err(PyKeyError::new_err(format!(
                "the run has no table {name:?}; the scenario needs the probe for it"
            ))),
            Err(error) => Err(PyRuntimeError::new_err(error.to_string())),
        }
    }

    /// Names of ports, by their numbers in tables.
    fn ports(&self) -> Vec<String> {
        self.run
            .record
            .ports
            .iter()
            .map(|port| port.name.clone())
            .collect()
    }

    /// A figure of the run, as SVG.
    fn figure(&self, py: Python<'_>) -> String {
        py.detach(|| overview(&self.run.record).to_svg())
    }

    /// The value of a metric, such as `small.p99`; none if the run has none.
    fn metric(&self, name: &str) -> PyResult<Option<f64>> {
        self.run.metric(name).map_err(PyValueError::new_err)
    }
}

/// Runs a scenario, or takes its run from a store of kept runs.
#[pyfunction]
#[pyo3(signature = (source, threads=1, stop=None, store=None))]
pub(crate) fn run(
    py: Python<'_>,
    source: Source<'_>,
    threads: u32,
    stop: Option<&Stop>,
    store: Option<PathBuf>,
) -> PyResult<NativeRun> {
    let problem: Arc<Problem> = Arc::default();
    let stop = stop.map(|stop| &stop.0);
    let source = source.with_registry(&problem)?;
    let result = py.detach(|| {
        let scenario = source.scenario()?;
        let asked = || {
            problem.interrupted.load(Ordering::Relaxed)
                || stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
                // Only the main thread hears of Ctrl-C. The exception is that of the handler, which
                // need not be KeyboardInterrupt.
                || Python::attach(|py| {
                    let checked = py.check_signals();
                    checked.map_err(|error| problem.raise(error)).is_err()
                })
        };
        let interrupted = Interrupt::Ask(&asked);
        let run = match &store {
            Some(_) if scenario.has_custom_schemes() => {
                let problem = "runs with markers in Python cannot be kept, because the store \
                               does not know their code; leave out store";
                return Err(Failure::Run(anyhow!(problem)));
            }
            Some(store) => MeasuredRun::kept(&scenario, store, |runner| {
                make(runner, threads, interrupted)
            })?,
            None => {
                let run = make(scenario.runner(), threads, interrupted)?;
                let complete = run.completeness == Completeness::Complete;
                let measured = MeasuredRun::new(run.record, &scenario);
                measured.filter(|_| complete).ok_or(Failure::Interrupted)?
            }
        };
        let (resolved, _) = scenario.config.resolved()?;
        Ok(NativeRun {
            run,
            scenario,
            resolved,
            directory: store,
        })
    });
    if let Some(error) = problem.take() {
        return Err(error);
    }
    result.map_err(|failure| exception(py, &failure))
}

fn make<'a>(runner: Runner<'a>, threads: u32, interrupted: Interrupt<'a>) -> Result<Run, Failure> {
    runner.threads(threads).interrupted_by(interrupted).run()
}

/// Reads the run that a directory of results holds.
#[pyfunction]
pub(crate) fn open(
    py: Python<'_>,
    directory: PathBuf,
    markers: &Bound<'_, PyDict>,
) -> PyResult<NativeRun> {
    let registry = registry(markers, &Arc::default())?;
    let opened = py.detach(|| {
        let record = RunRecord::open(&directory)?;
        let path = directory.join("scenario.toml");
        let scenario = Scenario::read_with(&path, &[], &registry)?;
        let resolved = read_text(&path)?.into_owned();
        let run = MeasuredRun::new(record, &scenario).ok_or_else(|| {
            let place = directory.display();
            Failure::Run(anyhow!(
                "{place} holds no complete run: it has no summary.json"
            ))
        })?;
        Ok(NativeRun {
            run,
            scenario,
            resolved,
            directory: Some(directory),
        })
    });
    opened.map_err(|failure: Failure| exception(py, &failure))
}

/// Ends runs on other threads than the main one, which alone hears of Ctrl-C.
#[pyclass(frozen)]
pub(crate) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
