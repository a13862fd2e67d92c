//! Parameters that controllers and coordinators must share.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::controller::MOST_WEIGHT;
use crate::units::Time;

/// Times of the protocol. Controllers and coordinators must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Protocol {
    /// Longest time between two reports of a host, and between two heartbeats of a controller.
    pub keepalive: Time,
    /// Time after which a host repeats an unacknowledged report.
    pub retry: Time,
    /// After this long without a leader hosts send uncoordinated and the standby takes over; after
    /// this long without a report a host is taken to have left. A leader must have heard from most
    /// hosts within this time.
    pub silence: Time,
    /// Largest clock drift, in parts per million.
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

/// Coordination on demand (§6, "Active and On-demand Coordination"): hosts measure what they send to
/// each destination and report what is large; only large pairs that cross a link near congestion
/// need permission. Controllers and coordinators must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OnDemand {
    /// Window over which hosts measure rates.
    pub window: Time,
    /// The least rate of a pair that is reported, and the least change, in percent of the host's
    /// link.
    pub large: u32,
    /// A link nears congestion when the reported rates reach this percentage of its capacity and
    /// their hosts could together exceed it (eq. 1).
    pub enter: u32,
    /// It is calm again when they have been below this percentage for `calm`.
    pub leave: u32,
    /// Duration of `leave`.
    pub calm: Time,
}

impl Default for OnDemand {
    fn default() -> Self {
        Self {
            window: Time::from_ms(1),
            large: 5,
            enter: 80,
            leave: 50,
            calm: Time::from_ms(20),
        }
    }
}

impl OnDemand {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.window == Time::ZERO {
            return Err(SettingsError::Zero("window"));
        }
        let percentages = [
            ("large", self.large),
            ("enter", self.enter),
            ("leave", self.leave),
        ];
        for (key, value) in percentages {
            if !(1..=100).contains(&value) {
                return Err(SettingsError::Percentage(key, value));
            }
        }
        let (enter, leave) = (self.enter, self.leave);
        if leave >= enter {
            return Err(SettingsError::Thresholds { enter, leave });
        }
        let (calm, window) = (self.calm, self.window);
        if calm < window {
            return Err(SettingsError::Calm { calm, window });
        }
        Ok(())
    }
}

/// The most that small packets may take of a link, in percent.
pub(super) const MOST_SMALL_SHARE: u32 = 50;

/// The reason why settings make no sense.
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
    /// A weight of zero would never send, and a large one would hold up all others.
    #[error("host {host} has weight {weight}; use 1 to {MOST_WEIGHT}")]
    Weight {
        /// The host.
        host: u32,
        /// Its weight.
        weight: u32,
    },
    /// Nearly nothing would be left for permits.
    #[error("small-share is {0}, use 0 to {MOST_SMALL_SHARE} percent")]
    SmallShare(u32),
    /// A percentage that is none.
    #[error("{0} is {1}, use 1 to 100 percent")]
    Percentage(&'static str, u32),
    /// A link would be congested and calm at once.
    #[error("leave of {leave}% must be below enter, which is {enter}%")]
    Thresholds {
        /// See [`OnDemand::enter`].
        enter: u32,
        /// See [`OnDemand::leave`].
        leave: u32,
    },
    /// A link would be calm before anybody has measured.
    #[error("calm of {calm} must be at least window, which is {window}")]
    Calm {
        /// See [`OnDemand::calm`].
        calm: Time,
        /// See [`OnDemand::window`].
        window: Time,
    },
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

    /// Greatest drift between two clocks in `span`.
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

    #[test]
    fn thresholds_that_cannot_work_are_refused() {
        let error = |change: fn(&mut OnDemand)| {
            let mut settings = OnDemand::default();
            change(&mut settings);
            settings.check().unwrap_err().to_string()
        };
        assert_eq!(
            error(|s| s.window = Time::ZERO),
            "window must be longer than 0"
        );
        assert_eq!(error(|s| s.large = 0), "large is 0, use 1 to 100 percent");
        assert_eq!(
            error(|s| s.enter = 101),
            "enter is 101, use 1 to 100 percent"
        );
        assert_eq!(
            error(|s| s.leave = 80),
            "leave of 80% must be below enter, which is 80%"
        );
        assert_eq!(
            error(|s| s.calm = Time::from_us(999)),
            "calm of 999us must be at least window, which is 1ms"
        );
        assert_eq!(OnDemand::default().check(), Ok(()));
    }
}
