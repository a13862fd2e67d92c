//! Times in seconds or microseconds without losing a picosecond.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shallows_core::units::Time;
use thiserror::Error;

use crate::error::ContentError;

/// A time in units of 10^`DIGITS` picoseconds: 12 for seconds, 6 for microseconds.
///
/// As text it has all its decimals. As a double it is the one nearest to that text, so a reader
/// of `flows.csv` and one of `flows.parquet` see the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal<const DIGITS: u32>(pub(crate) Time);

impl<const DIGITS: u32> Decimal<DIGITS> {
    const SCALE: u64 = 10_u64.pow(DIGITS);

    /// The nearest double. [`from_f64`](Self::from_f64) gets the very time from it up to 2^51 ps,
    /// which is 37 minutes: two roundings are off by less than half a picosecond there. In a time of
    /// 200 days they are off by 2 ns at most.
    pub(crate) fn to_f64(self) -> f64 {
        self.0.ps() as f64 / Self::SCALE as f64
    }

    /// The time that a double stands for, if any.
    pub(crate) fn from_f64(value: f64) -> Option<Self> {
        let ps = (value * Self::SCALE as f64).round();
        // 2^64 as a double; the largest time itself is not representable.
        let in_range = ps >= 0.0 && ps < u64::MAX as f64;
        in_range.then(|| Self(Time::from_ps(ps as u64)))
    }

    /// The time in a cell of a column of doubles.
    pub(crate) fn read(column: &str, value: f64) -> Result<Time, ContentError> {
        let decimal = Self::from_f64(value).ok_or_else(|| ContentError::NotATime {
            column: column.to_owned(),
            value,
        })?;
        Ok(decimal.0)
    }
}

impl<const DIGITS: u32> Display for Decimal<DIGITS> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ps = self.0.ps();
        let (whole, fraction) = (ps / Self::SCALE, ps % Self::SCALE);
        write!(f, "{whole}.{fraction:0width$}", width = DIGITS as usize)
    }
}

/// Text that is not an exact time.
#[derive(Debug, Error, PartialEq)]
#[error("expected a number with at most {digits} decimals such as 1.5, got {text:?}")]
pub(crate) struct DecimalError {
    digits: u32,
    text: String,
}

impl<const DIGITS: u32> FromStr for Decimal<DIGITS> {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let parse = || {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
            let missing = DIGITS.checked_sub(u32::try_from(fraction.len()).ok()?)?;
            let fraction = number(fraction)? * 10_u64.pow(missing);
            number(whole)?
                .checked_mul(Self::SCALE)?
                .checked_add(fraction)
        };
        let ps = parse().ok_or_else(|| DecimalError {
            digits: DIGITS,
            text: text.to_owned(),
        })?;
        Ok(Self(Time::from_ps(ps)))
    }
}

