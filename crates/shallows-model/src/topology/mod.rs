//! Fabrics: hosts, switches and the links between them, as plain data.
//!
//! A cable is two directed links, one each way, and each directed link is an egress port of the
//! node that it leaves. [`Fabric::nics`] has the links of a host.
//!
//! ```
//! use shallows_core::units::{Rate, Time};
//! use shallows_model::HostId;
//! use shallows_model::topology::{Node, TopologyConfig};
//!
//! let config = TopologyConfig::Star {
//!     hosts: 3,
//!     rate: Rate::from_gbps(10),
//!     delay: Time::from_us(1),
//! };
//! let fabric = config.build()?;
//! assert_eq!(fabric.links().len(), 6);
//! assert_eq!(fabric.link(fabric.uplink(HostId(2))).from, Node::Host(HostId(2)));
//! assert_eq!(fabric.name(Node::Switch(0)), "switch0");
//! # Ok::<(), shallows_model::topology::TopologyError>(())
//! ```

mod build;
mod config;
mod custom;
mod error;
mod nearest;
mod nics;
mod span;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use shallows_core::units::{Rate, Time};

use crate::ids::{HostId, Id as _, IdVec, LinkId};

pub use config::TopologyConfig;
pub use custom::{Cable, Nodes};
pub use error::{TopologyError, UnknownNode};
pub use nearest::nearest;
pub use nics::Nic;
pub(crate) use nics::Nics;

/// Delays beyond this are refused, so that no sum of them leaves the clock.
pub const LONGEST_DELAY: Time = Time::from_secs(60);

/// A host or a switch, each kind numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// An end of traffic, with one or several NICs.
    Host(HostId),
    /// A node that forwards.
    Switch(u32),
}

/// One direction of a cable, and the egress port of the node that it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node that sends on it.
    pub from: Node,
    /// The node that receives from it.
    pub to: Node,
    /// Rate of the cable.
    pub rate: Rate,
    /// From the last bit's departure to its arrival.
    pub propagation: Time,
}

/// Location of a host. Two hosts share a group if the numbers are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLocation {
    /// The switch of its first NIC.
    pub rack: u32,
    /// The smallest part of the fabric with more than one tier of switches.
    pub pod: u32,
    /// The next larger part: the three-level pod of a four-tier fat-tree, else the whole fabric.
    pub upper_pod: u32,
}

/// A fabric that has been checked: every cable of a host, of which it has at least one, leads to a
/// switch; no two cables join the same nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    links: IdVec<LinkId, Link>,
    nics: Nics,
    places: IdVec<HostId, HostLocation>,
    host_names: Arc<[String]>,
    switch_names: Vec<String>,
}

impl Fabric {
    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.places.len() as u32
    }

    /// All hosts.
    pub fn host_ids(&self) -> impl DoubleEndedIterator<Item = HostId> + Clone + use<> {
        (0..self.hosts()).map(HostId)
    }

    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.switch_names.len() as u32
    }

    /// Every directed link.
    pub fn links(&self) -> &IdVec<LinkId, Link> {
        &self.links
    }

    /// The link numbered `link`.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link]
    }

    /// The NICs of `host`.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn nics(&self, host: HostId) -> impl ExactSizeIterator<Item = Nic> + Clone {
        self.nics.of(host)
    }

    /// Returns whether some hosts have more than one NIC.
    pub fn has_several_nics(&self) -> bool {
        self.nics.are_several()
    }

    pub(crate) fn all_nics(&self) -> &Nics {
        &self.nics
    }

    /// The link that `host` sends on with its first NIC.
    pub fn uplink(&self, host: HostId) -> LinkId {
        self.nics.first(host).up
    }

    /// The links that hosts send on with their first NICs, by host.
    pub fn uplinks(&self) -> IdVec<HostId, LinkId> {
        self.host_ids().map(|host| self.uplink(host)).collect()
    }

    /// The link that `host` receives from with its first NIC.
    pub fn downlink(&self, host: HostId) -> LinkId {
        self.nics.first(host).down
    }

    /// The links between switches, which come after those of hosts.
    pub fn core_links(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.links.numbered().skip(self.nics.links())
    }

    /// The other direction of the same cable.
    pub fn reverse(&self, link: LinkId) -> LinkId {
        link.reverse()
    }

    /// The location of `host`.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn place(&self, host: HostId) -> HostLocation {
        self.places[host]
    }

    /// The name of a node, as scenario files write it.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(host) => &self.host_names[host.index()],
            Node::Switch(switch) => &self.switch_names[switch as usize],
        }
    }

    /// The names of all hosts, shared.
    pub fn host_names(&self) -> &Arc<[String]> {
        &self.host_names
    }

    /// The node called `name`. Looks through all of them.
    pub fn node(&self, name: &str) -> Result<Node, UnknownNode> {
        let at = |names: &[String]| names.iter().position(|n| n == name);
        at(&self.host_names)
            .map(|host| Node::Host(HostId(host as u32)))
            .or_else(|| at(&self.switch_names).map(|switch| Node::Switch(switch as u32)))
            .ok_or_else(|| UnknownNode::new(name, self.host_names.iter().chain(&self.switch_names)))
    }

    /// The propagation delay of `links` one after the other.
    pub fn propagation(&self, links: &[LinkId]) -> Time {
        links.iter().map(|&link| self.link(link).propagation).sum()
    }
}
