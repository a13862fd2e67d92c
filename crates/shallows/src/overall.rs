//! Progress of many runs.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use shallows_study::Observer;

use crate::output;

/// Interval between lines of progress where the output is not a terminal.
pub(crate) const EVERY: Duration = Duration::from_secs(60);

/// One line for all runs.
#[derive(Debug, Default)]
pub(crate) struct Overall {
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    bar: ProgressBar,
    begun: Instant,
    /// Runs to be made and their work; those that are there already.
    all: usize,
    all_work: u64,
    kept: usize,
    /// Finished runs, work and packet-hops.
    runs: usize,
    work: f64,
    hops: u64,
    /// Work and packet-hops of each worker's present run.
    running: Vec<(f64, u64)>,
    printed: Duration,
}

impl Observer for Overall {
    fn begin(&self, runs: usize, kept: usize, work: u64) {
        let bar = ProgressBar::new(work);
        let style = ProgressStyle::with_template("{bar:24} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(State {
            bar,
            begun: Instant::now(),
            all: runs,
            all_work: work,
            kept,
            runs: 0,
            work: 0.0,
            hops: 0,
            running: Vec::new(),
            printed: Duration::ZERO,
        });
    }

    fn update(&self, worker: usize, work: f64, hops: u64) {
        self.change(|state| {
            if state.running.len() <= worker {
                state.running.resize(worker + 1, (0.0, 0));
            }
            state.running[worker] = (work, hops);
        });
    }

    fn finish(&self, worker: usize, work: u64, hops: u64) {
        self.change(|state| {
            if let Some(running) = state.running.get_mut(worker) {
                *running = (0.0, 0);
            }
            state.runs += 1;
            state.work += work as f64;
            state.hops += hops;
        });
    }

    fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = state.take() {
            state.bar.finish_and_clear();
        }
    }

    fn note(&self, words: &str) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            Some(state) => state.bar.suspend(|| output::note(words)),
            None => output::note(words),
        }
    }
}

impl Overall {
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = &mut *state {
            change(state);
            state.show();
        }
    }
}

impl State {
    fn show(&mut self) {
        let elapsed = self.begun.elapsed();
        let terminal = std::io::stderr().is_terminal();
        if !terminal && elapsed < self.printed + EVERY {
            return;
        }
        let work = self.work + self.running.iter().map(|(work, _)| work).sum::<f64>();
        let hops = self.hops + self.running.iter().map(|(_, hops)| hops).sum::<u64>();
        let fraction = work / self.all_work as f64;
        let message = self.describe(elapsed.as_secs_f64(), fraction, hops);
        if terminal {
            self.bar.set_position(work as u64);
            self.bar.set_message(message);
        } else {
            self.printed = elapsed;
            output::note(&message);
        }
    }

    fn describe(&self, elapsed: f64, fraction: f64, hops: u64) -> String {
        let (done, runs) = (self.runs, self.all);
        let kept = match self.kept {
            0 => String::new(),
            kept => format!(" ({kept} kept from before)"),
        };
        let rate = hops as f64 / elapsed.max(1e-3) / 1e6;
        let left = if fraction > 0.01 {
            let seconds = elapsed * (1.0 - fraction).max(0.0) / fraction;
            match seconds {
                long if long > 5400.0 => format!("{:.1} h left", long / 3600.0),
                some if some > 90.0 => format!("{:.0} min left", some / 60.0),
                few => format!("{few:.0} s left"),
            }
        } else {
            "time left unknown".to_owned()
        };
        format!("{done}/{runs} runs{kept}, {rate:.1} M packet-hops/s, {left}")
    }
}
