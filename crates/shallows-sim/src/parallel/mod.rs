//! Several parts of a fabric, each on a thread of its own.
//!
//! In [layers](crate::layers) parts run the same windows, and [meet](meeting) between two layers
//! where packets cross from one part to another, most often once a window. By events there are no
//! windows: a part may handle its events up to the least time at which another part could still
//! send it a packet: that part's clock plus the [lookahead](crate::partition) between the two.
//!
//! Where nothing happens for long, clocks would creep ahead by a lookahead at a time. So a part
//! that has gone further several times and found nothing to do asks for a barrier, at which all
//! clocks are set to the earliest event of all.
//!
//! Pieces of a run that are too short for that, such as between two samples of a probe, run on the
//! calling thread. So does sparse traffic: where the parts have a few events in each window or
//! lookahead, waiting for each other would take much longer than the work. How dense it is shows in a few
//! thousand events on the calling thread, now and then; threads that find little to do stop. And so
//! does all traffic while the machine is too busy for threads that wait for each other: they are
//! timed, and where one thread is faster they are tried again ever more rarely.
//!
//! None of this changes a result. Which events a part sees in which order depends on their times
//! and keys alone.

mod barrier;
mod exchange;
mod meeting;
mod pace;
mod platform;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;
use std::{io, mem, panic, thread};

use shallows_core::units::Time;
use shallows_model::Id as _;

use crate::ids::ShardId;
use crate::layers::EngineChoice;
use crate::shard::{Mail, Shard};
use exchange::Exchange;
use meeting::{Meeting, Member, Windowed};
use pace::{Pace, TRIAL};
use platform::Std;
use worker::{Limit, Outcome, Part, Worker};

/// Synchronization of the parts of a run.
#[derive(Debug)]
pub(crate) enum Ties {
    /// As many parts meet in every window.
    Windows(u32),
    /// Shortest time of a packet from each part to each.
    Lookaheads(Vec<Vec<Time>>),
}

impl Ties {
    fn parts(&self) -> usize {
        match self {
            Self::Windows(parts) => *parts as usize,
            Self::Lookaheads(lookaheads) => lookaheads.len(),
        }
    }
}

/// The threads of a run. The thread that calls [`run`](Self::run) has the first part; the others
/// sleep in between.
#[derive(Debug)]
pub(crate) struct Crew {
    shared: Arc<Shared>,
    helpers: Vec<Helper>,
    /// Size of the last piece of work.
    last: Option<Piece>,
    /// Events that all threads handle before the traffic is looked at again.
    stretch: u64,
    /// Events that all threads have handled.
    together: u64,
    /// None if all threads are demanded, however fast they are.
    pace: Option<Pace>,
}

/// State shared by all threads.
#[derive(Debug)]
enum Shared {
    Windows {
        meeting: Meeting<Std, Mail>,
        /// Events of a part in a window that are worth a thread, fewer if an engine is demanded.
        dense: u64,
    },
    Events {
        exchange: Exchange<Std, Mail>,
        /// Shortest time of a packet to each part.
        lookaheads: Vec<Time>,
        /// The same in a lookahead.
        dense: u64,
    },
}

impl Shared {
    fn new(ties: &Ties, is_demanded: bool) -> Self {
        match ties {
            Ties::Windows(parts) => Self::Windows {
                meeting: Meeting::new(*parts as usize),
                dense: if is_demanded { DEMANDED } else { DENSE },
            },
            Ties::Lookaheads(lookaheads) => {
                let to_part = |to: usize| {
                    let others = (0..lookaheads.len()).filter(|&from| from != to);
                    others.map(|from| lookaheads[from][to]).min()
                };
                let to_parts = (0..lookaheads.len()).map(|to| to_part(to).unwrap_or(Time::MAX));
                Self::Events {
                    exchange: Exchange::new(lookaheads),
                    lookaheads: to_parts.collect(),
                    dense: if is_demanded { DEMANDED } else { DENSE },
                }
            }
        }
    }

    /// Runs a part on the calling thread while others run theirs.
    fn run(&self, number: usize, part: &mut Shard, limit: Limit) -> Outcome {
        match self {
            Self::Windows { meeting, dense } => {
                let member = Member {
                    number,
                    part,
                    meeting,
                    limit,
                    worthwhile: dense / 2,
                };
                member.run()
            }
            Self::Events { exchange, .. } => {
                let worker = Worker {
                    number,
                    part,
                    exchange,
                    limit,
                };
                worker.run()
            }
        }
    }

