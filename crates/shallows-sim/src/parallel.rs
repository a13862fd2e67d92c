//! Several parts of a fabric, each on a thread of its own.
//!
//! A part may handle its events up to the least time at which another part could still send it a
//! packet: that part's clock plus the [lookahead](crate::partition) between the two. A part's clock
//! is a time before which it has nothing more to do. It publishes what it has sent before the clock
//! that says so, and takes mail after it has read the clocks, so it never misses a packet.
//!
//! Where nothing happens for long, clocks would creep ahead by a lookahead at a time. So a part
//! that finds no work for a while asks for a *meeting*: all parts stop, and since none has mail
//! under way then, all clocks can be set to the earliest event of all.
//!
//! None of this changes a result. Which events a part sees in which order depends on their times
//! and keys alone.

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{panic, thread};

use shallows_core::units::Time;

use crate::shard::{Mail, Shard};

/// Events between two looks at the others.
const AT_A_TIME: u64 = 128;
/// Looks without an event before a meeting is asked for.
const PATIENCE: u32 = 64;
/// Looks without success before the processor is offered to somebody else.
const SPINS: u32 = 64;

/// Handles about `most` events a part before `end`; true if there are none left.
pub(crate) fn run(shards: &mut [Shard], lookaheads: &[Vec<Time>], end: Time, most: u64) -> bool {
    let exchange = Exchange::new(shards.len());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(shards)
            .map(|(part, shard)| {
                let mut worker = Worker {
                    part,
                    last: shard.handled().saturating_add(most),
                    shard,
                    exchange: &exchange,
                    from_each: lookaheads.iter().map(|to| to[part]).collect(),
                    end,
                };
                scope.spawn(move || worker.run())
            })
            .collect();
        let mut ends = threads.into_iter().map(|thread| match thread.join() {
            Ok(finished) => finished,
            Err(panic) => panic::resume_unwind(panic),
        });
        ends.all(|finished| finished)
    })
}

/// What the threads share.
#[derive(Debug)]
struct Exchange {
    clocks: Vec<Clock>,
    /// Mail from each part to each, by `from * parts + to`.
    mail: Vec<Mutex<Mail>>,
    /// Whether somebody wants to meet, and then to stop.
    meeting: AtomicBool,
    stop: AtomicBool,
    /// How often a part has come to where all wait for each other.
    gathered: AtomicU32,
    /// Whether a part has panicked, and nobody should wait for it.
    broken: AtomicBool,
    /// The next event of each part, told at a meeting.
    next: Vec<AtomicU64>,
}

/// On cache lines of its own, because its owner writes it all the time.
#[derive(Debug)]
#[repr(align(128))]
struct Clock(AtomicU64);

impl Exchange {
    fn new(parts: usize) -> Self {
        Self {
            clocks: (0..parts).map(|_| Clock(AtomicU64::new(0))).collect(),
            mail: (0..parts * parts).map(|_| Mutex::default()).collect(),
            meeting: AtomicBool::new(true),
            stop: AtomicBool::new(false),
            gathered: AtomicU32::new(0),
            broken: AtomicBool::new(false),
            next: (0..parts).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn parts(&self) -> usize {
        self.clocks.len()
    }

    fn mail(&self, from: usize, to: usize) -> MutexGuard<'_, Mail> {
        // A thread that panics takes the run with it, so nobody reads what it left.
        let mail = self.mail[from * self.parts() + to].lock();
        mail.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all parts are here, for the `round`th time.
    fn gather(&self, round: u32) {
        let all = round * self.parts() as u32;
        self.gathered.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        while self.gathered.load(Ordering::Acquire) < all {
            assert!(
                !self.broken.load(Ordering::Relaxed),
                "another part has panicked"
            );
            pause(&mut spins);
        }
    }
}

/// A moment, or after many of them the time slice.
fn pause(spins: &mut u32) {
    *spins += 1;
    if *spins > SPINS {
        *spins = 0;
        thread::yield_now();
    } else {
        hint::spin_loop();
    }
}

/// One part and its thread.
struct Worker<'a> {
    part: usize,
    shard: &'a mut Shard,
    exchange: &'a Exchange,
    /// How long a packet is at least on its way from each part to this one.
    from_each: Vec<Time>,
    end: Time,
    /// The number of the event after which to stop.
    last: u64,
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.exchange.broken.store(true, Ordering::Relaxed);
        }
    }
}

