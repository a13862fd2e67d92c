//! Parameters that can be set while a controller runs.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::Serialize;
use shallows_core::tcp::congestion::DelayDctcpConfig;
use shallows_core::units::Time;
use thiserror::Error;

use crate::Controller;

/// A controller's definition of the delay of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delay {
    /// The kernel's round-trip time. Right everywhere, but queues of ACKs count.
    #[default]
    Rtt,
    /// From the TCP timestamps of both ends, whose clocks must run at one speed: namespaces of one
    /// machine. Without timestamps, or where T is less than their tick (1 ms without `tcp_usec_ts`),
    /// the round-trip time is taken.
    OneWay,
}

impl Display for Delay {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rtt => "rtt",
            Self::OneWay => "one-way",
        })
    }
}

/// Parameters of a controller. They apply to all its connections from the next ACK on, the initial
/// alpha to new connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Parameters {
    /// Weight of the newest window in alpha.
    pub g: f64,
    /// Alpha before the first window.
    pub initial_alpha: f64,
    /// T: queueing delay that is not yet congestion, in whole microseconds.
    pub threshold: Time,
    /// Definition of the delay.
    pub delay: Delay,
    /// Time without a delay near the base after which the base expires; never if not given.
    pub base_lifetime: Option<Time>,
}

impl Default for Parameters {
    /// Those of the simulated controllers, but for a base delay that expires: real routes change.
    fn default() -> Self {
        let DelayDctcpConfig {
            t,
            g,
            initial_alpha,
            base_lifetime: _,
        } = DelayDctcpConfig::default();
        Self {
            g,
            initial_alpha,
            threshold: t,
            delay: Delay::default(),
            base_lifetime: Some(Time::from_secs(10)),
        }
    }
}

/// The reason why a setting is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// Not of the form key=value.
    #[error("{0:?} is not a setting: write KEY=VALUE, such as threshold=144us")]
    NoValue(String),
    /// The controller has no such parameter.
    #[error("{controller} has no parameter {key:?}; it has {known}")]
    Unknown {
        /// Of which one it was asked.
        controller: Controller,
        /// The key given.
        key: String,
        /// Those that there are.
        known: String,
    },
    /// The value is not possible.
    #[error("{key}={value} is not possible: write {expected}")]
    Value {
        /// The key given.
        key: String,
        /// The value given.
        value: String,
        /// Description of valid values.
        expected: &'static str,
    },
}

