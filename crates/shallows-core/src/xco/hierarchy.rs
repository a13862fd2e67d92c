//! Controllers for pods and one above them (§6, "multiple or hierarchical controllers for
//! scalability").
//!
//! The controller of a pod schedules pairs inside it, the root all pairs between pods. A link that
//! paths inside a pod use is divided once and for all: the root has a share of it, the pod's
//! controller the rest; all other links are the root's. Each keeps its permits within its part, so
//! together they are within the capacity of every link. Pods know nothing of each other, and a
//! controller that fails takes only its own pairs out of coordination.
//!
//! The price is what one part leaves unused while the other is full, and that a host is given a part
//! of its link at a time.
//!
//! Each controller has a cluster of its own, with its own key: a pod's hosts are numbered from 0 in
//! it, and its controller has the number after the last ([`Numbers`]). A host has a coordinator for
//! each level ([`TwoLevelCoordinator`]).

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::coordinator::Coordinator;
use super::fabric::{CoordinatedFabric, Routes};
use crate::control::Agent;
use crate::host::gate::{Gate, Release, Verdict};
use crate::packet::Packet;
use crate::units::{Rate, Time};

/// Assignment of hosts to pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    /// Pod of each host, and its number there.
    places: Vec<(u32, u32)>,
    /// Hosts of each pod.
    hosts: Vec<Vec<u32>>,
}

/// The reason why a fabric cannot have a hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HierarchyError {
    /// Nobody would schedule inside or between pods.
    #[error("pods of {size}: use at least 2 hosts and fewer than the {hosts} that there are")]
    Size {
        /// Hosts of a pod.
        size: u32,
        /// All hosts.
        hosts: u32,
    },
    /// A fabric without pods.
    #[error("the fabric has no pods or racks that could have a controller each; give pod-hosts")]
    NoPods,
    /// One level would have nothing.
    #[error("the root's share is {0}, use 1 to 99 percent")]
    Share(u32),
    /// Two controllers would give away the same capacity.
    #[error(
        "link {link} carries traffic inside pod {first} and inside pod {second}; choose pods that share no link, such as the racks of a leaf-spine fabric or the pods of a fat-tree"
    )]
    Shared {
        /// The link.
        link: u32,
        /// A pod that uses it.
        first: u32,
        /// Another one.
        second: u32,
    },
}

impl Pods {
    /// Pods of `size` hosts each in the order of their numbers; the last one may be smaller.
    ///
    /// # Errors
    /// If a pod would have a single host, or all of them.
    pub fn of_size(size: u32, hosts: u32) -> Result<Self, HierarchyError> {
        if size < 2 || size >= hosts {
            return Err(HierarchyError::Size { size, hosts });
        }
        Self::of((0..hosts).map(|host| host / size))
    }

    /// Pods by the pod of each host, numbered from 0.
    ///
    /// # Errors
    /// If there is one pod, or one for each host.
    pub fn of(pods: impl IntoIterator<Item = u32>) -> Result<Self, HierarchyError> {
        let mut hosts: Vec<Vec<u32>> = Vec::new();
        let place = |(pod, host): (u32, u32)| {
            let needed = hosts.len().max(pod as usize + 1);
            hosts.resize(needed, Vec::new());
            let members = &mut hosts[pod as usize];
            members.push(host);
            (pod, members.len() as u32 - 1)
        };
        let places: Vec<_> = pods.into_iter().zip(0..).map(place).collect();
        if hosts.len() < 2 || hosts.iter().all(|members| members.len() < 2) {
            return Err(HierarchyError::NoPods);
        }
        Ok(Self { places, hosts })
    }

