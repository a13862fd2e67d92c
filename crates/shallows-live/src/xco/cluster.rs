//! The file that controllers and agents of a cluster share.

mod error;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shallows_core::port::Framing;
use shallows_core::units::{Rate, Time};
use shallows_core::xco::config::{OnDemand, Protocol};
use shallows_core::xco::controller::{Controller, ControllerConfig, MOST_WEIGHT};
use shallows_core::xco::coordinator::{Coordinator, CoordinatorConfig, GateConfig};
use shallows_core::xco::fabric::FabricError;
use shallows_core::xco::message::{ClusterKey, Key};
use shallows_model::Directives;

pub use error::ClusterError;

use super::Tree;
use super::hierarchy::{ClusterHierarchy, Domain, Paths};
use crate::frame::Frame;
use crate::io::IoKind;
use crate::switch::{Destinations, Wait};

/// Controllers, hosts and the links between them.
///
/// ```
/// use shallows_live::xco::cluster::Cluster;
///
/// let cluster = Cluster::parse(
///     r#"
///     key-file = "/etc/shallows/xco.key"
///     slot = "2ms"
///
///     [[controller]]
///     name = "c0"
///     address = "10.0.0.100:4783"
///
///     [[host]]
///     name = "h0"
///     rate = "1Gbps"
///     address = "10.0.0.1:4784"
///     nic = "eth0"
///     inside = [{ device = "vnet0" }]
///     stations = ["02:00:00:00:00:01"]
///
///     [[host]]
///     name = "h1"
///     rate = "1Gbps"
///     address = "10.0.0.2:4784"
///     nic = "eth0"
///     inside = [{ device = "tap0", io = "tap" }]
///     networks = ["10.1.1.0/24"]
///     "#,
/// )?;
/// assert_eq!(cluster.hosts.len(), 2);
/// # Ok::<(), shallows_live::xco::cluster::ClusterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cluster {
    /// The key of the machine: at controllers the cluster's, at hosts the host's own. Relative to
    /// this file.
    pub key_file: PathBuf,
    /// Length of a timeslice, or interval between rate limits.
    #[serde(default = "default_slot")]
    pub slot: Time,
    /// Form of directives: timeslices or rate limits.
    #[serde(default)]
    pub directives: Directives,
    /// Time in a slot after which a host may be switched to another destination.
    pub preempt_after: Option<Time>,
    /// Waiting time after which a pair displaces others.
    #[serde(default = "default_patience")]
    pub patience: Time,
    /// Times of the protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// Coordination on demand: only of traffic that crosses links near congestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_demand: Option<OnDemand>,
    /// True if agents learn from frames which VM is at which host, and follow migrations. What is
    /// learned counts more than `stations`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learn_places: bool,
    /// Controllers of pods under a root; those of pods have the key `pod`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hierarchy: Option<ClusterHierarchy>,
    /// Configuration of the agents' gates.
    #[serde(default)]
    pub gate: GateConfig,
    /// Framing on the wire beyond the packet's own bytes.
    #[serde(default = "ethernet")]
    pub framing: Framing,
    /// Controllers; those after the first stand by.
    #[serde(default, rename = "controller")]
    pub controllers: Vec<ControllerPlan>,
    /// Hosts, numbered in this order from 0.
    #[serde(default, rename = "host")]
    pub hosts: Vec<HostPlan>,
    /// Links between switches, which must form a tree.
    #[serde(default, rename = "trunk")]
    pub trunks: Vec<ClusterTrunk>,
}

/// A controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ControllerPlan {
    /// Its name, for `--name`.
    pub name: String,
    /// UDP address of its messages.
    pub address: SocketAddr,
    /// The pod that it schedules, in a hierarchy; the root has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Address that serves `/metrics` and `/status`, to everybody who reaches it.
    pub metrics: Option<SocketAddr>,
    /// Poll or sleep.
    #[serde(default = "block")]
    pub wait: Wait,
}

