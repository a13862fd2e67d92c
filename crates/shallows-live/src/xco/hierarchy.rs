//! Controllers of pods under a root, on real machines.
//!
//! A [`Domain`] is what one group of controllers schedules: the whole cluster, or, with a
//! [`ClusterHierarchy`], the pairs inside one pod or those between pods. Each domain is a cluster of
//! its own for the protocol, with its own numbers, addresses and keys, so a pod's controller can
//! neither read nor forge what another pod or the root says. The division of links is that of
//! `shallows_core::xco::hierarchy`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shallows_core::units::{Rate, Time};
use shallows_core::xco::coordinator::SmallBudget;
use shallows_core::xco::fabric::{CoordinatedFabric, Routes};
use shallows_core::xco::hierarchy::{PodRoutes, Pods};
use shallows_core::xco::message::ClusterKey;

use super::Tree;
use super::cluster::{Cluster, ClusterError, HostPlan, MOST_HOSTS};
use super::key::KeyFile;
use crate::switch::{Destinations, Level};

/// A controller for each pod, and one above them for pairs between pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClusterHierarchy {
    /// The root's percentage of the links that traffic inside pods can use.
    #[serde(default = "half")]
    pub root_share: u32,
}

fn half() -> u32 {
    50
}

/// The hosts and controllers that schedule together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its part of the hierarchy.
    pub level: Level,
    /// The pod's number.
    pod: Option<u32>,
    /// Percentage of the links that are divided.
    share: u32,
    /// Places of its hosts in the file, in the order of their numbers.
    hosts: Vec<usize>,
    /// Places of its controllers; those after the first stand by.
    controllers: Vec<usize>,
}

/// The paths of a domain.
#[derive(Clone, Debug)]
pub enum Paths {
    /// Between all hosts.
    All(Tree),
    /// Between the hosts of a pod.
    Pod(PodRoutes<Tree>),
}

impl Routes for Paths {
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>) {
        match self {
            Self::All(tree) => tree.path(source, destination, path),
            Self::Pod(routes) => routes.path(source, destination, path),
        }
    }
}

impl HostPlan {
    /// The name of its pod: its switch unless given.
    pub fn pod_name(&self) -> &str {
        self.pod.as_deref().unwrap_or(&self.switch)
    }
}

impl Cluster {
    /// The domain that a controller schedules.
    pub fn domain_of_controller(&self, place: usize) -> Domain {
        match (self.hierarchy, &self.controllers[place].pod) {
            (None, _) => self.whole(),
            (Some(hierarchy), None) => self.root(hierarchy),
            (Some(hierarchy), Some(pod)) => self.pod(hierarchy, pod),
        }
    }

    /// The domains of a host, in the order in which a destination is looked up.
    pub fn domains_of_host(&self, host: usize) -> Vec<Domain> {
        match self.hierarchy {
            None => vec![self.whole()],
            Some(hierarchy) => {
                let pod = self.pod(hierarchy, self.hosts[host].pod_name());
                vec![pod, self.root(hierarchy)]
            }
        }
    }

    /// All of a cluster that has no hierarchy.
    pub fn whole(&self) -> Domain {
        Domain {
            level: Level::Cluster,
            pod: None,
            share: 100,
            hosts: (0..self.hosts.len()).collect(),
            controllers: (0..self.controllers.len()).collect(),
        }
    }

    fn root(&self, hierarchy: ClusterHierarchy) -> Domain {
        Domain {
            level: Level::Root,
            share: hierarchy.root_share,
            controllers: self.controllers_of(None),
            ..self.whole()
        }
    }

    fn pod(&self, hierarchy: ClusterHierarchy, name: &str) -> Domain {
        let hosts = (0..self.hosts.len()).filter(|&host| self.hosts[host].pod_name() == name);
        Domain {
            level: Level::Pod,
            pod: self
                .pod_names()
                .iter()
                .position(|pod| *pod == name)
                .map(|pod| pod as u32),
            share: 100 - hierarchy.root_share.min(100),
            hosts: hosts.collect(),
            controllers: self.controllers_of(Some(name)),
        }
    }