impl Worker<'_> {
    /// Runs until the end, or until somebody wants to stop; true at the end.
    fn run(&mut self) -> bool {
        let (mut idle, mut spins, mut round) = (0, 0, 0);
        loop {
            if self.exchange.meeting.load(Ordering::Acquire) {
                round += 3;
                let earliest = self.meet(round);
                if earliest >= self.end || self.exchange.stop.load(Ordering::Relaxed) {
                    return earliest >= self.end;
                }
            }
            let horizon = self.horizon();
            self.take_mail();
            let before = self.shard.handled();
            self.work(horizon);
            if self.shard.handled() > before {
                idle = 0;
                continue;
            }
            idle += 1;
            if idle > PATIENCE {
                idle = 0;
                self.exchange.meeting.store(true, Ordering::Release);
            }
            pause(&mut spins);
        }
    }

    /// Handles events before `horizon`.
    fn work(&mut self, horizon: Time) {
        while self.shard.run(horizon, AT_A_TIME) == AT_A_TIME {
            self.publish(self.shard.clock());
            if self.shard.handled() > self.last {
                self.exchange.stop.store(true, Ordering::Relaxed);
                self.exchange.meeting.store(true, Ordering::Release);
            }
            if self.exchange.meeting.load(Ordering::Relaxed) {
                return;
            }
        }
        let next = self.shard.next_time().unwrap_or(Time::MAX);
        self.publish(next.min(horizon));
    }

    /// Up to when no packet can come any more.
    fn horizon(&self) -> Time {
        let others = (0..self.exchange.parts()).filter(|&part| part != self.part);
        others.fold(self.end, |horizon, part| {
            let clock = self.exchange.clocks[part].0.load(Ordering::Acquire);
            let ahead = self.from_each[part];
            horizon.min(Time::from_ps(clock.saturating_add(ahead.ps())))
        })
    }

    fn take_mail(&mut self) {
        for from in (0..self.exchange.parts()).filter(|&from| from != self.part) {
            let mut mail = self.exchange.mail(from, self.part);
            if !mail.is_empty() {
                self.shard.receive(&mut mail);
            }
        }
    }

    /// Sends the mail, and says that nothing more comes from before `clock`.
    fn publish(&mut self, clock: Time) {
        for to in (0..self.exchange.parts()).filter(|&to| to != self.part) {
            let outgoing = &mut self.shard.outbox[to];
            if !outgoing.is_empty() {
                outgoing.append_to(&mut self.exchange.mail(self.part, to));
            }
        }
        let own = &self.exchange.clocks[self.part].0;
        own.store(clock.ps(), Ordering::Release);
    }

    /// Agrees with all others on the time that it is.
    #[cold]
    fn meet(&mut self, round: u32) -> Time {
        let exchange = self.exchange;
        exchange.gather(round - 2);
        // Nobody sends anything from here to the last gathering.
        self.take_mail();
        let next = self.shard.next_time().unwrap_or(Time::MAX);
        exchange.next[self.part].store(next.ps(), Ordering::Relaxed);
        exchange.gather(round - 1);
        exchange.meeting.store(false, Ordering::Relaxed);
        let nexts = exchange
            .next
            .iter()
            .map(|next| next.load(Ordering::Relaxed));
        let earliest = nexts.min().unwrap_or(u64::MAX);
        exchange.clocks[self.part]
            .0
            .store(earliest, Ordering::Relaxed);
        exchange.gather(round);
        Time::from_ps(earliest)
    }
}
