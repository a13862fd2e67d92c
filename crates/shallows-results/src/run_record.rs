//! Everything that a run left, in memory or as a directory, the same for both worlds.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::file::read_named;
use crate::flows::{read_flows, write_flows};
use crate::latencies::{self, Operation, read_operations, write_operations};
use crate::ports::{self, PortRecord, read_ports, write_ports};
use crate::record::FlowRecord;
use crate::series::Series;
use crate::summary::Summary;
use crate::{Format, ResultsError};

/// The table of flows, without extension.
const FLOWS: &str = "flows";
/// The summary. Written last: a directory without it holds no complete record.
const SUMMARY: &str = "summary.json";

/// The record of a run: its flows, what they come to, and the tables of its probes.
///
/// [`RunRecord::open`] reads what either world wrote. The tables of probes can be long, so they are
/// read when they are [asked for](Self::table).
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The flows that started, in the order of their numbers.
    pub flows: Vec<FlowRecord>,
    /// Summary of flows and ports; `None` for a run without flows.
    pub summary: Option<Summary>,
    /// The ports, in the order of their numbers; empty if no table needs them.
    pub ports: Vec<PortRecord>,
    /// Operations by their numbers in the table `latencies`.
    pub operations: Vec<Operation>,
    /// Tables in memory, by the names of their files without extension.
    tables: BTreeMap<String, Series>,
    /// Directory of the other tables.
    directory: Option<PathBuf>,
}

impl RunRecord {
    /// A record in memory, without tables.
    pub fn new(flows: Vec<FlowRecord>, summary: Option<Summary>) -> Self {
        Self {
            flows,
            summary,
            ports: Vec::new(),
            operations: Vec::new(),
            tables: BTreeMap::new(),
            directory: None,
        }
    }

    /// Adds a table under the name of its file without extension, such as `queues`.
    pub fn insert(&mut self, name: &str, table: Series) {
        self.tables.insert(name.to_owned(), table);
    }

    /// The table of a probe, such as `queues`, if the run has it.
    pub fn table(&self, name: &str) -> Result<Option<Series>, ResultsError> {
        if let Some(table) = self.tables.get(name) {
            return Ok(Some(table.clone()));
        }
        let directory = self.directory.as_deref();
        match directory.and_then(|directory| existing(directory, name)) {
            Some(path) => Series::read(&path).map(Some),
            None => Ok(None),
        }
    }

    /// Writes the record into a directory, such as one that is [in the
    /// making](crate::directory::ResultDirectory). Tables that were streamed there are kept.
    pub fn write(&self, directory: &Path, format: Format) -> Result<(), ResultsError> {
        self.write_with(directory, format, &self.flows)
    }

    /// As [`write`](Self::write), with flows that are not in memory in place of
    /// [`flows`](Self::flows), in the order of their numbers.
    pub fn write_with(
        &self,
        directory: &Path,
        format: Format,
        flows: impl IntoIterator<Item = impl Borrow<FlowRecord>>,
    ) -> Result<(), ResultsError> {
        let named = |name: &str| directory.join(name).with_extension(format.extension());
        for (name, table) in &self.tables {
            table.write(&named(name))?;
        }
        if !self.ports.is_empty() {
            write_ports(directory, &self.ports)?;
        }
        if !self.operations.is_empty() {
            write_operations(directory, &self.operations)?;
        }
        let Some(summary) = &self.summary else {
            return Ok(());
        };
        write_flows(&named(FLOWS), flows, summary.completeness)?;
        summary.write_json(&directory.join(SUMMARY))
    }

    /// Opens the record that a run left in a directory.
    pub fn open(directory: &Path) -> Result<Self, ResultsError> {
        let (mut flows, mut summary) = (Vec::new(), None);
        if let Some(path) = existing(directory, FLOWS) {
            flows = read_flows(&path)?.records;
            summary = Some(Summary::read_json(&directory.join(SUMMARY))?);
        } else {
            // Says that there is no such directory, if there is none.
            read_named(directory, || Ok(fs::read_dir(directory)?))?;
        }
        let ports = if directory.join(ports::FILE).is_file() {
            read_ports(directory)?
        } else {
            Vec::new()
        };
        let operations = if directory.join(latencies::FILE).is_file() {
            read_operations(directory)?
        } else {
            Vec::new()
        };
        Ok(Self {
            flows,
            summary,
            ports,
            operations,
            tables: BTreeMap::new(),
            directory: Some(directory.to_owned()),
        })
    }

    /// The record with tables that were streamed into `directory` already.
    #[must_use]
    pub fn with_tables_in(self, directory: &Path) -> Self {
        Self {
            directory: Some(directory.to_owned()),
            ..self
        }
    }
}

/// A table's file, in either format.
fn existing(directory: &Path, name: &str) -> Option<PathBuf> {
    let formats = [Format::Parquet, Format::Csv];
    let paths = formats.map(|format| directory.join(name).with_extension(format.extension()));
    paths.into_iter().find(|path| path.is_file())
}
