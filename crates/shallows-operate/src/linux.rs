//! Ports and transports of a scenario as commands for Linux: `tc`, `sysctl` and `ip route`.
//!
//! | scenario | Linux | |
//! |---|---|---|
//! | `strict` | `prio` | exact |
//! | `dwrr`, `strict-over` | `ets` | exact |
//! | `wrr`, `wfq` | `ets` | its rounds carry deficits over |
//! | a threshold in bytes | `red` with max = min + 1 | RED averages, with a weight of one half at least |
//! | `tcn` | `fq_codel flows 1 ce_threshold` | exact |
//! | `shaper` | `tbf` | exact |

mod leaf;
mod transport;

use shallows_core::port::scheduler::RoundRobinConfig;
use shallows_core::port::{ClassifierConfig, ConfigError, PortConfig, SchedulerConfig};
use shallows_core::units::{Bytes, Rate};
use thiserror::Error;

use crate::sonic::Fidelity;
pub use transport::transport;

/// Most bands of `prio` and `ets`.
const MOST_BANDS: usize = 16;

/// A command, and how near it is to the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The words, for a shell; nothing where Linux has no equal.
    pub words: Option<String>,
    /// Fidelity of the command.
    pub fidelity: Fidelity,
    /// The reason, in a sentence.
    pub says: String,
}

impl Command {
    fn new(words: impl Into<String>, fidelity: Fidelity, says: impl Into<String>) -> Self {
        Self {
            words: Some(words.into()),
            fidelity,
            says: says.into(),
        }
    }

    fn missing(says: impl Into<String>) -> Self {
        Self {
            words: None,
            fidelity: Fidelity::Missing,
            says: says.into(),
        }
    }
}

/// The reason why a port has no commands.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinuxError {
    /// More queues than a qdisc has bands.
    #[error("the port has {0} queues; prio and ets have 2 to {MOST_BANDS} bands")]
    Bands(usize),
    /// The name of a device that no device can have.
    #[error("{0:?} is not the name of a device")]
    Device(String),
    /// The port itself cannot be built.
    #[error("the scenario's port: {0}")]
    Port(#[from] ConfigError),
}

/// The commands that make a device send like a port of this rate.
pub fn qdiscs(port: &PortConfig, rate: Rate, device: &str) -> Result<Vec<Command>, LinuxError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    if device.is_empty() || device.len() > 15 || !device.chars().all(is_plain) {
        return Err(LinuxError::Device(device.to_owned()));
    }
    if port.queues == 0 || port.queues > MOST_BANDS {
        return Err(LinuxError::Bands(port.queues));
    }
    let mut commands = Vec::new();
    let mut parent = "root";
    if let Some(shaper) = port.shaper {
        let words = format!(
            "tc qdisc replace dev {device} root handle 8000: tbf rate {}bit burst {} limit {}",
            shaper.rate.bps(),
            shaper.bucket.get(),
            leaf::DEFAULT_LIMIT
        );
        let says = "tbf is the same token bucket; its limit is that of what waits below it";
        commands.push(Command::new(words, Fidelity::Exact, says));
        parent = "parent 8000:1";
    }
    let scheduled = port.queues > 1;
    if scheduled {
        commands.push(scheduler(port, device, parent)?);
    }
    for queue in 0..port.queues {
        let place = if scheduled {
            format!("parent 1:{:x} handle {:x}:", queue + 1, 0x10 + queue)
        } else {
            parent.to_owned()
        };
        commands.push(leaf::leaf(
            port,
            rate,
            queue,
            &format!("dev {device} {place}"),
        )?);
    }
    if scheduled {
        commands.extend(filters(port, device));
    }
    Ok(commands)
}

