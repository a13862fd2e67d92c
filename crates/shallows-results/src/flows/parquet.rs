use std::error::Error;
use std::path::Path;

use parquet::file::metadata::KeyValue;
use shallows_core::units::Time;

use super::{FlowTable, PARTIAL_KEY};
use crate::columns::{Column, ColumnsReader, ColumnsWriter, Data, GROUP_ROWS};
use crate::decimal::Decimal;
use crate::error::ContentError;
use crate::file::NewFile;
use crate::record::{COLUMNS, Completeness, FlowRecord, OPTIONAL_COLUMNS};

pub(super) fn write(
    file: &mut NewFile,
    mut records: impl Iterator<Item = FlowRecord>,
    completeness: Completeness,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let partial = bool::from(completeness).to_string();
    let metadata = vec![KeyValue::new(PARTIAL_KEY.to_owned(), partial)];
    let mut writer = ColumnsWriter::new(file, &columns(&[]), Some(metadata))?;
    let mut rows = Vec::new();
    loop {
        rows.clear();
        rows.extend(records.by_ref().take(GROUP_ROWS));
        if rows.is_empty() {
            break;
        }
        writer.write(&columns(&rows))?;
    }
    writer.finish()?;
    Ok(())
}

/// Rows that become columns at once: few enough that they are in the cache for every column.
const BLOCK: usize = 512;

/// Rows as columns, in the order of [`COLUMNS`].
pub(super) fn columns(rows: &[FlowRecord]) -> Vec<Column> {
    let mut columns = Columns::default();
    columns.reserve(rows.len());
    for block in rows.chunks(BLOCK) {
        columns.extend(block);
    }
    columns.into_columns()
}

/// Columns that grow.
#[derive(Default)]
struct Columns {
    id: Vec<u64>,
    start: Vec<f64>,
    src: Vec<u32>,
    dst: Vec<u32>,
    bytes: Vec<u64>,
    service: Vec<u16>,
    fct: Vec<f64>,
    ideal_fct: Vec<f64>,
    retransmits: Vec<u32>,
    timeouts: Vec<u32>,
    marks: Vec<u32>,
    finished: Vec<bool>,
    sent: Counts,
    dropped: Counts,
}

/// A column of counts that rows may lack.
#[derive(Default)]
struct Counts {
    values: Vec<u32>,
    is_known: Vec<bool>,
}

impl Columns {
    fn reserve(&mut self, rows: usize) {
        self.id.reserve_exact(rows);
        self.start.reserve_exact(rows);
        self.src.reserve_exact(rows);
        self.dst.reserve_exact(rows);
        self.bytes.reserve_exact(rows);
        self.service.reserve_exact(rows);
        self.fct.reserve_exact(rows);
        self.ideal_fct.reserve_exact(rows);
        self.retransmits.reserve_exact(rows);
        self.timeouts.reserve_exact(rows);
        self.marks.reserve_exact(rows);
        self.finished.reserve_exact(rows);
        for counts in [&mut self.sent, &mut self.dropped] {
            counts.values.reserve_exact(rows);
            counts.is_known.reserve_exact(rows);
        }
    }

    fn extend(&mut self, rows: &[FlowRecord]) {
        self.id.extend(rows.iter().map(|row| row.id));
        extend_times::<12>(&mut self.start, rows, |row| row.start);
        self.src.extend(rows.iter().map(|row| row.src));
        self.dst.extend(rows.iter().map(|row| row.dst));
        self.bytes.extend(rows.iter().map(|row| row.bytes));
        self.service.extend(rows.iter().map(|row| row.service));
        // Where there is none, the value below the null.
        let fct = |row: &FlowRecord| row.fct.unwrap_or(Time::ZERO);
        extend_times::<6>(&mut self.fct, rows, fct);
        extend_times::<6>(&mut self.ideal_fct, rows, |row| row.ideal_fct);
        self.retransmits
            .extend(rows.iter().map(|row| row.retransmits));
        self.timeouts.extend(rows.iter().map(|row| row.timeouts));
        self.marks.extend(rows.iter().map(|row| row.marks));
        self.finished
            .extend(rows.iter().map(|row| row.fct.is_some()));
        self.sent.extend(rows, |row| row.sent);
        self.dropped.extend(rows, |row| row.dropped);
    }

