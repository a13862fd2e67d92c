//! From a scenario to its record.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use shallows_core::units::Time;
use shallows_model::{Connections, Interrupt};
use shallows_results::latencies::{TABLE, collect};
use shallows_results::record::Completeness;
use shallows_results::summary::Summary;
use shallows_results::{Format, ResultDirectory, RunRecord, write_bytes, write_text};

use crate::driver::{Observer, drive};
use crate::failure::Failure;
use crate::ideal::{self, Handshake};
use crate::platform::{self, Stopwatch};
use crate::recorder::{Place, Recorder};
use crate::report;
use crate::scenario::{Built, Scenario};

/// How a scenario is run, beyond what it says itself.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Directory of the results and format of its tables; none are written without. What it may
    /// hold before is said at [`ResultDirectory::begin`].
    pub out: Option<(&'a Path, Format)>,
    /// Threads to use, at most one for each CPU; results do not depend on it.
    pub threads: u32,
    /// Ends the run early, with partial results if it has begun.
    pub interrupted: Interrupt<'a>,
    /// Where the records of flows are afterwards.
    pub flows: FlowRecords,
}

/// Where the records of a run's flows are when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowRecords {
    /// In [`RunRecord::flows`], and in the directory of the results if there is one.
    InMemory,
    /// In the directory of the results only, so that memory does not grow with their number;
    /// [`RunRecord::flows`] is empty. Without a directory they are nowhere.
    OnDisk,
}

/// A run that is over.
#[derive(Debug)]
pub struct Finished {
    /// What it left.
    pub record: RunRecord,
    /// Names of the files that its probes left in the directory.
    pub probes: Vec<String>,
}

/// Simulates a scenario in memory, on one thread. Observers look on.
pub fn run(scenario: &Scenario, observers: &mut [&mut dyn Observer]) -> Result<RunRecord, Failure> {
    let options = Options {
        out: None,
        threads: 1,
        interrupted: Interrupt::Never,
        flows: FlowRecords::InMemory,
    };
    Ok(run_built(scenario, &scenario.build()?, &options, observers)?.record)
}

/// Simulates a scenario that is built already, and writes its results where `options` say.
pub fn run_built(
    scenario: &Scenario,
    built: &Built,
    options: &Options<'_>,
    observers: &mut [&mut dyn Observer],
) -> Result<Finished, Failure> {
    let interrupted = options.interrupted;
    let ideal = ideal_fcts(scenario, built, interrupted)?;
    // Threads wait for each other all the time: without a CPU each they would wait for a slice.
    let threads = options.threads.min(platform::cpus() as u32);
    let mut simulation = scenario.simulation_unless(built, threads, interrupted)?;
    let output = match options.out {
        Some((directory, format)) => Some((begin_output(directory, scenario)?, format)),
        None => None,
    };
    let place = match &output {
        Some((output, format)) => Place::Directory(output.path(), *format),
        None => Place::Memory,
    };
    let mut recorder = Recorder::create(scenario, built, place)?;
    let mut all: Vec<&mut dyn Observer> = vec![&mut recorder];
    all.extend(observers.iter_mut().map(|observer| &mut **observer as _));

    let clock = Stopwatch::start();
    let until = scenario.config.until;
    let completeness = drive(&mut simulation, until, &mut all, interrupted)?;
    let wall = clock.elapsed();

    let records = || report::records(&simulation, &ideal);
    let rule = scenario.config.report.percentiles;
    let (latencies, table) = collect(&report::latencies(&simulation), rule)?;
    if records().next().is_none() && latencies.is_empty() {
        if completeness == Completeness::Complete {
            return Err(nothing("started", scenario).into());
        }
        let mut record = RunRecord::new(Vec::new(), None);
        record.ports = report::ports(&simulation, built, simulation.progress().now);
        recorder.complete(&mut record)?;
        if let Some((output, format)) = output {
            record.write(output.path(), format)?;
            output.publish()?;
        }
        return Err(Failure::Interrupted);
    }
    let completion = scenario.config.completion;
    let mut facts = report::facts(&simulation, built, records(), completion, wall);
    let operations = latencies.iter().map(|of| of.operation.clone()).collect();
    facts.latencies = latencies;
    let summary = Summary::new(records(), completeness, built.size_classes, rule, facts)?;
    let kept = match options.flows {
        FlowRecords::InMemory => records().collect(),
        FlowRecords::OnDisk => Vec::new(),
    };
    let ports = report::ports(&simulation, built, summary.facts.simulated);
    let mut record = RunRecord::new(kept, Some(summary));
    record.ports = ports;
    record.operations = operations;
    let probes = recorder.complete(&mut record)?;
    if let Some(table) = table.filter(|_| !record.operations.is_empty()) {
        record.insert(TABLE, table);
    }
    if let Some((output, format)) = output {
        record.write_with(output.path(), format, records())?;
        record = record.with_tables_in(output.target());
        output.publish()?;
    }
    Ok(Finished { record, probes })
}

/// What the flows of a simulated run would take alone.
fn ideal_fcts(
    scenario: &Scenario,
    built: &Built,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Time>, Failure> {
    let config = &scenario.config;
    // Most flows find a connection that lasts open already.
    let handshake = if config.transport.handshake && config.connections == Connections::PerFlow {
        Handshake::Syn
    } else {
        Handshake::None
    };
    ideal::fcts(scenario, built, (handshake, config.completion), interrupt)
}

/// Begins the results of a run with the scenario as it is run and copies of the files that it
/// reads, none of which the results may replace by something else.
pub(crate) fn begin_output(
    directory: &Path,
    scenario: &Scenario,
) -> Result<ResultDirectory, Failure> {
    let output = ResultDirectory::begin(directory)?;
    write_resolved(output.path(), scenario)?;
    output.refuse_inputs(scenario.files())?;
    Ok(output)
}

/// Writes the record of a run that was made in memory, as [`run_built`] does for one with a
/// directory.
pub fn save(
    record: &RunRecord,
    scenario: &Scenario,
    directory: &Path,
    format: Format,
) -> Result<(), Failure> {
    let output = begin_output(directory, scenario)?;
    record.write(output.path(), format)?;
    output.publish()?;
    Ok(())
}

/// Writes the scenario as it is run, and copies of the files that it reads.
fn write_resolved(out: &Path, scenario: &Scenario) -> Result<(), Failure> {
    let (text, inputs) = scenario.config.resolved()?;
    for input in inputs {
        let path = out.join(&input.path);
        let parent = path.parent().unwrap_or(out);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
        write_bytes(&path, &input.content)?;
    }
    write_text(&out.join("scenario.toml"), &text)?;
    Ok(())
}

/// The error of a run in which no flow did what it was for.
pub(crate) fn nothing(happened: &str, scenario: &Scenario) -> anyhow::Error {
    match scenario.config.until {
        Some(until) => anyhow!("no flow {happened} before {until}; let the run last longer"),
        None => anyhow!("no flow {happened}"),
    }
}
