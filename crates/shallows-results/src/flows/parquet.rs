use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, UInt16Array, UInt32Array, UInt64Array,
};
use parquet::file::metadata::KeyValue;
use shallows_core::units::Time;

use super::{FlowTable, PARTIAL_KEY};
use crate::decimal::Decimal;
use crate::error::ContentError;
use crate::file::{BATCH_ROWS, NewFile, column, parquet_reader, parquet_writer, values};
use crate::record::{COLUMNS, Completeness, FlowRecord, OPTIONAL_COLUMNS};

pub(super) fn write(
    file: &mut NewFile,
    mut records: impl Iterator<Item = FlowRecord>,
    completeness: Completeness,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let partial = bool::from(completeness).to_string();
    let metadata = vec![KeyValue::new(PARTIAL_KEY.to_owned(), partial)];
    let mut writer = parquet_writer(file, &batch(&[])?, Some(metadata))?;
    let mut rows = Vec::new();
    loop {
        rows.clear();
        rows.extend(records.by_ref().take(BATCH_ROWS));
        if rows.is_empty() {
            break;
        }
        writer.write(&batch(&rows)?)?;
    }
    writer.close()?;
    Ok(())
}

/// Rows that become columns at once: few enough that they are in the cache for every column.
const BLOCK: usize = 512;

/// Rows as columns, in the order of [`COLUMNS`].
pub(super) fn batch(rows: &[FlowRecord]) -> Result<RecordBatch, Box<dyn Error + Send + Sync>> {
    let mut columns = Columns::default();
    columns.reserve(rows.len());
    for block in rows.chunks(BLOCK) {
        columns.extend(block)?;
    }
    let arrays = COLUMNS.into_iter().zip(columns.into_arrays());
    let named = arrays.map(|(name, array)| {
        let may_be_null = name == "fct_us" || OPTIONAL_COLUMNS.contains(&name);
        (name, array, may_be_null)
    });
    Ok(RecordBatch::try_from_iter_with_nullable(named)?)
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

    fn extend(&mut self, rows: &[FlowRecord]) -> Result<(), ContentError> {
        self.id.extend(rows.iter().map(|row| row.id));
        extend_times::<12>(&mut self.start, COLUMNS[1], rows, |row| row.start)?;
        self.src.extend(rows.iter().map(|row| row.src));
        self.dst.extend(rows.iter().map(|row| row.dst));
        self.bytes.extend(rows.iter().map(|row| row.bytes));
        self.service.extend(rows.iter().map(|row| row.service));
        // Where there is none, the value below the null.
        let fct = |row: &FlowRecord| row.fct.unwrap_or(Time::ZERO);
        extend_times::<6>(&mut self.fct, COLUMNS[6], rows, fct)?;
        extend_times::<6>(&mut self.ideal_fct, COLUMNS[7], rows, |row| row.ideal_fct)?;
        self.retransmits
            .extend(rows.iter().map(|row| row.retransmits));
        self.timeouts.extend(rows.iter().map(|row| row.timeouts));
        self.marks.extend(rows.iter().map(|row| row.marks));
        self.finished
            .extend(rows.iter().map(|row| row.fct.is_some()));
        self.sent.extend(rows, |row| row.sent);
        self.dropped.extend(rows, |row| row.dropped);
        Ok(())
    }

    fn into_arrays(self) -> [ArrayRef; COLUMNS.len()] {
        let finished = BooleanArray::from(self.finished);
        let fct = Float64Array::new(self.fct.into(), Some(finished.values().clone().into()));
        [
            Arc::new(UInt64Array::from(self.id)),
            Arc::new(Float64Array::from(self.start)),
            Arc::new(UInt32Array::from(self.src)),
            Arc::new(UInt32Array::from(self.dst)),
            Arc::new(UInt64Array::from(self.bytes)),
            Arc::new(UInt16Array::from(self.service)),
            Arc::new(fct),
            Arc::new(Float64Array::from(self.ideal_fct)),
            Arc::new(UInt32Array::from(self.retransmits)),
            Arc::new(UInt32Array::from(self.timeouts)),
            Arc::new(UInt32Array::from(self.marks)),
            Arc::new(finished),
            Arc::new(self.sent.into_array()),
            Arc::new(self.dropped.into_array()),
        ]
    }
}

impl Counts {
    fn extend(&mut self, rows: &[FlowRecord], count: impl Fn(&FlowRecord) -> Option<u32>) {
        let values = rows.iter().map(|row| count(row).unwrap_or(0));
        self.values.extend(values);
        let is_known = rows.iter().map(|row| count(row).is_some());
        self.is_known.extend(is_known);
    }

    fn into_array(self) -> UInt32Array {
        let is_known = BooleanArray::from(self.is_known);
        UInt32Array::new(self.values.into(), Some(is_known.values().clone().into()))
    }
}

fn extend_times<const DIGITS: u32>(
    column: &mut Vec<f64>,
    name: &'static str,
    rows: &[FlowRecord],
    time: impl Fn(&FlowRecord) -> Time,
) -> Result<(), ContentError> {
    for row in rows {
        column.push(Decimal::<DIGITS>(time(row)).to_exact_f64(name)?);
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<FlowTable, Box<dyn Error + Send + Sync>> {
    let (metadata, batches) = parquet_reader(path)?;
    let partial = metadata.iter().find(|entry| entry.key == PARTIAL_KEY);
    let partial = partial.and_then(|entry| entry.value.as_deref()?.parse::<bool>().ok());
    let mut records = Vec::new();
    for batch in batches {
        read_batch(&batch?, &mut records)?;
    }
    Ok(FlowTable {
        records,
        completeness: partial.map(Completeness::from),
    })
}

fn read_batch(batch: &RecordBatch, records: &mut Vec<FlowRecord>) -> Result<(), ContentError> {
    let id = values::<UInt64Type>(batch, "id", "UInt64")?;
    let start_s = values::<Float64Type>(batch, "start_s", "Float64")?;
    let src = values::<UInt32Type>(batch, "src", "UInt32")?;
    let dst = values::<UInt32Type>(batch, "dst", "UInt32")?;
    let bytes = values::<UInt64Type>(batch, "bytes", "UInt64")?;
    let service = values::<UInt16Type>(batch, "service", "UInt16")?;
    let fct_us: &Float64Array = column(batch, "fct_us", "Float64")?;
    let ideal_fct_us = values::<Float64Type>(batch, "ideal_fct_us", "Float64")?;
    let retransmits = values::<UInt32Type>(batch, "retransmits", "UInt32")?;
    let timeouts = values::<UInt32Type>(batch, "timeouts", "UInt32")?;
    let marks = values::<UInt32Type>(batch, "marks", "UInt32")?;
    let finished: &BooleanArray = column(batch, "finished", "Boolean")?;
    let optional = |name| {
        let array: Result<&UInt32Array, _> = column(batch, name, "UInt32");
        move |row| {
            let array = array.as_ref().ok()?;
            array.is_valid(row).then(|| array.value(row))
        }
    };
    let [sent, dropped] = OPTIONAL_COLUMNS.map(optional);
    for row in 0..batch.num_rows() {
        let finished = finished.value(row);
        if finished != fct_us.is_valid(row) {
            let id = id[row];
            return Err(ContentError::Finished { id, finished });
        }
        let fct = finished.then(|| Decimal::<6>::read("fct_us", fct_us.value(row)));
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
