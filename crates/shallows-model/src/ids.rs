//! Numbers of hosts, flows, links and the like, each kind a type of its own: a port is never taken
//! for a link, nor a flow for a host.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A number of one kind, counted from 0.
pub trait Id: Copy {
    /// The `number`th of its kind.
    fn new(number: u32) -> Self;

    /// Position in a list of all of its kind.
    fn index(self) -> usize;
}

/// Defines types of numbers.
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $visibility:vis struct $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $visibility struct $name(pub u32);

        impl $crate::ids::Id for $name {
            #[inline(always)]
            fn new(number: u32) -> Self {
                Self(number)
            }

            #[inline(always)]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A host of a fabric.
    pub struct HostId;
    /// A flow of a workload, by its position in it.
    pub struct FlowId;
    /// One direction of a cable, and the egress port of the node that it leaves.
    pub struct LinkId;
}

impl LinkId {
    /// The other direction of the same cable.
    #[must_use]
    pub fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// Numbers in their order, from the first.
pub fn ids<I: Id>() -> impl Iterator<Item = I> + Clone {
    (0..).map(I::new)
}

/// A list with an entry for every number of a kind.
#[derive(Clone, PartialEq, Eq)]
pub struct IdVec<I, T> {
    entries: Vec<T>,
    kind: PhantomData<I>,
}

impl<I: Id, T> IdVec<I, T> {
    /// An empty list.
    pub fn new() -> Self {
        Self::from(Vec::new())
    }

    /// An empty list with room for some entries.
    pub fn with_capacity(count: usize) -> Self {
        Self::from(Vec::with_capacity(count))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry at the end, and returns its number.
    pub fn push(&mut self, entry: T) -> I {
        self.entries.push(entry);
        I::new(self.entries.len() as u32 - 1)
    }

    /// The entry of a number, if it has one.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())
    }

    /// The entry of a number, if it has one.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.entries.get_mut(id.index())
    }

    /// The entry of the last number.
    pub fn last(&self) -> Option<&T> {
        self.entries.last()
    }

    /// Moves all entries of another list to the end of this one.
    pub fn append(&mut self, other: &mut Self) {
        self.entries.append(&mut other.entries);
    }

    /// The entries in the order of their numbers.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.entries.iter()
    }

    /// The entries in the order of their numbers.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.entries.iter_mut()
    }

    /// The entries with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (I, &T)> {
        ids().zip(&self.entries)
    }

    /// All numbers.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = I> + use<I, T> {
        (0..self.entries.len()).map(|number| I::new(number as u32))
    }

    /// The entries as a slice.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.entries
    }

    /// The entries as a slice.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.entries
    }
}

impl<I: Id, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.fmt(f)
    }
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(entries: Vec<T>) -> Self {
        Self {
            entries,
            kind: PhantomData,
        }
    }
}

impl<I, T> Extend<T> for IdVec<I, T> {
    fn extend<E: IntoIterator<Item = T>>(&mut self, entries: E) {
        self.entries.extend(entries);
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(entries: E) -> Self {
        Self::from(Vec::from_iter(entries))
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: I) -> &T {
        &self.entries[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.entries[id.index()]
    }
}

impl<'a, I: Id, T> IntoIterator for &'a mut IdVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<'a, I: Id, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
