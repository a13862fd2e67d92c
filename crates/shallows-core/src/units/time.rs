use std::fmt::{self, Display, Formatter};
use std::ops::{Div, Rem};
use std::str::FromStr;
use std::time::Duration;

use super::ops::additive;
use super::parse::{Grammar, UnitError, UnitScale, parse};
use super::text::{Quantity, serde_as_text, write_decimal};

/// Picoseconds: an instant since the start of the run, or the span between two instants.
///
/// A `u64` of picoseconds lasts 213 days, and one byte at any round link rate is a whole number of
/// them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the run, or no time at all.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// A time in picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A time in nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1_000)
    }

    /// A time in microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    /// A time in milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }

    /// A time in seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000_000)
    }

    /// This time in picoseconds.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// A time of the standard library, or [`Time::MAX`] if that is shorter.
    pub fn from_duration(duration: Duration) -> Self {
        let ps = duration.as_nanos().saturating_mul(1_000);
        Self(ps.try_into().unwrap_or(u64::MAX))
    }

    /// This time for the standard library, in whole nanoseconds.
    pub const fn to_duration(self) -> Duration {
        Duration::from_nanos(self.0 / 1_000)
    }

    /// This time in seconds, rounded to the nearest double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// The span since `earlier`, or zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The time `span` later, or [`Time::MAX`] if that is earlier.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The time `span` later, if it can be represented.
    #[inline]
    pub const fn checked_add(self, span: Self) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }
}

additive!(Time);

impl Div<u64> for Time {
    type Output = Self;

    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Rem for Time {
    type Output = Self;

    #[inline]
    fn rem(self, period: Self) -> Self {
        Self(self.0 % period.0)
    }
}

static GRAMMAR: Grammar = Grammar {
    noun: "a time",
    example: "10us",
    units: "ps, ns, us, ms, s or min",
    finest: "picoseconds",
    scale: |unit| {
        UnitScale::Of(match unit {
            "ps" => 1,
            "ns" => 1_000,
            // The micro sign and the Greek letter look the same.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000_000,
            "ms" => 1_000_000_000,
            "s" => 1_000_000_000_000,
            "min" => 60_000_000_000_000,
            _ => return UnitScale::Unknown,
        })
    },
};

impl Quantity for Time {
    const GRAMMAR: &'static Grammar = &GRAMMAR;
}

impl FromStr for Time {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &GRAMMAR).map(Self)
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if *self == Self::ZERO {
            return f.pad("0s");
        }
        write_decimal(
            f,
            self.0,
            &[("s", 12), ("ms", 9), ("us", 6), ("ns", 3), ("ps", 0)],
        )
    }
}

serde_as_text!(Time);
