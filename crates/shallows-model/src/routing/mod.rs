//! Paths of packets: shortest paths, and one of several that are equally short.
//!
//! Hosts behind one switch are reached alike, so the table has a row for each switch that has hosts
//! and two bytes in it for every switch ([`Router::table_bytes`]): 576 B for 12 x 12 x 12
//! leaf-spine, 2.1 MB for the 11,664 hosts of a three-tier fat-tree of radix 36. Next hops are in
//! the order of the links.

mod config;
mod explicit;
mod fork;
mod ports;
mod steps;
mod table;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashSet;
pub use shallows_core::control::LinkState;
use shallows_core::units::Bytes;
use thiserror::Error;

use crate::ids::{FlowId, HostId, Id as _, IdVec, LinkId, ids};
use crate::topology::{Fabric, Nic, Nics};
use crate::transport::Connections;
use crate::workload::Ends;

pub use config::{RoutingConfig, RoutingError};
use explicit::ExplicitPaths;
pub use fork::Fork;
use table::Table;

/// Larger tables are refused.
const MOST_TABLE_BYTES: u64 = 2_000_000_000;

/// Finds paths through one fabric.
#[derive(Clone, Debug)]
pub struct Router {
    choice: Choice,
    explicit: Option<ExplicitPaths>,
    seed: u64,
    host_names: Arc<[String]>,
    nics: Nics,
    table: Table,
    states: IdVec<LinkId, LinkState>,
}

/// Choice among several next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Hash(Selection),
    DestinationModulo,
    Ns2Hash,
    TtlHash,
}

/// Meaning of the selector of [`Router::path`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// A number of the flow: its packets take one path.
    Flow,
    /// A number of the packet: each takes a path of its own.
    Packet,
    /// Anything: a pair of hosts has one path.
    Pair,
    /// The number of the connection, as [`Router::flow_selector`] has it.
    Connection,
}

/// Number of a connection among those of two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionOrder {
    /// The one that they have from the start.
    First,
    /// One that was added while all others were busy.
    Added,
}

/// There is no way from one host to another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no path from {src} to {dst}")]
pub struct NoPath {
    /// The sending host.
    pub src: String,
    /// The receiving host.
    pub dst: String,
}

impl Router {
    /// The router of a fabric whose links are all up.
    pub fn new(fabric: &Fabric, config: &RoutingConfig, seed: u64) -> Result<Self, RoutingError> {
        let bytes = Self::table_bytes(fabric);
        if bytes > MOST_TABLE_BYTES {
            return Err(RoutingError::TooLarge {
                bytes: Bytes::new(bytes),
                most: Bytes::new(MOST_TABLE_BYTES),
            });
        }
        let mut router = Self {
            choice: config.choice(),
            explicit: ExplicitPaths::new(fabric, config)?,
            seed,
            host_names: Arc::clone(fabric.host_names()),
            nics: fabric.all_nics().clone(),
            table: Table::new(fabric),
            states: vec![LinkState::Up; fabric.links().len()].into(),
        };
        router.table.fill(&router.states);
        Ok(router)
    }

    /// The bytes that the table of a router for `fabric` takes.
    pub fn table_bytes(fabric: &Fabric) -> u64 {
        let mut has_hosts = vec![false; fabric.switches() as usize];
        for nic in fabric.host_ids().flat_map(|host| fabric.nics(host)) {
            has_hosts[nic.switch as usize] = true;
        }
        let edges = has_hosts.iter().filter(|&&has| has).count() as u64;
        edges * u64::from(fabric.switches()) * size_of::<u16>() as u64
    }

    /// The selector that [`Router::path`] expects.
    pub fn selection(&self) -> Selection {
        match self.choice {
            Choice::Hash(selection) => selection,
            Choice::TtlHash => Selection::Flow,
            Choice::DestinationModulo => Selection::Pair,
            Choice::Ns2Hash => Selection::Connection,
        }
    }

