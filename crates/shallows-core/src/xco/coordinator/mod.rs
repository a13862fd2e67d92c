//! The local coordinator of a host (§3.1, §3.4): a gate before the NIC, and an end of the control
//! protocol.
//!
//! Packets wait in one bounded queue for each destination until the controller permits sending to
//! it. Within a slot they leave one after the other at the permitted rate, and none leaves that
//! would not be on the wire completely before the slot ends. What is ours:
//!
//! - **Small flows** (§4.4: "ping") pass without permission: packets up to a size, which covers
//!   ACKs and pings, within a budget that is counted against the links (`budget.rs`), and the first
//!   bytes of a flow in a window of time. A flow with packets in a queue stays behind them.
//! - **Hysteresis** (§3.2: "few tens of microseconds"): 50 us by default.
//! - **The 75 ms of setting up a queue** (§4.8) are a parameter, 0 by default.
//! - **Without a controller** for [`Protocol::silence`](super::config::Protocol::silence) the host sends uncoordinated (§6), and it
//!   does so before it has joined. It comes back under control with the first directive of a leader
//!   that knows its backlog and gives permits, so that there is no gap.
//! - **Coordination on demand** (§6): what it sends to each destination is measured (`meter.rs`),
//!   and only destinations that the controller names need permission.
//!
//! A driver asks for [`Agent::timeout`](crate::control::Agent::timeout) again after it has offered a packet, because a new backlog
//! is to be reported at once, and after a packet was released, because an empty queue gives its slot
//! back.

mod agent;
mod budget;
mod config;
mod gate;
mod meter;
mod queues;
mod stations;
#[cfg(test)]
mod tests;
mod v2v;

use std::collections::VecDeque;

use super::config::{OnDemand, SettingsError};
use super::message::{
    self, Body, Directive, Epoch, Header, Key, PermitKind, Refused, Report, Standing, Window,
};
use crate::packet::Packet;
use crate::units::{Rate, Time};

pub use budget::SmallBudget;
pub use config::{CoordinatorConfig, CoordinatorCounters, GateConfig};
use meter::Meter;
use queues::Queues;
use stations::Stations;

/// The local coordinator: hold packets, and speak with the controller.
#[derive(Debug)]
pub struct Coordinator<P> {
    config: CoordinatorConfig,
    key: Key,
    started: Time,
    queues: Queues<P>,
    meter: Option<Meter>,
    /// Places of virtual machines, if they are learned.
    stations: Option<Stations>,
    standing: Standing,
    windows: Vec<(u32, Window)>,
    leader: Option<Leader>,
    /// The newest epoch that it has followed: never an older one again.
    promise: Epoch,
    /// Time of the last message from a leader that gives permits.
    permitted: Time,
    grant: u64,
    slot: Option<Slot>,
    /// Time at which the wire is free for the next held packet.
    free: Time,
    reporting: Reporting,
    /// The latest time that it was told, and how often time went back.
    latest: Time,
    timeline: u32,
    counters: CoordinatorCounters,
}

/// The controller that the host follows.
#[derive(Clone, Copy, Debug)]
struct Leader {
    address: u32,
    incarnation: u64,
    heard: Time,
    /// The stamp of its newest directive.
    stamp: Time,
}

/// The timeslice in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    queue: u32,
    until: Time,
    rate: Rate,
    /// Since when the queue has been empty.
    empty: Option<Time>,
}

/// Pending reports, with destination and time.
#[derive(Debug, Default)]
struct Reporting {
    /// Something that the leader must know: report at once.
    is_due: bool,
    /// An answer is wanted from it.
    wants_answer: bool,
    /// Emptied queues are reported at this time.
    later: Option<Time>,
    sequence: u64,
    /// The newest report with news, and when it was sent.
    unacknowledged: Option<(u64, Time)>,
    last: Option<Time>,
    outbox: VecDeque<u32>,
}

impl<P: Packet> Coordinator<P> {
    /// A coordinator that starts at `now`, by its own clock, and is not coordinated yet.
    ///
    /// # Errors
    /// If the settings make no sense.
    pub fn new(config: CoordinatorConfig, key: Key, now: Time) -> Result<Self, SettingsError> {
        config.protocol.check()?;
        if config.controllers.is_empty() {
            return Err(SettingsError::NoController);
        }
        config.gate.check()?;
        if config.rate.bps() == 0 {
            return Err(SettingsError::Zero("the rate of a host"));
        }
        if let Some(settings) = &config.on_demand {
            settings.check()?;
        }
        let meter = |settings: &OnDemand| Meter::new(settings, config.rate);
        let window = |&address: &u32| (address, Window::default());
        Ok(Self {
            key,
            started: now,
            queues: Queues::new(config.gate, config.budget),
            meter: config.on_demand.as_ref().map(meter),
            stations: None,
            standing: Standing::Uncoordinated,
            windows: config.controllers.iter().map(window).collect(),
            leader: None,
            promise: Epoch::default(),
            permitted: now,
            grant: 0,
            slot: None,
            free: Time::ZERO,
            reporting: Reporting {
                is_due: true,
                wants_answer: true,
                ..Reporting::default()
            },
            latest: now,
            timeline: 0,
            counters: CoordinatorCounters::default(),
            config,
        })
    }

