//! What a probe saw over time: a time and some named numbers a row, as Parquet or CSV.
//!
//! The first column is `time_s`; it is as exact as [`start_s` of flows](crate::flows). Integers are
//! 64 bits wide; other numbers are doubles, in CSV with as many digits as they need to be read back
//! the same.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchReader};
use arrow_schema::DataType;
use shallows_core::units::Time;

use crate::decimal::Decimal;
use crate::error::ContentError;
use crate::file::{
    self, BATCH_ROWS, NewFile, parquet_reader, parquet_writer, read_named, write_whole,
};
use crate::{Format, ResultsError};

/// The name of the column that every series begins with.
pub const TIME_COLUMN: &str = "time_s";

/// A table whose rows are points in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    times: Vec<Time>,
    columns: Vec<Column>,
}

/// A named column of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, with the unit where it has one, such as `queue_bytes`.
    pub name: String,
    /// Its values, one for each time.
    pub values: Values,
}

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Counts, sizes and identifiers.
    Integers(Vec<i64>),
    /// Real numbers.
    Reals(Vec<f64>),
}

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// For a column of integers.
    Integer(i64),
    /// For a column of real numbers.
    Real(f64),
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Counts, sizes and identifiers.
    Integer,
    /// Real numbers.
    Real,
}

impl Series {
    /// An empty series with these columns after the time.
    ///
    /// # Panics
    /// If two columns have the same name, or one is called like the time.
    pub fn new(columns: &[(&str, Kind)]) -> Self {
        for (index, (name, _)) in columns.iter().enumerate() {
            let repeated = columns[..index].iter().any(|(earlier, _)| earlier == name);
            assert!(
                !repeated && *name != TIME_COLUMN,
                "two columns are called {name}"
            );
        }
        let columns = columns.iter().map(|&(name, kind)| Column::new(name, kind));
        Self {
            times: Vec::new(),
            columns: columns.collect(),
        }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If `row` has not one value of the right kind for each column.
    pub fn push(&mut self, time: Time, row: &[Value]) {
        assert_eq!(row.len(), self.columns.len(), "one value for each column");
        for (column, value) in self.columns.iter_mut().zip(row) {
            match (&mut column.values, *value) {
                (Values::Integers(values), Value::Integer(value)) => values.push(value),
                (Values::Reals(values), Value::Real(value)) => values.push(value),
                (_, value) => panic!("column {} cannot hold {value:?}", column.name),
            }
        }
        self.times.push(time);
    }

    /// The time of each row.
    pub fn times(&self) -> &[Time] {
        &self.times
    }

    /// The columns after the time.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Writes the series in the format that the name tells, as a whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), ResultsError> {
        let format = Format::of(path)?;
        write_whole(path, |file| match format {
            Format::Parquet => self.write_parquet(file),
            Format::Csv => self.write_csv(file),
        })
    }

