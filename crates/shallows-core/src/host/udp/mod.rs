//! UDP without I/O: a sender that does not react to the network, and a receiver that puts messages
//! together again.
//!
//! A message that does not fit a packet travels in fragments of IPv4 (RFC 791 §3.2), and one lost
//! fragment loses it whole: a link can be busy while its receiver gets nothing (XCo §2.2).
//!
//! ```
//! use shallows_core::host::udp::{Receiver, Sender, UdpConfig};
//! use shallows_core::units::Time;
//!
//! let config: UdpConfig = toml::from_str("send = { message = { size = \"64KB\" } }")?;
//! config.validate()?;
//! let (mut sender, mut receiver) = (Sender::new(&config, Time::ZERO), Receiver::new(&config));
//! let mut delivered = 0;
//! for _ in 0..44 {
//!     let datagram = sender.poll_packet(Time::ZERO).expect("64,008 bytes are 44 fragments");
//!     sender.departs(Time::from_us(2), datagram.size);
//!     delivered += receiver.handle_packet(Time::from_us(10), &datagram).map_or(0, |m| m.len);
//! }
//! assert_eq!(delivered, 64_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The driving contract is that of a [sending end](crate::transport) without answers:
//! - Call [`Sender::poll_packet`] until it has nothing more, at first and at each
//!   [`Sender::deadline`].
//! - Call [`Sender::departs`] for each packet as soon as the time is known at which it leaves its
//!   host, or was dropped there. It may move the deadline.
//! - `now` never goes back.

mod config;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use crate::units::Time;

pub use config::{ConfigError, Pattern, ReassemblyConfig, UdpConfig};
pub use receiver::{Delivery, Receiver, ReceiverStats};
pub use sender::{Sender, SenderStats, fragments};

/// Bytes of an IPv4 header; each fragment has one.
pub const IP_HEADER: u32 = 20;
/// Bytes of a UDP header; the first fragment of a message has it.
pub const UDP_HEADER: u32 = 8;
/// The largest message: what remains of the 65,535 bytes that IPv4 can put together.
pub const MAX_MESSAGE: u64 = 65_535 - IP_HEADER as u64 - UDP_HEADER as u64;
/// The smallest packet that a network must let through whole (RFC 791 §3.1 asks hosts for it).
pub const MIN_MTU: u32 = 576;

/// A packet with a message, or with a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The message's number, counted from 0.
    pub message: u64,
    /// Time at which the application sent the message.
    pub sent_at: Time,
    /// Length of the packet with its headers.
    pub size: u32,
    /// Bytes of the message in it.
    pub len: u32,
    /// Index of this fragment, from 0.
    pub fragment: u16,
    /// Number of fragments of the message.
    pub fragments: u16,
    /// ECN-capable: may be marked.
    pub ect: bool,
}

impl Datagram {
    /// Returns whether it is the last fragment of its message.
    pub fn is_last(&self) -> bool {
        self.fragment + 1 == self.fragments
    }
}
