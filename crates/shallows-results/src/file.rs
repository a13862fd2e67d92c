//! Files that appear when they are complete.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
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
    /// Refuses a name that has something else than a regular file: a device or a link would be
    /// replaced by the new file.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
            let problem = "it is there and not a regular file; choose another name";
            return Err(io::Error::other(problem));
        }
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
            .map_err(io::IntoInnerError::into_error)?;
        // The error would keep the temporary file for as long as it lives.
        file.persist(&self.path).map_err(|refused| refused.error)?;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
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

/// Opens a file of results. A device may have no end and a pipe no writer, so only a regular file is
/// opened.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// The text of a file of results, which is a regular one.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.read_to_string(&mut text)?;
    Ok(text)
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

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use super::*;

    #[test]
    fn only_regular_files_are_replaced_or_read() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        write_text(&place("file"), "old").unwrap();
        symlink(place("file"), place("link")).unwrap();
        let pipe = place("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for name in ["link", "pipe"] {
            let error = write_text(&place(name), "new").unwrap_err();
            let reason = error.source().unwrap().to_string();
            assert!(reason.contains("not a regular file"), "{name}: {reason}");
        }
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert!(place("link").is_symlink());
        // Nobody writes to the pipe: opening it would not end.
        assert!(read_text(&pipe).is_err());
        assert!(read_text(Path::new("/dev/zero")).is_err());
        write_text(&place("file"), "new").unwrap();
        assert_eq!(read_text(&place("link")).unwrap(), "new");
    }
}
