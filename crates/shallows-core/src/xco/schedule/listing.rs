//! Algorithm 1 as printed, line by line, over plain sets: the oracle of the fast version.
//!
//! Everything is computed from the definitions of §3.2.1 whenever it is needed. What the paper
//! leaves open is decided as the module's documentation says.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::{CLAIM_WINDOW, Event, Grant, Routes, Timing};
use crate::units::{Rate, Time};
use crate::xco::fabric::CoordinatedFabric;

pub(super) struct Listing<R> {
    pub(super) fabric: CoordinatedFabric<R>,
    pub(super) timing: Timing,
    /// B_x, with the time since when each destination waits.
    pub(super) backlog: BTreeMap<u32, BTreeMap<u32, Time>>,
    /// D_x, with its start.
    pub(super) directive: BTreeMap<u32, (u32, Time)>,
    /// Times at which hosts and pairs were last served.
    served: BTreeMap<u32, u64>,
    pair_served: BTreeMap<(u32, u32), u64>,
    slots: u64,
    claims: BTreeMap<u32, (u32, u32)>,
}

impl<R: Routes> Listing<R> {
    pub(super) fn new(fabric: CoordinatedFabric<R>, timing: Timing) -> Self {
        Self {
            fabric,
            timing,
            backlog: BTreeMap::new(),
            directive: BTreeMap::new(),
            served: BTreeMap::new(),
            pair_served: BTreeMap::new(),
            slots: 0,
            claims: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, now: Time, x: u32, d: u32) -> bool {
        if self.fabric.route(x, d).is_none() {
            return false;
        }
        let backlog = self.backlog.entry(x).or_default();
        if let Entry::Vacant(new) = backlog.entry(d) {
            new.insert(now);
            self.pair_served.insert((x, d), 0);
        }
        true
    }

    pub(super) fn remove(&mut self, x: u32, d: u32) {
        if self.directive.get(&x).map(|&(to, _)| to) != Some(d) {
            self.backlog.entry(x).or_default().remove(&d);
        }
    }

    /// P_xd.
    fn path(&self, x: u32, d: u32) -> BTreeSet<u32> {
        let (path, _) = self.fabric.route(x, d).expect("only pairs with a path");
        path.iter().copied().collect()
    }

    fn rate(&self, x: u32, d: u32) -> Rate {
        self.fabric.route(x, d).expect("only pairs with a path").1
    }

    /// β_ij.
    fn contention_group(&self, link: u32) -> BTreeSet<u32> {
        let uses = |x: u32| move |d: &u32| self.path(x, *d).contains(&link);
        let groups = self.backlog.iter();
        let members = groups.filter(|&(&x, backlog)| backlog.keys().any(uses(x)));
        members.map(|(&x, _)| x).collect()
    }

    /// Eq. 1 for {x} ∪ α_ij, where x sends to d, and no claim of another pair.
    fn is_feasible(&self, x: u32, d: u32, link: u32) -> bool {
        let others = self.directive.iter().filter(|&(&y, _)| y != x);
        let active = others.filter(|&(&y, &(to, _))| self.path(y, to).contains(&link));
        let load: u64 = active.map(|(&y, &(to, _))| self.rate(y, to).bps()).sum();
        let claimed = self.claims.get(&link).is_some_and(|&pair| pair != (x, d));
        load + self.rate(x, d).bps() <= self.fabric.links[link as usize].bps() && !claimed
    }

    fn is_protected(&self, now: Time, x: u32) -> bool {
        let Some(&(_, since)) = self.directive.get(&x) else {
            return false;
        };
        let threshold = self.timing.preempt_after;
        threshold.is_none_or(|threshold| now.saturating_sub(since) < threshold)
    }

    /// The links that are not claimed any more by who claimed them.
    fn update_claims(&mut self, now: Time) -> BTreeSet<u32> {
        let before = std::mem::take(&mut self.claims);
        let mut overdue = Vec::new();
        for (&x, backlog) in &self.backlog {
            for (&d, &since) in backlog {
                let sends = self.directive.get(&x).map(|&(to, _)| to) == Some(d);
                if !sends && since + self.timing.patience < now {
                    overdue.push((since, x, d));
                }
            }
        }
        overdue.sort_unstable();
        let mut wanted = BTreeSet::new();
        for (_, x, d) in overdue.into_iter().take(CLAIM_WINDOW) {
            let path = self.path(x, d);
            if path.is_disjoint(&wanted) {
                self.claims.extend(path.iter().map(|&link| (link, (x, d))));
            }
            wanted.extend(path);
        }
        let lifted = before.into_iter();
        let lifted = lifted.filter(|(link, pair)| self.claims.get(link) != Some(pair));
        lifted.map(|(link, _)| link).collect()
    }

    pub(super) fn handle(&mut self, now: Time, event: Event) -> Vec<Grant> {
        let t = event.host();
        // 12: set of nodes affected by scheduling event.
        let mut a = BTreeSet::from([t]);
        // 13 to 17
        for &d in self.backlog.entry(t).or_default().clone().keys() {
            for link in self.path(t, d) {
                a.extend(self.contention_group(link));
            }
        }
        // 18 to 25
        if let Some((old, _)) = self.directive.remove(&t) {
            let backlog = self.backlog.entry(t).or_default();
            backlog.insert(old, now);
            if matches!(event, Event::Returned(_)) {
                backlog.remove(&old);
            }
        }
        if matches!(event, Event::Left(_)) {
            self.backlog.remove(&t);
        }
        let mut grants = Vec::new();
        loop {
            for link in self.update_claims(now) {
                a.extend(self.contention_group(link));
            }
            let new = self.visit(now, a);
            let fulfilled = |grant: &Grant| {
                let mut claimants = self.claims.values();
                claimants.any(|&pair| pair == (grant.host, grant.destination))
            };
            let again = new.iter().any(fulfilled);
            grants.extend(new);
            if !again {
                return grants;
            }
            a = BTreeSet::from([t]);
        }
    }

    fn visit(&mut self, now: Time, mut a: BTreeSet<u32>) -> Vec<Grant> {
        a.retain(|&x| !self.is_protected(now, x));
        // 26: set of nodes with new schedule.
        let mut n = BTreeSet::new();
        let mut grants = Vec::new();
        // 27, 28, 52
        let turn = |listing: &Self, x: u32| (listing.served.get(&x).copied().unwrap_or(0), x);
        while let Some(x) = a.iter().copied().min_by_key(|&x| turn(self, x)) {
            a.remove(&x);
            // 29 and 30
            let mut destinations: Vec<u32> =
                self.backlog.entry(x).or_default().keys().copied().collect();
            destinations.sort_by_key(|&d| (self.pair_served[&(x, d)], d));
            // 31 to 38
            let feasible = |&d: &u32| {
                let mut path = self.path(x, d).into_iter();
                path.all(|link| self.is_feasible(x, d, link))
            };
            let Some(d) = destinations.into_iter().find(feasible) else {
                continue;
            };
            // 53 to 56
            n.insert(x);
            // 40 to 46
            if let Some((old, _)) = self.directive.remove(&x) {
                self.backlog.entry(x).or_default().insert(old, now);
                for link in self.path(x, old).difference(&self.path(x, d)) {
                    let group = self.contention_group(*link);
                    let more = group.difference(&n).copied();
                    a.extend(more.filter(|&y| !self.is_protected(now, y)));
                }
            }
            // 47 to 49, 58 to 61
            self.slots += 1;
            self.served.insert(x, self.slots);
            self.pair_served.insert((x, d), self.slots);
            self.directive.insert(x, (d, now));
            grants.push(Grant {
                host: x,
                destination: d,
                rate: self.rate(x, d),
            });
        }
        grants
    }
}
