//! The live world's commands: `run --live`, `compare`, `lab` and `bench live`.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use shallows_bpf::{mark, qjump};
use shallows_core::registry::Registry;
use shallows_live::experiment::ExperimentError;
use shallows_live::io::{IoError, IoKind};
use shallows_live::switch::SwitchError;
use shallows_live::{bench, lab};
use shallows_results::record::Completeness;
use shallows_run::live::Live;
use shallows_run::scenario::ScenarioConfig;
use shallows_run::{Interrupt, Options, World as _, live};
use shallows_study::compare;

use crate::cli::{CompareArgs, RunArgs};
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;
use crate::run::{explained, load, loads, out, set, settings};

/// `shallows run --live`.
pub(crate) fn run(args: &RunArgs, registry: &Registry) -> Result<(), Failure> {
    let mut scenario = load(&args.scenario, &settings(args)?, registry)?;
    choose_commands(&mut scenario.config, &args.scenario, args.no_commands);
    let plan = Live { scale: args.scale }.admit(scenario.build()?)?;
    let interrupted = watch_for_ctrl_c()?;
    let out = out(args, &plan.scenario);
    let options = Options {
        out: Some((&out, args.format.format())),
        interrupted: Interrupt::Flag(&interrupted),
        ..Options::default()
    };
    let finished = plan.run(&options, &mut [])?;
    let mut text = String::new();
    if let Some(summary) = &finished.record.summary {
        text = if args.json {
            summary.to_json()
        } else {
            let explained = explained(args, summary);
            format!("{}{summary}{explained}", loads(&plan, summary))
        };
    }
    if !args.json {
        let (report, out) = (&finished.report, out.display());
        text = format!("{text}{report}results: {out}\n");
    }
    output::print(&text)?;
    if finished.completeness == Completeness::Partial {
        return Err(Failure::Interrupted);
    }
    Ok(finished.observed.as_deref().map_or(Ok(()), live::believe)?)
}

/// `shallows compare`.
pub(crate) fn compare(args: &CompareArgs, registry: &Registry) -> Result<(), Failure> {
    let mut scenario = load(&args.scenario, &set(&args.set), registry)?;
    choose_commands(&mut scenario.config, &args.scenario, args.no_commands);
    let interrupted = watch_for_ctrl_c()?;
    let compared = compare::compare(&scenario, args.scale, args.out.as_deref(), &interrupted)?;
    output::print(if args.json {
        &compared.json
    } else {
        &compared.text
    })?;
    Ok(compared.believed?)
}

/// Takes the commands of a scenario out, or shows those of a file that is somebody else's.
fn choose_commands(config: &mut ScenarioConfig, path: &Path, leave_out: bool) {
    if leave_out {
        config.live.commands.clear();
    }
    let commands = live::describe_commands(config);
    let Ok(file) = path.metadata() else { return };
    if !commands.is_empty() && file.uid() != lab::calling_user() {
        output::note(format!(
            "{} belongs to user {}, not to you, and runs on this machine:\n{commands}\
             --no-commands leaves them out",
            path.display(),
            file.uid()
        ));
    }
}

/// `shallows lab clean`.
pub(crate) fn clean() -> Result<(), Failure> {
    let cleaned = lab::clean().map_err(anyhow::Error::from)?;
    let removed = cleaned.removed.iter().map(|name| format!("removed {name}"));
    let alive = cleaned
        .alive
        .iter()
        .map(|name| format!("left {name}: its program still runs"));
    let mut lines: Vec<String> = removed.chain(alive).collect();
    // Without BPF there are none.
    let limiters = qjump::clean().unwrap_or_default();
    if limiters > 0 {
        lines.push(format!(
            "removed {limiters} limiters of devices that are gone"
        ));
    }
    let _ = mark::clean();
    if lines.is_empty() {
        lines.push("nothing was left".to_owned());
    }
    let text = lines.join("\n") + "\n";
    output::print(&text)?;
    Ok(())
}

/// `shallows bench live`: the shortest and the longest frames, by each way into the kernel.
pub(crate) fn bench(json: bool, seconds: u64) -> Result<(), Failure> {
    let time = Duration::from_secs(seconds);
    let mut results = Vec::new();
    for io in [IoKind::Packet, IoKind::Xdp] {
        for length in [60, 1514] {
            match bench::throughput(io, length, time) {
                Ok(result) => results.push(result),
                Err(ExperimentError::Switch(SwitchError::Io(error @ IoError::NoXdp(_)))) => {
                    output::note(format!("left out: {error}"));
                }
                Err(error) => return Err(anyhow::Error::from(error).into()),
            }
        }
    }
    let text = if json {
        serde_json::to_string_pretty(&results).context("cannot write JSON")? + "\n"
    } else {
        let lines = results.iter().map(|result| format!("{result}\n"));
        lines.collect::<Vec<_>>().concat()
    };
    output::print(&text)?;
    Ok(())
}
