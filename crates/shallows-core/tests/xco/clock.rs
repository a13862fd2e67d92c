//! Clocks that start anywhere and drift.

use shallows_core::units::Time;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What it shows at the true time `since`.
    shows: Time,
    since: Time,
    /// Parts per million that it is fast.
    drift: i64,
}

impl Clock {
    pub(crate) fn new(shows: Time, drift: i64) -> Self {
        Self {
            shows,
            since: Time::ZERO,
            drift,
        }
    }

    /// What it shows at a true time.
    pub(crate) fn at(&self, now: Time) -> Time {
        let span = i128::from((now - self.since).ps());
        let shown = span + span * i128::from(self.drift) / 1_000_000;
        self.shows + Time::from_ps(u64::try_from(shown).expect("time goes on"))
    }

    /// A true time at which it shows at least `time`.
    pub(crate) fn reaches(&self, now: Time, time: Time) -> Time {
        let Some(wait) = time.ps().checked_sub(self.at(now).ps()) else {
            return now;
        };
        let span = u128::from(wait) * 1_000_000 / (1_000_000 + self.drift) as u128;
        now + Time::from_ps(
            u64::try_from(span)
                .unwrap_or(u64::MAX / 4)
                .min(u64::MAX / 4)
                + 2,
        )
    }

    /// Jumps by some milliseconds.
    pub(crate) fn jump(&mut self, now: Time, milliseconds: i64) {
        let shows = self.at(now);
        let by = Time::from_ms(milliseconds.unsigned_abs());
        self.since = now;
        self.shows = match milliseconds {
            ..0 => shows.saturating_sub(by),
            _ => shows + by,
        };
    }
}
