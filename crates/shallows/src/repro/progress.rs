//! One line for all runs.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Where the output is no terminal, a line this often.
const EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Overall {
    bar: ProgressBar,
    begun: Instant,
    runs: usize,
    kept: usize,
    work: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    runs: usize,
    work: f64,
    hops: u64,
    /// Work and packet-hops of each worker's present run.
    running: Vec<(f64, u64)>,
    printed: Duration,
}

impl Overall {
    /// For so many runs that are to be made and so much work in all of them.
    pub(super) fn new(runs: usize, kept: usize, work: u64) -> Self {
        let bar = ProgressBar::new(work);
        let style = ProgressStyle::with_template("{bar:24} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self {
            bar,
            begun: Instant::now(),
            runs,
            kept,
            work,
            state: Mutex::default(),
        }
    }

    /// A worker's run has come so far.
    pub(super) fn update(&self, worker: usize, work: f64, hops: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.running.len() <= worker {
            state.running.resize(worker + 1, (0.0, 0));
        }
        state.running[worker] = (work, hops);
        self.show(&mut state);
    }

    /// A worker's run is complete.
    pub(super) fn finish(&self, worker: usize, work: u64, hops: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = state.running.get_mut(worker) {
            *running = (0.0, 0);
        }
        state.runs += 1;
        state.work += work as f64;
        state.hops += hops;
        self.show(&mut state);
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self, state: &mut State) {
        let elapsed = self.begun.elapsed();
        let terminal = std::io::stderr().is_terminal();
        if !terminal && elapsed < state.printed + EVERY {
            return;
        }
        let work = state.work + state.running.iter().map(|(work, _)| work).sum::<f64>();
        let hops = state.hops + state.running.iter().map(|(_, hops)| hops).sum::<u64>();
        let fraction = work / self.work as f64;
        let message = self.describe(state.runs, elapsed.as_secs_f64(), fraction, hops);
        if terminal {
            self.bar.set_position(work as u64);
            self.bar.set_message(message);
        } else {
            state.printed = elapsed;
            eprintln!("{message}");
        }
    }

    fn describe(&self, done: usize, elapsed: f64, fraction: f64, hops: u64) -> String {
        let runs = self.runs;
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
