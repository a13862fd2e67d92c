//! A set of byte numbers as sorted ranges: what a receiver holds out of order, and what a sender
//! knows to be there.

/// Bytes from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Sorted ranges that neither overlap nor touch. Empty, it holds no memory; a hole costs one entry.
#[derive(Clone, Debug, Default)]
pub(super) struct RangeSet(Vec<Range>);

impl RangeSet {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Range> {
        self.0.first().copied()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn descending(&self) -> impl Iterator<Item = Range> {
        self.0.iter().rev().copied()
    }

    /// Adds the bytes from `start` to `end`; answers whether any of them was new.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> bool {
        if start >= end {
            return false;
        }
        // Nearly always the highest range grows, or a new highest one begins.
        match self.0.last_mut() {
            Some(last) if start > last.end => self.0.push(Range { start, end }),
            None => self.0.push(Range { start, end }),
            Some(last) if start >= last.start => {
                let grows = end > last.end;
                last.end = last.end.max(end);
                return grows;
            }
            Some(_) => return self.merge(start, end),
        }
        true
    }

    fn merge(&mut self, start: u64, end: u64) -> bool {
        let from = self.0.partition_point(|range| range.end < start);
        let to = self.0.partition_point(|range| range.start <= end);
        if from == to {
            self.0.insert(from, Range { start, end });
            return true;
        }
        let merged = Range {
            start: start.min(self.0[from].start),
            end: end.max(self.0[to - 1].end),
        };
        let news = to - from > 1 || merged != self.0[from];
        self.0[from] = merged;
        self.0.drain(from + 1..to);
        news
    }

    /// Removes all bytes below `seq`.
    pub(super) fn remove_below(&mut self, seq: u64) {
        let gone = self.0.partition_point(|range| range.end <= seq);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(seq);
        }
    }

    /// The range that holds `seq`.
    pub(super) fn holding(&self, seq: u64) -> Option<Range> {
        let at = self.0.partition_point(|range| range.end <= seq);
        self.0.get(at).copied().filter(|range| range.start <= seq)
    }

    /// The first byte at or after `seq` that is not in the set, and where the next range begins.
    pub(super) fn gap_from(&self, seq: u64) -> (u64, Option<u64>) {
        let at = self.0.partition_point(|range| range.end <= seq);
        match self.0.get(at) {
            Some(range) if range.start <= seq => {
                (range.end, self.0.get(at + 1).map(|next| next.start))
            }
            next => (seq, next.map(|next| next.start)),
        }
    }

    /// Number of bytes from `start` to `end` that are in the set.
    pub(super) fn count(&self, start: u64, end: u64) -> u64 {
        let from = self.0.partition_point(|range| range.end <= start);
        self.0[from..]
            .iter()
            .take_while(|range| range.start < end)
            .map(|range| range.end.min(end) - range.start.max(start))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_become_one() {
        let mut set = RangeSet::default();
        assert!(set.insert(10, 20));
        assert!(set.insert(30, 40));
        assert!(!set.insert(12, 18));
        assert!(set.insert(20, 30));
        assert_eq!(set.0, [Range { start: 10, end: 40 }]);
        assert!(set.insert(0, 5));
        assert_eq!(set.gap_from(0), (5, Some(10)));
        assert_eq!(set.gap_from(7), (7, Some(10)));
        assert_eq!(set.gap_from(10), (40, None));
        set.remove_below(3);
        assert_eq!(set.count(0, 100), 32);
    }

    proptest! {
        #[test]
        fn behaves_like_a_set_of_numbers(
            operations in prop::collection::vec((0..60_u64, 0..12_u64, prop::bool::weighted(0.1)), 1..60),
        ) {
            let (mut set, mut model) = (RangeSet::default(), BTreeSet::new());
            for (start, len, remove) in operations {
                if remove {
                    set.remove_below(start);
                    model.retain(|&n| n >= start);
                } else {
                    let before = model.len();
                    model.extend(start..start + len);
                    prop_assert_eq!(set.insert(start, start + len), model.len() > before);
                }
                for pair in set.0.windows(2) {
                    prop_assert!(pair[0].end < pair[1].start);
                }
                prop_assert_eq!(set.count(0, 100), model.len() as u64);
                prop_assert_eq!(set.count(10, 30), model.range(10..30).count() as u64);
                for seq in 0..75 {
                    prop_assert_eq!(set.holding(seq).is_some(), model.contains(&seq));
                    let gap = (seq..100).find(|n| !model.contains(n)).expect("the model is finite");
                    let next = model.range(gap..).next().copied();
                    prop_assert_eq!(set.gap_from(seq), (gap, next));
                }
            }
        }
    }
}
