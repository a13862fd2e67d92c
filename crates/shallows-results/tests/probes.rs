//! Files of probes: the text by hand, and the same numbers back from either format.

use std::fs;
use std::path::Path;

use shallows_core::units::{Bytes, Rate, Time};
use shallows_results::Format;
use shallows_results::ports::{LinkRole, PortCounters, PortRecord, read_ports, write_ports};
use shallows_results::probes::{
    QueueSample, RttSample, Sample, SampleWriter, SojournTimes, ThroughputSample, WindowSample,
};
use shallows_results::series::{Series, Values};
use shallows_results::statistics::Statistics;

fn write<S: Sample>(directory: &Path, format: Format, samples: &[S]) -> Series {
    let mut writer = SampleWriter::create(directory, format).unwrap();
    for sample in samples {
        writer.write(sample).unwrap();
    }
    let path = directory.join(S::FILE).with_extension(format.extension());
    assert!(!path.exists(), "it has no name before it is complete");
    writer.finish().unwrap();
    Series::read(&path).unwrap()
}

/// The text of the file of some samples.
fn text<S: Sample>(samples: &[S]) -> String {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), Format::Csv, samples);
    fs::read_to_string(directory.path().join(S::FILE).with_extension("csv")).unwrap()
}

fn queue(time: Time, bytes: u64, threshold: Option<f64>) -> QueueSample {
    QueueSample {
        time,
        port: 3,
        queue: 7,
        bytes,
        packets: (bytes / 1_500) as u32,
        threshold,
    }
}

#[test]
fn each_probe_to_the_character() {
    let time = Time::from_ps(1_234_567_890);
    assert_eq!(
        text(&[queue(time, 3_000, Some(32_500.5)), queue(time, 0, None)]),
        "time_us,port,queue,bytes,packets,threshold_bytes\n\
         1234.567890,3,7,3000,2,32500.5\n\
         1234.567890,3,7,0,0,NaN\n"
    );
    let interval = ThroughputSample {
        time,
        interval: Time::from_us(10),
        port: 3,
        queue: 7,
        bytes: 6_250,
        rate: Rate::from_gbps(10),
    };
    assert_eq!(
        text(&[interval]),
        "time_us,interval_us,port,queue,bytes,throughput_bps,utilisation\n\
         1234.567890,10.000000,3,7,6250,5000000000.0,0.5\n"
    );
    let window = WindowSample {
        time,
        flow: 9,
        cwnd: Bytes::new(14_600),
        alpha: Some(0.0625),
    };
    assert_eq!(
        text(&[window]),
        "time_us,flow,cwnd_bytes,alpha\n1234.567890,9,14600,0.0625\n"
    );
    let rtt = RttSample {
        time,
        flow: 9,
        rtt: Time::from_ps(86_528_001),
    };
    assert_eq!(
        text(&[rtt]),
        "time_us,flow,rtt_us\n1234.567890,9,86.528001\n"
    );
}

#[test]
fn many_rows_are_the_same_in_either_format() {
    let samples: Vec<QueueSample> = (0..200_000)
        .map(|n| {
            queue(
                Time::from_ps(n * 1_234_567),
                n % 97 * 1_500,
                Some(n as f64 / 3.0),
            )
        })
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let parquet = write(directory.path(), Format::Parquet, &samples);
    let csv = write(directory.path(), Format::Csv, &samples);
    assert_eq!(parquet.rows(), 200_000);
    assert!(parquet == csv);
    let last = samples[199_999];
    let Some(Values::Times(times)) = parquet.column("time_us") else {
        panic!("there are times");
    };
    assert_eq!(times[199_999], last.time);
    let again = tempfile::tempdir().unwrap();
    write(again.path(), Format::Parquet, &samples);
    let [first, second] =
        [directory, again].map(|of| fs::read(of.path().join("queues.parquet")).unwrap());
    assert!(first == second);
}

#[test]
fn a_queue_has_a_mean_over_time() {
    let directory = tempfile::tempdir().unwrap();
    let us = Time::from_us;
    let samples = [
        queue(us(0), 0, None),
        queue(us(30), 9_000, None),
        queue(us(40), 0, None),
    ];
    let series = write(directory.path(), Format::Parquet, &samples);
    let (Some(Values::Times(times)), Some(Values::Integers(bytes))) =
        (series.column("time_us"), series.column("bytes"))
    else {
        panic!("these columns are there");
    };
    let steps = times
        .iter()
        .zip(bytes)
        .map(|(&time, &bytes)| (time, bytes as f64));
    let over_time = Statistics::of_steps(&steps.collect::<Vec<_>>(), us(100)).unwrap();
    assert_eq!((over_time.mean, over_time.max), (900.0, 9_000.0));
}

#[test]
fn sojourn_times_are_counted_to_a_thousandth() {
    let mut times = SojournTimes::default();
    for us in 1..=1_000 {
        times.record(2, 1, Time::from_us(us));
    }
    times.record(0, 0, Time::ZERO);
    let near = |share: f64, us: u64| {
        let found = times.quantile(2, 1, share).unwrap();
        let (least, most) = (Time::from_us(us), Time::from_ns(us * 1_001));
        assert!(least <= found && found <= most, "{found} for {us}us");
    };
    near(0.5, 500);
    near(0.99, 990);
    near(1.0, 1_000);
    assert_eq!(times.quantile(0, 0, 0.99), Some(Time::ZERO));
    assert_eq!(times.quantile(9, 0, 0.99), None);
    let packets: u64 = times.ranges().map(|(.., packets)| packets).sum();
    assert_eq!(packets, 1_001);

    let directory = tempfile::tempdir().unwrap();
    times.write(directory.path(), Format::Csv).unwrap();
    let text = fs::read_to_string(directory.path().join("sojourn.csv")).unwrap();
    assert!(
        text.starts_with("port,queue,up_to_us,packets\n0,0,0.000000,1\n2,1,1.000000,1\n"),
        "{text}"
    );
}

#[test]
fn ports_have_names_and_counters() {
    let directory = tempfile::tempdir().unwrap();
    let ports = [("h0 to leaf0", 10), ("leaf0 to h0", 40)].map(|(name, gbps)| PortRecord {
        name: name.to_owned(),
        role: if gbps == 10 {
            LinkRole::HostUp
        } else {
            LinkRole::HostDown
        },
        rate: Rate::from_gbps(gbps),
        counters: (gbps == 10).then_some(PortCounters {
            packets: 3,
            bytes: 4_500,
            utilisation: 0.25,
            peak_bytes: 3_000,
            marks: 2,
            drops: 1,
            pauses: 1,
            paused: Time::from_ns(1_500),
        }),
    });
    write_ports(directory.path(), &ports).unwrap();
    assert_eq!(
        fs::read_to_string(directory.path().join("ports.csv")).unwrap(),
        "port,name,role,rate_bps,packets,bytes,utilisation,peak_bytes,marks,drops,pauses,paused_us\n\
         0,h0 to leaf0,host-up,10000000000,3,4500,0.25,3000,2,1,1,1.5\n\
         1,leaf0 to h0,host-down,40000000000,,,,,,,,\n"
    );
    assert_eq!(read_ports(directory.path()).unwrap(), ports);
}
