//! DX (Lee et al., "Accurate Latency-based Congestion Feedback for Datacenters", USENIX ATC 2015;
//! "DX: Latency-Based Congestion Control for Datacenters", IEEE/ACM ToN 25(1), 2017).
//!
//! Once a window of data, with Q the mean queueing delay of its segments:
//!
//! ```text
//! cwnd = cwnd + 1              if Q = 0
//! cwnd = cwnd x (1 - Q / V)    if Q > 0,    V = R x cwnd / (cwnd - 1)
//! ```
//!
//! cwnd is in segments, and R is the round-trip time without queues. V drains the queue at once: if N
//! such flows fill a link of C segments a second exactly, N x cwnd = C x R, and each adds one, then
//! N segments wait, Q = N / C, and Q / V x (cwnd + 1) is one segment for each.
//!
//! Neither text of DX was at hand. The law is that of the code which the authors of EAR published
//! (EAR-NS2, `tcp-full.cc`, `ecn_delay_algorithm_` 1, "codes from Chlee", DX's first author), and the
//! derivation of V above is ours. From that code are also:
//! - Q is of one-way delays, less the least one of a full segment; R is the least round-trip time of
//!   a full segment. Both are of the connection's life.
//! - Delays up to a headroom count as no queue, and Q is what exceeds it: ten packets at 10 Gbps in
//!   their script, where a window that leaves its host as a burst waits in the host's own queue. (DX
//!   itself takes the times of NICs, after that queue.)
//! - A reduction takes half of the window at most, and none is made at 1.5 segments or less.
//! - Slow start lasts until the first reduction; losses and timeouts act as in standard TCP.
//!
//! Different: their window grows with the ACKs of every window, also of one whose end reduces it.

use serde::{Deserialize, Serialize};

use super::super::ConfigError;
use super::{AckSample, Control, Loss, Signal, Window};
use crate::units::Time;

/// Parameters of DX.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DxConfig {
    /// Queueing delay that counts as none. The authors of EAR have 12 us for their fat-tree and 7.2 us
    /// for their chain of switches, at 10 Gbps.
    pub headroom: Time,
}

impl Default for DxConfig {
    fn default() -> Self {
        Self {
            headroom: Time::from_us(12),
        }
    }
}

impl DxConfig {
    pub(super) fn validate(self) -> Result<(), ConfigError> {
        if self.headroom > super::super::TcpConfig::LONGEST_TIMER {
            return Err(ConfigError::TooLong {
                name: "headroom",
                value: self.headroom,
            });
        }
        Ok(())
    }
}

/// A running DX.
#[derive(Clone, Debug)]
pub(crate) struct Dx {
    headroom: Time,
    /// Bytes of data in a full segment.
    segment: u64,
    /// The least one-way delay of a full segment so far.
    base: Time,
    /// R: the least round-trip time of a full segment so far.
    base_rtt: Time,
    /// An ACK beyond it ends the window of data.
    window_end: u64,
    /// Sum of the one-way delays of this window, and how many there are.
    delays: (Time, u64),
    /// Q of a window that has just ended.
    queueing: Option<Time>,
}

impl Dx {
    pub(super) fn new(config: DxConfig, segment: u64) -> Self {
        Self {
            headroom: config.headroom,
            segment,
            base: Time::MAX,
            base_rtt: Time::MAX,
            window_end: 0,
            delays: (Time::ZERO, 0),
            queueing: None,
        }
    }

    /// Starts a window of data that ends at `end`, and returns Q of the one before.
    fn end_window(&mut self, end: u64) -> Time {
        self.window_end = end;
        let (sum, count) = std::mem::take(&mut self.delays);
        let mean = Time::from_ps(sum.ps() / count.max(1));
        // Without a base, which a full segment makes, nothing is known of queues.
        mean.saturating_sub(self.base).saturating_sub(self.headroom)
    }
}

