//! The simulated world: from a plan to its record.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use shallows_core::units::Time;
use shallows_model::Interrupt;
use shallows_results::latencies::{TABLE, collect};
use shallows_results::record::Completeness;
use shallows_results::summary::{MeasuredWindow, Summary};
use shallows_results::{Format, ResultDirectory, RunRecord, write_bytes, write_text};

use crate::driver::{Observer, drive};
use crate::failure::Failure;
use crate::ideal;
use crate::measure::Window;
use crate::plan::RunPlan;
use crate::platform::{self, Stopwatch};
use crate::recorder::{Recorder, TableDestination};
use crate::report;
use crate::scenario::Scenario;
use crate::world::{Admitted, FlowRecords, Options, Run, Simulated, World};

impl World for Simulated {
    /// The simulator honours every key; those of `[live]` are of the other world.
    fn admit(&self, plan: RunPlan) -> Result<Admitted<Self>, Failure> {
        Ok(Admitted::new(plan))
    }

    fn run(
        plan: &Admitted<Self>,
        options: &Options<'_>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Run, Failure> {
        let scenario = &plan.scenario;
        let interrupted = options.interrupted;
        let ideal = ideal_fcts(plan, interrupted)?;
        // Threads wait for each other all the time: without a CPU each they would wait for a slice.
        let threads = options.threads.min(platform::cpus() as u32);
        let mut simulation = plan.simulation_unless(threads, interrupted)?;
        let output = match options.out {
            Some((directory, format)) => Some((begin_output(directory, scenario)?, format)),
            None => None,
        };
        let place = match &output {
            Some((output, format)) => TableDestination::Directory(output.path(), *format),
            None => TableDestination::Memory,
        };
        let mut recorder = Recorder::create(plan, place)?;
        let measure = scenario.config.measure.unwrap_or_default();
        let mut window = Window::new(plan, measure);
        let mut all: Vec<&mut dyn Observer> = vec![&mut recorder, &mut window];
        all.extend(observers.iter_mut().map(|observer| &mut **observer as _));

        let clock = Stopwatch::start();
        let completeness = drive(&mut simulation, plan.until, &mut all, interrupted)?;
        let wall = clock.elapsed();

        let carried = window.carried;
        let records = || report::records(&simulation, &ideal).filter(|record| measure.has(record));
        let rule = scenario.config.report.percentiles;
        let (latencies, table) = collect(&report::latencies(&simulation, plan), rule)?;
        if records().next().is_none() && latencies.is_empty() {
            if completeness == Completeness::Complete {
                return Err(nothing("started", scenario).into());
            }
            let mut record = RunRecord::new(Vec::new(), None);
            record.ports = report::ports(&simulation, plan, simulation.progress().now);
            recorder.complete(&mut record)?;
            return Err(keep_tables(&record, output)?);
        }
        let mut facts = report::facts(&simulation, plan, records(), plan.completion, wall);
        let operations = latencies.iter().map(|of| of.operation.clone()).collect();
        facts.latencies = latencies;
        facts.loads = report::loads(plan, carried, &facts.utilisation);
        facts.measured = scenario.config.measure.map(|of| MeasuredWindow {
            from: Some(of.from),
            to: of.to,
        });
        let summary = Summary::new(records(), completeness, plan.size_classes, rule, facts)?;
        let kept = match options.flows {
            FlowRecords::InMemory => records().collect(),
            FlowRecords::OnDisk => Vec::new(),
        };
        let ports = report::ports(&simulation, plan, summary.facts.simulated);
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
        Ok(Run {
            record,
            completeness,
            probes,
            report: String::new(),
            #[cfg(live)]
            observed: None,
        })
    }
}

/// Keeps what there is of a run that was interrupted before any flow was done.
fn keep_tables(
    record: &RunRecord,
    output: Option<(ResultDirectory, Format)>,
) -> Result<Failure, Failure> {
    if let Some((output, format)) = output {
        record.write(output.path(), format)?;
        output.publish()?;
    }
    Ok(Failure::Interrupted)
}

/// Ideal completion times of the flows of a simulated run.
fn ideal_fcts(plan: &RunPlan, interrupt: Interrupt<'_>) -> Result<Vec<Time>, Failure> {
    ideal::fcts(plan, (plan.connections, plan.completion), interrupt)
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

/// Writes the record of a run that was made in memory, as a [`Runner`](crate::Runner) does for one
/// with an output.
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
