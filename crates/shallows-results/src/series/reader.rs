use std::error::Error;
use std::path::Path;

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::DataType;
use shallows_core::units::Time;

use super::{Column, Kind, Series, TIME_SUFFIX, Values};
use crate::decimal::Decimal;
use crate::error::ContentError;
use crate::file::{self, parquet_reader, read_named};
use crate::{Format, ResultsError};

impl Series {
    /// Reads a series in the format that the name tells. CSV does not say what a column without
    /// times holds: it is integers if every cell is one.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        let format = Format::of(path)?;
        read_named(path, || match format {
            Format::Parquet => read_parquet(path),
            Format::Csv => read_csv(path),
        })
    }
}

fn read_parquet(path: &Path) -> Result<Series, Box<dyn Error + Send + Sync>> {
    let (_, batches) = parquet_reader(path)?;
    let schema = RecordBatchReader::schema(&batches);
    let mut columns = Vec::new();
    for field in schema.fields() {
        let kind = match field.data_type() {
            DataType::Float64 if field.name().ends_with(TIME_SUFFIX) => Kind::Time,
            DataType::Float64 => Kind::Real,
            DataType::Int64 => Kind::Integer,
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
    for batch in batches {
        append(&mut columns, &batch?)?;
    }
    Ok(Series { columns })
}

fn append(columns: &mut [Column], batch: &RecordBatch) -> Result<(), ContentError> {
    for Column { name, values } in columns {
        match values {
            Values::Integers(values) => {
                values.extend(file::values::<Int64Type>(batch, name, "Int64")?);
            }
            Values::Reals(values) => {
                values.extend(file::values::<Float64Type>(batch, name, "Float64")?);
            }
            Values::Times(values) => {
                for &value in file::values::<Float64Type>(batch, name, "Float64")? {
                    values.push(Decimal::<6>::read(name, value)?);
                }
            }
        }
    }
    Ok(())
}

fn read_csv(path: &Path) -> Result<Series, Box<dyn Error + Send + Sync>> {
    let mut reader = csv::Reader::from_path(path)?;
    let headers = reader.headers()?.clone();
    let rows = reader.records().collect::<Result<Vec<_>, _>>()?;
    let mut columns = Vec::new();
    for (index, name) in headers.iter().enumerate() {
        let cells = || rows.iter().map(|row| &row[index]);
        let values = if name.ends_with(TIME_SUFFIX) {
            Values::Times(cells().map(time).collect::<Result<_, _>>()?)
        } else if let Ok(integers) = cells().map(str::parse).collect() {
            Values::Integers(integers)
        } else {
            let real = |cell| real(cell, name);
            Values::Reals(cells().map(real).collect::<Result<_, _>>()?)
        };
        columns.push(Column {
            name: name.to_owned(),
            values,
        });
    }
    Ok(Series { columns })
}

fn time(cell: &str) -> Result<Time, Box<dyn Error + Send + Sync>> {
    Ok(cell.parse::<Decimal<6>>()?.0)
}

fn real(cell: &str, column: &str) -> Result<f64, Box<dyn Error + Send + Sync>> {
    let number = cell.parse();
    number.map_err(|_| format!("column {column}: expected a number, got {cell:?}").into())
}
