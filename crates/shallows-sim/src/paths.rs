//! Paths that are in use, each stored once.

use std::hash::{Hash, Hasher as _};
use std::marker::PhantomData;

use rustc_hash::{FxHashMap, FxHasher};
use shallows_model::{Id, LinkId};

use crate::ids::{PortId, ShardId};

/// The next step of a packet, with links by their numbers in the fabric or ports by those in a
/// shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop<I> {
    bits: u32,
    kind: PhantomData<I>,
}

/// Set in what ends a path: the packet is at its host. The rest is the host's NIC.
const ARRIVED: u32 = 1 << 31;

/// Set in place of a port that another shard has. The rest is that shard.
const FOREIGN: u32 = 1 << 30;

impl<I: Id> Hop<I> {
    const fn of(bits: u32) -> Self {
        let kind = PhantomData;
        Self { bits, kind }
    }

    /// To a link or port.
    #[inline]
    pub(crate) fn to(id: I) -> Self {
        Self::of(id.index() as u32)
    }

    /// To the host that has this NIC: the packet has arrived.
    #[inline]
    pub(crate) fn arrived(nic: I) -> Self {
        Self::of(ARRIVED | nic.index() as u32)
    }

    #[inline]
    pub(crate) fn has_arrived(self) -> bool {
        self.bits & ARRIVED != 0
    }

    /// The link or port of a packet that has not arrived.
    #[inline]
    pub(crate) fn onward(self) -> I {
        I::new(self.bits)
    }

    /// The link or port, or the NIC of a packet that has arrived.
    #[inline]
    pub(crate) fn id(self) -> I {
        I::new(self.bits & !ARRIVED)
    }

    /// A number with all of it, and back.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.bits
    }

    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self::of(bits)
    }
}

impl Hop<PortId> {
    /// To no port: of events that concern none.
    pub(crate) const NOWHERE: Self = Self::of(ARRIVED);

    /// To a port of another shard.
    fn foreign(shard: ShardId) -> Self {
        Self::of(FOREIGN | shard.0)
    }

    /// The shard of a port that is not here.
    #[inline]
    pub(crate) fn shard(self) -> ShardId {
        ShardId(self.bits & !FOREIGN)
    }
}

/// All paths, one after the other; a packet holds the position of its next hop.
#[derive(Clone, Debug)]
pub(crate) struct Paths<I> {
    hops: Vec<Hop<I>>,
    /// Index of the first link of the path with a hash. Of two paths with one hash, only the first
    /// is known.
    known: FxHashMap<u64, u32>,
}

impl<I> Default for Paths<I> {
    fn default() -> Self {
        Self {
            hops: Vec::new(),
            known: FxHashMap::default(),
        }
    }
}

impl<I: Id + Hash + Eq> Paths<I> {
    /// Index of the first link of a path that ends at the host with this NIC.
    pub(crate) fn intern(&mut self, path: impl Iterator<Item = I> + Clone, nic: I) -> u32 {
        let mut hasher = FxHasher::default();
        path.clone().for_each(|link| link.hash(&mut hasher));
        let hash = hasher.finish();
        if let Some(&at) = self.known.get(&hash)
            && self.links(at).eq(path.clone())
        {
            return at;
        }
        let at = self.hops.len() as u32;
        self.hops.extend(path.map(Hop::to));
        self.hops.push(Hop::arrived(nic));
        self.known.entry(hash).or_insert(at);
        at
    }

    /// Index of the first link of a part of a path, after which its packets are copied or at their
    /// host; `next` is a link there.
    pub(crate) fn add_segment(&mut self, links: &[I], next: I) -> u32 {
        let at = self.hops.len() as u32;
        self.hops.extend(links.iter().copied().map(Hop::to));
        self.hops.push(Hop::arrived(next));
        at
    }

    /// Gives back the memory that only new paths need.
    pub(crate) fn seal(&mut self) {
        self.known = FxHashMap::default();
        self.hops.shrink_to_fit();
    }

    /// The hop at a position.
    #[inline]
    pub(crate) fn hop(&self, at: u32) -> Hop<I> {
        self.hops[at as usize]
    }

    /// The links of the path that begins at a position.
    pub(crate) fn links(&self, at: u32) -> impl Iterator<Item = I> {
        let rest = self.hops[at as usize..].iter();
        rest.take_while(|hop| !hop.has_arrived())
            .map(|hop| hop.onward())
    }

    /// All pairs of links that a path takes one after the other.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (I, I)> {
        let pairs = self.hops.windows(2).map(|pair| (pair[0], pair[1]));
        let links = pairs.filter(|(from, to)| !from.has_arrived() && !to.has_arrived());
        links.map(|(from, to)| (from.onward(), to.onward()))
    }
}

impl Paths<LinkId> {
    /// The same paths at the same positions, as a shard has them that has all ports in the order of
    /// their links.
    pub(crate) fn of_only_shard(self) -> Paths<PortId> {
        let hop = |hop: Hop<LinkId>| Hop::of(hop.bits);
        Paths {
            hops: self.hops.into_iter().map(hop).collect(),
            known: self.known,
        }
    }

    /// The same paths at the same positions, as a shard of several has them.
    pub(crate) fn of_shard(
        &self,
        shard: ShardId,
        place: impl Fn(LinkId) -> (ShardId, PortId),
    ) -> Paths<PortId> {
        let hop = |&hop: &Hop<LinkId>| {
            let local = match place(hop.id()) {
                (of, port) if of == shard => Hop::to(port),
                (other, _) => Hop::foreign(other),
            };
            Hop::of(hop.bits & ARRIVED | local.bits)
        };
        Paths {
            hops: self.hops.iter().map(hop).collect(),
            known: FxHashMap::default(),
        }
    }
}

impl Paths<PortId> {
    /// The same paths at the same positions, as the fabric has them, if this shard has all ports.
    pub(crate) fn of_fabric(self) -> Paths<LinkId> {
        let hop = |hop: Hop<PortId>| Hop::of(hop.bits);
        Paths {
            hops: self.hops.into_iter().map(hop).collect(),
            known: self.known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_stored_once_and_outlives_the_seal() {
        let links = |links: &[u32]| -> Vec<LinkId> { links.iter().copied().map(LinkId).collect() };
        let mut paths = Paths::default();
        let first = paths.intern(links(&[4, 7, 9]).into_iter(), LinkId(1));
        let second = paths.intern(links(&[4, 7]).into_iter(), LinkId(2));
        assert_ne!(first, second);
        assert_eq!(
            paths.intern(links(&[4, 7, 9]).into_iter(), LinkId(1)),
            first
        );
        assert_eq!(paths.intern(links(&[4, 7]).into_iter(), LinkId(2)), second);
        paths.seal();
        assert_eq!(paths.links(first).collect::<Vec<_>>(), links(&[4, 7, 9]));
        assert_eq!(paths.links(second).collect::<Vec<_>>(), links(&[4, 7]));
        assert_eq!(paths.hop(second + 2), Hop::arrived(LinkId(2)));
    }
}