    /// Runs all parts on the calling thread, in turns. Answers with whether it was sparse as well.
    fn run_alone(&self, parts: &mut [Shard], limit: Limit) -> (Outcome, bool) {
        let before = handled(parts);
        let (outcome, turns, dense) = match self {
            Self::Windows { dense, .. } => {
                let (outcome, turns) = meeting::run_alone(parts, limit);
                (outcome, turns, *dense)
            }
            Self::Events {
                lookaheads, dense, ..
            } => {
                let (outcome, turns) = run_alone(parts, lookaheads, limit);
                // Parts that have much to do overtake each other by two lookaheads.
                (outcome, turns, 2 * *dense)
            }
        };
        (outcome, handled(parts) - before < dense * turns)
    }
}

/// Events that all parts have handled.
fn handled(parts: &[Shard]) -> u64 {
    parts.iter().map(Shard::handled).sum()
}

/// Some of a run: how many events it had in how much time.
#[derive(Clone, Copy, Debug)]
struct Piece {
    events: u64,
    span: Time,
}

/// Pieces of fewer events take less time on one thread than it takes to wake the others. As many
/// show how dense the traffic is.
const SHORT: u64 = 2_000;

/// Events of a part in a window or a lookahead from which on it is worth a thread: it runs for some
/// microseconds between two meetings. With fewer, the parts wait for each other longer than they
/// work, and what packets between them cost is more than a second thread brings.
pub(crate) const DENSE: u64 = 256;

/// The same, where an engine is demanded: threads run though one may be faster.
const DEMANDED: u64 = 16;

/// Events of a part between two looks at the traffic.
const STRETCH: u64 = 500_000;

