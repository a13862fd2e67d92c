//! Flow records as `flows.parquet` or `flows.csv`.
//!
//! Both have the same [`COLUMNS`](crate::record::COLUMNS). CSV has times as decimal text with every
//! picosecond. Parquet has them as doubles, because that is what every reader computes with:
//! each is the double nearest to the decimal text, and it leads back to the same picosecond as long
//! as the time is below 2^51 ps (37 minutes). Longer ones are rounded.
//!
//! Parquet also says whether the run was interrupted, in its metadata under [`PARTIAL_KEY`]. CSV
//! has no place for that which would not disturb its readers.

mod csv;
mod parquet;

use std::borrow::Borrow;
use std::path::Path;

use crate::file::{read_named, write_whole};
use crate::record::{Completeness, FlowRecord};
use crate::{Format, ResultsError};

/// The key of the Parquet metadata that is `true` for an interrupted run and `false` for others.
pub const PARTIAL_KEY: &str = "shallows.partial";

/// Flow records as read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowTable {
    /// The flows in the order of the file.
    pub records: Vec<FlowRecord>,
    /// Completeness of the run; `None` where the file does not say.
    pub completeness: Option<Completeness>,
}

/// Writes a table of flows in the format that the name tells, as a whole or not at all. It keeps no
/// more than a row group of them in memory.
pub fn write_flows(
    path: &Path,
    records: impl IntoIterator<Item = impl Borrow<FlowRecord>>,
    completeness: Completeness,
) -> Result<(), ResultsError> {
    let format = Format::of(path)?;
    let records = records.into_iter().map(|record| *record.borrow());
    write_whole(path, |file| match format {
        Format::Parquet => parquet::write(file, records, completeness),
        Format::Csv => csv::write(file, records),
    })
}

/// Flow records as columns in memory, those of `flows.parquet`.
#[cfg(feature = "arrow")]
pub fn record_batch(
    records: &[FlowRecord],
) -> Result<arrow_array::RecordBatch, Box<dyn std::error::Error + Send + Sync>> {
    Ok(crate::columns::record_batch(parquet::columns(records))?)
}

/// Reads a table of flows in the format that the name tells. Columns are found by name; others
/// than ours are ignored.
pub fn read_flows(path: &Path) -> Result<FlowTable, ResultsError> {
    let format = Format::of(path)?;
    read_named(path, || match format {
        Format::Parquet => parquet::read(path),
        Format::Csv => csv::read(path),
    })
}