    fn controllers_of(&self, pod: Option<&str>) -> Vec<usize> {
        let places = 0..self.controllers.len();
        let of_pod = |place: &usize| self.controllers[*place].pod.as_deref() == pod;
        places.filter(of_pod).collect()
    }

    /// Names of pods in the order of their numbers, which is that of their first hosts.
    fn pod_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for host in &self.hosts {
            if !names.contains(&host.pod_name()) {
                names.push(host.pod_name());
            }
        }
        names
    }

    /// The file with a host's keys: one, or that for the root and that for its pod.
    pub fn host_key_file(&self, key: &ClusterKey, host: usize) -> KeyFile {
        let plan = &self.hosts[host];
        let pod = self.hierarchy.map(|_| key.named_pod(plan.pod_name()));
        KeyFile::Host {
            name: plan.name.clone(),
            key: self.host_key(key, host).bytes(),
            pod: pod.map(|pod| self.host_key(&pod, host).bytes()),
        }
    }

    /// The file with the key of a pod's controllers.
    pub fn pod_key_file(&self, key: &ClusterKey, pod: &str) -> Result<KeyFile, ClusterError> {
        if self.hierarchy.is_none() || !self.pod_names().contains(&pod) {
            return Err(ClusterError::NoSuchPod(pod.to_owned()));
        }
        Ok(KeyFile::Pod {
            name: pod.to_owned(),
            key: key.named_pod(pod).bytes(),
        })
    }

    /// Refuses a hierarchy that cannot work, and parts of one where there is none.
    pub(super) fn check_hierarchy(&self) -> Result<(), ClusterError> {
        let Some(hierarchy) = self.hierarchy else {
            let of_hosts = self.hosts.iter();
            let mut of_hosts = of_hosts.filter(|of| of.pod.is_some() || of.pod_address.is_some());
            let mut of_controllers = self.controllers.iter().filter(|of| of.pod.is_some());
            let of_controllers = of_controllers.next().map(|of| &of.name);
            return match of_hosts.next().map(|of| &of.name).or(of_controllers) {
                Some(name) => Err(ClusterError::NoHierarchy(name.clone())),
                None => Ok(()),
            };
        };
        for (is_set, key) in [
            (self.on_demand.is_some(), "on-demand"),
            (self.learn_places, "learn-places"),
        ] {
            if is_set {
                return Err(ClusterError::NotInHierarchy(key));
            }
        }
        let pods = self.pod_names();
        let pods_of_controllers = self.controllers.iter().filter_map(|of| of.pod.as_deref());
        for pod in pods_of_controllers {
            if !pods.contains(&pod) {
                return Err(ClusterError::NoSuchPod(pod.to_owned()));
            }
        }
        for pod in pods {
            if self.controllers_of(Some(pod)).is_empty() {
                return Err(ClusterError::NoPodController(pod.to_owned()));
            }
        }
        if self.controllers_of(None).is_empty() {
            return Err(ClusterError::NoRoot);
        }
        if let Some(host) = self.hosts.iter().find(|host| host.pod_address.is_none()) {
            return Err(ClusterError::NoPodAddress(host.name.clone()));
        }
        // Pods that share a link, or shares out of range.
        self.domain_fabric(&self.root(hierarchy)).map(drop)
    }

    /// Hosts and links as the controllers of a domain know them.
    pub(super) fn domain_fabric(
        &self,
        domain: &Domain,
    ) -> Result<CoordinatedFabric<Paths>, ClusterError> {
        let rates: Vec<Rate> = self.hosts.iter().map(|host| host.rate).collect();
        let whole = CoordinatedFabric::new(rates, self.link_rates(), self.tree()?)?;
        if domain.level == Level::Cluster {
            return Ok(whole.with_routes(Paths::All));
        }
        let names = self.pod_names();
        let pod_of = |host: &HostPlan| names.iter().position(|pod| *pod == host.pod_name());
        let pods = self.hosts.iter().filter_map(pod_of);
        let pods = Pods::of(pods.map(|pod| pod as u32))?;
        let root_share = self.hierarchy.map_or(domain.share, |of| of.root_share);
        let mut divided = pods.divide(&whole, root_share)?;
        Ok(match domain.pod {
            None => divided.root.with_routes(Paths::All),
            Some(pod) => {
                let inside = divided.pods.swap_remove(pod as usize);
                inside.with_routes(Paths::Pod)
            }
        })
    }
}

