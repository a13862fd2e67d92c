//! DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257).
//!
//! - §3.3 steps 1 to 6: once a window of data, M = marked bytes / acknowledged bytes and
//!   alpha = alpha x (1 - g) + g x M. The ACK that ends a window is counted in it.
//! - §3.3 step 7 and §3.4: a marked ACK reduces cwnd to cwnd x (1 - alpha / 2), at most once a
//!   window of data, with the alpha that this ACK may just have updated. The threshold follows, so
//!   a mark ends slow start.
//! - §3.5: a loss halves the window, even one in a window that marks have reduced before; a timeout
//!   acts as in standard TCP. After it a new window of data is observed.
//!
//! What the RFC leaves open: the least window after a reduction is one segment, the least threshold
//! two, as in the simulations of MQ-ECN. Those start with alpha 0; the RFC with 1 (§4.2).

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::super::ConfigError;
use super::{AckSample, Control, Loss, Signal, Window};

/// Parameters of DCTCP, by the RFC's names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DctcpConfig {
    /// Weight of the newest window in alpha.
    pub g: f64,
    /// Alpha before the first window.
    pub initial_alpha: f64,
}

impl Default for DctcpConfig {
    fn default() -> Self {
        Self {
            g: 1.0 / 16.0,
            initial_alpha: 1.0,
        }
    }
}

impl DctcpConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if !(self.g > 0.0 && self.g <= 1.0) {
            return Err(ConfigError::OutOfRange {
                name: "g",
                value: self.g,
                range: "(0, 1]",
            });
        }
        if !(0.0..=1.0).contains(&self.initial_alpha) {
            return Err(ConfigError::OutOfRange {
                name: "initial-alpha",
                value: self.initial_alpha,
                range: "[0, 1]",
            });
        }
        Ok(())
    }
}

/// Tells which ACKs are signs of congestion.
pub(crate) trait Judge: Debug + Send {
    /// Judges one ACK.
    fn judge(&mut self, ack: &AckSample) -> Signal;
}

/// DCTCP's own signal: marks.
#[derive(Clone, Debug)]
pub(crate) struct Marks;

impl Judge for Marks {
    #[inline]
    fn judge(&mut self, ack: &AckSample) -> Signal {
        Signal::of_echo(ack.ece)
    }
}

/// A running DCTCP, or its control law on another signal.
#[derive(Clone, Debug)]
pub(crate) struct Dctcp<J> {
    alpha: f64,
    g: f64,
    /// WindowEnd: an ACK beyond it ends the window of data.
    window_end: u64,
    acked: u64,
    marked: u64,
    judge: J,
}

impl<J: Judge> Dctcp<J> {
    pub(super) fn new(config: &DctcpConfig, judge: J) -> Self {
        Self {
            alpha: config.initial_alpha,
            g: config.g,
            window_end: 0,
            acked: 0,
            marked: 0,
            judge,
        }
    }
}

impl<J: Judge> Control for Dctcp<J> {
    #[inline]
    fn observe(&mut self, ack: &AckSample) -> Signal {
        let signal = self.judge.judge(ack);
        self.acked += ack.acked;
        if signal.is_congestion() {
            self.marked += ack.acked;
        }
        if ack.ack > self.window_end {
            let fraction = self.marked as f64 / self.acked as f64;
            self.alpha = self.alpha * (1.0 - self.g) + self.g * fraction;
            self.window_end = ack.next;
            self.acked = 0;
            self.marked = 0;
        }
        signal
    }

    fn on_congestion(&mut self, window: &mut Window, _ack: &AckSample) {
        window.reduce(window.cwnd() * (1.0 - self.alpha / 2.0));
    }

    fn on_loss(&mut self, window: &mut Window, loss: &Loss) {
        window.halve_flight(loss.flight);
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        if !loss.answered {
            window.set_ssthresh(loss.flight as f64 / 2.0);
        }
        window.collapse();
        self.window_end = loss.next;
    }

    fn alpha(&self) -> Option<f64> {
        Some(self.alpha)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::units::Time;

    /// The ACK of 1000 bytes up to `ack` while `next` is the next byte to send.
    pub(in super::super) fn ack(ack: u64, next: u64, ece: bool) -> AckSample {
        AckSample {
            now: Time::ZERO,
            acked: 1_000,
            ack,
            next,
            flight: 0,
            ece,
            one_way_delay: Time::ZERO,
            rtt: Time::ZERO,
            srtt: Time::ZERO,
        }
    }

    fn dctcp(g: f64, initial_alpha: f64) -> Dctcp<Marks> {
        Dctcp::new(&DctcpConfig { g, initial_alpha }, Marks)
    }

    #[test]
    fn alpha_follows_the_marked_fraction_of_each_window() {
        let mut dctcp = dctcp(0.25, 0.0);
        // The first ACK ends the empty window before it: F = 1/1, alpha = 1/4.
        dctcp.observe(&ack(1_000, 4_000, true));
        assert_eq!(dctcp.alpha(), Some(0.25));
        // The window up to 4000 has three more ACKs, one of them marked; the ACK of 5000 ends it
        // unmarked: F = 1/4, alpha = 3/4 * 1/4 + 1/4 * 1/4 = 1/4.
        for (end, ece) in [(2_000, false), (3_000, true), (4_000, false)] {
            dctcp.observe(&ack(end, 8_000, ece));
            assert_eq!(dctcp.alpha(), Some(0.25));
        }
        dctcp.observe(&ack(5_000, 9_000, false));
        assert_eq!(dctcp.alpha(), Some(0.25));
        // Four unmarked ACKs end at 9000, the fifth ends the window: alpha = 3/4 * 1/4.
        for end in [6_000, 7_000, 8_000, 9_000, 10_000] {
            dctcp.observe(&ack(end, 14_000, false));
        }
        assert_eq!(dctcp.alpha(), Some(0.1875));
    }

    #[test]
    fn bytes_weigh_not_acks() {
        let mut dctcp = dctcp(1.0, 0.0);
        dctcp.observe(&ack(1_000, 4_000, false));
        let large = AckSample {
            acked: 3_000,
            ..ack(4_000, 8_000, true)
        };
        dctcp.observe(&large);
        dctcp.observe(&ack(5_000, 9_000, false));
        assert_eq!(dctcp.alpha(), Some(0.75));
    }

    #[test]
    fn reduction_is_alpha_over_two() {
        let mut dctcp = dctcp(1.0 / 16.0, 0.5);
        let mut window = Window::new(1_000, 16, 1_000_000, 1);
        dctcp.on_congestion(&mut window, &ack(1_000, 4_000, true));
        assert_eq!((window.cwnd(), window.ssthresh()), (12_000.0, 12_000.0));
        assert!(!window.in_slow_start());
    }

    #[test]
    fn the_smallest_window_is_one_segment_the_threshold_two() {
        let mut dctcp = dctcp(1.0 / 16.0, 1.0);
        let mut window = Window::new(1_000, 3, 1_000_000, 1);
        for expected in [1_500.0, 1_000.0, 1_000.0] {
            dctcp.on_congestion(&mut window, &ack(1_000, 4_000, true));
            assert_eq!((window.cwnd(), window.ssthresh()), (expected, 2_000.0));
        }
    }

    #[test]
    fn a_loss_halves_even_after_a_reduction() {
        let mut window = Window::new(1_000, 16, 1_000_000, 1);
        let loss = Loss {
            flight: 16_000,
            answered: true,
            next: 16_000,
        };
        dctcp(1.0 / 16.0, 0.0).on_loss(&mut window, &loss);
        assert_eq!(window.cwnd(), 8_000.0);
    }
}
