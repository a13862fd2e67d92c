//! A transport as written in a scenario.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{ControllerConfig, Growth};
use crate::keyed::Keyed;
use crate::registry::{ParameterError, UnknownName};
use crate::units::{Rate, Time};

/// Parameters of a TCP connection.
///
/// ```
/// # use shallows_core::tcp::TcpConfig;
/// let config: TcpConfig = toml::from_str(
///     r#"
///     initial-window = 16
///     receive-window = 1256
///     rto = { initial = "5ms", minimum = "5ms" }
///     controller = { dctcp = { initial-alpha = 0.0 } }
///     "#,
/// )?;
/// assert_eq!(config.segment, 1460);
/// config.validate()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TcpConfig {
    /// Bytes of data in a full segment.
    pub segment: u32,
    /// Header bytes of a packet; an ACK has nothing else.
    pub header: u32,
    /// Initial congestion window, in segments.
    pub initial_window: u32,
    /// Smallest congestion window after a reduction for marks, delay or loss, in segments. After a
    /// timeout it is 1. Linux has 2.
    pub least_window: u32,
    /// Advertised window, in segments. It is constant, because the receiver reads at once.
    pub receive_window: u32,
    /// Retransmission timeout.
    pub rto: RtoConfig,
    /// Delayed ACKs; every segment is acknowledged if not given.
    pub delayed_ack: Option<DelayedAck>,
    /// ECN feedback from the receiver; the controller's native mode if not given.
    pub ecn: Option<EcnEcho>,
    /// True if pure ACKs are ECN-capable too, as in the MQ-ECN authors' simulation.
    pub ect_acks: bool,
    /// Growth of the window in congestion avoidance.
    pub growth: Growth,
    /// Growth of the window on marked ACKs.
    pub marked_growth: MarkedGrowth,
    /// True if a connection starts with a SYN.
    pub handshake: bool,
    /// Loss recovery before a timeout.
    pub recovery: Recovery,
    /// True if the first two duplicate ACKs release a new segment each (RFC 3042).
    pub limited_transmit: bool,
    /// Duplicate ACKs that signal a loss (DupThresh). A number larger than any window leaves all
    /// losses to the timeout.
    pub duplicate_acks: u32,
    /// Congestion window after an idle period.
    pub after_idle: AfterIdle,
    /// Congestion control.
    pub controller: ControllerConfig,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            segment: 1460,
            header: 40,
            initial_window: 10,
            least_window: 1,
            receive_window: 1 << 20,
            rto: RtoConfig::default(),
            delayed_ack: None,
            ecn: None,
            ect_acks: false,
            growth: Growth::default(),
            marked_growth: MarkedGrowth::default(),
            handshake: false,
            recovery: Recovery::default(),
            limited_transmit: true,
            duplicate_acks: 3,
            after_idle: AfterIdle::default(),
            controller: ControllerConfig::default(),
        }
    }
}

/// Bounds of the retransmission timeout (RFC 6298). A maximum equal to the minimum makes it fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RtoConfig {
    /// Timeout before the first round-trip sample.
    pub initial: Time,
    /// Lower bound after the first sample.
    pub minimum: Time,
    /// Upper bound, including backoff.
    pub maximum: Time,
    /// Granularity of the sender's clock: G of RFC 6298.
    pub granularity: Time,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial: Time::from_ms(10),
            minimum: Time::from_ms(10),
            maximum: Time::from_secs(60),
            granularity: Time::from_us(1),
        }
    }
}

/// Limits of delayed ACKs (RFC 5681 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DelayedAck {
    /// Number of segments after which an ACK is sent.
    pub every: u32,
    /// Time after which an ACK is sent.
    pub timeout: Time,
    /// Segments that count towards `every`.
    #[serde(default)]
    pub count: AckCount,
}

/// Data that counts towards `every`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AckCount {
    /// Every segment.
    #[default]
    Segments,
    /// The bytes of full segments, as in ns-2's FullTcp: even with `every = 1` the ACK of a short
    /// last segment waits for the time to pass.
    FullSegments,
}

/// ECN feedback from the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EcnEcho {
    /// None; packets are not ECN-capable.
    Off,
    /// In every ACK from a mark until the sender reacts (RFC 3168 §6.1.3).
    Classic,
    /// In the ACKs of marked segments only (RFC 8257 §3.2).
    Precise,
}

