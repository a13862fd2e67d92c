//! The central controller (§3.1, §3.4) and its standby.
//!
//! A controller turns reports of hosts into scheduling events, and the directives of Algorithm 1
//! into messages. Three things are ours, because the paper leaves them open:
//!
//! - **A slot is a lease.** Its end is given in the clock of the host, computed from the reports of
//!   the host so that it is never later than the controller's own idea of it (see `clock.rs`). The
//!   controller gives the capacity to another host only after that end, or after the host has said
//!   that it stopped. Directives that are lost, late or doubled can therefore leave capacity
//!   unused, but never use it twice.
//! - **A leader has a term** ([`Epoch`]), and leads only while most hosts have lately said that
//!   they follow it. A standby that takes over waits until every lease of its predecessor must be
//!   over (see `leadership.rs`).
//! - **A pair that cannot be scheduled** (a host that the fabric does not know, a link that is
//!   down) is exempt from coordination rather than silent.
//!
//! With [`ControllerConfig::on_demand`] only pairs that cross a link near congestion need permission
//! (see `demand.rs`).

mod agent;
mod clock;
mod config;
mod demand;
mod leadership;
mod places;
mod rates;
mod reload;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::config::{Protocol, SettingsError};
use super::fabric::{CoordinatedFabric, Routes};
use super::message::{
    self, Beat, Body, ClusterKey, Directive, Epoch, Header, Held, Key, MOST_PERMITS, Permit,
    PermitKind, Refused, Report, Standing, Window,
};
use super::schedule::{Event, Grant, Schedule};
use crate::control::LinkState;
use crate::units::{Rate, Time};

use clock::HostClock;
pub use config::{ControllerConfig, ControllerCounters, Directives, MOST_WEIGHT};
use demand::Demand;
use leadership::Leadership;
pub use leadership::Role;
use places::PlaceTable;
use rates::Limits;

/// A controller, leading or standing by.
#[derive(Debug)]
pub struct Controller<R> {
    config: ControllerConfig,
    key: Key,
    schedule: Schedule<R>,
    demand: Option<Demand>,
    places: PlaceTable,
    members: Vec<Member>,
    leadership: Leadership,
    /// Ends of slots: time, host, number of the grant.
    ends: BinaryHeap<Reverse<(Time, u32, u64)>>,
    next_round: Time,
    /// Time at which rates were last computed, and whether a pair got less than its share.
    last_round: Time,
    is_short: bool,
    next_check: Time,
    outbox: VecDeque<u32>,
    sequence: u64,
    grants: Vec<Grant>,
    sorted: Vec<u32>,
    counters: ControllerCounters,
}

/// A host as the controller knows it.
#[derive(Debug)]
struct Member {
    key: Key,
    window: Window,
    incarnation: u64,
    heard: Option<Time>,
    asked: Option<Time>,
    clock: HostClock,
    timeline: u32,
    /// The newest stamp of this leader that the host has vouched for.
    vouched: Option<Time>,
    acknowledged: u64,
    grant: u64,
    slot: Option<Slot>,
    limits: Limits,
    exempt: Vec<u32>,
    /// The version of the places that it knows, if it learns them.
    places_seen: Option<u64>,
    in_outbox: bool,
}

