//! Expiries of the retransmission timer.
//!
//! After a timeout everything beyond the last ACK is sent again, slowly, except what selective ACKs
//! report after it (RFC 6675 §5.1). The reports from before are forgotten (RFC 2018 §8).
//!
//! Differences:
//! - Marks may reduce the window at once after a timeout: they tell of the new, small window.
//! - A timeout in fast recovery keeps the threshold, as in Linux: the loss has been answered, and
//!   what is outstanding then includes what left the network.

use super::super::congestion::Loss;
use super::{Control, Phase, Recovery, Sender};
use crate::units::Time;

impl Sender {
    /// The timer expired, if `now` has reached the [deadline](Self::deadline).
    pub fn on_deadline(&mut self, now: Time) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.stats.timeouts += 1;
        self.rto.back_off();
        self.deadline = Some(now + self.rto.current());
        if let Phase::SynSent { lost } = &mut self.phase {
            *lost = true;
            self.retransmit_now = true;
        } else {
            self.start_over();
        }
    }

    /// Starts over from the last ACK after a timeout (RFC 5681 §3.1, RFC 6582 §3.2 step 4).
    fn start_over(&mut self) {
        let full_tcp = self.rules.recovery == Recovery::FullTcp;
        let recovering = matches!(self.phase, Phase::NewReno { .. } | Phase::Sack);
        let loss = Loss {
            flight: if full_tcp {
                self.window.cwnd() as u64
            } else {
                self.flight_size()
            },
            answered: if full_tcp {
                self.cut_by_mark
            } else {
                recovering || self.timeouts_in_row > 0
            },
            next: self.una,
        };
        self.controller.on_timeout(&mut self.window, &loss);
        self.timeouts_in_row = self.timeouts_in_row.saturating_add(1);
        self.next = self.una;
        self.sample_after = self.una;
        self.cut_by_mark &= full_tcp;
        self.reduced_until = if self.cut_by_mark { self.max } else { self.una };
        self.recover = self.max;
        self.phase = Phase::Resend;
        self.retransmit_now = false;
        self.duplicate_acks = 0;
        self.sack.forget();
        self.use_window();
    }

    /// FlightSize of RFC 5681, at most the window: neither limited transmit (§3.2 step 2) nor what
    /// was outstanding before a reduction may raise the threshold.
    pub(super) fn flight_size(&self) -> u64 {
        (self.max - self.una).min(self.window.cwnd() as u64)
    }
}
