//! XCo at the hosts of a simulation: a coordinator at each, and a controller.

mod hierarchy;
mod outage;

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use shallows_core::control::LinkState;
use shallows_core::keyed::Keyed;
use shallows_core::units::{Rate, Time};
use shallows_core::xco::config::{OnDemand, Protocol, SettingsError};
use shallows_core::xco::controller::{Controller, ControllerConfig, Sharing, Strategy};
use shallows_core::xco::coordinator::{Coordinator, CoordinatorConfig, GateConfig};
use shallows_core::xco::fabric::{Fabric as CoordinatedFabric, FabricError, Routes};
use shallows_core::xco::hierarchy::HierarchyError;
use shallows_core::xco::message::ClusterKey;
use thiserror::Error;

use crate::control::{AgentSetup, Carriage, Channel, Control, ControlError, HostAgent};
use crate::network::PortSetup;
use crate::routing::{Router, Selection};
use crate::ticket::Ticket;
use crate::topology::Fabric;

pub use hierarchy::HierarchyConfig;
pub use outage::Outage;
use outage::Unreliable;

/// Explicit coordination (XCo): a controller schedules the hosts' sending.
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
    /// Length of a timeslice, or interval between rate limits.
    pub slot: Time,
    /// Form of directives: timeslices or rate limits.
    pub directives: Directives,
    /// Host of the controller, whose own traffic is not coordinated; control messages are then
    /// packets of the fabric. If not given, messages are out of band and take `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<u32>,
    /// Delay of out-of-band messages.
    pub delay: Time,
    /// The DSCP field of messages in the fabric.
    pub dscp: u8,
    /// Time in a slot after which a host may be switched to another destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preempt_after: Option<Time>,
    /// Waiting time after which a pair displaces others.
    pub patience: Time,
    /// Hosts whose slots are longer than the others'.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<Weight>,
    /// Whether a standby controller takes over if the first one fails. Messages are out of band.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub standby: bool,
    /// Outages of controllers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Coordination of only the traffic that crosses links near congestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_demand: Option<OnDemand>,
    /// A controller per pod and a root controller instead of a single one. Messages are out of
    /// band.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hierarchy: Option<HierarchyConfig>,
    /// Parameters of the coordinators' gates.
    pub gate: GateConfig,
    /// Times of the protocol.
    pub protocol: Protocol,
}

/// Factor on the slots of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Weight {
    /// The host.
    pub host: u32,
    /// The factor, 1 to 16.
    pub weight: u32,
}

