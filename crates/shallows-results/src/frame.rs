//! A table of many runs: one row a run, with what was varied and what came out.

use std::error::Error;
use std::path::Path;

use crate::ResultsError;
use crate::columns::{Column, ColumnsReader, ColumnsWriter, Data};
use crate::file::{read_named, write_whole};

/// Named columns of equal length, written as Parquet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    columns: Vec<(String, Cells)>,
}

/// Values of a column of a [`Frame`].
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

    fn column(&self, name: &str) -> Column {
        match self {
            Self::Texts(values) => Column::new(name, Data::Utf8(values.clone())),
            Self::Integers(values) => Column::new(name, Data::Int64(values.clone())),
            Self::Reals(values) => {
                let reals = values.iter().map(|value| value.unwrap_or_default());
                let is_there = values.iter().map(Option::is_some).collect();
                Column::with_gaps(name, Data::Float64(reals.collect()), is_there)
            }
        }
    }

    fn extend(&mut self, column: &Column) -> Result<(), Box<dyn Error + Send + Sync>> {
        match self {
            Self::Texts(values) => values.extend_from_slice(column.values()?),
            Self::Integers(values) => values.extend_from_slice(column.values()?),
            Self::Reals(values) => {
                let reals = column.cells::<f64>()?.iter().enumerate();
                values.extend(reals.map(|(row, real)| column.is_there(row).then_some(*real)));
            }
        }
        Ok(())
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

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, cells)| cells.len())
    }

    /// Writes the frame as Parquet, as a whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), ResultsError> {
        write_whole(path, |file| {
            let columns = self.columns.iter();
            let columns: Vec<_> = columns.map(|(name, cells)| cells.column(name)).collect();
            let mut writer = ColumnsWriter::new(file, &columns, None)?;
            writer.write(&columns)?;
            writer.finish()?;
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
    let reader = ColumnsReader::open(path)?;
    let mut frame = Frame::default();
    for column in reader.schema() {
        let cells = match column.data {
            Data::Utf8(_) => Cells::Texts(Vec::new()),
            Data::Int64(_) => Cells::Integers(Vec::new()),
            Data::Float64(_) => Cells::Reals(Vec::new()),
            _ => return Err(column.type_error("Utf8, Int64 or Float64").into()),
        };
        frame.add(column.name, cells);
    }
    for group in reader.groups() {
        for ((_, cells), column) in frame.columns.iter_mut().zip(group?) {
            cells.extend(&column)?;
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
