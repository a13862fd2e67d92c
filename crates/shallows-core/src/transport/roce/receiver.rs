//! The receiving end: packets in order, one NAK for a gap, notifications of marks.

use super::super::ReceivingEnd;
use super::dcqcn::NotificationPoint;
use crate::packet::Ecn;
use crate::tcp::{Ack, AckKind, Acks, ControllerConfig, SackBlocks, Segment, TcpConfig};
use crate::units::Time;

/// Receives one direction of a connection's data in order.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The next byte expected.
    next: u64,
    /// True from the NAK for a gap until the missing packet is here.
    is_waiting: bool,
    marks: Option<NotificationPoint>,
}

impl Receiver {
    /// A receiver for a new connection, if its controller paces packets.
    pub(crate) fn new(config: &TcpConfig) -> Option<Self> {
        let marks = match &config.controller {
            ControllerConfig::Dcqcn(config) => Some(NotificationPoint::new(config)),
            ControllerConfig::Timely(_) => None,
            _ => return None,
        };
        Some(Self {
            next: 0,
            is_waiting: false,
            marks,
        })
    }

    /// The answer to a packet by its place in the sequence, if there is one.
    fn answer(&mut self, segment: &Segment) -> Option<AckKind> {
        if segment.seq > self.next {
            let is_first = !self.is_waiting;
            self.is_waiting = true;
            return is_first.then_some(AckKind::Nak);
        }
        if segment.end() > self.next {
            self.next = segment.end();
            self.is_waiting = false;
        }
        Some(AckKind::Ack)
    }

    fn packet(&self, kind: AckKind, echo: Time, one_way_delay: Time) -> Ack {
        Ack {
            kind,
            ack: self.next,
            echo,
            one_way_delay,
            sack: SackBlocks::default(),
            ece: false,
            syn: false,
            ect: false,
        }
    }
}

impl ReceivingEnd for Receiver {
    fn handle_packet(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acks {
        let marks = self.marks.as_mut().filter(|_| ecn == Ecn::Ce);
        let notifies = marks.is_some_and(|marks| marks.on_mark(now));
        let answer = self.answer(segment);
        let packet = |kind| self.packet(kind, segment.sent_at, now - segment.sent_at);
        match (notifies, answer) {
            (false, None) => Acks::None,
            (false, Some(kind)) => Acks::One(packet(kind)),
            (true, None) => Acks::One(packet(AckKind::Cnp)),
            (true, Some(kind)) => Acks::Two(packet(AckKind::Cnp), packet(kind)),
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.marks.as_ref().and_then(NotificationPoint::deadline)
    }

    fn on_deadline(&mut self, now: Time) -> Option<Ack> {
        let notifies = self.marks.as_mut()?.on_deadline(now);
        notifies.then(|| self.packet(AckKind::Cnp, now, Time::ZERO))
    }

    fn received(&self) -> u64 {
        self.next
    }
}
