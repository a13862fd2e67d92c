//! `shallows sweep`, and `shallows run --vary`.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use shallows_study::sweep::{self, OnTop, Outcome, Request, Study};

use crate::cli::{RunArgs, SweepArgs};
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;
use crate::overall::Overall;
use crate::repro::cores;
use crate::run;

pub(crate) fn sweep(args: &SweepArgs) -> Result<(), Failure> {
    let on_top = OnTop {
        set: run::set(&args.set),
        seeds: args.seeds,
    };
    let study = Study::read(&args.study, &on_top)?;
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| Path::new("out").join(&study.name));
    let request = Request {
        store: args.store.clone().unwrap_or_else(|| out.join("runs")),
        out,
        threads: args.threads.map_or_else(cores, usize::from),
        fresh: args.fresh,
    };
    perform(&study, &request, args.json)
}

/// `shallows run --vary`.
pub(crate) fn vary(args: &RunArgs) -> Result<(), Failure> {
    let settings = run::settings(args)?;
    let scenario = run::load(&args.scenario, &settings)?;
    let seeds = match args.seeds {
        Some(count) => (1..=count).collect(),
        None => vec![scenario.config.seed],
    };
    let study = Study::vary(&args.scenario, &args.vary, settings, seeds, &args.metric)?;
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| Path::new("out").join(&study.name));
    let request = Request {
        store: out.join("runs"),
        out,
        threads: args.threads.map_or_else(cores, |threads| threads as usize),
        fresh: false,
    };
    perform(&study, &request, args.json)
}

fn perform(study: &Study, request: &Request, json: bool) -> Result<(), Failure> {
    let interrupted = watch_for_ctrl_c()?;
    let outcome = sweep::sweep(study, request, &interrupted, &Overall::default())?;
    if json {
        let points = serde_json::to_string_pretty(&outcome.points.to_json());
        output::print(&(points.context("points are plain data")? + "\n"))?;
    } else {
        output::print(&words(&outcome))?;
    }
    match outcome.failed {
        0 => Ok(()),
        failed => Err(anyhow!("{failed} of {} runs failed", outcome.runs).into()),
    }
}

fn words(outcome: &Outcome) -> String {
    let Outcome { table, legend, .. } = outcome;
    let figures = outcome.files.iter().filter(|file| {
        let extension = file.extension().unwrap_or_default();
        extension == "svg" || file.ends_with("runs.parquet")
    });
    let figures: Vec<String> = figures.map(|file| file.display().to_string()).collect();
    format!("{table}\n{legend}results: {}\n", figures.join(", "))
}
