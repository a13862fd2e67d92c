//! DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015).
//!
//! - Congestion point (§3.1): the switch marks with a probability that rises from 0 at K_min to
//!   P_max at K_max, and beyond K_max all. That is a marker of its port: `red`, or MQ-ECN's ramp for
//!   several queues (MQ-ECN §3.4).
//! - Notification point (§3.1, Fig. 6): the receiver answers a marked packet with a CNP at once, then
//!   sends at most one in N, at the end of an N in which a packet was marked.
//! - Reaction point (§3.1, Fig. 7): a CNP cuts the rate by eq. 1; K without a CNP decays alpha by
//!   eq. 2; a timer T and a byte counter B raise the rate: F times towards the rate before the cut (fast
//!   recovery, eq. 3), then the target grows by R_AI (additive increase, eq. 4), and where both counts
//!   are beyond F by more and more (hyper increase).
//!
//! A flow starts at the line rate (§3.1, no slow start), and packets in order are assumed, so losses
//! are repaired by going back ([`super`]).
//!
//! The paper's text was not at hand; sections and figures are numbered from memory. Checked against:
//! - Zhu et al. ("ECN or Delay", CoNEXT 2016, by two of DCQCN's authors; source and fluid model in
//!   github.com/jitupadhye-zz/rdma): eq. 1 and 2 with the order of their steps, the immediate CNP, five
//!   stages of fast recovery, the start at the line rate, marking by K_min, K_max and P_max, and every
//!   default but R_HI and `minimum-rate`: N of 50 us, K of 55 us, T of 55 us, B of 10 MB, F of 5, R_AI
//!   of 40 Mbps, g of 1/256, and for switches K_min of 5 KB, K_max of 200 KB, P_max of 1%;
//! - the simulator of its first author (github.com/bobzhuyb/ns3-rdma): how timer, byte counter and
//!   CNPs act on each other, and hyper increase. It updates alpha before the cut, where CoNEXT's eq. 1
//!   has the cut first, as here.
//!
//! Choices where these are silent or disagree:
//! - The F-th count is fast recovery here, so that there are five of them, as the text says; in the
//!   simulator the F-th count of the timer or the byte counter is the first of additive increase.
//! - Hyper increase: the target grows by i x R_HI, i counting from 1, as in the simulator and in QCN
//!   (IEEE 802.1Qau). R_HI is ten times R_AI, as the simulator has by default; its sample
//!   configuration has five times. It also halves T and B there, which is not done here.
//! - Alpha is 1 at the first CNP, as in the simulator of HPCC; ns3-rdma has 0.5. Before it there is no
//!   reaction point: nothing counts or decays.
//! - A rate never falls below `minimum-rate` (both simulators have 100 Mbps), nor does rate or target
//!   rise beyond the line rate.
//! - A target of ten times the rate is not divided by eight at the first count, as ns3-rdma does after
//!   QCN.
//! - The paper sends CNPs with high priority; here they have the service of their connection.

use serde::{Deserialize, Serialize};

use super::RateControl;
use crate::tcp::ConfigError;
use crate::tcp::config::{refuse_no_rate, refuse_no_time};
use crate::units::{Bytes, Rate, Time};

/// Parameters of DCQCN, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DcqcnConfig {
    /// Weight of the newest notification in alpha (eq. 1).
    pub g: f64,
    /// N: least time between two notifications of a flow.
    pub n: Time,
    /// K: time without a notification after which alpha decays (eq. 2).
    pub k: Time,
    /// T: period of the timer that raises the rate.
    pub t: Time,
    /// B: bytes sent between two increases of the byte counter.
    pub b: Bytes,
    /// F: increases by fast recovery.
    pub f: u32,
    /// Additive increase of the target rate (eq. 4).
    pub r_ai: Rate,
    /// Hyper increase of the target rate.
    pub r_hi: Rate,
    /// Lower bound of the rate.
    pub minimum_rate: Rate,
}