    /// Its counters.
    pub fn counters(&self) -> &CoordinatorCounters {
        &self.counters
    }

    /// Returns whether it does what directives say.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// The epoch that it follows.
    pub fn epoch(&self) -> Epoch {
        self.promise
    }

    /// Packets held.
    pub fn held(&self) -> usize {
        self.queues.held()
    }

    /// Permits in force at `now`: destinations and rates of slots and limits.
    pub fn permits(&self, now: Time) -> impl Iterator<Item = (u32, Rate)> + '_ {
        let slot = self.slot.filter(|slot| now < slot.until);
        let slot = slot.map(|slot| (self.queues.destination(slot.queue), slot.rate));
        slot.into_iter().chain(self.queues.limits(now))
    }

    /// Changes what small packets may take without permission.
    pub fn set_budget(&mut self, budget: SmallBudget) {
        self.config.budget = budget;
        self.queues.set_budget(budget);
    }

    /// Tells the controller that the host leaves, and sends what is left uncoordinated.
    pub fn leave(&mut self) {
        self.standing = Standing::Leaving;
        self.drop_permits();
        self.reporting.is_due = true;
    }

    fn accept(&mut self, now: Time, from: u32, message: &[u8]) -> Result<(), Refused> {
        let header = message::peek(message)?;
        let known = self
            .windows
            .iter_mut()
            .find(|(address, _)| *address == from);
        let (_, window) = known.ok_or(Refused::Sender)?;
        if header.from != from {
            return Err(Refused::Sender);
        }
        if header.to != self.config.host {
            return Err(Refused::Addressee);
        }
        let Body::Directive(directive) = message::open(&self.key, message)? else {
            return Err(Refused::Malformed);
        };
        window.admit(&header)?;
        self.follow(now, &header, &directive)?;
        if directive.incarnation == self.config.incarnation {
            self.obey(now, &header, &directive);
        }
        Ok(())
    }

    /// Decides whether the sender is, or becomes, the leader.
    fn follow(&mut self, now: Time, header: &Header, directive: &Directive) -> Result<(), Refused> {
        if directive.incarnation != 0 && directive.incarnation != self.config.incarnation {
            return Err(Refused::Outdated);
        }
        if directive.epoch.leader != header.from {
            return Err(Refused::Sender);
        }
        if directive.epoch < self.promise {
            // Tell a controller that slept through an election.
            self.reporting.outbox.push_back(header.from);
            return Err(Refused::Outdated);
        }
        if directive.epoch == self.promise {
            return match self.leader {
                Some(leader) if leader.incarnation != header.incarnation => {
                    // Tell a controller that restarted that this term is its predecessor's.
                    self.reporting.outbox.push_back(header.from);
                    Err(Refused::Sender)
                }
                _ => Ok(()),
            };
        }
        let limit = self.config.protocol.silence / 2;
        if let Some(leader) = self.leader
            && leader.address != header.from
            && now.saturating_sub(leader.heard) < limit
        {
            return Err(Refused::Unwanted);
        }
        self.promise = directive.epoch;
        self.leader = Some(Leader {
            address: header.from,
            incarnation: header.incarnation,
            heard: now,
            stamp: Time::ZERO,
        });
        self.drop_permits();
        self.restart_places();
        self.grant = 0;
        self.reporting.unacknowledged = None;
        self.reporting.is_due = true;
        self.reporting.wants_answer = true;
        Ok(())
    }

    fn obey(&mut self, now: Time, header: &Header, directive: &Directive) {
        if let Some(leader) = &mut self.leader
            && leader.address == header.from
        {
            leader.heard = now;
            leader.stamp = leader.stamp.max(directive.stamp);
        }
        let news = self.reporting.unacknowledged;
        if news.is_some_and(|(sequence, _)| sequence <= directive.acknowledged) {
            self.reporting.unacknowledged = None;
        }
        if let Some(news) = &directive.places {
            self.take_places(news);
        }
        if directive.is_granting {
            self.permitted = now;
            if self.queues.hold(now, &directive.held) {
                self.reporting.is_due = true;
            }
            // The leader knows what waits here.
            if self.standing == Standing::Uncoordinated
                && self.reporting.unacknowledged.is_none()
                && !self.reporting.is_due
            {
                self.standing = Standing::Coordinated;
            }
        }
        if directive.timeline != self.timeline {
            return;
        }
        let is_new = directive.grant > self.grant;
        let before = if is_new {
            self.queues.take_limits(now)
        } else {
            Vec::new()
        };
        if is_new {
            self.grant = directive.grant;
            self.slot = None;
        }
        for permit in &directive.permits {
            let longest = now.saturating_add(self.config.protocol.silence);
            let until = permit.until.min(longest);
            let queue = self.queues.of(now, permit.destination);
            match permit.kind {
                PermitKind::Exempt => self.queues.exempt(queue, until),
                _ if !is_new || permit.rate.bps() == 0 => {}
                _ if until <= now => self.counters.late_slots += 1,
                PermitKind::Limit => self.queues.limit(queue, until, permit.rate),
                PermitKind::Slot => {
                    self.counters.slots += 1;
                    self.slot = Some(Slot {
                        queue,
                        until,
                        rate: permit.rate.min(self.config.rate),
                        empty: self.queues.is_empty(queue).then_some(now),
                    });
                }
            }
        }
        // Others get what this host had when the controller knows that it does not use it any more.
        if self.queues.limits_shrank(&before) {
            self.reporting.is_due = true;
        }
    }

    /// Ends what the clock measures if it has gone back: a slot would last too long.
    fn note_time(&mut self, now: Time) {
        if now < self.latest {
            self.counters.clock_jumps += 1;
            self.timeline = self.timeline.wrapping_add(1);
            self.drop_permits();
            self.started = now;
            self.permitted = now;
            self.free = now;
            self.reporting.last = None;
            self.reporting.unacknowledged = None;
            self.reporting.later = None;
            if let Some(leader) = &mut self.leader {
                leader.heard = now;
            }
            self.queues.restart_clock(now);
            if let Some(meter) = &mut self.meter {
                meter.restart(now);
            }
        }
        self.latest = now;
    }

    fn drop_permits(&mut self) {
        self.slot = None;
        self.queues.clear_limits();
    }

    /// Handles what time alone changes: the end of a slot, its return, the loss of all controllers.
    fn advance(&mut self, now: Time) {
        self.note_time(now);
        if let Some(slot) = self.slot {
            let over = slot.until <= now;
            let idle = slot
                .empty
                .is_some_and(|since| since + self.config.gate.hysteresis <= now);
            if over || idle {
                self.slot = None;
                if slot.empty.is_some() {
                    self.counters.returned += u64::from(!over);
                    self.queues.leave_backlog(slot.queue);
                    self.reporting.is_due = true;
                }
            }
        }
        if self.meter.as_mut().is_some_and(|meter| meter.advance(now)) {
            self.reporting.is_due = true;
        }
        if self.reporting.later.is_some_and(|later| later <= now) {
            self.reporting.later = None;
            if self.queues.drop_empty(self.slot.map(|slot| slot.queue)) {
                self.reporting.is_due = true;
            }
        }
        if self.standing == Standing::Coordinated
            && now.saturating_sub(self.permitted) >= self.config.protocol.silence
        {
            self.standing = Standing::Uncoordinated;
            self.drop_permits();
            self.counters.lost_control += 1;
            self.reporting.is_due = true;
            self.reporting.wants_answer = true;
        }
        let (protocol, reporting) = (&self.config.protocol, &mut self.reporting);
        if reporting
            .last
            .is_none_or(|last| last + protocol.keepalive <= now)
            || self.standing == Standing::Coordinated
                && reporting
                    .unacknowledged
                    .is_some_and(|(_, sent)| sent + protocol.retry <= now)
        {
            reporting.is_due = true;
            reporting.wants_answer = true;
        }
        if reporting.is_due {
            self.address_report(now);
        }
    }

    /// To the leader, or to all controllers if there is none that gives permits.
    fn address_report(&mut self, now: Time) {
        self.reporting.is_due = false;
        let is_led = now.saturating_sub(self.permitted) < self.config.protocol.silence / 2;
        match self.leader {
            Some(leader) if is_led => self.reporting.outbox.push_back(leader.address),
            _ => self.reporting.outbox.extend(&self.config.controllers),
        }
        self.reporting.last = Some(now);
        self.reporting.unacknowledged = Some((self.reporting.sequence + 1, now));
    }

    fn report(&mut self, now: Time) -> Report {
        // A host that has just started may have followed another leader before.
        let wait = self.config.protocol.stretch(self.config.protocol.silence);
        let can_vouch = now.saturating_sub(self.started) >= wait;
        let echo = self.leader.map(|leader| {
            let stamp = if can_vouch { leader.stamp } else { Time::ZERO };
            (leader.incarnation, stamp)
        });
        Report {
            standing: self.standing,
            wants_answer: self.reporting.wants_answer,
            is_sending: self.slot.is_some(),
            epoch: self.promise,
            echo: echo.unwrap_or_default(),
            clock: now,
            timeline: self.timeline,
            grant: self.grant,
            backlog: self.queues.backlog(message::MOST_DESTINATIONS),
            rates: self
                .meter
                .as_ref()
                .map_or_else(Vec::new, |meter| meter.rates().to_vec()),
            claims: self.claims(),
        }
    }

    /// A packet was queued for a destination that was not backlogged, or a queue ran empty.
    fn note_queue(&mut self, now: Time, queue: u32) {
        if !self.queues.is_empty(queue) {
            if let Some(slot) = &mut self.slot
                && slot.queue == queue
            {
                slot.empty = None;
            }
            if self.queues.is_held(queue) && self.queues.enter_backlog(queue) {
                self.reporting.is_due = true;
            }
            return;
        }
        match &mut self.slot {
            Some(slot) if slot.queue == queue => slot.empty = Some(now),
            _ => {
                let later = now + self.config.gate.hysteresis;
                self.reporting.later.get_or_insert(later);
            }
        }
    }
}
