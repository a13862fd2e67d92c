//! Files: what is written is read back, equal input gives equal bytes, and no half file is left.

mod common;

use std::error::Error;
use std::fs;
use std::path::Path;
#[cfg(unix)]
use std::process::Command;

use common::{finished, unfinished};
use proptest::prelude::*;
use shallows_core::units::Time;
use shallows_results::flows::{read_flows, write_flows};
use shallows_results::record::{COLUMNS, Completeness, FlowRecord};
use shallows_results::series::{Kind, Series, SeriesWriter, Value, Values};
use shallows_results::{Format, ResultsError, write_text};

const FORMATS: [Format; 2] = [Format::Parquet, Format::Csv];

fn round_trip(records: &[FlowRecord], format: Format) -> Vec<FlowRecord> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory
        .path()
        .join("flows")
        .with_extension(format.extension());
    write_flows(&path, records, Completeness::Complete).unwrap();
    read_flows(&path).unwrap().records
}

fn bytes_of(records: &[FlowRecord], name: &str, completeness: Completeness) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    write_flows(&path, records, completeness).unwrap();
    fs::read(&path).unwrap()
}

/// `count` flows with values all over the columns.
fn many(count: u64) -> Vec<FlowRecord> {
    let spread = |id: u64, range: u64| id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11 & (range - 1);
    let flow = |id: u64| FlowRecord {
        src: spread(id, 256) as u32,
        dst: spread(id + 1, 256) as u32,
        service: (id % 8) as u16,
        fct: (!id.is_multiple_of(1000)).then(|| Time::from_ps(80_000_000 + spread(id, 1 << 36))),
        retransmits: (id % 7) as u32,
        timeouts: u32::from(id.is_multiple_of(500)),
        marks: spread(id, 64) as u32,
        ..finished(
            id,
            Time::from_ps(id * 1_234_567),
            1_460 + spread(id, 1 << 24),
            Time::ZERO,
            Time::from_ps(80_000_000 + spread(id, 1 << 30)),
        )
    };
    (0..count).map(flow).collect()
}

#[test]
fn csv_to_the_character() {
    let mut marked = finished(
        7,
        Time::from_ps(1_000_000_000_001),
        1_460,
        Time::from_ps(86_528_001),
        Time::from_ns(86_528),
    );
    (marked.retransmits, marked.timeouts, marked.marks) = (4, 1, 9);
    let records = [marked, unfinished(8, Time::from_ms(2), 25)];
    let text = bytes_of(&records, "flows.csv", Completeness::Complete);
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "id,start_s,src,dst,bytes,service,fct_us,ideal_fct_us,retransmits,timeouts,marks,finished,sent,dropped\n\
         7,1.000000000001,3,141,1460,7,86.528001,86.528000,4,1,9,true,1,\n\
         8,0.002000000000,3,141,25,7,,80.000000,0,0,0,false,1,\n"
    );
}

#[test]
fn several_row_groups_round_trip() {
    let records = many(300_000);
    for format in FORMATS {
        assert!(round_trip(&records, format) == records, "{format:?}");
    }
}

#[test]
fn no_flows_round_trip() {
    for format in FORMATS {
        assert_eq!(round_trip(&[], format), []);
    }
}

#[test]
fn equal_input_gives_equal_bytes() {
    let records = many(200_000);
    for name in ["flows.parquet", "flows.csv"] {
        let first = bytes_of(&records, name, Completeness::Complete);
        let again = bytes_of(&records, name, Completeness::Complete);
        assert!(first == again, "{name}");
    }
}

#[test]
fn parquet_says_whether_the_run_was_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    for completeness in [Completeness::Partial, Completeness::Complete] {
        write_flows(&path, many(3), completeness).unwrap();
        assert_eq!(read_flows(&path).unwrap().completeness, Some(completeness));
    }
    let path = directory.path().join("flows.csv");
    write_flows(&path, many(3), Completeness::Partial).unwrap();
    assert_eq!(read_flows(&path).unwrap().completeness, None);
}

/// Writes flows, in a process whose files can have 4 KB at most.
#[test]
#[ignore = "run by a_write_that_fails_half_way_leaves_the_old_file_and_no_other"]
fn write_more_than_fits() {
    let directory = std::env::var_os("SHALLOWS_SMALL_FILES").expect("the test says where");
    for name in ["flows.parquet", "flows.csv"] {
        let path = Path::new(&directory).join(name);
        let error = write_flows(&path, many(100_000), Completeness::Complete).unwrap_err();
        let expected = format!("cannot write {}", path.display());
        assert_eq!(error.to_string(), expected);
    }
}

