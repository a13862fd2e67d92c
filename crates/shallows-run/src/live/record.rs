//! Time series of a live run, in the tables of a simulated one.

use std::collections::BTreeMap;

use shallows_live::experiment::Observed;
use shallows_live::lab;
use shallows_live::traffic::Goodput;
use shallows_model::topology::{Fabric, Node};
use shallows_results::ports::LinkRole;
use shallows_results::probes::{GoodputSample, PingSample, QueueSample, Sample, SampleWriter};
use shallows_results::{ResultsError, RunRecord};

use crate::plan::RunPlan;
use crate::recorder::ports;

use crate::measurements::Measurements;

/// Adds queues, goodput and pings to the record, and the ports that they are about.
pub(super) fn add_tables(
    record: &mut RunRecord,
    observed: &Observed,
    plan: &RunPlan,
) -> Result<(), ResultsError> {
    record.ports = ports(&plan.fabric);
    add(record, queues(observed, &plan.fabric))?;
    add_goodput(record, &observed.goodput)?;
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

fn queues(observed: &Observed, fabric: &Fabric) -> impl Iterator<Item = QueueSample> {
    let samples = Measurements::of(observed, fabric).queues;
    let links = (0..).zip(fabric.links());
    let numbers: BTreeMap<String, u32> = links
        .map(|(number, _)| (link_name(fabric, number), number))
        .collect();
    let width = samples.columns.len();
    (0..samples.times.len() * width).filter_map(move |cell| {
        let (link, queue) = &samples.columns[cell % width];
        Some(QueueSample {
            time: samples.times[cell / width],
            port: *numbers.get(link)?,
            queue: *queue as u32,
            bytes: samples.bytes[cell].into(),
            packets: samples.packets[cell],
            threshold: Some(f64::from(samples.thresholds[cell])).filter(|of| !of.is_nan()),
        })
    })
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