    /// Number of pods.
    pub fn count(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// The hosts of a pod.
    pub fn hosts(&self, pod: u32) -> &[u32] {
        &self.hosts[pod as usize]
    }

    /// The pod of a host, and its number there.
    pub fn place(&self, host: u32) -> Option<(u32, u32)> {
        self.places.get(host as usize).copied()
    }

    /// The fabric of the root and of each pod, where the root has `share` percent of the links that
    /// pods use, and of the hosts' own rates.
    ///
    /// # Errors
    /// If two pods share a link, or the share is not between 1 and 99.
    pub fn divide<R: Routes + Clone>(
        &self,
        fabric: &CoordinatedFabric<R>,
        share: u32,
    ) -> Result<Divided<R>, HierarchyError> {
        if !(1..100).contains(&share) {
            return Err(HierarchyError::Share(share));
        }
        let owners = self.owners(fabric)?;
        let part = |rate: &Rate, percent: u32| rate.scaled(u64::from(percent), 100);
        let rates = |percent| fabric.hosts.iter().map(move |rate| part(rate, percent));
        let links = |percent, other: u32| {
            let owned = fabric.links.iter().zip(&owners);
            let capacity = move |(rate, owner): (&Rate, &Option<u32>)| match owner {
                Some(_) => part(rate, percent),
                None => part(rate, other),
            };
            owned.map(capacity).collect()
        };
        let root = CoordinatedFabric {
            hosts: rates(share).collect(),
            links: links(share, 100),
            routes: fabric.routes.clone(),
        };
        let own: Vec<Rate> = rates(100 - share).collect();
        let pod = |hosts: &Vec<u32>| CoordinatedFabric {
            hosts: hosts.iter().map(|&host| own[host as usize]).collect(),
            links: links(100 - share, 0),
            routes: PodRoutes {
                routes: fabric.routes.clone(),
                hosts: hosts.clone(),
            },
        };
        Ok(Divided {
            root,
            pods: self.hosts.iter().map(pod).collect(),
        })
    }

    /// Of each link the pod whose own traffic uses it.
    fn owners<R: Routes>(
        &self,
        fabric: &CoordinatedFabric<R>,
    ) -> Result<Vec<Option<u32>>, HierarchyError> {
        let mut owners: Vec<Option<u32>> = vec![None; fabric.links.len()];
        let mut path = Vec::new();
        for (pod, hosts) in (0..).zip(&self.hosts) {
            for &source in hosts {
                for &destination in hosts.iter().filter(|&&other| other != source) {
                    path.clear();
                    fabric.routes.path(source, destination, &mut path);
                    for &link in &path {
                        let Some(owner) = owners.get_mut(link as usize) else {
                            continue;
                        };
                        if let Some(first) = owner.replace(pod).filter(|&first| first != pod) {
                            let second = pod;
                            return Err(HierarchyError::Shared {
                                link,
                                first,
                                second,
                            });
                        }
                    }
                }
            }
        }
        Ok(owners)
    }
}

/// A fabric as its controllers see it.
#[derive(Clone, Debug)]
pub struct Divided<R> {
    /// Links that the root grants, with all hosts.
    pub root: CoordinatedFabric<R>,
    /// Links that the controllers of pods grant, each with its own hosts numbered from 0.
    pub pods: Vec<CoordinatedFabric<PodRoutes<R>>>,
}

/// The routes between the hosts of a pod.
#[derive(Clone, Debug)]
pub struct PodRoutes<R> {
    routes: R,
    hosts: Vec<u32>,
}

impl<R: Routes> Routes for PodRoutes<R> {
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>) {
        let host = |number: u32| self.hosts.get(number as usize);
        if let (Some(&source), Some(&destination)) = (host(source), host(destination)) {
            self.routes.path(source, destination, path);
        }
    }
}

/// The addresses of a pod's cluster: those of its hosts, then that of its controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    addresses: Vec<u32>,
    numbers: FxHashMap<u32, u32>,
}

impl Numbers {
    /// Of the hosts of a pod and its controller, which have these addresses for the driver.
    pub fn new(hosts: &[u32], controller: u32) -> Self {
        let addresses: Vec<u32> = hosts.iter().copied().chain([controller]).collect();
        Self {
            numbers: addresses.iter().copied().zip(0..).collect(),
            addresses,
        }
    }

