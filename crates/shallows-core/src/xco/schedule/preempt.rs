//! Algorithm 1 with pre-emption (lines 41 to 45), which may move any host that has sent for long
//! enough, and so has to visit whole contention groups.

use std::collections::BTreeSet;

use super::{Grant, Routes, Schedule};
use crate::units::Time;

impl<R: Routes> Schedule<R> {
    /// The links of lines 13 and 14.
    pub(super) fn contending_links(&self, host: u32, links: &mut Vec<u32>) {
        for &id in &self.hosts[host as usize].backlog {
            links.extend_from_slice(&self.pairs[id as usize].path);
        }
    }

    /// Lines 12 to 17 and 26 to 61, with the links whose contention groups make up A.
    pub(super) fn visit_groups(
        &mut self,
        now: Time,
        trigger: u32,
        links: &[u32],
        grants: &mut Vec<Grant>,
    ) {
        let mut scheduled = BTreeSet::new();
        let mut affected = BTreeSet::new();
        self.add_host(now, trigger, &scheduled, &mut affected);
        for &link in links {
            self.add_group(now, link, &scheduled, &mut affected);
        }
        while let Some((_, host)) = affected.pop_first() {
            let old = self.current(host);
            let backlog = &self.hosts[host as usize].backlog;
            let feasible = |&id: &u32| self.blocked(id, old).is_none();
            let Some(new) = backlog.iter().copied().find(feasible) else {
                continue;
            };
            scheduled.insert(host);
            if let Some(old) = old {
                self.unload(old);
                self.start_waiting(now, old);
            }
            self.grant(now, new, grants);
            for link in self.links_left(old, new) {
                self.add_group(now, link, &scheduled, &mut affected);
            }
        }
    }

    /// Line 42: the links of the old path that the new one does not use.
    fn links_left(&self, old: Option<u32>, new: u32) -> Vec<u32> {
        let path = |id: u32| &self.pairs[id as usize].path;
        let old = old.into_iter().flat_map(|old| path(old).iter().copied());
        old.filter(|link| !path(new).contains(link)).collect()
    }

    /// Lines 15 and 44, without the hosts in N and those that started sending only lately.
    fn add_group(
        &self,
        now: Time,
        link: u32,
        scheduled: &BTreeSet<u32>,
        affected: &mut BTreeSet<(u64, u32)>,
    ) {
        for &(source, _) in &self.groups[link as usize] {
            self.add_host(now, source, scheduled, affected);
        }
    }

    fn add_host(
        &self,
        now: Time,
        source: u32,
        scheduled: &BTreeSet<u32>,
        affected: &mut BTreeSet<(u64, u32)>,
    ) {
        let host = &self.hosts[source as usize];
        let protection = self.timing.preempt_after.unwrap_or(Time::MAX);
        let protected = |(_, since): (u32, Time)| now.saturating_sub(since) < protection;
        if !host.current.is_some_and(protected) && !scheduled.contains(&source) {
            affected.insert((host.served, source));
        }
    }

    pub(super) fn join_groups(&mut self, id: u32) {
        if self.timing.preempt_after.is_some() {
            let pair = &self.pairs[id as usize];
            for &link in pair.path.iter() {
                self.groups[link as usize].insert((pair.source, id));
            }
        }
    }

    pub(super) fn leave_groups(&mut self, id: u32) {
        if self.timing.preempt_after.is_some() {
            let pair = &self.pairs[id as usize];
            for &link in pair.path.iter() {
                self.groups[link as usize].remove(&(pair.source, id));
            }
        }
    }
}
