//! Lists of chunks, in which the events of a slot lie.

use super::event::Entry;

/// Events that fit into a chunk.
pub(super) const CHUNK: u32 = 7;

/// Some events of a slot, and in the last place the rest of the list: two cache lines.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub(super) struct Chunk(pub(super) [Entry; CHUNK as usize + 1]);

/// A list of chunks of which all but the first are full: the number of the first, and how many
/// events it has. The empty list has as many as fit, so that the next one needs a chunk of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List(pub(super) u32);

impl List {
    pub(super) const EMPTY: Self = Self(u32::MAX);

    #[inline]
    pub(super) fn chunk(self) -> usize {
        (self.0 / (CHUNK + 1)) as usize
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        (self.0 % (CHUNK + 1)) as usize
    }
}
