//! Barrier at which the parts of a run wait for each other.
//!
//! At a barrier all parts are at rest. The last to arrive turns what they brought into one
//! [`Decision`], which is what every part leaves with: nothing that changes after the barrier can
//! be taken for a part of it.

use std::sync::atomic::Ordering;

use shallows_core::units::Time;

use super::platform::{Lock, Mutant, Platform, Word};

/// A barrier for all parts, and what it takes to wait for any other condition.
#[derive(Debug)]
pub(super) struct Barrier<P: Platform> {
    gathering: P::Lock<Gathering>,
    /// Number of barriers passed.
    generation: Aligned<P::Word>,
    sleepers: Vec<Aligned<Sleeper<P>>>,
    /// One once a part has panicked, and nobody should wait for it.
    broken: P::Word,
}

/// On cache lines of its own, because its owner writes it all the time.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Aligned<T>(pub(super) T);

/// Handle to wake a part's thread.
#[derive(Debug)]
struct Sleeper<P: Platform> {
    /// One while it sleeps or is about to.
    asleep: P::Word,
    thread: P::Lock<Option<P::Thread>>,
}

/// Contributions of the parts that have arrived at a barrier, and the decision of the last barrier.
#[derive(Debug)]
struct Gathering {
    arrived: usize,
    gathered: Decision,
    decided: Decision,
}

/// Contribution of a part to a barrier, and the barrier's decision, the same for all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The time of the earliest event of all, or the greatest time.
    pub(super) earliest: Time,
    /// True if some part wants to stop.
    pub(super) stop: bool,
}

impl Decision {
    pub(super) const NOTHING: Self = Self {
        earliest: Time::MAX,
        stop: false,
    };
}

impl<P: Platform> Barrier<P> {
    pub(super) fn new(parts: usize) -> Self {
        Self {
            gathering: Lock::new(Gathering {
                arrived: 0,
                gathered: Decision::NOTHING,
                decided: Decision::NOTHING,
            }),
            generation: Aligned(Word::new(0)),
            sleepers: (0..parts).map(|_| Aligned(Sleeper::new())).collect(),
            broken: Word::new(0),
        }
    }

    /// Makes the calling thread the one of a part.
    pub(super) fn join(&self, part: usize) {
        let thread = P::current();
        self.sleepers[part].0.thread.with(|of| *of = Some(thread));
    }

    /// Waits for all parts, at first for some spins without sleep. `decided` is called once, while
    /// all parts wait.
    pub(super) fn arrive(
        &self,
        part: usize,
        spins: u32,
        brought: Decision,
        decided: impl FnOnce(Decision),
    ) -> Decision {
        let generation = self.generation.0.load(Ordering::Relaxed);
        let is_last = self.gathering.with(|gathering| {
            gathering.arrived += 1;
            let gathered = &mut gathering.gathered;
            gathered.earliest = gathered.earliest.min(brought.earliest);
            gathered.stop |= brought.stop;
            let is_last = gathering.arrived == self.sleepers.len();
            if is_last {
                gathering.arrived = 0;
                gathering.decided = gathering.gathered;
                gathering.gathered = Decision::NOTHING;
                decided(gathering.decided);
                let passed = generation.wrapping_add(1);
                self.generation.0.store(passed, Ordering::Release);
            }
            is_last
        });
        if is_last {
            self.wake_others(part);
        } else {
            self.wait(part, spins, || {
                self.generation.0.load(Ordering::Acquire) != generation
            });
        }
        self.gathering.with(|gathering| Decision {
            stop: if P::MUTANT == Some(Mutant::LateStop) {
                gathering.decided.stop || gathering.gathered.stop
            } else {
                gathering.decided.stop
            },
            ..gathering.decided
        })
    }

    /// Tells all that a part is gone, so that nobody waits for it.
    pub(super) fn abandon(&self, part: usize) {
        self.broken.store(1, Ordering::Release);
        self.wake_others(part);
    }

    /// Waits until something holds that others bring about before they call
    /// [`wake_others`](Self::wake_others).
    pub(super) fn wait(&self, part: usize, spins: u32, holds: impl Fn() -> bool) {
        let holds = || {
            let is_broken = self.broken.load(Ordering::Acquire) != 0;
            assert!(!is_broken, "another part has panicked");
            holds()
        };
        for _ in 0..spins {
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
    pub(super) fn wake_others(&self, part: usize) {
        P::fence();
        for (other, sleeper) in self.sleepers.iter().enumerate() {
            if other != part && sleeper.0.asleep.load(Ordering::Relaxed) != 0 {
                sleeper.0.wake();
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
