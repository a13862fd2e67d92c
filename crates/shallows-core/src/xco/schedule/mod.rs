//! Timeslice scheduling: who sends to whom (§3.2.1, Algorithm 1).
//!
//! [`Schedule`] holds the backlog groups B_x, the directives D_x in force and the load that they
//! put on every link, and answers each scheduling event with the new directives. It gives the same
//! directives as the printed listing, which the tests keep as a separate naive version
//! (`listing.rs`), but visits only pairs that the event can have made feasible.
//!
//! What the paper leaves open, and what we chose:
//! - **Order** (lines 28 and 30, "Generating Distinct Successive Schedules"): the host served
//!   longest ago first, then the lower number; within a host the destination served longest ago
//!   first, then the lower number. A host that has just been served comes last, so successive
//!   schedules differ wherever they can.
//! - **Starvation**: neither this order nor pre-emption saves a pair that needs two links which
//!   others use in turn, because both are never free at the same event. A pair that has waited for
//!   [`Timing::patience`] therefore *claims* the links of its path: nobody else gets a slot there
//!   until it has had one. The oldest [`CLAIM_WINDOW`] overdue pairs are looked at, and one claims
//!   only if no older one wants any of its links.
//! - **D_t after its slot** (lines 18 to 25): the listing leaves D_t^old as it was when t gets no
//!   new slot; it is null then, or α would count a host that is silent.
//! - **Scheduling event 3** also happens when a host without a slot reports one more destination.

mod backlog;
mod claims;
#[cfg(test)]
mod listing;
mod preempt;
#[cfg(test)]
mod tests;
mod waiters;

use std::collections::BTreeSet;

use super::fabric::{CoordinatedFabric, Path, Routes};
use crate::control::LinkState;
use crate::units::{Rate, Time};

pub use claims::CLAIM_WINDOW;
use claims::{Waiting, Waits};
use waiters::Waiters;

/// The times that a schedule is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// After how long in its slot a host may be moved to another destination ("protection of flows
    /// that started less than a threshold ago"). `None`: never before its slot ends.
    pub preempt_after: Option<Time>,
    /// Time that a pair waits before it claims its path.
    pub patience: Time,
}

/// A scheduling event (§3.2.1), with the host that triggers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// 1: the timeslice of a host has expired.
    Expired(u32),
    /// 2: a host gives its timeslice back, because it has nothing more for that destination.
    Returned(u32),
    /// 3: a host without a timeslice has become backlogged to some destination.
    Backlogged(u32),
    /// A host has left: all of its backlog is gone.
    Left(u32),
}

impl Event {
    fn host(self) -> u32 {
        match self {
            Self::Expired(host)
            | Self::Returned(host)
            | Self::Backlogged(host)
            | Self::Left(host) => host,
        }
    }
}

/// A transmission directive: `host` may send to `destination` (D_x).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Sending host.
    pub host: u32,
    /// To whom.
    pub destination: u32,
    /// Rate: C_x, or the rate of the slowest link of the path.
    pub rate: Rate,
}

/// A backlogged pair, as [`Schedule::pairs`] shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairView<'a> {
    /// Backlogged host.
    pub host: u32,
    /// To whom.
    pub destination: u32,
    /// P_xd.
    pub path: &'a [u32],
    /// The most that it can send.
    pub rate: Rate,
}

/// The state of Algorithm 1.
///
/// What an event reads of links and pairs is kept small and apart from the rest, because at 100,000
/// pairs it waits for memory more than it computes.
#[derive(Debug)]
pub struct Schedule<R> {
    fabric: CoordinatedFabric<R>,
    timing: Timing,
    links: Vec<Link>,
    /// At each link the pairs of silent hosts that it keeps from sending.
    waiters: Vec<Waiters>,
    /// All pairs of each contention group β_ij; kept only if flows are pre-empted.
    groups: Vec<BTreeSet<(u32, u32)>>,
    hosts: Vec<Host>,
    pairs: Vec<Pair>,
    free: Vec<u32>,
    backlogged: usize,
    /// Backlogged pairs without a slot, by age.
    waiting: Waiting,
    /// Links that are claimed, and by which pair.
    claims: Vec<(u32, u32)>,
    /// Numbers the slots given; the order of lines 28 and 30 compares these numbers.
    slots: u64,
    /// No pair needs less than this, so a link with less to spare has nothing to give.
    least: i64,
    /// Buffer of [`handle`](Self::handle).
    released: Vec<u32>,
}

#[derive(Debug)]
struct Link {
    /// C_ij minus the rates of the active contention group α_ij, in bits per second.
    spare: i64,
    claim: Option<u32>,
}