impl Domain {
    /// Number of its hosts.
    pub fn size(&self) -> usize {
        self.hosts.len()
    }

    /// Places of its hosts in the file, in the order of their numbers.
    pub(super) fn hosts(&self) -> &[usize] {
        &self.hosts
    }

    /// The number of a host.
    pub fn number(&self, host: usize) -> Option<u32> {
        let place = self.hosts.iter().position(|of| *of == host);
        place.map(|number| number as u32)
    }

    /// Numbers of its controllers in the protocol; those of hosts end before.
    pub(super) fn controller_numbers(&self) -> impl Iterator<Item = u32> {
        (0..self.controllers.len() as u32).map(|place| MOST_HOSTS + place)
    }

    /// Number in the protocol of the controller at this place of the file.
    pub(super) fn controller_number(&self, place: usize) -> Option<u32> {
        let mut numbers = self.controllers.iter().zip(self.controller_numbers());
        numbers
            .find(|(of, _)| **of == place)
            .map(|(_, number)| number)
    }

    /// Controllers by what the protocol calls them.
    pub fn controller_addresses(&self, cluster: &Cluster) -> Vec<(u32, SocketAddr)> {
        let places = self.controllers.iter();
        let addresses = places.map(|&place| cluster.controllers[place].address);
        self.controller_numbers().zip(addresses).collect()
    }

    /// Address at which a host takes messages of this domain.
    pub fn host_address(&self, host: &HostPlan) -> SocketAddr {
        match self.level {
            Level::Pod => host.pod_address.unwrap_or(host.address),
            Level::Cluster | Level::Root => host.address,
        }
    }

    /// Hosts and controllers by what the protocol calls them.
    pub(super) fn addresses(&self, cluster: &Cluster) -> Vec<(u32, SocketAddr)> {
        let hosts = self.hosts.iter().map(|&host| &cluster.hosts[host]);
        let hosts = (0..).zip(hosts.map(|host| self.host_address(host)));
        hosts.chain(self.controller_addresses(cluster)).collect()
    }

    /// The part of a host's rate.
    pub(super) fn part(&self, rate: Rate) -> Rate {
        rate.scaled(u64::from(self.share), 100)
    }

    /// Slots are longer as links are slower, so that one carries as much as without pods.
    pub(super) fn slot(&self, slot: Time) -> Time {
        slot * 100 / u64::from(self.share.max(1))
    }

    /// Hosts whose slots are longer, by their numbers.
    pub(super) fn weights(&self, cluster: &Cluster) -> BTreeMap<u32, u32> {
        let weights = self.hosts.iter().map(|&host| cluster.hosts[host].weight);
        let weights = (0..).zip(weights).filter(|(_, weight)| *weight > 1);
        weights.collect()
    }

    /// Budget of small frames to each host, which need no permission.
    pub(crate) fn budget(&self, cluster: &Cluster) -> SmallBudget {
        let slowest = self.hosts.iter().map(|&host| cluster.hosts[host].rate);
        let slowest = self.part(slowest.min().unwrap_or(Rate::from_bps(0)));
        cluster.gate.budget(slowest, self.hosts.len() as u32)
    }

    /// Hosts that frames are for, by the numbers of this domain.
    pub fn destinations(&self, cluster: &Cluster) -> Result<Arc<Destinations>, ClusterError> {
        let mut destinations = Destinations::default();
        let hosts = self.hosts.iter().map(|&host| &cluster.hosts[host]);
        for (number, host) in (0..).zip(hosts).filter(|(_, host)| !host.gone) {
            let wrong = |problem| ClusterError::Station {
                host: host.name.clone(),
                problem,
            };
            let twice = |address: &String| ClusterError::TwiceTheStation {
                host: host.name.clone(),
                address: address.clone(),
            };
            for station in &host.stations {
                if !destinations.add_station(station.parse().map_err(wrong)?, number) {
                    return Err(twice(station));
                }
            }
            for network in &host.networks {
                if !destinations.add_network(network.parse().map_err(wrong)?, number) {
                    return Err(twice(network));
                }
            }
        }
        Ok(Arc::new(destinations))
    }
}

#[cfg(test)]
mod tests;
