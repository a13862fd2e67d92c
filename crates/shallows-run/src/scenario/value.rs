//! The values of a TOML document, from which every type of a scenario is read.
//!
//! TOML's own deserializer gives each type three kinds of maps: a table, a date, and a value with its
//! span; that of [`toml::Value`] gives two others. The compiler writes the code that reads a type for
//! each of them, which was most of the time that this crate took to build. Here a type meets one
//! kind of map, one of list and one of enum. Errors are worded as TOML's deserializer does, because
//! diagnostics explain them by those words.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// What the document says.
pub(crate) fn read<T: DeserializeOwned>(document: Spanned<DeTable<'_>>) -> Result<T, ValueError> {
    let span = document.span();
    T::deserialize(PlacedValue::new(
        DeValue::Table(document.into_inner()),
        span,
    ))
}

/// What the table says; errors have no place.
pub(crate) fn read_table<T: DeserializeOwned>(table: &toml::Table) -> Result<T, ValueError> {
    let text = toml::to_string(table).map_err(ValueError::custom)?;
    read(DeTable::parse(&text).map_err(ValueError::custom)?)
}

/// What a type has against a value.
#[derive(Debug)]
pub(crate) struct ValueError {
    pub(crate) message: String,
    pub(crate) span: Option<Range<usize>>,
}

impl ValueError {
    fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self {
            message: message.into(),
            span: Some(span),
        }
    }

    /// The same at `span`, unless it has a place already.
    fn at(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert(span);
        self
    }
}

impl std::error::Error for ValueError {}

impl Display for ValueError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl serde::de::Error for ValueError {
    fn custom<T: Display>(message: T) -> Self {
        Self {
            message: message.to_string(),
            span: None,
        }
    }
}

/// A value and where it is written.
struct PlacedValue<'i> {
    value: DeValue<'i>,
    span: Range<usize>,
}

impl<'i> PlacedValue<'i> {
    fn new(value: DeValue<'i>, span: Range<usize>) -> Self {
        Self { value, span }
    }

    fn of(value: Spanned<DeValue<'i>>) -> Self {
        let span = value.span();
        Self::new(value.into_inner(), span)
    }

    /// Refuses keys that are no fields.
    fn check_keys(&self, fields: &[&str]) -> Result<(), ValueError> {
        let DeValue::Table(table) = &self.value else {
            return Ok(());
        };
        let is_unknown = |key: &&Spanned<Cow<'_, str>>| !fields.contains(&key.get_ref().as_ref());
        let unknown: Vec<_> = table.keys().filter(is_unknown).collect();
        let Some(first) = unknown.first() else {
            return Ok(());
        };
        let names: Vec<&str> = unknown.iter().map(|key| key.get_ref().as_ref()).collect();
        let (names, fields) = (names.join(", "), fields.join(", "));
        let message = format!("unexpected keys in table: {names}, available keys: {fields}");
        Err(ValueError::new(message, first.span()))
    }
}

impl<'de> Deserializer<'de> for PlacedValue<'de> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let result = match self.value {
            DeValue::String(text) => visitor.visit_str(&text),
            DeValue::Integer(number) => {
                let (digits, radix) = (number.as_str(), number.radix());
                if let Ok(number) = i64::from_str_radix(digits, radix) {
                    visitor.visit_i64(number)
                } else if let Ok(number) = u64::from_str_radix(digits, radix) {
                    visitor.visit_u64(number)
                } else {
                    Err(ValueError::custom("integer number overflowed"))
                }
            }
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(value)
                    if value.is_finite()
                        || !number.as_str().contains(|c: char| c.is_ascii_digit()) =>
                {
                    visitor.visit_f64(value)
                }
                _ => Err(ValueError::custom("floating-point number overflowed")),
            },
            DeValue::Boolean(value) => visitor.visit_bool(value),
            DeValue::Datetime(_) => Err(ValueError::invalid_type(
                Unexpected::Other("date or time"),
                &visitor,
            )),
            DeValue::Array(items) => visitor.visit_seq(Items(items.into_iter())),
            DeValue::Table(table) => visitor.visit_map(Entries {
                entries: table.into_iter(),
                value: None,
            }),
        };
        result.map_err(|error| error.at(self.span))
    }

    /// What is not there has no key.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let span = self.span.clone();
        let result = visitor.visit_newtype_struct(self);
        result.map_err(|error| error.at(span))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let Self { value, span } = self;
        let choice = match value {
            DeValue::String(name) => Choice {
                name: PlacedValue::new(DeValue::String(name), span.clone()),
                content: None,
            },
            DeValue::Table(table) => Choice::of(table, &span)?,
            _ => return Err(ValueError::new("wanted string or table", span)),
        };
        let result = visitor.visit_enum(choice);
        result.map_err(|error| error.at(span))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let result = match &self.value {
            DeValue::String(name) => visitor.visit_str(name),
            other => Err(ValueError::invalid_type(
                Unexpected::Other(other.type_str()),
                &visitor,
            )),
        };
        result.map_err(|error| error.at(self.span))
    }

    forward_to_deserialize_any! {
        bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 char str string seq bytes byte_buf map unit
        struct ignored_any unit_struct tuple_struct tuple
    }
}

