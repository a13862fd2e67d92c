//! Progress of a run: a line that is redrawn on a terminal, and a line per minute in a log.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use shallows_core::units::Time;
use shallows_run::Observer;
use shallows_sim::Progress;

use crate::output;
use crate::overall::EVERY;

/// A line that is redrawn in place, or printed every minute where the output is not a terminal.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    begun: Instant,
    until: Option<Time>,
    flows: usize,
    /// Time of the last line in a log.
    printed: Duration,
}

impl ProgressLine {
    pub(crate) fn new(flows: usize, until: Option<Time>) -> Self {
        let bar = ProgressBar::new(flows as u64);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} flows, {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self {
            bar,
            begun: Instant::now(),
            until,
            flows,
            printed: Duration::ZERO,
        }
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Completed fraction of the run: of its flows or, if it ends by the clock, of its time.
    fn fraction(&self, progress: &Progress) -> f64 {
        let flows = progress.done as f64 / self.flows as f64;
        let time = self
            .until
            .map(|until| progress.now.as_secs_f64() / until.as_secs_f64());
        flows.max(time.unwrap_or_default())
    }
}

impl Observer for ProgressLine {
    fn progress(&mut self, progress: &Progress) {
        let elapsed = self.begun.elapsed();
        let message = || describe(progress, elapsed, self.fraction(progress));
        if !self.bar.is_hidden() {
            self.bar.set_position(progress.done as u64);
            self.bar.set_message(message());
        } else if elapsed >= self.printed + EVERY {
            let (done, flows) = (progress.done, self.flows);
            output::note(format!("{done}/{flows} flows, {}", message()));
            self.printed = elapsed;
        }
    }
}

fn describe(progress: &Progress, elapsed: Duration, fraction: f64) -> String {
    let elapsed = elapsed.as_secs_f64();
    let simulated = progress.now.as_secs_f64() * 1e3;
    let rate = progress.packet_hops as f64 / elapsed / 1e6;
    let left = if fraction > 0.01 {
        format!("{:.0} s left", elapsed * (1.0 - fraction) / fraction)
    } else {
        "time left unknown".to_owned()
    };
    format!("{simulated:.2} ms simulated, {rate:.1} M packet-hops/s, {left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_time_rate_and_what_is_left() {
        let progress = Progress {
            now: Time::from_us(12_345),
            done: 1,
            packet_hops: 30_000_000,
            events: 0,
        };
        assert_eq!(
            describe(&progress, Duration::from_secs(3), 0.25),
            "12.35 ms simulated, 10.0 M packet-hops/s, 9 s left"
        );
    }
}