/// A thread that runs a part when it is given it.
#[derive(Debug)]
struct Helper {
    /// Gone when the thread should end.
    parts: Option<Sender<(Shard, Limit)>>,
    done: Receiver<Shard>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Crew {
    /// Threads for all parts; none for a single one. If an engine is demanded, they are not left for
    /// one thread because that is faster.
    pub(crate) fn new(ties: &Ties, engine: EngineChoice) -> io::Result<Option<Self>> {
        if ties.parts() == 1 {
            return Ok(None);
        }
        let is_demanded = engine != EngineChoice::Automatic;
        let shared = Arc::new(Shared::new(ties, is_demanded));
        let helpers = (1..ties.parts()).map(|part| Helper::new(part, &shared));
        Ok(Some(Self {
            helpers: helpers.collect::<io::Result<_>>()?,
            shared,
            last: None,
            stretch: 0,
            together: 0,
            pace: (!is_demanded).then_some(Pace::NEW),
        }))
    }

    /// Handles about `events` events a part before `end`; true if there are none left.
    pub(crate) fn run(&mut self, shards: &mut Vec<Shard>, end: Time, events: u64) -> bool {
        let mut left = events;
        while left > 0 {
            let (outcome, handled) = self.run_piece(shards, end, left);
            if outcome == Outcome::Finished {
                return true;
            }
            left = left.saturating_sub(handled);
        }
        false
    }

    /// Handles some events, in the way that is the faster one for the traffic; how many a part.
    fn run_piece(&mut self, shards: &mut Vec<Shard>, end: Time, events: u64) -> (Outcome, u64) {
        let (from, before) = (earliest(shards), handled(shards));
        let span = end.saturating_sub(from);
        let is_short = |last: Piece| last.expected(span) < u128::from(SHORT);
        let clock = Instant::now();
        let outcome = if self.stretch == 0 || self.last.is_some_and(is_short) {
            let wait = self.pace.as_ref().map_or(0, |pace| pace.wait);
            let events = events.min(SHORT.max(wait));
            let (outcome, is_sparse) = self.shared.run_alone(shards, Limit { end, events });
            let events = handled(shards) - before;
            self.stretch = match &mut self.pace {
                _ if is_sparse => 0,
                None => STRETCH,
                Some(pace) => pace.was_alone(events, clock.elapsed().as_secs_f64()),
            };
            outcome
        } else {
            let most = events.min(self.stretch);
            let of_parts: Vec<u64> = shards.iter().map(Shard::handled).collect();
            let outcome = self.run_together(shards, Limit { end, events: most });
            self.together += handled(shards) - before;
            let seconds = clock.elapsed().as_secs_f64();
            let pace = self.pace.as_mut();
            let is_faster =
                pace.is_none_or(|of| of.was_together(handled(shards) - before, seconds));
            let of_parts = shards.iter().zip(of_parts);
            let events = of_parts
                .map(|(shard, before)| shard.handled() - before)
                .max();
            // A part that stops early has too little to do.
            let is_sparse = outcome == Outcome::Stopped && events < Some(most);
            self.stretch = match events {
                Some(events) if !is_sparse && is_faster => match self.stretch {
                    TRIAL => STRETCH,
                    stretch => stretch.saturating_sub(events),
                },
                _ => 0,
            };
            outcome
        };
        let events = handled(shards) - before;
        self.last = Some(Piece {
            events,
            span: earliest(shards).min(end).saturating_sub(from),
        });
        (outcome, events.div_ceil(shards.len() as u64).max(1))
    }

    /// Number of events that all threads handled, without those that the calling thread handled for
    /// all.
    pub(crate) fn together(&self) -> u64 {
        self.together
    }

    /// Handles events on all threads.
    fn run_together(&mut self, shards: &mut Vec<Shard>, limit: Limit) -> Outcome {
        let mut shards_of_helpers = shards.drain(1..);
        for (helper, shard) in self.helpers.iter().zip(&mut shards_of_helpers) {
            helper.start(shard, limit);
        }
        drop(shards_of_helpers);
        let run = || self.shared.run(0, &mut shards[0], limit);
        let ran = panic::catch_unwind(panic::AssertUnwindSafe(run));
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
    /// Expected number of events in a piece of this length, if it is like this one.
    fn expected(self, span: Time) -> u128 {
        u128::from(self.events) * u128::from(span.ps()) / u128::from(self.span.ps()).max(1)
    }
}

/// Time of the first event of all, or the greatest time.
fn earliest(shards: &[Shard]) -> Time {
    let times = shards.iter().filter_map(Shard::next_time);
    times.min().unwrap_or(Time::MAX)
}

/// Handles events on the calling thread, in turns: the part with the earliest event goes on to the
/// time before which no other can send it anything. Answers with the number of turns as well.
fn run_alone(shards: &mut [Shard], lookaheads: &[Time], limit: Limit) -> (Outcome, u64) {
    let next_of = |shard: &Shard| shard.next_time().unwrap_or(Time::MAX);
    let mut nexts: Vec<Time> = shards.iter().map(next_of).collect();
    let (mut handled, mut turns) = (0, 0);
    loop {
        let (mut first, mut earliest) = (0, Time::MAX);
        for (part, &next) in nexts.iter().enumerate() {
            if next < earliest {
                (first, earliest) = (part, next);
            }
        }
        if earliest >= limit.end {
            return (Outcome::Finished, turns);
        }
        if handled >= limit.events {
            return (Outcome::Stopped, turns);
        }
        turns += 1;
        let mut horizon = Time::MAX;
        for (part, (&next, &lookahead)) in nexts.iter().zip(lookaheads).enumerate() {
            if part != first {
                // Its next event is one of its own, or one that somebody sends it from now on.
                horizon = horizon.min(next.min(earliest + lookahead));
            }
        }
        let horizon = limit.end.min(horizon + lookaheads[first]);
        handled += shards[first].run(horizon, u64::MAX);
        for to in 0..shards.len() {
            let outbox = &mut shards[first].outbox[ShardId::new(to as u32)];
            if !outbox.is_empty() {
                let mut mail = mem::take(outbox);
                shards[to].receive(&mut mail);
                shards[first].outbox[ShardId::new(to as u32)] = mail;
                nexts[to] = next_of(&shards[to]);
            }
        }
        nexts[first] = next_of(&shards[first]);
    }
}

impl Helper {
    fn new(number: usize, shared: &Arc<Shared>) -> io::Result<Self> {
        let (parts, given) = mpsc::channel::<(Shard, Limit)>();
        let (give_back, done) = mpsc::channel();
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name(format!("part {number}"));
        let thread = thread.spawn(move || {
            for (mut shard, limit) in given {
                shared.run(number, &mut shard, limit);
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
        self.outbox.as_mut_slice()
    }
}

impl Windowed for Shard {
    type Mail = Mail;

    fn stages(&self) -> usize {
        self.stages()
    }

    fn begin_window(&mut self, end: Time) -> bool {
        self.begin_window(end)
    }

    fn run_stage(&mut self, stage: usize) -> u64 {
        self.run_stage(stage)
    }

    fn quiet_until(&self, events: u64) -> Time {
        self.quiet_until(events)
    }

    fn end_window(&mut self, earliest: Time) {
        self.end_window(earliest);
    }

    fn receive(&mut self, mail: &mut Mail) {
        self.receive(mail);
    }

    fn outbox(&mut self) -> &mut [Mail] {
        self.outbox.as_mut_slice()
    }
}
