//! Paths that are in use, each stored once.

use rustc_hash::FxHashMap;

/// Set in what ends a path: the packet is at its host. The rest is the link of the host's NIC.
pub(crate) const ARRIVED: u32 = 1 << 31;

/// All paths, one after the other; a packet holds the position of its next link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    links: Vec<u32>,
    known: FxHashMap<Box<[u32]>, u32>,
}

impl Paths {
    /// Where a path begins that ends at the host with this NIC.
    pub(crate) fn intern(&mut self, path: &[u32], nic: u32) -> u32 {
        if let Some(&at) = self.known.get(path) {
            return at;
        }
        let at = self.links.len() as u32;
        self.links.extend_from_slice(path);
        self.links.push(ARRIVED | nic);
        self.known.insert(path.into(), at);
        at
    }

    /// The link at a position, or [`ARRIVED`] and the NIC.
    #[inline]
    pub(crate) fn link(&self, at: u32) -> u32 {
        self.links[at as usize]
    }

    /// The links of the path that begins at a position.
    pub(crate) fn links(&self, at: u32) -> impl Iterator<Item = u32> {
        let rest = self.links[at as usize..].iter().copied();
        rest.take_while(|link| link & ARRIVED == 0)
    }

    /// The same paths at the same positions, with other names for their links.
    pub(crate) fn renamed(&self, name: impl Fn(u32) -> u32) -> Self {
        let rename = |&step: &u32| step & ARRIVED | name(step & !ARRIVED);
        Self {
            links: self.links.iter().map(rename).collect(),
            known: FxHashMap::default(),
        }
    }
}