/// Growth of the window on marked ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MarkedGrowth {
    /// Never (RFC 3168 §6.1.2; EAR eq. 3).
    #[default]
    Never,
    /// If the ACK before was marked as well, as in the DCTCP code for ns-2 that the simulations of
    /// MQ-ECN and EAR ran. An ACK of a segment that was late never grows the window, marked or not.
    InBursts,
}

/// Loss recovery before a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// By selective ACKs (RFC 2018, RFC 6675).
    #[default]
    Sack,
    /// By duplicate and partial ACKs (RFC 6582).
    NewReno,
    /// By selective ACKs as in ns-2's `FullTcp/Sack`, which MQ-ECN's simulations used. Lost
    /// segments count as in flight until the next ACK, so repair is slower. A reduction halves the
    /// window instead of the bytes in flight. A rescue retransmission and a second recovery before
    /// an ACK beyond the first are missing. A timeout after a reduction for marks keeps the
    /// threshold.
    FullTcp,
}

/// Congestion window after an idle period longer than the retransmission timeout. The slow-start
/// threshold and the controller's estimates are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AfterIdle {
    /// The window is kept.
    Keep,
    /// The smaller of the window and the initial window (RFC 5681 §4.1).
    #[default]
    Restart,
    /// The initial window, even if it is larger, as in ns-2.
    InitialWindow,
}

impl Keyed for ConfigError {
    fn keys(&self) -> Vec<Cow<'_, str>> {
        let key = match self {
            Self::UnknownName(_) | Self::Parameters(_) => "controller",
            Self::Zero(name)
            | Self::NoTime(name)
            | Self::TooLong { name, .. }
            | Self::OutOfRange { name, .. } => name,
            Self::Order { less, more } => return vec![(*less).into(), (*more).into()],
            Self::PacketTooLarge { .. } => "segment",
            Self::WindowTooLarge { .. } => "receive-window",
            Self::BeyondReceiveWindow { name, .. } => {
                return vec![(*name).into(), "receive-window".into()];
            }
            Self::Timeout { name, .. } => {
                return vec![format!("rto.{name}").into(), "rto.maximum".into()];
            }
            Self::Growth => return vec!["growth".into(), "controller".into()],
            Self::Echo { .. } => return vec!["ecn".into(), "controller".into()],
        };
        vec![key.into()]
    }
}

/// The reason why a transport cannot work.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConfigError {
    /// A name that no congestion controller has.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// Parameters that do not fit a custom controller.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A number must be above zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A packet would be longer than its length field can say.
    #[error("a segment of {segment} bytes and a header of {header} are more than 65535 together")]
    PacketTooLarge {
        /// Bytes of a segment.
        segment: u32,
        /// Bytes of a header.
        header: u32,
    },
    /// The window does not fit what the ACK's fields can say.
    #[error(
        "a receive-window of {window} segments of {segment} bytes is {}, more than 4 GB",
        u64::from(*window) * u64::from(*segment)
    )]
    WindowTooLarge {
        /// Segments.
        window: u32,
        /// Bytes of a segment.
        segment: u32,
    },
    /// A congestion window is beyond the receive window.
    #[error("{name} is {window} segments, more than the receive-window of {receive}")]
    BeyondReceiveWindow {
        /// Name of the window.
        name: &'static str,
        /// Its segments.
        window: u32,
        /// Receive window.
        receive: u32,
    },
    /// The bounds of the timeout contradict each other.
    #[error("rto.{name} is {value}, beyond rto.maximum = {maximum}")]
    Timeout {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: Time,
        /// The maximum.
        maximum: Time,
    },
    /// A time is beyond all reason, and sums of such times beyond the clock.
    #[error("{name} is {value}, it must be at most {}", LONGEST)]
    TooLong {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: Time,
    },
    /// A value is above one that it must not exceed.
    #[error("{less} is more than {more}")]
    Order {
        /// Key of the value that must be less.
        less: &'static str,
        /// Key of the other.
        more: &'static str,
    },
    /// A time must be above zero.
    #[error("{0} must be more than 0s")]
    NoTime(&'static str),
    /// A real number is out of range.
    #[error("{name} is {value}, not in {range}")]
    OutOfRange {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Range of valid values.
        range: &'static str,
    },
    /// The controller has a growth of its own.
    #[error(
        "growth = \"whole-segments\" has no effect on a controller that grows by a law of its own"
    )]
    Growth,
    /// The controller would never hear of marks, or would count wrong ones.
    #[error("{controller} needs ecn = {needed}")]
    Echo {
        /// The controller.
        controller: &'static str,
        /// Required setting.
        needed: &'static str,
    },
}

