//! Runs on a cluster: Slurm job arrays over the same store.
//!
//! A *round* is one job array. Each of its tasks has a file with some runs, made one after the
//! other on one CPU, so that a run of a second does not pay for a job of its own. A second job waits
//! for the array and submits a new round of whatever is missing then, as after a task has died; so
//! nothing depends on the shell that submitted. Tasks share nothing but the store, where a run
//! appears when it is complete, and leave no locks.

mod queue;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use shallows_core::registry::Registry;
use shallows_results::directory::hexadecimal;
use shallows_results::{write_bytes, write_text};
use shallows_run::{BUILD_ID, Failure, Scenario};

use queue::{Queued, queue, sbatch, usual_tasks};

use crate::executor::{Executor, Job, Observer};
use crate::measured::Keep;

/// Tasks for each CPU of the partition: enough that CPUs come out even.
const TASKS_PER_CPU: usize = 4;

/// Slurm's usual limit of an array.
const MOST_TASKS: usize = 1000;

/// Rounds that follow each other without the user.
const MOST_ATTEMPTS: usize = 5;

/// From one look at the queue to the next.
const POLL: Duration = Duration::from_secs(1);

/// Looks at an empty queue before it is taken for one: Slurm needs a moment between jobs.
const EMPTY_POLLS: u32 = 10;

/// Use of a cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cluster {
    /// Partition; Slurm's default if not given.
    pub partition: Option<String>,
    /// Tasks of a job array; four for each CPU of the partition if not given.
    pub tasks: Option<usize>,
    /// Further options of `sbatch`.
    pub options: Vec<String>,
}

/// Progress of a sweep on a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Runs in all.
    pub runs: usize,
    /// Those in the store.
    pub done: usize,
    /// Tasks that run.
    pub running: usize,
    /// Tasks that wait.
    pub waiting: usize,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            runs,
            done,
            running,
            waiting,
        } = self;
        write!(
            f,
            "{done}/{runs} runs done; tasks: {running} running, {waiting} waiting"
        )
    }
}

/// A sweep on a cluster, in its directory.
#[derive(Debug)]
pub(crate) struct Submission<'a> {
    /// Rounds, tasks, logs and the program.
    pub(crate) directory: PathBuf,
    pub(crate) store: &'a Path,
}

/// A round: written when Slurm has accepted it.
#[derive(Debug, Serialize, Deserialize)]
struct Round {
    store: PathBuf,
    cluster: Cluster,
    /// The job array.
    array: u64,
    /// The job that waits for it, and for how many rounds others have done so before.
    next: Option<u64>,
    attempt: usize,
    /// SHA-256 of the program that runs, and its build.
    binary: String,
    build: String,
    /// Keys of the runs, by task.
    tasks: Vec<Vec<String>>,
}

/// A run as a task finds it, with everything that determines it.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    key: String,
    scenario: String,
    /// Directory of the files that the scenario reads, below that of the submission.
    inputs: Option<String>,
    keep: Keep,
    weight: u64,
}

