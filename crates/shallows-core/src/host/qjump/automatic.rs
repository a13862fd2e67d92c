//! Levels that choose themselves (§8).
//!
//! The paper leaves three challenges to future work. [`AutomaticLevels`] meets them as follows:
//!
//! | §8 | here |
//! |---|---|
//! | an estimate of each application's instantaneous throughput | for each level, the bytes that would be waiting had the application sent everything there: a queue that loses the level's allotment every epoch |
//! | applications that exceed their allocation move to a lower level | at once, when more than [`patience`](AutomaticConfig::patience) epochs of the allotment would be waiting, or a packet is larger than the allotment |
//! | those that underutilize it are lifted | to the highest level that they have fit for [`settle`](AutomaticConfig::settle), which doubles with every lift that did not last |
//! | control traffic of throughput-intensive applications | connections that fit the top level by themselves share a level of their own, found in the same way: [`ControlConnections`] |
//!
//! Against cheating: an application counts as a whole, however many connections it has; so do its
//! control connections. Silence proves nothing: a pause counts for an eighth of `settle` at most. New
//! applications begin at the lowest level. What all senders at a level may have waiting is limited as
//! for one; if it is too much, the one that sent most goes.
//!
//! Levels are numbered from the top here, level 0 having the smallest allotment.

mod meter;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use meter::{Meter, Waiting};

use super::{Excess, LimiterConfig, MAX_LEVELS};
use crate::units::{Bytes, Time};

/// Levels above the lowest, which everything fits.
const UPPER_LEVELS: usize = MAX_LEVELS - 1;

/// `settle` doubles at most this often.
const MOST_DOUBLINGS: u8 = 6;

/// Connections beyond which those that pause are forgotten.
const MANY_CONNECTIONS: usize = 1 << 14;

/// Parameters of the automatic choice of levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AutomaticConfig {
    /// Epochs of held packets after which an application is moved to a lower level. It is 1 where
    /// the excess is dropped, because no packet waits then.
    pub patience: u32,
    /// Time for which an application must fit a higher level before it is moved there.
    pub settle: Time,
    /// Treatment of small connections of large applications.
    pub control: ControlConnections,
}

/// Treatment of an application's connections that would fit the top level on their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ControlConnections {
    /// They share a level of their own per application.
    #[default]
    Apart,
    /// They have their application's level.
    Together,
}

impl Default for AutomaticConfig {
    fn default() -> Self {
        Self {
            patience: 8,
            settle: Time::from_ms(20),
            control: ControlConnections::Apart,
        }
    }
}

/// The reason why levels cannot be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AutomaticError {
    /// Nothing to choose by.
    #[error(
        "levels must have more bytes each, from the highest: number {0}, counted from 0, has no more than the one above"
    )]
    NotIncreasing(usize),
    /// Everything exceeds.
    #[error("patience must be at least 1 epoch")]
    NoPatience,
    /// A sender that waits for room would never exceed its level.
    #[error(
        "{patience} epochs of level {level} are {needed}, more than the {limit} that may wait: give \
         more hold-limit or less patience"
    )]
    HoldLimit {
        /// The patience.
        patience: u32,
        /// The level.
        level: usize,
        /// Bytes that the level may send in that time.
        needed: Bytes,
        /// Limit of the level's queue.
        limit: Bytes,
    },
}

/// The level of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// From 0, the top.
    pub level: u8,
    /// True if somebody was moved to a lower level, so that packets that wait may have to follow.
    pub lowered: bool,
}

/// Current level of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationLevel {
    /// Its number.
    pub application: u32,
    /// Its level.
    pub level: u8,
    /// The level of its control connections, if it has such.
    pub control: Option<u8>,
    /// Number of changes of its level or of its control connections' level.
    pub changes: u64,
    /// The last such change.
    pub settled: Time,
}

/// Chooses the levels of a host's applications by what they send.
///
/// Ask [`assign`](Self::assign) for every packet, or for all bytes of an interval where a packet at a
/// time is too often. An application is any number: a service, a cgroup.
#[derive(Clone, Debug)]
pub struct AutomaticLevels {
    scale: Scale,
    control: ControlConnections,
    applications: BTreeMap<u32, Application>,
    connections: FxHashMap<(u32, u64), Connection>,
    /// Bytes queued at each level above the lowest, over all senders.
    shared: [Waiting; UPPER_LEVELS],
}

/// Parameters common to all senders.
#[derive(Clone, Debug)]
struct Scale {
    /// Of the levels above the lowest.
    allotments: Vec<u64>,
    epoch: Time,
    patience: u64,
    settle: Time,
}

