//! Reading an enum to which a registry may add names.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use serde::de::value::{self, MapAccessDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde::ser::{SerializeMap, Serializer};

use super::{Custom, Parameters};

/// An enum of schemes that is written as a name, or as `{ name = { parameters } }`.
pub(crate) trait OpenEnum<'de>: Sized {
    /// Description of the expected value.
    const EXPECTED: &'static str;

    /// Reads one of this crate's own: what serde derives.
    fn known<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    /// Any other name.
    fn custom(name: String, parameters: Parameters) -> Self;

    /// One of this crate's own that is given as a bare name.
    fn bare<E: Error>(name: &str) -> Result<Self, E> {
        Self::known(name.into_deserializer())
    }
}

/// Reads an open enum.
pub(crate) fn read<'de, T: OpenEnum<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Reader(PhantomData))
}

/// Writes a custom scheme as it was read.
pub(crate) fn write<M: ?Sized, S: Serializer>(
    custom: &Custom<M>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(&custom.name, &custom.parameters)?;
    map.end()
}

/// The names of an enum's variants, as serde knows them.
pub(crate) fn names<'de, T: OpenEnum<'de>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // It always ends with an error: all that is wanted is the question.
    let _ = T::known(Names(&mut names));
    names
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: OpenEnum<'de>> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
        if names::<T>().contains(&name) {
            T::bare(name)
        } else {
            Ok(T::custom(name.to_owned(), Parameters::default()))
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let Some(name) = map.next_key::<String>()? else {
            return Err(A::Error::custom("nothing is chosen here; name one"));
        };
        let scheme = if names::<T>().contains(&name.as_str()) {
            T::known(MapAccessDeserializer::new(Named {
                name: Some(name),
                rest: &mut map,
            }))?
        } else {
            T::custom(name, map.next_value()?)
        };
        match map.next_key::<IgnoredAny>()? {
            None => Ok(scheme),
            Some(_) => Err(A::Error::custom(
                "more than one is chosen here; keep one of them",
            )),
        }
    }
}

/// A map whose first key has been taken already.
struct Named<'a, A> {
    name: Option<String>,
    rest: &'a mut A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Named<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.name.take() {
            Some(name) => seed.deserialize(name.into_deserializer()).map(Some),
            None => self.rest.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.rest.next_value_seed(seed)
    }
}

/// Takes the names of an enum's variants down and gives no value.
struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = value::Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, value::Error> {
        *self.0 = variants;
        Err(Error::custom("names only"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, value::Error> {
        Err(Error::custom("names only"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
