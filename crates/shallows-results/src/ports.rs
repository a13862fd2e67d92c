//! What the numbers of ports stand for: `ports.csv`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use shallows_core::units::Rate;

use crate::ResultsError;
use crate::file::{read_named, write_whole};

/// The name of the file.
pub const FILE: &str = "ports.csv";

/// What a link joins.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRecord {
    /// The name of the link, such as `leaf0->h3`.
    pub name: String,
    /// What the link joins.
    pub role: LinkRole,
    /// The rate of the link.
    pub rate: Rate,
}

/// A row of the file.
#[derive(Serialize, Deserialize)]
struct Row {
    port: u32,
    name: String,
    role: LinkRole,
    rate_bps: u64,
}

/// Writes the ports of a run, in the order of their numbers.
pub fn write_ports(directory: &Path, ports: &[PortRecord]) -> Result<(), ResultsError> {
    write_whole(&directory.join(FILE), |file| {
        let mut writer = csv::Writer::from_writer(file);
        for (number, port) in (0..).zip(ports) {
            writer.serialize(Row {
                port: number,
                name: port.name.clone(),
                role: port.role,
                rate_bps: port.rate.bps(),
            })?;
        }
        writer.flush()?;
        Ok(())
    })
}

/// Reads the ports of a run.
pub fn read_ports(directory: &Path) -> Result<Vec<PortRecord>, ResultsError> {
    let path = directory.join(FILE);
    read_named(&path, || {
        let mut reader = csv::Reader::from_path(&path)?;
        let mut ports = Vec::new();
        for row in reader.deserialize::<Row>() {
            let row = row?;
            ports.push(PortRecord {
                name: row.name,
                role: row.role,
                rate: Rate::from_bps(row.rate_bps),
            });
        }
        Ok(ports)
    })
}
