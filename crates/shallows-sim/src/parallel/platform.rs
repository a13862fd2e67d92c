//! Operations of an operating system that the exchange needs, so that a model checker can replace
//! it.

use std::fmt::Debug;
use std::hint;
use std::sync::atomic::{self, AtomicU64, Ordering};
use std::sync::{self, PoisonError};
use std::thread::{self, Thread};

/// Atomics, locks and waiting.
pub(super) trait Platform: Debug + 'static {
    /// An atomic number.
    type Word: Word;
    /// A value that one thread at a time may touch.
    type Lock<T: Debug + Send>: Lock<T>;
    /// A thread that can be woken.
    type Thread: Clone + Debug + Send;

    /// Looks at a condition before a waiting thread goes to sleep: about as long as it takes to
    /// wake it. A thread that yields instead loses its turn to everybody else on the machine.
    const SPINS: u32 = 256;
    /// The same where what a thread waits for takes long enough to spare it the sleep, but not so
    /// long that it would be a waste: parts of a window.
    const LONG_SPINS: u32 = 16 * Self::SPINS;
    /// A defect to put back, for a test that must find it.
    const MUTANT: Option<Mutant> = None;

    /// The calling thread.
    fn current() -> Self::Thread;
    /// Lets the calling thread sleep until it is woken, or for no reason at all.
    fn park();
    /// Wakes a thread, or keeps it from falling asleep the next time.
    fn unpark(thread: &Self::Thread);
    /// A sequentially consistent fence.
    fn fence();
    /// Passes a few cycles.
    fn spin();
}

/// Defects that the tests put back into the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// A part reads after a barrier whether somebody wants to stop by now.
    LateStop,
    /// A part goes to sleep without a second look.
    HastySleep,
    /// A part publishes its clock before the mail from before it.
    EarlyClock,
    /// There is one set of letter boxes for all meetings.
    OneSet,
}

pub(super) trait Word: Debug + Send + Sync {
    fn new(value: u64) -> Self;
    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, value: u64, ordering: Ordering);
}

pub(super) trait Lock<T>: Debug + Send + Sync {
    fn new(value: T) -> Self;
    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R;
}

/// Threads of the standard library.
#[derive(Debug)]
pub(super) struct Std;

impl Platform for Std {
    type Word = AtomicU64;
    type Lock<T: Debug + Send> = sync::Mutex<T>;
    type Thread = Thread;

    fn current() -> Thread {
        thread::current()
    }

    fn park() {
        thread::park();
    }

    fn unpark(thread: &Thread) {
        thread.unpark();
    }

    #[inline]
    fn fence() {
        atomic::fence(Ordering::SeqCst);
    }

    #[inline]
    fn spin() {
        hint::spin_loop();
    }
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        Self::new(value)
    }

    #[inline]
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    #[inline]
    fn store(&self, value: u64, ordering: Ordering) {
        self.store(value, ordering);
    }
}

impl<T: Debug + Send> Lock<T> for sync::Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        // A part that panics takes the run with it, so nobody reads what it left.
        act(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