impl Submission<'_> {
    /// Submits every run that is neither in the store nor in Slurm's queue; answers with how many.
    pub(crate) fn submit(&self, jobs: &[&Job], cluster: &Cluster) -> Result<usize, Failure> {
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        let queued = self.queued()?;
        let mut seen = BTreeSet::new();
        let mut tasks = Vec::new();
        for job in jobs {
            let is_new = seen.insert(&job.key) && !queued.contains(&job.key);
            if is_new && !self.is_done(&job.key, job.keep) {
                tasks.push(self.task(job)?);
            }
        }
        let count = tasks.len();
        if count > 0 {
            self.begin(tasks, cluster, 1)?;
        }
        Ok(count)
    }

    /// Progress of the submission.
    pub(crate) fn status(&self, jobs: &[&Job]) -> anyhow::Result<Status> {
        let keys: BTreeMap<&str, Keep> = jobs.iter().map(|job| (&*job.key, job.keep)).collect();
        let ours = self.rounds()?;
        let ours: Vec<u64> = ours
            .iter()
            .flat_map(|of| [Some(of.array), of.next])
            .flatten()
            .collect();
        let mut status = Status {
            runs: keys.len(),
            done: keys
                .iter()
                .filter(|(key, keep)| self.is_done(key, **keep))
                .count(),
            ..Status::default()
        };
        for Queued { job, state, .. } in queue()? {
            match &*state {
                _ if !ours.contains(&job) => {}
                "RUNNING" | "COMPLETING" => status.running += 1,
                _ => status.waiting += 1,
            }
        }
        Ok(status)
    }

    /// Waits until every run is in the store; an error if Slurm has no more of them to make.
    pub(crate) fn wait(
        &self,
        jobs: &[&Job],
        interrupted: &AtomicBool,
        observer: &dyn Observer,
    ) -> Result<(), Failure> {
        let (mut empty, mut told) = (0, None);
        loop {
            let status = self.status(jobs)?;
            if status.done == status.runs {
                return Ok(());
            }
            if interrupted.load(Ordering::Relaxed) {
                observer.note("the cluster goes on; the same command waits for it again");
                return Err(Failure::Interrupted);
            }
            empty = if status.running + status.waiting == 0 {
                empty + 1
            } else {
                0
            };
            if empty == EMPTY_POLLS {
                let missing = status.runs - status.done;
                let logs = self.directory.display();
                let words = format!(
                    "{missing} runs are missing and Slurm has no more tasks; logs: {logs}/round-*/log"
                );
                return Err(anyhow::anyhow!(words).into());
            }
            if told != Some(status) {
                observer.note(&status.to_string());
                told = Some(status);
            }
            thread::sleep(POLL);
        }
    }

    /// Removes what killed tasks have left of runs that are complete now.
    pub(crate) fn clean(&self) -> anyhow::Result<()> {
        let Ok(entries) = fs::read_dir(self.store) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let half = name.strip_prefix('.').and_then(|rest| rest.split_once('-'));
            if half.is_some_and(|(key, _)| self.is_done(key, Keep::Summary)) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Returns whether the store has a run with what is to be kept of it.
    fn is_done(&self, key: &str, keep: Keep) -> bool {
        let run = self.store.join(key);
        let flows = || run.join("flows.parquet").is_file();
        run.join("summary.json").is_file() && (keep == Keep::Summary || flows())
    }

    fn task(&self, job: &Job) -> anyhow::Result<Task> {
        let (scenario, inputs) = job.scenario.config.resolved()?;
        let directory = (!inputs.is_empty()).then(|| {
            let mut hash = Sha256::new();
            for input in &inputs {
                hash.update(input.path.to_string_lossy().as_bytes());
                hash.update(&input.content);
            }
            format!("inputs/{}", hexadecimal(&hash.finalize()[..10]))
        });
        for input in &inputs {
            let below = self
                .directory
                .join(directory.as_deref().unwrap_or_default());
            let path = below.join(&input.path);
            fs::create_dir_all(path.parent().unwrap_or(&below))?;
            write_bytes(&path, &input.content)?;
        }
        Ok(Task {
            key: job.key.clone(),
            scenario,
            inputs: directory,
            keep: job.keep,
            weight: job.weight,
        })
    }

    /// Writes a round and hands it to Slurm.
    fn begin(&self, tasks: Vec<Task>, cluster: &Cluster, attempt: usize) -> anyhow::Result<()> {
        // First, since it fails without Slurm.
        let count = cluster.tasks.map_or_else(|| usual_tasks(cluster), Ok)?;
        let number = self.rounds()?.len();
        let directory = std::path::absolute(self.directory.join(format!("round-{number}")))?;
        fs::create_dir_all(directory.join("log"))?;
        let store = std::path::absolute(self.store)?;
        write_text(
            &self.directory.join("store"),
            &format!("{}\n", store.display()),
        )?;
        let (binary, hash) = self.binary()?;
        let shares = share(tasks, count.clamp(1, MOST_TASKS));
        for (index, share) in shares.iter().enumerate() {
            let json = serde_json::to_string(share)?;
            write_text(&directory.join(format!("task-{index}.json")), &json)?;
        }
        let name = self
            .directory
            .parent()
            .and_then(Path::file_name)
            .unwrap_or_default();
        let name = format!("--job-name=shallows-{}", name.to_string_lossy());
        let (binary, place) = (quoted(&binary), quoted(&directory));
        let log = |what: &str| format!("--output={}/log/{what}.txt", directory.display());
        let last = shares.len() - 1;
        let array = sbatch(
            cluster,
            &[
                &name,
                &format!("--array=0-{last}"),
                "--requeue",
                "--open-mode=append",
                &log("%a"),
            ],
            &format!("exec {binary} sweep-task {place} $SLURM_ARRAY_TASK_ID"),
        )?;
        let keys = |share: &Vec<Task>| share.iter().map(|task| task.key.clone()).collect();
        let mut round = Round {
            next: None,
            attempt,
            store,
            cluster: cluster.clone(),
            array,
            binary: hash,
            build: BUILD_ID.to_owned(),
            tasks: shares.iter().map(keys).collect(),
        };
        let file = directory.join("round.json");
        write_text(&file, &serde_json::to_string_pretty(&round)?)?;
        // Whatever becomes of the tasks: what they leave undone is for the next round.
        let after = format!("--dependency=afterany:{array}");
        let next = sbatch(
            cluster,
            &[&name, &after, "--requeue", &log("next")],
            &format!("exec {binary} sweep-next {place}"),
        )?;
        round.next = Some(next);
        write_text(&file, &serde_json::to_string_pretty(&round)?)?;
        Ok(())
    }

    /// The rounds that Slurm has got, in their order.
    fn rounds(&self) -> anyhow::Result<Vec<Round>> {
        let mut rounds = Vec::new();
        loop {
            let path = self
                .directory
                .join(format!("round-{}/round.json", rounds.len()));
            let Ok(text) = fs::read_to_string(&path) else {
                return Ok(rounds);
            };
            let round = serde_json::from_str(&text);
            rounds.push(round.with_context(|| format!("cannot read {}", path.display()))?);
        }
    }

    /// Keys of runs in tasks that Slurm has not finished.
    fn queued(&self) -> anyhow::Result<BTreeSet<String>> {
        let rounds = self.rounds()?;
        let queue = if rounds.is_empty() {
            Vec::new()
        } else {
            queue()?
        };
        let mut keys = BTreeSet::new();
        for round in rounds {
            for queued in queue.iter().filter(|queued| queued.job == round.array) {
                let task = queued.task.and_then(|task| round.tasks.get(task));
                keys.extend(task.into_iter().flatten().cloned());
            }
        }
        Ok(keys)
    }

    /// A copy of this program that nobody builds anew while tasks wait, and its hash.
    fn binary(&self) -> anyhow::Result<(PathBuf, String)> {
        let this = shallows_run::program().context("cannot tell which program this is")?;
        let content = fs::read(&this).with_context(|| format!("cannot read {}", this.display()))?;
        let hash = hexadecimal(&Sha256::digest(&content));
        let path = self.directory.join(format!("bin/shallows-{}", &hash[..16]));
        if !path.exists() {
            fs::create_dir_all(self.directory.join("bin"))?;
            let half = path.with_extension(std::process::id().to_string());
            fs::copy(&this, &half)?;
            fs::rename(&half, &path)?;
        }
        Ok((std::path::absolute(path)?, hash))
    }
}

