//! The link behind a port that keeps queues.

use super::marker::Judge;
use crate::units::{Bytes, Rate, Time, TransmissionClock};

/// The link behind a port: until when it transmits, and since when it is idle.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Time at which the link is free again.
    pub(super) busy_until: Time,
    /// Up to when idle time has been told to the marker.
    idle_told: Time,
    pub(super) clock: TransmissionClock,
}

impl Link {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            busy_until: Time::ZERO,
            idle_told: Time::ZERO,
            clock: TransmissionClock::new(rate),
        }
    }

    /// Starts a transmission; when its last bit is on the wire.
    #[inline]
    pub(super) fn occupy(&mut self, now: Time, wire_size: u32) -> Time {
        if !self.clock.is_exact() && now > self.busy_until {
            self.clock.restart();
        }
        self.busy_until = now + self.clock.advance(Bytes::new(u64::from(wire_size)));
        self.busy_until
    }

    /// Tells the marker of an empty port how long the link has been silent.
    #[inline]
    pub(super) fn end_idle_time(&mut self, now: Time, marker: &mut impl Judge) {
        let since = self.busy_until.max(self.idle_told);
        if now >= since {
            marker.idle_ended(now - since);
            self.idle_told = now;
        }
    }
}
