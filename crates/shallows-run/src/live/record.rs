//! Time series of a live run, in the tables of a simulated one.

use std::collections::BTreeMap;

use shallows_core::units::Time;
use shallows_live::lab;
use shallows_live::switch::{LinkName, Samples};
use shallows_live::traffic::Goodput;
use shallows_model::topology::{Fabric, Node};
use shallows_model::{HostId, Id as _, LinkId};
use shallows_results::ports::LinkRole;
use shallows_results::probes::{
    GoodputSample, PingSample, QueueSample, Sample, SampleWriter, ThroughputSample,
};
use shallows_results::{ResultsError, RunRecord};

use crate::measurements::Measurements;
use crate::plan::RunPlan;
use crate::ports::{overhead, ports};
use crate::scenario::{self, Probes};

/// Adds the tables of the scenario's probes and of pings to the record, and the ports that they are
/// about. Times of the measurements are those of the plan.
pub fn add_tables(
    record: &mut RunRecord,
    measurements: &Measurements,
    plan: &RunPlan,
) -> Result<(), ResultsError> {
    record.ports = ports(&plan.fabric);
    let Probes {
        queues,
        throughput,
        goodput,
        // Refused, or ignored by consent.
        watch: _,
        flows: _,
        // Sent, and measured below.
        pings: _,
    } = &plan.probes;
    let sampled = |sampled| Sampled::new(measurements, sampled, &plan.fabric);
    if let Some(probe) = queues {
        add(record, sampled(probe).queues())?;
    }
    if let Some(probe) = throughput {
        add(record, sampled(probe).throughput(plan))?;
    }
    if let Some(probe) = goodput {
        let mut ticks = probe.ticks();
        let mut goodput = measurements.goodput.clone();
        goodput.rows.retain(|(time, _)| ticks.has_passed(*time));
        add_goodput(record, &goodput)?;
    }
    let probes = (0..).zip(&measurements.pings);
    let pings = probes.flat_map(|(probe, pings)| {
        pings.iter().map(move |ping| PingSample {
            time: ping.sent,
            probe,
            rtt: ping.rtt,
        })
    });
    if !measurements.pings.is_empty() {
        add(record, pings)?;
    }
    Ok(())
}

/// Adds bytes that arrived over time to the record.
fn add_goodput(record: &mut RunRecord, goodput: &Goodput) -> Result<(), ResultsError> {
    let rows = goodput.rows.iter();
    let samples = rows.flat_map(|(time, bytes)| {
        let services = goodput.dscps.iter().zip(bytes);
        services.map(|(&dscp, &bytes)| GoodputSample {
            time: *time,
            service: dscp.into(),
            bytes,
        })
    });
    add(record, samples)
}

fn add<S: Sample>(
    record: &mut RunRecord,
    samples: impl Iterator<Item = S>,
) -> Result<(), ResultsError> {
    let mut writer = SampleWriter::in_memory();
    for sample in samples {
        writer.write(&sample)?;
    }
    if let Some(table) = writer.finish()? {
        record.insert(S::FILE, table);
    }
    Ok(())
}

/// The samples of a probe: the rows of the switch's at its interval, and the columns of its links.
struct Sampled<'a> {
    samples: &'a Samples,
    /// The first row of the first interval, if it does not begin with the run.
    begin: Option<usize>,
    rows: Vec<usize>,
    /// Column, link and queue.
    columns: Vec<(usize, LinkId, u32)>,
}

impl<'a> Sampled<'a> {
    fn new(measured: &'a Measurements, probe: &scenario::Sampled<LinkId>, fabric: &Fabric) -> Self {
        let (samples, end) = (&measured.queues, measured.duration);
        let wanted = probe.of.iter().copied();
        let numbers: BTreeMap<String, LinkId> = wanted
            .map(|number| (switch_link_name(fabric, number), number))
            .collect();
        let columns = samples.columns.iter().enumerate();
        let column = |(column, (link, queue)): (usize, &(String, usize))| {
            Some((column, *numbers.get(link)?, *queue as u32))
        };
        let mut ticks = probe.ticks();
        let begin = samples.times.iter().position(|time| *time >= probe.start);
        let times = samples.times.iter().enumerate();
        let is_row = |(_, time): &(usize, &Time)| **time <= end && ticks.has_passed(**time);
        Self {
            samples,
            begin: begin.filter(|_| probe.start > Time::ZERO),
            rows: times.filter(is_row).map(|(row, _)| row).collect(),
            columns: columns.filter_map(column).collect(),
        }
    }

