//! XCo: its configuration.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use shallows_core::keyed::Keyed;
use shallows_core::units::Time;
use shallows_core::xco::config::{OnDemand, Protocol, SettingsError};
use shallows_core::xco::controller::{ControllerConfig, Directives};
use shallows_core::xco::coordinator::GateConfig;
use shallows_core::xco::fabric::FabricError;
use shallows_core::xco::hierarchy::HierarchyError;
use thiserror::Error;

use crate::control::ControlError;

/// Explicit coordination (XCo): a controller schedules the hosts' sending.
///
/// ```
/// # use shallows_model::HostSetup;
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
    /// True if a standby controller takes over if the first one fails. Messages are out of band.
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

/// Pods, and the division of links between their controllers and the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HierarchyConfig {
    /// Hosts of a pod, in the order of their numbers. Without it the pods of a fat-tree, or the
    /// racks of another fabric. Paths inside two pods must share no link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_hosts: Option<u32>,
    /// The root's share of the links that pods use, in percent.
    #[serde(default = "half")]
    pub root_share: u32,
}

fn half() -> u32 {
    50
}

/// Outage of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Outage {
    /// 0 is the controller, 1 its standby.
    #[serde(default)]
    pub controller: u32,
    /// Time of the crash.
    pub crash: Time,
    /// Time of the restart, with empty memory; never if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Time>,
}

/// Forged directives, sent without the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Forgery {
    /// Host that the forger sends to.
    pub victim: u32,
    /// Start time.
    pub start: Time,
    /// Stop time.
    pub stop: Time,
    /// Interval between attempts.
    #[serde(default = "ten_milliseconds")]
    pub every: Time,
}

fn ten_milliseconds() -> Time {
    Time::from_ms(10)
}

impl Default for XcoConfig {
    fn default() -> Self {
        let controller = ControllerConfig::default();
        Self {
            slot: controller.slot,
            directives: controller.directives,
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

/// The reason why hosts cannot be coordinated.
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
    #[error("a slot of {slot} ends before a host receives it: messages take {delay} each way")]
    ShortSlot {
        /// See [`XcoConfig::slot`].
        slot: Time,
        /// See [`XcoConfig::delay`].
        delay: Time,
    },
    /// A standby of a controller that is at a host.
    #[error("a standby needs messages out of band, the controller is at host {0}")]
    StandbyInFabric(u32),
    /// Hosts with several NICs, of which a coordinator drives one.
    #[error(
        "a coordinator has one NIC, and hosts have several; leave out topology.leaf-spine.nics"
    )]
    SeveralNics,
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
    /// A feature of single controllers that a hierarchy does not support.
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
            Self::Settings(SettingsError::Weight { .. })
            | Self::WeightOfNobody { .. }
            | Self::TwoWeights(_)
            | Self::WeightsOfRates => "weights",
            Self::NoSuchController { .. }
            | Self::RestartsBeforeCrash { .. }
            | Self::CrashesTwice { .. } => "outages",
            Self::Settings(_) | Self::Fabric(_) | Self::Control(_) | Self::SeveralNics => {
                return Vec::new();
            }
        };
        vec![key.into()]
    }
}

impl XcoConfig {
    /// Refuses weights of hosts that do not exist, twice, or of rate limits.
    ///
    /// # Errors
    /// With the first of them.
    pub fn check_weights(&self, hosts: u32) -> Result<(), XcoError> {
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

    /// The settings of the controller at an address, with `all` controllers.
    pub fn settings(&self, address: u32, all: &[u32]) -> ControllerConfig {
        let peers = all.iter().copied().filter(|&other| other != address);
        let weights = self.weights.iter();
        ControllerConfig {
            address,
            peers: peers.collect(),
            slot: self.slot,
            directives: self.directives,
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
