use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, PrimitiveArray, RecordBatch, UInt32Array,
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

/// Rows as columns, in the order of [`COLUMNS`].
pub(super) fn batch(rows: &[FlowRecord]) -> Result<RecordBatch, Box<dyn Error + Send + Sync>> {
    let finished: BooleanArray = rows.iter().map(|row| Some(row.fct.is_some())).collect();
    let columns: [ArrayRef; COLUMNS.len()] = [
        integers::<UInt64Type>(rows, |row| row.id),
        times::<12>(COLUMNS[1], rows, |row| Some(row.start))?,
        integers::<UInt32Type>(rows, |row| row.src),
        integers::<UInt32Type>(rows, |row| row.dst),
        integers::<UInt64Type>(rows, |row| row.bytes),
        integers::<UInt16Type>(rows, |row| row.service),
        times::<6>(COLUMNS[6], rows, |row| row.fct)?,
        times::<6>(COLUMNS[7], rows, |row| Some(row.ideal_fct))?,
        integers::<UInt32Type>(rows, |row| row.retransmits),
        integers::<UInt32Type>(rows, |row| row.timeouts),
        integers::<UInt32Type>(rows, |row| row.marks),
        Arc::new(finished),
        optional(rows, |row| row.sent),
        optional(rows, |row| row.dropped),
    ];
    let named = COLUMNS.into_iter().zip(columns).map(|(name, array)| {
        (
            name,
            array,
            name == "fct_us" || OPTIONAL_COLUMNS.contains(&name),
        )
    });
    Ok(RecordBatch::try_from_iter_with_nullable(named)?)
}

fn integers<T: ArrowPrimitiveType>(
    rows: &[FlowRecord],
    value: impl Fn(&FlowRecord) -> T::Native,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(
        rows.iter().map(value),
    ))
}

fn optional(rows: &[FlowRecord], value: impl Fn(&FlowRecord) -> Option<u32>) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<UInt32Array>())
}

fn times<const DIGITS: u32>(
    column: &'static str,
    rows: &[FlowRecord],
    value: impl Fn(&FlowRecord) -> Option<Time>,
) -> Result<ArrayRef, ContentError> {
    let exact = |time| Decimal::<DIGITS>(time).to_exact_f64(column);
    let doubles: Result<Float64Array, ContentError> = rows
        .iter()
        .map(|row| value(row).map(exact).transpose())
        .collect();
    Ok(Arc::new(doubles?))
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
