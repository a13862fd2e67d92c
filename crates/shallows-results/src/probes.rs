//! The files of a run's probes, each with its columns.
//!
//! | file | a row for | columns |
//! |---|---|---|
//! | `queues` | a queue at an instant | `time_us`, `port`, `queue`, `bytes`, `packets`, `threshold_bytes` |
//! | `throughput` | a queue over an interval | `time_us`, `interval_us`, `port`, `queue`, `bytes`, `throughput_bps`, `utilisation` |
//! | `flows-cwnd` | a sender at an instant | `time_us`, `flow`, `cwnd_bytes`, `alpha` |
//! | `flows-rtt` | an ACK that gave a round-trip time | `time_us`, `flow`, `rtt_us` |
//! | `goodput` | a service at an instant | `time_us`, `service`, `bytes` |
//! | `pings` | a ping | `time_us`, `probe`, `lost`, `rtt_us` |
//! | `sojourn` | a queue and a range of waiting times | `port`, `queue`, `up_to_us`, `packets` |
//!
//! A port's number is that of the link it sends on; [`ports`](crate::ports) tells what it is.

use std::marker::PhantomData;
use std::path::Path;

use hdrhistogram::Histogram;
use shallows_core::units::{Bytes, Rate, Time};

use crate::series::{Kind, Series, SeriesWriter, Value};
use crate::{Format, ResultsError};

/// Something that a probe sees again and again.
pub trait Sample {
    /// The name of its file, without extension.
    const FILE: &'static str;
    /// The columns of the file.
    const COLUMNS: &'static [(&'static str, Kind)];

    /// An array of as many values.
    type Row: AsRef<[Value]>;

    /// Its values in the order of the columns.
    fn row(&self) -> Self::Row;
}

/// A queue at an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueSample {
    /// The instant.
    pub time: Time,
    /// The port.
    pub port: u32,
    /// Its queue.
    pub queue: u32,
    /// Bytes in it.
    pub bytes: u64,
    /// Packets in it.
    pub packets: u32,
    /// The length from which packets are marked, where the scheme has one.
    pub threshold: Option<f64>,
}

impl Sample for QueueSample {
    const FILE: &'static str = "queues";
    const COLUMNS: &'static [(&'static str, Kind)] = &[
        ("time_us", Kind::Time),
        ("port", Kind::Integer),
        ("queue", Kind::Integer),
        ("bytes", Kind::Integer),
        ("packets", Kind::Integer),
        ("threshold_bytes", Kind::Real),
    ];
    type Row = [Value; 6];

    fn row(&self) -> Self::Row {
        [
            self.time.into(),
            self.port.into(),
            self.queue.into(),
            self.bytes.into(),
            self.packets.into(),
            self.threshold.into(),
        ]
    }
}

/// Bytes that a queue sent in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThroughputSample {
    /// The end of the interval.
    pub time: Time,
    /// Its length.
    pub interval: Time,
    /// The port.
    pub port: u32,
    /// Its queue.
    pub queue: u32,
    /// Bytes on the wire.
    pub bytes: u64,
    /// The rate of the link.
    pub rate: Rate,
}

impl ThroughputSample {
    /// Bits per second; zero over no time.
    pub fn throughput_bps(&self) -> f64 {
        match self.interval {
            Time::ZERO => 0.0,
            interval => self.bytes as f64 * 8e12 / interval.ps() as f64,
        }
    }

    /// The share of the link's rate.
    pub fn utilisation(&self) -> f64 {
        self.throughput_bps() / self.rate.bps() as f64
    }
}

impl Sample for ThroughputSample {
    const FILE: &'static str = "throughput";
    const COLUMNS: &'static [(&'static str, Kind)] = &[
        ("time_us", Kind::Time),
        ("interval_us", Kind::Time),
        ("port", Kind::Integer),
        ("queue", Kind::Integer),
        ("bytes", Kind::Integer),
        ("throughput_bps", Kind::Real),
        ("utilisation", Kind::Real),
    ];
    type Row = [Value; 7];

    fn row(&self) -> Self::Row {
        [
            self.time.into(),
            self.interval.into(),
            self.port.into(),
            self.queue.into(),
            self.bytes.into(),
            self.throughput_bps().into(),
            self.utilisation().into(),
        ]
    }
}

