//! A UDP sender and its receiver as written in a scenario.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{IP_HEADER, MAX_MESSAGE, MIN_MTU, UDP_HEADER};
use crate::keyed::Keyed;
use crate::units::{Bytes, Rate, Time};

/// Parameters of a UDP stream.
///
/// ```
/// # use shallows_core::host::udp::UdpConfig;
/// let config: UdpConfig = toml::from_str(
///     r#"
///     send = { constant = { rate = "50Mbps", size = "1472B" } }
///     mtu = 1500
///     "#,
/// )?;
/// config.validate()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct UdpConfig {
    /// Sending pattern and message sizes.
    pub send: Pattern,
    /// Largest packet with headers; larger messages are fragmented.
    pub mtu: u32,
    /// The socket's send buffer: no message is sent while this many bytes of earlier messages are
    /// still in the host. It bounds the backlog of an unlimited sender.
    pub send_buffer: Bytes,
    /// Random delay of each message, up to this time, which keeps senders of equal rate out of
    /// step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Time>,
    /// True if datagrams are ECN-capable.
    pub ect: bool,
    /// Reassembly at the receiver.
    pub reassembly: ReassemblyConfig,
    /// True if to record the latency of each message.
    pub latencies: bool,
}

impl Default for UdpConfig {
    /// Full packets as fast as the NIC takes them, with the buffers and times that Linux has.
    fn default() -> Self {
        Self {
            send: Pattern::default(),
            mtu: 1500,
            send_buffer: Bytes::new(208 << 10),
            jitter: None,
            ect: false,
            reassembly: ReassemblyConfig::default(),
            latencies: false,
        }
    }
}

/// Sending pattern of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pattern {
    /// Constant rate, regardless of losses.
    Constant {
        /// Rate of message bytes, without headers.
        rate: Rate,
        /// Size of a message.
        #[serde(default = "full_packet")]
        size: Bytes,
    },
    /// Single packets, as fast as the send buffer has room.
    Saturating {
        /// Size of a message.
        #[serde(default = "full_packet")]
        size: Bytes,
    },
    /// Messages of many fragments.
    Message {
        /// Size of a message.
        #[serde(default = "largest_message")]
        size: Bytes,
        /// Interval between messages; back to back, as the send buffer has room, if not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval: Option<Time>,
    },
    /// Many messages at once, as fast as the NIC takes them, then a pause (QJUMP §6.2).
    Burst {
        /// Bytes of a burst.
        bytes: Bytes,
        /// Size of a message, including the last one.
        #[serde(default = "full_packet")]
        size: Bytes,
        /// Interval between the starts of bursts.
        interval: Time,
    },
}

impl Default for Pattern {
    fn default() -> Self {
        Self::Saturating {
            size: full_packet(),
        }
    }
}

impl Pattern {
    /// Size of a message.
    pub fn size(&self) -> Bytes {
        match *self {
            Self::Constant { size, .. }
            | Self::Saturating { size }
            | Self::Message { size, .. }
            | Self::Burst { size, .. } => size,
        }
    }
}

fn full_packet() -> Bytes {
    Bytes::new(1472)
}

fn largest_message() -> Bytes {
    Bytes::new(MAX_MESSAGE)
}

/// Reassembly of fragmented messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ReassemblyConfig {
    /// Time after the first fragment at which an incomplete message is discarded.
    pub timeout: Time,
    /// Memory for incomplete messages, each counted in full. The oldest message is discarded if a
    /// new one has no room; one message always fits.
    pub memory: Bytes,
}

impl Default for ReassemblyConfig {
    fn default() -> Self {
        Self {
            timeout: Time::from_secs(30),
            memory: Bytes::new(4 << 20),
        }
    }
}