/// Makes the runs of a task; those that are there already are left out.
pub fn run_task(
    round: &Path,
    task: usize,
    registry: &Registry,
    interrupted: &AtomicBool,
    observer: &dyn Observer,
) -> Result<(), Failure> {
    let directory = round.parent().context("a round is in a submission")?;
    let tasks = read_task(round, task)?;
    let store = store_of(round)?;
    let mut jobs = Vec::new();
    for task in tasks {
        let base = task
            .inputs
            .map_or_else(PathBuf::new, |inputs| directory.join(inputs));
        let name = PathBuf::from(format!("{}.toml", task.key));
        let scenario = Scenario::parse_in(&name, &task.scenario, &[], &base, registry)?;
        let job = Job::new(scenario, task.keep)?;
        if job.key != task.key {
            let problem = "this program is another build than the one that submitted the run";
            return Err(anyhow::anyhow!("{}: {problem}", task.key).into());
        }
        jobs.push(job);
    }
    let executor = Executor {
        store: &store,
        threads: 1,
        fresh: false,
        interrupted,
        observer,
    };
    executor.run(&jobs.iter().collect::<Vec<_>>())?.complete()?;
    Ok(())
}

/// Submits what a round has left undone, unless that was tried often enough; answers with how many
/// runs.
pub fn next_round(round: &Path) -> Result<usize, Failure> {
    let directory = round
        .parent()
        .context("a round is in a submission")?
        .to_owned();
    let path = round.join("round.json");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let finished: Round = serde_json::from_str(&text).context("a round is JSON")?;
    let submission = Submission {
        directory,
        store: &finished.store,
    };
    let queued = submission.queued()?;
    let mut missing = Vec::new();
    for task in 0..finished.tasks.len() {
        let is_missing =
            |task: &Task| !submission.is_done(&task.key, task.keep) && !queued.contains(&task.key);
        missing.extend(read_task(round, task)?.into_iter().filter(is_missing));
    }
    let count = missing.len();
    if count > 0 {
        if finished.attempt >= MOST_ATTEMPTS {
            let words = "runs are missing after the last round; see the logs, then submit again";
            return Err(anyhow::anyhow!("{count} {words}").into());
        }
        submission.begin(missing, &finished.cluster, finished.attempt + 1)?;
    }
    Ok(count)
}

fn read_task(round: &Path, task: usize) -> anyhow::Result<Vec<Task>> {
    let path = round.join(format!("task-{task}.json"));
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}", path.display()))
}

/// The store of a round. Slurm may start a task before `round.json` is there.
fn store_of(round: &Path) -> anyhow::Result<PathBuf> {
    let path = round.with_file_name("store");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(PathBuf::from(text.trim_end()))
}

/// Shares runs among tasks so that none has much more work than another: the longest first, each
/// to the task with the least.
fn share(mut tasks: Vec<Task>, count: usize) -> Vec<Vec<Task>> {
    let count = count.min(tasks.len()).max(1);
    tasks.sort_by_key(|task| std::cmp::Reverse(task.weight));
    let mut shares: Vec<(u64, Vec<Task>)> = (0..count).map(|_| (0, Vec::new())).collect();
    for task in tasks {
        if let Some((work, share)) = shares.iter_mut().min_by_key(|(work, _)| *work) {
            *work += task.weight;
            share.push(task);
        }
    }
    shares.into_iter().map(|(_, share)| share).collect()
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