/// No timer runs for longer.
const LONGEST: Time = TcpConfig::LONGEST_TIMER;

impl TcpConfig {
    /// No timer may be longer.
    pub const LONGEST_TIMER: Time = Time::from_secs(3600);

    /// The receiver's way of echoing marks.
    pub fn echo(&self) -> EcnEcho {
        self.ecn.unwrap_or(self.controller.native_echo())
    }

    /// Returns whether the rate of a connection decides when its packets go. The transport is
    /// [RoCE](crate::transport::roce) then, which has few of the keys.
    pub fn is_paced(&self) -> bool {
        matches!(
            self.controller,
            ControllerConfig::Dcqcn(_) | ControllerConfig::Timely(_)
        )
    }

    /// Returns whether a key of this configuration has an effect.
    pub fn uses(&self, key: &str) -> bool {
        !self.is_paced() || ["segment", "header", "rto", "controller"].contains(&key)
    }

    /// Returns whether this can work. [`Sender`](super::Sender) and [`Receiver`](super::Receiver) rely on
    /// it.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (count, name) in [
            (self.segment, "segment"),
            (self.initial_window, "initial-window"),
            (self.least_window, "least-window"),
            (self.receive_window, "receive-window"),
            (self.duplicate_acks, "duplicate-acks"),
            (self.delayed_ack.map_or(1, |d| d.every), "delayed-ack.every"),
        ] {
            if count == 0 {
                return Err(ConfigError::Zero(name));
            }
        }
        if u64::from(self.segment) + u64::from(self.header) > u64::from(u16::MAX) {
            return Err(ConfigError::PacketTooLarge {
                segment: self.segment,
                header: self.header,
            });
        }
        self.validate_window()?;
        self.rto.validate()?;
        if let Some(DelayedAck { timeout, .. }) = self.delayed_ack {
            if timeout == Time::ZERO {
                return Err(ConfigError::NoTime("delayed-ack.timeout"));
            }
            refuse_too_long("delayed-ack.timeout", timeout)?;
        }
        if self.controller.has_own_growth() && self.growth != Growth::default() {
            return Err(ConfigError::Growth);
        }
        self.controller.validate(self.echo())
    }

    /// The receive window in bytes.
    pub(super) fn receive_bytes(&self) -> u64 {
        u64::from(self.receive_window) * u64::from(self.segment)
    }

    fn validate_window(&self) -> Result<(), ConfigError> {
        // SACK blocks are kept in 32 bits relative to the ACK.
        if self.receive_bytes() > u64::from(u32::MAX) {
            return Err(ConfigError::WindowTooLarge {
                window: self.receive_window,
                segment: self.segment,
            });
        }
        for (window, name) in [
            (self.initial_window, "initial-window"),
            (self.least_window, "least-window"),
        ] {
            if window > self.receive_window {
                return Err(ConfigError::BeyondReceiveWindow {
                    name,
                    window,
                    receive: self.receive_window,
                });
            }
        }
        Ok(())
    }
}

fn refuse_too_long(name: &'static str, value: Time) -> Result<(), ConfigError> {
    if value > LONGEST {
        return Err(ConfigError::TooLong { name, value });
    }
    Ok(())
}

/// Refuses a time of zero and one without end.
pub(crate) fn refuse_no_time(name: &'static str, value: Time) -> Result<(), ConfigError> {
    if value == Time::ZERO {
        return Err(ConfigError::NoTime(name));
    }
    refuse_too_long(name, value)
}

/// Refuses a rate of zero.
pub(crate) fn refuse_no_rate(name: &'static str, value: Rate) -> Result<(), ConfigError> {
    if value.bps() == 0 {
        return Err(ConfigError::Zero(name));
    }
    Ok(())
}

impl RtoConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        refuse_too_long("rto.maximum", self.maximum)?;
        for (value, name) in [
            (self.initial, "initial"),
            (self.minimum, "minimum"),
            (self.granularity, "granularity"),
        ] {
            if value > self.maximum {
                return Err(ConfigError::Timeout {
                    name,
                    value,
                    maximum: self.maximum,
                });
            }
        }
        // A timeout of zero would fire before anything could be answered.
        match self.minimum.max(self.granularity).min(self.initial) {
            Time::ZERO => Err(ConfigError::NoTime("rto.initial and rto.minimum")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
