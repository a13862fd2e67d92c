//! Traffic of a real network as the workload of a scenario.
//!
//! [`read`] takes a capture, exported flow records or a log, and gives [`Traffic`]: who sent how many
//! bytes to whom and when. [`Workload::new`] gives the conversations hosts and services of a
//! scenario, with a list of flows, distributions of sizes and loads.
//!
//! The formats are read by small parsers of our own. `pcap-parser` 0.17 (5 crates with what it
//! needs), `netflow_parser` 1.0 (18) and `flowparser-sflow` 0.3 (20) read more of each format than is
//! used here and bring two versions of `nom`; what this module needs of them is a few hundred lines
//! that allocate nothing by a length that a file claims.

mod bytes;
mod hosts;
mod netflow;
mod packet;
mod pcap;
mod sflow;
mod ss;
mod stream;
mod workload;
mod zeek;

pub use hosts::{HostMap, ServiceMap};
pub use packet::FiveTuple;
pub use workload::{Flow, ServiceLoad, Workload};

use bytes::Reader;
use packet::Header;

/// A silence that ends a conversation over a connection that stays, in nanoseconds.
pub const IDLE: u64 = 1_000_000_000;

/// Bytes that one end sent to another without a long silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Nanoseconds since the epoch of the source's clock.
    pub start: u64,
    /// The last that was seen of it.
    pub end: u64,
    /// Sender and receiver.
    pub tuple: FiveTuple,
    /// DSCP of the first packet.
    pub dscp: u8,
    /// Payload, without headers and without bytes that were sent again.
    pub bytes: u64,
}

/// Content of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// In the order of their starts.
    pub conversations: Vec<Conversation>,
    /// Packets of which one was sampled; 1 if all were seen.
    pub sampling: u64,
    /// True if bytes are already multiplied by that.
    pub is_corrected: bool,
    /// Notes on what the source leaves out.
    pub notes: Vec<String>,
}

impl Traffic {
    fn new(mut conversations: Vec<Conversation>) -> Self {
        conversations.sort_by_key(|of| (of.start, of.tuple));
        Self {
            conversations,
            sampling: 1,
            is_corrected: false,
            notes: Vec::new(),
        }
    }
}

/// A problem of a source, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}")]
pub struct TrafficError {
    place: String,
    problem: String,
}

impl TrafficError {
    fn at(byte: usize, problem: impl Into<String>) -> Self {
        Self {
            place: format!("byte {byte}: "),
            problem: problem.into(),
        }
    }

    fn line(line: usize, problem: impl Into<String>) -> Self {
        Self {
            place: format!("line {line}: "),
            problem: problem.into(),
        }
    }

    /// Of the source as a whole.
    pub fn new(problem: impl Into<String>) -> Self {
        Self {
            place: String::new(),
            problem: problem.into(),
        }
    }
}

/// A kind of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Packets, as pcapng or pcap.
    Capture,
    /// NetFlow v9 or IPFIX: messages, or a capture of them.
    Netflow,
    /// sFlow v5: datagrams, or a capture of them.
    Sflow,
    /// Zeek's conn.log.
    Zeek,
    /// A log of `ss -tinH`.
    Ss,
}

impl Format {
    /// The format that a source starts like. Captures are taken for captures of the traffic itself.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if pcap::is_capture(bytes) {
            return Some(Self::Capture);
        }
        if sflow::is_datagram(bytes) {
            return Some(Self::Sflow);
        }
        if netflow::is_message(bytes) {
            return Some(Self::Netflow);
        }
        let text = std::str::from_utf8(bytes).ok()?;
        if zeek::is_log(text) {
            return Some(Self::Zeek);
        }
        ss::is_log(text).then_some(Self::Ss)
    }
}

/// Reads a source. A conversation of a capture ends after `idle` nanoseconds without data.
pub fn read(bytes: &[u8], format: Option<Format>, idle: u64) -> Result<Traffic, TrafficError> {
    let format = format.or_else(|| Format::of(bytes)).ok_or_else(|| {
        TrafficError::new("this is none of pcapng, pcap, NetFlow v9, IPFIX, sFlow v5, Zeek's conn.log and a log of ss")
    })?;
    let text = || {
        std::str::from_utf8(bytes)
            .map_err(|error| TrafficError::at(error.valid_up_to(), "this is not text"))
    };
    let traffic = match format {
        Format::Capture => Ok(stream::conversations(&pcap::packets(bytes)?, idle)),
        Format::Netflow if pcap::is_capture(bytes) => {
            let mut collector = netflow::Collector::default();
            for (_, payload) in datagrams(bytes)? {
                collector.message(Reader(payload));
            }
            Ok(collector.finish())
        }
        Format::Netflow => netflow::file(bytes),
        Format::Sflow if pcap::is_capture(bytes) => {
            let mut collector = sflow::Collector::default();
            for (at, payload) in datagrams(bytes)? {
                collector.datagram(Reader(payload), Some(at));
            }
            Ok(collector.finish())
        }
        Format::Sflow => sflow::file(bytes),
        Format::Zeek => zeek::log(text()?),
        Format::Ss => ss::log(text()?),
    }?;
    if traffic.conversations.is_empty() {
        return Err(TrafficError::new("there are no conversations in it"));
    }
    Ok(traffic)
}

/// Payloads of the UDP packets of a capture, with their times.
fn datagrams(bytes: &[u8]) -> Result<Vec<(u64, &[u8])>, TrafficError> {
    let found = pcap::packets(bytes)?.into_iter().filter_map(|packet| {
        let header = Header::new(packet.link, packet.bytes)?;
        (header.tuple.protocol == 17).then_some((packet.at, header.content))
    });
    Ok(found.collect())
}

/// Seconds with a fraction, as nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) {
        return None;
    }
    let fraction = format!("{fraction:0<9}");
    let fraction: u64 = fraction.get(..9)?.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}
