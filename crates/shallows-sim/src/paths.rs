//! Paths that are in use, each stored once.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashMap, FxHasher};

/// Set in what ends a path: the packet is at its host. The rest is the link of the host's NIC.
pub(crate) const ARRIVED: u32 = 1 << 31;

/// Set in place of the number of a port that another part has. The rest is that part.
pub(crate) const FOREIGN: u32 = 1 << 30;

/// All paths, one after the other; a packet holds the position of its next link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    links: Vec<u32>,
    /// Index of the first link of the path with a hash. Of two paths with one hash, only the first
    /// is known.
    known: FxHashMap<u64, u32>,
}

impl Paths {
    /// Index of the first link of a path that ends at the host with this NIC.
    pub(crate) fn intern(&mut self, path: &[u32], nic: u32) -> u32 {
        let mut hasher = FxHasher::default();
        path.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(&at) = self.known.get(&hash)
            && self.links(at).eq(path.iter().copied())
        {
            return at;
        }
        let at = self.links.len() as u32;
        self.links.extend_from_slice(path);
        self.links.push(ARRIVED | nic);
        self.known.entry(hash).or_insert(at);
        at
    }

    /// Gives back the memory that only new paths need.
    pub(crate) fn seal(&mut self) {
        self.known = FxHashMap::default();
        self.links.shrink_to_fit();
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

    /// All pairs of links that a path takes one after the other.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (u32, u32)> {
        let pairs = self.links.windows(2).map(|pair| (pair[0], pair[1]));
        pairs.filter(|(from, to)| (from | to) & ARRIVED == 0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_stored_once_and_outlives_the_seal() {
        let mut paths = Paths::default();
        let first = paths.intern(&[4, 7, 9], 1);
        let second = paths.intern(&[4, 7], 2);
        assert_ne!(first, second);
        assert_eq!(paths.intern(&[4, 7, 9], 1), first);
        assert_eq!(paths.intern(&[4, 7], 2), second);
        paths.seal();
        assert_eq!(paths.links(first).collect::<Vec<_>>(), [4, 7, 9]);
        assert_eq!(paths.links(second).collect::<Vec<_>>(), [4, 7]);
        assert_eq!(paths.link(second + 2), ARRIVED | 2);
    }
}