/// Form of a directive.
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
            weights: Vec::new(),
            standby: false,
            outages: Vec::new(),
            on_demand: None,
            hierarchy: None,
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
    /// Transport of messages.
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
    /// A standby of a controller that is at a host.
    #[error("a standby needs messages out of band, the controller is at host {0}")]
    StandbyInFabric(u32),
    /// A weight of a host that does not exist.
    #[error("host {host} has a weight, the fabric has hosts 0 to {}", .hosts - 1)]
    WeightOfNobody {
        /// The host.
        host: u32,
        /// Number of hosts.
        hosts: u32,
    },
    /// Two weights of one host.
    #[error("host {0} has two weights")]
    TwoWeights(u32),
    /// Slots alone can be longer.
    #[error("weights lengthen timeslices, rate limits have none")]
    WeightsOfRates,
    /// An outage of a controller that does not exist.
    #[error(
        "outage of controller {controller}, their numbers end at {}; 1 is the standby, which standby = true adds",
        .controllers - 1
    )]
    NoSuchController {
        /// The controller.
        controller: u32,
        /// Number of controllers.
        controllers: u32,
    },
    /// An outage that ends before it begins.
    #[error("a controller that crashes at {crash} must restart later")]
    RestartsBeforeCrash {
        /// Time of the crash.
        crash: Time,
    },
    /// Outages that overlap.
    #[error("controller {controller} crashes at {crash}, when it is down already")]
    CrashesTwice {
        /// The controller.
        controller: u32,
        /// Time of the crash.
        crash: Time,
    },
    /// Pods.
    #[error(transparent)]
    Hierarchy(#[from] HierarchyError),
    /// What one controller can have and several cannot.
    #[error(
        "a hierarchy has controllers of its own, out of band and without standby: leave out {0}"
    )]
    NotInHierarchy(&'static str),
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
            Self::Settings(SettingsError::Zero(key) | SettingsError::Percentage(key, _))
            | Self::NotInHierarchy(key) => key,
            Self::Settings(SettingsError::TooQuiet { .. }) => "silence",
            Self::Settings(SettingsError::Drift(_)) => "drift",
            Self::Settings(SettingsError::SmallShare(_)) => "small-share",
            Self::Settings(SettingsError::Thresholds { .. }) => {
                return vec!["leave".into(), "enter".into()];
            }
            Self::Settings(SettingsError::Calm { .. }) => {
                return vec!["calm".into(), "window".into()];
            }
            Self::Control(ControlError::NoDelay) => "delay",
            Self::ShortSlot { .. } => return vec!["slot".into(), "delay".into()],
            Self::NoSuchHost { .. } => "controller",
            Self::Hierarchy(HierarchyError::Share(_)) => "root-share",
            Self::Hierarchy(_) => "pod-hosts",
            Self::StandbyInFabric(_) => return vec!["standby".into(), "controller".into()],
            Self::Settings(SettingsError::Weight(_))
            | Self::WeightOfNobody { .. }
            | Self::TwoWeights(_)
            | Self::WeightsOfRates => "weights",
            Self::NoSuchController { .. }
            | Self::RestartsBeforeCrash { .. }
            | Self::CrashesTwice { .. } => "outages",
            Self::Settings(_) | Self::Fabric(_) | Self::Control(_) => return Vec::new(),
        };
        vec![key.into()]
    }
}

/// The paths of the simulation's router. Where each flow has one of its own, the links that all
/// flows of the pair share.
#[derive(Clone, Debug)]
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

    fn set_link(&mut self, link: u32, state: LinkState) {
        self.0.set_link(link, state);
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
        if let Some(hierarchy) = self.hierarchy {
            self.check_weights(hosts)?;
            return self.hierarchical_control(fabric, router, ports, hierarchy);
        }
        if let Some(host) = self.controller.filter(|_| self.standby) {
            return Err(XcoError::StandbyInFabric(host));
        }
        self.check_weights(hosts)?;
        // Addresses are positions: the controller is in the place of its host's coordinator.
        let address = self.controller.unwrap_or(hosts);
        let addresses: Vec<u32> = (address..).take(1 + usize::from(self.standby)).collect();
        let outages = outage::by_controller(&self.outages, addresses.len() as u32)?;
        let known = coordinated(fabric, router)?;
        // All agents are ours, so the key need not be secret.
        let key = ClusterKey::new([0; 16]);
        let controllers = addresses.iter().zip(outages);
        let controllers = controllers.map(|(&own, outages)| {
            let config = self.settings(own, &addresses);
            controller(config, known.clone(), &key, outages)
        });
        let mut controllers = controllers.collect::<Result<VecDeque<_>, _>>()?;
        let mut agents = Vec::with_capacity(hosts as usize + addresses.len());
        for host in 0..hosts {
            let agent = if self.controller == Some(host)
                && let Some(controller) = controllers.pop_front()
            {
                controller
            } else {
                let rate = fabric.link(fabric.uplink(host)).rate;
                let coordinator =
                    self.coordinator((host, rate), &addresses, &key, (fabric, ports))?;
                HostAgent::Gate(Box::new(coordinator))
            };
            agents.push(AgentSetup { host, agent });
        }
        agents.extend(
            controllers
                .into_iter()
                .map(|agent| AgentSetup { host: 0, agent }),
        );
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

    fn coordinator(
        &self,
        (host, rate): (u32, Rate),
        controllers: &[u32],
        key: &ClusterKey,
        (fabric, ports): (&Fabric, &PortSetup),
    ) -> Result<Coordinator<Ticket>, SettingsError> {
        let hosts = fabric.hosts();
        let slowest = (0..hosts).map(|host| fabric.link(fabric.downlink(host)).rate);
        let slowest = slowest.min().unwrap_or(rate);
        let config = CoordinatorConfig {
            host,
            controllers: controllers.to_vec(),
            incarnation: 1,
            rate,
            framing: ports.hosts.framing,
            gate: self.gate,
            budget: self.gate.budget(slowest, hosts),
            protocol: self.protocol,
            on_demand: self.on_demand,
        };
        Coordinator::new(config, key.host(host), Time::ZERO)
    }

    fn check_weights(&self, hosts: u32) -> Result<(), XcoError> {
        for (place, &Weight { host, .. }) in self.weights.iter().enumerate() {
            if host >= hosts {
                return Err(XcoError::WeightOfNobody { host, hosts });
            }
            if self.weights[..place].iter().any(|other| other.host == host) {
                return Err(XcoError::TwoWeights(host));
            }
        }
        if !self.weights.is_empty() && self.directives != Directives::Timeslice {
            return Err(XcoError::WeightsOfRates);
        }
        Ok(())
    }

    fn settings(&self, address: u32, all: &[u32]) -> ControllerConfig {
        let peers = all.iter().copied().filter(|&other| other != address);
        let weights = self.weights.iter();
        ControllerConfig {
            address,
            peers: peers.collect(),
            slot: self.slot,
            strategy: match self.directives {
                Directives::Timeslice => Strategy::Timeslice,
                Directives::RateLimit => Strategy::RateLimit(Sharing::Equal),
                Directives::MaxMin => Strategy::RateLimit(Sharing::MaxMin),
            },
            preempt_after: self.preempt_after,
            patience: self.patience,
            weights: weights.map(|weight| (weight.host, weight.weight)).collect(),
            small_share: self.gate.small_share,
            protocol: self.protocol,
            on_demand: self.on_demand,
            ..ControllerConfig::default()
        }
    }
}