impl Member {
    fn new(key: Key) -> Self {
        Self {
            key,
            window: Window::default(),
            incarnation: 0,
            heard: None,
            asked: None,
            clock: HostClock::default(),
            timeline: 0,
            vouched: None,
            acknowledged: 0,
            grant: 0,
            slot: None,
            limits: Limits::default(),
            exempt: Vec::new(),
            places_seen: None,
            in_outbox: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    destination: u32,
    rate: Rate,
    end: Time,
}

impl<R: Routes> Controller<R> {
    /// A controller that starts at `now`.
    ///
    /// # Errors
    /// If the settings make no sense.
    pub fn new(
        config: ControllerConfig,
        mut fabric: CoordinatedFabric<R>,
        key: &ClusterKey,
        now: Time,
    ) -> Result<Self, SettingsError> {
        config.check()?;
        config.reserve(&mut fabric);
        let member = |host| Member::new(key.host(host));
        let mut controller = Self {
            key: key.controllers(),
            members: (0..fabric.hosts()).map(member).collect(),
            demand: config
                .on_demand
                .map(|settings| Demand::new(settings, &fabric)),
            schedule: Schedule::new(fabric, config.timing()),
            places: PlaceTable::default(),
            leadership: Leadership::new(&config, now),
            ends: BinaryHeap::new(),
            next_round: Time::MAX,
            last_round: Time::ZERO,
            is_short: false,
            next_check: now,
            outbox: VecDeque::new(),
            sequence: 0,
            grants: Vec::new(),
            sorted: Vec::new(),
            counters: ControllerCounters::default(),
            config,
        };
        controller.check_leadership(now);
        Ok(controller)
    }

    /// Its counters.
    pub fn counters(&self) -> &ControllerCounters {
        &self.counters
    }

    /// Returns whether it leads.
    pub fn role(&self) -> Role {
        self.leadership.role()
    }

    /// Its term, or the highest that it knows.
    pub fn epoch(&self) -> Epoch {
        self.leadership.epoch()
    }

    /// The schedule, for whoever watches.
    pub fn schedule(&self) -> &Schedule<R> {
        &self.schedule
    }

    /// Number of hosts that have joined.
    pub fn joined(&self) -> usize {
        let joined = |member: &&Member| member.heard.is_some();
        self.members.iter().filter(joined).count()
    }

    /// Tells of a link's new capacity, 0 if it is down.
    pub fn set_capacity(&mut self, now: Time, link: u32, capacity: Rate) {
        let mut grants = std::mem::take(&mut self.grants);
        let capacity = self.config.permitted(capacity);
        self.schedule.set_capacity(now, link, capacity, &mut grants);
        self.after_reroute(now, grants);
    }

    /// Tells of new routes.
    pub fn set_routes(&mut self, now: Time, routes: R) {
        let mut grants = std::mem::take(&mut self.grants);
        self.schedule.set_routes(now, routes, &mut grants);
        self.after_reroute(now, grants);
    }

    /// Tells of a link that has gone down or come back, where routes follow that.
    pub fn set_link(&mut self, now: Time, link: u32, state: LinkState) {
        let mut grants = std::mem::take(&mut self.grants);
        self.schedule.set_link(now, link, state, &mut grants);
        self.after_reroute(now, grants);
    }

    fn after_reroute(&mut self, now: Time, grants: Vec<Grant>) {
        for host in 0..self.members.len() as u32 {
            let member = &mut self.members[host as usize];
            if member.slot.is_some() && self.schedule.directive(host).is_none() {
                member.slot = None;
            }
        }
        self.restart_demand(now, true);
        self.deliver(now, grants);
    }

    fn handle_report(&mut self, now: Time, from: u32, sequence: u64, report: &Report) {
        self.note_epoch(now, report.epoch);
        self.note_predecessor(now, report);
        let (epoch, incarnation) = (self.leadership.epoch(), self.config.incarnation);
        let member = &mut self.members[from as usize];
        if member.timeline != report.timeline {
            member.timeline = report.timeline;
            member.clock = HostClock::default();
            self.counters.clock_jumps += 1;
        }
        member
            .clock
            .sample(now, report.clock, &self.config.protocol);
        member.acknowledged = sequence;
        if report.epoch == epoch && report.vouches_for(incarnation) {
            member.vouched = member.vouched.max(Some(report.echo.1));
        }
        if report.standing == Standing::Leaving {
            return self.forget(now, from);
        }
        member.heard = Some(now);
        if self.leadership.role() == Role::Standby {
            return;
        }
        if report.wants_answer || report.epoch != epoch {
            self.post(from);
        }
        if report.epoch != epoch {
            return;
        }
        self.note_rates(now, from, &report.rates);
        if let Some(claims) = &report.claims {
            self.note_claims(now, from, claims);
        }
        let member = &mut self.members[from as usize];
        if report.grant >= member.grant && member.limits.acknowledge() && self.is_short {
            self.hasten_round(now);
        }
        let is_new = self.note_backlog(now, from, report);
        let is_over = report.grant >= self.members[from as usize].grant && !report.is_sending;
        let ended = self.members[from as usize].slot.filter(|_| is_over);
        let event = match ended {
            Some(slot) => {
                self.members[from as usize].slot = None;
                self.counters.returned += 1;
                if report.backlog.contains(&slot.destination) {
                    Event::Expired(from)
                } else {
                    Event::Returned(from)
                }
            }
            None if is_new => Event::Backlogged(from),
            None => return,
        };
        self.schedule_event(now, event);
    }

    /// Brings B_x up to date; whether anything changed.
    fn note_backlog(&mut self, now: Time, host: u32, report: &Report) -> bool {
        let mut changed = false;
        for &destination in &report.backlog {
            let before = self.schedule.backlogged();
            if self.schedule.add(now, host, destination) {
                changed |= self.schedule.backlogged() > before;
            } else if self.members[host as usize].exempt.len() < MOST_PERMITS {
                self.members[host as usize].exempt.push(destination);
                self.post(host);
            }
        }
        let mut reported = std::mem::take(&mut self.sorted);
        reported.clear();
        reported.extend_from_slice(&report.backlog);
        reported.sort_unstable();
        let gone = |known: &u32| reported.binary_search(known).is_err();
        let gone: Vec<u32> = self.schedule.destinations(host).filter(gone).collect();
        for destination in gone {
            self.schedule.remove(host, destination);
            changed = true;
        }
        self.sorted = reported;
        changed
    }

    fn schedule_event(&mut self, now: Time, event: Event) {
        if self.config.directives != Directives::Timeslice {
            self.schedule.suspend(now, event);
            if matches!(event, Event::Backlogged(_)) {
                self.hasten_round(now);
            }
            return;
        }
        if !self.leadership.grants_at(now) {
            self.next_round = self.next_round.min(self.next_check);
            return self.schedule.suspend(now, event);
        }
        let mut grants = std::mem::take(&mut self.grants);
        self.schedule.handle(now, event, &mut grants);
        self.deliver(now, grants);
    }

    /// Lines 58 to 61: turns what the algorithm decided into slots and messages.
    fn deliver(&mut self, now: Time, mut grants: Vec<Grant>) {
        for grant in grants.drain(..) {
            let weight = self.config.weights.get(&grant.host).copied().unwrap_or(1);
            let end = now + self.config.slot * u64::from(weight);
            let member = &mut self.members[grant.host as usize];
            member.grant += 1;
            member.slot = Some(Slot {
                destination: grant.destination,
                rate: grant.rate,
                end,
            });
            self.ends.push(Reverse((end, grant.host, member.grant)));
            self.counters.grants += 1;
            self.post(grant.host);
        }
        self.grants = grants;
    }

    fn end_slots(&mut self, now: Time) {
        while let Some(&Reverse((end, host, grant))) = self.ends.peek()
            && end <= now
        {
            self.ends.pop();
            let member = &mut self.members[host as usize];
            if member.grant == grant && member.slot.take().is_some() {
                self.counters.expired += 1;
                let event = match member.heard {
                    Some(_) => Event::Expired(host),
                    None => Event::Left(host),
                };
                self.schedule_event(now, event);
            }
        }
    }

    /// A host that is gone: its backlog and its slot go with it.
    fn forget(&mut self, now: Time, host: u32) {
        let member = &mut self.members[host as usize];
        member.heard = None;
        member.vouched = None;
        member.exempt.clear();
        member.limits.retire(now);
        self.note_rates(now, host, &[]);
        let member = &self.members[host as usize];
        // Its lease may still be in use: the capacity is free when that has ended.
        if member.slot.is_none() {
            self.schedule_event(now, Event::Left(host));
        } else {
            let backlog: Vec<u32> = self.schedule.backlog(host).collect();
            for destination in backlog {
                self.schedule.remove(host, destination);
            }
        }
    }

    fn post(&mut self, host: u32) {
        let member = &mut self.members[host as usize];
        if !member.in_outbox {
            member.in_outbox = true;
            self.outbox.push_back(host);
        }
    }

    fn header(&mut self, to: u32) -> Header {
        self.sequence += 1;
        Header {
            from: self.config.address,
            to,
            incarnation: self.config.incarnation,
            sequence: self.sequence,
        }
    }

    fn directive(&mut self, now: Time, host: u32) -> Directive {
        let protocol = self.config.protocol;
        let grants = self.leadership.grants_at(now);
        let member = &mut self.members[host as usize];
        let clock = member.clock;
        let until = |end| clock.convert(now, end, &protocol);
        let mut directive = Directive {
            epoch: self.leadership.epoch(),
            incarnation: member.incarnation,
            is_granting: grants,
            stamp: now,
            acknowledged: member.acknowledged,
            timeline: member.timeline,
            ..Directive::default()
        };
        if let Some(slot) = member.slot
            && grants
        {
            directive.permits.push(Permit {
                destination: slot.destination,
                kind: PermitKind::Slot,
                until: until(slot.end),
                rate: slot.rate,
            });
            directive.grant = member.grant;
        }
        if now < member.limits.end && grants {
            directive.grant = member.grant;
            let limits = member.limits.rates.iter();
            directive
                .permits
                .extend(limits.map(|&(destination, rate)| Permit {
                    destination,
                    kind: PermitKind::Limit,
                    until: until(member.limits.end),
                    rate,
                }));
        }
        if let Some(demand) = &self.demand {
            directive.held = demand.held(host, directive.permits.len());
        }
        let room = directive.room();
        let exempt = member.exempt.drain(..).take(room);
        directive.permits.extend(exempt.map(|destination| Permit {
            destination,
            kind: PermitKind::Exempt,
            until: until(now + protocol.silence),
            rate: Rate::from_bps(0),
        }));
        directive.places = self.news_of_places(host, directive.room_for_places());
        directive
    }

    fn accept(&mut self, now: Time, from: u32, message: &[u8]) -> Result<(), Refused> {
        let header = message::peek(message)?;
        if header.from != from {
            return Err(Refused::Sender);
        }
        if header.to != self.config.address {
            return Err(Refused::Addressee);
        }
        if self.config.peers.contains(&from) {
            let body = message::open(&self.key, message)?;
            let Body::Beat(beat) = body else {
                return Err(Refused::Malformed);
            };
            self.leadership.admit(&header)?;
            self.handle_beat(now, from, &beat);
            return Ok(());
        }
        let member = self.members.get_mut(from as usize).ok_or(Refused::Sender)?;
        let Body::Report(report) = message::open(&member.key, message)? else {
            return Err(Refused::Malformed);
        };
        member.window.admit(&header)?;
        if member.incarnation != header.incarnation {
            // A host that restarted knows of no slot, and its clock is another.
            member.incarnation = header.incarnation;
            (member.clock, member.timeline) = (HostClock::default(), 0);
            member.vouched = None;
            member.places_seen = None;
            member.limits.retire(now);
        }
        self.handle_report(now, from, header.sequence, &report);
        Ok(())
    }
}
