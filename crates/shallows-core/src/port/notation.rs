//! Values that may be written in more than one way, read without losing the reader's error.
//!
//! Serde's untagged enums answer a typing mistake with "data did not match any variant"; these
//! choose by the shape of the value and pass on what is wrong with it.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// Expectation of a value that is a text or a table, as errors word it.
pub const TEXT_OR_TABLE: &str = "a text or a table";

/// One value for all of a kind (queues, hosts), or a list with one for each by its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum PerIndex<T> {
    /// The same for every one.
    All(T),
    /// The n-th value is that of number n.
    Each(Vec<T>),
}

impl<T: Clone> PerIndex<T> {
    /// The values of numbers 0 to `count - 1`.
    pub fn each(&self, what: &'static str, count: usize) -> Result<Vec<T>, ConfigError> {
        match self {
            Self::All(value) => Ok(vec![value.clone(); count]),
            Self::Each(values) if values.len() == count => Ok(values.clone()),
            Self::Each(values) => Err(ConfigError::Count {
                what,
                given: values.len(),
                needed: count,
            }),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerIndex<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = PerIndex<T>;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("one value for all or a list with one for each")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(text.into_deserializer()).map(PerIndex::All)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                T::deserialize(number.into_deserializer()).map(PerIndex::All)
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                T::deserialize(number.into_deserializer()).map(PerIndex::All)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(PerIndex::All)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(PerIndex::Each)
            }
        }

        deserializer.deserialize_any(Reader(PhantomData))
    }
}

/// Something written as a word or as a table.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum TextOrTable<A, B> {
    Text(A),
    Table(B),
}

impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Deserialize<'de> for TextOrTable<A, B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<A, B>(PhantomData<(A, B)>);

        impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Visitor<'de> for Reader<A, B> {
            type Value = TextOrTable<A, B>;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(TEXT_OR_TABLE)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                A::deserialize(text.into_deserializer()).map(TextOrTable::Text)
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
                B::deserialize(MapAccessDeserializer::new(map)).map(TextOrTable::Table)
            }
        }

        deserializer.deserialize_any(Reader(PhantomData))
    }
}
