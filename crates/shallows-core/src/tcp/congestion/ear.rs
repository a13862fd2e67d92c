//! EAR (Zeng et al., APNet 2017, §4.1): DCTCP that hears marks and delay.
//!
//! An ACK is a congestion indicator if its segment was marked (eq. 1, judged by the switch) *or* was
//! late by more than T (eq. 2, see [`delay_dctcp`](super::delay_dctcp)). An ACK that is both counts
//! once. The indicators drive DCTCP's control law: an ACK that is none grows the window by 1/cwnd
//! (eq. 3, slow start unchanged), one that is reduces it to cwnd x (1 - alpha / 2), at most once a
//! window (eq. 4 and footnote 2).
//!
//! `repro/ear/deviations.toml` says where the paper leaves a choice.

use serde::{Deserialize, Serialize};

use super::super::ConfigError;
use super::dctcp::{Dctcp, DctcpConfig};
use super::delay_dctcp::DelayThreshold;
use super::{AckSample, Control, Loss, Signal, Window};
use crate::units::Time;

/// Parameters of EAR, by the paper's names. Its K is the switch's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EarConfig {
    /// T: queueing delay that is not yet congestion. §4.2 has 120 packets, 144 us at 10 Gbps; the
    /// authors' script for the fat-tree has 108 us.
    pub t: Time,
    /// As in DCTCP.
    pub g: f64,
    /// As in DCTCP.
    pub initial_alpha: f64,
}

impl Default for EarConfig {
    fn default() -> Self {
        let DctcpConfig { g, initial_alpha } = DctcpConfig::default();
        Self {
            t: Time::from_us(144),
            g,
            initial_alpha,
        }
    }
}

impl EarConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        self.dctcp().validate()
    }

    fn dctcp(&self) -> DctcpConfig {
        DctcpConfig {
            g: self.g,
            initial_alpha: self.initial_alpha,
        }
    }
}

/// A running EAR.
#[derive(Clone, Debug)]
pub(crate) struct Ear {
    delay: DelayThreshold,
    dctcp: Dctcp,
}

impl Ear {
    pub(super) fn new(config: &EarConfig) -> Self {
        Self {
            delay: DelayThreshold::new(config.t),
            dctcp: Dctcp::new(&config.dctcp()),
        }
    }
}

impl Control for Ear {
    fn observe(&mut self, ack: &AckSample) -> Signal {
        // The base must see every delay, also of marked segments.
        let late = self.delay.exceeded(ack.one_way_delay);
        let signal = Signal::when(late || ack.ece);
        self.dctcp.count(ack, signal);
        signal
    }

    fn on_congestion(&mut self, window: &mut Window, ack: &AckSample) {
        self.dctcp.on_congestion(window, ack);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &Loss) {
        self.dctcp.on_loss(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        self.dctcp.on_timeout(window, loss);
    }

    fn alpha(&self) -> Option<f64> {
        self.dctcp.alpha()
    }
}

#[cfg(test)]
mod tests {
    use super::super::dctcp::tests::ack;
    use super::*;

    #[test]
    fn either_signal_counts_and_both_count_once() {
        let mut ear = Ear::new(&EarConfig {
            g: 1.0,
            initial_alpha: 0.0,
            ..EarConfig::default()
        });
        let sample = |end, ece, us| AckSample {
            one_way_delay: Time::from_us(us),
            ..ack(end, 5_000, ece)
        };
        assert_eq!(ear.observe(&sample(1_000, false, 58)), Signal::Clear);
        // Marked; late; both; neither; and the ACK that ends the window, neither: 3 of 5.
        assert_eq!(ear.observe(&sample(2_000, true, 58)), Signal::Congestion);
        assert_eq!(ear.observe(&sample(3_000, false, 203)), Signal::Congestion);
        assert_eq!(ear.observe(&sample(4_000, true, 203)), Signal::Congestion);
        assert_eq!(ear.observe(&sample(5_000, false, 202)), Signal::Clear);
        assert_eq!(ear.observe(&sample(6_000, false, 58)), Signal::Clear);
        assert_eq!(ear.alpha(), Some(0.6));
        let mut window = Window::new(1_000, 10, 1_000_000, 1);
        ear.on_congestion(&mut window, &sample(7_000, true, 58));
        assert_eq!(window.cwnd(), 7_000.0);
    }
}
