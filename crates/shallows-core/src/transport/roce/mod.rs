//! RoCE: the reliable connection of InfiniBand over UDP, as NICs have it (InfiniBand architecture
//! specification, annex A17 and §9.7).
//!
//! - The receiver takes packets in order only. It answers the first one after a gap with a NAK and
//!   drops all until the missing one arrives; the sender goes back to it (go-back-N).
//! - There is no window. A rate decides when the next packet goes, and each scheme that computes it
//!   is one file: [`dcqcn`] from marks, [`timely`] from round-trip times.
//! - A connection has one packet in its NIC at a time, so the connections of a host share the NIC
//!   packet by packet, and one whose NIC is paused (PFC) stops.
//!
//! Choices where NICs differ: every packet in order is acknowledged, and ACKs have one header. The
//! timeout is that of RFC 6298 with the bounds of [`rto`](crate::tcp::TcpConfig::rto), where NICs
//! have a constant; set its minimum and maximum to the same value for that. A NAK is sent once for a
//! gap, so a packet that is lost twice waits for the timeout.

pub mod dcqcn;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
pub mod timely;

use crate::tcp::ControllerConfig;
use crate::units::{Rate, Time};
pub use receiver::Receiver;
pub use sender::Sender;

use dcqcn::ReactionPoint;
use timely::Timely;

/// A scheme that decides the rate of a connection. Its timers are advanced before each other call.
pub(crate) trait RateControl {
    /// The rate now.
    fn rate(&self) -> Rate;

    /// Does what timers had to do by `now`.
    fn advance(&mut self, _now: Time) {}

    /// The time of the next change without a packet.
    fn next_change(&self) -> Option<Time> {
        None
    }

    /// A packet of `size` bytes with headers was sent.
    fn on_sent(&mut self, _size: u32) {}

    /// A congestion notification has arrived.
    fn on_cnp(&mut self, _now: Time) {}

    /// Packets were acknowledged.
    fn on_ack(&mut self, _sample: &Completion) {}

    /// The smoothed fraction of congestion, where there is one.
    fn alpha(&self) -> Option<f64> {
        None
    }
}

/// The ACK of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// Arrival of the ACK.
    pub(crate) now: Time,
    /// Bytes that it acknowledged.
    pub(crate) acked: u64,
    /// From sending to the ACK of the packet, without its transmission by the NIC.
    pub(crate) rtt: Time,
}

/// A running scheme.
#[derive(Debug)]
enum Law {
    Dcqcn(ReactionPoint),
    Timely(Timely),
}

impl Law {
    /// The scheme of a controller that paces packets.
    fn new(config: &ControllerConfig, line_rate: Rate) -> Option<Self> {
        match config {
            ControllerConfig::Dcqcn(config) => {
                Some(Self::Dcqcn(ReactionPoint::new(*config, line_rate)))
            }
            ControllerConfig::Timely(config) => Some(Self::Timely(Timely::new(*config, line_rate))),
            _ => None,
        }
    }

    /// Returns whether packets of the scheme may be marked.
    fn is_ect(&self) -> bool {
        matches!(self, Self::Dcqcn(_))
    }
}

macro_rules! each_law {
    ($self:expr, $law:ident => $call:expr) => {
        match $self {
            Law::Dcqcn($law) => $call,
            Law::Timely($law) => $call,
        }
    };
}

impl RateControl for Law {
    fn rate(&self) -> Rate {
        each_law!(self, law => law.rate())
    }

    fn advance(&mut self, now: Time) {
        each_law!(self, law => law.advance(now));
    }

    fn next_change(&self) -> Option<Time> {
        each_law!(self, law => law.next_change())
    }

    fn on_sent(&mut self, size: u32) {
        each_law!(self, law => law.on_sent(size));
    }

    fn on_cnp(&mut self, now: Time) {
        each_law!(self, law => law.on_cnp(now));
    }

    fn on_ack(&mut self, sample: &Completion) {
        each_law!(self, law => law.on_ack(sample));
    }

    fn alpha(&self) -> Option<f64> {
        each_law!(self, law => law.alpha())
    }
}