impl Control for Dx {
    fn observe(&mut self, ack: &AckSample) -> Signal {
        if ack.acked >= self.segment {
            self.base = self.base.min(ack.one_way_delay);
            self.base_rtt = self.base_rtt.min(ack.rtt);
        }
        self.delays.0 += ack.one_way_delay;
        self.delays.1 += 1;
        self.queueing = (ack.ack > self.window_end).then(|| self.end_window(ack.next));
        match self.queueing {
            Some(q) if q > Time::ZERO => Signal::Delay,
            _ => Signal::Clear,
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &AckSample) {
        if window.in_slow_start() {
            window.grow(ack.acked);
        } else if self.queueing.is_some() {
            window.set(window.cwnd() + window.segment());
        }
    }

    fn on_congestion(&mut self, window: &mut Window, _ack: &AckSample) {
        let segments = window.cwnd() / window.segment();
        let (Some(q), true) = (self.queueing, segments > 1.5) else {
            return;
        };
        let v = self.base_rtt.as_secs_f64() * segments / (segments - 1.0);
        let share = (q.as_secs_f64() / v).min(0.5);
        window.reduce(window.cwnd() * (1.0 - share));
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        if !loss.answered {
            window.set_ssthresh(loss.flight as f64 / 2.0);
        }
        window.collapse();
        self.window_end = loss.next;
        self.delays = (Time::ZERO, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::dctcp::tests::ack;
    use super::*;

    /// The ACK of 1000 bytes up to `end`, whose segment took `us`, of a path of 50 us there and back.
    fn late(end: u64, next: u64, us: u64) -> AckSample {
        AckSample {
            one_way_delay: Time::from_us(us),
            rtt: Time::from_us(us + 20),
            ..ack(end, next, false)
        }
    }

    fn started(segments: u32) -> (Dx, Window) {
        let mut window = Window::new(1_000, segments, 1_000_000, 1);
        window.set_ssthresh(0.0);
        (Dx::new(DxConfig::default(), 1_000), window)
    }

    /// Takes an ACK as the sender does.
    fn take(dx: &mut Dx, window: &mut Window, ack: &AckSample) -> f64 {
        match dx.observe(ack) {
            Signal::Clear => dx.grow(window, ack),
            _ => dx.on_congestion(window, ack),
        }
        window.cwnd()
    }

    #[test]
    fn the_window_grows_by_a_segment_for_each_window_without_a_queue() {
        let (mut dx, mut window) = started(4);
        // The first ACK ends the window before it; the one of 5000 ends that up to 4000.
        for (end, cwnd) in [
            (1_000, 5_000.0),
            (2_000, 5_000.0),
            (3_000, 5_000.0),
            (4_000, 5_000.0),
            (5_000, 6_000.0),
        ] {
            // Up to 12 us over the least, 30 us, are no queue.
            let us = if end == 3_000 { 42 } else { 30 };
            let next = if end < 5_000 { 4_000 } else { 10_000 };
            assert_eq!(
                take(&mut dx, &mut window, &late(end, next, us)),
                cwnd,
                "{end}"
            );
        }
    }

    #[test]
    fn a_queue_shrinks_the_window_by_q_over_v() {
        let (mut dx, mut window) = started(5);
        take(&mut dx, &mut window, &late(1_000, 3_000, 30));
        assert_eq!(window.cwnd(), 6_000.0);
        // Delays of 30, 60 and 66 us have a mean of 52: Q = 52 - 30 - 12 = 10 us, of R = 50 us.
        // V = 50 x 6 / 5 = 60 us, so 1 - 10 / 60 of six segments are left: five.
        take(&mut dx, &mut window, &late(2_000, 8_000, 30));
        take(&mut dx, &mut window, &late(3_000, 8_000, 60));
        take(&mut dx, &mut window, &late(4_000, 8_000, 66));
        assert!((window.cwnd() - 5_000.0).abs() < 1e-6, "{}", window.cwnd());
        assert!(!window.in_slow_start());
    }

    #[test]
    fn v_drains_exactly_what_all_flows_have_added() {
        // 10 flows of 9 segments fill a link of 90 segments a 50 us; each adds one, so that 10 wait
        // for 10 / 90 x 50 us.
        let (mut dx, mut window) = started(9);
        dx.headroom = Time::ZERO;
        take(&mut dx, &mut window, &late(1_000, 1_000, 30));
        assert_eq!(window.cwnd(), 10_000.0);
        let sample = AckSample {
            one_way_delay: Time::from_us(30) + Time::from_ps(50_000_000 * 10 / 90),
            ..late(2_000, 12_000, 30)
        };
        take(&mut dx, &mut window, &sample);
        assert!((window.cwnd() - 9_000.0).abs() < 1e-3, "{}", window.cwnd());
    }

    #[test]
    fn at_most_half_and_nothing_of_a_window_of_one_and_a_half() {
        let (mut dx, mut window) = started(7);
        take(&mut dx, &mut window, &late(1_000, 1_000, 30));
        for (end, cwnd) in [
            (2_000, 4_000.0),
            (3_000, 2_000.0),
            (4_000, 1_000.0),
            (5_000, 1_000.0),
        ] {
            assert_eq!(take(&mut dx, &mut window, &late(end, end, 900)), cwnd);
        }
    }

    #[test]
    fn slow_start_ends_with_the_first_queue() {
        let mut window = Window::new(1_000, 2, 1_000_000, 1);
        let mut dx = Dx::new(DxConfig::default(), 1_000);
        take(&mut dx, &mut window, &late(1_000, 3_000, 30));
        take(&mut dx, &mut window, &late(2_000, 5_000, 30));
        take(&mut dx, &mut window, &late(3_000, 6_000, 30));
        assert_eq!(window.cwnd(), 5_000.0);
        take(&mut dx, &mut window, &late(4_000, 8_000, 900));
        assert!(!window.in_slow_start() && window.cwnd() < 5_000.0);
    }

    #[test]
    fn short_segments_make_no_base() {
        let (mut dx, mut window) = started(4);
        let short = AckSample {
            acked: 100,
            ..late(100, 1_100, 5)
        };
        take(&mut dx, &mut window, &short);
        take(&mut dx, &mut window, &late(1_100, 2_100, 30));
        assert_eq!(
            (dx.base, dx.base_rtt),
            (Time::from_us(30), Time::from_us(50))
        );
    }

    #[test]
    fn after_a_timeout_a_new_window_of_data_is_observed() {
        let (mut dx, mut window) = started(4);
        take(&mut dx, &mut window, &late(1_000, 5_000, 900));
        let loss = Loss {
            flight: 4_000,
            answered: false,
            next: 1_000,
        };
        dx.on_timeout(&mut window, &loss);
        assert_eq!((window.cwnd(), window.ssthresh()), (1_000.0, 2_000.0));
        // The late segments of before do not count.
        assert_eq!(dx.observe(&late(2_000, 3_000, 900)), Signal::Clear);
    }
}