/// State of a sender's congestion control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowSample {
    /// The instant.
    pub time: Time,
    /// The flow.
    pub flow: u64,
    /// The congestion window.
    pub cwnd: Bytes,
    /// The estimate of the marked fraction, where the controller has one.
    pub alpha: Option<f64>,
}

impl Sample for WindowSample {
    const FILE: &'static str = "flows-cwnd";
    const COLUMNS: &'static [(&'static str, Kind)] = &[
        ("time_us", Kind::Time),
        ("flow", Kind::Integer),
        ("cwnd_bytes", Kind::Integer),
        ("alpha", Kind::Real),
    ];
    type Row = [Value; 4];

    fn row(&self) -> Self::Row {
        [
            self.time.into(),
            self.flow.into(),
            self.cwnd.get().into(),
            self.alpha.into(),
        ]
    }
}

/// A round-trip time as a sender measured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttSample {
    /// Arrival time of the ACK.
    pub time: Time,
    /// The flow.
    pub flow: u64,
    /// The round-trip time.
    pub rtt: Time,
}

impl Sample for RttSample {
    const FILE: &'static str = "flows-rtt";
    const COLUMNS: &'static [(&'static str, Kind)] = &[
        ("time_us", Kind::Time),
        ("flow", Kind::Integer),
        ("rtt_us", Kind::Time),
    ];
    type Row = [Value; 3];

    fn row(&self) -> Self::Row {
        [self.time.into(), self.flow.into(), self.rtt.into()]
    }
}

/// Application bytes of a service that have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoodputSample {
    /// The instant.
    pub time: Time,
    /// The service.
    pub service: u16,
    /// Bytes since the run began.
    pub bytes: u64,
}

impl Sample for GoodputSample {
    const FILE: &'static str = "goodput";
    const COLUMNS: &'static [(&'static str, Kind)] = &[
        ("time_us", Kind::Time),
        ("service", Kind::Integer),
        ("bytes", Kind::Integer),
    ];
    type Row = [Value; 3];

    fn row(&self) -> Self::Row {
        [
            self.time.into(),
            u32::from(self.service).into(),
            self.bytes.into(),
        ]
    }
}

/// A ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingSample {
    /// Send time.
    pub time: Time,
    /// The probe that sent it.
    pub probe: u32,
    /// Its round-trip time, if it was answered.
    pub rtt: Option<Time>,
}

impl Sample for PingSample {
    const FILE: &'static str = "pings";
    const COLUMNS: &'static [(&'static str, Kind)] = &[
        ("time_us", Kind::Time),
        ("probe", Kind::Integer),
        ("lost", Kind::Integer),
        ("rtt_us", Kind::Time),
    ];
    type Row = [Value; 4];

    fn row(&self) -> Self::Row {
        [
            self.time.into(),
            self.probe.into(),
            u32::from(self.rtt.is_none()).into(),
            self.rtt.unwrap_or_default().into(),
        ]
    }
}

/// Takes samples of one kind, as they come: into their file, or into memory.
#[derive(Debug)]
pub struct SampleWriter<S> {
    sink: Sink,
    samples: PhantomData<fn(S)>,
}

#[derive(Debug)]
enum Sink {
    File(SeriesWriter),
    Memory(Series),
}

impl<S: Sample> SampleWriter<S> {
    /// The file of these samples in `directory`.
    pub fn create(directory: &Path, format: Format) -> Result<Self, ResultsError> {
        let file = SeriesWriter::create(&path(directory, S::FILE, format), S::COLUMNS)?;
        Ok(Self::into_sink(Sink::File(file)))
    }

    /// A table of these samples in memory.
    pub fn in_memory() -> Self {
        Self::into_sink(Sink::Memory(Series::new(S::COLUMNS)))
    }

    fn into_sink(sink: Sink) -> Self {
        Self {
            sink,
            samples: PhantomData,
        }
    }

    /// Appends a sample.
    pub fn write(&mut self, sample: &S) -> Result<(), ResultsError> {
        match &mut self.sink {
            Sink::File(file) => file.push(sample.row().as_ref()),
            Sink::Memory(series) => {
                series.push(sample.row().as_ref());
                Ok(())
            }
        }
    }