#[cfg(unix)]
#[test]
fn a_write_that_fails_half_way_leaves_the_old_file_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["flows.parquet", "flows.csv"];
    let files = names.map(|name| directory.path().join(name));
    for path in &files {
        write_flows(path, many(10), Completeness::Complete).unwrap();
    }
    let before = files.each_ref().map(|path| fs::read(path).unwrap());
    // Blocks have 512 bytes; with the signal ignored, a write beyond the limit fails.
    let limited = "ulimit -f 8; trap '' XFSZ; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", limited, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "write_more_than_fits", "--ignored"])
        .env("SHALLOWS_SMALL_FILES", directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(files.each_ref().map(|path| fs::read(path).unwrap()) == before);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_failed_write_leaves_the_old_file_and_no_other() {
    for name in ["flows.parquet", "flows.csv"] {
        let directory = tempfile::tempdir().unwrap();
        // A directory with something in it cannot be replaced.
        let path = directory.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("old"), "old").unwrap();

        let error = write_flows(&path, many(100_000), Completeness::Complete).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot write {}", path.display())
        );
        assert_eq!(fs::read_to_string(path.join("old")).unwrap(), "old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn the_longest_time_survives_csv() {
    let mut records = many(1);
    records[0].start = Time::MAX;
    assert_eq!(round_trip(&records, Format::Csv), records);
}

#[cfg(unix)]
#[test]
fn results_are_as_readable_as_any_new_file() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let (ours, plain) = (directory.path().join("a"), directory.path().join("b"));
    write_text(&ours, "text").unwrap();
    fs::write(&plain, "text").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&ours), mode(&plain));
}

/// The reason why a CSV file with this text cannot be read.
fn csv_error(text: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.csv");
    fs::write(&path, text).unwrap();
    let error = read_flows(&path).unwrap_err();
    error.source().unwrap().to_string()
}

#[test]
fn bad_tables_are_refused_with_the_reason() {
    let header = COLUMNS.join(",");
    let without = header.replace("marks,", "");
    assert_eq!(csv_error(&without), "column marks is missing");
    let row = |start: &str, fct: &str, finished: &str| {
        format!("{header}\n5,{start},0,1,100,0,{fct},80.0,0,0,0,{finished},,\n")
    };
    let error = csv_error(&row("1.0", "", "true"));
    assert!(error.contains("flow 5 says finished = true"), "{error}");
    let error = csv_error(&row("1.0", "9.5", "false"));
    assert!(error.contains("flow 5 says finished = false"), "{error}");
    let error = csv_error(&row("-1.0", "9.5", "true"));
    assert!(
        error.contains("line: 2") && error.contains("got \"-1.0\""),
        "{error}"
    );
}

#[test]
fn other_columns_and_another_order_are_fine() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.csv");
    let text = "note,finished,id,start_s,src,dst,bytes,service,fct_us,ideal_fct_us,retransmits,\
                timeouts,marks\nx,true,1,0.5,3,141,1460,7,90,80,0,0,0\n";
    fs::write(&path, text).unwrap();
    let expected = finished(
        1,
        Time::from_ms(500),
        1_460,
        Time::from_us(90),
        Time::from_us(80),
    );
    let expected = FlowRecord {
        sent: None,
        ..expected
    };
    assert_eq!(read_flows(&path).unwrap().records, [expected]);
}

#[test]
fn a_file_that_is_no_parquet_or_has_no_format_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    fs::write(&path, "not a table").unwrap();
    assert!(matches!(read_flows(&path), Err(ResultsError::Read { .. })));
    let error = read_flows(Path::new("flows.txt")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot tell the format of flows.txt: name it .parquet or .csv"
    );
    let mut series = Series::new(&[("id", Kind::Integer)]);
    series.push(&[Value::Integer(1)]);
    series.write(&path).unwrap();
    let error = read_flows(&path).unwrap_err();
    assert_eq!(
        error.source().unwrap().to_string(),
        "column id has type Int64; expected UInt64"
    );
}

