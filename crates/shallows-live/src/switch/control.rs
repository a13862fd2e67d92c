use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::{PortEvent, Snapshot};
use crate::xco::cluster::Cluster;

/// A handle of other threads to a running switch, or to another daemon with snapshots of its own:
/// they ask, and its loop answers in passing.
#[derive(Debug)]
pub struct Control<S = Snapshot>(Arc<Shared<S>>);

#[derive(Debug)]
struct Shared<S> {
    stop: AtomicBool,
    wanted: AtomicBool,
    latest: Mutex<(u64, Option<S>)>,
    answered: Condvar,
    events: Option<Sender<PortEvent>>,
    reload: OnceLock<Reload>,
    is_changed: AtomicBool,
    change: Mutex<Option<Box<Cluster>>>,
}

/// Reads the daemon's file again: what it changes, or why it is refused.
struct Reload(Box<dyn Fn() -> Result<String, String> + Send + Sync>);

impl Debug for Reload {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Reload(..)")
    }
}

impl<S> Clone for Control<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Default for Control<S> {
    fn default() -> Self {
        Self::new(None)
    }
}

impl<S> Control<S> {
    fn new(events: Option<Sender<PortEvent>>) -> Self {
        Self(Arc::new(Shared {
            stop: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            latest: Mutex::new((0, None)),
            answered: Condvar::new(),
            events,
            reload: OnceLock::new(),
            is_changed: AtomicBool::new(false),
            change: Mutex::new(None),
        }))
    }
}

impl<S: Clone> Control<S> {
    /// A control of a switch that tells `events` when a port is lost or back.
    pub fn with_events(events: Sender<PortEvent>) -> Self {
        Self::new(Some(events))
    }

    /// Sets how the daemon's file is read again; once.
    pub fn on_reload(&self, reload: impl Fn() -> Result<String, String> + Send + Sync + 'static) {
        // A second one would be a mistake of the program.
        let _ = self.0.reload.set(Reload(Box::new(reload)));
    }

    /// Reads the daemon's file again: what it changes, or why it is refused.
    pub fn reload(&self) -> Result<String, String> {
        let reload = self.0.reload.get();
        let reload = reload.ok_or("it has no file that can be read again while it runs")?;
        (reload.0)()
    }

    /// Has the daemon go on with another file, which it can.
    pub fn change(&self, cluster: Cluster) {
        let mut change = self.0.change.lock().unwrap_or_else(PoisonError::into_inner);
        *change = Some(Box::new(cluster));
        self.0.is_changed.store(true, Ordering::Release);
    }

    /// The file to go on with, if there is a new one.
    pub(crate) fn take_change(&self) -> Option<Box<Cluster>> {
        if !self.0.is_changed.load(Ordering::Relaxed) {
            return None;
        }
        self.0.is_changed.store(false, Ordering::Release);
        let mut change = self.0.change.lock().unwrap_or_else(PoisonError::into_inner);
        change.take()
    }

    /// Tells the switch to send what it holds and to end.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Release);
    }

    /// Current counters of the switch; `None` if it does not answer in time.
    pub fn snapshot(&self, patience: Duration) -> Option<S> {
        let latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let before = latest.0;
        self.0.wanted.store(true, Ordering::Release);
        let waiting = |latest: &mut (u64, Option<S>)| latest.0 == before;
        let answered = &self.0.answered;
        let (latest, timeout) = answered
            .wait_timeout_while(latest, patience, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return None;
        }
        latest.1.clone()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Acquire)
    }

    /// Returns whether somebody has asked since the last time.
    pub(crate) fn take_request(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) && self.0.wanted.swap(false, Ordering::AcqRel)
    }

    pub(super) fn tell(&self, event: PortEvent) {
        if let Some(events) = &self.0.events {
            // Nobody listens any more.
            let _ = events.send(event);
        }
    }

    pub(crate) fn answer(&self, snapshot: S) {
        let mut latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.0 += 1;
        latest.1 = Some(snapshot);
        self.0.answered.notify_all();
    }
}