impl Default for DcqcnConfig {
    fn default() -> Self {
        Self {
            g: 1.0 / 256.0,
            n: Time::from_us(50),
            k: Time::from_us(55),
            t: Time::from_us(55),
            b: Bytes::new(10_000_000),
            f: 5,
            r_ai: Rate::from_mbps(40),
            r_hi: Rate::from_mbps(400),
            minimum_rate: Rate::from_mbps(10),
        }
    }
}

impl DcqcnConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if !(self.g > 0.0 && self.g <= 1.0) {
            return Err(ConfigError::OutOfRange {
                name: "g",
                value: self.g,
                range: "(0, 1]",
            });
        }
        for (name, time) in [("n", self.n), ("k", self.k), ("t", self.t)] {
            refuse_no_time(name, time)?;
        }
        if self.b == Bytes::ZERO {
            return Err(ConfigError::Zero("b"));
        }
        refuse_no_rate("minimum-rate", self.minimum_rate)
    }
}

/// The receiver's part: it turns marks into CNPs.
#[derive(Clone, Debug)]
pub(crate) struct NotificationPoint {
    n: Time,
    /// No CNP is sent before.
    quiet_until: Time,
    /// True if a marked packet arrived since the last CNP.
    is_marked: bool,
}

impl NotificationPoint {
    pub(super) fn new(config: &DcqcnConfig) -> Self {
        Self {
            n: config.n,
            quiet_until: Time::ZERO,
            is_marked: false,
        }
    }

    /// Takes a marked packet. Returns whether to send a CNP now.
    pub(super) fn on_mark(&mut self, now: Time) -> bool {
        self.is_marked = true;
        self.on_deadline(now)
    }

    /// End of an N in which a packet was marked.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.is_marked.then_some(self.quiet_until)
    }

    /// Returns whether to send a CNP now.
    pub(super) fn on_deadline(&mut self, now: Time) -> bool {
        let is_due = self.is_marked && now >= self.quiet_until;
        if is_due {
            self.is_marked = false;
            self.quiet_until = now.saturating_add(self.n);
        }
        is_due
    }
}

/// The sender's part: it turns CNPs, time and bytes into a rate. Rates are in bits per second.
#[derive(Debug)]
pub(crate) struct ReactionPoint {
    config: DcqcnConfig,
    line_rate: f64,
    /// R_C.
    current: f64,
    /// R_T.
    target: f64,
    /// Nothing before the first CNP.
    limiter: Option<Limiter>,
}

#[derive(Clone, Copy, Debug)]
struct Limiter {
    alpha: f64,
    /// Time of the next decay of alpha.
    decay: Time,
    /// Time of the next count of the timer.
    tick: Time,
    /// Bytes sent since the last count of the byte counter.
    bytes: u64,
    /// T and BC of Figure 7: counts since the last CNP.
    timer_count: u32,
    byte_count: u32,
}

impl ReactionPoint {
    pub(super) fn new(config: DcqcnConfig, line_rate: Rate) -> Self {
        let line_rate = line_rate.bps() as f64;
        Self {
            config,
            line_rate,
            current: line_rate,
            target: line_rate,
            limiter: None,
        }
    }

    /// Raises the rate after a count of the timer or of the byte counter (Fig. 7).
    fn increase(&mut self, timer_count: u32, byte_count: u32) {
        let f = self.config.f;
        let (least, most) = (timer_count.min(byte_count), timer_count.max(byte_count));
        if least > f {
            let steps = f64::from(least - f);
            self.target += steps * self.config.r_hi.bps() as f64;
        } else if most > f {
            self.target += self.config.r_ai.bps() as f64;
        }
        self.target = self.target.min(self.line_rate);
        self.current = f64::midpoint(self.target, self.current);
    }
}

impl RateControl for ReactionPoint {
    fn rate(&self) -> Rate {
        Rate::from_bps(self.current as u64)
    }