#[derive(Debug, Default)]
struct Host {
    served: u64,
    /// D_x, and since when.
    current: Option<(u32, Time)>,
    /// B_x in the order of line 30.
    backlog: Vec<u32>,
    /// B_x by destination.
    by_destination: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct Pair {
    source: u32,
    destination: u32,
    path: Path,
    rate: Rate,
    served: u64,
    /// Time at which it became backlogged or its last slot ended.
    since: Time,
    waits: Waits,
    /// The link that it is filed at, and the turn of its host when it was filed.
    waits_at: Option<u32>,
    filed_turn: u64,
}

/// A rate as loads are counted in.
fn bits(rate: Rate) -> i64 {
    i64::try_from(rate.bps()).unwrap_or(i64::MAX)
}

impl<R: Routes> Schedule<R> {
    /// An empty schedule: nobody is backlogged.
    pub fn new(fabric: CoordinatedFabric<R>, timing: Timing) -> Self {
        let link = |&capacity: &Rate| Link {
            spare: bits(capacity),
            claim: None,
        };
        let groups = match timing.preempt_after {
            Some(_) => fabric.links.len(),
            None => 0,
        };
        Self {
            links: fabric.links.iter().map(link).collect(),
            waiters: fabric.links.iter().map(|_| Waiters::default()).collect(),
            groups: vec![BTreeSet::new(); groups],
            hosts: fabric.hosts.iter().map(|_| Host::default()).collect(),
            fabric,
            timing,
            pairs: Vec::new(),
            free: Vec::new(),
            backlogged: 0,
            waiting: Waiting::default(),
            claims: Vec::new(),
            slots: 0,
            least: i64::MAX,
            released: Vec::new(),
        }
    }

    /// The fabric that it schedules.
    pub fn fabric(&self) -> &CoordinatedFabric<R> {
        &self.fabric
    }

    /// D_x: whom `host` may send to, and since when.
    pub fn directive(&self, host: u32) -> Option<(u32, Time)> {
        let (pair, since) = self.hosts.get(host as usize)?.current?;
        Some((self.pairs[pair as usize].destination, since))
    }

    /// B_x, in the order in which its destinations are considered.
    pub fn backlog(&self, host: u32) -> impl Iterator<Item = u32> + '_ {
        let pairs = self.hosts.get(host as usize).map(|host| &host.backlog);
        let pairs = pairs.into_iter().flatten();
        pairs.map(|&pair| self.pairs[pair as usize].destination)
    }

    /// Number of backlogged pairs.
    pub fn backlogged(&self) -> usize {
        self.backlogged
    }

    /// The load that directives put on a link.
    pub fn load(&self, link: u32) -> Rate {
        let load = bits(self.fabric.links[link as usize]) - self.links[link as usize].spare;
        Rate::from_bps(load.unsigned_abs())
    }

    /// Algorithm 1. Appends the new directives to `grants`, in the order in which they were found.
    pub fn handle(&mut self, now: Time, event: Event, grants: &mut Vec<Grant>) {
        let host = event.host();
        if host >= self.fabric.hosts()
            || matches!(event, Event::Backlogged(_)) && self.current(host).is_some()
        {
            return;
        }
        let mut released = std::mem::take(&mut self.released);
        if self.timing.preempt_after.is_some() {
            self.contending_links(host, &mut released);
        }
        self.end(now, event, &mut released);
        loop {
            let before = grants.len();
            self.update_claims(now, &mut released);
            if self.timing.preempt_after.is_some() {
                self.visit_groups(now, host, &released, grants);
            } else {
                self.visit_waiters(now, host, &released, grants);
            }
            // What a claimant leaves over on its links is for others again.
            released.clear();
            if !self.fulfils_claim(&grants[before..]) {
                break;
            }
        }
        self.released = released;
    }

    /// Sets the capacity of a link, 0 if it is down. Slots that run stay in force until they end,
    /// so a link that lost capacity can be over it for a slot.
    pub fn set_capacity(&mut self, now: Time, link: u32, capacity: Rate, grants: &mut Vec<Grant>) {
        let Some(known) = self.fabric.links.get_mut(link as usize) else {
            return;
        };
        let change = bits(capacity) - bits(*known);
        *known = capacity;
        self.links[link as usize].spare += change;
        self.reroute(now, grants);
    }

    /// Replaces the routes.
    pub fn set_routes(&mut self, now: Time, routes: R, grants: &mut Vec<Grant>) {
        self.fabric.routes = routes;
        self.reroute(now, grants);
    }

    /// Takes a link out of the routes or puts it back.
    pub fn set_link(&mut self, now: Time, link: u32, state: LinkState, grants: &mut Vec<Grant>) {
        self.fabric.routes.set_link(link, state);
        self.reroute(now, grants);
    }

