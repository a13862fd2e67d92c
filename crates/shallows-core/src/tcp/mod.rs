//! TCP without I/O: a sender and a receiver for one direction of data.
//!
//! The driver moves segments and ACKs and keeps one timer for each side; nothing here waits or
//! reads a clock. Sequence numbers count bytes from 0 and never wrap; a SYN takes none.
//!
//! ```
//! use shallows_core::packet::Ecn;
//! use shallows_core::tcp::{Receiver, Sender, TcpConfig};
//! use shallows_core::units::Time;
//!
//! let config = TcpConfig::default();
//! let (mut sender, mut receiver) = (Sender::new(&config), Receiver::new(&config));
//! sender.write(Time::ZERO, 4_000);
//! while let Some(segment) = sender.poll_segment(Time::ZERO) {
//!     for ack in receiver.on_segment(Time::from_us(10), &segment, Ecn::Ect0) {
//!         sender.on_ack(Time::from_us(20), &ack);
//!     }
//! }
//! assert!(sender.is_done());
//! assert_eq!(receiver.received(), 4_000);
//! ```
//!
//! The driving contract:
//! - After [`Sender::write`], [`Sender::on_ack`] and [`Sender::on_deadline`], call
//!   [`Sender::poll_segment`] until it has nothing more.
//! - Keep one timer for [`Sender::deadline`]. It may be lazy: a call of [`Sender::on_deadline`]
//!   before the deadline changes nothing, and a late one acts at the time given.
//! - The same for [`Receiver::deadline`], which only delayed ACKs set.
//! - `now` never goes back.
//!
//! | part | where | follows |
//! |---|---|---|
//! | reliability, NewReno and SACK recovery | [`Sender`] | RFC 5681, 6582, 6675, 3042 |
//! | retransmission timeout | [`RtoConfig`] | RFC 6298 |
//! | reassembly, delayed ACKs, ECN echo | [`Receiver`] | RFC 5681, 2018, 3168, 8257 |
//! | congestion control | [`congestion`] | one file a scheme |

pub mod config;
pub mod congestion;
mod ranges;
mod receiver;
pub(crate) mod rto;
mod sender;
mod wire;

pub use config::{
    AckCount, AfterIdle, ConfigError, DelayedAck, EcnEcho, MarkedGrowth, Recovery, RtoConfig,
    TcpConfig,
};
pub use congestion::{ControllerConfig, Growth};
pub use receiver::Receiver;
pub use sender::{Sender, SenderStats};
pub use wire::{Ack, AckKind, Acks, SackBlocks, Segment};
