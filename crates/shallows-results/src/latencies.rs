//! Latencies of applications' operations: `latencies`, and `operations.csv` with the names behind
//! its numbers.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use shallows_core::units::Time;

use crate::file::{open_regular, read_named, write_whole};
use crate::probes::{Sample, SampleWriter};
use crate::series::{Kind, Series, Value};
use crate::statistics::{PercentileRule, Statistics};
use crate::{ResultsError, decimal};

/// The name of the file of operations.
pub const FILE: &str = "operations.csv";

/// An operation that an application repeats.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Operation {
    /// The application.
    pub application: String,
    /// Name of the operation, such as `get`.
    pub name: String,
}

/// An operation that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency {
    /// The operation.
    pub operation: Operation,
    /// Start time.
    pub start: Time,
    /// The host that saw it.
    pub host: u32,
    /// Latency of the operation.
    pub latency: Time,
}

/// Statistics of the latencies of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// The operation.
    #[serde(flatten)]
    pub operation: Operation,
    /// Number of operations.
    pub count: u64,
    /// Statistics of its latency.
    #[serde(rename = "latency_us", with = "decimal::optional_statistics")]
    pub latency: Option<Statistics<Time>>,
}

/// A row of the table; the operation is by its position in `operations.csv`.
struct Row {
    start: Time,
    operation: u32,
    host: u32,
    latency: Time,
}

impl Sample for Row {
    const FILE: &'static str = "latencies";
    const COLUMNS: &'static [(&'static str, Kind)] = &[
        ("time_us", Kind::Time),
        ("operation", Kind::Integer),
        ("host", Kind::Integer),
        ("latency_us", Kind::Time),
    ];
    type Row = [Value; 4];

    fn row(&self) -> Self::Row {
        [
            self.start.into(),
            self.operation.into(),
            self.host.into(),
            self.latency.into(),
        ]
    }
}

/// The latencies of a run in the order in which they came: its operations, in order of their names,
/// what each comes to, and the table.
pub fn collect(
    latencies: &[Latency],
    rule: PercentileRule,
) -> Result<(Vec<LatencySummary>, Option<Series>), ResultsError> {
    let mut times: BTreeMap<&Operation, Vec<Time>> = BTreeMap::new();
    for of in latencies {
        times.entry(&of.operation).or_default().push(of.latency);
    }
    let numbers: BTreeMap<&Operation, u32> = times.keys().copied().zip(0..).collect();
    let mut table = SampleWriter::in_memory();
    for of in latencies {
        table.write(&Row {
            start: of.start,
            operation: numbers[&of.operation],
            host: of.host,
            latency: of.latency,
        })?;
    }
    let summaries = times.into_iter().map(|(operation, times)| LatencySummary {
        operation: operation.clone(),
        count: times.len() as u64,
        latency: Statistics::of_times(times, rule),
    });
    Ok((summaries.collect(), table.finish()?))
}

/// The name of the table, without extension.
pub const TABLE: &str = Row::FILE;

pub(crate) fn write_operations(
    directory: &Path,
    operations: &[Operation],
) -> Result<(), ResultsError> {
    write_whole(&directory.join(FILE), |file| {
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record(["operation", "application", "name"])?;
        for (number, of) in operations.iter().enumerate() {
            writer.write_record([&number.to_string(), &of.application, &of.name])?;
        }
        writer.flush()?;
        Ok(())
    })
}

pub(crate) fn read_operations(directory: &Path) -> Result<Vec<Operation>, ResultsError> {
    let path = directory.join(FILE);
    read_named(&path, || {
        let mut reader = csv::Reader::from_reader(open_regular(&path)?);
        let rows = reader.deserialize::<Operation>();
        Ok(rows.collect::<Result<Vec<_>, _>>()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_numbered_by_name_and_summarized() {
        let latency = |name: &str, us| Latency {
            operation: Operation {
                application: "cache".to_owned(),
                name: name.to_owned(),
            },
            start: Time::from_us(us),
            host: 3,
            latency: Time::from_us(us),
        };
        let all = [latency("set", 5), latency("get", 1), latency("get", 3)];
        let (summaries, table) = collect(&all, PercentileRule::NearestRank).unwrap();
        let shown: Vec<_> = summaries
            .iter()
            .map(|of| {
                (
                    of.operation.name.as_str(),
                    of.count,
                    of.latency.unwrap().mean,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [("get", 2, Time::from_us(2)), ("set", 1, Time::from_us(5))]
        );
        let table = table.unwrap();
        let operations = table.column("operation").unwrap();
        assert_eq!(*operations, crate::series::Values::Integers(vec![1, 0, 0]));
    }
}
