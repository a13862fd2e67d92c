//! The estimate of an application's throughput (§8): its backlog at each level, had it sent
//! everything there.

use super::{Moment, Scale, UPPER_LEVELS};
use crate::units::Time;

/// A pause counts towards `settle` with this part of it at most.
const PAUSE_DIVISOR: u64 = 8;

/// Epochs after which what a sender sent counts no more, or after twice as many.
const WINDOW: u64 = 64;

/// Estimates how a sender's traffic would fare at each level.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    pub(super) waiting: [Waiting; UPPER_LEVELS],
    /// Since when the traffic has fit each level.
    pub(super) fits_since: [Time; UPPER_LEVELS],
    pub(super) last: Time,
    window: u64,
    /// Bytes of this window and of the one before.
    sent: [u64; 2],
    /// The largest packets of both.
    largest: [u32; 2],
}

/// Bytes that wait for the epochs to come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    pub(super) bytes: u64,
    /// The epoch of the last packet.
    epoch: u64,
}

impl Meter {
    pub(super) fn new(now: Time) -> Self {
        Self {
            waiting: [Waiting::default(); UPPER_LEVELS],
            fits_since: [now; UPPER_LEVELS],
            last: now,
            window: 0,
            sent: [0; 2],
            largest: [0; 2],
        }
    }

    pub(super) fn count(&mut self, at: Moment, bytes: u32, scale: &Scale) {
        self.roll(at);
        self.sent[0] += u64::from(bytes);
        self.largest[0] = self.largest[0].max(bytes);
        let pause = Time::from_ps(scale.settle.ps() / PAUSE_DIVISOR);
        let silence = (at.now - self.last).saturating_sub(pause);
        self.last = at.now;
        for (level, &allotment) in scale.allotments.iter().enumerate() {
            // Whole packets pass: the rest of an epoch's bytes is of no use.
            let packet = u64::from(self.largest[0].max(self.largest[1])).clamp(1, allotment);
            let drain = allotment / packet * packet;
            self.waiting[level].count(at, bytes, drain);
            // A sender that exceeds a level would not have got rid of more there.
            let most = (scale.patience + 1) * allotment;
            self.waiting[level].bytes = self.waiting[level].bytes.min(most);
            self.fits_since[level] = if self.fits(level, bytes, scale) {
                // Another sender's packet may have begun it anew within the silence.
                (self.fits_since[level] + silence).min(at.now)
            } else {
                at.now
            };
        }
    }

    /// Returns whether a packet that has been counted fits a level, with those before it.
    pub(super) fn fits(&self, level: usize, bytes: u32, scale: &Scale) -> bool {
        let allotment = scale.allotments[level];
        u64::from(bytes) <= allotment && self.waiting[level].bytes <= scale.patience * allotment
    }

    pub(super) fn has_fit(&self, now: Time, level: usize, doublings: u8, scale: &Scale) -> bool {
        now - self.fits_since[level] >= scale.settle(doublings)
    }

    /// Bytes sent in the window of `at` and in the one before.
    pub(super) fn recent(&self, at: Moment) -> u64 {
        let [this, before] = self.sent;
        match at.epoch / WINDOW - self.window {
            0 => this + before,
            1 => this,
            _ => 0,
        }
    }

    pub(super) fn roll(&mut self, at: Moment) {
        let window = at.epoch / WINDOW;
        match window - self.window {
            0 => return,
            1 => {
                self.sent = [0, self.sent[0]];
                self.largest = [0, self.largest[0]];
            }
            _ => {
                self.sent = [0; 2];
                self.largest = [0; 2];
            }
        }
        self.window = window;
    }
}

impl Waiting {
    pub(super) fn count(&mut self, at: Moment, bytes: u32, drain: u64) {
        self.bytes = self.after(at.epoch, drain) + u64::from(bytes);
        self.epoch = at.epoch;
    }

    /// Backlog left in a later epoch if each epoch drains `drain` bytes.
    pub(super) fn after(&self, epoch: u64, drain: u64) -> u64 {
        let drained = drain.saturating_mul(epoch - self.epoch);
        self.bytes.saturating_sub(drained)
    }
}
