//! Time series of a run in either world (goodput, queue lengths, pings) and their statistics.

use std::collections::BTreeMap;

use serde::Serialize;
use shallows_core::units::Time;
use shallows_live::experiment::Observed;
use shallows_live::switch::Samples;
use shallows_live::traffic::{Goodput, Ping};
use shallows_model::topology::Fabric;
use shallows_results::ports::LinkRole;
use shallows_results::statistics::{Percentile, PercentileRule};

use crate::live::roles;

/// The part of a run, at its beginning, that goodput, queue lengths and round-trip times leave out.
const WARM_UP: f64 = 0.2;

/// Series over the time of a run, which begins with its first flow's epoch.
#[derive(Debug, Default)]
pub struct Measurements {
    /// Bytes that have arrived, by service.
    pub goodput: Goodput,
    /// Bytes in the queues.
    pub queues: Samples,
    /// Roles of the queues' links, by name.
    pub roles: BTreeMap<String, LinkRole>,
    /// Pings, probe by probe.
    pub pings: Vec<Vec<Ping>>,
    /// Duration of the run.
    pub duration: Time,
}

/// Bytes a second of a service, after the warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceGoodput {
    /// The service.
    pub service: u8,
    /// Megabits a second.
    pub mbps: f64,
}

/// Percentiles of a queue's length after the warm-up, in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct QueueLength {
    /// The port's link.
    pub link: String,
    /// Role of the link.
    pub role: LinkRole,
    /// Its number at the port.
    pub queue: usize,
    #[serde(flatten)]
    /// Statistics of the length.
    pub length: Length,
}

/// Percentiles of a length, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Length {
    /// Mean.
    pub mean: f64,
    /// 10th percentile.
    pub p10: u32,
    /// Median.
    pub p50: u32,
    /// 90th percentile.
    pub p90: u32,
    /// 99th percentile.
    pub p99: u32,
}

/// Percentiles of a probe's round-trip times after the warm-up, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Rtt {
    /// Pings sent.
    pub sent: usize,
    /// Pings that were never answered.
    pub lost: usize,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
}

impl Measurements {
    /// Of a live run, whose switch has seen more than the flows.
    pub fn of(observed: &Observed, fabric: &Fabric) -> Self {
        let all = &observed.report.samples;
        let width = all.columns.len().max(1);
        let before = all.times.partition_point(|&time| time < observed.offset);
        let times = all.times[before..].iter();
        Self {
            goodput: observed.goodput.clone(),
            queues: Samples {
                columns: all.columns.clone(),
                times: times.map(|&time| time - observed.offset).collect(),
                bytes: all.bytes[before * width..].to_vec(),
                packets: all.packets[before * width..].to_vec(),
                sent: all.sent[before * width..].to_vec(),
                sent_packets: all.sent_packets[before * width..].to_vec(),
                thresholds: all.thresholds[before * width..].to_vec(),
                lost: all.lost,
            },
            roles: roles(fabric),
            pings: observed.pings.clone(),
            duration: observed.duration,
        }
    }