struct Items<'i>(<DeArray<'i> as IntoIterator>::IntoIter);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = ValueError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ValueError> {
        let item = self
            .0
            .next()
            .map(|item| seed.deserialize(PlacedValue::of(item)));
        item.transpose()
    }
}

struct Entries<'i> {
    entries: <DeTable<'i> as IntoIterator>::IntoIter,
    /// Of the key that was read last.
    value: Option<Spanned<DeValue<'i>>>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ValueError> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let span = key.span();
        let key = PlacedValue::new(DeValue::String(key.into_inner()), span);
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ValueError> {
        let value = self.value.take();
        let value = PlacedValue::of(value.expect("a key was read before its value"));
        let span = value.span.clone();
        let result = seed.deserialize(value);
        result.map_err(|error| error.at(span))
    }
}

/// A name, with parameters or without.
struct Choice<'i> {
    name: PlacedValue<'i>,
    content: Option<PlacedValue<'i>>,
}

impl<'i> Choice<'i> {
    fn of(table: DeTable<'i>, span: &Range<usize>) -> Result<Self, ValueError> {
        let problem = |message| ValueError::new(message, span.clone());
        let mut entries = table.into_iter();
        let (name, content) = entries
            .next()
            .ok_or_else(|| problem("wanted exactly 1 element, found 0 elements"))?;
        if entries.next().is_some() {
            return Err(problem("wanted exactly 1 element, more than 1 element"));
        }
        let name_span = name.span();
        Ok(Self {
            name: PlacedValue::new(DeValue::String(name.into_inner()), name_span),
            content: Some(PlacedValue::of(content)),
        })
    }
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = ValueError;
    type Variant = Content<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self::Variant), ValueError> {
        Ok((seed.deserialize(self.name)?, Content(self.content)))
    }
}

/// The parameters of a choice, if there are any.
struct Content<'i>(Option<PlacedValue<'i>>);

impl<'i> Content<'i> {
    fn expect(self, kind: &str) -> Result<PlacedValue<'i>, ValueError> {
        self.0
            .ok_or_else(|| ValueError::invalid_type(Unexpected::UnitVariant, &kind))
    }
}

impl<'de> VariantAccess<'de> for Content<'de> {
    type Error = ValueError;

    fn unit_variant(self) -> Result<(), ValueError> {
        let Some(PlacedValue { value, span }) = self.0 else {
            return Ok(());
        };
        let message = match value {
            DeValue::Array(items) if items.is_empty() => return Ok(()),
            DeValue::Table(table) if table.is_empty() => return Ok(()),
            DeValue::Array(_) => "expected empty array".to_owned(),
            DeValue::Table(_) => "expected empty table".to_owned(),
            other => format!("expected table, found {}", other.type_str()),
        };
        Err(ValueError::new(message, span))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, ValueError> {
        seed.deserialize(self.expect("newtype variant")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ValueError> {
        self.expect("tuple variant")?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let content = self.expect("struct variant")?;
        content.check_keys(fields)?;
        content.deserialize_any(visitor)
    }
}
