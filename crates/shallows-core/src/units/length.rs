use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::Bytes;
use super::bytes;
use super::parse::{Grammar, UnitError, UnitScale, parse};
use super::rate::mul_div;
use super::text::{Quantity, serde_as_text, write_decimal};

const MILLIONTHS: u64 = 1_000_000;

/// A number of packets, exact to a millionth: thresholds such as 8.125 packets are not rounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packets(u64);

impl Packets {
    /// A whole number of packets.
    pub const fn new(packets: u64) -> Self {
        Self(packets * MILLIONTHS)
    }

    /// A number of millionths of a packet.
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }

    /// This number in millionths of a packet.
    pub const fn millionths(self) -> u64 {
        self.0
    }
}

static PACKETS: Grammar = Grammar {
    noun: "a number of packets",
    example: "65pkts",
    units: "pkts",
    finest: "millionths of a packet",
    scale: |unit| match unit {
        "pkts" | "pkt" | "packets" | "packet" => UnitScale::Of(MILLIONTHS),
        _ => UnitScale::Unknown,
    },
};

impl Quantity for Packets {
    const GRAMMAR: &'static Grammar = &PACKETS;
}

impl FromStr for Packets {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &PACKETS).map(Self)
    }
}

impl Display for Packets {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = if self.0 == MILLIONTHS { "pkt" } else { "pkts" };
        write_decimal(f, self.0, &[(name, 6)])
    }
}

serde_as_text!(Packets);

/// A queue length, threshold or buffer size, in the unit that it was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// In bytes.
    Bytes(Bytes),
    /// In packets of a size that the reader of the configuration knows.
    Packets(Packets),
}

impl Length {
    /// The length in bytes where a packet has `packet` bytes, not rounded.
    pub fn in_bytes(self, packet: Bytes) -> f64 {
        match self {
            Self::Bytes(bytes) => bytes.get() as f64,
            Self::Packets(Packets(millionths)) => {
                (u128::from(millionths) * u128::from(packet.get())) as f64 / MILLIONTHS as f64
            }
        }
    }

    /// The length in bytes where a packet has `packet` bytes, rounded down.
    pub fn whole_bytes(self, packet: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Packets(Packets(millionths)) => {
                Bytes::new(mul_div(millionths, packet.get(), MILLIONTHS))
            }
        }
    }
}

static LENGTH: Grammar = Grammar {
    noun: "a length",
    example: "300KB",
    units: "pkts, B, KB, MB, GB, TB, KiB, MiB or GiB",
    finest: "bytes",
    scale: bytes::scale,
};

impl Quantity for Length {
    const GRAMMAR: &'static Grammar = &LENGTH;
}

impl FromStr for Length {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let unit = text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        match (PACKETS.scale)(unit) {
            UnitScale::Of(_) => text.parse().map(Self::Packets),
            _ => parse(text, &LENGTH).map(|n| Self::Bytes(Bytes::new(n))),
        }
    }
}

impl Display for Length {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Packets(packets) => packets.fmt(f),
        }
    }
}

serde_as_text!(Length);
