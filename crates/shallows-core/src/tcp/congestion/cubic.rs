//! CUBIC (RFC 9438).
//!
//! - Eq. 1 and 2: W_cubic(t) = C (t - K)^3 + W_max with K = cbrt((W_max - cwnd_epoch) / C), in
//!   segments and seconds, t from the first ACK of a congestion avoidance.
//! - §4.2: each ACK moves cwnd by (target - cwnd) / cwnd, where target is W_cubic one round trip on,
//!   within cwnd and 1.5 cwnd.
//! - §4.3: where W_cubic is below what Reno would have (eq. 4), cwnd is that.
//! - §4.6, §4.7: multiplicative decrease by beta, fast convergence. §4.8: a timeout forgets W_max.
//!
//! Differences: slow start is RFC 5681's, without HyStart++ (§4.10), and there is no response to
//! spurious congestion (§4.9). The time from the last segment to the next write is taken out of t
//! (§4.2) if nothing is in flight then; time in which the application is just slow is not. The cube root is our own: that of the platform's library
//! does not give the same bits everywhere.

use serde::{Deserialize, Serialize};

use super::super::ConfigError;
use super::{AckSample, Control, Loss, Window};
use crate::units::Time;

/// Parameters of CUBIC, by the RFC's names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CubicConfig {
    /// C, in segments per cubic second.
    pub c: f64,
    /// Factor by which a reduction multiplies the window.
    pub beta: f64,
    /// True if a flow with a shrinking window releases bandwidth early (§4.7).
    pub fast_convergence: bool,
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self {
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
        }
    }
}

impl CubicConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if !(self.c > 0.0 && self.c.is_finite()) {
            return Err(ConfigError::OutOfRange {
                name: "c",
                value: self.c,
                range: "(0, infinity)",
            });
        }
        if !(self.beta > 0.0 && self.beta < 1.0) {
            return Err(ConfigError::OutOfRange {
                name: "beta",
                value: self.beta,
                range: "(0, 1)",
            });
        }
        Ok(())
    }
}

/// A running CUBIC; windows are in segments.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    config: CubicConfig,
    w_max: f64,
    /// cwnd before the last reduction.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// One congestion avoidance.
#[derive(Clone, Debug)]
struct Epoch {
    start: Time,
    k: f64,
    w_est: f64,
}

impl Cubic {
    pub(super) fn new(config: CubicConfig) -> Self {
        Self {
            config,
            w_max: 0.0,
            cwnd_prior: f64::INFINITY,
            epoch: None,
        }
    }

    /// Remembers where the window was, and gives what beta leaves of `flight`.
    fn decrease(&mut self, window: &Window, flight: u64) -> f64 {
        let cwnd = window.cwnd() / window.segment();
        self.w_max = if cwnd < self.w_max && self.config.fast_convergence {
            cwnd * f64::midpoint(1.0, self.config.beta)
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        flight as f64 * self.config.beta
    }

    /// Starts the congestion avoidance that begins with a window of `cwnd`. Without a W_max above
    /// it the curve starts at its plateau.
    fn epoch(&mut self, now: Time, cwnd: f64) -> &mut Epoch {
        let (c, w_max) = (self.config.c, &mut self.w_max);
        self.epoch.get_or_insert_with(|| {
            *w_max = w_max.max(cwnd);
            Epoch {
                start: now,
                k: cube_root((*w_max - cwnd) / c),
                w_est: cwnd,
            }
        })
    }

    fn avoid_congestion(&mut self, window: &Window, ack: &AckSample) -> f64 {
        let CubicConfig { c, beta, .. } = self.config;
        let cwnd = window.cwnd() / window.segment();
        let acked = ack.acked as f64 / window.segment();
        let prior = self.cwnd_prior;
        let epoch = self.epoch(ack.now, cwnd);
        // Eq. 4.
        let alpha = if epoch.w_est < prior {
            3.0 * (1.0 - beta) / (1.0 + beta)
        } else {
            1.0
        };
        epoch.w_est += alpha * acked / cwnd;
        let (t, k, w_est) = (ack.now.saturating_sub(epoch.start), epoch.k, epoch.w_est);
        let w_cubic = |t: Time| {
            let x = t.as_secs_f64() - k;
            c * x * x * x + self.w_max
        };
        if w_cubic(t) < w_est {
            return w_est.max(cwnd);
        }
        let target = w_cubic(t + ack.srtt).clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) / cwnd * acked
    }
}

