//! Scenarios on this machine: hosts are network namespaces, switches are ours.

mod admit;
mod controller;
mod difference;
mod output;
mod plan;
mod record;
mod results;
mod scale;
mod transports;
mod xco;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use shallows_live::command::{CommandOutcome, CommandPlan};
use shallows_live::experiment::Observed;
use shallows_live::switch::IngressCounters;
use shallows_results::RunRecord;
use shallows_results::latencies::{Latency, TABLE, collect};
use shallows_results::record::{Completeness, FlowRecord};
use shallows_results::summary::{RunFacts, Summary};

use crate::driver::Observer;
use crate::failure::Failure;
use crate::measurements::Measurements;
use crate::plan::RunPlan;
use crate::run::{begin_output, nothing};
use crate::scenario::{LiveCommand, ScenarioConfig};
use crate::world::{Admitted, Options, Run, World};
pub use output::latencies;
pub use plan::{SAMPLE_EVERY, ideal_fcts};
pub use record::{add_tables, roles, switch_link_name};
pub use results::{facts, records};
use scale::Slowdown;
use transports::Controllers;

/// A run that lost more of its CPUs than this to other virtual machines shows nothing.
const MOST_STEAL: f64 = 0.03;

/// The largest share of frames that may be lost outside of the queues.
const MOST_LOST: f64 = 1e-4;

/// The live world: hosts are network namespaces of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live {
    /// Factor on rates, by which times are divided.
    pub scale: Option<f64>,
}

impl World for Live {
    /// Refuses what cannot run live, and scales rates and times.
    fn admit(&self, plan: RunPlan) -> Result<Admitted<Self>, Failure> {
        admit::refuse(&plan, self.scale)?;
        let Some(factor) = self.scale else {
            return Ok(Admitted::new(plan));
        };
        let scale = Slowdown::new(factor).context("--scale")?;
        let RunPlan {
            mut scenario,
            model,
            ..
        } = plan;
        // Flows are those of the scenario itself, so that scaling changes when but never what.
        let workload = scale.workload(Arc::unwrap_or_clone(model.workload))?;
        let config = scale.scenario(&scenario.config)?;
        scenario.replace(config)?;
        let fabric = scenario.fabric()?;
        Ok(Admitted::new(scenario.build_with(fabric, workload)?))
    }

    fn run(
        plan: &Admitted<Self>,
        options: &Options<'_>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Run, Failure> {
        if !observers.is_empty() {
            return Err(anyhow!("observers look on simulations; a live run has none").into());
        }
        let scenario = &plan.scenario;
        let controllers = Controllers::load(plan)?;
        let mut experiment = plan::experiment(plan, &controllers)?;
        let ideal = ideal_fcts(plan)?;
        let Some((out, format)) = options.out else {
            return Err(anyhow!("a live run needs a directory for its results").into());
        };
        let output = begin_output(out, scenario)?;
        experiment.outputs = Some(output.path().join("commands"));

        let begun = Instant::now();
        let observed = match experiment.run(&|| options.interrupted.is_set()) {
            Ok(observed) => observed,
            Err(error) => {
                // What commands have printed may say why. Without it, earlier results stay.
                if have_printed(&output.path().join("commands")) {
                    output.publish()?;
                }
                return Err(anyhow::Error::from(error).into());
            }
        };
        let wall = begun.elapsed();
        let completeness = if options.interrupted.is_set() {
            Completeness::Partial
        } else {
            Completeness::Complete
        };

        results::write(output.path(), &observed, plan)?;
        if let Some(seen) = &observed.xco {
            xco::write(output.path(), seen)?;
        }
        let records = records(&observed, plan, &ideal);
        let latencies = latencies(&observed, scenario, &plan.fabric)?;
        if records.is_empty() && latencies.is_empty() && experiment.commands.is_empty() {
            return Err(match completeness {
                Completeness::Complete => nothing("started", scenario).into(),
                Completeness::Partial => Failure::Interrupted,
            });
        }
        let facts = facts(&observed, plan, &records, wall);
        let mut record = summarized(plan, completeness, records, facts, &latencies)?;
        let measurements = Measurements::of(&observed, &plan.fabric);
        add_tables(&mut record, &measurements, plan)?;
        record.write(output.path(), format)?;
        let mut observed = observed;
        for command in &mut observed.commands {
            for stream in [&mut command.stdout, &mut command.stderr] {
                move_into(&mut stream.file, output.path(), output.target());
            }
        }
        output.publish()?;
        Ok(Run {
            record,
            completeness,
            probes: Vec::new(),
            report: difference::describe(scenario) + &results::report(&observed, plan),
            observed: Some(Box::new(observed)),
        })
    }
}

