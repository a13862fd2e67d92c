use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Column, Kind, Series, Value, Values};
use crate::columns::{self, ColumnsWriter, Data, GROUP_ROWS};
use crate::decimal::Decimal;
use crate::file::{NewFile, write_named};
use crate::{Format, ResultsError};

impl Series {
    /// Writes the series in the format that the name tells, as a whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), ResultsError> {
        let format = Format::of(path)?;
        write_named(path, || {
            let mut sink = Sink::create(path, format, self)?;
            sink.write(self)?;
            sink.finish()
        })
    }

    /// The columns as Arrow has them, those of the Parquet file.
    #[cfg(feature = "arrow")]
    pub fn record_batch(&self) -> Result<arrow_array::RecordBatch, Box<dyn Error + Send + Sync>> {
        Ok(columns::record_batch(self.stored(&(0..self.rows())))?)
    }

    /// Some rows as a Parquet file has them.
    fn stored(&self, rows: &Range<usize>) -> Vec<columns::Column> {
        let columns = self.columns.iter();
        columns.map(|column| column.stored(rows.clone())).collect()
    }
}

impl Column {
    fn stored(&self, rows: Range<usize>) -> columns::Column {
        let data = match &self.values {
            Values::Integers(values) => Data::Int64(values[rows].to_vec()),
            Values::Reals(values) => Data::Float64(values[rows].to_vec()),
            Values::Times(values) => {
                let times = values[rows].iter().copied();
                Data::Float64(times.map(|time| Decimal::<6>(time).to_f64()).collect())
            }
        };
        columns::Column::new(&self.name, data)
    }

    fn cell(&self, row: usize) -> String {
        match &self.values {
            Values::Integers(values) => values[row].to_string(),
            // Debug keeps the ".0" that tells a real number from an integer.
            Values::Reals(values) => format!("{:?}", values[row]),
            Values::Times(values) => Decimal::<6>(values[row]).to_string(),
        }
    }
}

/// A file of a series in the making. It gets its name when it is [finished](Self::finish).
#[derive(Debug)]
pub struct SeriesWriter {
    path: PathBuf,
    /// Rows that are not in the file yet.
    rows: Series,
    sink: Sink,
}

impl SeriesWriter {
    /// A file with these columns, in the format that the name tells.
    ///
    /// # Panics
    /// As [`Series::new`] does.
    pub fn create(path: &Path, columns: &[(&str, Kind)]) -> Result<Self, ResultsError> {
        let format = Format::of(path)?;
        let rows = Series::new(columns);
        let sink = write_named(path, || Sink::create(path, format, &rows))?;
        Ok(Self {
            path: path.to_owned(),
            rows,
            sink,
        })
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If `row` has not one value of the right kind for each column.
    pub fn push(&mut self, row: &[Value]) -> Result<(), ResultsError> {
        self.rows.push(row);
        if self.rows.rows() < GROUP_ROWS {
            return Ok(());
        }
        write_named(&self.path, || self.sink.write(&self.rows))?;
        self.rows.clear();
        Ok(())
    }

    /// Writes what is left and gives the file its name.
    pub fn finish(mut self) -> Result<(), ResultsError> {
        write_named(&self.path, || {
            self.sink.write(&self.rows)?;
            self.sink.finish()
        })
    }
}

/// Destination of rows.
#[derive(Debug)]
enum Sink {
    Parquet(Box<ColumnsWriter<NewFile>>),
    Csv(Box<csv::Writer<NewFile>>),
}

impl Sink {
    /// A new file for rows like those of `sample`.
    fn create(
        path: &Path,
        format: Format,
        sample: &Series,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let file = NewFile::create(path)?;
        Ok(match format {
            Format::Parquet => {
                let columns = sample.stored(&(0..0));
                Self::Parquet(Box::new(ColumnsWriter::new(file, &columns, None)?))
            }
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(file);
                writer.write_record(sample.columns.iter().map(|column| &column.name))?;
                Self::Csv(Box::new(writer))
            }
        })
    }

    fn write(&mut self, rows: &Series) -> Result<(), Box<dyn Error + Send + Sync>> {
        match self {
            Self::Parquet(writer) => {
                for start in (0..rows.rows()).step_by(GROUP_ROWS) {
                    let end = rows.rows().min(start + GROUP_ROWS);
                    writer.write(&rows.stored(&(start..end)))?;
                }
            }
            Self::Csv(writer) => {
                for row in 0..rows.rows() {
                    writer.write_record(rows.columns.iter().map(|column| column.cell(row)))?;
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        match self {
            Self::Parquet(writer) => writer.finish()?.finish(),
            Self::Csv(writer) => {
                let file = writer
                    .into_inner()
                    .map_err(csv::IntoInnerError::into_error)?;
                file.finish()
            }
        }
    }
}
