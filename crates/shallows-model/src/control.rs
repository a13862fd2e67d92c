//! Transport of control messages.

use shallows_core::units::Time;
use thiserror::Error;

/// The path of control messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// As packets of the fabric, which queue and can be lost. They enter the NIC past the gates of
    /// their host.
    Fabric {
        /// The DSCP field of the packets.
        dscp: u8,
        /// Bytes of headers in front of a message.
        header: u16,
    },
    /// Out of band, all with the same delay.
    OutOfBand {
        /// From sending to arrival.
        delay: Time,
    },
}

impl Default for Carriage {
    /// In the fabric, as UDP of service 0.
    fn default() -> Self {
        Self::Fabric {
            dscp: 0,
            header: 28,
        }
    }
}

/// Messages from one agent to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Address of the sender.
    pub from: u32,
    /// Address of the receiver.
    pub to: u32,
}

/// The reason why agents cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// An agent at a host that does not exist.
    #[error("agent {address} is at host {host}, the fabric has hosts 0 to {}", .hosts - 1)]
    NoSuchHost {
        /// The agent.
        address: usize,
        /// Its host.
        host: u32,
        /// Number of hosts.
        hosts: u32,
    },
    /// A channel from or to nobody.
    #[error("a channel from {} to {}, there are {agents} agents", .channel.from, .channel.to)]
    NoSuchAgent {
        /// The channel.
        channel: Channel,
        /// Number of agents.
        agents: usize,
    },
    /// Agents of one host need no network.
    #[error("a channel from {} to {}, which are at the same host", .0.from, .0.to)]
    SameHost(Channel),
    /// Messages would arrive when they are sent.
    #[error("messages out of band need a delay of more than 0s")]
    NoDelay,
}
