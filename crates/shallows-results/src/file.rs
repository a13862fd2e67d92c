//! Files that appear when they are complete.

use std::error::Error;
use std::ffi::OsStr;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::ResultsError;

/// File format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Columns, compressed; for pandas, Polars, DuckDB.
    Parquet,
    /// Text; for everything else.
    Csv,
}

impl Format {
    /// Extension of such files, without the dot.
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
        // The error would keep the temporary file for as long as it lives.
        file.persist(&self.path).map_err(|refused| refused.error)?;
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
