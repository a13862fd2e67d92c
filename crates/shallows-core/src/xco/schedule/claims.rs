//! Pairs by how long they have waited, and the claims of those that have waited too long.

use std::collections::{BTreeSet, VecDeque};

use super::{Grant, Pair, Routes, Schedule};
use crate::units::Time;

/// Number of overdue pairs considered for claims.
pub const CLAIM_WINDOW: usize = 64;

/// Backlogged pairs without a slot, by age.
///
/// Times only rise, so those that are not overdue lie in the order in which they came: an end of a
/// slot appends one, and none is sorted before it is overdue, which few become.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Since when, and the pair. An entry is void if its pair has stopped waiting since.
    recent: VecDeque<(Time, u32)>,
    /// Since when, source, destination and pair.
    overdue: BTreeSet<(Time, u32, u32, u32)>,
    /// Void entries are taken out when there are this many.
    limit: usize,
}

/// Position of a pair in [`Waiting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// It has a slot, or is not backlogged.
    No,
    /// In `recent`.
    Recently,
    /// In `overdue`.
    Overdue,
}

impl<R: Routes> Schedule<R> {
    /// A pair became backlogged, or its slot has ended.
    pub(super) fn start_waiting(&mut self, now: Time, id: u32) {
        let pair = &mut self.pairs[id as usize];
        pair.since = now;
        if matches!(self.waiting.recent.back(), Some(&(last, _)) if now < last) {
            // Out of order: only the sorted set takes it.
            pair.waits = Waits::Overdue;
            let key = (now, pair.source, pair.destination, id);
            self.waiting.overdue.insert(key);
            return;
        }
        pair.waits = Waits::Recently;
        let recent = &mut self.waiting.recent;
        if recent.len() >= self.waiting.limit {
            recent.retain(|&(since, id)| is_recent(&self.pairs, since, id));
            self.waiting.limit = (2 * recent.len()).max(1024);
        }
        recent.push_back((now, id));
    }

    pub(super) fn stop_waiting(&mut self, id: u32) {
        let pair = &mut self.pairs[id as usize];
        if std::mem::replace(&mut pair.waits, Waits::No) == Waits::Overdue {
            let key = (pair.since, pair.source, pair.destination, id);
            self.waiting.overdue.remove(&key);
        }
    }

    fn sort_overdue(&mut self, now: Time) {
        let patience = self.timing.patience;
        while let Some(&(since, id)) = self.waiting.recent.front()
            && since.saturating_add(patience) < now
        {
            self.waiting.recent.pop_front();
            if is_recent(&self.pairs, since, id) {
                let pair = &mut self.pairs[id as usize];
                pair.waits = Waits::Overdue;
                let key = (since, pair.source, pair.destination, id);
                self.waiting.overdue.insert(key);
            }
        }
    }

    /// Decides anew which pairs claim their paths, and adds the links that became free of a claim
    /// to `released`.
    pub(super) fn update_claims(&mut self, now: Time, released: &mut Vec<u32>) {
        self.sort_overdue(now);
        let before = std::mem::take(&mut self.claims);
        for &(link, _) in &before {
            self.links[link as usize].claim = None;
        }
        let patience = self.timing.patience;
        let overdue = self.waiting.overdue.iter().take(CLAIM_WINDOW);
        let overdue = overdue.take_while(|(since, ..)| since.saturating_add(patience) < now);
        let mut wanted = BTreeSet::new();
        for &(.., id) in overdue {
            let path = &self.pairs[id as usize].path;
            let is_free = path.iter().all(|link| !wanted.contains(link));
            wanted.extend(path.iter().copied());
            if is_free {
                for &link in path.iter() {
                    self.links[link as usize].claim = Some(id);
                    self.claims.push((link, id));
                }
            }
        }
        let lifted = |&(link, id): &(u32, u32)| self.links[link as usize].claim != Some(id);
        released.extend(before.into_iter().filter(lifted).map(|(link, _)| link));
    }

    /// Returns whether one of the grants is what a claim asked for, so that the claim can be lifted.
    pub(super) fn fulfils_claim(&self, grants: &[Grant]) -> bool {
        !self.claims.is_empty()
            && grants.iter().any(|grant| {
                let current = self.current(grant.host);
                current.is_some() && self.claims.iter().any(|&(_, id)| Some(id) == current)
            })
    }

    pub(super) fn drop_claims(&mut self) {
        for (link, _) in self.claims.drain(..) {
            self.links[link as usize].claim = None;
        }
    }
}

/// Returns whether an entry of [`Waiting::recent`] still says what it said.
fn is_recent(pairs: &[Pair], since: Time, id: u32) -> bool {
    let pair = &pairs[id as usize];
    pair.waits == Waits::Recently && pair.since == since
}
