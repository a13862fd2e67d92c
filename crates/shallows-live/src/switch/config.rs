use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;

use serde::{Deserialize, Serialize};
use shallows_core::host::{GateError, HostGateConfig};
use shallows_core::port::{self, PortConfig};
use shallows_core::units::{Bytes, Rate, Time};
use thiserror::Error;

use super::{LinkName, Position};
use crate::frame::Mac;
use crate::io::{IoError, IoKind};

/// A switch, as written in its file.
///
/// ```
/// use shallows_live::switch::SwitchConfig;
///
/// let config: SwitchConfig = toml::from_str(
///     r#"
///     cpu = 1
///     [egress]
///     queues = 2
///     buffer = { shared = { size = "96KB" } }
///     scheduler = { dwrr = { quantum = "1500B" } }
///     marker = { scheme = { mq-ecn = { threshold = "32KB" } } }
///     framing = "ethernet"
///
///     [[port]]
///     device = "eth1"
///     rate = "200Mbps"
///
///     [[port]]
///     device = "eth2"
///     rate = "200Mbps"
///     "#,
/// )?;
/// assert_eq!(config.ports.len(), 2);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SwitchConfig {
    /// The CPU that the switch keeps to, which should have nothing else to do.
    pub cpu: Option<usize>,
    /// Its niceness: -20 is the most urgent.
    pub nice: Option<i32>,
    /// Behaviour when there is nothing to do.
    #[serde(default)]
    pub wait: Wait,
    /// Source of the stations' places.
    #[serde(default)]
    pub forwarding: Forwarding,
    /// Addresses that it learns at one port. More displace those that were silent for longest.
    #[serde(default = "stations_per_port")]
    pub stations_per_port: NonZeroUsize,
    /// Field that classifiers see as DSCP.
    #[serde(default)]
    pub classify: Classify,
    /// Seed of random marking.
    #[serde(default)]
    pub seed: u64,
    /// Address that serves `/metrics` for Prometheus and `/status`, to everybody who reaches it.
    pub metrics: Option<SocketAddr>,
    /// Limits of lateness.
    #[serde(default)]
    pub fidelity: FidelityConfig,
    /// Samples of queue lengths, for reports.
    pub sample: Option<SampleConfig>,
    /// Memory that the ports of a bridge share, for buffers that do.
    pub pool: Option<Bytes>,
    /// The egress of ports that have none of their own.
    pub egress: PortConfig,
    /// The ports.
    #[serde(rename = "port")]
    pub ports: Vec<PortPlan>,
    /// Links between bridges, if there is more than one in this switch.
    #[serde(default, rename = "trunk")]
    pub trunks: Vec<TrunkPlan>,
}

/// Addresses that a switch learns at one port, unless its file says otherwise.
pub const STATIONS_PER_PORT: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

fn stations_per_port() -> NonZeroUsize {
    STATIONS_PER_PORT
}

/// Delays beyond this are refused, as in scenarios.
const LONGEST_DELAY: Time = Time::from_secs(60);

/// One port: a device and the link behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PortPlan {
    /// The network device.
    pub device: String,
    /// Kind of I/O of the device.
    #[serde(default)]
    pub io: IoKind,
    /// Rate of the link.
    pub rate: Rate,
    /// Propagation delay that is added to frames leaving here.
    #[serde(default)]
    pub delay: Time,
    /// The bridge that it belongs to; bridges are numbered from 0.
    #[serde(default)]
    pub bridge: usize,
    /// Its egress, if not that of the switch.
    pub egress: Option<PortConfig>,
    /// The other direction of the link, if it is to be modelled: frames from the device then reach
    /// the bridge one after the other at this rate.
    pub uplink: Option<UplinkPlan>,
    /// Addresses behind it, for static forwarding.
    #[serde(default)]
    pub stations: Vec<String>,
}

/// The direction towards the switch of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UplinkPlan {
    /// Its rate.
    pub rate: Rate,
    /// Its propagation delay.
    #[serde(default)]
    pub delay: Time,
    /// The port of the host.
    pub egress: PortConfig,
    /// Gates of the host before that port, in the order in which frames pass them.
    #[serde(default)]
    pub gates: Vec<HostGateConfig>,
}

/// A link between two bridges of this switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrunkPlan {
    /// The two bridges.
    pub between: [usize; 2],
    /// Rate of each direction.
    pub rate: Rate,
    /// Delay of each direction.
    #[serde(default)]
    pub delay: Time,
    /// Egress at both ends, if not that of the switch.
    pub egress: Option<PortConfig>,
}

/// Behaviour of the switch when there is nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// It looks again at once: exact, and takes a whole CPU.
    #[default]
    Poll,
    /// It sleeps until a frame comes in or is due: for laptops, and up to some 100 Mbps.
    Block,
}

/// Source of the stations' places in a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// From the sources of frames; what is unknown goes everywhere.
    #[default]
    Learning,
    /// From the ports' `stations`; what is unknown is dropped, groups go everywhere.
    Static,
}

/// Field that classifiers see as DSCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Classify {
    /// The DSCP field of IP packets; 0 for other frames.
    #[default]
    Dscp,
    /// The priority in VLAN tags; 0 for untagged frames.
    Pcp,
}

/// Limits beyond which a run is not faithful: more than `share` of the frames later than `late`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FidelityConfig {
    /// Lateness beyond which a frame counts as late.
    pub late: Time,
    /// Greatest share of late frames, as a fraction.
    pub share: f64,
    /// Number of frames needed for a verdict.
    pub least: u64,
}

impl Default for FidelityConfig {
    fn default() -> Self {
        Self {
            late: Time::from_us(100),
            share: 0.01,
            least: 0,
        }
    }
}

