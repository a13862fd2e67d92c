//! From JSON to typed rows, with every problem's place.

use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use thiserror::Error;

use super::json;

/// A place in a configuration: a table, a row of it, a field of the row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigPlace {
    /// The table, such as `WRED_PROFILE`; empty for the file as a whole.
    pub table: String,
    /// The key of the row.
    pub key: Option<String>,
    /// The field of the row.
    pub field: Option<String>,
}

impl ConfigPlace {
    /// A row.
    pub(super) fn row(table: &str, key: &str) -> Self {
        Self {
            table: table.to_owned(),
            key: Some(key.to_owned()),
            field: None,
        }
    }

    /// A table.
    pub(super) fn table(table: &str) -> Self {
        Self {
            table: table.to_owned(),
            key: None,
            field: None,
        }
    }

    /// A field of this row.
    pub(super) fn field(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    /// Its line in the text, from 1; that of the row where the field is missing.
    pub(super) fn line(&self, text: &str) -> Option<usize> {
        let parts = [Some(&self.table), self.key.as_ref(), self.field.as_ref()];
        let path: Vec<&str> = parts.iter().flatten().map(|part| part.as_str()).collect();
        (1..=path.len())
            .rev()
            .find_map(|end| json::line_of(text, &path[..end]))
    }
}

impl Display for ConfigPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table)?;
        if let Some(key) = &self.key {
            write!(f, "|{key}")?;
        }
        match &self.field {
            Some(field) => write!(f, ", {field}"),
            None => Ok(()),
        }
    }
}

/// A value that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its place; nothing for the file as a whole.
    pub place: Option<ConfigPlace>,
    /// Its line, from 1.
    pub line: Option<usize>,
    /// The reason why it cannot be read, and what to write instead.
    pub reason: String,
}

/// A configuration that cannot be read: every problem of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ReadError {
    /// The file.
    pub file: String,
    /// The problems, at least one.
    pub problems: Vec<Problem>,
}

impl ReadError {
    pub(super) fn whole(file: &str, line: Option<usize>, reason: impl Into<String>) -> Self {
        let problem = Problem {
            place: None,
            line,
            reason: reason.into(),
        };
        Self {
            file: file.to_owned(),
            problems: vec![problem],
        }
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&self.file)?;
            if let Some(line) = problem.line {
                write!(f, ":{line}")?;
            }
            if let Some(place) = &problem.place {
                write!(f, ": {place}")?;
            }
            write!(f, ": {}", problem.reason)?;
        }
        Ok(())
    }
}

/// Collects what is wrong while rows are read.
#[derive(Debug, Default)]
pub(super) struct Problems(pub(super) Vec<(ConfigPlace, String)>);

impl Problems {
    pub(super) fn add(&mut self, place: ConfigPlace, reason: impl Into<String>) {
        self.0.push((place, reason.into()));
    }
}

/// The rows of a table; a table that is missing has none.
pub(super) fn rows<'v>(
    database: &'v Map<String, Value>,
    table: &'static str,
    problems: &mut Problems,
) -> Vec<Row<'v>> {
    let Some(value) = database.get(table) else {
        return Vec::new();
    };
    let Some(rows) = value.as_object() else {
        let reason = format!("{} is not a table; write {{ ... }}", kind(value));
        problems.add(ConfigPlace::table(table), reason);
        return Vec::new();
    };
    let mut read = Vec::new();
    for (key, value) in rows {
        if let Some(fields) = value.as_object() {
            read.push(Row { table, key, fields });
        } else {
            let reason = format!("{} is not a row; write {{ ... }}", kind(value));
            problems.add(ConfigPlace::row(table, key), reason);
        }
    }
    read
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'v> {
    pub(super) table: &'static str,
    pub(super) key: &'v str,
    pub(super) fields: &'v Map<String, Value>,
}

impl Row<'_> {
    pub(super) fn place(&self) -> ConfigPlace {
        ConfigPlace::row(self.table, self.key)
    }

    /// The text of a field. Numbers and truth values count as their text, as in SONiC's own tools.
    pub(super) fn text(&self, field: &str, problems: &mut Problems) -> Option<String> {
        match self.fields.get(field)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            other => {
                let reason = format!("{} is not a value; write a text", kind(other));
                problems.add(self.place().field(field), reason);
                None
            }
        }
    }

    /// A whole number in a range.
    pub(super) fn number(
        &self,
        field: &str,
        range: RangeInclusive<i64>,
        problems: &mut Problems,
    ) -> Option<i64> {
        let text = self.text(field, problems)?;
        match text.parse() {
            Ok(number) if range.contains(&number) => Some(number),
            _ => {
                let reason = not_a_number(&text, &range);
                problems.add(self.place().field(field), reason);
                None
            }
        }
    }

    /// A number of bytes.
    pub(super) fn bytes(&self, field: &str, problems: &mut Problems) -> Option<u64> {
        // More than fits a signed number is no memory of any switch.
        self.number(field, 0..=i64::MAX, problems)
            .map(i64::cast_unsigned)
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, field: &str, problems: &mut Problems) -> Option<bool> {
        let text = self.text(field, problems)?;
        match text.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                let reason = format!("{text:?} is neither \"true\" nor \"false\"");
                problems.add(self.place().field(field), reason);
                None
            }
        }
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(
        &self,
        field: &str,
        words: &[(&str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let text = self.text(field, problems)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let reason = format!("{text:?} is not one of {}", known.join(", "));
            problems.add(self.place().field(field), reason);
        }
        found.map(|(_, value)| *value)
    }

    /// The name of a row of another table; older files write it as `[TABLE|NAME]`.
    pub(super) fn reference(
        &self,
        field: &str,
        table: &str,
        problems: &mut Problems,
    ) -> Option<String> {
        let text = self.text(field, problems)?;
        let Some(inner) = text.strip_prefix('[') else {
            return Some(text);
        };
        let name = inner
            .strip_suffix(']')
            .and_then(|inner| inner.strip_prefix(table)?.strip_prefix('|'));
        if name.is_none() {
            let reason = format!("{text:?} does not refer to {table}; write the name of a row");
            problems.add(self.place().field(field), reason);
        }
        name.map(str::to_owned)
    }

    /// Fields that are none of `known`.
    pub(super) fn unknown<'r>(
        &'r self,
        known: &'r [&str],
    ) -> impl Iterator<Item = ConfigPlace> + 'r {
        self.fields
            .keys()
            .filter(|field| !known.contains(&field.as_str()))
            .map(|field| self.place().field(field))
    }
}

fn not_a_number(text: &str, range: &RangeInclusive<i64>) -> String {
    let (low, high) = (range.start(), range.end());
    let trimmed = text.trim();
    if trimmed != text && trimmed.parse::<i64>().is_ok() {
        return format!("{text:?} has a space; write {trimmed:?}");
    }
    if *high == i64::MAX {
        format!("{text:?} is not a whole number of {low} or more")
    } else {
        format!("{text:?} is not a whole number from {low} to {high}")
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
