//! What controllers and coordinators have to agree on.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::Time;

/// Times of the protocol. Controllers and coordinators must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Protocol {
    /// The longest time between two reports of a host, and between two beats of a controller.
    pub keepalive: Time,
    /// How soon a host repeats a report that was not acknowledged.
    pub retry: Time,
    /// After this long without a leader hosts send uncoordinated and the standby takes over; after
    /// this long without a report a host is taken to have left. A leader must have heard from most
    /// hosts within this time.
    pub silence: Time,
    /// The most that a clock goes wrong, in parts per million.
    pub drift: u32,
}

impl Default for Protocol {
    fn default() -> Self {
        Self {
            keepalive: Time::from_ms(100),
            retry: Time::from_ms(10),
            silence: Time::from_ms(500),
            drift: 200,
        }
    }
}

/// Why settings make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A time that must not be zero.
    #[error("{0} must be longer than 0")]
    Zero(&'static str),
    /// Hosts would leave between two reports.
    #[error("silence of {silence} must be at least four times keepalive, which is {keepalive}")]
    TooQuiet {
        /// See [`Protocol::silence`].
        silence: Time,
        /// See [`Protocol::keepalive`].
        keepalive: Time,
    },
    /// A clock that cannot be relied on at all.
    #[error("drift of {0} ppm is more than the 10000 that slots can allow for")]
    Drift(u32),
    /// A weight of zero would never send.
    #[error("host {0} has weight 0; use 1 to 16")]
    Weight(u32),
    /// A coordinator has nobody to ask.
    #[error("there is no controller")]
    NoController,
    /// A controller cannot be its own standby.
    #[error("controller {0} is given twice")]
    Twice(u32),
}

impl Protocol {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.keepalive == Time::ZERO {
            return Err(SettingsError::Zero("keepalive"));
        }
        if self.retry == Time::ZERO {
            return Err(SettingsError::Zero("retry"));
        }
        if self.silence < self.keepalive * 4 {
            return Err(SettingsError::TooQuiet {
                silence: self.silence,
                keepalive: self.keepalive,
            });
        }
        if self.drift > 10_000 {
            return Err(SettingsError::Drift(self.drift));
        }
        Ok(())
    }

    /// A span that is over on every clock when this one says so: four drifts, for the clocks of two
    /// who measure it and both directions.
    pub(super) fn stretch(&self, span: Time) -> Time {
        span + span / 1_000_000 * u64::from(4 * self.drift) + Time::from_us(1)
    }

    /// How far two clocks can drift apart in `span`.
    pub(super) fn drift_in(&self, span: Time) -> Time {
        span / 1_000_000 * u64::from(2 * self.drift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_drift_by_parts_of_a_million() {
        let protocol = Protocol::default();
        assert_eq!(protocol.drift_in(Time::from_secs(1)), Time::from_us(400));
        assert_eq!(
            protocol.stretch(Time::from_secs(1)),
            Time::from_secs(1) + Time::from_us(801)
        );
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let error = |change: fn(&mut Protocol)| {
            let mut protocol = Protocol::default();
            change(&mut protocol);
            protocol.check().unwrap_err().to_string()
        };
        assert_eq!(
            error(|p| p.keepalive = Time::ZERO),
            "keepalive must be longer than 0"
        );
        assert_eq!(
            error(|p| p.retry = Time::ZERO),
            "retry must be longer than 0"
        );
        assert_eq!(
            error(|p| p.silence = Time::from_ms(399)),
            "silence of 399ms must be at least four times keepalive, which is 100ms"
        );
        assert_eq!(
            error(|p| p.drift = 10_001),
            "drift of 10001 ppm is more than the 10000 that slots can allow for"
        );
        assert_eq!(Protocol::default().check(), Ok(()));
    }
}
