//! Units as text: exact decimal printing, and serde through the printed form.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};

use super::parse::{Grammar, UnitError};

/// Prints `count` in the first of `units` that it reaches, else in the last, with as many decimals
/// as it needs. A unit is a name and an exponent of ten.
pub(super) fn write_decimal(
    f: &mut Formatter<'_>,
    count: u64,
    units: &[(&str, u32)],
) -> fmt::Result {
    let reached = units
        .iter()
        .find(|(_, exponent)| count >= 10_u64.pow(*exponent));
    let &(name, exponent) = reached.unwrap_or(&units[units.len() - 1]);
    let scale = 10_u64.pow(exponent);
    let (whole, fraction) = (count / scale, count % scale);
    if fraction == 0 {
        return f.pad(&format!("{whole}{name}"));
    }
    let digits = format!("{fraction:0width$}", width = exponent as usize);
    f.pad(&format!("{whole}.{}{name}", digits.trim_end_matches('0')))
}

/// A quantity that is read from text by a grammar.
pub(super) trait Quantity: FromStr<Err = UnitError> {
    const GRAMMAR: &'static Grammar;
}

/// Reads a quantity from a string and says what to write instead of a bare number.
pub(super) struct TextVisitor<T>(pub(super) PhantomData<T>);

impl<T: Quantity> TextVisitor<T> {
    fn bare_number<E: Error>(number: impl fmt::Display) -> E {
        let Grammar { noun, example, .. } = T::GRAMMAR;
        E::custom(format_args!(
            "expected {noun} with a unit such as {example:?}, got {number}"
        ))
    }
}

impl<T: Quantity> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Grammar { noun, example, .. } = T::GRAMMAR;
        write!(f, "{noun} with a unit such as {example:?}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        Err(Self::bare_number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        Err(Self::bare_number(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        Err(Self::bare_number(number))
    }
}

/// The schema of a quantity: a text with one of its units.
#[cfg(feature = "schema")]
pub(super) fn text_schema<T: Quantity>() -> schemars::Schema {
    let Grammar {
        noun,
        example,
        units,
        ..
    } = T::GRAMMAR;
    let units = units
        .replace(" or ", ", ")
        .replace("pkts", "pkts?, packets?");
    let units = units.replace(", ", "|");
    schemars::json_schema!({
        "type": "string",
        "description": format!("{noun} such as {example:?}"),
        "pattern": format!(r"^([0-9]+(\.[0-9]+)? ?({units})|0)$"),
    })
}

/// Serializes a [`Quantity`] as its printed form, in a newtype by which a serializer can tell it from
/// a text.
macro_rules! serde_as_text {
    ($quantity:ty) => {
        impl serde::Serialize for $quantity {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let name = stringify!($quantity);
                serializer.serialize_newtype_struct(name, &self.to_string())
            }
        }

        impl<'de> serde::Deserialize<'de> for $quantity {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let visitor = $crate::units::text::TextVisitor(std::marker::PhantomData);
                deserializer.deserialize_str(visitor)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $quantity {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($quantity).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::units::text::text_schema::<Self>()
            }
        }
    };
}
pub(super) use serde_as_text;