    fn into_columns(self) -> Vec<Column> {
        let data = [
            (Data::UInt64(self.id), None),
            (Data::Float64(self.start), None),
            (Data::UInt32(self.src), None),
            (Data::UInt32(self.dst), None),
            (Data::UInt64(self.bytes), None),
            (Data::UInt16(self.service), None),
            (Data::Float64(self.fct), Some(self.finished.clone())),
            (Data::Float64(self.ideal_fct), None),
            (Data::UInt32(self.retransmits), None),
            (Data::UInt32(self.timeouts), None),
            (Data::UInt32(self.marks), None),
            (Data::Boolean(self.finished), None),
            (Data::UInt32(self.sent.values), Some(self.sent.is_known)),
            (
                Data::UInt32(self.dropped.values),
                Some(self.dropped.is_known),
            ),
        ];
        let named = COLUMNS.into_iter().zip(data);
        let columns = named.map(|(name, (data, is_there))| Column {
            name: name.to_owned(),
            data,
            is_there,
        });
        columns.collect()
    }
}

impl Counts {
    fn extend(&mut self, rows: &[FlowRecord], count: impl Fn(&FlowRecord) -> Option<u32>) {
        let values = rows.iter().map(|row| count(row).unwrap_or(0));
        self.values.extend(values);
        let is_known = rows.iter().map(|row| count(row).is_some());
        self.is_known.extend(is_known);
    }
}

fn extend_times<const DIGITS: u32>(
    column: &mut Vec<f64>,
    rows: &[FlowRecord],
    time: impl Fn(&FlowRecord) -> Time,
) {
    let doubles = rows.iter().map(|row| Decimal::<DIGITS>(time(row)).to_f64());
    column.extend(doubles);
}

pub(super) fn read(path: &Path) -> Result<FlowTable, Box<dyn Error + Send + Sync>> {
    let reader = ColumnsReader::open(path)?;
    let partial = reader.metadata(PARTIAL_KEY);
    let partial = partial.and_then(|value| value.parse::<bool>().ok());
    let mut records = Vec::new();
    for columns in reader.groups() {
        read_columns(&columns?, &mut records)?;
    }
    Ok(FlowTable {
        records,
        completeness: partial.map(Completeness::from),
    })
}

fn read_columns(columns: &[Column], records: &mut Vec<FlowRecord>) -> Result<(), ContentError> {
    let found = |name: &str| columns.iter().find(|column| column.name == name);
    let column = |name: &str| {
        found(name).ok_or_else(|| ContentError::MissingColumn {
            column: name.to_owned(),
        })
    };
    let id: &[u64] = column("id")?.values()?;
    let start_s: &[f64] = column("start_s")?.values()?;
    let src: &[u32] = column("src")?.values()?;
    let dst: &[u32] = column("dst")?.values()?;
    let bytes: &[u64] = column("bytes")?.values()?;
    let service: &[u16] = column("service")?.values()?;
    let fct = column("fct_us")?;
    let fct_us: &[f64] = fct.cells()?;
    let ideal_fct_us: &[f64] = column("ideal_fct_us")?.values()?;
    let retransmits: &[u32] = column("retransmits")?.values()?;
    let timeouts: &[u32] = column("timeouts")?.values()?;
    let marks: &[u32] = column("marks")?.values()?;
    let finished: &[bool] = column("finished")?.values()?;
    let optional = |name| {
        let column = found(name);
        move |row: usize| {
            let column = column.filter(|column| column.is_there(row))?;
            column.cells::<u32>().ok().map(|cells| cells[row])
        }
    };
    let [sent, dropped] = OPTIONAL_COLUMNS.map(optional);
    for row in 0..id.len() {
        let finished = finished[row];
        if finished != fct.is_there(row) {
            let id = id[row];
            return Err(ContentError::Finished { id, finished });
        }
        let fct = finished.then(|| Decimal::<6>::read("fct_us", fct_us[row]));
        records.push(FlowRecord {
            id: id[row],
            start: Decimal::<12>::read("start_s", start_s[row])?,
            src: src[row],
            dst: dst[row],
            bytes: bytes[row],
            service: service[row],
            fct: fct.transpose()?,
            ideal_fct: Decimal::<6>::read("ideal_fct_us", ideal_fct_us[row])?,
            retransmits: retransmits[row],
            timeouts: timeouts[row],
            marks: marks[row],
            sent: sent(row),
            dropped: dropped(row),
        });
    }
    Ok(())
}
