//! A scenario as a TOML value, with its rates and times scaled on the way.
//!
//! Quantities are known by their types, which serialize as newtypes of these names, never by what
//! a string looks like: a host called `5s` stays one.

use serde::ser::{self, Error as _, Serialize};
use shallows_core::units::{Rate, Time};
use toml::ser::Error;
use toml::{Table, Value};

use super::Slowdown;

/// `of` as a value; none if it is an option without one.
pub(super) fn value<T: Serialize + ?Sized>(
    scale: Slowdown,
    of: &T,
) -> Result<Option<Value>, Error> {
    of.serialize(Typed(scale))
}

#[derive(Clone, Copy)]
struct Typed(Slowdown);

/// Scales the quantity in `text`.
fn quantity<Q: std::str::FromStr + ToString>(
    text: Option<&Value>,
    scaled: impl FnOnce(Q) -> Q,
) -> Result<Option<Value>, Error> {
    let text = text.and_then(Value::as_str);
    let quantity = text.and_then(|text| text.parse().ok());
    let quantity = quantity.ok_or_else(|| Error::custom("a quantity that cannot be read"))?;
    Ok(Some(scaled(quantity).to_string().into()))
}

/// A table with one entry, as enums are written.
fn tagged(variant: &str, value: Option<Value>) -> Value {
    let mut table = Table::new();
    table.extend(value.map(|value| (variant.to_owned(), value)));
    table.into()
}

/// Numbers of all widths become the one that TOML has.
macro_rules! integers {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<Self::Ok, Error> {
            let number = i64::try_from(value).map_err(Error::custom)?;
            Ok(Some(number.into()))
        }
    )*};
}

impl ser::Serializer for Typed {
    type Ok = Option<Value>;
    type Error = Error;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Entries;

    integers! {
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64
    }

    fn serialize_bool(self, value: bool) -> Result<Self::Ok, Error> {
        Ok(Some(value.into()))
    }

    fn serialize_f32(self, value: f32) -> Result<Self::Ok, Error> {
        Ok(Some(value.into()))
    }

    fn serialize_f64(self, value: f64) -> Result<Self::Ok, Error> {
        Ok(Some(value.into()))
    }

    fn serialize_char(self, value: char) -> Result<Self::Ok, Error> {
        Ok(Some(value.to_string().into()))
    }

    fn serialize_str(self, value: &str) -> Result<Self::Ok, Error> {
        Ok(Some(value.into()))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Self::Ok, Error> {
        Err(Error::custom("bytes have no place in a scenario"))
    }

    fn serialize_none(self) -> Result<Self::Ok, Error> {
        Ok(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Self::Ok, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Self::Ok, Error> {
        Ok(None)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Self::Ok, Error> {
        Ok(None)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Self::Ok, Error> {
        Ok(Some(variant.into()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Self::Ok, Error> {
        let inner = value.serialize(self)?;
        match name {
            "Time" => quantity(inner.as_ref(), |time: Time| self.0.time(time)),
            "Rate" => quantity(inner.as_ref(), |rate: Rate| self.0.rate(rate)),
            _ => Ok(inner),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Self::Ok, Error> {
        Ok(Some(tagged(variant, value.serialize(self)?)))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items, Error> {
        Ok(Items::new(self, None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items, Error> {
        Ok(Items::new(self, None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items, Error> {
        Ok(Items::new(self, None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items, Error> {
        Ok(Items::new(self, Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries, Error> {
        Ok(Entries::new(self, None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries, Error> {
        Ok(Entries::new(self, None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Entries, Error> {
        Ok(Entries::new(self, Some(variant)))
    }
}

struct Items {
    of: Typed,
    variant: Option<&'static str>,
    items: Vec<Value>,
}

impl Items {
    fn new(of: Typed, variant: Option<&'static str>) -> Self {
        let items = Vec::new();
        Self { of, variant, items }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let value = value.serialize(self.of)?;
        let missing = || Error::custom("a list has no empty places");
        self.items.push(value.ok_or_else(missing)?);
        Ok(())
    }

    fn finish(self) -> Option<Value> {
        let items = Some(self.items.into());
        match self.variant {
            Some(variant) => Some(tagged(variant, items)),
            None => items,
        }
    }
}

macro_rules! items {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Items {
            type Ok = Option<Value>;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.push(value)
            }

            fn end(self) -> Result<Self::Ok, Error> {
                Ok(self.finish())
            }
        }
    )*};
}

items! {
    SerializeSeq serialize_element, SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field
}

struct Entries {
    of: Typed,
    variant: Option<&'static str>,
    table: Table,
    key: Option<String>,
}

impl Entries {
    fn new(of: Typed, variant: Option<&'static str>) -> Self {
        Self {
            of,
            variant,
            table: Table::new(),
            key: None,
        }
    }

    fn insert<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), Error> {
        let value = value.serialize(self.of)?;
        self.table.extend(value.map(|value| (key, value)));
        Ok(())
    }

    fn finish(self) -> Option<Value> {
        let table = Some(self.table.into());
        match self.variant {
            Some(variant) => Some(tagged(variant, table)),
            None => table,
        }
    }
}

impl ser::SerializeMap for Entries {
    type Ok = Option<Value>;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = match key.serialize(self.of)? {
            Some(Value::String(key)) => Some(key),
            Some(key) => Some(key.to_string()),
            None => None,
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take();
        let key = key.ok_or_else(|| Error::custom("a value without a key"))?;
        self.insert(key, value)
    }

    fn end(self) -> Result<Self::Ok, Error> {
        Ok(self.finish())
    }
}

macro_rules! entries {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Entries {
            type Ok = Option<Value>;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.insert(key.to_owned(), value)
            }

            fn end(self) -> Result<Self::Ok, Error> {
                Ok(self.finish())
            }
        }
    )*};
}

entries! { SerializeStruct, SerializeStructVariant }
