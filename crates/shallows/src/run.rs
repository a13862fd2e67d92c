//! `shallows run`: from a scenario to results.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{process, thread};

use anyhow::{Context as _, anyhow};
use shallows_core::units::Time;
use shallows_results::flows::write_flows;
use shallows_results::record::Completeness;
use shallows_results::summary::Summary;
use shallows_results::write_text;
use shallows_sim::workload::OfferedLoad;
use shallows_sim::{Simulation, Status};

use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::ideal::{self, Handshake};
use crate::output;
use crate::probes::Recorder;
use crate::progress::ProgressLine;
use crate::report;
use crate::scenario::{Built, Loaded, Setting};

/// Events between two looks at the clock and at Ctrl-C: some milliseconds.
const EVENTS_AT_A_TIME: u64 = 100_000;

/// The end of any run: 200 of the clock's 213 days, so that what is timed from then on fits.
const END: Time = Time::from_secs(200 * 24 * 3600);

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.scenario, &settings(args)?)?;
    warn_of_another_version(&loaded);
    let built = loaded.build()?;
    let ideal = ideal_fcts(&loaded, &built)?;
    // Threads wait for each other all the time: without a CPU each they would wait for a slice.
    let cpus = thread::available_parallelism().map_or(1, NonZero::get) as u32;
    let mut simulation = loaded.simulation(&built, args.threads.min(cpus))?;
    let interrupted = watch_for_ctrl_c()?;
    let out = prepare_out(args, &loaded)?;

    let format = args.format.format();
    let recorder = Recorder::create(&loaded, &built, (&out, format));
    let mut recorder = recorder.map_err(anyhow::Error::from)?;

    let begun = Instant::now();
    let completeness = simulate(&mut simulation, &loaded, &mut recorder, &interrupted)?;
    let wall = begun.elapsed();
    let probes = recorder.finish().map_err(anyhow::Error::from)?;

    let records = report::records(&simulation, &ideal);
    if records.is_empty() {
        return Err(nothing("started", &loaded).into());
    }
    let completion = loaded.scenario.completion;
    let facts = report::facts(&simulation, &built, &records, completion, wall);
    let rule = loaded.scenario.report.percentiles;
    let summary = Summary::new(&records, completeness, built.size_classes, rule, facts)
        .map_err(anyhow::Error::from)?;

    let flows = out.join("flows").with_extension(format.extension());
    write_flows(&flows, &records, completeness).map_err(anyhow::Error::from)?;
    let json = summary.write_json(&out.join("summary.json"));
    json.map_err(anyhow::Error::from)?;
    write_resolved(&out, &loaded)?;
    if args.json {
        output::print(&summary.to_json())?;
    } else {
        let (loads, out) = (loads(&built), out.display());
        let probes = match &probes[..] {
            [] => String::new(),
            files => format!("probes: {}\n", files.join(", ")),
        };
        output::print(&format!("{loads}{summary}results: {out}\n{probes}"))?;
    }
    match completeness {
        Completeness::Partial => Err(Failure::Interrupted),
        Completeness::Complete if summary.classes.all.fct.is_none() => {
            Err(nothing("finished", &loaded).into())
        }
        Completeness::Complete => Ok(()),
    }
}

/// The options that change the scenario; a later one wins.
pub(crate) fn settings(args: &RunArgs) -> Result<Vec<Setting>, Failure> {
    let mut settings = Vec::new();
    let mut add = |shown: String, assignment: String| settings.push(Setting { shown, assignment });
    for assignment in &args.set {
        add(format!("--set {assignment}"), assignment.clone());
    }
    if let Some(seed) = args.seed {
        add(format!("--seed {seed}"), format!("seed={seed}"));
    }
    if let Some(until) = &args.until {
        add(format!("--until {until}"), format!("until={until:?}"));
    }
    if let Some(flows) = &args.flows {
        // Not relative to the scenario's directory, as what it says itself would be.
        let path = std::path::absolute(flows).context("cannot tell the current directory")?;
        let path = toml::Value::String(path.to_string_lossy().into_owned());
        add(
            format!("--flows {}", flows.display()),
            format!("workload={{ list = {path} }}"),
        );
    }
    Ok(settings)
}

pub(crate) fn warn_of_another_version(loaded: &Loaded) {
    let this = env!("CARGO_PKG_VERSION");
    if let Some(version) = &loaded.scenario.version
        && version != this
    {
        eprintln!(
            "warning: the scenario was written by version {version}; results of version {this} \
             may differ"
        );
    }
}

/// What the flows of a simulated run would take alone.
pub(crate) fn ideal_fcts(loaded: &Loaded, built: &Built) -> Result<Vec<Time>, Failure> {
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

pub(crate) fn prepare_out(args: &RunArgs, loaded: &Loaded) -> Result<PathBuf, Failure> {
    let name = loaded.scenario.name.as_deref().unwrap_or("scenario");
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| Path::new("out").join(name));
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    Ok(out)
}

/// True once the user has pressed Ctrl-C; the second time ends the program.
pub(crate) fn watch_for_ctrl_c() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&interrupted);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")?;
    Ok(interrupted)
}

fn simulate(
    simulation: &mut Simulation,
    loaded: &Loaded,
    recorder: &mut Recorder<'_>,
    interrupted: &AtomicBool,
) -> anyhow::Result<Completeness> {
    let until = loaded.scenario.until;
    let end = until.unwrap_or(END).min(END);
    let flows = simulation.flows().count();
    let line = ProgressLine::new(flows, until);
    let completeness = loop {
        // After the last flow there are timers of no interest, for a long time.
        let done = simulation.progress().done == flows;
        let sample = recorder.next().filter(|&at| at <= end && !done);
        let status = simulation.run(sample.unwrap_or(end), EVENTS_AT_A_TIME);
        recorder.observe(simulation)?;
        match (status, sample) {
            (Status::Finished, None) => break Completeness::Complete,
            (Status::Finished, Some(_)) if simulation.next_time().is_none() => {
                break Completeness::Complete;
            }
            (Status::Finished, Some(now)) => recorder.sample(now, simulation)?,
            (Status::Running, _) => {}
        }
        if interrupted.load(Ordering::Relaxed) {
            break Completeness::Partial;
        }
        line.update(&simulation.progress());
    };
    line.clear();
    Ok(completeness)
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

/// Lines about the loads that were asked for, if any were.
pub(crate) fn loads(built: &Built) -> String {
    let line = |load: &OfferedLoad| {
        let (requested, offered) = (100.0 * load.requested, 100.0 * load.offered);
        let gbps = load.capacity / 1e9;
        format!("load: {requested:.1}% requested, {offered:.1}% offered of {gbps} Gbps\n")
    };
    match &built.workload.offered[..] {
        [] => String::new(),
        loads => loads.iter().map(line).collect::<String>() + "\n",
    }
}

pub(crate) fn nothing(happened: &str, loaded: &Loaded) -> anyhow::Error {
    match loaded.scenario.until {
        Some(until) => anyhow!("no flow {happened} before {until}; let the run last longer"),
        None => anyhow!("no flow {happened}"),
    }
}