    fn advance(&mut self, now: Time) {
        let Some(mut limiter) = self.limiter else {
            return;
        };
        while limiter.decay <= now {
            limiter.alpha *= 1.0 - self.config.g;
            limiter.decay = limiter.decay.saturating_add(self.config.k);
        }
        while limiter.tick <= now {
            limiter.timer_count = limiter.timer_count.saturating_add(1);
            limiter.tick = limiter.tick.saturating_add(self.config.t);
            self.increase(limiter.timer_count, limiter.byte_count);
        }
        self.limiter = Some(limiter);
    }

    fn next_change(&self) -> Option<Time> {
        let limiter = self.limiter.filter(|_| self.current < self.line_rate);
        limiter.map(|limiter| limiter.tick)
    }

    fn on_sent(&mut self, size: u32) {
        let Some(mut limiter) = self.limiter else {
            return;
        };
        limiter.bytes += u64::from(size);
        while limiter.bytes >= self.config.b.get() {
            limiter.bytes -= self.config.b.get();
            limiter.byte_count = limiter.byte_count.saturating_add(1);
            self.increase(limiter.timer_count, limiter.byte_count);
        }
        self.limiter = Some(limiter);
    }

    fn on_cnp(&mut self, now: Time) {
        let alpha = self.limiter.map_or(1.0, |limiter| limiter.alpha);
        // Eq. 1.
        self.target = self.current;
        let least = (self.config.minimum_rate.bps() as f64).min(self.line_rate);
        self.current = (self.current * (1.0 - alpha / 2.0)).max(least);
        self.limiter = Some(Limiter {
            alpha: (1.0 - self.config.g) * alpha + self.config.g,
            decay: now.saturating_add(self.config.k),
            tick: now.saturating_add(self.config.t),
            bytes: 0,
            timer_count: 0,
            byte_count: 0,
        });
    }

