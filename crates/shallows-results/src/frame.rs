//! A table of many runs: one row a run, with what was varied and what came out.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;

use crate::ResultsError;
use crate::error::ContentError;
use crate::file::{column, parquet_reader, parquet_writer, read_named, write_whole};

/// Named columns of equal length, written as Parquet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    columns: Vec<(String, Cells)>,
}

/// What a column of a [`Frame`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Names.
    Texts(Vec<String>),
    /// Counts and seeds.
    Integers(Vec<i64>),
    /// Real numbers; a run may have none.
    Reals(Vec<Option<f64>>),
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Self::Texts(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Reals(values) => values.len(),
        }
    }

    fn array(&self) -> ArrayRef {
        match self {
            Self::Texts(values) => Arc::new(StringArray::from(values.clone())),
            Self::Integers(values) => Arc::new(Int64Array::from(values.clone())),
            Self::Reals(values) => Arc::new(Float64Array::from(values.clone())),
        }
    }
}

impl Frame {
    /// Adds a column at the right.
    ///
    /// # Panics
    /// If there is one of that name, or if it is not as long as the others.
    pub fn add(&mut self, name: impl Into<String>, cells: Cells) {
        let name = name.into();
        assert!(
            self.column(&name).is_none(),
            "two columns are called {name}"
        );
        if let Some((_, first)) = self.columns.first() {
            assert_eq!(first.len(), cells.len(), "rows of {name}");
        }
        self.columns.push((name, cells));
    }

    /// A column by name.
    pub fn column(&self, name: &str) -> Option<&Cells> {
        let found = self.columns.iter().find(|(of, _)| of == name);
        found.map(|(_, cells)| cells)
    }

    /// All columns, from the left.
    pub fn columns(&self) -> &[(String, Cells)] {
        &self.columns
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, cells)| cells.len())
    }

    /// Writes the frame as Parquet, as a whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), ResultsError> {
        write_whole(path, |file| {
            let named = self.columns.iter().map(|(name, cells)| {
                let nullable = matches!(cells, Cells::Reals(_));
                (name, cells.array(), nullable)
            });
            let batch = RecordBatch::try_from_iter_with_nullable(named)?;
            let mut writer = parquet_writer(file, &batch, None)?;
            writer.write(&batch)?;
            writer.close()?;
            Ok(())
        })
    }

    /// The rows as a list of JSON objects.
    pub fn to_json(&self) -> serde_json::Value {
        let cell = |cells: &Cells, row: usize| match cells {
            Cells::Texts(values) => values[row].clone().into(),
            Cells::Integers(values) => values[row].into(),
            Cells::Reals(values) => values[row].into(),
        };
        let row = |row: usize| {
            let columns = self.columns.iter();
            let cells = columns.map(|(name, cells)| (name.clone(), cell(cells, row)));
            serde_json::Value::Object(cells.collect())
        };
        (0..self.rows()).map(row).collect()
    }

    /// Reads what [`write`](Self::write) wrote.
    pub fn read(path: &Path) -> Result<Self, ResultsError> {
        read_named(path, || read(path))
    }
}

fn read(path: &Path) -> Result<Frame, Box<dyn Error + Send + Sync>> {
    let (_, batches) = parquet_reader(path)?;
    let mut frame = Frame::default();
    for field in arrow_array::RecordBatchReader::schema(&batches).fields() {
        let cells = match field.data_type() {
            DataType::Utf8 => Cells::Texts(Vec::new()),
            DataType::Int64 => Cells::Integers(Vec::new()),
            DataType::Float64 => Cells::Reals(Vec::new()),
            other => {
                return Err(ContentError::ColumnType {
                    column: field.name().clone(),
                    found: other.to_string(),
                    expected: "Utf8, Int64 or Float64",
                }
                .into());
            }
        };
        frame.add(field.name(), cells);
    }
    for batch in batches {
        let batch = batch?;
        for (name, cells) in &mut frame.columns {
            match cells {
                Cells::Texts(values) => {
                    let array: &StringArray = column(&batch, name, "Utf8")?;
                    let texts = array.iter().map(|text| text.unwrap_or_default().to_owned());
                    values.extend(texts);
                }
                Cells::Integers(values) => {
                    let array: &Int64Array = column(&batch, name, "Int64")?;
                    values.extend_from_slice(array.values());
                }
                Cells::Reals(values) => {
                    let array: &Float64Array = column(&batch, name, "Float64")?;
                    values.extend(array.iter());
                }
            }
        }
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut frame = Frame::default();
        let texts = ["MQ-ECN", "none", "größer"].map(str::to_owned);
        frame.add("scheme", Cells::Texts(texts.to_vec()));
        frame.add("seed", Cells::Integers(vec![1, 2, i64::MAX]));
        frame.add("small.p99", Cells::Reals(vec![Some(0.1), None, Some(2.5)]));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.parquet");
        frame.write(&path).unwrap();
        let read = Frame::read(&path).unwrap();
        assert_eq!(read, frame);
        assert_eq!(read.rows(), 3);
        assert_eq!(
            read.column("seed"),
            Some(&Cells::Integers(vec![1, 2, i64::MAX]))
        );
    }
}
