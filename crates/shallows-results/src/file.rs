//! Files that appear when they are complete, and the Parquet settings that all of them share.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use tempfile::NamedTempFile;

use crate::ResultsError;
use crate::error::ContentError;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Columns, compressed; for pandas, Polars, DuckDB.
    Parquet,
    /// Text; for everything else.
    Csv,
}

impl Format {
    /// How names of such files end, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }

    /// The format that a file's name tells.
    pub fn of(path: &Path) -> Result<Self, ResultsError> {
        match path.extension().and_then(OsStr::to_str) {
            Some("parquet") => Ok(Self::Parquet),
            Some("csv") => Ok(Self::Csv),
            _ => Err(ResultsError::UnknownFormat {
                path: path.to_owned(),
            }),
        }
    }
}

/// Writes a text file as a whole or not at all: it gets its name when it is complete.
pub fn write_text(path: &Path, text: &str) -> Result<(), ResultsError> {
    write_bytes(path, text.as_bytes())
}

/// Writes a file as a whole or not at all.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    write_whole(path, |file| Ok(file.write_all(bytes)?))
}

/// Lets `fill` write a file, then gives it its name. Whatever ends this early leaves `path` as it
/// was.
pub(crate) fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut NewFile) -> Result<(), Box<dyn Error + Send + Sync>>,
) -> Result<(), ResultsError> {
    write_named(path, || {
        let mut file = NewFile::create(path)?;
        fill(&mut file)?;
        file.finish()
    })
}

/// Runs `write` and puts the file's name to its error.
pub(crate) fn write_named<T>(
    path: &Path,
    write: impl FnOnce() -> Result<T, Box<dyn Error + Send + Sync>>,
) -> Result<T, ResultsError> {
    write().map_err(|source| ResultsError::Write {
        path: path.to_owned(),
        source,
    })
}

/// A file under a temporary name beside the one that it gets when it is finished. One that is not
/// leaves no trace.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl NewFile {
    pub(crate) fn create(path: &Path) -> std::io::Result<Self> {
        Ok(Self {
            file: BufWriter::new(temporary_beside(path)?),
            path: path.to_owned(),
        })
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let file = self
            .file
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn temporary_beside(path: &Path) -> std::io::Result<NamedTempFile> {
    // Without a directory the parent is the empty path, which cannot be opened.
    let parent = path.parent().filter(|parent| parent != &Path::new(""));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    // The library's own choice is a file for its owner only; the umask narrows this one.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(parent.unwrap_or(Path::new(".")))
}

/// Runs `read` and puts the file's name to its error.
pub(crate) fn read_named<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, Box<dyn Error + Send + Sync>>,
) -> Result<T, ResultsError> {
    read().map_err(|source| ResultsError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Rows that are turned into columns at a time.
pub(crate) const BATCH_ROWS: usize = 1 << 16;
const ROW_GROUP_ROWS: usize = 1 << 17;

/// A Parquet writer into `file` for batches like `sample`.
pub(crate) fn parquet_writer<W: Write + Send>(
    file: W,
    sample: &RecordBatch,
    metadata: Option<Vec<KeyValue>>,
) -> parquet::errors::Result<ArrowWriter<W>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_key_value_metadata(metadata)
        .set_created_by(concat!("shallows version ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    // Parquet's own types say it all, so the copy of the Arrow schema is left out.
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    ArrowWriter::try_new_with_options(file, Arc::clone(sample.schema_ref()), options)
}

/// A Parquet file's metadata and batches.
pub(crate) fn parquet_reader(
    path: &Path,
) -> Result<(Vec<KeyValue>, ParquetRecordBatchReader), Box<dyn Error + Send + Sync>> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let metadata = metadata.cloned().unwrap_or_default();
    Ok((metadata, builder.with_batch_size(BATCH_ROWS).build()?))
}

/// A column of a batch by name, as the type that it must have.
pub(crate) fn column<'b, A: Array + 'static>(
    batch: &'b RecordBatch,
    name: &str,
    expected: &'static str,
) -> Result<&'b A, ContentError> {
    let array = batch
        .column_by_name(name)
        .ok_or_else(|| ContentError::MissingColumn {
            column: name.to_owned(),
        })?;
    array
        .as_any()
        .downcast_ref()
        .ok_or_else(|| ContentError::ColumnType {
            column: name.to_owned(),
            found: array.data_type().to_string(),
            expected,
        })
}

/// The values of a column without empty cells.
pub(crate) fn values<'b, T: ArrowPrimitiveType>(
    batch: &'b RecordBatch,
    name: &str,
    expected: &'static str,
) -> Result<&'b [T::Native], ContentError> {
    let array: &PrimitiveArray<T> = column(batch, name, expected)?;
    if array.null_count() > 0 {
        return Err(ContentError::EmptyCells {
            column: name.to_owned(),
        });
    }
    Ok(array.values())
}
