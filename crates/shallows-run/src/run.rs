//! From a scenario to results.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow};
use shallows_core::units::Time;
use shallows_results::flows::write_flows;
use shallows_results::record::Completeness;
use shallows_results::summary::Summary;
use shallows_results::{Format, write_text};
use shallows_sim::{Progress, Simulation, Status};

use crate::failure::Failure;
use crate::ideal::{self, Handshake};
use crate::platform::{self, Stopwatch};
use crate::probes::Recorder;
use crate::report;
use crate::scenario::{Built, Loaded};

/// Events between two looks at the clock and at Ctrl-C: some milliseconds.
const EVENTS_AT_A_TIME: u64 = 100_000;

/// The end of any run: 200 of the clock's 213 days, so that what is timed from then on fits.
const END: Time = Time::from_secs(200 * 24 * 3600);

/// How a scenario is run, beyond what it says itself.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Directory of the results.
    pub out: &'a Path,
    /// Format of tables.
    pub format: Format,
    /// Threads to use, at most one for each CPU.
    pub threads: u32,
    /// Ends the run early once it is true, with partial results.
    pub interrupted: &'a AtomicBool,
}

/// What a run came to.
#[derive(Debug)]
pub struct Finished {
    /// Of its flows.
    pub summary: Summary,
    /// Whether it came to its end.
    pub completeness: Completeness,
    /// Names of the files that its probes left.
    pub probes: Vec<String>,
}

/// Simulates a scenario and writes its results. `progress` hears now and then how far it is.
pub fn run(
    loaded: &Loaded,
    built: &Built,
    options: &Options<'_>,
    progress: impl FnMut(&Progress),
) -> Result<Finished, Failure> {
    let ideal = ideal_fcts(loaded, built)?;
    // Threads wait for each other all the time: without a CPU each they would wait for a slice.
    let threads = options.threads.min(platform::cpus() as u32);
    let mut simulation = loaded.simulation(built, threads)?;
    create_directory(options.out)?;
    let &Options { out, format, .. } = options;
    let recorder = Recorder::create(loaded, built, (out, format));
    let mut recorder = recorder.map_err(anyhow::Error::from)?;

    let clock = Stopwatch::start();
    let interrupted = options.interrupted;
    let completeness = simulate(
        &mut simulation,
        loaded,
        &mut recorder,
        interrupted,
        progress,
    )?;
    let wall = clock.elapsed();
    let probes = recorder.finish().map_err(anyhow::Error::from)?;

    let records = report::records(&simulation, &ideal);
    if records.is_empty() {
        return Err(nothing("started", loaded).into());
    }
    let completion = loaded.scenario.completion;
    let facts = report::facts(&simulation, built, &records, completion, wall);
    let rule = loaded.scenario.report.percentiles;
    let summary = Summary::new(&records, completeness, built.size_classes, rule, facts)
        .map_err(anyhow::Error::from)?;

    let flows = out.join("flows").with_extension(format.extension());
    write_flows(&flows, &records, completeness).map_err(anyhow::Error::from)?;
    let json = summary.write_json(&out.join("summary.json"));
    json.map_err(anyhow::Error::from)?;
    write_resolved(out, loaded)?;
    Ok(Finished {
        summary,
        completeness,
        probes,
    })
}

/// Creates a directory for results.
pub(crate) fn create_directory(out: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))
}

/// What the flows of a simulated run would take alone.
pub fn ideal_fcts(loaded: &Loaded, built: &Built) -> Result<Vec<Time>, Failure> {
    let handshake = if loaded.scenario.transport.handshake {
        Handshake::Syn
    } else {
        Handshake::None
    };
    Ok(ideal::fcts(
        loaded,
        built,
        handshake,
        loaded.scenario.completion,
    )?)
}

fn simulate(
    simulation: &mut Simulation,
    loaded: &Loaded,
    recorder: &mut Recorder<'_>,
    interrupted: &AtomicBool,
    mut progress: impl FnMut(&Progress),
) -> anyhow::Result<Completeness> {
    let end = loaded.scenario.until.unwrap_or(END).min(END);
    let flows = simulation.flows().count();
    loop {
        // After the last flow there are timers of no interest, for a long time.
        let done = simulation.progress().done == flows;
        let sample = recorder.next().filter(|&at| at <= end && !done);
        let status = simulation.run(sample.unwrap_or(end), EVENTS_AT_A_TIME);
        recorder.observe(simulation)?;
        match (status, sample) {
            (Status::Finished, None) => return Ok(Completeness::Complete),
            (Status::Finished, Some(_)) if simulation.next_time().is_none() => {
                return Ok(Completeness::Complete);
            }
            (Status::Finished, Some(now)) => recorder.sample(now, simulation)?,
            (Status::Running, _) => {}
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Completeness::Partial);
        }
        progress(&simulation.progress());
    }
}

/// Writes the scenario as it was run, and copies of the files that it reads.
pub(crate) fn write_resolved(out: &Path, loaded: &Loaded) -> Result<(), Failure> {
    let (text, inputs) = loaded.scenario.resolved()?;
    for input in inputs {
        let path = out.join(&input.path);
        // Left alone if it is there, because it may be the very file that was read.
        if fs::read(&path).is_ok_and(|content| content == input.content) {
            continue;
        }
        let parent = path.parent().unwrap_or(out);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, &input.content))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    write_text(&out.join("scenario.toml"), &text).map_err(anyhow::Error::from)?;
    Ok(())
}

/// The error of a run in which no flow did what it was for.
pub(crate) fn nothing(happened: &str, loaded: &Loaded) -> anyhow::Error {
    match loaded.scenario.until {
        Some(until) => anyhow!("no flow {happened} before {until}; let the run last longer"),
        None => anyhow!("no flow {happened}"),
    }
}
