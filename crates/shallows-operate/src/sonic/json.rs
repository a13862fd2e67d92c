//! JSON without its silent surprises: a key that is given twice is an error, and every key has a
//! line.

use std::fmt::{self, Formatter};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads a text. Unlike [`serde_json`], it refuses a key that an object has twice.
pub(super) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Unique>(text).map(|Unique(value)| value)
}

/// A value in whose objects every key is unique.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                let problem = format!("the key {key:?} is given twice; keep one of the two");
                return Err(A::Error::custom(problem));
            }
            let Unique(value) = map.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// The line, from 1, of the key at `path` in a sound JSON text.
pub(super) fn line_of(text: &str, path: &[&str]) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = skip_space(bytes, 0);
    for (depth, wanted) in path.iter().enumerate() {
        let (key_at, value_at) = member(text, at, wanted)?;
        if depth + 1 == path.len() {
            let lines = bytes[..key_at].iter().filter(|&&byte| byte == b'\n');
            return Some(lines.count() + 1);
        }
        at = value_at;
    }
    None
}

/// Offsets of the key and the value of a member of the object at `at`.
fn member(text: &str, at: usize, wanted: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    let mut at = skip_space(bytes, at + 1);
    loop {
        let end = string_end(bytes, at)?;
        let key: String = serde_json::from_str(text.get(at..end)?).ok()?;
        let colon = skip_space(bytes, end);
        let value_at = skip_space(bytes, colon + 1);
        if key == wanted {
            return Some((at, value_at));
        }
        let comma = skip_space(bytes, value_end(bytes, value_at)?);
        if bytes.get(comma) != Some(&b',') {
            return None;
        }
        at = skip_space(bytes, comma + 1);
    }
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count()
}

/// The byte after the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The byte after the value that begins at `at`.
fn value_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' | b',' if depth == 0 => return Some(at),
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            _ => at += 1,
        }
        if depth == 0 && matches!(bytes.get(at - 1), Some(b'"' | b'}' | b']')) {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_given_twice_is_refused_with_its_line() {
        let error = parse("{\n \"a\": {\"b\": 1,\n \"b\": 2}}").unwrap_err();
        assert_eq!(error.line(), 3);
        assert!(error.to_string().contains("\"b\" is given twice"));
    }

    #[test]
    fn keys_have_lines() {
        let text = "{\n \"x\": [1, {\"t\": 2}, \"}\\\"\"],\n \"t\":\n {\"k\\u0031\": {\"f\":\n true,\n \"g\": 1}}}";
        assert_eq!(line_of(text, &["x"]), Some(2));
        assert_eq!(line_of(text, &["t"]), Some(3));
        assert_eq!(line_of(text, &["t", "k1"]), Some(4));
        assert_eq!(line_of(text, &["t", "k1", "g"]), Some(6));
        assert_eq!(line_of(text, &["t", "k1", "h"]), None);
        assert_eq!(line_of(text, &["x", "t"]), None);
        assert_eq!(line_of("{", &["x"]), None);
    }
}
