//! Columns of numbers and texts in Parquet files.
//!
//! They go through Parquet's own column writers and readers rather than through Arrow, which was a
//! seventh of the CPU time of a cold build. The feature `arrow` makes columns of Arrow of them.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, DataType};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, Type};

use crate::error::ContentError;
use crate::file::open_regular;

/// Rows that are turned into columns at a time, and written as one row group.
pub(crate) const GROUP_ROWS: usize = 1 << 17;

/// A named column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data: Data,
    /// Presence of each cell, where cells may be empty. There is a value below an empty one.
    pub(crate) is_there: Option<Vec<bool>>,
}

/// The values of a column, one for each row.
#[derive(Debug)]
pub(crate) enum Data {
    UInt64(Vec<u64>),
    UInt32(Vec<u32>),
    UInt16(Vec<u16>),
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    Boolean(Vec<bool>),
    Utf8(Vec<String>),
    /// Of a type that we do not write, by its name.
    Other(String),
}

/// A type that columns hold.
pub(crate) trait Cell: Sized {
    /// Name of the type, as in Arrow.
    const TYPE: &'static str;

    fn values(data: &Data) -> Option<&[Self]>;
}

macro_rules! cells {
    ($($variant:ident $type:ty),*) => {
        $(impl Cell for $type {
            const TYPE: &'static str = stringify!($variant);

            fn values(data: &Data) -> Option<&[Self]> {
                match data {
                    Data::$variant(values) => Some(values),
                    _ => None,
                }
            }
        })*

        impl Data {
            pub(crate) fn type_name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => stringify!($variant),)*
                    Self::Other(name) => name,
                }
            }

            fn len(&self) -> usize {
                match self {
                    $(Self::$variant(values) => values.len(),)*
                    Self::Other(_) => 0,
                }
            }
        }
    };
}

cells! { UInt64 u64, UInt32 u32, UInt16 u16, Int64 i64, Float64 f64, Boolean bool, Utf8 String }

impl Column {
    /// A column without empty cells.
    pub(crate) fn new(name: &str, data: Data) -> Self {
        Self {
            name: name.to_owned(),
            data,
            is_there: None,
        }
    }

    /// A column of which only some cells are there.
    pub(crate) fn with_gaps(name: &str, data: Data, is_there: Vec<bool>) -> Self {
        Self {
            is_there: Some(is_there),
            ..Self::new(name, data)
        }
    }

    /// The values, if they have this type.
    pub(crate) fn cells<T: Cell>(&self) -> Result<&[T], ContentError> {
        T::values(&self.data).ok_or_else(|| self.type_error(T::TYPE))
    }

    /// The values of a column without empty cells.
    pub(crate) fn values<T: Cell>(&self) -> Result<&[T], ContentError> {
        let cells = self.cells()?;
        match &self.is_there {
            Some(is_there) if is_there.contains(&false) => Err(ContentError::EmptyCells {
                column: self.name.clone(),
            }),
            _ => Ok(cells),
        }
    }

    /// Returns whether the cell of a row is not empty.
    pub(crate) fn is_there(&self, row: usize) -> bool {
        self.is_there.as_ref().is_none_or(|is_there| is_there[row])
    }

    pub(crate) fn type_error(&self, expected: &'static str) -> ContentError {
        ContentError::ColumnType {
            column: self.name.clone(),
            found: self.data.type_name().to_owned(),
            expected,
        }
    }

