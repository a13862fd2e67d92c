//! `shallows tune`: better values of keys, by simulation.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use shallows_core::registry::Registry;
use shallows_study::tune::{self, Outcome, Request};

use crate::cli::ClusterArgs;
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;
use crate::overall::Overall;
use crate::plot::LookArgs;
use crate::repro::cores;
use crate::run;

#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// The scenarios that candidates are tried in, all of them at once.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    /// The metric to make smaller, such as small.p99 or latency.memcached.get.p99.
    #[arg(long, value_name = "METRIC", required_unless_present = "maximize")]
    minimize: Option<String>,
    /// The metric to make larger, such as throughput.large.
    #[arg(long, value_name = "METRIC", conflicts_with = "minimize")]
    maximize: Option<String>,
    /// A bound on another metric: a change such as 'large.mean <= +2%', or 'timeouts <= 0' in the
    /// metric's unit. It holds in each scenario.
    #[arg(long, value_name = "METRIC<=BOUND")]
    keep: Vec<String>,
    /// A key and the values to search: a range KEY=A..B of 33 points, KEY=A..B:N of N, or a list
    /// KEY=A,B,C of whatever --set takes.
    #[arg(long, value_name = "KEY=VALUES")]
    knob: Vec<String>,
    /// A file with a [[knob]] for each knob, which has the keys of a study's [[axis]]; its points
    /// are choices with names.
    #[arg(long, value_name = "FILE")]
    knobs: Option<PathBuf>,
    /// Try candidates at each of these values of a key, such as workload.poisson.load=0.3,0.6,0.9.
    #[arg(long, value_name = "KEY=A,B,C")]
    across: Vec<String>,
    /// A scenario that the search does not see; the choice is tried in it at the end.
    #[arg(long, value_name = "SCENARIO")]
    held_out: Vec<PathBuf>,
    /// Values of a key that the search does not see; the choice is tried at them at the end.
    #[arg(long, value_name = "KEY=A,B,C")]
    held_out_at: Vec<String>,
    /// Seeds of the search, from 1; the same number after them is held out.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Set a key in every run; what a knob sets wins.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Directory of the results (default: out/NAME-tune, by the first scenario).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Directory of the runs (default: runs in --out). Searches and sweeps may share one.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Number of parallel runs (default: one per core).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Repeat runs that are kept.
    #[arg(long, conflicts_with = "on")]
    fresh: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    look: LookArgs,
}

pub(crate) fn tune(args: &TuneArgs, registry: &Registry) -> Result<(), Failure> {
    let first = args
        .scenarios
        .first()
        .map_or(Path::new(""), PathBuf::as_path);
    let stem = first.file_stem().unwrap_or_default().to_string_lossy();
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| Path::new("out").join(format!("{stem}-tune")));
    let request = Request {
        scenarios: args.scenarios.clone(),
        across: args.across.clone(),
        held_out: args.held_out.clone(),
        held_out_at: args.held_out_at.clone(),
        set: run::set(&args.set),
        minimize: args.minimize.clone(),
        maximize: args.maximize.clone(),
        keep: args.keep.clone(),
        knobs: args.knob.clone(),
        knob_file: args.knobs.clone(),
        seeds: args.seeds,
        store: args.store.clone().unwrap_or_else(|| out.join("runs")),
        out,
        threads: args.threads.map_or_else(cores, usize::from),
        fresh: args.fresh,
        cluster: args.cluster.cluster(),
        registry: registry.clone(),
        look: args.look.look(),
    };
    let outcome = tune::tune(&request, &*watch_for_ctrl_c()?, &Overall::default())?;
    let text = if args.json {
        serde_json::to_string_pretty(&outcome.json).context("it is plain data")? + "\n"
    } else {
        words(&outcome)
    };
    Ok(output::print(&text)?)
}

fn words(outcome: &Outcome) -> String {
    let Outcome {
        sentence,
        notes,
        table,
        set,
        runs,
        grid,
        files,
        ..
    } = outcome;
    let mut text = format!("{sentence}\n");
    for note in notes {
        let _ = writeln!(text, "{note}");
    }
    let _ = write!(text, "\n{table}");
    if !set.is_empty() {
        let set: Vec<String> = set.iter().map(|one| format!("--set '{one}'")).collect();
        let _ = writeln!(text, "\nuse it: {}", set.join(" "));
    }
    let files: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let _ = writeln!(text, "runs: {runs} in the search; a grid takes {grid}");
    let _ = writeln!(text, "results: {}", files.join(", "));
    text
}
