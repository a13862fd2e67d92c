use std::error::Error;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::FlowTable;
use crate::decimal::Decimal;
use crate::error::ContentError;
use crate::file::{NewFile, open_regular};
use crate::record::{COLUMNS, FlowRecord, OPTIONAL_COLUMNS};

pub(super) fn write(
    file: &mut NewFile,
    records: impl Iterator<Item = FlowRecord>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(file);
    writer.write_record(COLUMNS)?;
    for record in records {
        writer.serialize(Row::from(record))?;
    }
    writer.flush()?;
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<FlowTable, Box<dyn Error + Send + Sync>> {
    let mut reader = csv::Reader::from_reader(open_regular(path)?);
    let headers = reader.headers()?;
    for column in COLUMNS {
        let may_lack = OPTIONAL_COLUMNS.contains(&column);
        if !may_lack && !headers.iter().any(|header| header == column) {
            let column = column.to_owned();
            return Err(ContentError::MissingColumn { column }.into());
        }
    }
    let mut records = Vec::new();
    for row in reader.deserialize::<Row>() {
        records.push(FlowRecord::try_from(row?)?);
    }
    Ok(FlowTable {
        records,
        completeness: None,
    })
}

/// A row as it stands in the file, in the order of the columns.
#[derive(Serialize, Deserialize)]
struct Row {
    id: u64,
    start_s: Decimal<12>,
    src: u32,
    dst: u32,
    bytes: u64,
    service: u16,
    fct_us: Option<Decimal<6>>,
    ideal_fct_us: Decimal<6>,
    retransmits: u32,
    timeouts: u32,
    marks: u32,
    finished: bool,
    #[serde(default)]
    sent: Option<u32>,
    #[serde(default)]
    dropped: Option<u32>,
}

impl From<FlowRecord> for Row {
    fn from(record: FlowRecord) -> Self {
        Self {
            id: record.id,
            start_s: Decimal(record.start),
            src: record.src,
            dst: record.dst,
            bytes: record.bytes,
            service: record.service,
            fct_us: record.fct.map(Decimal),
            ideal_fct_us: Decimal(record.ideal_fct),
            retransmits: record.retransmits,
            timeouts: record.timeouts,
            marks: record.marks,
            finished: record.fct.is_some(),
            sent: record.sent,
            dropped: record.dropped,
        }
    }
}

impl TryFrom<Row> for FlowRecord {
    type Error = ContentError;

    fn try_from(row: Row) -> Result<Self, ContentError> {
        if row.finished != row.fct_us.is_some() {
            let (id, finished) = (row.id, row.finished);
            return Err(ContentError::Finished { id, finished });
        }
        Ok(Self {
            id: row.id,
            start: row.start_s.0,
            src: row.src,
            dst: row.dst,
            bytes: row.bytes,
            service: row.service,
            fct: row.fct_us.map(|fct| fct.0),
            ideal_fct: row.ideal_fct_us.0,
            retransmits: row.retransmits,
            timeouts: row.timeouts,
            marks: row.marks,
            sent: row.sent,
            dropped: row.dropped,
        })
    }
}
