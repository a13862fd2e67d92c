//! The ports of a run and their counters: `ports.csv`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use shallows_core::units::{Rate, Time};

use crate::ResultsError;
use crate::file::{open_regular, read_named, write_whole};

/// The name of the file.
pub const FILE: &str = "ports.csv";

/// Role of a link: the kinds of nodes that it joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkRole {
    /// From a host to its switch.
    HostUp,
    /// From a switch to a host.
    HostDown,
    /// Between switches.
    Core,
}

/// A port and the link that it sends on.
#[derive(Debug, Clone, PartialEq)]
pub struct PortRecord {
    /// The name of the link, such as `leaf0->h3`.
    pub name: String,
    /// Role of the link.
    pub role: LinkRole,
    /// The rate of the link.
    pub rate: Rate,
    /// Counters over the whole run; `None` in live runs, whose switch reports them by metrics.
    pub counters: Option<PortCounters>,
}

/// Counters of a port over a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PortCounters {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, on the wire.
    pub bytes: u64,
    /// Share of the link's rate that those bytes are.
    pub utilisation: f64,
    /// Largest number of bytes queued at once.
    pub peak_bytes: u64,
    /// Packets marked.
    pub marks: u64,
    /// Packets dropped, evicted ones included.
    pub drops: u64,
    /// Pause frames that stopped the port or a queue of it.
    pub pauses: u64,
    /// Time with a queue stopped.
    pub paused: Time,
}

/// A row of the file.
#[derive(Serialize, Deserialize)]
struct Row {
    port: u32,
    name: String,
    role: LinkRole,
    rate_bps: u64,
    #[serde(default)]
    packets: Option<u64>,
    #[serde(default)]
    bytes: Option<u64>,
    #[serde(default)]
    utilisation: Option<f64>,
    #[serde(default)]
    peak_bytes: Option<u64>,
    #[serde(default)]
    marks: Option<u64>,
    #[serde(default)]
    drops: Option<u64>,
    #[serde(default)]
    pauses: Option<u64>,
    #[serde(default)]
    paused_us: Option<f64>,
}

impl Row {
    fn new(number: u32, port: &PortRecord) -> Self {
        let of = port.counters;
        Self {
            port: number,
            name: port.name.clone(),
            role: port.role,
            rate_bps: port.rate.bps(),
            packets: of.map(|of| of.packets),
            bytes: of.map(|of| of.bytes),
            utilisation: of.map(|of| of.utilisation),
            peak_bytes: of.map(|of| of.peak_bytes),
            marks: of.map(|of| of.marks),
            drops: of.map(|of| of.drops),
            pauses: of.map(|of| of.pauses),
            paused_us: of.map(|of| of.paused.ps() as f64 / 1e6),
        }
    }

    /// Counters of the port; tables of earlier versions have none.
    fn counters(&self) -> Option<PortCounters> {
        Some(PortCounters {
            packets: self.packets?,
            bytes: self.bytes?,
            utilisation: self.utilisation?,
            peak_bytes: self.peak_bytes?,
            marks: self.marks?,
            drops: self.drops?,
            pauses: self.pauses?,
            paused: Time::from_ps((self.paused_us? * 1e6).round() as u64),
        })
    }
}

/// Writes the ports of a run, in the order of their numbers.
pub fn write_ports(directory: &Path, ports: &[PortRecord]) -> Result<(), ResultsError> {
    write_whole(&directory.join(FILE), |file| {
        let mut writer = csv::Writer::from_writer(file);
        for (number, port) in (0..).zip(ports) {
            writer.serialize(Row::new(number, port))?;
        }
        writer.flush()?;
        Ok(())
    })
}

/// Reads the ports of a run.
pub fn read_ports(directory: &Path) -> Result<Vec<PortRecord>, ResultsError> {
    let path = directory.join(FILE);
    read_named(&path, || {
        let mut reader = csv::Reader::from_reader(open_regular(&path)?);
        let mut ports = Vec::new();
        for row in reader.deserialize::<Row>() {
            let row = row?;
            ports.push(PortRecord {
                counters: row.counters(),
                name: row.name,
                role: row.role,
                rate: Rate::from_bps(row.rate_bps),
            });
        }
        Ok(ports)
    })
}
