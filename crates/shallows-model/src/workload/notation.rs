//! Values that may be written in more than one way, read without losing the reader's error.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor};

/// Something written as a word or as a table.
pub(super) enum TextOrTable<A, B> {
    Text(A),
    Table(B),
}

/// Reads a text as an `A`, a table as a `B`, and says what was `expected` of anything else.
pub(super) fn text_or_table<'de, D, A, B>(
    deserializer: D,
    expected: &'static str,
) -> Result<TextOrTable<A, B>, D::Error>
where
    D: Deserializer<'de>,
    A: Deserialize<'de>,
    B: Deserialize<'de>,
{
    struct Reader<A, B> {
        expected: &'static str,
        kinds: PhantomData<(A, B)>,
    }

    impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Visitor<'de> for Reader<A, B> {
        type Value = TextOrTable<A, B>;

        fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str(self.expected)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            A::deserialize(text.into_deserializer()).map(TextOrTable::Text)
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let table = B::deserialize(MapAccessDeserializer::new(&mut map))?;
            // A struct reads all keys; an enum reads the first.
            match map.next_key::<IgnoredAny>()? {
                None => Ok(TextOrTable::Table(table)),
                Some(_) => Err(M::Error::custom(
                    "more than one is chosen here; keep one of them",
                )),
            }
        }
    }

    deserializer.deserialize_any(Reader {
        expected,
        kinds: PhantomData,
    })
}
