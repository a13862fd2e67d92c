//! Sweeps: a scenario with some keys varied, over seeds.
//!
//! A [`Study`] is read from a file or made from `--vary`. [`sweep`] makes those of its runs that are
//! not in the store yet, and [`Outcome`] is what came out: a table, and in the directory of results
//! `runs.parquet`, `points.parquet` and the figures.

mod figures;
mod results;
mod table;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, anyhow};
use serde_json::json;
use shallows_results::figure::Look;
use shallows_results::frame::Frame;
use shallows_results::report::{ClaimOutcome, Size};
use shallows_results::write_text;
use shallows_run::{BUILD_ID, Failure};

use crate::executor::{Executor, Job, Observer};
use crate::slurm::{Cluster, Status, Submission};
use crate::study::claim;
pub use crate::study::{OnTop, Study};
use results::Shown;

/// A request to run a study.
#[derive(Clone, Debug)]
pub struct Request {
    /// Directory of the tables and figures.
    pub out: PathBuf,
    /// Directory of the runs, which studies may share.
    pub store: PathBuf,
    /// Number of parallel runs.
    pub threads: usize,
    /// True if runs are made again that are kept from before.
    pub fresh: bool,
    /// Look of the figures.
    pub look: Look,
}

/// Outcome of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// A row for each combination of points.
    pub table: String,
    /// Every combination and metric, as in `points.parquet`.
    pub points: Frame,
    /// Explanation of the table's differences and intervals.
    pub legend: String,
    /// The study's claims with their verdicts.
    pub claims: Vec<ClaimOutcome>,
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// Number of runs.
    pub runs: usize,
    /// Number of failed runs.
    pub failed: usize,
}

impl Outcome {
    /// The claims as lines; empty if the study has none.
    pub fn verdicts(&self) -> String {
        if self.claims.is_empty() {
            return String::new();
        }
        let rows: Vec<_> = self.claims.iter().map(|claim| (None, claim)).collect();
        claim::table(&rows, "expected")
    }
}

/// Makes every run of a study that is not there yet and writes what came out. Runs that fail are
/// reported to the observer and counted.
pub fn sweep(
    study: &Study,
    request: &Request,
    interrupted: &AtomicBool,
    observer: &dyn Observer,
) -> Result<Outcome, Failure> {
    let jobs = study.jobs()?;
    study.check(&jobs)?;
    let Request { out, store, .. } = request;
    for directory in [out, store] {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let executor = Executor {
        store,
        threads: request.threads,
        fresh: request.fresh,
        interrupted,
        observer,
    };
    let finished = executor.run(&jobs.iter().collect::<Vec<_>>())?;
    let runs = jobs
        .iter()
        .map(|job| finished.runs.get(&job.key).map(Arc::clone));
    write(study, &jobs, runs.collect(), (out, request.look))
}

/// Submits every run of a study that is neither in the store nor in Slurm's queue; answers with how
/// many.
pub fn submit(study: &Study, request: &Request, cluster: &Cluster) -> Result<usize, Failure> {
    let jobs = study.jobs()?;
    study.check(&jobs)?;
    submission(request).submit(&jobs.iter().collect::<Vec<_>>(), cluster)
}

/// Progress of a study on a cluster.
pub fn status(study: &Study, request: &Request) -> Result<Status, Failure> {
    let jobs = study.jobs()?;
    Ok(submission(request).status(&jobs.iter().collect::<Vec<_>>())?)
}

/// Waits until the cluster has made every run of a study.
pub fn wait(
    study: &Study,
    request: &Request,
    interrupted: &AtomicBool,
    observer: &dyn Observer,
) -> Result<(), Failure> {
    let jobs = study.jobs()?;
    submission(request).wait(&jobs.iter().collect::<Vec<_>>(), interrupted, observer)
}

/// Writes what there is of a study, without any run; missing ones count as failed.
pub fn collect(
    study: &Study,
    request: &Request,
    interrupted: &AtomicBool,
    observer: &dyn Observer,
) -> Result<Outcome, Failure> {
    let jobs = study.jobs()?;
    submission(request).clean()?;
    let executor = Executor {
        store: &request.store,
        threads: request.threads,
        fresh: false,
        interrupted,
        observer,
    };
    let kept = executor.kept(&jobs.iter().collect::<Vec<_>>());
    if kept.is_empty() {
        let problem = format!("none of the {} runs has been made", jobs.len());
        return Err(anyhow!("{problem}; `shallows sweep` makes them").into());
    }
    let runs = jobs.iter().map(|job| kept.get(&job.key).map(Arc::clone));
    write(study, &jobs, runs.collect(), (&request.out, request.look))
}

fn submission(request: &Request) -> Submission<'_> {
    Submission {
        directory: request.out.join("slurm"),
        store: &request.store,
    }
}

/// Writes the tables and figures of runs, in the order of the study's jobs.
fn write(
    study: &Study,
    jobs: &[Job],
    runs: Vec<Option<Arc<crate::measured::Measured>>>,
    (out, look): (&Path, Look),
) -> Result<Outcome, Failure> {
    let failed = runs.iter().filter(|run| run.is_none()).count();
    if failed == runs.len() {
        return Err(anyhow!("all {failed} runs failed").into());
    }
    let results = Shown::new(study, jobs, runs);
    let claims = study.config.claim.iter();
    let claims: Vec<ClaimOutcome> = claims
        .map(|claim| claim::evaluate(claim, &results.results))
        .collect();
    let mut files = vec![out.join("runs.parquet"), out.join("points.parquet")];
    results.runs().write(&files[0])?;
    let points = results.points();
    points.write(&files[1])?;
    for (figure, words) in results.figures() {
        files.extend(figure.write(out, &figure.name, &look.applied(words))?);
    }
    let axes: Vec<_> = study
        .axes
        .iter()
        .map(|axis| {
            let points: Vec<&String> = axis.points.iter().map(|point| &point.label).collect();
            json!({ "name": axis.name, "points": points })
        })
        .collect();
    let mut about = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build": BUILD_ID,
        "study": study.text,
        "scenario": jobs.first().map(|job| job.scenario.text()),
        "set": study.commanded,
        "size": study.size.unwrap_or(Size::Full),
        "axes": axes,
        "seeds": study.seeds,
        "runs": jobs.len(),
        "failed": failed,
    });
    if !claims.is_empty() {
        about["claims"] = json!(claims);
    }
    let study = out.join("study.json");
    write_text(&study, &format!("{about:#}\n"))?;
    files.push(study);
    Ok(Outcome {
        table: results.table(),
        points,
        legend: results.legend(),
        claims,
        files,
        runs: jobs.len(),
        failed,
    })
}
