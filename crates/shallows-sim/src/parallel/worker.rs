//! The loop of one part.

use std::thread;

use shallows_core::units::Time;

use super::exchange::{Exchange, Mail};
use super::platform::Platform;

/// Number of steps without an event after which a shard asks for a barrier.
const PATIENCE: u32 = 16;

/// Looks at the others after which a part with too few events stops the run.
const LOOKS: u64 = 512;

/// A part of a simulation with events of its own.
pub(super) trait Part {
    type Mail: Mail;

    /// Events between two looks at the others.
    const BATCH: u64 = 128;
    /// Events in each look at the others, on average, that make it worth a thread.
    const WORTHWHILE: u64 = 4;

    /// Handles up to `most` events before `end`; how many there were.
    fn run(&mut self, end: Time, most: u64) -> u64;
    /// Time of the next event.
    fn next_time(&self) -> Option<Time>;
    /// A time that no event to come is before.
    fn clock(&self) -> Time;
    /// Takes over what other parts have sent.
    fn receive(&mut self, mail: &mut Self::Mail);
    /// For each part, what goes there.
    fn outbox(&mut self) -> &mut [Self::Mail];
}

/// Limit of a run in time or events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// The time before which to handle events.
    pub(super) end: Time,
    /// About how many of them a part handles at most.
    pub(super) events: u64,
}

/// The reason why a run has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There are no more events before the end.
    Finished,
    /// A part has handled as many as it should, or has too little to do for a thread.
    Stopped,
}

/// One part while its thread runs it.
pub(super) struct Worker<'a, P: Platform, S: Part> {
    pub(super) number: usize,
    pub(super) part: &'a mut S,
    pub(super) exchange: &'a Exchange<P, S::Mail>,
    pub(super) limit: Limit,
}

impl<P: Platform, S: Part> Drop for Worker<'_, P, S> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.exchange.abandon(self.number);
        }
    }
}

impl<P: Platform, S: Part> Worker<'_, P, S> {
    /// Handles events until the barrier at which all agree that it is enough.
    pub(super) fn run(mut self) -> Outcome {
        let (exchange, end) = (self.exchange, self.limit.end);
        exchange.join(self.number);
        // Clocks and mail are as the last run has left them.
        exchange.request_barrier(self.number);
        let (mut handled, mut fruitless) = (0, 0);
        let (mut looks, mut found, mut is_idle) = (0, 0, false);
        loop {
            if exchange.is_barrier_requested() {
                self.take_mail();
                let next = self.part.next_time().unwrap_or(Time::MAX);
                let wants_stop = is_idle || handled >= self.limit.events;
                let decision = exchange.arrive(self.number, next, wants_stop);
                if decision.earliest >= end || decision.stop {
                    // All have sent what they had to, and nothing may be left between parts.
                    self.take_mail();
                    return if decision.earliest >= end {
                        Outcome::Finished
                    } else {
                        Outcome::Stopped
                    };
                }
            }
            let horizon = exchange.horizon(self.number, end);
            self.take_mail();
            let count = self.work(horizon);
            handled += count;
            (looks, found) = (looks + 1, found + count);
            if looks == LOOKS {
                is_idle = found < looks * S::WORTHWHILE;
                (looks, found) = (0, 0);
            }
            if is_idle || handled >= self.limit.events {
                exchange.request_barrier(self.number);
            } else if count > 0 {
                fruitless = 0;
            } else if horizon == end && exchange.are_others_at(self.number, end)
                || fruitless == PATIENCE
            {
                // All are done, or clocks creep ahead by a lookahead at a time.
                fruitless = 0;
                exchange.request_barrier(self.number);
            } else {
                fruitless += 1;
                exchange.await_horizon(self.number, horizon, end);
            }
        }
    }

    /// Handles events before `horizon` until somebody wants a barrier; how many there were.
    fn work(&mut self, horizon: Time) -> u64 {
        let mut handled = 0;
        loop {
            let count = self.part.run(horizon, S::BATCH);
            handled += count;
            if count < S::BATCH {
                break;
            }
            self.publish(self.part.clock());
            if handled >= self.limit.events || self.exchange.is_barrier_requested() {
                return handled;
            }
        }
        let next = self.part.next_time().unwrap_or(Time::MAX);
        self.publish(next.min(horizon));
        handled
    }

    fn take_mail(&mut self) {
        let part = &mut *self.part;
        self.exchange
            .take_mail(self.number, |mail| part.receive(mail));
    }

    fn publish(&mut self, clock: Time) {
        self.exchange
            .publish(self.number, clock, self.part.outbox());
    }
}