/// Returns whether a file of this directory has any content.
fn have_printed(directory: &Path) -> bool {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut lengths = files.filter_map(|file| Some(file.metadata().ok()?.len()));
    lengths.any(|length| length > 0)
}

/// The place of a file of the results once they are complete.
fn move_into(file: &mut Option<PathBuf>, from: &Path, to: &Path) {
    let within = file
        .as_deref()
        .and_then(|file| file.strip_prefix(from).ok());
    if let Some(within) = within {
        *file = Some(to.join(within));
    }
}

/// The record of a live run: its flows, what applications and programs did, and what all that comes
/// to, if there was any of it.
pub fn summarized(
    plan: &RunPlan,
    completeness: Completeness,
    records: Vec<FlowRecord>,
    mut facts: RunFacts,
    latencies: &[Latency],
) -> Result<RunRecord, Failure> {
    let rule = plan.scenario.config.report.percentiles;
    let (summaries, table) = collect(latencies, rule)?;
    let operations = summaries.iter().map(|of| of.operation.clone()).collect();
    facts.latencies = summaries;
    let summary = if records.is_empty() && latencies.is_empty() {
        None
    } else {
        let classes = plan.size_classes;
        Some(Summary::new(&records, completeness, classes, rule, facts)?)
    };
    let mut record = RunRecord::new(records, summary);
    record.operations = operations;
    if let Some(table) = table.filter(|_| !latencies.is_empty()) {
        record.insert(TABLE, table);
    }
    Ok(record)
}

/// Everything that a live run of a scenario would start from, in words.
#[cfg(test)]
pub(crate) fn plan_of(scenario: &crate::Scenario) -> Result<String, crate::Diagnostic> {
    let plan = scenario.build()?;
    admit::refuse(&plan, None)?;
    let wanted = transports::Wishes::of(&plan)?;
    let planned = plan::experiment(&plan, &Controllers::named(&plan));
    let experiment = match planned {
        Ok(experiment) => experiment,
        Err(Failure::Scenario(diagnostic)) => return Err(diagnostic),
        Err(failure) => panic!("{failure}"),
    };
    let config = &scenario.config;
    let commands = config.live.commands.iter();
    let latencies: Vec<_> = commands.map(|of| of.latencies).collect();
    // Of the probes, those that become tables of a live run.
    let probes = crate::scenario::Probes {
        watch: shallows_sim::Watch::default(),
        flows: None,
        ..plan.probes
    };
    Ok(format!(
        "{wanted:?} {experiment:?} {latencies:?} {probes:?} {:?} {:?} {:?}",
        plan.size_classes, config.report, config.name
    ))
}

/// Runs a plan and answers with everything that was seen. What commands print goes to files in
/// `outputs`.
pub fn observe(
    plan: &Admitted<Live>,
    outputs: Option<PathBuf>,
    interrupted: &AtomicBool,
) -> Result<Observed, Failure> {
    let controllers = Controllers::load(plan)?;
    let mut experiment = plan::experiment(plan, &controllers)?;
    experiment.outputs = outputs;
    let observed = experiment.run(&|| interrupted.load(Ordering::Relaxed));
    Ok(observed.map_err(anyhow::Error::from)?)
}

/// Refuses results of a run in which a command failed, or that the machine was too busy for.
pub fn believe(observed: &Observed) -> anyhow::Result<()> {
    let mut commands = observed.commands.iter();
    if let Some(failed) = commands.find(|outcome| outcome.failed() && !outcome.plan.may_fail) {
        return Err(failure(failed));
    }
    let mut devices = observed.report.snapshot.devices.iter();
    if let Some((name, _)) = devices.find(|(_, counters)| counters.losses > 0) {
        return Err(anyhow!(
            "the switch lost its port {name} during the run, so these results are not to be \
             believed; leave its device alone"
        ));
    }
    let mut devices = observed.report.snapshot.devices.iter();
    if let Some((name, counters)) = devices.find(|(_, counters)| loses_frames(counters)) {
        return Err(anyhow!(
            "{} of the frames from {name} were lost before they reached a queue, so these results \
             are not to be believed; use a lower --scale or a quieter machine",
            outside(counters)
        ));
    }
    let verdict = observed.report.snapshot.verdict;
    if !verdict.faithful {
        return Err(anyhow!(
            "the switch did not keep time, so these results are not to be believed ({verdict}); \
             use a lower --scale or a quieter machine"
        ));
    }
    match observed.steal {
        Some(steal) if steal > MOST_STEAL => Err(anyhow!(
            "other virtual machines took {:.1}% of the CPUs, so these results are not to be \
             believed; {:.0}% may be taken",
            100.0 * steal,
            100.0 * MOST_STEAL
        )),
        _ => Ok(()),
    }
}

