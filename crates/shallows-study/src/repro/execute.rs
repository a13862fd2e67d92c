//! Runs over the cores, with those that are done already left out.
//!
//! The record of a run is kept in `runs/<key>/`; its summary appears when it is complete.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::Observer;
use shallows_run::Failure;
use shallows_sim::Progress;

use super::measured::Measured;
use super::plan::{Job, Plan};
/// Where and how runs are made.
pub(super) struct Executor<'a> {
    pub(super) directory: &'a Path,
    pub(super) threads: usize,
    /// Whether finished runs are made again.
    pub(super) fresh: bool,
    pub(super) interrupted: &'a AtomicBool,
    pub(super) observer: &'a dyn Observer,
}

/// Results by key.
type Finished = BTreeMap<String, Arc<Measured>>;

impl Executor<'_> {
    /// Makes every run of the plans that is not there yet.
    pub(super) fn run(&self, plans: &[Plan]) -> Result<Finished, Failure> {
        let mut finished = Finished::new();
        let mut missing: BTreeMap<&str, &Job> = BTreeMap::new();
        for job in plans.iter().flat_map(|plan| &plan.jobs) {
            match self.kept(job) {
                Some(measured) if !self.fresh => {
                    finished.insert(job.key.clone(), Arc::new(measured));
                }
                _ => {
                    missing.insert(&job.key, job);
                }
            }
        }
        let mut queue: Vec<&Job> = missing.into_values().collect();
        // The longest first, so that the last ones do not leave cores idle for long.
        queue.sort_by_key(|job| std::cmp::Reverse(job.weight));
        let made = self.make(&queue, finished.len())?;
        finished.extend(made);
        Ok(finished)
    }

    fn make(&self, queue: &[&Job], kept: usize) -> Result<Finished, Failure> {
        let work = queue.iter().map(|job| job.weight).sum();
        self.observer.begin(queue.len(), kept, work);
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Finished::new());
        let failed: Mutex<Option<Failure>> = Mutex::new(None);
        thread::scope(|scope| {
            for worker in 0..self.threads.min(queue.len()) {
                let (next, done, failed) = (&next, &done, &failed);
                scope.spawn(move || {
                    while let Some(job) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                        match self.make_one(job, worker) {
                            Ok(Some(measured)) => {
                                lock(done).insert(job.key.clone(), Arc::new(measured));
                            }
                            Ok(None) => return,
                            Err(failure) => {
                                lock(failed).get_or_insert(failure);
                                // The others need not go on.
                                next.store(queue.len(), Ordering::Relaxed);
                                return;
                            }
                        }
                    }
                });
            }
        });
        self.observer.end();
        if let Some(failure) = lock(&failed).take() {
            return Err(failure);
        }
        let done = std::mem::take(&mut *lock(&done));
        if done.len() < queue.len() {
            let (done, all) = (kept + done.len(), kept + queue.len());
            self.observer.note(&format!(
                "{done} of {all} runs are done and kept; the same command goes on from there"
            ));
            return Err(Failure::Interrupted);
        }
        Ok(done)
    }

    /// Makes a run and keeps it; nothing if it was interrupted.
    fn make_one(&self, job: &Job, worker: usize) -> Result<Option<Measured>, Failure> {
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
        let measured = Measured::run(
            &job.scenario,
            job.goodput,
            &self.place(job),
            &mut of_run,
            self.interrupted,
        )?;
        if let Some(measured) = &measured {
            progress.finish(worker, job.weight, measured.summary.facts.packet_hops);
        }
        Ok(measured)
    }

    fn kept(&self, job: &Job) -> Option<Measured> {
        Measured::open(&job.scenario, &self.place(job))
    }

    /// The directory of a run.
    pub(super) fn place(&self, job: &Job) -> PathBuf {
        self.directory.join("runs").join(&job.key)
    }
}

/// Hears how far a run has come.
struct OfRun<F>(F);

impl<F: FnMut(&Progress)> shallows_run::Observer for OfRun<F> {
    fn progress(&mut self, progress: &Progress) {
        (self.0)(progress);
    }
}

/// A worker that panics takes the whole command with it, so the data behind the lock is whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
