//! EAR (Zeng et al., APNet 2017, §4.1): DCTCP that hears marks and delay.
//!
//! An ACK is a congestion indicator if its segment was marked (eq. 1, judged by the switch) *or* was
//! late by more than T (eq. 2, see [`delay_dctcp`](super::delay_dctcp)). An ACK that is both counts
//! once. The indicators drive DCTCP's control law: an ACK that is none grows the window by 1/cwnd
//! (eq. 3, slow start unchanged), one that is reduces it to cwnd x (1 - alpha / 2), at most once a
//! window (eq. 4 and footnote 2). Its parameters are those of delay-based DCTCP; K is the switch's.
//!
//! `repro/ear/deviations.toml` says where the paper leaves a choice.

use super::dctcp::Judge;
use super::delay_dctcp::DelayThreshold;
use super::{AckSample, Signal};

/// EAR's signal: a mark, or a delay beyond T.
#[derive(Clone, Debug)]
pub(crate) struct MarksAndDelay(pub(super) DelayThreshold);

impl Judge for MarksAndDelay {
    #[inline]
    fn judge(&mut self, ack: &AckSample) -> Signal {
        // The base must see every delay, also of marked segments.
        match self.0.judge(ack) {
            Signal::Clear => Signal::of_echo(ack.ece),
            late => late,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dctcp::tests::ack;
    use super::super::dctcp::{Dctcp, DctcpConfig};
    use super::super::{Control as _, DelayDctcpConfig, Window};
    use super::*;
    use crate::units::Time;

    #[test]
    fn either_signal_counts_and_both_count_once() {
        let config = DctcpConfig {
            g: 1.0,
            initial_alpha: 0.0,
        };
        let delay = DelayThreshold::new(&DelayDctcpConfig::default(), 1_000);
        let mut ear = Dctcp::new(&config, MarksAndDelay(delay));
        let sample = |end, ece, us| AckSample {
            one_way_delay: Time::from_us(us),
            ..ack(end, 5_000, ece)
        };
        assert_eq!(ear.observe(&sample(1_000, false, 58)), Signal::Clear);
        // Marked; late; both; neither; and the ACK that ends the window, neither: 3 of 5.
        assert_eq!(ear.observe(&sample(2_000, true, 58)), Signal::Mark);
        assert_eq!(ear.observe(&sample(3_000, false, 203)), Signal::Delay);
        assert_eq!(ear.observe(&sample(4_000, true, 203)), Signal::Delay);
        assert_eq!(ear.observe(&sample(5_000, false, 202)), Signal::Clear);
        assert_eq!(ear.observe(&sample(6_000, false, 58)), Signal::Clear);
        assert_eq!(ear.alpha(), Some(0.6));
        let mut window = Window::new(1_000, 10, 1_000_000, 1);
        ear.on_congestion(&mut window, &sample(7_000, true, 58));
        assert_eq!(window.cwnd(), 7_000.0);
    }
}