/// A time and the number of its epoch.
#[derive(Clone, Copy, Debug)]
struct Moment {
    now: Time,
    epoch: u64,
}

#[derive(Clone, Debug)]
struct Application {
    whole: Sender,
    control: Option<Sender>,
}

/// Something that has a level.
#[derive(Clone, Debug)]
struct Sender {
    level: usize,
    meter: Meter,
    /// Number of doublings of the settling time, for each level.
    doublings: [u8; UPPER_LEVELS],
    changes: u64,
    changed: Time,
}

#[derive(Clone, Debug)]
struct Connection {
    meter: Meter,
    is_control: bool,
    doublings: u8,
}

impl AutomaticConfig {
    /// The state of a host with these limits, of which each level may hold `hold_limit`.
    ///
    /// # Errors
    /// If the levels do not increase, or patience is none or more than the host has room for.
    pub fn build(
        &self,
        limits: &LimiterConfig,
        hold_limit: Option<Bytes>,
    ) -> Result<AutomaticLevels, AutomaticError> {
        let pairs = limits.levels.iter().zip(limits.levels.iter().skip(1));
        if let Some(level) = pairs.enumerate().find(|(_, (above, below))| below <= above) {
            return Err(AutomaticError::NotIncreasing(level.0 + 1));
        }
        if self.patience == 0 {
            return Err(AutomaticError::NoPatience);
        }
        let allotments = limits.levels.iter().map(|bytes| bytes.get());
        let upper = limits.levels.len().saturating_sub(1);
        let allotments: Vec<u64> = allotments.take(upper).collect();
        let patience = match limits.excess {
            Excess::Drop => 1,
            Excess::Hold => self.patience,
        };
        for (level, &bytes) in allotments.iter().enumerate() {
            let needed = Bytes::new(bytes.saturating_mul(u64::from(patience)));
            if let Some(limit) = hold_limit.filter(|&limit| limit < needed) {
                return Err(AutomaticError::HoldLimit {
                    patience,
                    level,
                    needed,
                    limit,
                });
            }
        }
        Ok(AutomaticLevels {
            scale: Scale {
                allotments,
                epoch: limits.epoch,
                patience: u64::from(patience),
                settle: self.settle,
            },
            control: self.control,
            applications: BTreeMap::new(),
            connections: FxHashMap::default(),
            shared: [Waiting::default(); UPPER_LEVELS],
        })
    }
}

impl AutomaticLevels {
    /// Counts a packet of an application's connection, and gives its level.
    pub fn assign(
        &mut self,
        now: Time,
        application: u32,
        connection: u64,
        bytes: u32,
    ) -> Assignment {
        let scale = &self.scale;
        let at = scale.at(now);
        let of = self.applications.entry(application);
        let of = of.or_insert_with(|| Application {
            whole: Sender::new(now, scale.lowest()),
            control: None,
        });
        let mut lowered = of.whole.count(at, bytes, scale, &self.shared);
        if self.control == ControlConnections::Apart
            && of.whole.level > 0
            && is_control(
                &mut self.connections,
                at,
                (application, connection),
                bytes,
                scale,
            )
        {
            let control = of.control.get_or_insert_with(|| Sender::new(now, 0));
            lowered |= control.count(at, bytes, scale, &self.shared);
        }
        let level = usize::from(self.level(application, connection));
        if level < self.scale.lowest() {
            let (allotment, waiting) = (self.scale.allotments[level], &mut self.shared[level]);
            waiting.count(at, bytes, allotment);
            if waiting.bytes > self.scale.patience * allotment {
                waiting.bytes = 0;
                self.lower_heaviest(at, level);
                lowered = true;
            }
        }
        Assignment {
            level: self.level(application, connection),
            lowered,
        }
    }

    /// The level of a connection as it is.
    pub fn level(&self, application: u32, connection: u64) -> u8 {
        let Some(of) = self.applications.get(&application) else {
            return self.scale.lowest() as u8;
        };
        let found = self.connections.get(&(application, connection));
        let control = of
            .control
            .as_ref()
            .filter(|_| found.is_some_and(|connection| connection.is_control));
        control.map_or(of.whole.level, |control| control.level.min(of.whole.level)) as u8
    }

    /// Forgets an application that is gone.
    pub fn forget(&mut self, application: u32) {
        self.applications.remove(&application);
        self.connections.retain(|&(of, _), _| of != application);
    }

    /// Number of levels.
    pub fn count(&self) -> usize {
        self.scale.lowest() + 1
    }

