//! Control protocols: agents at hosts, and how their messages travel.

use shallows_core::host::stack::{GateAgent, LocalAgent};
use shallows_core::units::Time;
use shallows_model::topology::Fabric;
use shallows_model::{Carriage, Channel, ControlError, HostId};

use crate::ticket::Ticket;

/// The agents of a run. The address of an agent is its position in the list.
#[derive(Debug, Default)]
pub struct Control {
    /// The agents.
    pub agents: Vec<AgentSetup>,
    /// Transport of messages.
    pub carriage: Carriage,
    /// Channels whose messages are packets of the fabric; their paths are found before the run.
    /// Other messages are lost.
    pub channels: Vec<Channel>,
}

/// An agent and its host.
#[derive(Debug)]
pub struct AgentSetup {
    /// The host.
    pub host: HostId,
    /// The agent.
    pub agent: HostAgent,
}

/// A control agent of a host.
#[derive(Debug)]
pub enum HostAgent {
    /// It sees messages only.
    Alone(Box<dyn LocalAgent>),
    /// It is also a gate of its host, after those of [`HostSetup`](shallows_model::HostSetup).
    Gate(Box<dyn GateAgent<Ticket>>),
}

/// Messages that take less keep a run on one thread, and all its events in order.
const SHORT: Time = Time::from_us(1);

impl Control {
    pub(crate) fn check(&self, fabric: &Fabric) -> Result<(), ControlError> {
        let hosts = fabric.hosts();
        for (address, &AgentSetup { host, .. }) in self.agents.iter().enumerate() {
            if host.0 >= hosts {
                return Err(ControlError::NoSuchHost {
                    address,
                    host: host.0,
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

    /// Delay of messages out of band, if there are any.
    pub(crate) fn delay(&self) -> Option<Time> {
        match self.carriage {
            Carriage::OutOfBand { delay } if !self.agents.is_empty() => Some(delay),
            _ => None,
        }
    }

    /// Returns whether messages are so fast that all events have to keep their order.
    pub(crate) fn is_immediate(&self) -> bool {
        self.delay().is_some_and(|delay| delay < SHORT)
    }
}
