//! NICs of hosts: the one place that knows which links they are.

use std::ops::Range;

use crate::ids::{HostId, Id as _, LinkId};

/// A NIC: both directions of the cable between a host and a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nic {
    /// The link that the host sends on.
    pub up: LinkId,
    /// The link that it receives from.
    pub down: LinkId,
    /// The switch at the other end.
    pub switch: u32,
}

/// The NICs of all hosts. Their cables are the first of a fabric, in the order of the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nics {
    /// Cables of hosts up to each host, and of all of them.
    first: Vec<u32>,
    /// The switch at the end of each cable.
    switches: Vec<u32>,
}

impl Nics {
    /// Room for this many, and no host yet.
    pub(super) fn with_capacity(cables: usize) -> Self {
        let mut first = Vec::with_capacity(cables + 1);
        first.push(0);
        Self {
            first,
            switches: Vec::with_capacity(cables),
        }
    }

    /// Adds a host with a cable to each of these switches.
    pub(super) fn push(&mut self, switches: &[u32]) {
        self.switches.extend_from_slice(switches);
        self.first.push(self.switches.len() as u32);
    }

    /// Number of hosts.
    pub(crate) fn hosts(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// Returns whether some host has more than one.
    pub(crate) fn are_several(&self) -> bool {
        self.switches.len() > self.hosts() as usize
    }

    /// Number of links of hosts, in both directions. The links of switches come after them.
    pub(crate) fn links(&self) -> usize {
        2 * self.switches.len()
    }

    /// The NICs of a host.
    pub(crate) fn of(&self, host: HostId) -> impl ExactSizeIterator<Item = Nic> + Clone {
        self.cables(host).map(|cable| self.nic(cable))
    }

    /// The first NIC of a host.
    pub(crate) fn first(&self, host: HostId) -> Nic {
        self.nic(self.cables(host).start)
    }

    fn cables(&self, host: HostId) -> Range<usize> {
        self.first[host.index()] as usize..self.first[host.index() + 1] as usize
    }

    fn nic(&self, cable: usize) -> Nic {
        let up = LinkId(2 * cable as u32);
        Nic {
            up,
            down: up.reverse(),
            switch: self.switches[cable],
        }
    }
}
