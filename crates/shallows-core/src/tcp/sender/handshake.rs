//! The handshake: a SYN until it is answered, and then data.
//!
//! Data follows the SYN-ACK; the ACK of the SYN-ACK is that data.

use super::{Ack, Phase, Segment, Sender};
use crate::units::Time;

impl Sender {
    pub(super) fn poll_syn(&mut self, now: Time) -> Option<Segment> {
        if !std::mem::take(&mut self.retransmit_now) {
            return None;
        }
        self.start_timer_if_idle(now);
        Some(Segment {
            seq: 0,
            sent_at: now,
            len: 0,
            syn: true,
            retransmission: self.phase == Phase::SynSent { lost: true },
            cwr: false,
            ect: false,
        })
    }

    #[cold]
    pub(super) fn on_syn_ack(&mut self, now: Time, ack: &Ack) {
        let Phase::SynSent { lost } = self.phase else {
            return;
        };
        if !ack.syn {
            return;
        }
        self.phase = Phase::Open;
        self.deadline = None;
        self.retransmit_now = false;
        self.rto.sample(now.saturating_sub(ack.echo));
        if lost {
            // RFC 5681 §3.1.
            self.window.collapse();
        }
        self.use_window();
    }
}