fn probe() -> Series {
    let columns = [
        ("time_us", Kind::Time),
        ("queue_bytes", Kind::Integer),
        ("threshold, bytes", Kind::Real),
    ];
    let mut series = Series::new(&columns);
    for (time, bytes, threshold) in [
        (Time::from_ps(1), -3, 0.1),
        (Time::from_us(10), i64::MAX, 1e300),
        (Time::from_secs(2), 0, 4.0),
    ] {
        series.push(&[
            Value::Time(time),
            Value::Integer(bytes),
            Value::Real(threshold),
        ]);
    }
    series
}

#[test]
fn a_series_round_trips() {
    let directory = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = directory
            .path()
            .join("queue")
            .with_extension(format.extension());
        probe().write(&path).unwrap();
        assert_eq!(Series::read(&path).unwrap(), probe());
        let first = fs::read(&path).unwrap();
        probe().write(&path).unwrap();
        assert!(fs::read(&path).unwrap() == first, "{format:?}");
    }
    assert_eq!(
        fs::read_to_string(directory.path().join("queue.csv")).unwrap(),
        "time_us,queue_bytes,\"threshold, bytes\"\n\
         0.000001,-3,0.1\n\
         10.000000,9223372036854775807,1e300\n\
         2000000.000000,0,4.0\n"
    );
}

#[test]
fn a_series_is_taken_apart_by_its_columns() {
    let series = probe();
    assert_eq!((series.rows(), series.columns().len()), (3, 3));
    assert_eq!(series.columns()[1].name, "queue_bytes");
    let bytes = Values::Integers(vec![-3, i64::MAX, 0]);
    assert_eq!(series.column("queue_bytes"), Some(&bytes));
    assert_eq!(series.column("bytes"), None);
}

#[test]
fn a_streamed_series_is_the_same_file() {
    let directory = tempfile::tempdir().unwrap();
    let columns = [("time_us", Kind::Time), ("bytes", Kind::Integer)];
    for format in FORMATS {
        let path = |name: &str| {
            directory
                .path()
                .join(name)
                .with_extension(format.extension())
        };
        let mut writer = SeriesWriter::create(&path("streamed"), &columns).unwrap();
        let mut whole = Series::new(&columns);
        for n in 0..150_000 {
            let row = [Value::Time(Time::from_ns(n)), Value::from(7 * n)];
            writer.push(&row).unwrap();
            whole.push(&row);
        }
        assert!(!path("streamed").exists());
        writer.finish().unwrap();
        whole.write(&path("whole")).unwrap();
        let [streamed, whole] = ["streamed", "whole"].map(|name| fs::read(path(name)).unwrap());
        assert!(streamed == whole, "{format:?}");
    }
}

#[test]
#[should_panic(expected = "column queue_bytes cannot hold Real(1.0)")]
fn a_series_refuses_a_value_of_another_kind() {
    let row = [Value::Time(Time::ZERO), Value::Real(1.0), Value::Real(1.0)];
    probe().push(&row);
}

#[test]
#[should_panic(expected = "two columns are called port")]
fn a_series_has_no_column_twice() {
    Series::new(&[("port", Kind::Integer), ("port", Kind::Real)]);
}

#[test]
#[should_panic(expected = "rtt_us: columns of times, and no others, end in _us")]
fn a_series_has_times_where_the_name_says_so() {
    Series::new(&[("rtt_us", Kind::Real)]);
}

fn any_time() -> impl Strategy<Value = Time> {
    (0..=1_u64 << 51).prop_map(Time::from_ps)
}

fn any_flow() -> impl Strategy<Value = FlowRecord> {
    let counts = (any::<u32>(), any::<u32>(), any::<u32>());
    let ends = (any::<u32>(), any::<u32>(), any::<u16>());
    let times = (any_time(), prop::option::of(any_time()), any_time());
    (any::<u64>(), any::<u64>(), ends, times, counts).prop_map(
        |(id, bytes, (src, dst, service), (start, fct, ideal_fct), counts)| FlowRecord {
            id,
            start,
            src,
            dst,
            bytes,
            service,
            fct,
            ideal_fct,
            retransmits: counts.0,
            timeouts: counts.1,
            marks: counts.2,
            sent: fct.map(|_| counts.0),
            dropped: fct.is_none().then_some(counts.1),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_flows_round_trip(records in prop::collection::vec(any_flow(), 0..50)) {
        for format in FORMATS {
            prop_assert_eq!(&round_trip(&records, format), &records);
        }
    }
}