/// Digits and nothing else: Rust's own parser takes a plus sign too.
fn number(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

impl<const DIGITS: u32> Serialize for Decimal<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, const DIGITS: u32> Deserialize<'de> for Decimal<DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// A time as a number of seconds, for JSON.
pub(crate) mod seconds {
    use super::{Decimal, Deserialize, Deserializer, Serializer, Time};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
    pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(Decimal::<12>(*time).to_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Time, D::Error> {
        let value = f64::deserialize(source)?;
        Decimal::<12>::read("simulated_s", value).map_err(serde::de::Error::custom)
    }
}

/// A time, if there is one, as a number of microseconds, for JSON.
pub(crate) mod optional_microseconds {
    use super::{Decimal, Deserialize, Deserializer, Serialize, Serializer, Time};

    #[expect(clippy::ref_option, reason = "serde passes it so")]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Time>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let in_us = time.map(|time| Decimal::<6>(time).to_f64());
        in_us.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        source: D,
    ) -> Result<Option<Time>, D::Error> {
        let in_us = Option::<f64>::deserialize(source)?;
        let time = |value| Decimal::<6>::read("a time", value).map_err(serde::de::Error::custom);
        in_us.map(time).transpose()
    }
}

/// Statistics of times as numbers of microseconds, for JSON.
pub(crate) mod optional_statistics {
    use super::{Decimal, Deserialize, Deserializer, Serialize, Serializer, Time};
    use crate::statistics::Statistics;

    #[expect(clippy::ref_option, reason = "serde passes it so")]
    pub(crate) fn serialize<S: Serializer>(
        times: &Option<Statistics<Time>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let in_us = times.map(|times| times.map(|time| Decimal::<6>(time).to_f64()));
        in_us.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        source: D,
    ) -> Result<Option<Statistics<Time>>, D::Error> {
        let in_us = Option::<Statistics<f64>>::deserialize(source)?;
        let time = |value| Decimal::<6>::read("fct_us", value).map_err(serde::de::Error::custom);
        in_us.map(|values| values.try_map(time)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prints_every_picosecond() {
        let time = Time::from_ps(1_000_000_000_001);
        assert_eq!(Decimal::<12>(time).to_string(), "1.000000000001");
        assert_eq!(Decimal::<6>(time).to_string(), "1000000.000001");
        assert_eq!(Decimal::<6>(Time::ZERO).to_string(), "0.000000");
        assert_eq!(
            Decimal::<12>(Time::MAX).to_string(),
            "18446744.073709551615"
        );
    }

    #[test]
    fn reads_what_others_write_shorter() {
        let read = |text: &str| text.parse::<Decimal<6>>().map(|decimal| decimal.0.ps());
        assert_eq!(read("86.528"), Ok(86_528_000));
        assert_eq!(read("7"), Ok(7_000_000));
        for wrong in [
            "",
            ".5",
            "5.",
            "-1.0",
            "+1.0",
            "1.+5",
            "1e3",
            "1.0000001",
            "18446744073709.551616",
        ] {
            let error = read(wrong).unwrap_err();
            assert!(
                error.to_string().contains("at most 6 decimals"),
                "{wrong}: {error}"
            );
        }
    }

    #[test]
    fn a_long_time_is_off_by_less_than_its_double_can_tell() {
        // 348,959 s in microseconds: doubles there are 61 ps apart.
        let long = Time::from_ps(348_959_000_000_000_001);
        let back = Decimal::<6>::from_f64(Decimal::<6>(long).to_f64())
            .unwrap()
            .0;
        assert!(back.ps().abs_diff(long.ps()) <= 61, "{back}");
        let longest = Time::from_secs(200 * 24 * 3600) + Time::from_ps(1);
        let back = Decimal::<6>::from_f64(Decimal::<6>(longest).to_f64())
            .unwrap()
            .0;
        assert!(back.ps().abs_diff(longest.ps()) <= 2_048, "{back}");
    }

    #[test]
    fn doubles_that_are_no_times_are_refused() {
        assert_eq!(Decimal::<6>::from_f64(-1.0), None);
        assert_eq!(Decimal::<6>::from_f64(f64::NAN), None);
        assert_eq!(Decimal::<6>::from_f64(f64::INFINITY), None);
    }

    proptest! {
        #[test]
        fn text_round_trips(ps: u64) {
            let time = Time::from_ps(ps);
            prop_assert_eq!(Decimal::<12>(time).to_string().parse(), Ok(Decimal::<12>(time)));
            prop_assert_eq!(Decimal::<6>(time).to_string().parse(), Ok(Decimal::<6>(time)));
        }

        #[test]
        fn doubles_round_trip_for_37_minutes(ps in 0..=1_u64 << 51) {
            let time = Time::from_ps(ps);
            let seconds = Decimal::<12>(time);
            prop_assert_eq!(Decimal::from_f64(seconds.to_f64()), Some(seconds));
            let microseconds = Decimal::<6>(time);
            prop_assert_eq!(Decimal::from_f64(microseconds.to_f64()), Some(microseconds));
        }

        #[test]
        fn text_and_double_are_the_same_number(ps in 0..=1_u64 << 51) {
            let decimal = Decimal::<12>(Time::from_ps(ps));
            prop_assert_eq!(decimal.to_string().parse(), Ok(decimal.to_f64()));
        }
    }
}
