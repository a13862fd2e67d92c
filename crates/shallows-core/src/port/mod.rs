//! The egress port: where packets wait, get marked and leave.
//!
//! ```text
//! offer -> classifier -> buffer -> marker -> queues -> scheduler -> shaper -> link -> transmit
//! ```
//!
//! [`EgressPort`] is one type that a simulator and a live switch both drive. It has no clock: the
//! driver says what time it is. Its parts are chosen by a [`PortConfig`]; markers and schedulers of
//! other crates are found by a [`Registry`](crate::registry::Registry).
//!
//! # Driving a port
//!
//! - [`offer`](EgressPort::offer) hands it a packet.
//! - [`transmit`](EgressPort::transmit) asks for the next one. The answer is a packet and when its
//!   last bit is on the wire, or a time to ask again, or that nothing is ready: then ask after the
//!   next offer or resume.
//!
//! Times must not run backwards. A simulator asks at the very times that the port gives; a live
//! switch that asks late gets the packet late, and the port counts its transmission from then on.
//!
//! ```
//! use shallows_core::packet::{Descriptor, Ecn};
//! use shallows_core::port::{EgressPort, Pool, PortConfig, Transmit};
//! use shallows_core::units::{Rate, Time};
//!
//! let config: PortConfig = toml::from_str(
//!     r#"
//!     buffer = { shared = { size = "300KB" } }
//!     scheduler = "fifo"
//!     marker = { scheme = { per-queue = { threshold = "1pkt" } } }
//!     "#,
//! )?;
//! let mut port = EgressPort::new(Rate::from_gbps(10), &config, 1, 0)?;
//! let mut pool = Pool::unlimited();
//! let packet = Descriptor { size: 1500, ecn: Ecn::Ect0, ..Descriptor::default() };
//! let start = Time::ZERO;
//! port.offer(start, packet, &mut pool);
//! port.offer(start, packet, &mut pool);
//!
//! let Transmit::Packet(first) = port.transmit(start, &mut pool) else { unreachable!() };
//! assert_eq!(first.packet.ecn, Ecn::Ect0);
//! assert_eq!(first.finish, Time::from_ns(1200));
//! // The link is busy, so the port says when to come back.
//! assert!(matches!(port.transmit(start, &mut pool), Transmit::Wait(at) if at == first.finish));
//! let Transmit::Packet(second) = port.transmit(first.finish, &mut pool) else { unreachable!() };
//! assert_eq!(second.packet.ecn, Ecn::Ce, "it made the queue longer than one packet");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod buffer;
pub mod classifier;
mod config;
mod counters;
mod egress;
pub mod framing;
mod link;
mod look_ahead;
pub mod marker;
mod meter;
mod notation;
pub mod pause;
mod plain;
mod queue_set;
mod queueing;
mod queues;
pub mod scheduler;
pub mod shaper;
mod state;

pub use buffer::{BufferConfig, Pool};
pub use classifier::{ClassifierConfig, SizeClass, SizeClasses};
pub use config::{Accounting, ConfigError, PortConfig};
pub use counters::{DropReason, MarkReason, QueueCounters};
pub use egress::EgressPort;
pub use framing::Framing;
pub use marker::{MarkPoint, MarkerConfig, Measure, SchemeConfig};
pub use notation::{PerIndex, TEXT_OR_TABLE};
pub use queue_set::{MAX_QUEUES, QueueSet};
pub use queues::Queues;
pub use scheduler::{RoundObserver, SchedulerConfig, Sharing};
pub use shaper::{ShaperConfig, TokenBucket};

use crate::units::Time;

/// Outcome of an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It waits in a queue.
    Queued,
    /// It was dropped, and is among [`EgressPort::take_dropped`].
    Dropped(DropReason),
}

/// The answer to [`EgressPort::forward`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Its transmission starts now, or [later](EgressPort::look_ahead) at a time that is certain.
    Sent(Passage),
    /// It waits in a queue.
    Queued,
    /// It was dropped, and is among [`EgressPort::take_dropped`].
    Dropped(DropReason),
}

/// The answer to [`EgressPort::transmit`].
#[derive(Clone, Copy, Debug)]
pub enum Transmit<P> {
    /// Send this.
    Packet(Departure<P>),
    /// Nothing may go before this time: the link or the shaper is not ready.
    Wait(Time),
    /// No queue has a packet that is not paused.
    Idle,
}

/// A packet on its way out.
#[derive(Clone, Copy, Debug)]
pub struct Departure<P> {
    /// The packet, marked if it was to be.
    pub packet: P,
    /// The queue it left.
    pub queue: usize,
    /// Time at which its last bit is on the wire and the port can send again.
    pub finish: Time,
    /// Waiting time from its offer to the start of its transmission.
    pub sojourn: Time,
}

/// The departure of a packet that the caller keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The queue it passed.
    pub queue: usize,
    /// Time at which its last bit is on the wire.
    pub finish: Time,
    /// Waiting time from its offer to the start of its transmission.
    pub sojourn: Time,
}
