//! Control protocols: agents at hosts, and how their messages travel.

use std::fmt::Debug;

use shallows_core::control::Agent;
use shallows_core::host::gate::Gate;
use shallows_core::units::Time;
use thiserror::Error;

use crate::ticket::Ticket;
use crate::topology::Fabric;

/// The agents of a run. The address of an agent is its position in the list.
#[derive(Debug, Default)]
pub struct Control {
    /// The agents.
    pub agents: Vec<AgentSetup>,
    /// Transport of messages.
    pub carriage: Carriage,
    /// Who sends to whom where messages are packets of the fabric, because paths are found before
    /// the run. Other messages are lost.
    pub channels: Vec<Channel>,
}

/// An agent and its host.
#[derive(Debug)]
pub struct AgentSetup {
    /// The host.
    pub host: u32,
    /// The agent.
    pub agent: HostAgent,
}

/// A control agent of a host.
#[derive(Debug)]
pub enum HostAgent {
    /// It sees messages only.
    Alone(Box<dyn LoneAgent>),
    /// It is also a gate of its host, after those of [`HostSetup`](crate::HostSetup).
    Gate(Box<dyn GateAgent>),
}

/// What an agent must be for the simulator.
pub trait LoneAgent: Agent + Debug + Send {}

impl<T: Agent + Debug + Send> LoneAgent for T {}

/// What an agent that is a gate must be for the simulator.
pub trait GateAgent: Agent + Gate<Ticket> + Debug + Send {}

impl<T: Agent + Gate<Ticket> + Debug + Send> GateAgent for T {}

/// How control messages travel.
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

/// Why agents cannot work.
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

/// Messages that take less keep a run on one thread, and all its events in order.
const SHORT: Time = Time::from_us(1);

impl Control {
    pub(crate) fn check(&self, fabric: &Fabric) -> Result<(), ControlError> {
        let hosts = fabric.hosts();
        for (address, &AgentSetup { host, .. }) in self.agents.iter().enumerate() {
            if host >= hosts {
                return Err(ControlError::NoSuchHost {
                    address,
                    host,
                    hosts,
                });
            }
        }
        for &channel in &self.channels {
            let host = |address: u32| self.agents.get(address as usize).map(|agent| agent.host);
            match (host(channel.from), host(channel.to)) {
                (Some(from), Some(to)) if from == to => {
                    return Err(ControlError::SameHost(channel));
                }
                (Some(_), Some(_)) => {}
                _ => {
                    let agents = self.agents.len();
                    return Err(ControlError::NoSuchAgent { channel, agents });
                }
            }
        }
        match self.carriage {
            Carriage::OutOfBand { delay: Time::ZERO } => Err(ControlError::NoDelay),
            _ => Ok(()),
        }
    }

    /// How long messages out of band take, if there are any.
    pub(crate) fn delay(&self) -> Option<Time> {
        match self.carriage {
            Carriage::OutOfBand { delay } if !self.agents.is_empty() => Some(delay),
            _ => None,
        }
    }

    /// Whether messages are so fast that all events have to keep their order.
    pub(crate) fn is_immediate(&self) -> bool {
        self.delay().is_some_and(|delay| delay < SHORT)
    }
}