    /// Current levels of the applications, by number.
    pub fn applications(&self) -> impl Iterator<Item = ApplicationLevel> {
        let applications = self.applications.iter();
        applications.map(|(&application, Application { whole, control })| {
            let control = control.as_ref();
            ApplicationLevel {
                application,
                level: whole.level as u8,
                control: control.map(|control| control.level.min(whole.level) as u8),
                changes: whole.changes + control.map_or(0, |control| control.changes),
                settled: control.map_or(whole.changed, |of| of.changed.max(whole.changed)),
            }
        })
    }

    /// Moves the sender that sent most of late at `level` to the next one.
    fn lower_heaviest(&mut self, at: Moment, level: usize) {
        let senders = self.applications.values_mut().flat_map(|of| {
            let control = of.control.as_mut();
            [Some(&mut of.whole), control].into_iter().flatten()
        });
        let at_level = senders.filter(|sender| sender.level == level);
        if let Some(heaviest) = at_level.max_by_key(|sender| sender.meter.recent(at)) {
            heaviest.meter.fits_since[level] = at.now;
            heaviest.lower(at.now, level + 1, &self.scale);
        }
    }
}

/// Counts a packet of a connection, and says whether it is one of control.
fn is_control(
    connections: &mut FxHashMap<(u32, u64), Connection>,
    at: Moment,
    connection: (u32, u64),
    bytes: u32,
    scale: &Scale,
) -> bool {
    if connections.len() >= MANY_CONNECTIONS {
        connections.retain(|_, of| at.now - of.meter.last <= scale.settle);
    }
    let connection = connections.entry(connection);
    let connection = connection.or_insert_with(|| Connection {
        meter: Meter::new(at.now),
        is_control: false,
        doublings: 0,
    });
    connection.meter.count(at, bytes, scale);
    if !connection.meter.fits(0, bytes, scale) {
        if connection.is_control {
            connection.doublings = (connection.doublings + 1).min(MOST_DOUBLINGS);
        }
        connection.is_control = false;
    } else if connection
        .meter
        .has_fit(at.now, 0, connection.doublings, scale)
    {
        connection.is_control = true;
    }
    connection.is_control
}

impl Scale {
    fn lowest(&self) -> usize {
        self.allotments.len()
    }

    fn at(&self, now: Time) -> Moment {
        let epoch = now.ps() / self.epoch.ps();
        Moment { now, epoch }
    }

    fn settle(&self, doublings: u8) -> Time {
        Time::from_ps(self.settle.ps().saturating_mul(1 << doublings))
    }
}

impl Sender {
    fn new(now: Time, level: usize) -> Self {
        Self {
            level,
            meter: Meter::new(now),
            doublings: [0; UPPER_LEVELS],
            changes: 0,
            changed: now,
        }
    }

    /// Counts a packet, and lowers or lifts its sender; says whether it lowered it.
    fn count(
        &mut self,
        at: Moment,
        bytes: u32,
        scale: &Scale,
        shared: &[Waiting; UPPER_LEVELS],
    ) -> bool {
        let Moment { now, epoch } = at;
        self.meter.count(at, bytes, scale);
        if self.level < scale.lowest() && !self.meter.fits(self.level, bytes, scale) {
            let mut below = self.level + 1..scale.lowest();
            let fitting = below.find(|&level| self.meter.fits(level, bytes, scale));
            self.lower(now, fitting.unwrap_or(scale.lowest()), scale);
            return true;
        }
        let lift = (0..self.level).find(|&level| {
            let room = scale.patience * scale.allotments[level];
            let others = shared[level].after(epoch, scale.allotments[level]);
            self.meter.fits(level, bytes, scale)
                && self.meter.has_fit(now, level, self.doublings[level], scale)
                && self.meter.waiting[level].bytes + others <= room
        });
        if let Some(level) = lift {
            self.move_to(now, level);
        }
        false
    }

    /// Moves the sender down. It has to wait twice as long for the levels that it leaves, unless it
    /// has been at its level for very long.
    fn lower(&mut self, now: Time, level: usize, scale: &Scale) {
        let lasted = now - self.changed >= scale.settle(MOST_DOUBLINGS);
        for doublings in &mut self.doublings[self.level..level] {
            let before = if lasted { 0 } else { *doublings };
            *doublings = (before + 1).min(MOST_DOUBLINGS);
        }
        self.move_to(now, level);
    }

    fn move_to(&mut self, now: Time, level: usize) {
        self.level = level;
        self.changes += 1;
        self.changed = now;
    }
}

#[cfg(test)]
mod tests;