/// A host with its agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostPlan {
    /// Its name, for `--name`.
    pub name: String,
    /// Rate of its link, each way.
    pub rate: Rate,
    /// UDP address of its agent's messages.
    pub address: SocketAddr,
    /// The switch that it is at, by any name.
    #[serde(default)]
    pub switch: String,
    /// The pod that it belongs to, in a hierarchy; its switch unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// UDP address at which its agent takes messages of the pod's controllers, in a hierarchy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_address: Option<SocketAddr>,
    /// Factor of its slots' length, 1 to 16.
    #[serde(default = "one")]
    pub weight: u32,
    /// Ethernet addresses behind it.
    #[serde(default)]
    pub stations: Vec<String>,
    /// IP networks behind it, where frames go through a router.
    #[serde(default)]
    pub networks: Vec<String>,
    /// The device that leads to the switch.
    #[serde(default)]
    pub nic: String,
    /// The devices of its VMs or containers.
    #[serde(default)]
    pub inside: Vec<InsidePlan>,
    /// Address that serves `/metrics` and `/status`, to everybody who reaches it.
    pub metrics: Option<SocketAddr>,
    /// Poll or sleep, for its agent.
    #[serde(default = "block")]
    pub wait: Wait,
    /// The CPU that its agent keeps to.
    pub cpu: Option<usize>,
    /// It has left for good and keeps its place only, because hosts are numbered by their places.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// A device whose frames are coordinated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct InsidePlan {
    /// Its name.
    pub device: String,
    /// Kind of I/O of the device.
    #[serde(default)]
    pub io: IoKind,
}

/// A link between two switches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClusterTrunk {
    /// The two switches.
    pub between: [String; 2],
    /// Rate of each direction.
    pub rate: Rate,
}

/// The most hosts of a cluster.
pub(super) const MOST_HOSTS: u32 = 1_000_000;

fn default_slot() -> Time {
    ControllerConfig::default().slot
}

fn default_patience() -> Time {
    ControllerConfig::default().patience
}

fn ethernet() -> Framing {
    Framing::ETHERNET
}

fn block() -> Wait {
    Wait::Block
}

fn one() -> u32 {
    1
}