/// The reason why a stream of datagrams cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A message without bytes.
    #[error("a message of 0B carries nothing; send.*.size must be at least 1B")]
    EmptyMessage,
    /// A message that IPv4 cannot carry.
    #[error("a message of {0} is more than UDP can carry; send.*.size is at most {MAX_MESSAGE}B")]
    MessageTooLarge(Bytes),
    /// A packet that would not be passed on, or one that does not exist.
    #[error("an mtu of {0} bytes is not in {MIN_MTU} to 65535")]
    Mtu(u32),
    /// No message could ever be sent.
    #[error("send-buffer must be more than 0B")]
    NoSendBuffer,
    /// Messages without end at one instant.
    #[error("send.message.interval must be more than 0s; leave it out to send back to back")]
    NoInterval,
    /// Bursts without end at one instant.
    #[error("send.burst.interval must be more than 0s")]
    NoPause,
    /// A burst of nothing.
    #[error("send.burst.bytes must be more than 0B")]
    EmptyBurst,
    /// Messages without end at one instant.
    #[error("send.constant.rate must be more than 0bps")]
    NoRate,
    /// Fragments would never meet.
    #[error("reassembly.timeout must be more than 0s")]
    NoTimeout,
}

impl Keyed for ConfigError {
    fn keys(&self) -> Vec<Cow<'_, str>> {
        let key = match self {
            Self::EmptyMessage | Self::MessageTooLarge(_) => "size",
            Self::Mtu(_) => "mtu",
            Self::NoSendBuffer => "send-buffer",
            Self::NoInterval | Self::NoPause => "interval",
            Self::EmptyBurst => "bytes",
            Self::NoRate => "rate",
            Self::NoTimeout => "timeout",
        };
        vec![key.into()]
    }
}

impl UdpConfig {
    /// Returns whether this can work. [`Sender`](super::Sender) and [`Receiver`](super::Receiver) rely on
    /// it.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let size = self.send.size();
        if size == Bytes::ZERO {
            return Err(ConfigError::EmptyMessage);
        }
        if size > largest_message() {
            return Err(ConfigError::MessageTooLarge(size));
        }
        if !(MIN_MTU..=u32::from(u16::MAX)).contains(&self.mtu) {
            return Err(ConfigError::Mtu(self.mtu));
        }
        if self.send_buffer == Bytes::ZERO {
            return Err(ConfigError::NoSendBuffer);
        }
        if self.reassembly.timeout == Time::ZERO {
            return Err(ConfigError::NoTimeout);
        }
        match self.send {
            Pattern::Constant { rate, .. } if rate.bps() == 0 => Err(ConfigError::NoRate),
            Pattern::Message { interval, .. } if interval == Some(Time::ZERO) => {
                Err(ConfigError::NoInterval)
            }
            Pattern::Burst {
                interval: Time::ZERO,
                ..
            } => Err(ConfigError::NoPause),
            Pattern::Burst {
                bytes: Bytes::ZERO, ..
            } => Err(ConfigError::EmptyBurst),
            _ => Ok(()),
        }
    }

    /// Bytes of the smallest packet of a message, with its headers.
    pub fn smallest_packet(&self) -> u32 {
        IP_HEADER + self.cut().last
    }

    /// Fragmentation of a message.
    pub(super) fn cut(&self) -> Cut {
        Cut::new(self.send.size().get() as u32, self.mtu)
    }
}

/// A message in packets: bytes of the UDP datagram in all fragments but the last, and in the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) fragments: u16,
    pub(super) full: u32,
    pub(super) last: u32,
}

impl Cut {
    /// A message of `bytes` in packets of at most `mtu`.
    pub(super) fn new(bytes: u32, mtu: u32) -> Self {
        let datagram = bytes + UDP_HEADER;
        let full = if IP_HEADER + datagram <= mtu {
            datagram
        } else {
            // All but the last fragment carry a multiple of 8 bytes (RFC 791 §3.2).
            (mtu - IP_HEADER) / 8 * 8
        };
        let fragments = datagram.div_ceil(full);
        Self {
            fragments: fragments as u16,
            full,
            last: datagram - (fragments - 1) * full,
        }
    }
}
