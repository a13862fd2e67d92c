//! The fast way through Algorithm 1 where slots are not pre-empted.
//!
//! After every event no silent host has a feasible pair. So each waiting pair needs to be found
//! only when one link that blocks it is released, and it is filed at just one: its *waits-at* link.
//! An event looks at the pairs filed at the links that it released, in turn, and at those of the
//! host that triggered it. A pair that turns out to be blocked elsewhere is filed there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Grant, Pair, Routes, Schedule};
use crate::units::Time;

/// Line 28 and line 30 in one key: the turn of the host, the turn of the pair within it, the pair.
pub(super) type Turn = (u64, u64, u32);

/// The place in the order of "served longest ago, then the lower number": numbers of those never
/// served, then the numbers of slots, which are all different.
fn turn(served: u64, number: u32) -> u64 {
    match served {
        0 => u64::from(number),
        slot => slot.saturating_add(1 << 32),
    }
}

/// Pairs filed at a link, the first in turn on top.
///
/// A pair that is filed elsewhere or gets a slot leaves its entry behind, which is void from then
/// on: taking it out at once would cost more than passing over it later.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    turns: BinaryHeap<Reverse<Turn>>,
    /// Void entries are taken out when there are this many.
    limit: usize,
}

impl Waiters {
    fn push(&mut self, link: u32, turn: Turn, pairs: &[Pair]) {
        if self.turns.len() >= self.limit {
            let is_filed = |Reverse(turn): &Reverse<Turn>| is_filed(pairs, link, *turn);
            self.turns.retain(is_filed);
            self.limit = (2 * self.turns.len()).max(16);
        }
        self.turns.push(Reverse(turn));
    }
}

/// Returns whether an entry at a link still says where its pair is filed.
fn is_filed(pairs: &[Pair], link: u32, entry: Turn) -> bool {
    let pair = &pairs[entry.2 as usize];
    pair.waits_at == Some(link) && pair.turn(entry.2) == entry
}

impl Pair {
    /// The turn that it was last filed with.
    fn turn(&self, id: u32) -> Turn {
        (self.filed_turn, turn(self.served, self.destination), id)
    }
}

impl<R: Routes> Schedule<R> {
    /// Lines 26 to 61 for the links released and the host `trigger`.
    pub(super) fn visit_waiters(
        &mut self,
        now: Time,
        trigger: u32,
        released: &[u32],
        grants: &mut Vec<Grant>,
    ) {
        let own = turn(self.hosts[trigger as usize].served, trigger);
        let mut trigger_is_due = true;
        let mut last: Option<Turn> = None;
        // Blocked at a released link: filed there again when all have been visited once.
        let mut still_blocked = Vec::new();
        loop {
            let next = self.next_waiter(released, last);
            if trigger_is_due && next.is_none_or(|(turn, _)| own <= turn.0) {
                trigger_is_due = false;
                self.visit_host(now, trigger, grants);
                continue;
            }
            let Some((turn, link)) = next else {
                break;
            };
            if let Some(link) = link {
                self.waiters[link as usize].turns.pop();
                if !is_filed(&self.pairs, link, turn) {
                    continue;
                }
                self.leave_link(turn.2);
            } else {
                last = Some(turn);
            }
            let (host_turn, _, id) = turn;
            if !self.is_due(id, host_turn) {
                // Left over from before its host was served: filed anew when that slot ends.
                self.leave_link(id);
                continue;
            }
            match self.blocked(id, None) {
                None => self.grant(now, id, grants),
                Some(at) if released.contains(&at) => still_blocked.push((id, at)),
                Some(at) => self.wait_at(id, at),
            }
        }
        for (id, at) in still_blocked {
            self.wait_at(id, at);
        }
    }

    /// The next pair filed at one of the links, and the link whose heap it is to be taken from. A
    /// link without spare capacity has none; one that is claimed has only its claimant, unless that
    /// was visited `last`, which stays filed where it is.
    fn next_waiter(&self, released: &[u32], last: Option<Turn>) -> Option<(Turn, Option<u32>)> {
        let turns = released.iter().filter_map(|&at| {
            let link = &self.links[at as usize];
            if link.spare < self.least {
                return None;
            }
            if let Some(claimant) = link.claim {
                let pair = &self.pairs[claimant as usize];
                let turn = pair.waits_at.map(|_| pair.turn(claimant))?;
                let is_new = last.is_none_or(|last| turn > last);
                return is_new.then_some((turn, None));
            }
            let Reverse(first) = self.waiters[at as usize].turns.peek()?;
            Some((*first, Some(at)))
        });
        turns.min()
    }

    /// Returns whether its host is silent and has not been served since the pair was filed.
    fn is_due(&self, id: u32, host_turn: u64) -> bool {
        let source = self.pairs[id as usize].source;
        let host = &self.hosts[source as usize];
        host.current.is_none() && turn(host.served, source) == host_turn
    }

    /// Lines 28 to 51 for a silent host: its first feasible destination gets the slot.
    fn visit_host(&mut self, now: Time, host: u32, grants: &mut Vec<Grant>) {
        if self.hosts[host as usize].current.is_some() {
            return;
        }
        for place in 0..self.hosts[host as usize].backlog.len() {
            let id = self.hosts[host as usize].backlog[place];
            match self.blocked(id, None) {
                None => return self.grant(now, id, grants),
                Some(link) => self.wait_at(id, link),
            }
        }
    }

    fn wait_at(&mut self, id: u32, link: u32) {
        let source = self.pairs[id as usize].source;
        let filed_turn = turn(self.hosts[source as usize].served, source);
        let pair = &mut self.pairs[id as usize];
        if (pair.waits_at, pair.filed_turn) == (Some(link), filed_turn) {
            return;
        }
        (pair.waits_at, pair.filed_turn) = (Some(link), filed_turn);
        let turn = pair.turn(id);
        self.waiters[link as usize].push(link, turn, &self.pairs);
    }

    pub(super) fn leave_link(&mut self, id: u32) {
        self.pairs[id as usize].waits_at = None;
    }
}
