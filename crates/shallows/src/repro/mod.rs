//! `shallows repro`: the figures of a paper, with the paper's values beside ours.

mod chart;
mod claim;
mod execute;
mod library;
mod live;
mod measured;
mod metric;
mod plan;
mod progress;
mod results;
mod spec;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, bail};
use shallows_results::report::{self, ClaimOutcome, FigureOutcome, Paper, Reproduction, Size};

use crate::cli::ReproArgs;
use crate::failure::Failure;
use crate::output;
use crate::run::watch_for_ctrl_c;
use execute::Executor;
use library::Library;
use plan::{Plan, Wanted};
use results::Results;

pub(crate) fn repro(args: &ReproArgs) -> Result<(), Failure> {
    let library = Library::new(args.from.as_deref());
    if args.list || args.targets.is_empty() {
        return Ok(output::print(&list(&library)?)?);
    }
    let wanted = Wanted {
        size: match (args.quick, args.live) {
            (true, _) => Size::Quick,
            (_, true) => Size::Live,
            _ => Size::Full,
        },
        seeds: args.seeds,
        at: args.at.clone(),
    };
    let (paper, mut figures) = targets(&library, &args.targets)?;
    if args.live {
        figures = live::possible(&library, &paper, figures)?;
    }
    let plans: Result<Vec<Plan>, Failure> = figures
        .iter()
        .map(|figure| Plan::new(&library, &paper, figure, &wanted))
        .collect();
    let plans = plans?;
    fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot create {}", args.out.display()))?;
    let interrupted = watch_for_ctrl_c()?;
    let executor = Executor {
        directory: &args.out,
        threads: args.threads.map_or_else(cores, usize::from),
        fresh: args.fresh,
        interrupted: &interrupted,
    };
    let finished = executor.run(&plans)?;
    let mut outcomes: Vec<FigureOutcome> = Vec::new();
    for plan in plans {
        let runs = plan.jobs.iter().map(|job| Arc::clone(&finished[&job.key]));
        let results = Results::new(&plan, runs.collect());
        outcomes.push(if args.live {
            let live = live::run(&executor, &plan, args.scale)?;
            live.outcome(&paper, plan, &results)
        } else {
            outcome(&paper, plan, &results)
        });
    }
    let text = if args.json {
        let json = serde_json::to_string_pretty(&outcomes).context("outcomes are plain data")?;
        json + "\n"
    } else if args.live {
        live::three_ways(&outcomes)
    } else {
        verdicts(&outcomes)
    };
    let reproduction = merged(&args.out, paper, outcomes, &library)?;
    reproduction.write(&args.out).map_err(anyhow::Error::from)?;
    let page = write_report(&args.out)?;
    output::print(&text)?;
    if !args.json {
        output::print(&format!("report: {page}\n"))?;
    }
    Ok(())
}

/// `shallows report`: the page of what is in a directory.
pub(crate) fn report_on(directory: &Path) -> Result<(), Failure> {
    let page = write_report(directory)?;
    Ok(output::print(&format!("report: {page}\n"))?)
}

