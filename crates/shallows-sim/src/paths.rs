//! Paths that are in use, each stored once.

use rustc_hash::FxHashMap;

/// Ends a path: the packet is at its host.
pub(crate) const ARRIVED: u32 = u32::MAX;

/// All paths, one after the other; a packet holds the position of its next link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    links: Vec<u32>,
    known: FxHashMap<Box<[u32]>, u32>,
}

impl Paths {
    /// Where a path begins.
    pub(crate) fn intern(&mut self, path: &[u32]) -> u32 {
        if let Some(&at) = self.known.get(path) {
            return at;
        }
        let at = self.links.len() as u32;
        self.links.extend_from_slice(path);
        self.links.push(ARRIVED);
        self.known.insert(path.into(), at);
        at
    }

    /// The link at a position, or [`ARRIVED`].
    #[inline]
    pub(crate) fn link(&self, at: u32) -> u32 {
        self.links[at as usize]
    }

    /// The same paths at the same positions, with other names for their links.
    pub(crate) fn renamed(&self, name: impl Fn(u32) -> u32) -> Self {
        let rename = |&link: &u32| if link == ARRIVED { link } else { name(link) };
        Self {
            links: self.links.iter().map(rename).collect(),
            known: FxHashMap::default(),
        }
    }
}