    fn schema(&self) -> parquet::errors::Result<Type> {
        let unsigned = |bits| Some(LogicalType::integer(bits, false));
        let (physical, logical) = match &self.data {
            Data::UInt64(_) => (Physical::INT64, unsigned(64)),
            Data::UInt32(_) => (Physical::INT32, unsigned(32)),
            Data::UInt16(_) => (Physical::INT32, unsigned(16)),
            Data::Int64(_) => (Physical::INT64, None),
            Data::Float64(_) => (Physical::DOUBLE, None),
            Data::Boolean(_) => (Physical::BOOLEAN, None),
            Data::Utf8(_) | Data::Other(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = match self.is_there {
            Some(_) => Repetition::OPTIONAL,
            None => Repetition::REQUIRED,
        };
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }

    fn write(&self, writer: &mut ColumnWriter<'_>) -> parquet::errors::Result<()> {
        let there = self.is_there.as_deref();
        let levels: Option<Vec<i16>> =
            there.map(|there| there.iter().copied().map(i16::from).collect());
        let levels = levels.as_deref();
        match (&self.data, writer) {
            (Data::UInt64(cells), ColumnWriter::Int64ColumnWriter(writer)) => writer.write_batch(
                &kept(cells, there, |&cell| cell.cast_signed()),
                levels,
                None,
            )?,
            (Data::UInt32(cells), ColumnWriter::Int32ColumnWriter(writer)) => writer.write_batch(
                &kept(cells, there, |&cell| cell.cast_signed()),
                levels,
                None,
            )?,
            (Data::UInt16(cells), ColumnWriter::Int32ColumnWriter(writer)) => {
                writer.write_batch(&kept(cells, there, |&cell| cell.into()), levels, None)?
            }
            (Data::Int64(cells), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(&kept(cells, there, |&cell| cell), levels, None)?
            }
            (Data::Float64(cells), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(&kept(cells, there, |&cell| cell), levels, None)?
            }
            (Data::Boolean(cells), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(&kept(cells, there, |&cell| cell), levels, None)?
            }
            (Data::Utf8(cells), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let bytes = |cell: &String| ByteArray::from(cell.as_str());
                writer.write_batch(&kept(cells, there, bytes), levels, None)?
            }
            _ => unreachable!("the schema has the types of the columns"),
        };
        Ok(())
    }
}

/// The cells that are there, as the file has them.
fn kept<C, V>(cells: &[C], is_there: Option<&[bool]>, value: impl Fn(&C) -> V) -> Vec<V> {
    let Some(is_there) = is_there else {
        return cells.iter().map(value).collect();
    };
    let there = cells
        .iter()
        .zip(is_there)
        .filter(|(_, is_there)| **is_there);
    there.map(|(cell, _)| value(cell)).collect()
}

/// A Parquet file in the making.
#[derive(Debug)]
pub(crate) struct ColumnsWriter<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> ColumnsWriter<W> {
    /// A file with columns like those of `sample`.
    pub(crate) fn new(
        file: W,
        sample: &[Column],
        metadata: Option<Vec<KeyValue>>,
    ) -> parquet::errors::Result<Self> {
        let fields: Result<_, _> = sample
            .iter()
            .map(|column| column.schema().map(Arc::new))
            .collect();
        let schema = Type::group_type_builder("schema")
            .with_fields(fields?)
            .build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(metadata)
            .set_created_by(concat!("shallows version ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        Ok(Self(writer))
    }

    /// Appends a row group.
    pub(crate) fn write(&mut self, columns: &[Column]) -> parquet::errors::Result<()> {
        let mut group = self.0.next_row_group()?;
        let mut columns = columns.iter();
        while let Some(mut writer) = group.next_column()? {
            let column = columns.next().expect("as many columns as the sample has");
            column.write(writer.untyped())?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> parquet::errors::Result<W> {
        self.0.into_inner()
    }
}

/// A Parquet file.
pub(crate) struct ColumnsReader(SerializedFileReader<File>);

impl ColumnsReader {
    pub(crate) fn open(path: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self(SerializedFileReader::new(open_regular(path)?)?))
    }

    /// A value of the file's metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        let metadata = self.0.metadata().file_metadata().key_value_metadata()?;
        let entry = metadata.iter().find(|entry| entry.key == key)?;
        entry.value.as_deref()
    }

    /// The columns without their rows.
    pub(crate) fn schema(&self) -> Vec<Column> {
        let schema = self.0.metadata().file_metadata().schema_descr();
        let columns = schema.columns().iter();
        columns.map(|column| empty(column)).collect()
    }

    /// The columns of each row group.
    pub(crate) fn groups(
        &self,
    ) -> impl Iterator<Item = Result<Vec<Column>, Box<dyn Error + Send + Sync>>> {
        (0..self.0.num_row_groups()).map(|index| self.group(index))
    }

    fn group(&self, index: usize) -> Result<Vec<Column>, Box<dyn Error + Send + Sync>> {
        let group = self.0.get_row_group(index)?;
        let rows = usize::try_from(group.metadata().num_rows())?;
        let mut columns = self.schema();
        for (index, column) in columns.iter_mut().enumerate() {
            if matches!(column.data, Data::Other(_)) {
                continue;
            }
            read(column, group.get_column_reader(index)?, rows)?;
            if column.data.len() != rows {
                return Err(ContentError::Rows {
                    column: column.name.clone(),
                    found: column.data.len(),
                    expected: rows,
                }
                .into());
            }
        }
        Ok(columns)
    }
}

/// A column without rows.
fn empty(column: &ColumnDescriptor) -> Column {
    let is_plain = column.max_rep_level() == 0 && column.path().parts().len() == 1;
    let logical = column.logical_type_ref();
    let unsigned = |bits| logical == Some(&LogicalType::integer(bits, false));
    let data = match column.physical_type() {
        Physical::INT64 if is_plain && unsigned(64) => Data::UInt64(Vec::new()),
        Physical::INT32 if is_plain && unsigned(32) => Data::UInt32(Vec::new()),
        Physical::INT32 if is_plain && unsigned(16) => Data::UInt16(Vec::new()),
        Physical::INT64 if is_plain && logical.is_none() => Data::Int64(Vec::new()),
        Physical::DOUBLE if is_plain => Data::Float64(Vec::new()),
        Physical::BOOLEAN if is_plain => Data::Boolean(Vec::new()),
        Physical::BYTE_ARRAY if is_plain && logical == Some(&LogicalType::String) => {
            Data::Utf8(Vec::new())
        }
        physical => Data::Other(match logical {
            Some(logical) => format!("{logical:?}"),
            None => physical.to_string(),
        }),
    };
    Column {
        name: column.path().string(),
        data,
        is_there: (column.max_def_level() > 0).then(Vec::new),
    }
}

/// Fills a column with its rows.
fn read(
    column: &mut Column,
    reader: ColumnReader,
    rows: usize,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let there = &mut column.is_there;
    match (&mut column.data, reader) {
        (Data::UInt64(cells), ColumnReader::Int64ColumnReader(reader)) => {
            *cells = spread(reader, rows, there, |value| Ok(value as u64))?;
        }
        (Data::UInt32(cells), ColumnReader::Int32ColumnReader(reader)) => {
            *cells = spread(reader, rows, there, |value| Ok(value as u32))?;
        }
        (Data::UInt16(cells), ColumnReader::Int32ColumnReader(reader)) => {
            *cells = spread(reader, rows, there, |value| Ok(u16::try_from(value)?))?;
        }
        (Data::Int64(cells), ColumnReader::Int64ColumnReader(reader)) => {
            *cells = spread(reader, rows, there, Ok)?;
        }
        (Data::Float64(cells), ColumnReader::DoubleColumnReader(reader)) => {
            *cells = spread(reader, rows, there, Ok)?;
        }
        (Data::Boolean(cells), ColumnReader::BoolColumnReader(reader)) => {
            *cells = spread(reader, rows, there, Ok)?;
        }
        (Data::Utf8(cells), ColumnReader::ByteArrayColumnReader(reader)) => {
            let text = |value: ByteArray| Ok(value.as_utf8()?.to_owned());
            *cells = spread(reader, rows, there, text)?;
        }
        _ => unreachable!("the reader has the type of the schema"),
    }
    Ok(())
}

/// All rows of a column, with a default where a cell is empty.
fn spread<T: DataType, C: Default>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    is_there: &mut Option<Vec<bool>>,
    cell: impl Fn(T::T) -> Result<C, Box<dyn Error + Send + Sync>>,
) -> Result<Vec<C>, Box<dyn Error + Send + Sync>> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    let Some(is_there) = is_there else {
        return values.into_iter().map(cell).collect();
    };
    *is_there = levels.iter().map(|&level| level > 0).collect();
    let mut values = values.into_iter();
    let mut next = |is_there: &bool| {
        let value = is_there.then(|| values.next()).flatten();
        value.map_or_else(|| Ok(C::default()), &cell)
    };
    is_there.iter().map(&mut next).collect()
}

#[cfg(feature = "arrow")]
mod arrow {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt16Array,
        UInt32Array, UInt64Array,
    };
    use arrow_schema::ArrowError;

    use super::{Column, Data};

    /// Columns as Arrow has them. Numbers are not copied.
    pub(crate) fn record_batch(columns: Vec<Column>) -> Result<RecordBatch, ArrowError> {
        let named = columns.into_iter().map(|column| {
            let is_nullable = column.is_there.is_some();
            (column.name.clone(), column.array(), is_nullable)
        });
        RecordBatch::try_from_iter_with_nullable(named)
    }

    impl Column {
        fn array(self) -> ArrayRef {
            let nulls = self.is_there.map(Into::into);
            match self.data {
                Data::UInt64(cells) => Arc::new(UInt64Array::new(cells.into(), nulls)),
                Data::UInt32(cells) => Arc::new(UInt32Array::new(cells.into(), nulls)),
                Data::UInt16(cells) => Arc::new(UInt16Array::new(cells.into(), nulls)),
                Data::Int64(cells) => Arc::new(Int64Array::new(cells.into(), nulls)),
                Data::Float64(cells) => Arc::new(Float64Array::new(cells.into(), nulls)),
                Data::Boolean(cells) => Arc::new(BooleanArray::new(cells.into(), nulls)),
                Data::Utf8(cells) => Arc::new(StringArray::from(cells)),
                Data::Other(name) => unreachable!("{name} is not of a table of ours"),
            }
        }
    }
}

#[cfg(feature = "arrow")]
pub(crate) use arrow::record_batch;
