//! The speed of threads, by which they are chosen or left.

use super::SHORT;

/// The speed of one thread and of all, and the time to try all again.
#[derive(Debug)]
pub(super) struct Pace {
    /// Events in a second on one thread; 0 if that is not known.
    alone: f64,
    /// Events to handle on one thread before all are tried again.
    pub(super) wait: u64,
    /// The same, after the next time that all were slower.
    next_wait: u64,
}

/// Events of a trial of all threads, and those on one thread after a first trial that was slower.
pub(super) const TRIAL: u64 = 20_000;
const FIRST_WAIT: u64 = 10 * TRIAL;
const LONGEST_WAIT: u64 = 100 * TRIAL;

/// A new measurement counts as much as all before it.
const NEW: f64 = 0.5;

impl Pace {
    pub(super) const NEW: Self = Self {
        alone: 0.0,
        wait: 0,
        next_wait: FIRST_WAIT,
    };

    /// One thread has handled events in some seconds; how many all threads should handle next.
    pub(super) fn was_alone(&mut self, events: u64, seconds: f64) -> u64 {
        self.wait = self.wait.saturating_sub(events);
        if events >= SHORT {
            let rate = events as f64 / seconds.max(1e-9);
            self.alone = if self.alone == 0.0 {
                rate
            } else {
                NEW * rate + (1.0 - NEW) * self.alone
            };
        }
        if self.wait > 0 { 0 } else { TRIAL }
    }

    /// All threads have handled events in some seconds; false if one would have been faster.
    pub(super) fn was_together(&mut self, events: u64, seconds: f64) -> bool {
        if events < SHORT || events as f64 >= self.alone * seconds {
            self.next_wait = FIRST_WAIT;
            return true;
        }
        self.wait = self.next_wait;
        self.next_wait = (2 * self.next_wait).min(LONGEST_WAIT);
        false
    }
}
