//! Reliable transports without I/O, behind one contract.
//!
//! A connection carries bytes one way. Its [sending end](SendingEnd) makes packets with data, its
//! [receiving end](ReceivingEnd) answers them, and the driver moves both kinds of packets and keeps
//! one timer for each end. Nothing here waits or reads a clock.
//!
//! ```
//! use shallows_core::packet::Ecn;
//! use shallows_core::tcp::TcpConfig;
//! use shallows_core::transport::{Receiver, ReceivingEnd as _, Sender, SendingEnd as _};
//! use shallows_core::units::{Bytes, Rate, Time};
//!
//! let line_rate = Rate::from_gbps(10);
//! for controller in ["dctcp", "dcqcn", "timely"] {
//!     let config: TcpConfig = toml::from_str(&format!("controller = \"{controller}\""))?;
//!     config.validate()?;
//!     let mut sender = Sender::new(&config, line_rate);
//!     let mut receiver = Receiver::new(&config);
//!     let mut now = Time::ZERO;
//!     sender.write(now, 4_000);
//!     while !sender.is_done() {
//!         while let Some(segment) = sender.poll_packet(now) {
//!             let size = Bytes::new(u64::from(segment.len + config.header));
//!             sender.departs(now, now + line_rate.transmission_time(size));
//!             for ack in receiver.handle_packet(now, &segment, Ecn::Ect0) {
//!                 sender.handle_packet(now, &ack);
//!             }
//!         }
//!         now = sender.deadline().unwrap_or(now);
//!         sender.on_deadline(now);
//!     }
//!     assert_eq!(receiver.received(), 4_000);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The driving contract:
//! - After [`write`](SendingEnd::write), [`handle_packet`](SendingEnd::handle_packet) and
//!   [`on_deadline`](SendingEnd::on_deadline), call [`poll_packet`](SendingEnd::poll_packet) until it
//!   has nothing more.
//! - If the transport [is paced](TcpConfig::is_paced), call [`departs`](SendingEnd::departs) for each
//!   packet as soon as the time is known at which it leaves its host, or was dropped there.
//! - Keep one timer for each end's `deadline`. It may be lazy: `on_deadline` before the deadline
//!   changes nothing, and a late one acts at the time given.
//! - `now` never goes back.
//!
//! | transport | module | reliability | congestion control |
//! |---|---|---|---|
//! | TCP | [`tcp`] | selective ACKs or NewReno | [a window](tcp::congestion), one file a scheme |
//! | RoCE | [`roce`] | go-back-N | a rate: [`roce::dcqcn`], [`roce::timely`] |
//!
//! A new transport is a module with two types that implement [`SendingEnd`] and [`ReceivingEnd`], an
//! arm of [`Sender`] and [`Receiver`], and a variant of [`ControllerConfig`](tcp::ControllerConfig).
//! UDP has no answers and sends messages instead of a stream of bytes. Its ends are driven by calls
//! of the same names, in [`host::udp`](crate::host::udp).

pub mod roce;

use crate::packet::Ecn;
use crate::tcp::{self, Ack, Acks, Segment, SenderStats, TcpConfig};
use crate::units::{Rate, Time};

/// The sending end of a connection. The [module](self) has the driving contract.
pub trait SendingEnd {
    /// The application hands over `bytes` to send after all before; `u64::MAX` never end.
    fn write(&mut self, now: Time, bytes: u64);

    /// The next packet that may be sent now.
    fn poll_packet(&mut self, now: Time) -> Option<Segment>;

    /// Takes a packet of the receiving end.
    fn handle_packet(&mut self, now: Time, ack: &Ack);

    /// Takes a packet of the receiving end and tells what it brought.
    #[inline]
    fn take(&mut self, now: Time, ack: &Ack) -> Progress {
        let before = self.acked();
        self.handle_packet(now, ack);
        let acked = self.acked();
        if acked == before {
            Progress::None
        } else if acked == self.written() {
            Progress::Done
        } else {
            Progress::Acked
        }
    }

    /// The last bit of the packet polled before leaves the host at `at`, which may be to come.
    fn departs(&mut self, _now: Time, _at: Time) {}

    /// Time at which [`on_deadline`](Self::on_deadline) has something to do: a timeout, or the pace
    /// allows the next packet.
    fn deadline(&self) -> Option<Time>;

    /// The timer expired, if `now` has reached the [deadline](Self::deadline).
    fn on_deadline(&mut self, now: Time);

    /// Bytes acknowledged.
    fn acked(&self) -> u64;

    /// Bytes that the application has handed over.
    fn written(&self) -> u64;

    /// Returns whether all that was written is acknowledged.
    #[inline]
    fn is_done(&self) -> bool {
        self.acked() == self.written()
    }

    /// Bytes that may be in flight: the congestion window, or the rate times the smoothed
    /// round-trip time.
    fn cwnd_bytes(&self) -> f64;

    /// The smoothed fraction of congestion, of transports that have one.
    fn alpha(&self) -> Option<f64>;

    /// Smoothed round-trip time, once there is one.
    fn srtt(&self) -> Option<Time>;

    /// Work of the sender so far.
    fn stats(&self) -> &SenderStats;
}

/// New bytes that a packet of the receiving end acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// None.
    None,
    /// Some.
    Acked,
    /// All that were written.
    Done,
}

