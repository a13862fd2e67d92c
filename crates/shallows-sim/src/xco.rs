//! XCo at the hosts of a simulation: a coordinator at each, and a controller.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use shallows_core::keyed::Keyed;
use shallows_core::units::{Rate, Time};
use shallows_core::xco::config::{Protocol, SettingsError};
use shallows_core::xco::controller::{Controller, ControllerConfig, Sharing, Strategy};
use shallows_core::xco::coordinator::{Coordinator, CoordinatorConfig, GateConfig};
use shallows_core::xco::fabric::{Fabric as CoordinatedFabric, FabricError, Routes};
use shallows_core::xco::message::ClusterKey;
use thiserror::Error;

use crate::control::{AgentSetup, Carriage, Channel, Control, ControlError, HostAgent};
use crate::network::PortSetup;
use crate::packet::Ticket;
use crate::routing::{Router, Selection};
use crate::topology::Fabric;

/// Explicit coordination (XCo): who may send when.
///
/// ```
/// # use shallows_sim::HostSetup;
/// let hosts: HostSetup = toml::from_str(
///     r#"
///     xco = { slot = "10ms", gate = { hysteresis = "50us" } }
///     "#,
/// )?;
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct XcoConfig {
    /// The length of a timeslice, or how long rate limits hold.
    pub slot: Time,
    /// Timeslices, or rates for all at once.
    pub directives: Directives,
    /// The host that the controller is at, which then sends nothing else under control; messages
    /// are packets of the fabric. Without it they are out of band and take `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<u32>,
    /// How long messages out of band take.
    pub delay: Time,
    /// The DSCP field of messages in the fabric.
    pub dscp: u8,
    /// After how long in its slot a host may be moved to another destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preempt_after: Option<Time>,
    /// How long a pair waits before others must make way for it.
    pub patience: Time,
    /// What coordinators do to packets.
    pub gate: GateConfig,
    /// Times of the protocol.
    pub protocol: Protocol,
}

/// The forms of directives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Directives {
    /// One destination at a time, at full rate.
    #[default]
    Timeslice,
    /// All destinations at once, each at an equal share of its bottleneck.
    RateLimit,
    /// All destinations at once, at max-min fair rates.
    MaxMin,
}

impl Default for XcoConfig {
    fn default() -> Self {
        let controller = ControllerConfig::default();
        Self {
            slot: controller.slot,
            directives: Directives::Timeslice,
            controller: None,
            delay: Time::from_us(20),
            dscp: 0,
            preempt_after: controller.preempt_after,
            patience: controller.patience,
            gate: GateConfig::default(),
            protocol: Protocol::default(),
        }
    }
}

/// Why hosts cannot be coordinated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum XcoError {
    /// The settings as such.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// How messages travel.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A slot that is over when its host hears of it.
    #[error("a slot of {slot} is over before a host hears of it: messages take {delay} each way")]
    ShortSlot {
        /// See [`XcoConfig::slot`].
        slot: Time,
        /// See [`XcoConfig::delay`].
        delay: Time,
    },
    /// A controller at a host that does not exist.
    #[error("the controller is at host {host}, the fabric has hosts 0 to {}", .hosts - 1)]
    NoSuchHost {
        /// The host.
        host: u32,
        /// Number of hosts.
        hosts: u32,
    },
}

impl Keyed for XcoError {
    fn keys(&self) -> Vec<Cow<'_, str>> {
        let key = match self {
            Self::Settings(SettingsError::Zero(key)) => key,
            Self::Settings(SettingsError::TooQuiet { .. }) => "silence",
            Self::Settings(SettingsError::Drift(_)) => "drift",
            Self::Control(ControlError::NoDelay) => "delay",
            Self::ShortSlot { .. } => return vec!["slot".into(), "delay".into()],
            Self::NoSuchHost { .. } => "controller",
            Self::Settings(_) | Self::Fabric(_) | Self::Control(_) => return Vec::new(),
        };
        vec![key.into()]
    }
}

/// The paths of the simulation's router. Where each flow has one of its own, the links that all
/// flows of the pair share.
#[derive(Debug)]
struct Paths(Router);