fn write_report(directory: &Path) -> Result<String, Failure> {
    let write = || report::write(directory, &report::read_all(directory)?);
    let page = write().map_err(anyhow::Error::from)?;
    Ok(page.display().to_string())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn list(library: &Library) -> anyhow::Result<String> {
    let mut text = String::new();
    for id in library.papers()? {
        let (paper, figures) = library.paper(&id)?;
        let _ = writeln!(text, "{id:20} {}, {}", paper.title, paper.venue);
        for figure in figures {
            let spec = library.figure(&id, &figure)?;
            let _ = writeln!(text, "{:20} {}", format!("{id}/{figure}"), spec.title);
        }
    }
    Ok(text)
}

/// The paper that is meant and its figures, in its order.
fn targets(library: &Library, targets: &[String]) -> anyhow::Result<(Paper, Vec<String>)> {
    let parts = |target: &str| match target.split_once('/') {
        Some((paper, figure)) => (paper.to_owned(), Some(figure.to_owned())),
        None => (target.to_owned(), None),
    };
    let wanted: Vec<(String, Option<String>)> =
        targets.iter().map(|target| parts(target)).collect();
    let id = &wanted[0].0;
    let (paper, figures) = library.paper(id)?;
    for (other, figure) in &wanted {
        if other != id {
            bail!("{id} and {other} are two papers; reproduce one after the other");
        }
        if let Some(figure) = figure.as_ref().filter(|figure| !figures.contains(figure)) {
            let all = figures.join(", ");
            bail!("{id} has no figure {figure:?}; it has: {all}");
        }
    }
    let chosen = |figure: &String| {
        let is = |(_, one): &(String, Option<String>)| one.as_ref().is_none_or(|one| one == figure);
        wanted.iter().any(is)
    };
    let figures = figures.into_iter().filter(chosen).collect();
    Ok((paper, figures))
}

fn outcome(paper: &Paper, plan: Plan, results: &Results) -> FigureOutcome {
    let figure = chart::draw(&paper.id, &plan, results);
    let claims = plan.spec.claim.iter();
    let claims = claims
        .map(|claim| claim::evaluate(claim, results))
        .collect();
    let settings = plan.settings();
    let (only_at, options) = (plan.only_at(), plan.options());
    let spec = plan.spec;
    FigureOutcome {
        id: plan.id,
        title: spec.title,
        caption: spec.caption,
        section: spec.section,
        note: spec.note,
        size: plan.size,
        only_at,
        options,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seeds: plan.seeds,
        runs: plan.jobs.len(),
        figure,
        claims,
        variants: spec
            .variant
            .into_iter()
            .map(|variant| (variant.label, variant.set))
            .collect(),
        settings,
        scenario: plan.scenario,
        live: None,
    }
}

/// What the directory has of the paper already, with the new outcomes in place of older ones.
fn merged(
    directory: &Path,
    paper: Paper,
    new: Vec<FigureOutcome>,
    library: &Library,
) -> anyhow::Result<Reproduction> {
    let before = Reproduction::read(&directory.join(Reproduction::file(&paper.id)));
    let mut figures = new;
    if let Ok(before) = before {
        let is_new: Vec<String> = figures.iter().map(|figure| figure.id.clone()).collect();
        let kept = before.figures.into_iter();
        figures.extend(kept.filter(|figure| !is_new.contains(&figure.id)));
    }
    let (_, order) = library.paper(&paper.id)?;
    figures.sort_by_key(|figure| {
        let id = figure.id.strip_suffix(live::SUFFIX).unwrap_or(&figure.id);
        (order.iter().position(|of| of == id), figure.live.is_some())
    });
    let deviations = library.deviations(&paper.id)?;
    Ok(Reproduction {
        paper,
        figures,
        deviations,
    })
}

/// The claims as lines.
fn verdicts(outcomes: &[FigureOutcome]) -> String {
    let rows = || {
        let of = |outcome: &FigureOutcome| {
            let claims = outcome.claims.iter().cloned();
            let id = outcome.id.clone();
            claims
                .map(move |claim| (id.clone(), claim))
                .collect::<Vec<_>>()
        };
        outcomes.iter().flat_map(of)
    };
    let ours = |claim: &ClaimOutcome| match &claim.spread {
        Some(spread) => format!("{} [{spread}]", claim.ours),
        None => claim.ours.clone(),
    };
    let width = |of: &dyn Fn(&(String, ClaimOutcome)) -> usize| {
        rows().map(|row| of(&row)).max().unwrap_or_default()
    };
    let what = width(&|(_, claim)| claim.what.chars().count()).max("claim".len());
    let paper = width(&|(_, claim)| claim.paper.chars().count()).max("paper".len());
    let our = width(&|(_, claim)| ours(claim).chars().count()).max("ours".len());
    let mut text = format!(
        "{:7} {:what$}  {:>paper$}  {:>our$}  verdict\n",
        "figure", "claim", "paper", "ours"
    );
    for (id, claim) in rows() {
        let _ = writeln!(
            text,
            "{id:7} {:what$}  {:>paper$}  {:>our$}  {}",
            claim.what,
            claim.paper,
            ours(&claim),
            claim.verdict
        );
    }
    for outcome in outcomes {
        if let Some(only_at) = &outcome.only_at {
            let _ = writeln!(text, "{}: only {only_at}", outcome.id);
        }
    }
    text
}
