use std::error::Error;
use std::path::PathBuf;

use shallows_core::units::Bytes;
use thiserror::Error;

/// The reason why results could not be summarized, written or read.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// A run without flows says nothing; a script must not take it for a good one.
    #[error("the result is empty: the run has no flows; check the workload and its start times")]
    EmptyResult,
    /// The bound of the small class is not below that of the medium one.
    #[error(
        "size classes must grow: small_max is {small_max} and medium_max {medium_max}; \
         write for example small_max = \"100KB\" and medium_max = \"10MB\""
    )]
    SizeClasses {
        /// The largest small flow as given.
        small_max: Bytes,
        /// The largest medium flow as given.
        medium_max: Bytes,
    },
    /// The name of a file does not tell its format.
    #[error("cannot tell the format of {}: name it .parquet or .csv", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be written; nothing is left under its name but what was there before.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// A problem with the content of a table; reported as the source of a [`ResultsError`].
#[derive(Debug, Error, PartialEq)]
pub(crate) enum ContentError {
    #[error("column {column} is missing")]
    MissingColumn { column: String },
    #[error("column {column} has type {found}; expected {expected}")]
    ColumnType {
        column: String,
        found: String,
        expected: &'static str,
    },
    #[error("column {column} has {found} rows of {expected}")]
    Rows {
        column: String,
        found: usize,
        expected: usize,
    },
    #[error("column {column} has empty cells")]
    EmptyCells { column: String },
    #[error("column {column} has a value that is not a time: {value}")]
    NotATime { column: String, value: f64 },
    #[error("flow {id} says finished = {finished}, but its fct_us says the opposite")]
    Finished { id: u64, finished: bool },
}
