//! The figures of a paper, with the paper's values beside ours.

mod library;
#[cfg(live)]
mod live;
mod plan;
#[cfg(test)]
mod readmes;
mod recorded;
mod worlds;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, anyhow, bail};
use shallows_core::registry::Registry;
use shallows_results::figure::Look;
use shallows_results::report::{self, FigureOutcome, Paper, Reproduction, Size};
use shallows_run::Failure;

use crate::executor::{Executor, Job, Observer};
use crate::slurm::{Cluster, Submission};
use crate::study::results::Results;
use crate::study::{chart, claim, unfinished};
use library::Library;
use plan::{Plan, Wanted};
use recorded::Recorded;
pub use worlds::three_ways;

/// Suffix of the names of figures that were run live.
const LIVE: &str = "-live";

/// A request for a reproduction.
#[derive(Clone, Debug)]
pub struct Request {
    /// A paper, or some of its figures: `mq-ecn`, or `mq-ecn/fig9` and `mq-ecn/fig10`.
    pub targets: Vec<String>,
    /// Size; [`Size::Live`] adds live runs to the simulated ones.
    pub size: Size,
    /// Number of seeds, instead of the figure's.
    pub seeds: Option<u64>,
    /// Only these values of x; all if empty.
    pub at: Vec<f64>,
    /// Settings of every run on top of the figure's, such as `ports.switch.queues=4`, or of the runs
    /// of one variant, such as `mq-ecn:ports.switch.queues=4`. They win over all others.
    pub set: Vec<String>,
    /// Number of parallel runs.
    pub threads: usize,
    /// Directory of the runs, figures and report.
    pub out: PathBuf,
    /// The scale of live runs, in place of the figure's.
    pub scale: Option<f64>,
    /// Directory of the papers, in place of those that are built in.
    pub from: Option<PathBuf>,
    /// True if runs are made again that are kept from before.
    pub fresh: bool,
    /// The cluster that makes the simulated runs; this machine if there is none.
    pub cluster: Option<Cluster>,
    /// Schemes of other crates that settings may name.
    pub registry: Registry,
    /// Look of the figures.
    pub look: Look,
    /// Directory of the papers in which the results are recorded, if they are to be.
    pub record: Option<PathBuf>,
}

/// Makes every run of the wanted figures that is not there yet, compares the paper's claims with
/// them and writes the page.
pub fn reproduce(
    request: &Request,
    interrupted: &AtomicBool,
    observer: &dyn Observer,
) -> Result<(Vec<FigureOutcome>, PathBuf), Failure> {
    let library = Library::new(request.from.as_deref());
    let wanted = Wanted {
        size: request.size,
        seeds: request.seeds,
        at: request.at.clone(),
        set: request.set.clone(),
        registry: request.registry.clone(),
    };
    let (paper, figures) = targets(&library, &request.targets).map_err(Failure::File)?;
    let figures = possible(request.size, &library, &paper, figures, observer)?;
    let plans: Result<Vec<Plan>, Failure> = figures
        .iter()
        .map(|figure| Plan::new(&library, &paper, figure, &wanted))
        .collect();
    let plans = plans?;
    let out = &request.out;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let executor = Executor {
        store: &out.join("runs"),
        threads: request.threads,
        fresh: request.fresh,
        interrupted,
        observer,
    };
    let simulated = plans.iter().filter(|plan| !plan.config().is_live_only());
    let jobs: Vec<&Job> = simulated.flat_map(|plan| &plan.jobs).collect();
    if let Some(cluster) = &request.cluster {
        let submission = Submission {
            directory: out.join("slurm"),
            store: executor.store,
        };
        submission.submit(&jobs, cluster)?;
        submission.wait(&jobs, interrupted, observer)?;
    }
    let finished = executor.run(&jobs)?.complete()?;
    let mut outcomes: Vec<FigureOutcome> = Vec::new();
    let mut recorded = Vec::new();
    for plan in &plans {
        let simulated = plan.jobs.iter().filter(|_| !plan.config().is_live_only());
        let runs = simulated.map(|job| Some(Arc::clone(&finished[&job.key])));
        let results = Results::new(&plan.study, runs.collect());
        if let Some(line) = unfinished(plan, &results) {
            observer.note(&format!("{}: {line}", plan.id));
        }
        if request.record.is_some() && !plan.config().is_live_only() {
            recorded.push(Recorded::of(&paper, plan, &results)?);
        }
        #[cfg(live)]
        if request.size == Size::Live {
            let live = live::run(&executor, plan, request.scale)?;
            let live = live.of(plan);
            if request.record.is_some() {
                recorded.push(Recorded::of_live(&paper, plan, &live)?);
            }
            outcomes.push(worlds::outcome(&paper, plan, &results, live));
            continue;
        }
        outcomes.push(outcome(&paper, plan, &results));
    }
    if let Some(directory) = &request.record {
        let (_, order) = library.paper(&paper.id)?;
        let path = recorded::write(directory, &paper, request.size, recorded, &order)?;
        observer.note(&format!("recorded in {}", path.display()));
    }
    let page = publish(out, paper, &outcomes, &library, request.look)?;
    Ok((outcomes, page))
}

