//! The values of a TOML document, from which every type of a scenario is read.
//!
//! TOML's own deserializer gives each type three kinds of maps: a table, a date, and a value with its
//! span; that of [`toml::Value`] gives two others. The compiler writes the code that reads a type for
//! each of them, which was most of the time that this crate took to build. Here a type meets one
//! kind of map, one of list and one of enum. An error is a [`Problem`], which
//! diagnostics put into words.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Reads a value from a document.
pub(crate) fn read<T: DeserializeOwned>(document: Spanned<DeTable<'_>>) -> Result<T, ValueError> {
    let span = document.span();
    T::deserialize(PlacedValue::new(
        DeValue::Table(document.into_inner()),
        span,
    ))
}

/// Reads a value from a table; errors have no place.
pub(crate) fn read_table<T: DeserializeOwned>(table: &toml::Table) -> Result<T, ValueError> {
    let text = toml::to_string(table).map_err(ValueError::custom)?;
    read(DeTable::parse(&text).map_err(ValueError::custom)?)
}

/// A problem with a value, and its place.
#[derive(Debug)]
pub(crate) struct ValueError {
    pub(crate) problem: Problem,
    pub(crate) span: Option<Range<usize>>,
}

/// A problem with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// A key that the table does not have.
    UnknownKey { name: String, known: Vec<String> },
    /// A name that is none of those that can be chosen.
    UnknownName { name: String, known: Vec<String> },
    /// A key that the table needs.
    MissingKey(String),
    /// A choice that needs parameters, without them.
    NoParameters,
    /// Several choices where one is needed.
    SeveralChosen,
    /// No choice where one is needed.
    NothingChosen,
    /// A table where a list of tables belongs.
    TableForList,
    /// A value of another type than expected.
    WrongType { found: String, expected: String },
    /// An error message of the type itself.
    Other(String),
}

impl ValueError {
    fn new(problem: Problem, span: Range<usize>) -> Self {
        Self {
            problem,
            span: Some(span),
        }
    }

    /// The same at `span`, unless it has a place already.
    fn at(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert(span);
        self
    }
}

impl From<Problem> for ValueError {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            span: None,
        }
    }
}

impl std::error::Error for ValueError {}

impl Display for ValueError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.explained().message)
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

impl serde::de::Error for ValueError {
    fn custom<T: Display>(message: T) -> Self {
        Problem::Other(message.to_string()).into()
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let problem = match found {
            Unexpected::UnitVariant => Problem::NoParameters,
            found => Problem::WrongType {
                found: found.to_string(),
                expected: expected.to_string(),
            },
        };
        problem.into()
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let (name, known) = (name.to_owned(), owned(known));
        Problem::UnknownKey { name, known }.into()
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        let (name, known) = (name.to_owned(), owned(known));
        Problem::UnknownName { name, known }.into()
    }

    fn missing_field(name: &'static str) -> Self {
        Problem::MissingKey(name.to_owned()).into()
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
        let Some(first) = table.keys().find(is_unknown) else {
            return Ok(());
        };
        let problem = Problem::UnknownKey {
            name: first.get_ref().to_string(),
            known: owned(fields),
        };
        Err(ValueError::new(problem, first.span()))
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

    /// A missing value has no key, so anything that is here is `Some`.
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
            other => {
                let problem = Problem::WrongType {
                    found: other.type_str().to_owned(),
                    expected: "a name, or a table with one".to_owned(),
                };
                return Err(ValueError::new(problem, span));
            }
        };
        let result = visitor.visit_enum(choice);
        result.map_err(|error| error.at(span))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.value {
            DeValue::Table(_) => Err(ValueError::new(Problem::TableForList, self.span)),
            _ => self.deserialize_any(visitor),
        }
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
        bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 char str string bytes byte_buf map unit
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
        let at = |problem| ValueError::new(problem, span.clone());
        let mut entries = table.into_iter();
        let (name, content) = entries.next().ok_or_else(|| at(Problem::NothingChosen))?;
        if entries.next().is_some() {
            return Err(at(Problem::SeveralChosen));
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
    fn expect(self) -> Result<PlacedValue<'i>, ValueError> {
        self.0.ok_or_else(|| Problem::NoParameters.into())
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
        Err(ValueError::new(Problem::Other(message), span))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, ValueError> {
        seed.deserialize(self.expect()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ValueError> {
        self.expect()?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let content = self.expect()?;
        content.check_keys(fields)?;
        content.deserialize_any(visitor)
    }
}