    /// Gives the file its name, or the table that is in memory.
    pub fn finish(self) -> Result<Option<Series>, ResultsError> {
        match self.sink {
            Sink::File(file) => file.finish().map(|()| None),
            Sink::Memory(series) => Ok(Some(series)),
        }
    }
}

/// Waiting times of packets in each queue, from admission to the first bit on the wire.
///
/// Times are counted in ranges no wider than a thousandth of them, so memory depends on the longest
/// time and not on the number of packets. Those beyond [`SojournTimes::LONGEST`] count as that.
#[derive(Debug, Clone, Default)]
pub struct SojournTimes {
    /// By port, then queue.
    ports: Vec<Vec<QueueTimes>>,
}

/// Waiting times in one queue.
#[derive(Debug, Clone, Default)]
struct QueueTimes {
    /// Packets that did not wait, as most do not.
    passed: u64,
    /// The others, in nanoseconds.
    waited: Option<Histogram<u64>>,
}

impl SojournTimes {
    /// The longest time that is told apart from longer ones.
    pub const LONGEST: Time = Time::from_secs(1_000);
    const DIGITS: u8 = 3;

    /// Counts a packet.
    ///
    /// # Panics
    /// Never: a histogram of three digits exists, and it grows with what it counts.
    pub fn record(&mut self, port: u32, queue: u32, sojourn: Time) {
        let (port, queue) = (port as usize, queue as usize);
        if self.ports.len() <= port {
            self.ports.resize_with(port + 1, Vec::new);
        }
        let queues = &mut self.ports[port];
        if queues.len() <= queue {
            queues.resize_with(queue + 1, QueueTimes::default);
        }
        let times = &mut queues[queue];
        if sojourn == Time::ZERO {
            times.passed += 1;
            return;
        }
        let ns = sojourn.min(Self::LONGEST).ps().div_ceil(1_000);
        let histogram = times.waited.get_or_insert_with(Self::histogram);
        histogram.record(ns).expect("it grows");
    }

    fn histogram() -> Histogram<u64> {
        Histogram::new(Self::DIGITS).expect("it has three digits")
    }

    /// The time that at least `share` of a queue's packets did not wait longer than, rounded up to
    /// the end of its range.
    ///
    /// # Panics
    /// Never: as [`record`](Self::record).
    pub fn quantile(&self, port: u32, queue: u32, share: f64) -> Option<Time> {
        let times = self.ports.get(port as usize)?.get(queue as usize)?;
        if times.passed == 0 && times.waited.is_none() {
            return None;
        }
        let mut all = times.waited.clone().unwrap_or_else(Self::histogram);
        all.record_n(0, times.passed).expect("zero fits");
        Some(Time::from_ns(all.value_at_quantile(share)))
    }

    /// Every range with packets: port, queue, its end and its packets.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32, Time, u64)> {
        let ports = (0..).zip(&self.ports);
        let queues = ports.flat_map(|(port, queues)| (0..).zip(queues).map(move |of| (port, of)));
        queues.flat_map(|(port, (queue, times))| {
            let passed = (times.passed > 0).then_some((port, queue, Time::ZERO, times.passed));
            let waited = times.waited.iter().flat_map(|all| all.iter_recorded());
            passed.into_iter().chain(waited.map(move |range| {
                let end = Time::from_ns(range.value_iterated_to());
                (port, queue, end, range.count_since_last_iteration())
            }))
        })
    }

    /// The name of their file, without extension.
    pub const FILE: &'static str = "sojourn";

    /// The distributions as a table.
    pub fn table(&self) -> Series {
        let mut series = Series::new(&[
            ("port", Kind::Integer),
            ("queue", Kind::Integer),
            ("up_to_us", Kind::Time),
            ("packets", Kind::Integer),
        ]);
        for (port, queue, end, packets) in self.ranges() {
            series.push(&[port.into(), queue.into(), end.into(), packets.into()]);
        }
        series
    }

    /// Writes the distributions into their file in `directory`.
    pub fn write(&self, directory: &Path, format: Format) -> Result<(), ResultsError> {
        self.table().write(&path(directory, Self::FILE, format))
    }
}

fn path(directory: &Path, name: &str, format: Format) -> std::path::PathBuf {
    directory.join(name).with_extension(format.extension())
}