/// The receiving end of a connection.
pub trait ReceivingEnd {
    /// Takes a packet with data and answers it.
    fn handle_packet(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acks;

    /// Time at which [`on_deadline`](Self::on_deadline) has something to send.
    fn deadline(&self) -> Option<Time>;

    /// The timer expired, if `now` has reached the [deadline](Self::deadline).
    fn on_deadline(&mut self, now: Time) -> Option<Ack>;

    /// Bytes received in order.
    fn received(&self) -> u64;
}

/// A sending end, of whichever transport. TCP's is inline, since most connections have it. With a tag
/// of its own: one hidden in a field would have to be decoded at every dispatch.
#[derive(Debug)]
#[repr(u8)]
#[expect(
    clippy::large_enum_variant,
    reason = "drivers box senders, and TCP's hot path saves a pointer"
)]
pub enum Sender {
    /// TCP.
    Tcp(tcp::Sender),
    /// RoCE.
    Roce(Box<roce::Sender>),
}

/// A receiving end, of whichever transport.
#[derive(Debug)]
#[repr(u8)]
pub enum Receiver {
    /// TCP.
    Tcp(tcp::Receiver),
    /// RoCE.
    Roce(roce::Receiver),
}

impl Sender {
    /// A sender for a new connection from a host whose NIC has this rate. The configuration must be
    /// [valid](TcpConfig::validate).
    pub fn new(config: &TcpConfig, line_rate: Rate) -> Self {
        Self::starting_at(config, line_rate, 0)
    }

    /// A sender for a new connection whose first byte has the number `first`, as that of a receiver
    /// that was used before.
    pub fn starting_at(config: &TcpConfig, line_rate: Rate, first: u64) -> Self {
        match roce::Sender::starting_at(config, line_rate, first) {
            Some(sender) => Self::Roce(Box::new(sender)),
            None => Self::Tcp(tcp::Sender::starting_at(config, first)),
        }
    }
}

impl Receiver {
    /// A receiver for a new connection. The configuration must be [valid](TcpConfig::validate).
    pub fn new(config: &TcpConfig) -> Self {
        match roce::Receiver::new(config) {
            Some(receiver) => Self::Roce(receiver),
            None => Self::Tcp(tcp::Receiver::new(config)),
        }
    }
}

/// Hands a call to whichever end there is, without a virtual call on the packet path.
macro_rules! each {
    ($kind:ident, $self:expr, $end:ident => $call:expr) => {
        match $self {
            $kind::Tcp($end) => $call,
            $kind::Roce($end) => $call,
        }
    };
}

impl SendingEnd for Sender {
    fn write(&mut self, now: Time, bytes: u64) {
        each!(Sender, self, end => end.write(now, bytes));
    }

    #[inline(always)]
    fn poll_packet(&mut self, now: Time) -> Option<Segment> {
        each!(Sender, self, end => end.poll_packet(now))
    }

    #[inline(always)]
    fn handle_packet(&mut self, now: Time, ack: &Ack) {
        each!(Sender, self, end => end.handle_packet(now, ack));
    }

    #[inline(always)]
    fn take(&mut self, now: Time, ack: &Ack) -> Progress {
        each!(Sender, self, end => end.take(now, ack))
    }

    fn departs(&mut self, now: Time, at: Time) {
        each!(Sender, self, end => end.departs(now, at));
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        each!(Sender, self, end => end.deadline())
    }

    fn on_deadline(&mut self, now: Time) {
        each!(Sender, self, end => end.on_deadline(now));
    }

    #[inline]
    fn acked(&self) -> u64 {
        each!(Sender, self, end => end.acked())
    }

    #[inline]
    fn written(&self) -> u64 {
        each!(Sender, self, end => end.written())
    }

    #[inline]
    fn is_done(&self) -> bool {
        each!(Sender, self, end => end.is_done())
    }

    fn cwnd_bytes(&self) -> f64 {
        each!(Sender, self, end => end.cwnd_bytes())
    }

    fn alpha(&self) -> Option<f64> {
        each!(Sender, self, end => end.alpha())
    }

    fn srtt(&self) -> Option<Time> {
        each!(Sender, self, end => end.srtt())
    }

    fn stats(&self) -> &SenderStats {
        each!(Sender, self, end => end.stats())
    }
}

impl ReceivingEnd for Receiver {
    #[inline(always)]
    fn handle_packet(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acks {
        each!(Receiver, self, end => end.handle_packet(now, segment, ecn))
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        each!(Receiver, self, end => end.deadline())
    }

    fn on_deadline(&mut self, now: Time) -> Option<Ack> {
        each!(Receiver, self, end => end.on_deadline(now))
    }

    #[inline]
    fn received(&self) -> u64 {
        each!(Receiver, self, end => end.received())
    }
}

impl SendingEnd for tcp::Sender {
    fn write(&mut self, now: Time, bytes: u64) {
        self.write(now, bytes);
    }

    #[inline]
    fn poll_packet(&mut self, now: Time) -> Option<Segment> {
        self.poll_segment(now)
    }

    #[inline]
    fn handle_packet(&mut self, now: Time, ack: &Ack) {
        self.on_ack(now, ack);
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        self.deadline()
    }

    fn on_deadline(&mut self, now: Time) {
        self.on_deadline(now);
    }

    #[inline]
    fn acked(&self) -> u64 {
        self.acked()
    }

    #[inline]
    fn written(&self) -> u64 {
        self.written()
    }

    fn cwnd_bytes(&self) -> f64 {
        self.cwnd_bytes()
    }

    fn alpha(&self) -> Option<f64> {
        self.alpha()
    }

    fn srtt(&self) -> Option<Time> {
        self.srtt()
    }

    fn stats(&self) -> &SenderStats {
        self.stats()
    }
}

impl ReceivingEnd for tcp::Receiver {
    #[inline]
    fn handle_packet(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acks {
        self.on_segment(now, segment, ecn)
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        self.deadline()
    }

    fn on_deadline(&mut self, now: Time) -> Option<Ack> {
        self.on_deadline(now)
    }

    #[inline]
    fn received(&self) -> u64 {
        self.received()
    }
}
