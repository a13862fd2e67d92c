//! Asks all servers at once and goes on when all have answered: what partition/aggregate and
//! striped reads have in common.

use std::collections::BTreeMap;

use super::{Action, Application, Message, Outbox, Sample, Span, wait};
use crate::units::Time;

/// A client.
#[derive(Debug)]
pub(super) struct Gather {
    pub(super) name: &'static str,
    pub(super) asks: Vec<Ask>,
    pub(super) pace: GatherPace,
    /// Rounds that are still to begin.
    pub(super) left: u64,
    pub(super) span: Span,
    /// Start of the next round, unless it waits for the one before.
    next: Option<Time>,
    begun: u64,
    /// Rounds under way: their beginning, and how many answers are missing.
    open: BTreeMap<u64, (Time, usize)>,
    desk: Outbox,
}

/// Request to one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) connection: u32,
    pub(super) request: u64,
    pub(super) response: u64,
}

/// Rule for the start of the next round.
#[derive(Clone, Copy, Debug)]
pub(super) enum GatherPace {
    /// So long after the end of the one before.
    After(Time),
    /// Open loop: requests at a fixed interval.
    Every(Time),
}

impl Gather {
    pub(super) fn new(
        name: &'static str,
        asks: Vec<Ask>,
        pace: GatherPace,
        count: Option<u64>,
        span: Span,
    ) -> Self {
        Self {
            name,
            asks,
            pace,
            left: count.unwrap_or(u64::MAX),
            span,
            next: Some(span.start),
            begun: 0,
            open: BTreeMap::new(),
            desk: Outbox::default(),
        }
    }

    fn begin(&mut self, now: Time, due: Time) {
        self.left -= 1;
        let tag = self.begun;
        self.begun += 1;
        for ask in &self.asks {
            let message = Message {
                bytes: ask.request,
                kind: 0,
                tag,
                reply: ask.response,
            };
            self.desk.send(ask.connection, message);
        }
        self.open.insert(tag, (now, self.asks.len()));
        self.next = match self.pace {
            GatherPace::After(_) => None,
            GatherPace::Every(interval) => Some(due.saturating_add(interval)),
        };
    }
}

impl Application for Gather {
    fn poll(&mut self, now: Time) -> Action {
        if let Some(action) = self.desk.outbox.pop_front() {
            return action;
        }
        match self
            .next
            .filter(|&at| self.left > 0 && self.span.is_open(at))
        {
            Some(due) if due <= now => {
                self.begin(now, due);
                self.poll(now)
            }
            next => wait(next),
        }
    }

    fn delivered(&mut self, now: Time, _: u32, message: Message) {
        let Some((start, missing)) = self.open.get_mut(&message.tag) else {
            return;
        };
        *missing -= 1;
        if *missing == 0 {
            let start = *start;
            self.open.remove(&message.tag);
            self.desk.record(self.name, start, now);
            if let GatherPace::After(think) = self.pace {
                self.next = Some(now.saturating_add(think));
            }
        }
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        self.desk.take_samples()
    }
}
