//! Rounds, one after the other: what barriers, shuffles and commits have in common.

use super::{Action, Span, wait};
use crate::units::Time;

/// The rounds of a member: each begins a think time after the end of the one before.
#[derive(Debug)]
pub(super) struct Rounds {
    span: Span,
    think: Time,
    count: Option<u64>,
    /// Number of the round under way, or of the next one.
    pub(super) number: u64,
    next: Option<Time>,
}

impl Rounds {
    pub(super) fn new(span: Span, think: Time, count: Option<u64>) -> Self {
        Self {
            span,
            think,
            count,
            number: 0,
            next: Some(span.start),
        }
    }

    /// Begins a round if one is due.
    pub(super) fn begin(&mut self, now: Time) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        if is_due {
            self.next = None;
        }
        is_due
    }

    /// The round under way has ended.
    pub(super) fn end(&mut self, now: Time) {
        self.number += 1;
        let goes_on = self.count.is_none_or(|count| self.number < count);
        self.next = goes_on.then(|| now.saturating_add(self.think));
    }

    /// The next action of a member without messages to send.
    pub(super) fn wait(&self) -> Action {
        wait(self.due())
    }

    fn due(&self) -> Option<Time> {
        self.next.filter(|&at| self.span.is_open(at))
    }
}
