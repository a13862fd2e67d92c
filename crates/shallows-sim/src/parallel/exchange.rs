//! State shared by the parts of a run by events: clocks, mail and a barrier.
//!
//! A part's clock is a time before which it handles no more events. A part publishes the mail it
//! has sent before the clock that vouches for it, and takes mail after it has read the clocks, so
//! it never misses a packet.
//!
//! To the [barrier](super::barrier) each brings the time of its next event, or of the first packet
//! in the mail that it sent and nobody has taken, and whether it wants to stop.

use std::fmt::Debug;
use std::sync::atomic::Ordering;

use shallows_core::units::Time;

use super::barrier::{Aligned, Barrier, Decision};
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
    /// One while some part wants a barrier.
    requested: Aligned<P::Word>,
    barrier: Barrier<P>,
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
            requested: Aligned(Word::new(0)),
            barrier: Barrier::new(parts),
        }
    }

    pub(super) fn parts(&self) -> usize {
        self.clocks.len()
    }

    /// Makes the calling thread the one of a part.
    pub(super) fn join(&self, part: usize) {
        self.barrier.join(part);
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
        self.barrier.wake_others(part);
    }

    /// Waits until a part may go further than `horizon`, all others are at `end`, or somebody wants
    /// a barrier.
    pub(super) fn await_horizon(&self, part: usize, horizon: Time, end: Time) {
        self.barrier.wait(part, P::SPINS, || {
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
        self.barrier.wake_others(part);
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
        let decided = |decision: Decision| {
            // All others wait, so their clocks are at rest.
            for clock in &self.clocks {
                clock.0.store(decision.earliest.ps(), Ordering::Relaxed);
            }
            self.requested.0.store(0, Ordering::Relaxed);
        };
        let brought = Decision {
            earliest: next,
            stop: wants_stop,
        };
        self.barrier.arrive(part, P::SPINS, brought, decided)
    }

    /// Tells all that a part is gone, so that nobody waits for it.
    pub(super) fn abandon(&self, part: usize) {
        self.barrier.abandon(part);
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
}
