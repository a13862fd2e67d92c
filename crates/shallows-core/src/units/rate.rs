use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::parse::{Grammar, Problem, UnitError, UnitScale, parse};
use super::text::{Quantity, serde_as_text, write_decimal};
use super::{Bytes, Time};

/// One byte takes this many picoseconds at one bit per second.
pub(super) const PS_PER_BYTE_AT_1BPS: u64 = 8_000_000_000_000;

/// Bits per second. A rate read from text is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate in bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// A rate in kilobits per second.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps * 1_000)
    }

    /// A rate in megabits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// A rate in gigabits per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps * 1_000_000_000)
    }

    /// The rate that sends `bytes` in every `span`, rounded down to one bit per second.
    ///
    /// # Panics
    /// If `span` is zero.
    pub fn from_bytes_per(bytes: Bytes, span: Time) -> Self {
        Self(mul_div(bytes.get(), PS_PER_BYTE_AT_1BPS, span.ps()))
    }

    /// This rate in bits per second.
    #[inline]
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// The time to send `bytes`, rounded up to the next picosecond.
    ///
    /// [`Time::MAX`] if the rate is zero or the time too long to represent.
    #[inline]
    pub fn transmission_time(self, bytes: Bytes) -> Time {
        match bytes.get().checked_mul(PS_PER_BYTE_AT_1BPS) {
            Some(scaled) if self.0 > 0 => Time::from_ps(scaled.div_ceil(self.0)),
            _ => self.long_transmission_time(bytes),
        }
    }

    #[cold]
    fn long_transmission_time(self, bytes: Bytes) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        let scaled = u128::from(bytes.get()) * u128::from(PS_PER_BYTE_AT_1BPS);
        let ps = u64::try_from(scaled.div_ceil(u128::from(self.0)));
        ps.map_or(Time::MAX, Time::from_ps)
    }

    /// The bytes that are completely sent within `span`.
    pub fn bytes_in(self, span: Time) -> Bytes {
        Bytes::new(mul_div(span.ps(), self.0, PS_PER_BYTE_AT_1BPS))
    }

    /// This rate times `numerator / denominator`, rounded down to one bit per second.
    ///
    /// # Panics
    /// If `denominator` is zero.
    #[must_use]
    pub fn scaled(self, numerator: u64, denominator: u64) -> Self {
        Self(mul_div(self.0, numerator, denominator))
    }
}

/// `a * b / c` rounded down, or `u64::MAX` where that is less.
pub(super) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

static GRAMMAR: Grammar = Grammar {
    noun: "a rate",
    example: "10Gbps",
    units: "bps, Kbps, Mbps, Gbps or Tbps",
    finest: "bits per second",
    scale: |unit| {
        if unit.ends_with("Bps") || unit.ends_with("B/s") {
            return UnitScale::Mistaken("a capital B means bytes and a rate counts bits");
        }
        let prefix = ["bps", "b/s", "bit/s"]
            .iter()
            .find_map(|per| unit.strip_suffix(per));
        UnitScale::Of(match prefix {
            Some("") => 1,
            Some("K" | "k") => 1_000,
            Some("M" | "m") => 1_000_000,
            Some("G" | "g") => 1_000_000_000,
            Some("T" | "t") => 1_000_000_000_000,
            _ => return UnitScale::Unknown,
        })
    },
};

impl Quantity for Rate {
    const GRAMMAR: &'static Grammar = &GRAMMAR;
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match parse(text, &GRAMMAR)? {
            0 => Err(UnitError::new(text, &GRAMMAR, Problem::Zero)),
            bps => Ok(Self(bps)),
        }
    }
}

impl Display for Rate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let units = [
            ("Tbps", 12),
            ("Gbps", 9),
            ("Mbps", 6),
            ("Kbps", 3),
            ("bps", 0),
        ];
        write_decimal(f, self.0, &units)
    }
}

serde_as_text!(Rate);