fn scheduler(port: &PortConfig, device: &str, parent: &str) -> Result<Command, LinuxError> {
    use Fidelity::{Exact, Nearest};
    let bands = port.queues;
    let replace = format!("tc qdisc replace dev {device} {parent} handle 1:");
    // Packets that no filter knows.
    let band = band_of(port, 0).unwrap_or(0).to_string();
    let priomap = vec![band; 16].join(" ");
    let ets = |strict: usize, quanta: &[u64], fidelity, says: &str| {
        let quanta: Vec<String> = quanta.iter().map(u64::to_string).collect();
        let mut words = format!("{replace} ets bands {bands}");
        if strict > 0 {
            words = format!("{words} strict {strict}");
        }
        let words = format!("{words} quanta {} priomap {priomap}", quanta.join(" "));
        Command::new(words, fidelity, says)
    };
    let bytes = |quantum: &shallows_core::port::PerIndex<Bytes>| {
        let each = quantum.each("quantum", bands)?;
        Ok::<Vec<u64>, ConfigError>(each.into_iter().map(Bytes::get).collect())
    };
    let carries = "ets carries what a round leaves over, which WRR does not";
    let rounds = "ets serves by deficit round robin, with these bytes per round";
    Ok(match &port.scheduler {
        SchedulerConfig::Fifo | SchedulerConfig::Strict => {
            let words = format!("{replace} prio bands {bands} priomap {priomap}");
            Command::new(words, Exact, "band 0 is served first")
        }
        SchedulerConfig::Dwrr { quantum } => ets(0, &bytes(quantum)?, Exact, rounds),
        SchedulerConfig::Wrr { quantum } => ets(0, &bytes(quantum)?, Nearest, carries),
        SchedulerConfig::Wfq { weight } => {
            let weights = weight.each("weight", bands)?;
            let packet = port.packet.get();
            let quanta: Vec<u64> = weights.iter().map(|w| u64::from(*w) * packet).collect();
            let says = "ets shares by the same weights, in rounds of packets";
            ets(0, &quanta, Nearest, says)
        }
        SchedulerConfig::StrictOver {
            strict,
            rest,
            quantum,
        } => {
            let quanta = bytes(quantum)?;
            let (fidelity, says) = match rest {
                RoundRobinConfig::Dwrr => (Exact, rounds),
                RoundRobinConfig::Wrr => (Nearest, carries),
            };
            ets(*strict, &quanta[(*strict).min(bands)..], fidelity, says)
        }
        SchedulerConfig::Pfabric | SchedulerConfig::PushOut | SchedulerConfig::Custom(_) => {
            let words = format!("{replace} prio bands {bands} priomap {priomap}");
            let says = "Linux has no such scheduler; prio serves band 0 first";
            Command::new(words, Nearest, says)
        }
    })
}

/// The band of a DSCP, if the classifier goes by it.
fn band_of(port: &PortConfig, dscp: u8) -> Option<usize> {
    match &port.classifier {
        ClassifierConfig::Dscp => Some(usize::from(dscp).min(port.queues - 1)),
        ClassifierConfig::DscpMap { map, other } => {
            let band = usize::from(*map.get(usize::from(dscp)).unwrap_or(other));
            Some(band.min(port.queues - 1))
        }
        ClassifierConfig::FlowHash | ClassifierConfig::SizeClass(_) => None,
    }
}

/// Filters by DSCP, for those that do not go where unknown packets go.
fn filters(port: &PortConfig, device: &str) -> Vec<Command> {
    let Some(default) = band_of(port, 0) else {
        let says = "no filter chooses bands by flow or size as the scenario does";
        return vec![Command::missing(says)];
    };
    let mut commands = Vec::new();
    for dscp in 0..64_u8 {
        let Some(band) = band_of(port, dscp).filter(|&band| band != default) else {
            continue;
        };
        for (preference, protocol) in [(1, "ip"), (2, "ipv6")] {
            let words = format!(
                "tc filter add dev {device} parent 1: protocol {protocol} pref {preference} flower ip_tos {:#04x}/0xfc classid 1:{:x}",
                dscp << 2,
                band + 1
            );
            let says = format!("DSCP {dscp} joins band {band}");
            commands.push(Command::new(words, Fidelity::Exact, says));
        }
    }
    commands
}
