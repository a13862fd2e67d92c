//! Several parts of a fabric, each on a thread of its own.
//!
//! A part may handle its events up to the least time at which another part could still send it a
//! packet: that part's clock plus the [lookahead](crate::partition) between the two.
//!
//! Where nothing happens for long, clocks would creep ahead by a lookahead at a time. So a part
//! that has gone further several times and found nothing to do asks for a barrier, at which all
//! clocks are set to the earliest event of all.
//!
//! Pieces of a run that are too short for that, such as between two samples of a probe, run on the
//! calling thread.
//!
//! None of this changes a result. Which events a part sees in which order depends on their times
//! and keys alone.

mod exchange;
mod platform;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::{io, mem, panic, thread};

use shallows_core::units::Time;

use crate::shard::{Mail, Shard};
use exchange::Exchange;
use platform::Std;
use worker::{Limit, Outcome, Part, Worker};

/// The threads of a run. The thread that calls [`run`](Self::run) has the first part; the others
/// sleep in between.
#[derive(Debug)]
pub(crate) struct Crew {
    exchange: Arc<Exchange<Std, Mail>>,
    helpers: Vec<Helper>,
    lookaheads: Vec<Vec<Time>>,
    /// What the last piece had to do.
    last: Option<Piece>,
}

/// Some of a run: how many events it had in how much time.
#[derive(Clone, Copy, Debug)]
struct Piece {
    events: u64,
    span: Time,
}

/// Pieces of fewer events take less time on one thread than it takes to wake the others.
const SHORT: u64 = 2_000;

/// A thread that runs a part when it is given it.
#[derive(Debug)]
struct Helper {
    /// Gone when the thread should end.
    parts: Option<Sender<(Shard, Limit)>>,
    done: Receiver<Shard>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Crew {
    /// Threads for as many parts as there are lookaheads from each of them to each.
    pub(crate) fn new(lookaheads: &[Vec<Time>]) -> io::Result<Self> {
        let exchange = Arc::new(Exchange::new(lookaheads));
        let helpers = (1..lookaheads.len()).map(|part| Helper::new(part, &exchange));
        Ok(Self {
            helpers: helpers.collect::<io::Result<_>>()?,
            exchange,
            lookaheads: lookaheads.to_vec(),
            last: None,
        })
    }

    /// Handles about `events` events a part before `end`; true if there are none left.
    pub(crate) fn run(&mut self, shards: &mut Vec<Shard>, end: Time, events: u64) -> bool {
        let handled = |shards: &[Shard]| shards.iter().map(Shard::handled).sum::<u64>();
        let (from, before) = (earliest(shards), handled(shards));
        let limit = Limit { end, events };
        let outcome = match self.last {
            Some(last) if last.expected(end.saturating_sub(from)) < u128::from(SHORT) => {
                run_alone(shards, &self.lookaheads, limit)
            }
            _ => self.run_together(shards, limit),
        };
        self.last = Some(Piece {
            events: handled(shards) - before,
            span: earliest(shards).min(end).saturating_sub(from),
        });
        outcome == Outcome::Finished
    }

    /// Handles events on all threads.
    fn run_together(&mut self, shards: &mut Vec<Shard>, limit: Limit) -> Outcome {
        let mut shards_of_helpers = shards.drain(1..);
        for (helper, shard) in self.helpers.iter().zip(&mut shards_of_helpers) {
            helper.start(shard, limit);
        }
        drop(shards_of_helpers);
        let worker = Worker {
            number: 0,
            part: &mut shards[0],
            exchange: &*self.exchange,
            limit,
        };
        let ran = panic::catch_unwind(panic::AssertUnwindSafe(|| worker.run()));
        for helper in &mut self.helpers {
            shards.push(helper.finish());
        }
        match ran {
            Ok(outcome) => outcome,
            Err(panic) => panic::resume_unwind(panic),
        }
    }
}

impl Piece {
    /// How many events a piece of this length has, if it is like this one.
    fn expected(self, span: Time) -> u128 {
        u128::from(self.events) * u128::from(span.ps()) / u128::from(self.span.ps()).max(1)
    }
}

/// When the first event of all is, or the greatest time.
fn earliest(shards: &[Shard]) -> Time {
    let times = shards.iter().filter_map(Shard::next_time);
    times.min().unwrap_or(Time::MAX)
}

/// Handles events on the calling thread: in turns, each part up to the time before which no other
/// can send it anything.
fn run_alone(shards: &mut [Shard], lookaheads: &[Vec<Time>], limit: Limit) -> Outcome {
    let mut handled = 0;
    loop {
        let earliest = earliest(shards);
        if earliest >= limit.end {
            return Outcome::Finished;
        }
        if handled >= limit.events {
            return Outcome::Stopped;
        }
        for to in 0..shards.len() {
            let others = (0..shards.len()).filter(|&from| from != to);
            let horizon = others.fold(limit.end, |horizon, from| {
                horizon.min(earliest.saturating_add(lookaheads[from][to]))
            });
            handled += shards[to].run(horizon, u64::MAX);
        }
        for from in 0..shards.len() {
            for to in 0..shards.len() {
                let mut mail = mem::take(&mut shards[from].outbox[to]);
                shards[to].receive(&mut mail);
                shards[from].outbox[to] = mail;
            }
        }
    }
}

impl Helper {
    fn new(number: usize, exchange: &Arc<Exchange<Std, Mail>>) -> io::Result<Self> {
        let (parts, given) = mpsc::channel::<(Shard, Limit)>();
        let (give_back, done) = mpsc::channel();
        let exchange = Arc::clone(exchange);
        let thread = thread::Builder::new().name(format!("part {number}"));
        let thread = thread.spawn(move || {
            for (mut shard, limit) in given {
                let worker = Worker {
                    number,
                    part: &mut shard,
                    exchange: &*exchange,
                    limit,
                };
                worker.run();
                if give_back.send(shard).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            parts: Some(parts),
            done,
            thread: Some(thread),
        })
    }

    fn start(&self, shard: Shard, limit: Limit) {
        // If its thread has panicked, the part does not come back, which is where that is told.
        if let Some(parts) = &self.parts {
            let _ = parts.send((shard, limit));
        }
    }

    /// Waits for the part to come back.
    fn finish(&mut self) -> Shard {
        match (self.done.recv(), self.thread.take()) {
            (Ok(shard), thread) => {
                self.thread = thread;
                shard
            }
            (Err(_), Some(thread)) => match thread.join() {
                Err(panic) => panic::resume_unwind(panic),
                Ok(()) => unreachable!("a thread ends when its channels do"),
            },
            (Err(_), None) => panic!("a thread has panicked before"),
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.parts = None;
        if let Some(thread) = self.thread.take() {
            // What it panicked with has been told.
            let _ = thread.join();
        }
    }
}

impl exchange::Mail for Mail {
    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn append_to(&mut self, other: &mut Self) {
        self.append_to(other);
    }

    fn earliest(&self) -> Option<Time> {
        self.earliest()
    }
}

impl Part for Shard {
    type Mail = Mail;

    #[inline]
    fn run(&mut self, end: Time, most: u64) -> u64 {
        self.run(end, most)
    }

    fn next_time(&self) -> Option<Time> {
        self.next_time()
    }

    fn clock(&self) -> Time {
        self.clock()
    }

    fn receive(&mut self, mail: &mut Mail) {
        self.receive(mail);
    }

    fn outbox(&mut self) -> &mut [Mail] {
        &mut self.outbox
    }
}