/// Writes figures, verdicts and the page, with what the directory has of the paper already.
fn publish(
    out: &Path,
    paper: Paper,
    outcomes: &[FigureOutcome],
    library: &Library,
    look: Look,
) -> Result<PathBuf, Failure> {
    let reproduction = merged(out, paper, outcomes.to_vec(), library)?;
    reproduction.write(out).map_err(anyhow::Error::from)?;
    write_report(out, look)
}

/// Compares the paper's claims with recorded results, without a run, and writes the page. A figure
/// has the results of the wanted size, or the quick ones if there are no others; live results are
/// shown only if they are wanted.
pub fn show(request: &Request) -> Result<(Vec<FigureOutcome>, PathBuf), Failure> {
    let library = Library::new(request.from.as_deref());
    let (paper, figures) = targets(&library, &request.targets)?;
    let mut outcomes = Vec::new();
    for figure in &figures {
        let instead = (request.size != Size::Live).then_some(Size::Quick);
        for size in [request.size].into_iter().chain(instead) {
            if let Some(outcome) = recorded_outcome(&library, &paper, figure, size)? {
                outcomes.push(outcome);
                break;
            }
        }
    }
    if outcomes.is_empty() {
        let targets = request.targets.join(", ");
        let problem =
            anyhow!("no results of {targets} are recorded; leave out --show to make the runs");
        return Err(problem.into());
    }
    let out = &request.out;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let page = publish(out, paper, &outcomes, &library, request.look)?;
    Ok((outcomes, page))
}

/// Outcome of a figure by its recorded results, if there are any of this size.
fn recorded_outcome(
    library: &Library,
    paper: &Paper,
    figure: &str,
    size: Size,
) -> Result<Option<FigureOutcome>, Failure> {
    let mut recorded = library.recorded(&paper.id, size)?;
    recorded.retain(|of| of.id() == figure);
    let (mut live, mut simulated): (Vec<Recorded>, Vec<Recorded>) =
        recorded.into_iter().partition(|of| of.live.is_some());
    let (live, simulated) = (live.pop(), simulated.pop());
    let newest = match size {
        Size::Live => live.as_ref(),
        Size::Quick | Size::Full => simulated.as_ref(),
    };
    let Some(newest) = newest else {
        return Ok(None);
    };
    let wanted = Wanted {
        size,
        seeds: Some(newest.seeds()),
        at: newest.xs(),
        set: Vec::new(),
        registry: Registry::default(),
    };
    let plan = Plan::without_runs(library, paper, figure, &wanted)?;
    let is_stale = recorded::settings_hash(&plan)? != newest.settings;
    let source = format!(
        " Recorded on {} by `{}`, build {}.",
        newest.date, newest.command, newest.build
    );
    let values = simulated.map_or_else(Vec::new, |of| of.values(&plan));
    let results = Results::recorded(&plan.study, values);
    let live = live.and_then(|live| live.into_live(&plan));
    let mut outcome = match live {
        None => outcome(paper, &plan, &results),
        Some(live) => worlds::outcome(paper, &plan, &results, live),
    };
    let mut note = outcome.note.unwrap_or_default();
    note.push_str(&source);
    if is_stale {
        note.push_str(" The settings of the figure have changed since.");
    }
    outcome.note = Some(note.trim_start().to_owned());
    Ok(Some(outcome))
}

