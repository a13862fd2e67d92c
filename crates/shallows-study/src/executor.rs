//! Runs over the cores, with those that are done already left out.
//!
//! A store has a directory `<key>/` for each run, named by what determines it. A run is made in a
//! hidden directory beside that and gets its name when it is complete, so that several machines and
//! people may use one store: whoever is second finds the run there.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::{fs, process, thread};

use anyhow::{Context as _, anyhow};
use sha2::{Digest as _, Sha256};
use shallows_model::workload::WorkloadConfig;
use shallows_results::directory::hexadecimal;
use shallows_run::{BUILD_ID, Failure, Scenario};
use shallows_sim::Progress;

use crate::measured::{Keep, Kept, Measured};

/// Weight of a run of long-lived flows, beside the number of flows of others.
const LONG_LIVED: u64 = 200;

/// Hears how far many runs have come. Workers call it from their own threads.
pub trait Observer: Sync {
    /// Begins with `runs` runs to make, of which `kept` are there already; `work` is that of all.
    fn begin(&self, _runs: usize, _kept: usize, _work: u64) {}
    /// Progress of a worker's present run: the work done and the packet-hops so far.
    fn update(&self, _worker: usize, _work: f64, _hops: u64) {}
    /// A worker's run is complete.
    fn finish(&self, _worker: usize, _work: u64, _hops: u64) {}
    /// All runs are complete, or were interrupted.
    fn end(&self) {}
    /// A message for the user.
    fn note(&self, _words: &str) {}
}

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Equal for equal runs, whatever figure they are for.
    pub(crate) key: String,
    pub(crate) scenario: Scenario,
    pub(crate) keep: Keep,
    /// About how much work it is.
    pub(crate) weight: u64,
}

impl Job {
    pub(crate) fn new(scenario: Scenario, keep: Keep) -> Result<Self, Failure> {
        let (resolved, inputs) = scenario.config.resolved()?;
        let mut hash = Sha256::new();
        hash.update(&resolved);
        for input in inputs {
            hash.update(&input.content);
        }
        hash.update(BUILD_ID);
        if scenario.has_custom_schemes() {
            // The build id knows nothing of them.
            hash.update(program_hash()?);
        }
        Ok(Self {
            key: hexadecimal(&hash.finalize()[..10]),
            weight: weight(&scenario),
            scenario,
            keep,
        })
    }
}

/// The hash of the running program, which has the code of custom schemes.
fn program_hash() -> anyhow::Result<&'static [u8]> {
    static HASH: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(hash) = HASH.get() {
        return Ok(hash);
    }
    let program = std::env::current_exe().and_then(fs::read);
    let program = program.context("cannot read the running program")?;
    Ok(HASH.get_or_init(|| Sha256::digest(program).to_vec()))
}

fn weight(scenario: &Scenario) -> u64 {
    let workloads = scenario.config.workload.0.iter();
    let flows = workloads.map(|workload| match workload {
        WorkloadConfig::Poisson(poisson) => poisson.flows.unwrap_or(0),
        _ => LONG_LIVED,
    });
    flows.sum::<u64>().max(1)
}

/// Executor: location and parallelism of runs.
pub(crate) struct Executor<'a> {
    pub(crate) store: &'a Path,
    pub(crate) threads: usize,
    /// True if finished runs are made again.
    pub(crate) fresh: bool,
    pub(crate) interrupted: &'a AtomicBool,
    pub(crate) observer: &'a dyn Observer,
}

/// Outcome of some runs.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    /// By key.
    pub(crate) runs: BTreeMap<String, Arc<Measured>>,
    /// Those that could not be made, by key.
    pub(crate) failed: Vec<(String, Failure)>,
}

impl Finished {
    /// The runs if all could be made, or else the first failure.
    pub(crate) fn complete(self) -> Result<BTreeMap<String, Arc<Measured>>, Failure> {
        match self.failed.into_iter().next() {
            Some((_, failure)) => Err(failure),
            None => Ok(self.runs),
        }
    }
}