    /// Reads a series in the format that the name tells. CSV does not say what a column holds: it
    /// is integers if every cell is one.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        let format = Format::of(path)?;
        read_named(path, || match format {
            Format::Parquet => Self::read_parquet(path),
            Format::Csv => Self::read_csv(path),
        })
    }

    fn write_parquet(&self, file: &mut NewFile) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut writer = parquet_writer(file, &self.batch(0..0)?, None)?;
        for start in (0..self.times.len()).step_by(BATCH_ROWS) {
            let end = self.times.len().min(start + BATCH_ROWS);
            writer.write(&self.batch(start..end)?)?;
        }
        writer.close()?;
        Ok(())
    }

    fn batch(
        &self,
        rows: std::ops::Range<usize>,
    ) -> Result<RecordBatch, Box<dyn Error + Send + Sync>> {
        let exact = |time: &Time| Decimal::<12>(*time).to_exact_f64(TIME_COLUMN);
        let times: Result<Vec<f64>, ContentError> =
            self.times[rows.clone()].iter().map(exact).collect();
        let times: ArrayRef = Arc::new(Float64Array::from(times?));
        let columns = self.columns.iter().map(|column| {
            let array: ArrayRef = match &column.values {
                Values::Integers(values) => {
                    Arc::new(Int64Array::from(values[rows.clone()].to_vec()))
                }
                Values::Reals(values) => {
                    Arc::new(Float64Array::from(values[rows.clone()].to_vec()))
                }
            };
            (column.name.as_str(), array, false)
        });
        let named = std::iter::once((TIME_COLUMN, times, false)).chain(columns);
        Ok(RecordBatch::try_from_iter_with_nullable(named)?)
    }

    fn read_parquet(path: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let (_, batches) = parquet_reader(path)?;
        let schema = RecordBatchReader::schema(&batches);
        let mut columns = Vec::new();
        for field in schema.fields() {
            let kind = match field.data_type() {
                _ if field.name() == TIME_COLUMN => continue,
                DataType::Int64 => Kind::Integer,
                DataType::Float64 => Kind::Real,
                other => {
                    return Err(ContentError::ColumnType {
                        column: field.name().clone(),
                        found: other.to_string(),
                        expected: "Int64 or Float64",
                    }
                    .into());
                }
            };
            columns.push(Column::new(field.name(), kind));
        }
        let mut series = Self {
            times: Vec::new(),
            columns,
        };
        for batch in batches {
            series.append(&batch?)?;
        }
        Ok(series)
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<(), ContentError> {
        for &value in file::values::<Float64Type>(batch, TIME_COLUMN, "Float64")? {
            self.times.push(Decimal::<12>::read(TIME_COLUMN, value)?);
        }
        for Column { name, values } in &mut self.columns {
            match values {
                Values::Integers(values) => {
                    values.extend(file::values::<Int64Type>(batch, name, "Int64")?);
                }
                Values::Reals(values) => {
                    values.extend(file::values::<Float64Type>(batch, name, "Float64")?);
                }
            }
        }
        Ok(())
    }

    fn write_csv(&self, file: &mut NewFile) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut writer = csv::Writer::from_writer(file);
        let names = self.columns.iter().map(|column| column.name.as_str());
        writer.write_record(std::iter::once(TIME_COLUMN).chain(names))?;
        for (row, time) in self.times.iter().enumerate() {
            writer.write_field(Decimal::<12>(*time).to_string())?;
            for column in &self.columns {
                match &column.values {
                    Values::Integers(values) => writer.write_field(values[row].to_string())?,
                    // Debug keeps the ".0" that tells a real number from an integer.
                    Values::Reals(values) => writer.write_field(format!("{:?}", values[row]))?,
                }
            }
            writer.write_record(None::<&[u8]>)?;
        }
        writer.flush()?;
        Ok(())
    }

    fn read_csv(path: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut reader = csv::Reader::from_path(path)?;
        let headers = reader.headers()?.clone();
        if headers.get(0) != Some(TIME_COLUMN) {
            let column = TIME_COLUMN.to_owned();
            return Err(ContentError::MissingColumn { column }.into());
        }
        let rows = reader.records().collect::<Result<Vec<_>, _>>()?;
        let times = rows.iter().map(|row| Ok(row[0].parse::<Decimal<12>>()?.0));
        let times = times.collect::<Result<_, Box<dyn Error + Send + Sync>>>()?;
        let mut columns = Vec::new();
        for (index, name) in headers.iter().enumerate().skip(1) {
            let integers = rows.iter().map(|row| row[index].parse());
            let values = match integers.collect() {
                Ok(integers) => Values::Integers(integers),
                Err(_) => Values::Reals(reals(rows.iter().map(|row| &row[index]), name)?),
            };
            columns.push(Column {
                name: name.to_owned(),
                values,
            });
        }
        Ok(Self { times, columns })
    }
}

impl Column {
    fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            values: match kind {
                Kind::Integer => Values::Integers(Vec::new()),
                Kind::Real => Values::Reals(Vec::new()),
            },
        }
    }
}

fn reals<'c>(
    cells: impl Iterator<Item = &'c str>,
    column: &str,
) -> Result<Vec<f64>, Box<dyn Error + Send + Sync>> {
    let real = |cell: &str| {
        let number = cell.parse();
        number.map_err(|_| format!("column {column}: expected a number, got {cell:?}").into())
    };
    cells.map(real).collect()
}
