//! The one loop that every simulation runs in, and who can look on.

use std::time::Duration;

use shallows_core::units::Time;
use shallows_model::Interrupt;
use shallows_results::record::Completeness;
use shallows_sim::{Observation, Progress, Simulation, Status};

use crate::failure::Failure;
use crate::platform::Stopwatch;

/// Events between two looks at the clock and at Ctrl-C: at first, and at most.
const FIRST_EVENTS: u64 = 10_000;
const MOST_EVENTS: u64 = 1_000_000;

/// Between two looks at Ctrl-C there are about as many events as take this long.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The end of any run: 200 of the clock's 213 days, so that what is timed from then on fits.
const END: Time = Time::from_secs(200 * 24 * 3600);

/// Looks on while a scenario is simulated. Every method does nothing by default.
pub trait Observer {
    /// Time of its next sample, if it takes one.
    fn next_sample(&self) -> Option<Time> {
        None
    }

    /// Looks at the simulation at `now`, the time that it asked for or that of another observer,
    /// and says whether the run goes on.
    fn sample(&mut self, _now: Time, _simulation: &Simulation) -> Result<Step, Failure> {
        Ok(Step::Continue)
    }

    /// Takes what was seen of packets up to `now`.
    fn observe(&mut self, _seen: &[Observation], _now: Time) -> Result<(), Failure> {
        Ok(())
    }

    /// Hears how far the run has come, several times a second.
    fn progress(&mut self, _progress: &Progress) {}

    /// Looks at the simulation after its last event.
    fn finish(&mut self, _simulation: &Simulation) -> Result<(), Failure> {
        Ok(())
    }
}

/// The observer's decision after a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The run goes on.
    Continue,
    /// The observer has seen all that the run was for.
    End,
}

/// Events of the next piece, after one that took a time.
fn next_piece(piece: u64, took: Duration) -> u64 {
    if took > 2 * LOOK_EVERY {
        (piece / 2).max(1)
    } else if took < LOOK_EVERY {
        (piece * 2).min(MOST_EVENTS)
    } else {
        piece
    }
}

/// Instants at equal distances.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    next: Time,
    every: Time,
}

impl Ticks {
    /// From `first` on. The distance must not be zero; one that is counts as a picosecond.
    pub fn new(first: Time, every: Time) -> Self {
        let every = every.max(Time::from_ps(1));
        Self { next: first, every }
    }

    /// The next one.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Returns whether `now` is one; then the next one is later.
    pub fn is_due(&mut self, now: Time) -> bool {
        let due = self.next == now;
        if due {
            self.next = now.saturating_add(self.every);
        }
        due
    }

    /// Returns whether one has passed by `now`; then the next one is later. For a clock that reads
    /// other instants too.
    pub fn has_passed(&mut self, now: Time) -> bool {
        let passed = self.next <= now;
        if passed {
            let since = (now - self.next) % self.every;
            self.next = (now - since).saturating_add(self.every);
        }
        passed
    }
}

/// Runs a simulation to its end, or `until` then, or until it is interrupted or an observer has
/// seen enough. Without observers it cannot be interrupted. Samples end with the last flow: after it
/// there are timers of no interest, for a long time.
pub fn drive(
    simulation: &mut Simulation,
    until: Option<Time>,
    observers: &mut [&mut dyn Observer],
    interrupted: Interrupt<'_>,
) -> Result<Completeness, Failure> {
    let end = until.unwrap_or(END).min(END);
    let flows = simulation.flows().len();
    // Several threads come together for every piece: no pieces where nobody looks on.
    let mut piece = match observers {
        [] => u64::MAX,
        _ => FIRST_EVENTS,
    };
    let completeness = loop {
        let done = flows > 0 && simulation.progress().done == flows;
        let next = observers.iter().filter_map(|of| of.next_sample()).min();
        let sample = next.filter(|&at| at <= end && !done);
        let clock = Stopwatch::start();
        let status = simulation.run(sample.unwrap_or(end), piece);
        piece = match status {
            Status::Running if !observers.is_empty() => next_piece(piece, clock.elapsed()),
            _ => piece,
        };
        let seen = simulation.take_observations();
        let progress = simulation.progress();
        for observer in &mut *observers {
            observer.observe(&seen, progress.now)?;
        }
        match (status, sample) {
            (Status::Finished, None) => break Completeness::Complete,
            (Status::Finished, Some(_)) if simulation.next_time().is_none() => {
                break Completeness::Complete;
            }
            (Status::Finished, Some(now)) => {
                let mut step = Step::Continue;
                for observer in &mut *observers {
                    if observer.sample(now, simulation)? == Step::End {
                        step = Step::End;
                    }
                }
                if step == Step::End {
                    break Completeness::Complete;
                }
            }
            (Status::Running, _) => {}
        }
        if interrupted.is_set() {
            break Completeness::Partial;
        }
        for observer in &mut *observers {
            observer.progress(&progress);
        }
    };
    for observer in observers {
        observer.finish(simulation)?;
    }
    Ok(completeness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_reads_other_instants_takes_the_first_after_each_tick() {
        let us = Time::from_us;
        let mut ticks = Ticks::new(us(10), us(10));
        let read = [0, 9, 10, 12, 19, 20, 47, 49, 51].map(us);
        let taken = read.into_iter().filter(|now| ticks.has_passed(*now));
        assert_eq!(taken.collect::<Vec<_>>(), [10, 20, 47, 51].map(us));
    }
}
