//! Claims of pairs that have waited too long.

use super::{Grant, Routes, Schedule};
use crate::units::Time;

/// How many overdue pairs are looked at for claims.
pub const CLAIM_WINDOW: usize = 64;

impl<R: Routes> Schedule<R> {
    /// Decides anew which pairs claim their paths, and adds the links that became free of a claim
    /// to `released`.
    pub(super) fn update_claims(&mut self, now: Time, released: &mut Vec<u32>) {
        let before = std::mem::take(&mut self.claims);
        for &(link, _) in &before {
            self.links[link as usize].claim = None;
        }
        self.marks += 1;
        let patience = self.timing.patience;
        let overdue = self.waiting.iter().take(CLAIM_WINDOW);
        let overdue = overdue.take_while(|(since, ..)| since.saturating_add(patience) < now);
        for &(.., id) in overdue {
            let path = &self.pairs[id as usize].path;
            let wanted = |&link: &u32| self.links[link as usize].mark == self.marks;
            let free = !path.iter().any(wanted);
            for &at in path {
                let link = &mut self.links[at as usize];
                link.mark = self.marks;
                if free {
                    link.claim = Some(id);
                    self.claims.push((at, id));
                }
            }
        }
        let lifted = |&(link, id): &(u32, u32)| self.links[link as usize].claim != Some(id);
        released.extend(before.into_iter().filter(lifted).map(|(link, _)| link));
    }

    /// Whether one of the grants is what a claim asked for, so that the claim can be lifted.
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
