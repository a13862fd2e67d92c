//! Time series of a live run, in the tables of a simulated one.

use std::collections::BTreeMap;

use shallows_core::units::Time;
use shallows_live::experiment::Observed;
use shallows_live::lab;
use shallows_live::switch::Samples;
use shallows_live::traffic::Goodput;
use shallows_model::topology::{Fabric, Node};
use shallows_results::ports::LinkRole;
use shallows_results::probes::{
    GoodputSample, PingSample, QueueSample, Sample, SampleWriter, ThroughputSample,
};
use shallows_results::{ResultsError, RunRecord};

use crate::driver::Ticks;
use crate::measurements::Measurements;
use crate::plan::RunPlan;
use crate::ports::{overhead, ports};
use crate::scenario::{self, Probes};

/// Adds the tables of the scenario's probes and of pings to the record, and the ports that they are
/// about.
pub(super) fn add_tables(
    record: &mut RunRecord,
    observed: &Observed,
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
    } = &plan.probes;
    let samples = Measurements::of(observed, &plan.fabric).queues;
    let sampled = |sampled| Sampled::new(&samples, sampled, (&plan.fabric, observed.duration));
    if let Some(probe) = queues {
        add(record, sampled(probe).queues())?;
    }
    if let Some(probe) = throughput {
        add(record, sampled(probe).throughput(plan))?;
    }
    if let Some(probe) = goodput {
        let mut ticks = Ticks::new(probe.interval, probe.interval);
        let mut goodput = observed.goodput.clone();
        goodput.rows.retain(|(time, _)| ticks.has_passed(*time));
        add_goodput(record, &goodput)?;
    }
    let probes = (0..).zip(&observed.pings);
    let pings = probes.flat_map(|(probe, pings)| {
        pings.iter().map(move |ping| PingSample {
            time: ping.sent,
            probe,
            rtt: ping.rtt,
        })
    });
    if !observed.pings.is_empty() {
        add(record, pings)?;
    }
    Ok(())
}

/// Adds bytes that arrived over time to the record.
pub fn add_goodput(record: &mut RunRecord, goodput: &Goodput) -> Result<(), ResultsError> {
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
    rows: Vec<usize>,
    /// Column, link and queue.
    columns: Vec<(usize, u32, u32)>,
}

impl<'a> Sampled<'a> {
    fn new(
        samples: &'a Samples,
        probe: &scenario::Sampled,
        (fabric, end): (&Fabric, Time),
    ) -> Self {
        let wanted = probe.of.iter().copied();
        let numbers: BTreeMap<String, u32> = wanted
            .map(|number| (link_name(fabric, number), number))
            .collect();
        let columns = samples.columns.iter().enumerate();
        let column = |(column, (link, queue)): (usize, &(String, usize))| {
            Some((column, *numbers.get(link)?, *queue as u32))
        };
        let mut ticks = Ticks::new(probe.interval, probe.interval);
        let times = samples.times.iter().enumerate();
        let is_row = |(_, time): &(usize, &Time)| **time <= end && ticks.has_passed(**time);
        Self {
            samples,
            rows: times.filter(is_row).map(|(row, _)| row).collect(),
            columns: columns.filter_map(column).collect(),
        }
    }

    fn queues(self) -> impl Iterator<Item = QueueSample> {
        let (samples, width) = (self.samples, self.samples.columns.len());
        let columns = self.columns;
        self.rows.into_iter().flat_map(move |row| {
            let sample = |&(column, port, queue): &(usize, u32, u32)| {
                let cell = row * width + column;
                QueueSample {
                    time: samples.times[row],
                    port,
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
        let mut before = (Time::ZERO, vec![0; self.columns.len()]);
        let mut all = Vec::new();
        for row in self.rows {
            let time = samples.times[row];
            for (&(column, port, queue), before_bytes) in self.columns.iter().zip(&mut before.1) {
                let config = plan.ports.config(&plan.fabric, port);
                let cell = row * width + column;
                let sent =
                    samples.sent[cell] + samples.sent_packets[cell] * u64::from(overhead(config));
                all.push(ThroughputSample {
                    time,
                    interval: time - before.0,
                    port,
                    queue,
                    bytes: sent - *before_bytes,
                    rate: plan.fabric.link(port).rate,
                });
                *before_bytes = sent;
            }
            before.0 = time;
        }
        all.into_iter()
    }
}

/// Roles of links, by their names in the live switch.
pub fn roles(fabric: &Fabric) -> BTreeMap<String, LinkRole> {
    let links = (0..).zip(ports(fabric));
    links
        .map(|(number, port)| (link_name(fabric, number), port.role))
        .collect()
}

/// Name of a link in the live switch.
pub fn link_name(fabric: &Fabric, link: u32) -> String {
    let link = fabric.link(link);
    match (link.from, link.to) {
        (_, Node::Host(host)) => lab::port(host as usize),
        (Node::Switch(from), Node::Switch(to)) => format!("trunk {from}-{to}"),
        (Node::Host(host), Node::Switch(_)) => format!("{} uplink", lab::port(host as usize)),
    }
}
