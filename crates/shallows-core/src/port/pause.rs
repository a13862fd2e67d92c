//! Ethernet flow control: when to ask a neighbour to pause, and when to let it go on.
//!
//! The sending side of a pause is [`EgressPort::pause`]. This is the receiving side: a switch keeps
//! one [`PauseGauge`] for each ingress port and charges it for every packet that came in there and
//! is still in store. With one class it is 802.3x, with one class a priority it is 802.1Qbb; QJUMP
//! §6.3 compares itself with the former.
//!
//! [`EgressPort::pause`]: super::EgressPort::pause

use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::units::Bytes;

/// Watermarks of a gauge, as written in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PauseConfig {
    /// Occupancy above which the neighbour is paused.
    pub high: Bytes,
    /// Occupancy at or below which it is resumed.
    pub low: Bytes,
}

/// What to tell the neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseSignal {
    /// Stop sending this class.
    Pause,
    /// Go on.
    Resume,
}

/// Occupancy of each class of one ingress port, and what the neighbour was last told.
#[derive(Clone, Debug)]
pub struct PauseGauge {
    config: PauseConfig,
    classes: Vec<Class>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    held: u64,
    paused: bool,
}

impl PauseGauge {
    /// A gauge of `classes` empty classes: 1 for 802.3x, 8 for 802.1Qbb.
    pub fn new(config: PauseConfig, classes: usize) -> Result<Self, ConfigError> {
        if config.low >= config.high {
            return Err(ConfigError::Order("low", "high"));
        }
        Ok(Self {
            config,
            classes: vec![Class::default(); classes],
        })
    }

    /// A packet of `size` bytes of this class was stored.
    pub fn charge(&mut self, class: usize, size: u32) -> Option<PauseSignal> {
        let state = &mut self.classes[class];
        state.held += u64::from(size);
        let pause = !state.paused && state.held > self.config.high.get();
        state.paused |= pause;
        pause.then_some(PauseSignal::Pause)
    }

    /// A packet of `size` bytes of this class left, or was dropped.
    pub fn release(&mut self, class: usize, size: u32) -> Option<PauseSignal> {
        let state = &mut self.classes[class];
        state.held -= u64::from(size);
        let resume = state.paused && state.held <= self.config.low.get();
        state.paused &= !resume;
        resume.then_some(PauseSignal::Resume)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_come_once_at_each_watermark() {
        let config = PauseConfig {
            high: Bytes::new(4500),
            low: Bytes::new(1500),
        };
        let mut gauge = PauseGauge::new(config, 2).unwrap();
        let charged: Vec<_> = (0..5).map(|_| gauge.charge(0, 1500)).collect();
        // 4500 B is not yet above the high mark; the fourth packet is.
        assert_eq!(charged, [None, None, None, Some(PauseSignal::Pause), None]);
        assert_eq!(gauge.charge(1, 1500), None, "classes are independent");
        let released: Vec<_> = (0..5).map(|_| gauge.release(0, 1500)).collect();
        assert_eq!(
            released,
            [None, None, None, Some(PauseSignal::Resume), None]
        );
    }

    #[test]
    fn watermarks_must_leave_a_gap() {
        let config = PauseConfig {
            high: Bytes::new(1500),
            low: Bytes::new(1500),
        };
        let error = PauseGauge::new(config, 1).unwrap_err();
        assert_eq!(error.to_string(), "low must be less than high");
    }
}
