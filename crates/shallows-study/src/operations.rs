//! Operations of applications in a run.

use std::collections::BTreeMap;

use shallows_core::units::Time;
use shallows_results::RunRecord;
use shallows_results::latencies::{Operation, TABLE};

/// Latencies of an operation, sorted; none if the run has no such operation.
pub(crate) fn latencies_us(record: &RunRecord, operation: &Operation) -> Option<Vec<f64>> {
    let done = done(record, operation)?;
    let mut us: Vec<f64> = done
        .iter()
        .map(|(_, latency)| latency.as_secs_f64() * 1e6)
        .collect();
    us.sort_unstable_by(f64::total_cmp);
    Some(us)
}

/// Latencies of an operation in each window of time that has some, sorted, with the window's end in
/// seconds.
pub(crate) fn latencies_by_window(
    record: &RunRecord,
    operation: &Operation,
    window: Time,
) -> Option<Vec<(f64, Vec<f64>)>> {
    let mut windows: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (start, latency) in done(record, operation)? {
        let values = windows.entry(start.ps() / window.ps()).or_default();
        values.push(latency.as_secs_f64() * 1e6);
    }
    let end = |number: u64| (number + 1) as f64 * window.as_secs_f64();
    let windows = windows.into_iter().map(|(number, mut us)| {
        us.sort_unstable_by(f64::total_cmp);
        (end(number), us)
    });
    Some(windows.collect())
}

/// Number of an operation's executions, and the time from its first start to its last end.
pub(crate) fn count_and_time(record: &RunRecord, operation: &Operation) -> Option<(u64, Time)> {
    let done = done(record, operation)?;
    let first = done.iter().map(|(start, _)| *start).min()?;
    let ends = done
        .iter()
        .map(|(start, latency)| start.saturating_add(*latency));
    Some((done.len() as u64, ends.max()?.saturating_sub(first)))
}

/// Start and latency of each time that an operation was done.
pub(crate) fn done(record: &RunRecord, operation: &Operation) -> Option<Vec<(Time, Time)>> {
    let number = record.operations.iter().position(|of| of == operation)?;
    let number = i64::try_from(number).ok()?;
    let table = record.table(TABLE).ok()??;
    let starts = table.times("time_us")?.iter();
    let rows = starts.zip(table.times("latency_us")?);
    let rows = rows.zip(table.integers("operation")?);
    let of_operation = rows.filter(|(_, of)| **of == number);
    Some(
        of_operation
            .map(|((&start, &latency), _)| (start, latency))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use shallows_results::latencies::{Latency, collect};
    use shallows_results::statistics::PercentileRule;

    use super::*;

    fn operation(name: &str) -> Operation {
        Operation {
            application: "memcached".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn an_operation_has_its_latencies_and_its_time() {
        let rows = [
            ("get", 1, 500),
            ("set", 2, 900),
            ("get", 2, 300),
            ("get", 4, 1_000),
        ];
        let latencies = rows.map(|(name, ms, us)| Latency {
            operation: operation(name),
            start: Time::from_ms(ms),
            host: 0,
            latency: Time::from_us(us),
        });
        let (summaries, table) = collect(&latencies, PercentileRule::NearestRank).unwrap();
        let mut record = RunRecord::new(Vec::new(), None);
        record.operations = summaries.into_iter().map(|of| of.operation).collect();
        record.insert(TABLE, table.unwrap());
        let get = operation("get");
        assert_eq!(
            latencies_us(&record, &get),
            Some(vec![300.0, 500.0, 1_000.0])
        );
        let windows = latencies_by_window(&record, &get, Time::from_ms(3)).unwrap();
        let expected = [(0.003, vec![300.0, 500.0]), (0.006, vec![1_000.0])];
        assert_eq!(windows, expected);
        // From 1 ms to 5 ms.
        assert_eq!(count_and_time(&record, &get), Some((3, Time::from_ms(4))));
        assert_eq!(count_and_time(&record, &operation("delete")), None);
    }
}