    /// The selector of both directions of a flow from `src` to `dst`. `place` says which connection
    /// of its hosts it would be on if it opened one.
    pub fn flow_selector(
        &self,
        FlowId(flow): FlowId,
        (HostId(src), HostId(dst)): (HostId, HostId),
        place: ConnectionOrder,
    ) -> u64 {
        match (self.selection(), place) {
            (Selection::Connection, ConnectionOrder::First) => {
                // Pairs in the order of MQ-ECN's script: by destination, then source.
                let others = u64::from(self.nics.hosts()) - 1;
                u64::from(dst) * others + u64::from(src) - u64::from(src > dst)
            }
            // The script gives those that it adds no number.
            (Selection::Connection, ConnectionOrder::Added) => 0,
            (Selection::Flow | Selection::Packet | Selection::Pair, _) => u64::from(flow),
        }
    }

    /// Takes one direction of a cable away or brings it back, and finds all paths again.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn set_link(&mut self, link: LinkId, state: LinkState) {
        let before = std::mem::replace(&mut self.states[link], state);
        // Links of hosts are in no row.
        if before != state && link.index() >= self.nics.links() {
            self.table.fill(&self.states);
        }
    }

    /// Writes the links from `src` to `dst` into `out`, from the one that leaves `src` to the one
    /// that arrives at `dst`. [`Router::selection`] says what `selector` means. If there is no
    /// path, `out` holds nothing of use.
    ///
    /// # Panics
    /// If one of the hosts does not exist.
    pub fn path(
        &self,
        src: HostId,
        dst: HostId,
        selector: u64,
        out: &mut Vec<LinkId>,
    ) -> Result<(), NoPath> {
        out.clear();
        let found = match self
            .explicit
            .as_ref()
            .and_then(|paths| paths.path(src, dst))
        {
            Some(path) => self.copy_if_up(path, out),
            None => self.walk(src, dst, selector, out),
        };
        found.ok_or_else(|| self.no_path(src, dst))
    }

    fn copy_if_up(&self, path: &[LinkId], out: &mut Vec<LinkId>) -> Option<()> {
        out.extend_from_slice(path);
        path.iter().all(|&link| self.is_up(link)).then_some(())
    }

    fn walk(&self, src: HostId, dst: HostId, selector: u64, out: &mut Vec<LinkId>) -> Option<()> {
        if src == dst {
            return None;
        }
        let mut chooser = Chooser::new(self, src, dst, selector);
        let (from, to) = self.nics_between(src, dst, &mut chooser)?;
        out.push(from.up);
        let mut at = from.switch;
        while at != to.switch {
            let ports = self.table.next_hops(at, to.switch);
            let port = chooser.pick(ports, Place::Switch(at), out.len())?;
            out.push(port.link);
            at = port.to;
        }
        out.push(to.down);
        Some(())
    }

    /// The NICs of both hosts that a path has: one pair of those with the shortest way between them.
    fn nics_between(&self, src: HostId, dst: HostId, chooser: &mut Chooser) -> Option<(Nic, Nic)> {
        if !self.nics.are_several() {
            let (from, to) = (self.nics.first(src), self.nics.first(dst));
            let is_up = self.is_up(from.up) && self.is_up(to.down);
            return is_up.then_some((from, to));
        }
        let from = self.nics.of(src).filter(|nic| self.is_up(nic.up));
        let mut nearest = (u32::MAX, Vec::new());
        for from in from {
            for to in self.nics.of(dst).filter(|nic| self.is_up(nic.down)) {
                match self.table.distance(from.switch, to.switch) {
                    Some(distance) if distance < nearest.0 => {
                        nearest = (distance, vec![(from, to)]);
                    }
                    Some(distance) if distance == nearest.0 => nearest.1.push((from, to)),
                    _ => {}
                }
            }
        }
        chooser.pick(&nearest.1, Place::Host, 0)
    }

    fn is_up(&self, link: LinkId) -> bool {
        self.states[link] == LinkState::Up
    }

    #[cold]
    fn no_path(&self, src: HostId, dst: HostId) -> NoPath {
        let name = |host: HostId| self.host_names[host.index()].clone();
        NoPath {
            src: name(src),
            dst: name(dst),
        }
    }
}