    /// The number of the controller.
    pub fn controller(&self) -> u32 {
        self.addresses.len() as u32 - 1
    }

    /// The number of an address.
    fn of(&self, address: u32) -> Option<u32> {
        self.numbers.get(&address).copied()
    }

    /// The address of a number.
    fn address(&self, number: u32) -> Option<u32> {
        self.addresses.get(number as usize).copied()
    }
}

/// An agent of a pod's cluster, whose numbers are not the driver's addresses.
#[derive(Debug)]
pub struct Renumbered<A> {
    agent: A,
    numbers: Numbers,
}

impl<A> Renumbered<A> {
    /// The agent of a cluster with these numbers.
    pub fn new(agent: A, numbers: Numbers) -> Self {
        Self { agent, numbers }
    }
}

impl<A: Agent> Agent for Renumbered<A> {
    fn handle(&mut self, now: Time, from: u32, message: &[u8]) {
        // An unknown sender has a number that the agent refuses and counts.
        let from = self.numbers.of(from).unwrap_or(u32::MAX);
        self.agent.handle(now, from, message);
    }

    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<u32> {
        let to = self.agent.transmit(now, buffer)?;
        self.numbers.address(to)
    }

    fn timeout(&self) -> Option<Time> {
        self.agent.timeout()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.agent.handle_timeout(now);
    }
}

/// The two coordinators of a host: one for its pod, one for all beyond.
#[derive(Debug)]
pub struct TwoLevelCoordinator<P> {
    pod: Renumbered<Coordinator<P>>,
    root: Coordinator<P>,
    /// Level that releases first; it alternates.
    root_first: bool,
}

impl<P: Packet> TwoLevelCoordinator<P> {
    /// From the coordinator in the cluster of the pod, with its numbers, and the one in the root's.
    pub fn new(pod: Coordinator<P>, numbers: Numbers, root: Coordinator<P>) -> Self {
        Self {
            pod: Renumbered::new(pod, numbers),
            root,
            root_first: false,
        }
    }

    /// The coordinator of the pod, and that of the root.
    pub fn levels(&self) -> [&Coordinator<P>; 2] {
        [&self.pod.agent, &self.root]
    }

    /// The number of a host of the pod.
    fn neighbour(&self, host: u32) -> Option<u32> {
        let number = self.pod.numbers.of(host)?;
        (number != self.pod.numbers.controller()).then_some(number)
    }

    fn release_level(&mut self, now: Time, is_root: bool) -> Release<P> {
        if is_root {
            return self.root.release(now);
        }
        match self.pod.agent.release(now) {
            Release::Packet { packet, to } => Release::Packet {
                packet,
                to: to.map(|to| self.pod.numbers.address(to).unwrap_or(to)),
            },
            other => other,
        }
    }
}

impl<P: Packet> Agent for TwoLevelCoordinator<P> {
    fn handle(&mut self, now: Time, from: u32, message: &[u8]) {
        match self.pod.numbers.of(from) {
            Some(_) => self.pod.handle(now, from, message),
            None => self.root.handle(now, from, message),
        }
    }

    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<u32> {
        let to = self.pod.transmit(now, buffer);
        to.or_else(|| self.root.transmit(now, buffer))
    }

    fn timeout(&self) -> Option<Time> {
        let timeouts = [self.pod.timeout(), self.root.timeout()];
        timeouts.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.pod.handle_timeout(now);
        self.root.handle_timeout(now);
    }
}

impl<P: Packet> Gate<P> for TwoLevelCoordinator<P> {
    fn offer(&mut self, now: Time, packet: P, to: Option<u32>) -> Verdict {
        match to.and_then(|to| self.neighbour(to)) {
            Some(number) => self.pod.agent.offer(now, packet, Some(number)),
            None => self.root.offer(now, packet, to),
        }
    }