impl Control for Cubic {
    fn grow(&mut self, window: &mut Window, ack: &AckSample) {
        if window.in_slow_start() {
            window.grow(ack.acked);
        } else {
            let cwnd = self.avoid_congestion(window, ack);
            window.set(cwnd * window.segment());
        }
    }

    fn on_congestion(&mut self, window: &mut Window, ack: &AckSample) {
        let bytes = self.decrease(window, ack.flight);
        window.reduce(bytes);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &Loss) {
        if !loss.answered {
            let bytes = self.decrease(window, loss.flight);
            window.set_ssthresh(bytes);
            window.set(window.ssthresh());
        }
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        if !loss.answered {
            let bytes = self.decrease(window, loss.flight);
            window.set_ssthresh(bytes);
        }
        // §4.8: the next congestion avoidance starts at its plateau.
        self.w_max = 0.0;
        self.epoch = None;
        window.collapse();
    }

    fn on_idle(&mut self, idle: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }
}

/// The cube root of a number that is not negative, by Newton's method from a guess that has the
/// third of its exponent. Only operations whose result IEEE 754 fixes.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // A third of the exponent's offset, 1023 * 2/3, put back into place.
    let mut root = f64::from_bits(x.to_bits() / 3 + (682 << 52));
    for _ in 0..5 {
        root -= (root - x / (root * root)) / 3.0;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::super::dctcp::tests::ack;
    use super::*;

    fn loss(flight: u64) -> Loss {
        Loss {
            flight,
            answered: false,
            next: 0,
        }
    }

    fn at(us: u64, acked: u64) -> AckSample {
        AckSample {
            now: Time::from_us(us),
            acked,
            ..ack(0, 0, false)
        }
    }

    fn window() -> Window {
        Window::new(1_000, 100, 1_000_000_000, 1)
    }

    #[test]
    fn cube_roots_are_right_to_the_last_digits() {
        for root in [1e-6, 0.05, 1.0, 1.5, 4.217, 1_000.0, 123_456.789] {
            let x: f64 = root * root * root;
            let error = (cube_root(x) / root - 1.0).abs();
            assert!(error < 4.0 * f64::EPSILON, "{root}: {error}");
        }
        assert_eq!(cube_root(0.0), 0.0);
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_k_leads_back() {
        let (mut cubic, mut window) = (Cubic::new(CubicConfig::default()), window());
        cubic.on_loss(&mut window, &loss(100_000));
        assert_eq!(window.cwnd(), 70_000.0);
        // K = cbrt(30 / 0.4) = cbrt(75) = 4.217 s.
        let epoch = cubic.epoch(Time::ZERO, 70.0);
        assert!((epoch.k - 4.217_163_326).abs() < 1e-9, "{}", epoch.k);
        // Just before K the curve is all but flat at W_max, and the window has followed it there.
        for ms in 1..4_217 {
            for _ in 0..100 {
                cubic.grow(&mut window, &at(ms * 1_000, 1_000));
            }
        }
        assert!(window.cwnd() > 99_000.0, "{}", window.cwnd());
    }

    #[test]
    fn where_reno_is_faster_it_is_as_fast_as_reno() {
        let (mut cubic, mut window) = (Cubic::new(CubicConfig::default()), window());
        cubic.on_loss(&mut window, &loss(100_000));
        // At t = 0 W_cubic is 70, the window itself; W_est = 70 + alpha / 70 is above it.
        cubic.grow(&mut window, &at(0, 1_000));
        let alpha = 3.0 * (1.0 - 0.7) / (1.0 + 0.7);
        assert_eq!(window.cwnd(), (70.0 + alpha / 70.0) * 1_000.0);
    }

    #[test]
    fn a_second_loss_below_the_maximum_leaves_room() {
        let (mut cubic, mut window) = (Cubic::new(CubicConfig::default()), window());
        cubic.on_loss(&mut window, &loss(100_000));
        assert_eq!(cubic.w_max, 100.0);
        cubic.on_loss(&mut window, &loss(70_000));
        // W_max = 70 * (1 + 0.7) / 2.
        assert_eq!(cubic.w_max, 70.0 * 0.85);
        assert_eq!(window.cwnd(), 49_000.0);
    }

    #[test]
    fn a_timeout_starts_on_the_plateau() {
        let (mut cubic, mut window) = (Cubic::new(CubicConfig::default()), window());
        cubic.on_timeout(&mut window, &loss(100_000));
        assert_eq!((window.cwnd(), window.ssthresh()), (1_000.0, 70_000.0));
        assert_eq!(cubic.epoch(Time::ZERO, 70.0).k, 0.0);
        assert_eq!(cubic.w_max, 70.0);
    }
}