/// Of the wanted figures, those that can be made: a live one has a `[live]` table, and any other can
/// be simulated.
fn possible(
    size: Size,
    library: &Library,
    paper: &Paper,
    figures: Vec<String>,
    observer: &dyn Observer,
) -> Result<Vec<String>, Failure> {
    let is_live = size == Size::Live;
    if is_live && cfg!(not(live)) {
        return Err(anyhow!("live runs need Linux, and a build with the feature `live`").into());
    }
    let mut possible = Vec::new();
    let mut others = Vec::new();
    for figure in figures {
        let config = library.figure(&paper.id, &figure)?.content;
        let is_possible = match size {
            Size::Live => config.live.is_some(),
            Size::Quick | Size::Full => !config.is_live_only(),
        };
        if is_possible {
            possible.push(figure);
        } else {
            others.push(figure);
        }
    }
    let others = others.join(", ");
    let (reason, instead) = if is_live {
        ("no [live] table, so it cannot run live", "")
    } else {
        (
            "of real programs, with nothing to simulate",
            "; run it with --live",
        )
    };
    if possible.is_empty() {
        return Err(anyhow!("{others}: {reason}{instead}").into());
    }
    if !others.is_empty() {
        observer.note(&format!("left out ({reason}): {others}"));
    }
    Ok(possible)
}

/// Writes the page of what is in a directory, and tells where it is.
pub fn write_report(directory: &Path, look: Look) -> Result<PathBuf, Failure> {
    let write = || report::write(directory, &report::read_all(directory)?, look);
    Ok(write().map_err(anyhow::Error::from)?)
}

/// A paper or one of its figures, as `repro --list` shows it.
#[derive(Debug)]
pub struct Listed {
    /// Name in commands, such as `mq-ecn/fig9`.
    pub id: String,
    /// Title, with the venue of a paper.
    pub title: String,
    /// Sizes of a figure; none for a paper.
    pub sizes: Option<ListedSizes>,
}

/// Sizes of a figure.
#[derive(Clone, Copy, Debug)]
pub struct ListedSizes {
    /// Number of runs with `--quick`.
    pub quick: usize,
    /// Number of runs at full size.
    pub full: usize,
    /// True if it can run live.
    pub live: bool,
}