/// The fabric as the controller knows it.
fn coordinated(fabric: &Fabric, router: &Router) -> Result<CoordinatedFabric<Paths>, XcoError> {
    let rate = |host| fabric.link(fabric.uplink(host)).rate;
    let rates: Vec<Rate> = (0..fabric.hosts()).map(rate).collect();
    let links = fabric.links().iter().map(|link| link.rate).collect();
    Ok(CoordinatedFabric::new(rates, links, Paths(router.clone()))?)
}

fn controller(
    config: ControllerConfig,
    fabric: CoordinatedFabric<Paths>,
    key: &ClusterKey,
    outages: VecDeque<Outage>,
) -> Result<HostAgent, XcoError> {
    if outages.is_empty() {
        let controller = Controller::new(config, fabric, key, Time::ZERO)?;
        return Ok(HostAgent::Alone(Box::new(controller)));
    }
    let controller = Unreliable::new(config, fabric, key.clone(), outages)?;
    Ok(HostAgent::Alone(Box::new(controller)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_get_weights_and_each_other() {
        let config: XcoConfig =
            toml::from_str("weights = [{ host = 3, weight = 4 }]\nstandby = true").unwrap();
        let settings = config.settings(16, &[16, 17]);
        assert_eq!((settings.address, settings.peers), (16, vec![17]));
        assert_eq!(settings.weights.into_iter().collect::<Vec<_>>(), [(3, 4)]);
    }

    #[test]
    fn weights_that_cannot_be_are_refused() {
        let refusal = |text: &str| {
            let config: XcoConfig = toml::from_str(text).unwrap();
            config.check_weights(4).unwrap_err().to_string()
        };
        assert_eq!(
            refusal("weights = [{ host = 4, weight = 2 }]"),
            "host 4 has a weight, the fabric has hosts 0 to 3"
        );
        assert_eq!(
            refusal("weights = [{ host = 1, weight = 2 }, { host = 1, weight = 3 }]"),
            "host 1 has two weights"
        );
        assert_eq!(
            refusal("weights = [{ host = 1, weight = 2 }]\ndirectives = \"max-min\""),
            "weights lengthen timeslices, rate limits have none"
        );
    }
}