impl Parameters {
    /// Changes one of them as `setting`, such as `threshold=144us`, says.
    pub fn set(&mut self, controller: Controller, setting: &str) -> Result<(), ParameterError> {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| ParameterError::NoValue(setting.to_owned()))?;
        let wrong = |expected| ParameterError::Value {
            key: key.to_owned(),
            value: value.to_owned(),
            expected,
        };
        match key {
            "g" if controller.has_alpha() => {
                let possible = |g: &f64| *g >= fraction(1) && *g <= 1.0;
                self.g = number(value)
                    .filter(possible)
                    .ok_or_else(|| wrong("a number above 0 and up to 1, such as 0.0625"))?;
            }
            "initial-alpha" if controller.has_alpha() => {
                self.initial_alpha = number(value)
                    .filter(|alpha| (0.0..=1.0).contains(alpha))
                    .ok_or_else(|| wrong("a number from 0 to 1"))?;
            }
            "threshold" | "t" if controller.hears_delay() => {
                self.threshold = Time::from_str(value)
                    .ok()
                    .filter(|&t| whole_us(t).is_some())
                    .ok_or_else(|| wrong("whole microseconds up to 1h, such as 144us"))?;
            }
            "delay" if controller.hears_delay() => {
                self.delay = match value {
                    "rtt" => Delay::Rtt,
                    "one-way" => Delay::OneWay,
                    _ => return Err(wrong("rtt or one-way")),
                };
            }
            "base-lifetime" if controller.hears_delay() => {
                let time = || {
                    Time::from_str(value)
                        .ok()
                        .filter(|&t| whole_ms(t).is_some())
                };
                self.base_lifetime = if value == "never" {
                    None
                } else {
                    let expected = "whole milliseconds from 1ms to 1h, such as 10s, or never";
                    Some(time().ok_or_else(|| wrong(expected))?)
                };
            }
            _ => {
                let known = self.of(controller);
                let keys: Vec<_> = known.iter().map(|(key, _)| *key).collect();
                return Err(ParameterError::Unknown {
                    controller,
                    key: key.to_owned(),
                    known: if keys.is_empty() {
                        "none".to_owned()
                    } else {
                        keys.join(", ")
                    },
                });
            }
        }
        Ok(())
    }

    /// Those that `controller` has, with their values.
    pub fn of(&self, controller: Controller) -> Vec<(&'static str, String)> {
        let mut known = Vec::new();
        if controller.has_alpha() {
            known.push(("g", self.g.to_string()));
            known.push(("initial-alpha", self.initial_alpha.to_string()));
        }
        if controller.hears_delay() {
            known.push(("threshold", self.threshold.to_string()));
            known.push(("delay", self.delay.to_string()));
            let lifetime = self.base_lifetime.map(|lifetime| lifetime.to_string());
            known.push((
                "base-lifetime",
                lifetime.unwrap_or_else(|| "never".to_owned()),
            ));
        }
        known
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Whole microseconds, if the kernel's counter of them has room.
pub(crate) fn whole_us(time: Time) -> Option<u32> {
    let us = Time::from_us(1).ps();
    (time.ps().is_multiple_of(us) && time <= Time::from_secs(3600)).then(|| (time.ps() / us) as u32)
}

/// Whole milliseconds, at least one, if the kernel's counter of them has room.
pub(crate) fn whole_ms(time: Time) -> Option<u32> {
    let ms = whole_us(time)?;
    (ms > 0 && ms.is_multiple_of(1000)).then_some(ms / 1000)
}

/// 1.0 in the programs' fixed point.
const ONE: f64 = (1 << 20) as f64;

/// The number that the programs have as `bits`.
pub(crate) fn fraction(bits: u32) -> f64 {
    f64::from(bits) / ONE
}

/// The programs' fixed-point form of `number`, from 0 to 1.
pub(crate) fn bits(number: f64) -> u32 {
    (number * ONE).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(controller: Controller, setting: &str) -> Result<Parameters, ParameterError> {
        let mut parameters = Parameters::default();
        parameters.set(controller, setting).map(|()| parameters)
    }

    #[test]
    fn settings_are_read() {
        let ear = Controller::Ear;
        assert_eq!(set(ear, "g=0.25").unwrap().g, 0.25);
        let t = set(ear, "threshold=7.2ms").unwrap().threshold;
        assert_eq!(t, Time::from_us(7_200));
        assert_eq!(set(ear, "delay=one-way").unwrap().delay, Delay::OneWay);
        let lifetime = |setting| set(ear, setting).unwrap().base_lifetime;
        assert_eq!(lifetime("base-lifetime=2s"), Some(Time::from_secs(2)));
        assert_eq!(lifetime("base-lifetime=never"), None);
    }

    #[test]
    fn impossible_settings_are_refused_with_what_to_write() {
        for (controller, setting, answer) in [
            (Controller::Ear, "g", "KEY=VALUE"),
            (Controller::Ear, "g=0", "above 0"),
            (Controller::Ear, "g=1.5", "up to 1"),
            (Controller::Ear, "initial-alpha=nan", "from 0 to 1"),
            (Controller::Ear, "threshold=144", "such as 144us"),
            (Controller::Ear, "threshold=1ns", "whole microseconds"),
            (Controller::Ear, "delay=owd", "one-way"),
            (Controller::Ear, "base-lifetime=0s", "1ms to 1h"),
            (Controller::Ear, "base-lifetime=1500us", "or never"),
            (Controller::Dctcp, "base-lifetime=1s", "g, initial-alpha"),
            (Controller::Dctcp, "threshold=144us", "g, initial-alpha"),
            (Controller::EcnStar, "g=0.5", "it has none"),
        ] {
            let problem = set(controller, setting).unwrap_err().to_string();
            assert!(problem.contains(answer), "{setting}: {problem}");
        }
    }
}
