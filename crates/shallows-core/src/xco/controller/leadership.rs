//! Terms of leadership: who of several controllers is obeyed.
//!
//! Hosts are the electorate. A host follows one term at a time, never an older one, and a newer one
//! only once its leader has been quiet for half of `silence`. Reports echo the newest stamp that
//! the host received from the leader it follows, so a leader knows who followed it at that time,
//! whatever became of later messages.
//!
//! A controller with peers leads only while more than half of all hosts have vouched for a stamp
//! not older than `silence`. One that wins this majority waits, before its first grant, for
//! `silence` and the longest slot: by then its predecessor, which has lost at least one host of its
//! majority, has stopped, and what it permitted has ended. So at no time do two controllers have
//! slots in force.
//!
//! A controller without peers leads at once; it waits for the longest slot, because it may have
//! restarted after a crash. It does not know its last term then, so it begins with the first one
//! again. A host that follows its predecessor in a term of the same number refuses it and reports
//! which incarnation it follows, whereupon the controller begins the next term.

use super::{
    Beat, Controller, ControllerConfig, Epoch, Event, Header, Limits, Refused, Report, Routes,
    Window,
};
use crate::units::Time;

/// Role of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Waits for the leader to fail.
    Standby,
    /// Asks hosts to follow it.
    Candidate,
    /// Gives directives.
    Leader,
}

#[derive(Debug)]
pub(super) struct Leadership {
    role: Role,
    epoch: Epoch,
    address: u32,
    peers: Vec<(u32, Window)>,
    beats_due: Vec<u32>,
    next_beats: Time,
    /// Time at which a standby takes over or a candidate tries again.
    deadline: Time,
    grants_from: Time,
    /// True if hosts have been told that permits are given.
    pub(super) is_announced: bool,
    lease_end: Time,
}

impl Leadership {
    pub(super) fn new(config: &ControllerConfig, now: Time) -> Self {
        let mut leadership = Self {
            role: Role::Standby,
            epoch: Epoch::default(),
            address: config.address,
            peers: config
                .peers
                .iter()
                .map(|&peer| (peer, Window::default()))
                .collect(),
            beats_due: Vec::new(),
            next_beats: now,
            deadline: now,
            grants_from: Time::MAX,
            is_announced: false,
            lease_end: Time::MAX,
        };
        if !config.peers.is_empty() {
            leadership.deadline = now + leadership.patience(config);
        }
        leadership
    }

    pub(super) fn role(&self) -> Role {
        self.role
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns whether slots may be given at `now`.
    pub(super) fn grants_at(&self, now: Time) -> bool {
        self.role == Role::Leader && self.grants_from <= now && now < self.lease_end
    }

    /// Time of the first slots, if that is after `now`.
    pub(super) fn begins_after(&self, now: Time) -> Option<Time> {
        Some(self.grants_from).filter(|&from| now < from)
    }

    /// Gives no slots before a time; when they are given again.
    pub(super) fn pause(&mut self, until: Time) -> Time {
        self.grants_from = self.grants_from.max(until);
        self.grants_from
    }

    pub(super) fn next_beat(&mut self) -> Option<u32> {
        self.beats_due.pop()
    }

    pub(super) fn admit(&mut self, header: &Header) -> Result<(), Refused> {
        let peer = self.peers.iter_mut().find(|(peer, _)| *peer == header.from);
        peer.ok_or(Refused::Sender)?.1.admit(header)
    }

    /// Controllers do not all try at the same time: the one with the lowest address is first.
    fn patience(&self, config: &ControllerConfig) -> Time {
        let lower = |(peer, _): &&(u32, Window)| *peer < self.address;
        let rank = self.peers.iter().filter(lower).count() as u64;
        config.protocol.silence * (1 + rank)
    }
}

impl<R: Routes> Controller<R> {
    /// The regular look at everything that depends on who was heard when.
    pub(super) fn check_leadership(&mut self, now: Time) {
        let keepalive = self.config.protocol.keepalive;
        self.next_check = now + keepalive / 4;
        if now >= self.leadership.next_beats {
            self.leadership.next_beats = now + keepalive;
            let peers = self.leadership.peers.iter().map(|&(peer, _)| peer);
            self.leadership.beats_due = peers.collect();
        }
        match self.leadership.role {
            Role::Leader => self.keep_leading(now),
            Role::Candidate if self.lease() > now => self.lead(now),
            _ if now >= self.leadership.deadline => self.stand(now),
            Role::Standby | Role::Candidate => {}
        }
        if self.leadership.role != Role::Standby {
            self.ask_strangers(now);
        }
    }

