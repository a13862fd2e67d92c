//! `shallows sweep`, here and on a cluster, and `shallows run --vary`.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use shallows_core::registry::Registry;
use shallows_results::figure::Look;
use shallows_results::report::Size;
use shallows_study::slurm::{self, Cluster};
use shallows_study::sweep::{self, OnTop, Outcome, Request, Study};

use crate::cli::{RunArgs, StudyArgs, SweepArgs, SweepCommand};
use crate::failure::Failure;
use crate::interrupt::watch_for_ctrl_c;
use crate::output;
use crate::overall::Overall;
use crate::repro::cores;
use crate::run;

pub(crate) fn sweep(args: &SweepArgs, registry: &Registry) -> Result<(), Failure> {
    match (&args.command, &args.study) {
        (Some(SweepCommand::Status(args)), _) => {
            let (study, request) = request(args, registry)?;
            Ok(output::print(&format!(
                "{}\n",
                sweep::status(&study, &request)?
            ))?)
        }
        (Some(SweepCommand::Collect(args)), _) => {
            let (study, request) = request(args, registry)?;
            let interrupted = watch_for_ctrl_c()?;
            let outcome = sweep::collect(&study, &request, &interrupted, &Overall::default())?;
            show(&outcome, args.json, "are missing")
        }
        (None, Some(of)) => {
            let (study, mut request) = request(of, registry)?;
            request.fresh = args.fresh;
            match args.cluster.cluster() {
                None => perform(&study, &request, of.json),
                Some(cluster) => on_cluster(&study, &request, &cluster, args.wait, of.json),
            }
        }
        (None, None) => Err(anyhow!("there is no study").into()),
    }
}

fn on_cluster(
    study: &Study,
    request: &Request,
    cluster: &Cluster,
    wait: bool,
    json: bool,
) -> Result<(), Failure> {
    let count = sweep::submit(study, request, cluster)?;
    output::note(format!("{count} runs submitted"));
    if !wait {
        return Ok(());
    }
    let (interrupted, observer) = (watch_for_ctrl_c()?, Overall::default());
    sweep::wait(study, request, &interrupted, &observer)?;
    let outcome = sweep::collect(study, request, &interrupted, &observer)?;
    show(&outcome, json, "are missing")
}

/// `shallows sweep-task`: a task of a job array.
pub(crate) fn task(round: &Path, task: usize, registry: &Registry) -> Result<(), Failure> {
    let interrupted = watch_for_ctrl_c()?;
    slurm::run_task(round, task, registry, &interrupted, &Overall::default())
}

fn request(args: &StudyArgs, registry: &Registry) -> Result<(Study, Request), Failure> {
    let on_top = OnTop {
        set: run::set(&args.set),
        seeds: args.seeds,
        size: args.quick.then_some(Size::Quick),
        registry: registry.clone(),
        ..OnTop::default()
    };
    let study = Study::read(&args.study, &on_top)?;
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| Path::new("out").join(&study.name));
    let request = Request {
        store: args.store.clone().unwrap_or_else(|| out.join("runs")),
        out,
        threads: args.threads.map_or_else(cores, usize::from),
        fresh: false,
        look: Look {
            width: args.width.unwrap_or_default().width(),
            no_title: args.no_title,
        },
    };
    Ok((study, request))
}

/// `shallows run --vary`.
pub(crate) fn vary(args: &RunArgs, registry: &Registry) -> Result<(), Failure> {
    let settings = run::settings(args)?;
    // For its warning.
    run::load(&args.scenario, &settings, registry)?;
    let on_top = OnTop {
        set: settings,
        seeds: args.seeds,
        registry: registry.clone(),
        ..OnTop::default()
    };
    let study = Study::vary(&args.scenario, &args.vary, &on_top, &args.metric)?;
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| Path::new("out").join(&study.name));
    let request = Request {
        store: out.join("runs"),
        out,
        threads: args.threads.map_or_else(cores, |threads| threads as usize),
        fresh: false,
        look: Look {
            width: args.width.unwrap_or_default().width(),
            no_title: args.no_title,
        },
    };
    perform(&study, &request, args.json)
}

fn perform(study: &Study, request: &Request, json: bool) -> Result<(), Failure> {
    let interrupted = watch_for_ctrl_c()?;
    let outcome = sweep::sweep(study, request, &interrupted, &Overall::default())?;
    show(&outcome, json, "failed")
}

fn show(outcome: &Outcome, json: bool, what: &str) -> Result<(), Failure> {
    if json {
        let points = serde_json::to_string_pretty(&outcome.points.to_json());
        output::print(&(points.context("points are plain data")? + "\n"))?;
    } else {
        output::print(&words(outcome))?;
    }
    match outcome.failed {
        0 => Ok(()),
        failed => Err(anyhow!("{failed} of {} runs {what}", outcome.runs).into()),
    }
}

fn words(outcome: &Outcome) -> String {
    let Outcome { table, legend, .. } = outcome;
    let figures = outcome.files.iter().filter(|file| {
        let extension = file.extension().unwrap_or_default();
        extension == "svg" || file.ends_with("runs.parquet")
    });
    let figures: Vec<String> = figures.map(|file| file.display().to_string()).collect();
    let mut claims = outcome.verdicts();
    if !claims.is_empty() {
        claims.insert(0, '\n');
    }
    format!("{table}\n{legend}{claims}results: {}\n", figures.join(", "))
}
