//! Ethernet flow control: when to ask a neighbour to pause, and when to let it go on.
//!
//! The sending side of a pause is [`EgressPort::pause`]. This is the receiving side: a switch keeps
//! one [`PauseGauge`] for each ingress port and charges it for every packet that came in there and
//! has not left. One gauge for the whole link is 802.3x, one for each queue 802.1Qbb (a queue stands
//! for its priority); QJUMP §6.3 compares itself with the former.
//!
//! A pause lasts until it is lifted: the frames that a real switch repeats to renew its pauses are
//! left out.
//!
//! [`EgressPort::pause`]: super::EgressPort::pause

use serde::{Deserialize, Serialize};

use super::{ConfigError, QueueSet};
use crate::units::Bytes;

/// Data of a pause frame, which is as small as a frame of Ethernet can be.
pub const PAUSE_FRAME: u32 = 46;

/// Thresholds of pause frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PauseConfig {
    /// Occupancy above which the neighbour is paused.
    pub high: Bytes,
    /// Occupancy at or below which the neighbour is resumed.
    pub low: Bytes,
    /// Granularity of pauses.
    #[serde(default)]
    pub per: PauseScope,
}

/// Traffic that a pause stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PauseScope {
    /// All traffic of the neighbour on the link: 802.3x.
    #[default]
    Link,
    /// One queue of the neighbour: 802.1Qbb.
    Queue,
}

/// Signal to the neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseSignal {
    /// Stop sending from these queues.
    Pause(QueueSet),
    /// Go on.
    Resume(QueueSet),
}

/// Occupancy by the packets of one ingress port, and what the neighbour was last told.
#[derive(Clone, Debug)]
pub struct PauseGauge {
    config: PauseConfig,
    /// One for the link, or one for each queue.
    classes: Vec<Class>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    held: u64,
    paused: bool,
}

impl PauseGauge {
    /// An empty gauge for packets that go to one of `queues` queues.
    pub fn new(config: PauseConfig, queues: usize) -> Result<Self, ConfigError> {
        if config.low >= config.high {
            return Err(ConfigError::Order("low", "high"));
        }
        let classes = match config.per {
            PauseScope::Link => 1,
            PauseScope::Queue => queues,
        };
        Ok(Self {
            config,
            classes: vec![Class::default(); classes],
        })
    }

    /// A packet of `size` bytes that goes to this queue was stored.
    pub fn charge(&mut self, queue: usize, size: u32) -> Option<PauseSignal> {
        let (class, queues) = self.class(queue);
        let state = &mut self.classes[class];
        state.held += u64::from(size);
        let pause = !state.paused && state.held > self.config.high.get();
        state.paused |= pause;
        pause.then_some(PauseSignal::Pause(queues))
    }

    /// A packet of `size` bytes has left this queue, or was dropped.
    pub fn release(&mut self, queue: usize, size: u32) -> Option<PauseSignal> {
        let (class, queues) = self.class(queue);
        let state = &mut self.classes[class];
        state.held -= u64::from(size);
        let resume = state.paused && state.held <= self.config.low.get();
        state.paused &= !resume;
        resume.then_some(PauseSignal::Resume(queues))
    }

    /// Class of a queue, and the queues that a pause of it stops.
    fn class(&self, queue: usize) -> (usize, QueueSet) {
        match self.config.per {
            PauseScope::Link => (0, QueueSet::ALL),
            PauseScope::Queue => (queue, QueueSet::one(queue)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(per: PauseScope) -> PauseConfig {
        PauseConfig {
            high: Bytes::new(4500),
            low: Bytes::new(1500),
            per,
        }
    }

    #[test]
    fn signals_come_once_at_each_watermark() {
        let mut gauge = PauseGauge::new(config(PauseScope::Queue), 2).unwrap();
        let first = QueueSet::one(0);
        let charged: Vec<_> = (0..5).map(|_| gauge.charge(0, 1500)).collect();
        // 4500 B is not yet above the high mark; the fourth packet is.
        let pause = Some(PauseSignal::Pause(first));
        assert_eq!(charged, [None, None, None, pause, None]);
        assert_eq!(gauge.charge(1, 1500), None, "queues are independent");
        let released: Vec<_> = (0..5).map(|_| gauge.release(0, 1500)).collect();
        let resume = Some(PauseSignal::Resume(first));
        assert_eq!(released, [None, None, None, resume, None]);
    }

    #[test]
    fn an_802_3x_pause_counts_and_stops_the_whole_link() {
        let mut gauge = PauseGauge::new(config(PauseScope::Link), 2).unwrap();
        let charged: Vec<_> = (0..4).map(|n| gauge.charge(n % 2, 1500)).collect();
        let pause = Some(PauseSignal::Pause(QueueSet::ALL));
        assert_eq!(charged, [None, None, None, pause]);
    }

    #[test]
    fn watermarks_must_leave_a_gap() {
        let config = PauseConfig {
            high: Bytes::new(1500),
            ..config(PauseScope::Link)
        };
        let error = PauseGauge::new(config, 1).unwrap_err();
        assert_eq!(error.to_string(), "low must be less than high");
    }
}