    fn queues(self) -> impl Iterator<Item = QueueSample> {
        let (samples, width) = (self.samples, self.samples.columns.len());
        let columns = self.columns;
        self.rows.into_iter().flat_map(move |row| {
            let sample = |&(column, link, queue): &(usize, LinkId, u32)| {
                let cell = row * width + column;
                QueueSample {
                    time: samples.times[row],
                    port: link.0,
                    queue,
                    bytes: samples.bytes[cell].into(),
                    packets: samples.packets[cell],
                    threshold: Some(f64::from(samples.thresholds[cell])).filter(|of| !of.is_nan()),
                }
            };
            columns.iter().map(sample).collect::<Vec<_>>()
        })
    }

    /// Bytes on the wire from one row to the next, as the probe of a simulation counts them.
    fn throughput(self, plan: &RunPlan) -> impl Iterator<Item = ThroughputSample> {
        let (samples, width) = (self.samples, self.samples.columns.len());
        let sent = |row: usize, (column, link, _): (usize, LinkId, u32)| {
            let config = plan.ports.config(&plan.fabric, link);
            let cell = row * width + column;
            samples.sent[cell] + samples.sent_packets[cell] * u64::from(overhead(config))
        };
        let mut before = self.begin;
        let mut all = Vec::new();
        for row in self.rows {
            let time = samples.times[row];
            let since = before.map_or(Time::ZERO, |before| samples.times[before]);
            all.extend(self.columns.iter().map(|&of| ThroughputSample {
                time,
                interval: time - since,
                port: of.1.0,
                queue: of.2,
                bytes: sent(row, of) - before.map_or(0, |before| sent(before, of)),
                rate: plan.fabric.link(of.1).rate,
            }));
            before = Some(row);
        }
        all.into_iter()
    }
}

/// Roles of links, by their names in the live switch.
pub fn roles(fabric: &Fabric) -> BTreeMap<String, LinkRole> {
    let links = fabric.links().ids().zip(ports(fabric));
    links
        .map(|(number, port)| (switch_link_name(fabric, number), port.role))
        .collect()
}

/// Name of a link in the live switch.
pub fn switch_link_name(fabric: &Fabric, link: LinkId) -> String {
    let link = fabric.link(link);
    let device = |host: HostId| lab::port(host.index());
    match (link.from, link.to) {
        (_, Node::Host(host)) => LinkName::Port(&device(host)).to_string(),
        (Node::Host(host), Node::Switch(_)) => LinkName::Uplink(&device(host)).to_string(),
        (Node::Switch(from), Node::Switch(to)) => {
            let (from, to) = (from as usize, to as usize);
            LinkName::Trunk { from, to }.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    /// 25 Mbps at a fifth of the rate for 1.2 s are 125 Mbps; another port has more.
    #[test]
    fn throughput_is_recorded_at_the_scale_of_the_scenario() {
        let text = r#"
            until = "240ms"
            topology.star = { hosts = 2, rate = "1Gbps", delay = "5us" }
            ports.switch = { buffer = "unlimited", scheduler = "fifo" }
            workload.long-lived = [{ src = 0, dst = 1 }]
            probes.throughput = { links = "*->h1", start = "40ms", interval = "50ms" }
        "#;
        let plan = text.parse::<Scenario>().unwrap().build().unwrap();
        let column = |host| (lab::port(host), 0);
        let measurements = Measurements {
            queues: Samples {
                columns: vec![column(1), column(0)],
                times: (0..=1200).map(Time::from_ms).collect(),
                sent: (0..=1200).flat_map(|ms| [3_125 * ms, 9_999 * ms]).collect(),
                sent_packets: vec![0; 2402],
                ..Samples::default()
            },
            duration: Time::from_ms(1200),
            ..Measurements::default()
        };
        let scaled = measurements.scaled(0.2);
        let probes = plan.probes.throughput.as_ref().unwrap();
        let sampled = Sampled::new(&scaled, probes, &plan.fabric);
        let samples: Vec<ThroughputSample> = sampled.throughput(&plan).collect();
        // From 40 ms on: 90, 140, 190, 240.
        let ends: Vec<Time> = samples.iter().map(|sample| sample.time).collect();
        assert_eq!(ends, [90, 140, 190, 240].map(Time::from_ms));
        for sample in samples {
            assert_eq!(sample.throughput_bps(), 125e6, "{sample:?}");
        }
    }
}
