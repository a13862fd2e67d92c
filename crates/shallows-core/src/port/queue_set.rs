//! A set of queues of one port.

/// Most queues that a port may have: one bit each in a [`QueueSet`].
pub const MAX_QUEUES: usize = 64;

/// A set of queue numbers below [`MAX_QUEUES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueSet(u64);

impl QueueSet {
    /// No queue.
    pub const EMPTY: Self = Self(0);
    /// Every queue: what an 802.3x pause frame stops.
    pub const ALL: Self = Self(u64::MAX);

    /// The set of one queue.
    #[inline]
    pub fn one(queue: usize) -> Self {
        debug_assert!(queue < MAX_QUEUES);
        Self(1 << queue)
    }

    /// The queues `0..count`, or all if there cannot be as many.
    pub fn first(count: usize) -> Self {
        (0..count.min(MAX_QUEUES))
            .map(Self::one)
            .fold(Self::EMPTY, Self::union)
    }

    /// Adds a queue.
    #[inline]
    pub fn insert(&mut self, queue: usize) {
        self.0 |= Self::one(queue).0;
    }

    /// Removes a queue.
    #[inline]
    pub fn remove(&mut self, queue: usize) {
        self.0 &= !Self::one(queue).0;
    }

    /// Returns whether a queue is in the set.
    #[inline]
    pub fn contains(self, queue: usize) -> bool {
        self.0 & Self::one(queue).0 != 0
    }

    /// Returns whether no queue is in the set.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Queues in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Queues in both sets.
    #[inline]
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Queues of this set that are not in the other.
    #[inline]
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The lowest queue of the set.
    #[inline]
    pub fn lowest(self) -> Option<usize> {
        (self.0 != 0).then(|| self.0.trailing_zeros() as usize)
    }

    /// The next queue of the set after `queue` in cyclic order; `queue` itself comes last.
    #[inline]
    pub fn next_after(self, queue: usize) -> Option<usize> {
        let first = (queue + 1) % MAX_QUEUES;
        let rotated = self.0.rotate_right(first as u32);
        (rotated != 0).then(|| (first + rotated.trailing_zeros() as usize) % MAX_QUEUES)
    }

    /// The queues of the set in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self;
        std::iter::from_fn(move || {
            let queue = left.lowest()?;
            left.remove(queue);
            Some(queue)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cyclic_order() {
        let set: QueueSet = [1, 5, 63]
            .map(QueueSet::one)
            .into_iter()
            .fold(QueueSet::EMPTY, QueueSet::union);
        assert_eq!(set.next_after(0), Some(1));
        assert_eq!(set.next_after(1), Some(5));
        assert_eq!(set.next_after(5), Some(63));
        assert_eq!(set.next_after(63), Some(1));
        assert_eq!(QueueSet::one(3).next_after(3), Some(3));
        assert_eq!(QueueSet::EMPTY.next_after(3), None);
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 5, 63]);
        assert_eq!(QueueSet::first(3).iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
