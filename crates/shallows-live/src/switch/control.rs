use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{PortEvent, Snapshot};

/// How other threads talk to a running switch: they ask, and its loop answers in passing.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    wanted: AtomicBool,
    latest: Mutex<(u64, Option<Snapshot>)>,
    answered: Condvar,
    events: Option<Sender<PortEvent>>,
}

impl Control {
    /// A control of a switch that tells `events` when a port is lost or back.
    pub fn with_events(events: Sender<PortEvent>) -> Self {
        Self(Arc::new(Shared {
            events: Some(events),
            ..Shared::default()
        }))
    }

    /// Tells the switch to send what it holds and to end.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Release);
    }

    /// What the switch counts now; `None` if it does not answer in time.
    pub fn snapshot(&self, patience: Duration) -> Option<Snapshot> {
        let latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let before = latest.0;
        self.0.wanted.store(true, Ordering::Release);
        let waiting = |latest: &mut (u64, Option<Snapshot>)| latest.0 == before;
        let answered = &self.0.answered;
        let (latest, timeout) = answered
            .wait_timeout_while(latest, patience, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return None;
        }
        latest.1.clone()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Acquire)
    }

    /// Whether somebody has asked since the last time.
    pub(super) fn take_request(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) && self.0.wanted.swap(false, Ordering::AcqRel)
    }

    pub(super) fn tell(&self, event: PortEvent) {
        if let Some(events) = &self.0.events {
            // Nobody listens any more.
            let _ = events.send(event);
        }
    }

    pub(super) fn answer(&self, snapshot: Snapshot) {
        let mut latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.0 += 1;
        latest.1 = Some(snapshot);
        self.0.answered.notify_all();
    }
}