    /// Looks up path and rate of every pair again and considers all hosts. Pairs that the fabric
    /// cannot carry any more leave the backlog, and their slot ends.
    fn reroute(&mut self, now: Time, grants: &mut Vec<Grant>) {
        self.least = i64::MAX;
        for host in 0..self.fabric.hosts() {
            for id in self.hosts[host as usize].backlog.clone() {
                self.leave_groups(id);
                self.leave_link(id);
                let sends = self.current(host) == Some(id);
                if sends {
                    self.unload(id);
                }
                let destination = self.pairs[id as usize].destination;
                if let Some((path, rate)) = self.fabric.route(host, destination) {
                    let pair = &mut self.pairs[id as usize];
                    (pair.path, pair.rate) = (path, rate);
                    self.least = self.least.min(bits(rate));
                    self.join_groups(id);
                    if sends {
                        self.load_path(id);
                    }
                } else {
                    if sends {
                        self.hosts[host as usize].current = None;
                    }
                    self.discard(id);
                }
            }
        }
        self.drop_claims();
        self.handle_all_silent(now, grants);
    }

    /// Event 3 for all hosts without a slot.
    pub fn handle_all_silent(&mut self, now: Time, grants: &mut Vec<Grant>) {
        for host in self.in_turn() {
            self.handle(now, Event::Backlogged(host), grants);
        }
    }

    /// Notes that a slot has ended, or that a host has left, without giving its capacity to anyone:
    /// [`handle_all_silent`](Self::handle_all_silent) does that later.
    pub fn suspend(&mut self, now: Time, event: Event) {
        if event.host() < self.fabric.hosts() && !matches!(event, Event::Backlogged(_)) {
            self.end(now, event, &mut Vec::new());
        }
    }

    /// The first `most` pairs of each host's backlog.
    pub fn pairs(&self, most: usize) -> Vec<PairView<'_>> {
        let first = |host: &'_ Host| host.backlog.iter().take(most).copied().collect::<Vec<_>>();
        let ids = self.hosts.iter().flat_map(first);
        let view = |id: u32| {
            let pair = &self.pairs[id as usize];
            PairView {
                host: pair.source,
                destination: pair.destination,
                path: &pair.path,
                rate: pair.rate,
            }
        };
        ids.map(view).collect()
    }

    /// Lines 18 to 25, and the links that they release.
    fn end(&mut self, now: Time, event: Event, released: &mut Vec<u32>) {
        let host = event.host();
        if let Some((pair, _)) = self.hosts[host as usize].current.take() {
            released.extend_from_slice(&self.pairs[pair as usize].path);
            self.unload(pair);
            self.start_waiting(now, pair);
            if matches!(event, Event::Returned(_)) {
                self.discard(pair);
            }
        }
        if matches!(event, Event::Left(_)) {
            for pair in std::mem::take(&mut self.hosts[host as usize].backlog) {
                self.discard(pair);
            }
        }
    }

    /// All hosts, longest unserved first.
    fn in_turn(&self) -> Vec<u32> {
        let mut hosts: Vec<u32> = (0..self.fabric.hosts()).collect();
        hosts.sort_by_key(|&host| (self.hosts[host as usize].served, host));
        hosts
    }

    fn current(&self, host: u32) -> Option<u32> {
        self.hosts[host as usize].current.map(|(pair, _)| pair)
    }

    /// Eq. 1 on every link of the pair's path, with what `instead` puts on them taken away; the
    /// first link that fails.
    fn blocked(&self, id: u32, instead: Option<u32>) -> Option<u32> {
        let pair = &self.pairs[id as usize];
        let rate = bits(pair.rate);
        pair.path.iter().copied().find(|&at| {
            let link = &self.links[at as usize];
            let mut spare = link.spare;
            if let Some(other) = instead.map(|other| &self.pairs[other as usize])
                && other.path.contains(&at)
            {
                spare += bits(other.rate);
            }
            rate > spare || link.claim.is_some_and(|claim| claim != id)
        })
    }

    /// Lines 38 and 47 to 49, and lines 59 and 60.
    fn grant(&mut self, now: Time, id: u32, grants: &mut Vec<Grant>) {
        self.leave_link(id);
        self.stop_waiting(id);
        self.load_path(id);
        self.slots += 1;
        let Pair {
            source,
            destination,
            rate,
            ..
        } = self.pairs[id as usize];
        self.unfile(id);
        self.pairs[id as usize].served = self.slots;
        let host = &mut self.hosts[source as usize];
        host.backlog.push(id);
        host.served = self.slots;
        host.current = Some((id, now));
        grants.push(Grant {
            host: source,
            destination,
            rate,
        });
    }

    fn load_path(&mut self, id: u32) {
        let pair = &self.pairs[id as usize];
        for &link in pair.path.iter() {
            self.links[link as usize].spare -= bits(pair.rate);
        }
    }

    fn unload(&mut self, id: u32) {
        let pair = &self.pairs[id as usize];
        for &link in pair.path.iter() {
            self.links[link as usize].spare += bits(pair.rate);
        }
    }
}