/// Frames that the switch lost and no queue counts.
fn outside(counters: &IngressCounters) -> u64 {
    counters.missed + counters.no_memory + counters.oversized
}

fn loses_frames(counters: &IngressCounters) -> bool {
    let frames = counters.frames + counters.missed;
    outside(counters) as f64 > MOST_LOST * frames as f64
}

fn failure(of: &CommandOutcome) -> anyhow::Error {
    let CommandPlan { line, host, .. } = &of.plan;
    let said = String::from_utf8_lossy(&of.stderr.last);
    let said = match said.lines().last() {
        Some(last) => format!("; it said: {last}"),
        None => String::new(),
    };
    let file = match &of.stderr.file {
        Some(file) if of.stderr.bytes > 0 => format!(", more in {}", file.display()),
        _ => String::new(),
    };
    anyhow!(
        "the command `{line}` at host {host} failed ({}){said}{file}; may-fail = true lets it",
        of.ending
    )
}

/// Lists the commands of a scenario, one per line, for people to read before they run.
pub fn describe_commands(scenario: &ScenarioConfig) -> String {
    let commands = scenario.live.commands.iter();
    let line = |command: &LiveCommand| {
        let root = if command.as_root { " as root" } else { "" };
        let host = toml::Value::try_from(&command.host);
        let host = host.map_or_else(|_| "?".to_owned(), |host| host.to_string());
        let outside = if command.outside {
            " (outside of it)"
        } else {
            ""
        };
        format!("  host {host}{outside}{root}: {}\n", command.run)
    };
    commands.map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use shallows_core::port::marker::{Marking, PortContext, Seen};
    use shallows_core::port::{ConfigError, MarkReason, Queues};
    use shallows_core::registry::{Parameters, Registry};

    use super::*;
    use crate::Scenario;

    /// One frame of 10,000 may be lost outside of the queues.
    #[test]
    fn runs_that_lost_frames_outside_of_the_queues_are_not_believed() {
        let counters = |missed, no_memory, oversized| IngressCounters {
            frames: 10_000 - missed,
            missed,
            no_memory,
            oversized,
            ..IngressCounters::default()
        };
        assert!(!loses_frames(&IngressCounters::default()));
        assert!(!loses_frames(&counters(1, 0, 0)));
        assert!(loses_frames(&counters(2, 0, 0)));
        assert!(loses_frames(&counters(0, 2, 0)) && loses_frames(&counters(0, 0, 2)));
    }

    #[test]
    fn only_output_keeps_the_results_of_a_run_that_failed() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!have_printed(&directory.path().join("none")));
        std::fs::write(directory.path().join("0.out"), "").unwrap();
        assert!(!have_printed(directory.path()));
        std::fs::write(directory.path().join("0.err"), "no").unwrap();
        assert!(have_printed(directory.path()));
    }

    #[derive(Debug)]
    struct Never;

    impl Marking for Never {
        fn decide(&mut self, _: Seen, _: &Queues) -> Option<MarkReason> {
            None
        }
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "a registry takes makers that can fail"
    )]
    fn never(_: &Parameters, _: &PortContext<'_>) -> Result<Box<dyn Marking>, ConfigError> {
        Ok(Box::new(Never))
    }

    #[test]
    fn a_scaled_scenario_keeps_the_schemes_of_its_registry() {
        let text = r#"
            topology.star = { hosts = 3, rate = "1Gbps", delay = "5us" }
            ports.switch = { buffer = "unlimited", scheduler = "fifo", marker = { scheme = { never = {} } } }
            workload.flows = [{ start = "0s", src = 0, dst = 1, size = "1MB" }]
        "#;
        let mut registry = Registry::default();
        registry.marker("never", never);
        let path = Path::new("x.toml");
        let scenario = Scenario::parse_in(path, text, &[], Path::new(""), &registry).unwrap();
        let live = Live { scale: Some(0.2) };
        live.admit(scenario.build().unwrap()).unwrap();
    }
}
