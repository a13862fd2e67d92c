use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::ops::additive;
use super::parse::{Grammar, UnitError, UnitScale, parse};
use super::text::{Quantity, serde_as_text, write_decimal};

/// A number of bytes. KB, MB, GB and TB are powers of 1000; KiB, MiB and GiB of 1024.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// A number of bytes.
    #[inline]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// A number of kilobytes of 1000 bytes.
    pub const fn from_kb(kb: u64) -> Self {
        Self(kb * 1_000)
    }

    /// The number itself.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Difference, or zero if `other` is more.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

additive!(Bytes);

static GRAMMAR: Grammar = Grammar {
    noun: "a size",
    example: "300KB",
    units: "B, KB, MB, GB, TB, KiB, MiB or GiB",
    finest: "bytes",
    scale,
};

pub(super) fn scale(unit: &str) -> UnitScale {
    UnitScale::Of(match unit {
        "B" => 1,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "b" | "bit" | "bits" | "kb" | "Kb" | "Mb" | "Gb" | "Tb" => {
            return UnitScale::Mistaken("a lowercase b means bits");
        }
        _ => return UnitScale::Unknown,
    })
}

impl Quantity for Bytes {
    const GRAMMAR: &'static Grammar = &GRAMMAR;
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &GRAMMAR).map(Self)
    }
}

impl Display for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // A full Ethernet packet is "1500B" to everyone, never "1.5KB".
        let from_kb = self.0 == 1_000 || self.0 >= 2_000;
        let units = [("TB", 12), ("GB", 9), ("MB", 6), ("KB", 3), ("B", 0)];
        write_decimal(f, self.0, if from_kb { &units } else { &units[4..] })
    }
}

serde_as_text!(Bytes);