    /// The same with all times multiplied by a factor, as a run that was slower by it would have
    /// been without.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        let scale = |time: &mut Time| *time = scaled(*time, factor);
        self.goodput
            .rows
            .iter_mut()
            .for_each(|(time, _)| scale(time));
        self.queues.times.iter_mut().for_each(scale);
        for ping in self.pings.iter_mut().flatten() {
            scale(&mut ping.sent);
            ping.rtt.iter_mut().for_each(scale);
        }
        scale(&mut self.duration);
        self
    }

    fn warm(&self) -> Time {
        Time::from_ps((self.duration.ps() as f64 * WARM_UP) as u64)
    }

    /// Goodput of each service.
    pub fn goodput(&self) -> Vec<ServiceGoodput> {
        let rows = &self.goodput.rows;
        let warm = rows.iter().find(|(time, _)| *time >= self.warm());
        let (Some((begin, first)), Some((end, last))) = (warm, rows.last()) else {
            return Vec::new();
        };
        let seconds = end.saturating_sub(*begin).as_secs_f64();
        let services = self.goodput.dscps.iter().zip(first.iter().zip(last));
        services
            .map(|(&service, (first, last))| ServiceGoodput {
                service,
                mbps: (last - first) as f64 * 8.0 / seconds.max(1e-9) / 1e6,
            })
            .collect()
    }

    /// Lengths of the queues that ever held anything.
    pub fn queue_lengths(&self) -> Vec<QueueLength> {
        let columns = self.queues.columns.iter().enumerate();
        let lengths = columns.filter_map(|(column, (link, queue))| {
            let length = Length::of(self.lengths(&[column]))?;
            Some(QueueLength {
                link: link.clone(),
                role: *self.roles.get(link)?,
                queue: *queue,
                length,
            })
        });
        lengths.collect()
    }

    /// Lengths of all queues of a port together, for ports that ever held anything.
    pub fn port_lengths(&self) -> BTreeMap<&str, Vec<u32>> {
        let mut columns: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (column, (link, _)) in self.queues.columns.iter().enumerate() {
            columns.entry(link).or_default().push(column);
        }
        let lengths = columns
            .into_iter()
            .map(|(link, columns)| (link, self.lengths(&columns)));
        lengths
            .filter(|(_, lengths)| lengths.iter().any(|&length| length > 0))
            .collect()
    }

    /// The sums of some columns in each row after the warm-up.
    fn lengths(&self, columns: &[usize]) -> Vec<u32> {
        let rows = self.queues.bytes.chunks(self.queues.columns.len().max(1));
        let rows = self.queues.times.iter().zip(rows);
        rows.filter(|(time, _)| (self.warm()..=self.duration).contains(time))
            .map(|(_, row)| columns.iter().map(|&column| row[column]).sum())
            .collect()
    }

    /// Round-trip times of each probe, sorted, in microseconds.
    pub fn sorted_rtts(&self) -> Vec<Vec<f64>> {
        let of_probe = |pings: &Vec<Ping>| {
            let answered = self.judged(pings).filter_map(|ping| ping.rtt);
            let mut us: Vec<f64> = answered.map(|rtt| rtt.as_secs_f64() * 1e6).collect();
            us.sort_by(f64::total_cmp);
            us
        };
        self.pings.iter().map(of_probe).collect()
    }

    /// Statistics of each probe's round-trip times.
    pub fn rtts(&self) -> Vec<Rtt> {
        let all = self.pings.iter().zip(self.sorted_rtts());
        all.map(|(pings, us)| {
            let sent = self.judged(pings).count();
            Rtt {
                sent,
                lost: sent - us.len(),
                mean_us: us.iter().sum::<f64>() / us.len().max(1) as f64,
                p50_us: at(&us, Percentile::P50).unwrap_or(f64::NAN),
                p99_us: at(&us, Percentile::P99).unwrap_or(f64::NAN),
            }
        })
        .collect()
    }

    fn judged<'a>(&self, pings: &'a [Ping]) -> impl Iterator<Item = &'a Ping> {
        let warm = self.warm();
        pings.iter().filter(move |ping| ping.sent >= warm)
    }
}

impl Length {
    /// Of these lengths, if the queue ever held anything.
    pub fn of(mut values: Vec<u32>) -> Option<Self> {
        values.sort_unstable();
        values.last().filter(|&&longest| longest > 0)?;
        let sum: f64 = values.iter().map(|&value| f64::from(value)).sum();
        Some(Self {
            mean: sum / values.len() as f64,
            p10: at(&values, Percentile::P10)?,
            p50: at(&values, Percentile::P50)?,
            p90: at(&values, Percentile::P90)?,
            p99: at(&values, Percentile::P99)?,
        })
    }
}

/// A time multiplied by a factor.
pub fn scaled(time: Time, factor: f64) -> Time {
    Time::from_ps((time.ps() as f64 * factor).round() as u64)
}

fn at<T: Copy>(sorted: &[T], percentile: Percentile) -> Option<T> {
    PercentileRule::NearestRank.select(sorted, percentile)
}
