use std::error::Error;
use std::path::Path;

use shallows_core::units::Time;

use super::{Column, Kind, Series, TIME_SUFFIX, Values};
use crate::columns::{self, ColumnsReader, Data};
use crate::decimal::Decimal;
use crate::error::ContentError;
use crate::file::{open_regular, read_named};
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
    let reader = ColumnsReader::open(path)?;
    let mut columns = Vec::new();
    for column in reader.schema() {
        let kind = match column.data {
            Data::Float64(_) if column.name.ends_with(TIME_SUFFIX) => Kind::Time,
            Data::Float64(_) => Kind::Real,
            Data::Int64(_) => Kind::Integer,
            _ => return Err(column.type_error("Int64 or Float64").into()),
        };
        columns.push(Column::new(&column.name, kind));
    }
    for group in reader.groups() {
        for (column, rows) in columns.iter_mut().zip(group?) {
            append(column, &rows)?;
        }
    }
    Ok(Series { columns })
}

fn append(column: &mut Column, rows: &columns::Column) -> Result<(), ContentError> {
    match &mut column.values {
        Values::Integers(values) => values.extend_from_slice(rows.values()?),
        Values::Reals(values) => values.extend_from_slice(rows.values()?),
        Values::Times(values) => {
            for &value in rows.values::<f64>()? {
                values.push(Decimal::<6>::read(&column.name, value)?);
            }
        }
    }
    Ok(())
}

fn read_csv(path: &Path) -> Result<Series, Box<dyn Error + Send + Sync>> {
    let mut reader = csv::Reader::from_reader(open_regular(path)?);
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