    /// Begins a new term as a candidate, or at once as the leader if there is nobody else.
    fn stand(&mut self, now: Time) {
        let leadership = &mut self.leadership;
        leadership.role = Role::Candidate;
        leadership.epoch = Epoch {
            counter: leadership.epoch.counter.saturating_add(1),
            leader: leadership.address,
        };
        leadership.deadline = now + leadership.patience(&self.config);
        for member in &mut self.members {
            member.vouched = None;
            member.asked = None;
            member.heard = None;
        }
        self.forget_places();
        if self.leadership.peers.is_empty() {
            self.lead(now);
        }
    }

    fn lead(&mut self, now: Time) {
        let protocol = &self.config.protocol;
        let mut wait = self.config.longest_slot();
        self.leadership.lease_end = Time::MAX;
        if !self.leadership.peers.is_empty() {
            wait += protocol.silence;
            self.leadership.lease_end = self.lease();
        }
        self.leadership.grants_from = now + protocol.stretch(wait);
        self.leadership.is_announced = false;
        self.leadership.role = Role::Leader;
        self.leadership.next_beats = now;
        self.counters.terms += 1;
        self.next_round = self.leadership.grants_from;
    }

    /// Until when this leader is followed by a majority, as far as it knows.
    fn lease(&self) -> Time {
        if self.leadership.peers.is_empty() {
            return Time::MAX;
        }
        let mut vouched: Vec<Time> = self.members.iter().filter_map(|m| m.vouched).collect();
        let quorum = self.members.len() / 2 + 1;
        if vouched.len() < quorum {
            return Time::ZERO;
        }
        let place = vouched.len() - quorum;
        *vouched.select_nth_unstable(place).1 + self.config.protocol.silence
    }

    fn keep_leading(&mut self, now: Time) {
        self.leadership.lease_end = self.lease();
        if self.leadership.lease_end <= now {
            return self.step_down(now, self.leadership.epoch);
        }
        let limit = self.config.protocol.silence;
        for host in 0..self.members.len() {
            let heard = self.members[host].heard;
            if heard.is_some_and(|heard| now.saturating_sub(heard) >= limit) {
                self.forget(now, host as u32);
            }
        }
    }

    /// Gives up leading or standing for it, since `epoch` is newer or the majority is lost.
    fn step_down(&mut self, now: Time, epoch: Epoch) {
        self.leadership.role = Role::Standby;
        self.leadership.epoch = epoch;
        self.leadership.deadline = now + self.leadership.patience(&self.config);
        self.leadership.grants_from = Time::MAX;
        self.next_round = Time::MAX;
        self.ends.clear();
        self.outbox.clear();
        self.forget_places();
        self.restart_demand(now, false);
        for host in 0..self.members.len() as u32 {
            self.schedule.suspend(now, Event::Left(host));
            let member = &mut self.members[host as usize];
            (member.slot, member.in_outbox, member.vouched) = (None, false, None);
            member.limits = Limits::default();
            member.exempt.clear();
        }
    }

    /// An epoch that somebody has mentioned.
    pub(super) fn note_epoch(&mut self, now: Time, epoch: Epoch) {
        if epoch <= self.leadership.epoch {
            return;
        }
        self.step_down(now, epoch);
        if self.leadership.peers.is_empty() {
            self.stand(now);
        }
    }

    /// A report to an earlier incarnation of this controller in a term of the same number: that host
    /// refuses this incarnation, so the next term has to begin.
    pub(super) fn note_predecessor(&mut self, now: Time, report: &Report) {
        let epoch = self.leadership.epoch;
        if self.leadership.role == Role::Standby
            || report.epoch != epoch
            || [0, self.config.incarnation].contains(&report.echo.0)
        {
            return;
        }
        self.step_down(now, epoch);
        if self.leadership.peers.is_empty() {
            self.stand(now);
        }
    }

    pub(super) fn handle_beat(&mut self, now: Time, from: u32, beat: &Beat) {
        self.note_epoch(now, beat.epoch);
        if beat.leads && beat.epoch == self.leadership.epoch && beat.epoch.leader == from {
            self.leadership.deadline = now + self.leadership.patience(&self.config);
        }
    }

    /// Tells all hosts that permits are given from now on, or they would send uncoordinated until
    /// the answer to their next report.
    pub(super) fn announce(&mut self) {
        if std::mem::replace(&mut self.leadership.is_announced, true) {
            return;
        }
        for host in 0..self.members.len() as u32 {
            if self.members[host as usize].heard.is_some() {
                self.post(host);
            }
        }
    }

    /// Asks hosts that are not heard of to report, each twice within `silence`.
    fn ask_strangers(&mut self, now: Time) {
        let interval = self.config.protocol.silence / 2;
        let is_candidate = self.leadership.role == Role::Candidate;
        for host in 0..self.members.len() as u32 {
            let member = &mut self.members[host as usize];
            let is_stranger = member.heard.is_none() || is_candidate && member.vouched.is_none();
            let is_due = member
                .asked
                .is_none_or(|asked| now.saturating_sub(asked) >= interval);
            if is_stranger && is_due {
                member.asked = Some(now);
                self.post(host);
            }
        }
    }
}
