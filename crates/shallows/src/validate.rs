//! `shallows validate`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::ProgressBar;
use shallows_results::figure::Words;
use shallows_results::write_text;
use shallows_study::validate::{SIMULATORS, Simulator};

use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The simulators; all if none is named.
    #[arg(value_name = "SIMULATOR", value_parser = names())]
    pub(crate) simulators: Vec<String>,
    /// Runs per scheme; after the first, each flow's start moves by up to 1 us.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Directory of the figure and of the table as JSON.
    #[arg(long, value_name = "DIR", default_value = "out/validate")]
    pub(crate) out: PathBuf,
}

/// The names of the simulators.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(SIMULATORS.iter().map(|simulator| simulator.name))
}

pub(crate) fn validate(args: &ValidateArgs) -> Result<(), Failure> {
    let interrupted = watch_for_ctrl_c()?;
    let wanted = |simulator: &&Simulator| {
        args.simulators.is_empty() || args.simulators.iter().any(|name| name == simulator.name)
    };
    let simulators: Vec<&Simulator> = SIMULATORS.iter().filter(wanted).collect();
    let runs = simulators.iter().map(|one| one.runs_in_all(args.runs));
    let bar = ProgressBar::new(runs.map(u64::from).sum());
    let out = &args.out;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let mut validations = Vec::new();
    for simulator in simulators {
        let validation = simulator.validate(args.runs, &interrupted, &mut || bar.inc(1))?;
        let file = validation.file();
        write_text(&out.join(format!("{file}.json")), &json(&validation)?)?;
        validation.figure().write(out, &file, &Words::default())?;
        if !args.json {
            let figure = out.join(format!("{file}.svg"));
            let text = format!("{validation}figure: {}\n", figure.display());
            bar.suspend(|| output::print(&text))?;
        }
        validations.push(validation);
    }
    bar.finish_and_clear();
    if args.json {
        output::print(&json(&validations)?)?;
    }
    Ok(())
}

fn json(results: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(results).context("results are plain data")? + "\n")
}