/// Paths that are compared to find what they share.
const SAMPLES: u64 = 16;

impl Routes for Paths {
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>) {
        if self.0.path(source, destination, 0, path).is_err() {
            return path.clear();
        }
        if self.0.selection() == Selection::Pair {
            return;
        }
        let mut other = Vec::new();
        for selector in 1..SAMPLES {
            if self
                .0
                .path(source, destination, selector, &mut other)
                .is_ok()
            {
                path.retain(|link| other.contains(link));
            }
        }
    }
}

impl XcoConfig {
    /// A coordinator for each host, and the controller.
    ///
    /// # Errors
    /// If the settings make no sense on this fabric.
    pub fn control(
        &self,
        fabric: &Fabric,
        router: &Router,
        ports: &PortSetup,
    ) -> Result<Control, XcoError> {
        let hosts = fabric.hosts();
        if let Some(host) = self.controller.filter(|&host| host >= hosts) {
            return Err(XcoError::NoSuchHost { host, hosts });
        }
        if self.controller.is_none() && self.slot <= self.delay * 2 {
            let (slot, delay) = (self.slot, self.delay);
            return Err(XcoError::ShortSlot { slot, delay });
        }
        // Addresses are positions: the controller is in the place of its host's coordinator.
        let address = self.controller.unwrap_or(hosts);
        // All agents are ours, so the key need not be secret.
        let key = ClusterKey::new([0; 16]);
        let mut agents = Vec::with_capacity(hosts as usize + 1);
        for host in 0..hosts {
            let agent = if self.controller == Some(host) {
                HostAgent::Alone(Box::new(self.make_controller(host, fabric, router, &key)?))
            } else {
                let config = CoordinatorConfig {
                    host,
                    controllers: vec![address],
                    incarnation: 1,
                    rate: fabric.link(fabric.uplink(host)).rate,
                    framing: ports.hosts.framing,
                    gate: self.gate,
                    protocol: self.protocol,
                };
                let coordinator = Coordinator::<Ticket>::new(config, key.host(host), Time::ZERO)?;
                HostAgent::Gate(Box::new(coordinator))
            };
            agents.push(AgentSetup { host, agent });
        }
        if self.controller.is_none() {
            let controller = self.make_controller(address, fabric, router, &key)?;
            let agent = HostAgent::Alone(Box::new(controller));
            agents.push(AgentSetup { host: 0, agent });
        }
        let others = (0..hosts).filter(|&host| host != address);
        let both = |host| [(host, address), (address, host)];
        let channels = others.flat_map(both);
        let control = Control {
            agents,
            carriage: match self.controller {
                Some(_) => Carriage::Fabric {
                    dscp: self.dscp,
                    header: 28,
                },
                None => Carriage::OutOfBand { delay: self.delay },
            },
            channels: match self.controller {
                Some(_) => channels.map(|(from, to)| Channel { from, to }).collect(),
                None => Vec::new(),
            },
        };
        control.check(fabric)?;
        Ok(control)
    }

    fn make_controller(
        &self,
        address: u32,
        fabric: &Fabric,
        router: &Router,
        key: &ClusterKey,
    ) -> Result<Controller<Paths>, XcoError> {
        let config = ControllerConfig {
            address,
            slot: self.slot,
            strategy: match self.directives {
                Directives::Timeslice => Strategy::Timeslice,
                Directives::RateLimit => Strategy::RateLimit(Sharing::Equal),
                Directives::MaxMin => Strategy::RateLimit(Sharing::MaxMin),
            },
            preempt_after: self.preempt_after,
            patience: self.patience,
            protocol: self.protocol,
            ..ControllerConfig::default()
        };
        let rate = |host| fabric.link(fabric.uplink(host)).rate;
        let rates: Vec<Rate> = (0..fabric.hosts()).map(rate).collect();
        let links = fabric.links().iter().map(|link| link.rate).collect();
        let known = CoordinatedFabric::new(rates, links, Paths(router.clone()))?;
        Ok(Controller::new(config, known, key, Time::ZERO)?)
    }
}