/// Papers and their figures; from a directory instead of the built-in ones.
pub fn list(from: Option<&Path>) -> Result<Vec<Listed>, Failure> {
    let library = Library::new(from);
    let mut listed = Vec::new();
    for id in library.papers()? {
        let (paper, figures) = library.paper(&id)?;
        listed.push(Listed {
            id: id.clone(),
            title: format!("{}, {}", paper.title, paper.venue),
            sizes: None,
        });
        for figure in figures {
            let plan = |size| Plan::without_runs(&library, &paper, &figure, &Wanted::all(size));
            let full = plan(Size::Full)?;
            listed.push(Listed {
                id: format!("{id}/{figure}"),
                sizes: Some(ListedSizes {
                    quick: plan(Size::Quick)?.runs(),
                    full: full.runs(),
                    live: full.config().live.is_some(),
                }),
                title: full.config().title.clone(),
            });
        }
    }
    Ok(listed)
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

fn outcome(paper: &Paper, plan: &Plan, results: &Results<'_>) -> FigureOutcome {
    let config = plan.config();
    let alt = match &config.caption[..] {
        "" => config.title.clone(),
        caption => format!("{}. {caption}", config.title),
    };
    let name = format!("{}-{}", paper.id, plan.id);
    let claims = config.claim.iter();
    let claims = claims.map(|claim| claim::evaluate(claim, results));
    FigureOutcome {
        id: plan.id.clone(),
        title: config.title.clone(),
        caption: config.caption.clone(),
        section: config.section.clone(),
        note: with_unfinished(plan, results),
        size: plan.size,
        only_at: plan.only_at(),
        options: plan.options(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seeds: plan.study.seeds.len() as u64,
        runs: plan.runs(),
        figure: chart::figure(name, alt, &config.panel, results),
        claims: claims.collect(),
        variants: plan.variants(),
        settings: plan.settings(),
        scenario: plan.scenario.clone(),
        live: None,
    }
}

/// The figure's note, and the flows that are in none of its completion times.
fn with_unfinished(plan: &Plan, results: &Results<'_>) -> Option<String> {
    let note = plan.config().note.clone();
    match unfinished(plan, results) {
        None => note,
        Some(line) => Some(
            format!("{} Flows {line}.", note.unwrap_or_default())
                .trim()
                .to_owned(),
        ),
    }
}

/// A line about unfinished flows, if the figure shows or claims something of completion times.
fn unfinished(plan: &Plan, results: &Results<'_>) -> Option<String> {
    let config = plan.config();
    let shown = config.panels().flat_map(|(_, panel)| panel.metrics());
    let mut all = shown.chain(config.claim.iter().map(|claim| &claim.metric));
    if !all.any(|metric| metric.metric.is_of_completion()) {
        return None;
    }
    unfinished::by_point(results)
}

/// Merges the paper's outcomes in the directory with new ones, which replace older ones.
fn merged(
    directory: &Path,
    paper: Paper,
    new: Vec<FigureOutcome>,
    library: &Library,
) -> anyhow::Result<Reproduction> {
    let file = directory.join(Reproduction::file(&paper.id));
    let mut figures = new;
    if file.is_file() {
        // To replace it would lose the figures that it has.
        let before = Reproduction::read(&file).map_err(|error| {
            anyhow!("{error}; move the file away, or write to another directory with --out")
        })?;
        let is_new: Vec<String> = figures.iter().map(|figure| figure.id.clone()).collect();
        let kept = before.figures.into_iter();
        figures.extend(kept.filter(|figure| !is_new.contains(&figure.id)));
    }
    let (_, order) = library.paper(&paper.id)?;
    figures.sort_by_key(|figure| {
        let id = figure.id.strip_suffix(LIVE).unwrap_or(&figure.id);
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
pub fn verdicts(outcomes: &[FigureOutcome]) -> String {
    let mut rows = Vec::new();
    for outcome in outcomes {
        rows.extend(
            outcome
                .claims
                .iter()
                .map(|claim| (Some(&*outcome.id), claim)),
        );
    }
    let mut text = claim::table(&rows, "paper");
    for outcome in outcomes {
        if let Some(only_at) = &outcome.only_at {
            let _ = writeln!(text, "{}: only {only_at}", outcome.id);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_figures_that_cannot_be_read_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let library = Library::new(None);
        let (paper, _) = library.paper("ear").unwrap();
        let merge = || merged(directory.path(), paper.clone(), Vec::new(), &library);
        assert_eq!(merge().unwrap().figures, Vec::new());
        fs::write(directory.path().join("ear.json"), "{").unwrap();
        let problem = merge().unwrap_err().to_string();
        assert!(problem.contains("ear.json: "), "{problem}");
        assert!(
            problem.ends_with("; move the file away, or write to another directory with --out")
        );
    }
}