impl Cluster {
    /// Reads a cluster's file and refuses what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, ClusterError> {
        let cluster: Self = toml::from_str(text)?;
        // In a lab, which has no file, QJUMP's gates are before the coordinators.
        if cluster.gate.pass_dscp.is_some() {
            return Err(ClusterError::PassDscp);
        }
        cluster.check()?;
        Ok(cluster)
    }

    /// Refuses what is wrong before any socket or device is touched.
    pub fn check(&self) -> Result<(), ClusterError> {
        if self.controllers.is_empty() {
            return Err(ClusterError::NoControllers);
        }
        if self.hosts.is_empty() {
            return Err(FabricError::NoHosts.into());
        }
        if self.hosts.len() > MOST_HOSTS as usize {
            return Err(ClusterError::TooManyHosts(self.hosts.len()));
        }
        self.check_names()?;
        for host in &self.hosts {
            if !(1..=MOST_WEIGHT).contains(&host.weight) {
                let (host, weight) = (host.name.clone(), host.weight);
                return Err(ClusterError::Weight { host, weight });
            }
            let is_unknown = host.stations.is_empty() && host.networks.is_empty();
            if !host.gone && !self.learn_places && is_unknown {
                return Err(ClusterError::NoStations(host.name.clone()));
            }
        }
        self.tree()?;
        self.check_hierarchy()?;
        self.destinations()?;
        // What the core refuses.
        let key = ClusterKey::new([0; 16]);
        self.make_controller(0, &key, 1, Time::ZERO)?;
        for domain in self.domains_of_host(0) {
            self.make_coordinator(&domain, 0, key.host(0), 1, Time::ZERO)?;
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), ClusterError> {
        let controllers = self.controllers.iter().map(|of| (&of.name, of.address));
        let hosts = self.hosts.iter().map(|of| (&of.name, of.address));
        let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
        for address in self.hosts.iter().filter_map(|of| of.pod_address) {
            if !addresses.insert(address) {
                return Err(ClusterError::TwiceTheAddress(address));
            }
        }
        for (name, address) in controllers.chain(hosts) {
            if !is_name(name) {
                return Err(ClusterError::Name(name.clone()));
            }
            if !names.insert(name) {
                return Err(ClusterError::TwiceTheName(name.clone()));
            }
            if !addresses.insert(address) {
                return Err(ClusterError::TwiceTheAddress(address));
            }
        }
        Ok(())
    }

    /// The place of a controller in the file.
    pub fn controller(&self, name: &str) -> Result<usize, ClusterError> {
        let names = self.controllers.iter().map(|of| of.name.as_str());
        place("controller", name, names)
    }

    /// The place of a host in the file, which is its number.
    pub fn host(&self, name: &str) -> Result<usize, ClusterError> {
        let names = self.hosts.iter().map(|of| of.name.as_str());
        place("host", name, names)
    }

    /// The key of a host, which is that of its name: places in the file can change.
    pub fn host_key(&self, key: &ClusterKey, host: usize) -> Key {
        key.named_host(&self.hosts[host].name)
    }

    /// Whom frames are for, by the hosts' places in the file.
    pub fn destinations(&self) -> Result<Arc<Destinations>, ClusterError> {
        self.whole().destinations(self)
    }

    pub(super) fn tree(&self) -> Result<Tree, ClusterError> {
        let mut switches: Vec<&String> = self.hosts.iter().map(|host| &host.switch).collect();
        switches.extend(self.trunks.iter().flat_map(|trunk| &trunk.between));
        switches.sort();
        switches.dedup();
        let number = |name: &String| switches.binary_search(&name).unwrap_or_default();
        let hosts = self.hosts.iter().map(|host| number(&host.switch)).collect();
        let trunks = self.trunks.iter();
        let trunks: Vec<[usize; 2]> = trunks
            .map(|trunk| trunk.between.each_ref().map(number))
            .collect();
        let switches = switches.len();
        Tree::new(hosts, &trunks).ok_or(ClusterError::NoTree { switches })
    }

    /// The controller at this place of the file. `key` is that of its domain: the cluster's, or the
    /// pod's for a controller of one.
    pub fn make_controller(
        &self,
        place: usize,
        key: &ClusterKey,
        incarnation: u64,
        now: Time,
    ) -> Result<Controller<Paths>, ClusterError> {
        let domain = self.domain_of_controller(place);
        let address = domain.controller_number(place).unwrap_or(MOST_HOSTS);
        let config = ControllerConfig {
            address,
            peers: domain
                .controller_numbers()
                .filter(|&peer| peer != address)
                .collect(),
            incarnation,
            directives: self.directives,
            slot: domain.slot(self.slot),
            preempt_after: self.preempt_after,
            patience: self.patience,
            weights: domain.weights(self),
            small_share: self.gate.small_share,
            protocol: self.protocol,
            on_demand: self.on_demand,
        };
        let fabric = self.domain_fabric(&domain)?;
        let keys = domain.hosts().iter().map(|&host| self.host_key(key, host));
        Ok(Controller::new(config, fabric, key, now)?.with_host_keys(keys.collect()))
    }

    /// The rate of each link of the [`Tree`].
    pub(super) fn link_rates(&self) -> Vec<Rate> {
        let hosts = self.hosts.iter().map(|host| host.rate);
        let links = hosts.chain(self.trunks.iter().map(|trunk| trunk.rate));
        links.flat_map(|rate| [rate; 2]).collect()
    }

    pub(super) fn host_keys(&self, key: &ClusterKey) -> Vec<Key> {
        let hosts = 0..self.hosts.len();
        hosts.map(|host| self.host_key(key, host)).collect()
    }

    /// The coordinator of a host.
    pub fn make_coordinator(
        &self,
        domain: &Domain,
        host: usize,
        key: Key,
        incarnation: u64,
        now: Time,
    ) -> Result<Coordinator<Frame>, ClusterError> {
        let config = CoordinatorConfig {
            host: domain.number(host).unwrap_or(MOST_HOSTS),
            controllers: domain.controller_numbers().collect(),
            incarnation,
            rate: domain.part(self.hosts[host].rate),
            framing: self.framing,
            gate: self.gate,
            budget: domain.budget(self),
            protocol: self.protocol,
            on_demand: self.on_demand,
        };
        let coordinator = Coordinator::new(config, key, now)?;
        if self.learn_places {
            return Ok(coordinator.with_places());
        }
        Ok(coordinator)
    }
}

/// Returns whether this can be the name of a machine: one word, which does not begin like an option.
fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    let first = letters.next();
    first.is_some_and(|first| first.is_ascii_alphanumeric())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
}

fn place<'a>(
    kind: &'static str,
    name: &str,
    mut names: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, ClusterError> {
    let known = names.clone();
    names
        .position(|known| known == name)
        .ok_or_else(|| ClusterError::NoSuchName {
            kind,
            name: name.to_owned(),
            known: known.collect::<Vec<_>>().join(", "),
        })
}

#[cfg(test)]
mod tests;