/// Chooses among equal ways, where there are several.
struct Chooser {
    choice: Choice,
    seed: u64,
    src: HostId,
    dst: HostId,
    selector: u64,
    /// Hash of the hosts and the selector.
    flow: u64,
    /// Rest of the destination's number.
    digits: u32,
}

/// The node that chooses.
#[derive(Clone, Copy)]
enum Place {
    Host,
    Switch(u32),
}

impl Chooser {
    fn new(router: &Router, src: HostId, dst: HostId, selector: u64) -> Self {
        let pair = u64::from(src.0) << 32 | u64::from(dst.0);
        Self {
            choice: router.choice,
            seed: router.seed,
            src,
            dst,
            selector,
            flow: mix(mix(router.seed, pair), selector),
            digits: dst.0,
        }
    }

    /// One of some equal ways from a place, with `links` links behind the packet.
    fn pick<T: Copy>(&mut self, ways: &[T], place: Place, links: usize) -> Option<T> {
        let count = ways.len() as u32;
        let index = match (self.choice, count) {
            (_, 0 | 1) => 0,
            (Choice::Hash(_), _) => {
                let place = match place {
                    Place::Host => u64::MAX,
                    Place::Switch(switch) => u64::from(switch),
                };
                below(mix(self.flow, place), count)
            }
            (Choice::DestinationModulo, _) => {
                let index = self.digits % count;
                self.digits /= count;
                index
            }
            (Choice::Ns2Hash, _) => ns2_hash(self.src.0, self.dst.0, self.selector as u32) % count,
            (Choice::TtlHash, _) => ttl_hash(self.seed, self.selector, links) % count,
        };
        ways.get(index as usize).copied()
    }
}

/// A hash of both: the finalizer of SplitMix64 over their combination.
fn mix(state: u64, value: u64) -> u64 {
    let mut z = (state ^ value).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Horner's rule in base 9 over the bytes, which are signed: the hash of ns-2's multipath patch. A
/// fourth word before these, the number of the node, is 0 in the authors' runs.
fn ns2_hash(src: u32, dst: u32, connection: u32) -> u32 {
    let words = [src, dst, connection].map(u32::to_le_bytes);
    let bytes = words.as_flattened().iter();
    bytes.fold(0_u32, |hash, &byte| {
        hash.wrapping_mul(9)
            .wrapping_add_signed(i32::from(byte.cast_signed()))
    })
}

/// The random number of a flow, less the bit of each link behind the packet: EAR's simulator
/// shifts it by 32 - TTL.
fn ttl_hash(seed: u64, flow: u64, links: usize) -> u32 {
    let number = (mix(seed, flow) >> 32) as u32;
    number >> links.min(31)
}

/// A number below `count` from the upper half of a hash.
fn below(hash: u64, count: u32) -> u32 {
    (((hash >> 32) * u64::from(count)) >> 32) as u32
}

/// The first link from `start` towards every other switch of a tree, and where it leads, from the
/// links of each switch and where they lead.
pub fn first_links<L: Copy>(
    start: usize,
    neighbours: &[Vec<(L, usize)>],
) -> Vec<Option<(L, usize)>> {
    let mut ways = vec![None; neighbours.len()];
    let mut open = VecDeque::from([(start, None)]);
    while let Some((switch, way)) = open.pop_front() {
        for &(link, next) in &neighbours[switch] {
            if next != start && ways[next].is_none() {
                ways[next] = way.or(Some((link, next)));
                open.push_back((next, ways[next]));
            }
        }
    }
    ways
}

/// The selector of each flow's paths. Where connections are kept, a flow that opens one although
/// its hosts had one before has found it busy.
pub fn selectors<E: Into<Ends>>(
    router: &Router,
    flows: impl IntoIterator<Item = E>,
    connections: Connections,
) -> impl Iterator<Item = u64> {
    let kept = connections != Connections::PerFlow;
    let may_differ = kept && router.selection() == Selection::Connection;
    let mut met = FxHashSet::default();
    ids().zip(flows).map(move |(flow, ends)| {
        let ends = ends.into();
        let place = if may_differ && !met.insert(ends) {
            ConnectionOrder::Added
        } else {
            ConnectionOrder::First
        };
        router.flow_selector(flow, (ends.src, ends.dst), place)
    })
}