impl Executor<'_> {
    /// Makes every run that is not there yet. One that fails is reported and does not stop the
    /// others.
    pub(crate) fn run(&self, jobs: &[&Job]) -> Result<Finished, Failure> {
        let mut missing: BTreeMap<&str, &Job> = BTreeMap::new();
        for job in jobs {
            missing.entry(&job.key).or_insert(job);
        }
        let all: Vec<&Job> = missing.values().copied().collect();
        let mut runs = if self.fresh {
            BTreeMap::new()
        } else {
            self.kept(&all)
        };
        missing.retain(|key, _| !runs.contains_key(*key));
        let mut queue: Vec<&Job> = missing.into_values().collect();
        // The longest first, so that the last ones do not leave cores idle for long.
        queue.sort_by_key(|job| std::cmp::Reverse(job.weight));
        self.remove_half_made();
        let made = self.make(&queue, runs.len())?;
        runs.extend(made.runs);
        Ok(Finished {
            runs,
            failed: made.failed,
        })
    }

    /// The runs that are in the store.
    pub(crate) fn kept(&self, jobs: &[&Job]) -> BTreeMap<String, Arc<Measured>> {
        let found = Mutex::new(BTreeMap::new());
        self.share(jobs, |_, job| {
            let place = self.place(job);
            if let Some(measured) = Measured::open(&job.scenario, job.keep, &place) {
                lock(&found).insert(job.key.clone(), Arc::new(measured));
            }
            !self.interrupted.load(Ordering::Relaxed)
        });
        found.into_inner().unwrap_or_default()
    }

    fn make(&self, queue: &[&Job], kept: usize) -> Result<Finished, Failure> {
        let work = queue.iter().map(|job| job.weight).sum();
        self.observer.begin(queue.len(), kept, work);
        let done = Mutex::new(Finished::default());
        self.share(queue, |worker, job| {
            match catch_unwind(AssertUnwindSafe(|| self.make_one(job, worker))) {
                Ok(Ok(None) | Err(Failure::Interrupted | Failure::NotBegun)) => return false,
                Ok(Ok(Some(measured))) => {
                    let mut done = lock(&done);
                    done.runs.insert(job.key.clone(), Arc::new(measured));
                }
                Ok(Err(failure)) => self.failed(&done, job, worker, failure),
                Err(_) => self.failed(&done, job, worker, anyhow!("the run panicked").into()),
            }
            true
        });
        self.observer.end();
        let done = done.into_inner().unwrap_or_default();
        let count = done.runs.len() + done.failed.len();
        if count < queue.len() {
            let (count, all) = (kept + count, kept + queue.len());
            self.observer.note(&format!(
                "{count} of {all} runs are done and kept; the same command goes on from there"
            ));
            return Err(Failure::Interrupted);
        }
        Ok(done)
    }

    fn failed(&self, done: &Mutex<Finished>, job: &Job, worker: usize, failure: Failure) {
        self.observer.finish(worker, job.weight, 0);
        let command = job.scenario.command();
        self.observer
            .note(&format!("{failure}\n  in the run of: {command}"));
        lock(done).failed.push((job.key.clone(), failure));
    }

    /// Lets the workers take job after job, until one of them says false.
    fn share(&self, jobs: &[&Job], work: impl Fn(usize, &Job) -> bool + Sync) {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for worker in 0..self.threads.min(jobs.len()) {
                let (next, work) = (&next, &work);
                scope.spawn(move || {
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if !work(worker, job) {
                            next.store(jobs.len(), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
    }

    /// Makes a run and keeps it; nothing if it was interrupted.
    fn make_one(&self, job: &Job, worker: usize) -> Result<Option<Measured>, Failure> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let progress = self.observer;
        let flows = job.weight as f64;
        let until = job.scenario.config.until;
        let mut of_run = OfRun(|at: &Progress| {
            let fraction = match until {
                Some(until) => at.now.as_secs_f64() / until.as_secs_f64(),
                None => at.done as f64 / flows,
            };
            progress.update(worker, fraction * flows, at.packet_hops);
        });
        let half = HalfMade::new(self.store, job);
        let measured = Measured::run(
            &job.scenario,
            job.keep,
            &half.0,
            &mut of_run,
            self.interrupted,
        )?;
        let Some(mut measured) = measured else {
            return Ok(None);
        };
        let place = self.place(job);
        half.keep(&place, || {
            !self.fresh && Measured::open(&job.scenario, job.keep, &place).is_some()
        })?;
        measured.kept = match job.keep {
            Keep::All => Kept::Directory(place),
            Keep::Summary => Kept::Nowhere,
        };
        progress.finish(worker, job.weight, measured.summary.facts.packet_hops);
        Ok(Some(measured))
    }

    /// The directory of a run.
    pub(crate) fn place(&self, job: &Job) -> PathBuf {
        self.store.join(&job.key)
    }

    /// Removes what processes of this machine that are gone have left half made.
    fn remove_half_made(&self) {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        for entry in fs::read_dir(self.store).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_half_made(&name, host.trim())
                .is_some_and(|process| !Path::new("/proc").join(process).exists())
            {
                // Another process may be faster.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// The process that makes, or made, a run in a directory of this name on this machine.
fn is_half_made<'a>(name: &'a str, host: &str) -> Option<&'a str> {
    let name = name.strip_prefix('.')?;
    let mut parts = name.strip_suffix(".old").unwrap_or(name).rsplitn(3, '-');
    let (worker, process, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let of_host = rest.strip_suffix(host)?.strip_suffix('-')?;
    let is_ours = is_number(worker) && is_number(process) && !of_host.is_empty();
    is_ours.then_some(process)
}

/// The directory of a run in the making, which goes away if nothing comes of it.
pub(crate) struct HalfMade(pub(crate) PathBuf);

impl HalfMade {
    /// A directory that no other process or worker has, on any machine.
    pub(crate) fn new(store: &Path, job: &Job) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let (key, host, id) = (&job.key, host.trim(), process::id());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(store.join(format!(".{key}-{host}-{id}-{number}")))
    }

    /// Gives a complete run its name. One that another has made meanwhile is as good.
    pub(crate) fn keep(&self, place: &Path, is_there: impl Fn() -> bool) -> anyhow::Result<()> {
        if fs::rename(&self.0, place).is_ok() || is_there() {
            return Ok(());
        }
        // Incomplete, or to be made again.
        let aside = self.0.with_extension("old");
        let _ = fs::rename(place, &aside);
        let kept = fs::rename(&self.0, place);
        let _ = fs::remove_dir_all(&aside);
        kept.with_context(|| format!("cannot keep {}", place.display()))
    }
}

impl Drop for HalfMade {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Hears how far a run has come.
struct OfRun<F>(F);

impl<F: FnMut(&Progress)> shallows_run::Observer for OfRun<F> {
    fn progress(&mut self, progress: &Progress) {
        (self.0)(progress);
    }
}

/// Panics of runs are caught before they get here, so the data behind the lock is whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::is_half_made;

    #[test]
    fn only_runs_in_the_making_on_this_machine_are_taken_for_such() {
        assert_eq!(is_half_made(".0a1b-node-7-4211-0", "node-7"), Some("4211"));
        assert_eq!(
            is_half_made(".0a1b-node-7-4211-0.old", "node-7"),
            Some("4211")
        );
        for other in [
            "0a1b",
            ".0a1b-node-8-4211-0",
            ".git-node-7-x-0",
            ".-node-7-1-0",
            ".x",
        ] {
            assert_eq!(is_half_made(other, "node-7"), None, "{other}");
        }
    }
}