    fn release(&mut self, now: Time) -> Release<P> {
        self.root_first = !self.root_first;
        let first = self.release_level(now, self.root_first);
        if matches!(first, Release::Packet { .. }) {
            return first;
        }
        let second = self.release_level(now, !self.root_first);
        match (first, second) {
            (Release::At(one), Release::At(other)) => Release::At(one.min(other)),
            (at @ Release::At(_), Release::Idle) => at,
            (_, second) => second,
        }
    }

    fn received(&mut self, now: Time, size: u32, from: u32) {
        match self.neighbour(from) {
            Some(number) => self.pod.agent.received(now, size, number),
            None => self.root.received(now, size, from),
        }
    }

    fn longest_wait(&self, now: Time) -> Option<Time> {
        let waits = self.levels().map(|level| level.longest_wait(now));
        waits.into_iter().flatten().max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two racks of two hosts: links 0 to 3 up, 4 to 7 down, 8 and 9 between the racks.
    fn racks(source: u32, destination: u32, path: &mut Vec<u32>) {
        path.push(source);
        if source / 2 != destination / 2 {
            path.push(8 + source / 2);
        }
        path.push(4 + destination);
    }

    type Racks = CoordinatedFabric<fn(u32, u32, &mut Vec<u32>)>;

    fn fabric() -> Racks {
        let gbps = Rate::from_gbps(1);
        CoordinatedFabric::new(vec![gbps; 4], vec![gbps; 10], racks as _).unwrap()
    }

    fn route<R: Routes>(
        fabric: &CoordinatedFabric<R>,
        from: u32,
        to: u32,
    ) -> Option<(Vec<u32>, u64)> {
        let (path, rate) = fabric.route(from, to)?;
        Some((path.to_vec(), rate.bps() / 1_000_000))
    }

    #[test]
    fn links_of_pods_are_divided_and_the_others_are_the_roots() {
        let pods = Pods::of_size(2, 4).unwrap();
        let Divided { root, pods: inside } = pods.divide(&fabric(), 30).unwrap();
        assert_eq!(route(&root, 0, 3), Some((vec![0, 8, 7], 300)));
        assert_eq!(root.links[8], Rate::from_gbps(1));
        assert_eq!(inside.len(), 2);
        // Hosts 2 and 3 are 0 and 1 in the second pod.
        assert_eq!(route(&inside[1], 0, 1), Some((vec![2, 7], 700)));
        assert_eq!(route(&inside[1], 0, 2), None, "nobody beyond the pod");
        for (link, &whole) in fabric().links.iter().enumerate() {
            for pod in &inside {
                let given = root.links[link].bps() + pod.links[link].bps();
                assert!(given <= whole.bps());
            }
        }
    }

    #[test]
    fn what_cannot_be_divided_is_refused() {
        let size = |size| Pods::of_size(size, 4).unwrap_err().to_string();
        let expected = "use at least 2 hosts and fewer than the 4 that there are";
        assert_eq!(size(1), format!("pods of 1: {expected}"));
        assert_eq!(size(4), format!("pods of 4: {expected}"));
        let pods = Pods::of_size(2, 4).unwrap();
        for share in [0, 100] {
            let error = pods.divide(&fabric(), share).unwrap_err();
            assert_eq!(error, HierarchyError::Share(share));
        }
        // Both pods go through the same link.
        let hub = |source: u32, _: u32, path: &mut Vec<u32>| path.extend([source, 9]);
        let gbps = Rate::from_gbps(1);
        let fabric = CoordinatedFabric::new(vec![gbps; 4], vec![gbps; 10], hub).unwrap();
        let error = pods.divide(&fabric, 50).err();
        assert_eq!(
            error,
            Some(HierarchyError::Shared {
                link: 9,
                first: 0,
                second: 1
            })
        );
    }

    #[test]
    fn numbers_of_a_cluster_are_places() {
        let numbers = Numbers::new(&[6, 7, 8], 20);
        assert_eq!(numbers.controller(), 3);
        assert_eq!(
            (numbers.of(7), numbers.of(20), numbers.of(9)),
            (Some(1), Some(3), None)
        );
        assert_eq!((numbers.address(0), numbers.address(4)), (Some(6), None));
    }
}
