//! Egress ports of a fabric.

use std::collections::BTreeMap;

use shallows_core::port::pause::PauseConfig;
use shallows_core::port::{PerIndex, PortConfig};
use shallows_core::units::{Bytes, Time};

use crate::ids::{Id as _, LinkId};
use crate::topology::{Fabric, Node};

/// Configuration of the ports of a fabric.
#[derive(Clone, Debug)]
pub struct PortSetup {
    /// Ports of switches.
    pub switches: PortConfig,
    /// Ports of hosts.
    pub hosts: PortConfig,
    /// Ports of specific links, which override `switch` and `host`.
    pub special: BTreeMap<LinkId, PortConfig>,
    /// Memory that the ports of one switch share, if their buffers do.
    pub pool: Option<Bytes>,
    /// Pause frames of switches; none if not given.
    pub pause: Option<PauseConfig>,
    /// Time that hosts take to hand an arrived packet to their transport: all the same, or each its
    /// own.
    pub host_delay: PerIndex<Time>,
}

impl PortSetup {
    /// From the last bit's departure on a link until its packet is where it goes on.
    pub fn delay(&self, fabric: &Fabric, link: LinkId) -> Time {
        let link = fabric.link(link);
        match link.to {
            Node::Switch(_) => link.propagation,
            Node::Host(host) => {
                link.propagation
                    + match &self.host_delay {
                        PerIndex::All(delay) => *delay,
                        PerIndex::Each(delays) => delays[host.index()],
                    }
            }
        }
    }

    /// Configuration of the port of one link.
    pub fn config(&self, fabric: &Fabric, link: LinkId) -> &PortConfig {
        if let Some(special) = self.special.get(&link) {
            return special;
        }
        match fabric.link(link).from {
            Node::Switch(_) => &self.switches,
            Node::Host(_) => &self.hosts,
        }
    }

    /// All that ports are made of.
    pub fn configs(&self) -> impl Iterator<Item = &PortConfig> {
        [&self.switches, &self.hosts]
            .into_iter()
            .chain(self.special.values())
    }
}
