//! pFabric's minimal transport (Alizadeh et al., SIGCOMM 2013, §4.2; QJUMP §6.2 compares with it).
//!
//! - A flow starts at line rate: the initial window is the bandwidth-delay product of the edge link
//!   (12 packets at 10 Gbps), and from there it grows by one segment a window. So the threshold
//!   begins at the initial window; there is no slow start before the first timeout.
//! - Only the timer finds losses. It sets the threshold to half the window and starts slowly.
//! - After several timeouts in a row (5) the flow only sends probes of one byte until an ACK comes.
//!
//! What else belongs to it is set beside it: `duplicate-acks` beyond the window turns fast
//! retransmit off, and `rto` with equal minimum and maximum (45 us, 3 RTT, in the paper) fixes the
//! timeout. They are not forced, so that variants can be tried.
//!
//! What the paper leaves open: the threshold takes half the window, not half of what is in flight.
//! An ACK of a probe acknowledges its byte; later segments start one byte on.

use serde::{Deserialize, Serialize};

use super::super::ConfigError;
use super::{AckSample, Control, Loss, Signal, Window};

/// Parameters of pFabric's transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PfabricConfig {
    /// Timeouts in a row after which only probes are sent.
    pub probe_after: u32,
    /// Growth of the window.
    pub window: WindowGrowth,
}

/// Growth of the window of pFabric's transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WindowGrowth {
    /// The window grows as in standard TCP (§4.2).
    #[default]
    Additive,
    /// The window never exceeds the initial window.
    Fixed,
}

impl Default for PfabricConfig {
    fn default() -> Self {
        Self {
            probe_after: 5,
            window: WindowGrowth::default(),
        }
    }
}

impl PfabricConfig {
    pub(super) fn validate(self) -> Result<(), ConfigError> {
        match self.probe_after {
            0 => Err(ConfigError::Zero("probe-after")),
            _ => Ok(()),
        }
    }
}

/// A running pFabric transport.
#[derive(Clone, Debug)]
pub(crate) struct Pfabric {
    probe_after: u32,
    /// The window never exceeds this.
    most: f64,
}

impl Pfabric {
    pub(super) fn new(config: PfabricConfig, window: &mut Window) -> Self {
        window.set_ssthresh(window.cwnd());
        Self {
            probe_after: config.probe_after,
            most: match config.window {
                WindowGrowth::Additive => f64::INFINITY,
                WindowGrowth::Fixed => window.cwnd(),
            },
        }
    }
}

impl Control for Pfabric {
    fn observe(&mut self, _ack: &AckSample) -> Signal {
        Signal::Clear
    }

    fn grow(&mut self, window: &mut Window, ack: &AckSample) {
        window.grow(ack.acked);
        window.set(window.cwnd().min(self.most));
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        if !loss.answered {
            window.set_ssthresh(window.cwnd() / 2.0);
        }
        window.collapse();
    }

    fn probe_after(&self) -> u32 {
        self.probe_after
    }
}

#[cfg(test)]
mod tests {
    use super::super::dctcp::tests::ack;
    use super::*;

    fn started(growth: WindowGrowth) -> (Pfabric, Window) {
        let mut window = Window::new(1_000, 12, 1_000_000, 1);
        let config = PfabricConfig {
            window: growth,
            ..PfabricConfig::default()
        };
        (Pfabric::new(config, &mut window), window)
    }

    #[test]
    fn grows_by_a_segment_a_window_from_the_start() {
        let (mut pfabric, mut window) = started(WindowGrowth::Additive);
        pfabric.grow(&mut window, &ack(1_000, 12_000, false));
        assert_eq!(window.cwnd(), 12_000.0 + 1_000.0 / 12.0);
        assert_eq!(pfabric.observe(&ack(1_000, 12_000, true)), Signal::Clear);
    }

    #[test]
    fn or_not_at_all() {
        let (mut pfabric, mut window) = started(WindowGrowth::Fixed);
        pfabric.grow(&mut window, &ack(1_000, 12_000, false));
        assert_eq!(window.cwnd(), 12_000.0);
    }

    #[test]
    fn a_timeout_halves_the_threshold_and_starts_slowly() {
        let (mut pfabric, mut window) = started(WindowGrowth::Additive);
        let loss = Loss {
            flight: 5_000,
            answered: false,
            next: 0,
        };
        pfabric.on_timeout(&mut window, &loss);
        assert_eq!((window.cwnd(), window.ssthresh()), (1_000.0, 6_000.0));
        assert!(window.in_slow_start());
    }
}
