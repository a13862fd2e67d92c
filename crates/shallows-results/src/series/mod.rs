//! Series of samples: named columns of numbers, as Parquet or CSV.
//!
//! A column holds integers, real numbers or times. The names of columns of times, and only those,
//! end in `_us`: they are microseconds, and as exact as [the times of flows](crate::flows). Integers
//! are 64 bits wide; other numbers are doubles, in CSV with as many digits as they need to be read
//! back the same, and NaN where there is none.
//!
//! [`SeriesWriter`] takes row after row and keeps no more than a row group of them in memory;
//! [`Series`] is a whole one.

mod reader;
mod writer;

use shallows_core::units::Time;

pub use writer::SeriesWriter;

/// Suffix of the names of time columns.
pub const TIME_SUFFIX: &str = "_us";

/// A table of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    columns: Vec<Column>,
}

/// A named column of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, with the unit where it has one, such as `queue_bytes`.
    pub name: String,
    /// Its values, one for each row.
    pub values: Values,
}

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Counts, sizes and identifiers.
    Integers(Vec<i64>),
    /// Real numbers.
    Reals(Vec<f64>),
    /// Instants and spans.
    Times(Vec<Time>),
}

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// For a column of integers.
    Integer(i64),
    /// For a column of real numbers.
    Real(f64),
    /// For a column of times.
    Time(Time),
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

/// The few numbers that a column cannot hold become the largest that it can.
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

/// NaN where there is none.
impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        Self::Real(number.unwrap_or(f64::NAN))
    }
}

impl From<Time> for Value {
    fn from(time: Time) -> Self {
        Self::Time(time)
    }
}

/// Kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Counts, sizes and identifiers.
    Integer,
    /// Real numbers.
    Real,
    /// Instants and spans.
    Time,
}

impl Series {
    /// An empty series with these columns.
    ///
    /// # Panics
    /// If there are none, two have the same name, or one whose name ends in [`TIME_SUFFIX`] does
    /// not hold times or the other way round.
    pub fn new(columns: &[(&str, Kind)]) -> Self {
        assert!(!columns.is_empty(), "a series has columns");
        for (index, &(name, kind)) in columns.iter().enumerate() {
            let repeated = columns[..index].iter().any(|(earlier, _)| *earlier == name);
            assert!(!repeated, "two columns are called {name}");
            assert!(
                name.ends_with(TIME_SUFFIX) == (kind == Kind::Time),
                "{name}: columns of times, and no others, end in {TIME_SUFFIX}"
            );
        }
        let columns = columns.iter().map(|&(name, kind)| Column::new(name, kind));
        Self {
            columns: columns.collect(),
        }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If `row` has not one value of the right kind for each column.
    pub fn push(&mut self, row: &[Value]) {
        assert_eq!(row.len(), self.columns.len(), "one value for each column");
        for (column, value) in self.columns.iter_mut().zip(row) {
            match (&mut column.values, *value) {
                (Values::Integers(values), Value::Integer(value)) => values.push(value),
                (Values::Reals(values), Value::Real(value)) => values.push(value),
                (Values::Times(values), Value::Time(value)) => values.push(value),
                (_, value) => panic!("column {} cannot hold {value:?}", column.name),
            }
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns[0].values.len()
    }

    /// All columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The values of a column, if there is one of that name.
    pub fn column(&self, name: &str) -> Option<&Values> {
        let found = self.columns.iter().find(|column| column.name == name);
        found.map(|column| &column.values)
    }

    /// The values of a column of times, if there is one of that name.
    pub fn times(&self, name: &str) -> Option<&[Time]> {
        match self.column(name)? {
            Values::Times(values) => Some(values),
            _ => None,
        }
    }

    /// The values of a column of integers, if there is one of that name.
    pub fn integers(&self, name: &str) -> Option<&[i64]> {
        match self.column(name)? {
            Values::Integers(values) => Some(values),
            _ => None,
        }
    }

    /// The values of a column of real numbers, if there is one of that name.
    pub fn reals(&self, name: &str) -> Option<&[f64]> {
        match self.column(name)? {
            Values::Reals(values) => Some(values),
            _ => None,
        }
    }

    fn clear(&mut self) {
        for column in &mut self.columns {
            match &mut column.values {
                Values::Integers(values) => values.clear(),
                Values::Reals(values) => values.clear(),
                Values::Times(values) => values.clear(),
            }
        }
    }
}

impl Column {
    fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            values: match kind {
                Kind::Integer => Values::Integers(Vec::new()),
                Kind::Real => Values::Reals(Vec::new()),
                Kind::Time => Values::Times(Vec::new()),
            },
        }
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Reals(values) => values.len(),
            Self::Times(values) => values.len(),
        }
    }
}
