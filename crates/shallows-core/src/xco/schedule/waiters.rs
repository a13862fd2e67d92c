//! The fast way through Algorithm 1 where slots are not pre-empted.
//!
//! After every event no silent host has a feasible pair. So each waiting pair needs to be found
//! only when one link that blocks it is released, and it is filed at just one: its *waits-at* link.
//! An event looks at the pairs filed at the links that it released, in turn, and at those of the
//! host that triggered it. A pair that turns out to be blocked elsewhere is filed there.

use std::ops::Bound::{Excluded, Unbounded};

use super::{Grant, Routes, Schedule, Turn};
use crate::units::Time;

impl<R: Routes> Schedule<R> {
    /// Lines 26 to 61 for the links released and the host `trigger`.
    pub(super) fn visit_waiters(
        &mut self,
        now: Time,
        trigger: u32,
        released: &[u32],
        grants: &mut Vec<Grant>,
    ) {
        let own = (self.hosts[trigger as usize].served, trigger);
        let mut trigger_is_due = true;
        let mut last: Option<Turn> = None;
        loop {
            let next = self.next_waiter(released, last);
            if trigger_is_due && next.is_none_or(|turn| own <= (turn.0, turn.1)) {
                trigger_is_due = false;
                self.visit_host(now, trigger, grants);
                continue;
            }
            let Some(turn) = next else {
                return;
            };
            last = Some(turn);
            self.visit_waiter(now, turn, grants);
        }
    }

    /// The next pair after `last` filed at one of the links. A link without spare capacity has
    /// none; one that is claimed has only its claimant.
    fn next_waiter(&self, released: &[u32], last: Option<Turn>) -> Option<Turn> {
        let turns = released.iter().filter_map(|&at| {
            let link = &self.links[at as usize];
            if link.load.saturating_add(self.least) > link.capacity {
                return None;
            }
            if let Some(claimant) = link.claim {
                let turn = self.turn(claimant)?;
                return last.is_none_or(|last| turn > last).then_some(turn);
            }
            let after = match last {
                Some(last) => (Excluded(last), Unbounded),
                None => (Unbounded, Unbounded),
            };
            link.waiters.range(after).next().copied()
        });
        turns.min()
    }

    fn visit_waiter(&mut self, now: Time, turn: Turn, grants: &mut Vec<Grant>) {
        let (served, source, _, _, id) = turn;
        let host = &self.hosts[source as usize];
        if host.current.is_some() || host.served != served {
            // Left over from before its host was served: filed anew when that slot ends.
            return self.stop_waiting(id);
        }
        match self.blocked(id, None) {
            None => self.grant(now, id, grants),
            Some(at) => self.wait_at(id, at),
        }
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

    /// Where a pair is filed.
    fn turn(&self, id: u32) -> Option<Turn> {
        let pair = &self.pairs[id as usize];
        let (_, host_served) = pair.waits_at?;
        Some((host_served, pair.source, pair.served, pair.destination, id))
    }

    fn wait_at(&mut self, id: u32, link: u32) {
        let source = self.pairs[id as usize].source;
        let filed = Some((link, self.hosts[source as usize].served));
        if self.pairs[id as usize].waits_at == filed {
            return;
        }
        self.stop_waiting(id);
        self.pairs[id as usize].waits_at = filed;
        let turn = self.turn(id).expect("it has just been filed");
        self.links[link as usize].waiters.insert(turn);
    }

    pub(super) fn stop_waiting(&mut self, id: u32) {
        if let Some(turn) = self.turn(id)
            && let Some((link, _)) = self.pairs[id as usize].waits_at.take()
        {
            self.links[link as usize].waiters.remove(&turn);
        }
    }
}
