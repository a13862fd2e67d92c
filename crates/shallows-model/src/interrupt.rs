//! A request to give up, polled by work that takes long.

use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

/// Steps of work between two polls: some milliseconds of it.
const STEPS: usize = 1 << 14;

/// Polled during long work, which ends early once it is set.
#[derive(Clone, Copy)]
pub enum Interrupt<'a> {
    /// The work runs to its end.
    Never,
    /// Set by another thread, or by a signal.
    Flag(&'a AtomicBool),
    /// Found out by a function, about a hundred times a second.
    Ask(&'a (dyn Fn() -> bool + Sync)),
}

/// The work was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt<'_> {
    /// Returns whether to give up.
    pub fn is_set(self) -> bool {
        match self {
            Self::Never => false,
            Self::Flag(flag) => flag.load(Ordering::Relaxed),
            Self::Ask(ask) => ask(),
        }
    }

    /// Polls now and then: `step` is the number of a step of the work.
    #[inline]
    pub fn check_at(self, step: usize) -> Result<(), Interrupted> {
        if step.is_multiple_of(STEPS) && self.is_set() {
            return Err(Interrupted);
        }
        Ok(())
    }

    /// Collects items, with room for all of them from the start.
    pub fn collect<T>(
        self,
        items: impl ExactSizeIterator<Item = T>,
    ) -> Result<Vec<T>, Interrupted> {
        let mut all = Vec::with_capacity(items.len());
        for item in items {
            self.check_at(all.len())?;
            all.push(item);
        }
        Ok(all)
    }
}

impl<'a> From<&'a AtomicBool> for Interrupt<'a> {
    fn from(flag: &'a AtomicBool) -> Self {
        Self::Flag(flag)
    }
}

impl Debug for Interrupt<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Interrupt({})", self.is_set())
    }
}
