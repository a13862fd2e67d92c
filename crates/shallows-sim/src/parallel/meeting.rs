//! Parts that run in windows: they meet, hand over their mail, and go on.
//!
//! A window has several stages, and after each but the last all parts meet. What a part has sent in
//! a stage lies ready when the meeting is over, and it is taken before the next one. A part that is
//! ahead may already send mail of the next stage while another takes that of the last, so there are
//! two sets of letter boxes, and stages use them in turns.

use std::thread;

use shallows_core::units::Time;

use super::barrier::{Barrier, Decision};
use super::exchange::Mail;
use super::platform::{Lock, Mutant, Platform};
use super::worker::{Limit, Outcome};

/// Windows after which a part with too few events stops the run.
const LOOKS: u64 = 64;

/// A part of a simulation that runs in windows.
pub(super) trait Windowed {
    type Mail: Mail;

    /// Number of stages in a window: the same for all parts.
    fn stages(&self) -> usize;
    /// Begins a window, if there is time before `end`: all parts agree.
    fn begin_window(&mut self, end: Time) -> bool;
    /// Runs a stage; how many events there were.
    fn run_stage(&mut self, stage: usize) -> u64;
    /// A time before which nothing happens, but for what it has sent; zero if it may be soon.
    fn quiet_until(&self, events: u64) -> Time;
    /// Ends a window. Nothing happens in any part before `earliest`.
    fn end_window(&mut self, earliest: Time);
    /// Takes over what other parts have sent.
    fn receive(&mut self, mail: &mut Self::Mail);
    /// For each part, what goes there.
    fn outbox(&mut self) -> &mut [Self::Mail];
}

/// State shared by all parts of a run in windows.
#[derive(Debug)]
pub(super) struct Meeting<P: Platform, M: Mail> {
    parts: usize,
    /// Two sets of mail from each part to each, by `from * parts + to`.
    mail: [Vec<P::Lock<M>>; 2],
    barrier: Barrier<P>,
}

impl<P: Platform, M: Mail> Meeting<P, M> {
    pub(super) fn new(parts: usize) -> Self {
        let boxes = || (0..parts * parts).map(|_| Lock::new(M::default()));
        Self {
            parts,
            mail: [boxes().collect(), boxes().collect()],
            barrier: Barrier::new(parts),
        }
    }

    /// Returns whether there is no mail that nobody has taken.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let mut mail = self.mail.iter().flatten();
        mail.all(|mail| mail.with(|mail| mail.is_empty()))
    }
}

/// One part while its thread runs it.
pub(super) struct Member<'a, P: Platform, S: Windowed> {
    pub(super) number: usize,
    pub(super) part: &'a mut S,
    pub(super) meeting: &'a Meeting<P, S::Mail>,
    pub(super) limit: Limit,
    /// Events in a window, on average, that make it worth a thread.
    pub(super) worthwhile: u64,
}

impl<P: Platform, S: Windowed> Drop for Member<'_, P, S> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.meeting.barrier.abandon(self.number);
        }
    }
}

impl<P: Platform, S: Windowed> Member<'_, P, S> {
    /// Runs windows until all agree that it is enough.
    pub(super) fn run(mut self) -> Outcome {
        self.meeting.barrier.join(self.number);
        let end = self.limit.end;
        let (mut handled, mut looks, mut found, mut is_idle) = (0, 0, 0, false);
        let mut turn = 0;
        while self.part.begin_window(end) {
            let mut count = self.part.run_stage(0);
            let (mut decision, mut has_mail) = (Decision::NOTHING, false);
            for stage in 1..self.part.stages() {
                let wants_stop = is_idle || handled + count >= self.limit.events;
                decision = self.meet(turn, count, &mut has_mail, wants_stop);
                turn = 1 - turn;
                count += self.part.run_stage(stage);
            }
            self.part.end_window(decision.earliest.min(end));
            handled += count;
            (looks, found) = (looks + 1, found + count);
            if looks == LOOKS {
                is_idle = found < looks * self.worthwhile;
                (looks, found) = (0, 0);
            }
            if decision.stop {
                return Outcome::Stopped;
            }
        }
        Outcome::Finished
    }

    /// Hands over the mail of a stage, waits for the others, and takes theirs. `has_mail` is true
    /// from the first mail of a window on.
    fn meet(&mut self, turn: usize, count: u64, has_mail: &mut bool, wants_stop: bool) -> Decision {
        let Meeting {
            parts,
            mail,
            barrier,
        } = self.meeting;
        let others = || (0..*parts).filter(|&other| other != self.number);
        let turn = if P::MUTANT == Some(Mutant::OneSet) {
            0
        } else {
            turn
        };
        for to in others() {
            let outgoing = &mut self.part.outbox()[to];
            if !outgoing.is_empty() {
                *has_mail = true;
                mail[turn][self.number * parts + to].with(|mail| outgoing.append_to(mail));
            }
        }
        let brought = Decision {
            // What is in the mail arrives in this window.
            earliest: if *has_mail {
                Time::ZERO
            } else {
                self.part.quiet_until(count)
            },
            stop: wants_stop,
        };
        let decision = barrier.arrive(self.number, P::LONG_SPINS, brought, |_| {});
        for from in others() {
            mail[turn][from * parts + self.number].with(|mail| {
                if !mail.is_empty() {
                    *has_mail = true;
                    self.part.receive(mail);
                }
            });
        }
        decision
    }
}

/// Runs windows on the calling thread, all parts in turns. Answers with the number of turns as well.
pub(super) fn run_alone<S: Windowed>(parts: &mut [S], limit: Limit) -> (Outcome, u64) {
    let (mut handled, mut turns) = (0, 0);
    while handled < limit.events {
        if !parts.iter_mut().all(|part| part.begin_window(limit.end)) {
            return (Outcome::Finished, turns);
        }
        turns += parts.len() as u64;
        let mut counts = vec![0; parts.len()];
        for stage in 0..parts[0].stages() {
            for (part, count) in parts.iter_mut().zip(&mut counts) {
                *count += part.run_stage(stage);
            }
            exchange_mail(parts);
        }
        let quiet = parts.iter().zip(&counts);
        let earliest = quiet.map(|(part, &count)| part.quiet_until(count)).min();
        let earliest = earliest.unwrap_or(Time::MAX).min(limit.end);
        for part in parts.iter_mut() {
            part.end_window(earliest);
        }
        handled += counts.iter().sum::<u64>();
    }
    (Outcome::Stopped, turns)
}

fn exchange_mail<S: Windowed>(parts: &mut [S]) {
    for from in 0..parts.len() {
        for to in 0..parts.len() {
            if !parts[from].outbox()[to].is_empty() {
                let mut mail = std::mem::take(&mut parts[from].outbox()[to]);
                parts[to].receive(&mut mail);
                parts[from].outbox()[to] = mail;
            }
        }
    }
}
