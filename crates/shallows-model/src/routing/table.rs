//! The next hops of every switch towards every switch that has hosts.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::LinkState;
use super::ports::{Port, Ports};
use crate::ids::{IdVec, LinkId};
use crate::topology::Fabric;

/// A row for each switch with hosts, and in it for every switch the number of a set of ports.
///
/// A switch has few different sets, such as all ports up and each port down, so a number takes two
/// bytes and the sets take next to nothing.
#[derive(Clone, Debug)]
pub(super) struct Table {
    ports: Ports,
    /// The row of each switch that has hosts, [`NO_ROW`] for the others.
    rows: Vec<u32>,
    entries: Vec<u16>,
    /// The sets of each switch.
    sets: Vec<Vec<Set>>,
    /// The ports of all sets.
    members: Vec<Port>,
}

/// Ports of one switch, as a range of the members.
#[derive(Clone, Copy, Debug)]
struct Set {
    first: u32,
    count: u32,
}

/// The row of a switch without hosts.
const NO_ROW: u32 = u32::MAX;
/// The entry of a switch from which there is no way.
const NO_SET: u16 = u16::MAX;
/// Distance of a switch that has not been reached.
const UNREACHED: u32 = u32::MAX;

impl Table {
    /// An empty table.
    pub(super) fn new(fabric: &Fabric) -> Self {
        let switches = fabric.switches() as usize;
        let mut rows = vec![NO_ROW; switches];
        let mut edges = 0;
        let nics = fabric.host_ids().flat_map(|host| fabric.nics(host));
        for rack in nics.map(|nic| nic.switch) {
            if rows[rack as usize] == NO_ROW {
                rows[rack as usize] = edges;
                edges += 1;
            }
        }
        Self {
            ports: Ports::new(fabric),
            rows,
            entries: vec![NO_SET; edges as usize * switches],
            sets: vec![Vec::new(); switches],
            members: Vec::new(),
        }
    }

    /// The ports of switch `at` on shortest ways to switch `target`, which has hosts. None if there
    /// is no way, or nowhere to go.
    pub(super) fn next_hops(&self, at: u32, target: u32) -> &[Port] {
        match self.set(at, target) {
            NO_SET => &[],
            set => self.members(self.sets[at as usize][usize::from(set)]),
        }
    }

    /// The number of these ports among the sets of switch `at`.
    pub(super) fn set(&self, at: u32, target: u32) -> u16 {
        let row = self.rows[target as usize] as usize;
        self.entries[row * self.rows.len() + at as usize]
    }

    /// The number of links on the shortest ways from switch `at` to switch `target`, which has hosts.
    pub(super) fn distance(&self, mut at: u32, target: u32) -> Option<u32> {
        let mut links = 0;
        while at != target {
            at = self.next_hops(at, target).first()?.to;
            links += 1;
        }
        Some(links)
    }

    fn members(&self, Set { first, count }: Set) -> &[Port] {
        &self.members[first as usize..][..count as usize]
    }

    /// Fills the table: for each switch with hosts a search through the links that lead to it.
    pub(super) fn fill(&mut self, states: &IdVec<LinkId, LinkState>) {
        let is_up = |link: LinkId| states[link] == LinkState::Up;
        let switches = self.rows.len();
        self.members.clear();
        self.sets.iter_mut().for_each(Vec::clear);
        let mut known = FxHashMap::default();
        let mut distances = vec![UNREACHED; switches];
        let mut reached = Vec::with_capacity(switches);
        let mut closer = Vec::new();
        for edge in 0..switches as u32 {
            let row = self.rows[edge as usize];
            if row == NO_ROW {
                continue;
            }
            self.search(edge, is_up, &mut distances, &mut reached);
            for at in 0..switches as u32 {
                let distance = distances[at as usize];
                closer.clear();
                if distance != UNREACHED {
                    let is_closer =
                        |port: &&Port| distances[port.to as usize] < distance && is_up(port.link);
                    closer.extend(self.ports.of(at).iter().filter(is_closer));
                }
                let entry = self.intern(at, &closer, &mut known);
                self.entries[row as usize * switches + at as usize] = entry;
            }
        }
    }

    /// The distance in links from each switch to `edge`.
    fn search(
        &self,
        edge: u32,
        is_up: impl Fn(LinkId) -> bool,
        distances: &mut [u32],
        reached: &mut Vec<u32>,
    ) {
        distances.fill(UNREACHED);
        distances[edge as usize] = 0;
        reached.clear();
        reached.push(edge);
        let mut next = 0;
        while let Some(&at) = reached.get(next) {
            next += 1;
            let further = distances[at as usize] + 1;
            for port in self.ports.of(at) {
                // Packets come the other way.
                if distances[port.to as usize] == UNREACHED && is_up(port.link.reverse()) {
                    distances[port.to as usize] = further;
                    reached.push(port.to);
                }
            }
        }
    }

    /// The number of the set of these ports of switch `at`. `known` finds sets by their hash.
    fn intern(&mut self, at: u32, ports: &[Port], known: &mut FxHashMap<u64, u16>) -> u16 {
        if ports.is_empty() {
            return NO_SET;
        }
        let mut hasher = FxHasher::default();
        (at, ports).hash(&mut hasher);
        let hash = hasher.finish();
        let sets = &self.sets[at as usize];
        let is_same = |&number: &u16| {
            let set = sets.get(usize::from(number));
            set.is_some_and(|&set| self.members(set) == ports)
        };
        // Two sets may have one hash.
        let found = known.get(&hash).copied().filter(is_same);
        if let Some(number) = found.or_else(|| (0..sets.len() as u16).find(is_same)) {
            return number;
        }
        let number = sets.len() as u16;
        self.sets[at as usize].push(Set {
            first: self.members.len() as u32,
            count: ports.len() as u32,
        });
        self.members.extend_from_slice(ports);
        known.insert(hash, number);
        number
    }
}