    fn alpha(&self) -> Option<f64> {
        self.limiter.map(|limiter| limiter.alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Time = Time::from_us;

    fn reaction_point(edit: impl FnOnce(&mut DcqcnConfig)) -> ReactionPoint {
        let mut config = DcqcnConfig::default();
        edit(&mut config);
        ReactionPoint::new(config, Rate::from_gbps(40))
    }

    fn gbps(point: &ReactionPoint) -> (f64, f64) {
        (point.current / 1e9, point.target / 1e9)
    }

    #[test]
    fn a_notification_cuts_by_half_of_alpha_and_raises_alpha() {
        let mut point = reaction_point(|config| config.g = 0.25);
        assert_eq!((gbps(&point), point.alpha()), ((40.0, 40.0), None));
        // alpha = 1 at first: 40 (1 - 1/2) = 20, and alpha stays (3/4) 1 + 1/4 = 1.
        point.on_cnp(US(10));
        assert_eq!((gbps(&point), point.alpha()), ((20.0, 40.0), Some(1.0)));
        // Two K of 55 us without a CNP: alpha = (3/4)^2; two ticks of T: (40 + 20) / 2, (40 + 30) / 2.
        point.advance(US(119));
        assert_eq!((gbps(&point), point.alpha()), ((30.0, 40.0), Some(0.75)));
        point.advance(US(120));
        assert_eq!((gbps(&point), point.alpha()), ((35.0, 40.0), Some(0.5625)));
        // 35 (1 - 0.5625 / 2) = 25.15625; alpha = 0.75 x 0.5625 + 0.25 = 0.671875.
        point.on_cnp(US(130));
        assert_eq!(gbps(&point), (25.156_25, 35.0));
        assert_eq!(point.alpha(), Some(0.671_875));
        // The timer starts anew with the CNP.
        assert_eq!(point.next_change(), Some(US(185)));
    }

    #[test]
    fn five_recoveries_then_the_target_grows() {
        let mut point = reaction_point(|_| {});
        point.on_cnp(Time::ZERO);
        // Each time half of the way to 40: 20 + 10 + 5 + 2.5 + 1.25 + 0.625 = 39.375.
        point.advance(US(5 * 55));
        assert_eq!(gbps(&point), (39.375, 40.0));
        // From a lower target additive increase shows: after a second cut the target is 39.375.
        point.on_cnp(US(300));
        let (cut, target) = gbps(&point);
        assert_eq!(target, 39.375);
        point.advance(US(300 + 5 * 55));
        let (recovered, target) = gbps(&point);
        assert_eq!(target, 39.375);
        assert_eq!(recovered, target - (target - cut) / 32.0);
        point.advance(US(300 + 6 * 55));
        let (_, target) = gbps(&point);
        assert!((target - 39.415).abs() < 1e-9, "{target}");
    }

    #[test]
    fn bytes_count_as_well_and_both_beyond_f_are_hyper_increase() {
        let mut point = reaction_point(|config| {
            config.b = Bytes::new(1_000);
            config.f = 1;
            config.minimum_rate = Rate::from_gbps(1);
        });
        for _ in 0..6 {
            point.on_cnp(Time::ZERO);
        }
        // 40, 20, 10, 5, 2.5, 1.25, at least 1.
        assert_eq!(gbps(&point), (1.0, 1.25));
        // BC = 1 is fast recovery, BC = 2 additive increase by 0.04.
        point.on_sent(1_500);
        assert_eq!(gbps(&point), (1.125, 1.25));
        point.on_sent(500);
        assert!((point.target / 1e9 - 1.29).abs() < 1e-9);
        // T = 1: still additive, since min(T, BC) = 1 is not beyond F.
        point.advance(US(55));
        assert!((point.target / 1e9 - 1.33).abs() < 1e-9);
        // T = 2, BC = 2: by 1 x 0.4.
        point.advance(US(110));
        assert!((point.target / 1e9 - 1.73).abs() < 1e-9);
        // T = 3 and BC = 3, one after the other: min is 2, then 3: by 0.4 and by 2 x 0.4.
        point.advance(US(165));
        point.on_sent(1_000);
        assert!((point.target / 1e9 - 2.93).abs() < 1e-9);
    }

    #[test]
    fn rates_stay_within_the_line_rate() {
        let mut point = reaction_point(|config| config.r_ai = Rate::from_gbps(30));
        point.on_cnp(Time::ZERO);
        point.advance(US(55 * 100));
        assert_eq!(gbps(&point), (40.0, 40.0));
        assert_eq!(point.next_change(), None);
    }

    #[test]
    fn one_notification_at_once_and_one_in_n() {
        let mut point = NotificationPoint::new(&DcqcnConfig::default());
        assert_eq!(point.deadline(), None);
        assert!(point.on_mark(US(10)));
        assert_eq!(point.deadline(), None);
        // Marks within 50 us make one notification at their end.
        assert!(!point.on_mark(US(20)));
        assert!(!point.on_mark(US(59)));
        assert_eq!(point.deadline(), Some(US(60)));
        assert!(!point.on_deadline(US(59)));
        assert!(point.on_deadline(US(60)));
        assert!(!point.on_deadline(US(60)));
        // Nothing was marked by 110 us, so the next mark is answered at once.
        assert_eq!(point.deadline(), None);
        assert!(!point.on_deadline(US(110)));
        assert!(point.on_mark(US(111)));
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let problem = |edit: fn(&mut DcqcnConfig)| {
            let mut config = DcqcnConfig::default();
            edit(&mut config);
            config.validate().unwrap_err().to_string()
        };
        assert_eq!(problem(|config| config.g = 0.0), "g is 0, not in (0, 1]");
        assert_eq!(
            problem(|config| config.n = Time::ZERO),
            "n must be more than 0s"
        );
        assert_eq!(
            problem(|config| config.b = Bytes::ZERO),
            "b must be at least 1"
        );
        assert_eq!(
            problem(|config| config.minimum_rate = Rate::from_bps(0)),
            "minimum-rate must be at least 1"
        );
    }
}