/// Samples of queue lengths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SampleConfig {
    /// Interval between samples.
    pub every: Time,
}

/// Returns whether the machine has a CPU of this number.
fn has_cpu(cpu: usize) -> bool {
    Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists()
}

/// The reason why a switch cannot be built.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// The file is not what a switch's file is.
    #[error(transparent)]
    Syntax(#[from] toml::de::Error),
    /// A switch needs ports.
    #[error("the switch has no ports: write [[port]] with a device and a rate for each")]
    NoPorts,
    /// The machine has fewer CPUs.
    #[error(
        "there is no CPU {0} to keep to: /sys/devices/system/cpu/online has those that there are"
    )]
    NoCpu(usize),
    /// Two ports name one device.
    #[error("the device {0} is given twice")]
    TwiceTheDevice(String),
    /// An egress port cannot be built.
    #[error("{of}: {error}")]
    Port {
        /// Name of the port.
        of: String,
        /// The reason.
        error: port::ConfigError,
    },
    /// A host's gate cannot be built.
    #[error("{of}: {error}")]
    Gate {
        /// The host's port.
        of: String,
        /// The reason.
        error: GateError,
    },
    /// An address does not read as one.
    #[error("{0}")]
    Station(String),
    /// Trunks must join the bridges as a tree.
    #[error(
        "bridges and trunks must form a tree, so that frames cannot circle: {bridges} bridges need \
         {} trunks between different ones, each reachable", .bridges - 1
    )]
    NoTree {
        /// Number of bridges.
        bridges: usize,
    },
    /// A delay that no link has.
    #[error("{of}: delay is {delay}, it can be at most {LONGEST_DELAY}")]
    Delay {
        /// Name of the port or trunk.
        of: String,
        /// The delay.
        delay: Time,
    },
    /// A share that is none.
    #[error("fidelity.share is a fraction: it must be from 0 to 1")]
    Share,
    /// A period that is none.
    #[error("sample.every must not be zero")]
    Period,
    /// A coordinator before a link that is not there.
    #[error("there is no link for a coordinator at {0:?}")]
    NoLink(Position),
    /// A device cannot be used.
    #[error(transparent)]
    Io(#[from] IoError),
}

impl SwitchConfig {
    /// Reads a switch's file.
    pub fn parse(text: &str) -> Result<Self, SwitchError> {
        Ok(toml::from_str(text)?)
    }

    /// Refuses what is wrong before any device is touched.
    pub(super) fn check(&self) -> Result<(), SwitchError> {
        if self.ports.is_empty() {
            return Err(SwitchError::NoPorts);
        }
        if self.bridges() != self.trunks.len() + 1 {
            return Err(SwitchError::NoTree {
                bridges: self.bridges(),
            });
        }
        for (index, port) in self.ports.iter().enumerate() {
            let same = |other: &PortPlan| other.device == port.device;
            if self.ports[..index].iter().any(same) {
                return Err(SwitchError::TwiceTheDevice(port.device.clone()));
            }
        }
        self.check_delays()?;
        if !(0.0..=1.0).contains(&self.fidelity.share) {
            return Err(SwitchError::Share);
        }
        if self.sample.is_some_and(|sample| sample.every == Time::ZERO) {
            return Err(SwitchError::Period);
        }
        match self.cpu {
            Some(cpu) if !has_cpu(cpu) => Err(SwitchError::NoCpu(cpu)),
            _ => Ok(()),
        }
    }

    fn check_delays(&self) -> Result<(), SwitchError> {
        let ports = self.ports.iter().flat_map(|port| {
            let uplink = port
                .uplink
                .as_ref()
                .map_or(Time::ZERO, |uplink| uplink.delay);
            [port.delay, uplink].map(|delay| (port.device.clone(), delay))
        });
        let trunks = self.trunks.iter().map(|trunk| {
            let [from, to] = trunk.between;
            (LinkName::Trunk { from, to }.to_string(), trunk.delay)
        });
        match ports
            .chain(trunks)
            .find(|(_, delay)| *delay > LONGEST_DELAY)
        {
            Some((of, delay)) => Err(SwitchError::Delay { of, delay }),
            None => Ok(()),
        }
    }

    /// Number of bridges: as many as are named.
    pub(super) fn bridges(&self) -> usize {
        let of_ports = self.ports.iter().map(|port| port.bridge);
        let of_trunks = self.trunks.iter().flat_map(|trunk| trunk.between);
        of_ports.chain(of_trunks).max().map_or(1, |last| last + 1)
    }
}

impl PortPlan {
    /// A port of a device with a link of this rate, and the defaults for the rest.
    pub fn new(device: impl Into<String>, rate: Rate) -> Self {
        Self {
            device: device.into(),
            io: IoKind::default(),
            rate,
            delay: Time::ZERO,
            bridge: 0,
            egress: None,
            uplink: None,
            stations: Vec::new(),
        }
    }

    pub(super) fn macs(&self) -> Result<Vec<Mac>, SwitchError> {
        let macs = self.stations.iter().map(|text| text.parse());
        macs.collect::<Result<_, _>>().map_err(SwitchError::Station)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On its clock such a delay would be none.
    #[test]
    fn delays_that_no_link_has_are_refused() {
        let text = |delay: &str| {
            format!(
                "egress = {{ buffer = 'unlimited', scheduler = 'fifo' }}
                 [[port]]\ndevice = 'a'\nrate = '1Gbps'\ndelay = '{delay}'"
            )
        };
        let check = |delay| SwitchConfig::parse(&text(delay)).unwrap().check();
        assert!(check("60s").is_ok());
        let error = check("18446744s").unwrap_err().to_string();
        assert_eq!(error, "a: delay is 18446744s, it can be at most 60s");
    }
}
