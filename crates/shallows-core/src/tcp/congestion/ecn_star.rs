//! ECN*: ECN-enabled TCP that halves its window for a mark (Wu et al., CoNEXT 2012; MQ-ECN §2.1).
//!
//! The name stands for standard TCP with ECN on switches that mark by the instantaneous queue
//! length, so the sender is [`Reno`](super::reno) with RFC 3168: a marked ACK halves the window, at
//! most once a window of data. It is a scheme of its own here so that a scenario reads like the
//! papers, and so that it comes with ECN on.

use super::Control;

/// A running ECN*, which remembers nothing.
#[derive(Clone, Debug)]
pub(crate) struct EcnStar;

impl Control for EcnStar {}

#[cfg(test)]
mod tests {
    use super::super::{AckSample, Signal, Window};
    use super::*;
    use crate::units::Time;

    #[test]
    fn a_mark_halves() {
        let ack = AckSample {
            now: Time::ZERO,
            acked: 1_000,
            ack: 1_000,
            next: 9_000,
            flight: 9_000,
            ece: true,
            one_way_delay: Time::ZERO,
            rtt: Time::ZERO,
            srtt: Time::ZERO,
        };
        let mut window = Window::new(1_000, 9, 1_000_000, 1);
        assert_eq!(EcnStar.observe(&ack), Signal::Mark);
        EcnStar.on_congestion(&mut window, &ack);
        assert_eq!((window.cwnd(), window.ssthresh()), (4_500.0, 4_500.0));
    }
}
