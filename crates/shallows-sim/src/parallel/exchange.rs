//! State shared by the shards of a run: clocks, mail and a barrier.
//!
//! A part's clock is a time before which it handles no more events. A part publishes the mail it
//! has sent before the clock that vouches for it, and takes mail after it has read the clocks, so
//! it never misses a packet.
//!
//! At a barrier all parts are at rest. Each brings the time of its next event, or of the first
//! packet in the mail that it sent and nobody has taken, and whether it wants to stop. The last to
//! arrive turns that into one [`Decision`], which is what every part leaves with: nothing that
//! changes after the barrier can be taken for a part of it.

use std::fmt::Debug;
use std::sync::atomic::Ordering;

use shallows_core::units::Time;

use super::platform::{Lock, Mutant, Platform, Word};

/// Packets on their way from one part to another.
pub(super) trait Mail: Debug + Default + Send {
    fn is_empty(&self) -> bool;
    /// Moves all of it to the end of another.
    fn append_to(&mut self, other: &mut Self);
    /// Arrival of the first of them.
    fn earliest(&self) -> Option<Time>;
}

/// State shared by all shards of a run.
#[derive(Debug)]
pub(super) struct Exchange<P: Platform, M: Mail> {
    clocks: Vec<Aligned<P::Word>>,
    /// Shortest time of a packet on its way: by receiver, then by sender.
    lookaheads: Vec<Vec<Time>>,
    /// Mail from each part to each, by `from * parts + to`.
    mail: Vec<P::Lock<M>>,
    sleepers: Vec<Aligned<Sleeper<P>>>,
    /// One while some part wants a barrier.
    requested: Aligned<P::Word>,
    barrier: P::Lock<Barrier>,
    /// Number of barriers passed.
    generation: Aligned<P::Word>,
    /// One once a part has panicked, and nobody should wait for it.
    broken: P::Word,
}

/// On cache lines of its own, because its owner writes it all the time.
#[derive(Debug)]
#[repr(align(128))]
struct Aligned<T>(T);

/// Handle to wake a shard's thread.
#[derive(Debug)]
struct Sleeper<P: Platform> {
    /// One while it sleeps or is about to.
    asleep: P::Word,
    thread: P::Lock<Option<P::Thread>>,
}

/// Contributions of the shards that have arrived at a barrier, and the decision of the last
/// barrier.
#[derive(Debug)]
struct Barrier {
    arrived: usize,
    gathered: Decision,
    decided: Decision,
}

/// Decision of a barrier, the same for all shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The time of the earliest event of all, or the greatest time.
    pub(super) earliest: Time,
    /// True if some part wants to stop.
    pub(super) stop: bool,
}

impl Decision {
    const NOTHING: Self = Self {
        earliest: Time::MAX,
        stop: false,
    };
}

impl<P: Platform, M: Mail> Exchange<P, M> {
    /// For as many parts as there are lookaheads from each of them to each.
    pub(super) fn new(lookaheads: &[Vec<Time>]) -> Self {
        let parts = lookaheads.len();
        let to_each = |to: usize| lookaheads.iter().map(|from| from[to]).collect();
        Self {
            clocks: (0..parts).map(|_| Aligned(Word::new(0))).collect(),
            lookaheads: (0..parts).map(to_each).collect(),
            mail: (0..parts * parts)
                .map(|_| Lock::new(M::default()))
                .collect(),
            sleepers: (0..parts).map(|_| Aligned(Sleeper::new())).collect(),
            requested: Aligned(Word::new(0)),
            barrier: Lock::new(Barrier {
                arrived: 0,
                gathered: Decision::NOTHING,
                decided: Decision::NOTHING,
            }),
            generation: Aligned(Word::new(0)),
            broken: Word::new(0),
        }
    }

    pub(super) fn parts(&self) -> usize {
        self.clocks.len()
    }

    /// Makes the calling thread the one of a part.
    pub(super) fn join(&self, part: usize) {
        let thread = P::current();
        self.sleepers[part].0.thread.with(|of| *of = Some(thread));
    }

    /// The time before which no more packets come to a part, at most `end`.
    #[inline]
    pub(super) fn horizon(&self, part: usize, end: Time) -> Time {
        let clocks = self.clocks.iter().zip(&self.lookaheads[part]).enumerate();
        let others = clocks.filter(|&(other, _)| other != part);
        others.fold(end, |horizon, (_, (clock, lookahead))| {
            let clock = clock.0.load(Ordering::Acquire);
            horizon.min(Time::from_ps(clock.saturating_add(lookahead.ps())))
        })
    }

    /// Takes what others have sent to a part.
    #[inline]
    pub(super) fn take_mail(&self, part: usize, mut receive: impl FnMut(&mut M)) {
        for from in self.others(part) {
            self.mail(from, part).with(|mail| {
                if !mail.is_empty() {
                    receive(mail);
                }
            });
        }
    }

    /// Sends mail, then says that the part handles no more events from before `clock`.
    #[inline]
    pub(super) fn publish(&self, part: usize, clock: Time, outbox: &mut [M]) {
        let own = &self.clocks[part].0;
        if P::MUTANT == Some(Mutant::EarlyClock) {
            own.store(clock.ps(), Ordering::Release);
        }
        for to in self.others(part) {
            let outgoing = &mut outbox[to];
            if !outgoing.is_empty() {
                self.mail(part, to).with(|mail| outgoing.append_to(mail));
            }
        }
        own.store(clock.ps(), Ordering::Release);
        self.wake_others(part);
    }

    /// Waits until a part may go further than `horizon`, all others are at `end`, or somebody wants
    /// a barrier.
    pub(super) fn await_horizon(&self, part: usize, horizon: Time, end: Time) {
        self.wait(part, || {
            self.is_barrier_requested()
                || self.horizon(part, end) > horizon
                || self.are_others_at(part, end)
        });
    }

    /// Returns whether the clocks of all other parts have come to `end`.
    pub(super) fn are_others_at(&self, part: usize, end: Time) -> bool {
        let mut others = self.others(part).map(|other| &self.clocks[other].0);
        others.all(|clock| clock.load(Ordering::Acquire) >= end.ps())
    }

    /// Asks all parts to come to a barrier.
    pub(super) fn request_barrier(&self, part: usize) {
        self.requested.0.store(1, Ordering::Release);
        self.wake_others(part);
    }

    #[inline]
    pub(super) fn is_barrier_requested(&self) -> bool {
        self.requested.0.load(Ordering::Acquire) != 0
    }

    /// Waits for all parts. `next` is the time of the part's next event; its mail must be sent, and
    /// what was sent to it before should be taken.
    #[cold]
    pub(super) fn arrive(&self, part: usize, next: Time, wants_stop: bool) -> Decision {
        let sent = self.others(part).map(|to| self.mail(part, to));
        let sent = sent.filter_map(|mail| mail.with(|mail| mail.earliest()));
        let next = sent.fold(next, Time::min);
        let generation = self.generation.0.load(Ordering::Relaxed);
        let is_last = self.barrier.with(|barrier| {
            barrier.arrived += 1;
            barrier.gathered.earliest = barrier.gathered.earliest.min(next);
            barrier.gathered.stop |= wants_stop;
            let is_last = barrier.arrived == self.parts();
            if is_last {
                barrier.arrived = 0;
                barrier.decided = barrier.gathered;
                barrier.gathered = Decision::NOTHING;
                // All others wait, so their clocks are at rest.
                for clock in &self.clocks {
                    let earliest = barrier.decided.earliest.ps();
                    clock.0.store(earliest, Ordering::Relaxed);
                }
                self.requested.0.store(0, Ordering::Relaxed);
                let passed = generation.wrapping_add(1);
                self.generation.0.store(passed, Ordering::Release);
            }
            is_last
        });
        if is_last {
            self.wake_others(part);
        } else {
            self.wait(part, || {
                self.generation.0.load(Ordering::Acquire) != generation
            });
        }
        self.barrier.with(|barrier| Decision {
            stop: if P::MUTANT == Some(Mutant::LateStop) {
                barrier.decided.stop || barrier.gathered.stop
            } else {
                barrier.decided.stop
            },
            ..barrier.decided
        })
    }

    /// Tells all that a part is gone, so that nobody waits for it.
    pub(super) fn abandon(&self, part: usize) {
        self.broken.store(1, Ordering::Release);
        self.wake_others(part);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire) != 0
    }

    /// Returns whether there is no mail that nobody has taken.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let mut mail = self.mail.iter();
        mail.all(|mail| mail.with(|mail| mail.is_empty()))
    }

    fn others(&self, part: usize) -> impl Iterator<Item = usize> + use<P, M> {
        (0..self.parts()).filter(move |&other| other != part)
    }

    fn mail(&self, from: usize, to: usize) -> &P::Lock<M> {
        &self.mail[from * self.parts() + to]
    }

    /// Waits until something holds that others bring about before they call
    /// [`wake_others`](Self::wake_others).
    fn wait(&self, part: usize, holds: impl Fn() -> bool) {
        let holds = || {
            assert!(!self.is_broken(), "another part has panicked");
            holds()
        };
        for _ in 0..P::SPINS {
            if holds() {
                return;
            }
            P::spin();
        }
        let sleeper = &self.sleepers[part].0;
        loop {
            sleeper.asleep.store(1, Ordering::Relaxed);
            // Either this part sees what the others did before they looked for sleepers, or they
            // see it asleep.
            P::fence();
            if P::MUTANT != Some(Mutant::HastySleep) && holds() {
                break;
            }
            P::park();
            if holds() {
                break;
            }
        }
        sleeper.asleep.store(0, Ordering::Relaxed);
    }

    /// Wakes all who wait, after something that they may wait for.
    #[inline]
    fn wake_others(&self, part: usize) {
        P::fence();
        for other in self.others(part) {
            let sleeper = &self.sleepers[other].0;
            if sleeper.asleep.load(Ordering::Relaxed) != 0 {
                sleeper.wake();
            }
        }
    }
}

impl<P: Platform> Sleeper<P> {
    fn new() -> Self {
        Self {
            asleep: Word::new(0),
            thread: Lock::new(None),
        }
    }

    #[cold]
    fn wake(&self) {
        if let Some(thread) = self.thread.with(|thread| thread.clone()) {
            P::unpark(&thread);
        }
    }
}
