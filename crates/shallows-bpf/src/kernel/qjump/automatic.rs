//! Levels that choose themselves (§8): what the limiter counts, through the core's state machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use shallows_core::host::qjump::{
    Allotment, AutomaticConfig, AutomaticLevels, ControlConnections, Excess, LimiterConfig, Limits,
};
use shallows_core::units::{Bytes, Time};

use super::device::Found;
use super::layout::{RawApplication, RawAutomatic};
use super::pins::Pins;
use super::{attachment, now_ns, read, value, write};
use crate::kernel::{cgroups, check_readable, kernel};
use crate::loader::{LOCK, Map};
use crate::mark::{Method, method_of_cgroup};
use crate::qjump::{ApplicationStatus, Change, Device, Error};

/// Rounds in the time to settle, so that a round is no pause in the eyes of the state machine, also
/// if it comes late.
const ROUNDS: u64 = 16;

/// Epochs in a round, at least: the state machine takes the most bytes of an epoch for a packet, and
/// must find it gone in the next round.
const EPOCHS: u64 = 4;

/// Levels outlive the last round by this time at most. A machine may be busy for a while.
const LEASE: Time = Time::from_secs(2);

/// Chooses the levels of the applications that send through a limited device.
///
/// An application is a cgroup that is not the root and has no level by hand. Call
/// [`step`](Self::step) every [`interval`](Self::interval). The levels go as this is dropped, and
/// soon after the process if it is killed.
///
/// In every round the limiter notes the most bytes that each application has sent in one epoch. An
/// application fits a level if these are no more than the level's bytes. Since a device drops what
/// exceeds a level, that is the state machine's rule for [`Excess::Drop`].
#[derive(Debug)]
pub struct Chooser {
    device: Device,
    pins: Pins,
    maps: Maps,
    levels: AutomaticLevels,
    interval: Time,
    round: u64,
    applications: BTreeMap<u64, Application>,
    /// The cgroups that get no level.
    others: BTreeSet<u64>,
    /// Its beginning on the kernel's clock, from which its times count.
    begun_ns: u64,
    /// Time of the last check that device and cgroups exist.
    checked: Time,
}

#[derive(Debug)]
struct Application {
    /// For the state machine.
    number: u32,
    cgroup: PathBuf,
    level: u32,
}

#[derive(Debug)]
struct Maps {
    automatic: Map,
    applications: Map,
    chosen: Map,
}

impl Chooser {
    /// Begins to choose levels at a device that has a limiter.
    ///
    /// # Errors
    /// If it has none, somebody else chooses already, its levels do not fall from the lowest, or
    /// `settle` has too few epochs.
    pub fn begin(device: &Device, settle: Time) -> Result<Self, Error> {
        check_readable()?;
        let found = Found::find(device)?;
        let pins = Pins::of(found.namespace, found.index)?;
        let there = read(&pins).ok().filter(|there| there.hook.is_some());
        let there = there.ok_or_else(|| Error::NotThere(device.clone()))?;
        if there.applications.is_some() {
            return Err(Error::AlreadyChosen(device.clone()));
        }
        let (levels, epoch) = (levels(&there.limits, settle)?, there.limits.epoch);
        let interval = Time::from_ps(settle.ps() / ROUNDS);
        let least = Time::from_ps(ROUNDS * EPOCHS * epoch.ps());
        if settle < least {
            return Err(Error::Settle { settle, least });
        }
        let maps = Maps {
            automatic: pins.open("automatic")?,
            applications: pins.open("applications")?,
            chosen: pins.open("chosen")?,
        };
        // Of somebody who was killed.
        maps.clear()?;
        let mut chooser = Self {
            device: device.clone(),
            pins,
            maps,
            levels,
            interval,
            round: 0,
            applications: BTreeMap::new(),
            others: BTreeSet::new(),
            begun_ns: now_ns()?,
            checked: Time::ZERO,
        };
        chooser.next_round()?;
        Ok(chooser)
    }

    /// Time between two steps.
    pub fn interval(&self) -> Time {
        self.interval
    }

    /// Ends a round: looks at what applications have sent in it, and gives them their levels. Says
    /// which have changed.
    ///
    /// # Errors
    /// If the limiter is gone.
    pub fn step(&mut self) -> Result<Vec<Change>, Error> {
        let ended = self.round;
        self.next_round()?;
        let now = Time::from_ns(now_ns()?.saturating_sub(self.begun_ns));
        if now - self.checked >= Time::from_secs(1) {
            self.checked = now;
            self.forget_gone()?;
        }
        let mut peaks = self.peaks(ended)?;
        // Those that have a level come before those that want it.
        peaks.sort_by_key(|&(number, _)| (self.levels.level(number, 0), number));
        for (number, peak) in peaks {
            self.levels.assign(now, number, 0, peak);
        }
        self.write_levels()
    }

    fn next_round(&mut self) -> Result<(), Error> {
        self.round += 1;
        let lease = LEASE.max(Time::from_ps(self.interval.ps() * 4));
        let raw = RawAutomatic {
            until_ns: now_ns()? + lease.ps() / Time::from_ns(1).ps(),
            round: self.round,
        };
        write(&self.maps.automatic, 0, &raw)
    }

    /// The most bytes that each application has sent in an epoch of a round, by its number.
    fn peaks(&mut self, round: u64) -> Result<Vec<(u32, u32)>, Error> {
        let mut peaks = Vec::new();
        let mut all = None;
        for cgroup in keys(&self.maps.applications)? {
            if self.others.contains(&cgroup) {
                continue;
            }
            if !self.applications.contains_key(&cgroup) {
                let all = all.get_or_insert_with(cgroups::all);
                self.learn(cgroup, all.get(&cgroup))?;
            }
            let Some(application) = self.applications.get(&cgroup) else {
                continue;
            };
            let sent = self.maps.application(cgroup)?;
            if let Some(peak) = sent.and_then(|sent| sent.peak_of(round)) {
                peaks.push((application.number, u32::try_from(peak).unwrap_or(u32::MAX)));
            }
        }
        Ok(peaks)
    }

    /// Begins with a cgroup at the lowest level, or takes note that it is none of ours.
    fn learn(&mut self, cgroup: u64, path: Option<&PathBuf>) -> Result<(), Error> {
        let path = path.filter(|path| is_application(path));
        let Some(path) = path else {
            self.others.insert(cgroup);
            return Ok(());
        };
        let last = self.applications.values().map(|of| of.number).max();
        let number = last.map_or(0, |last| last + 1);
        self.maps.choose(cgroup, 0)?;
        let application = Application {
            number,
            cgroup: path.clone(),
            level: 0,
        };
        self.applications.insert(cgroup, application);
        Ok(())
    }

    fn write_levels(&mut self) -> Result<Vec<Change>, Error> {
        let mut changes = Vec::new();
        let top = self.levels.count() as u32 - 1;
        for (&cgroup, application) in &mut self.applications {
            // The state machine counts from the top.
            let level = top - u32::from(self.levels.level(application.number, 0));
            if level != application.level {
                self.maps.choose(cgroup, level)?;
                application.level = level;
                changes.push(Change {
                    cgroup: application.cgroup.clone(),
                    level: level as u8,
                });
            }
        }
        Ok(changes)
    }

    /// Looks whether the limiter is there, and forgets cgroups that are not.
    fn forget_gone(&mut self) -> Result<(), Error> {
        let (hook, _) = attachment::find(&self.pins);
        if hook.is_none() {
            return Err(Error::NotThere(self.device.clone()));
        }
        let there = cgroups::all();
        for cgroup in keys(&self.maps.applications)? {
            if !there.contains_key(&cgroup) {
                self.maps.forget(cgroup);
                if let Some(gone) = self.applications.remove(&cgroup) {
                    self.levels.forget(gone.number);
                }
            }
        }
        self.others.retain(|cgroup| there.contains_key(cgroup));
        Ok(())
    }
}

impl Drop for Chooser {
    fn drop(&mut self) {
        // The limiter may be gone, and they with it.
        let _ = self.maps.clear();
    }
}

impl Maps {
    fn application(&self, cgroup: u64) -> Result<Option<RawApplication>, Error> {
        let found = self.applications.find(cgroup, LOCK);
        Ok(found.map_err(kernel("read what applications send"))?)
    }

    fn choose(&self, cgroup: u64, level: u32) -> Result<(), Error> {
        let written = self.chosen.set(cgroup, &level);
        Ok(written.map_err(kernel("choose a level"))?)
    }

    fn forget(&self, cgroup: u64) {
        for map in [&self.chosen, &self.applications] {
            // It need not be in both.
            let _ = map.remove(cgroup);
        }
    }

    /// Ends the choice of levels.
    fn clear(&self) -> Result<(), Error> {
        let nobody = RawAutomatic {
            until_ns: 0,
            round: 0,
        };
        write(&self.automatic, 0, &nobody)?;
        for cgroup in keys(&self.applications)? {
            self.forget(cgroup);
        }
        Ok(())
    }
}

/// The applications of a limiter, if somebody chooses their levels.
pub(super) fn status(pins: &Pins, now_ns: u64) -> Result<Option<Vec<ApplicationStatus>>, Error> {
    let automatic: RawAutomatic = value(&pins.open("automatic")?, 0, 0)?;
    if now_ns >= automatic.until_ns {
        return Ok(None);
    }
    let maps = Maps {
        automatic: pins.open("automatic")?,
        applications: pins.open("applications")?,
        chosen: pins.open("chosen")?,
    };
    let cgroups = cgroups::all();
    let mut applications = Vec::new();
    for cgroup in keys(&maps.chosen)? {
        let level: Option<u32> =
            (maps.chosen.find(cgroup, 0)).map_err(kernel("read the chosen levels"))?;
        let (Some(level), Some(sent)) = (level, maps.application(cgroup)?) else {
            continue;
        };
        applications.push(ApplicationStatus {
            cgroup: match cgroups.get(&cgroup) {
                Some(path) => path.clone(),
                None => PathBuf::from(format!("cgroup {cgroup}")),
            },
            level: level as u8,
            packets: sent.packets,
            bytes: sent.bytes,
            lowered_packets: sent.lowered_packets,
        });
    }
    applications.sort_by(|a, b| a.cgroup.cmp(&b.cgroup));
    Ok(Some(applications))
}

/// The state machine for a device's levels.
fn levels(limits: &Limits, settle: Time) -> Result<AutomaticLevels, Error> {
    let bytes = |allotment: &Allotment| match *allotment {
        Allotment::Bytes(bytes) => bytes,
        Allotment::Unlimited => Bytes::new(u64::MAX),
    };
    let limiter = LimiterConfig {
        epoch: limits.epoch,
        levels: limits.levels.iter().rev().map(bytes).collect(),
        excess: Excess::Drop,
        clock: limits.clock,
        ..LimiterConfig::default()
    };
    let config = AutomaticConfig {
        settle,
        // The limiter counts cgroups, not their connections.
        control: ControlConnections::Together,
        ..AutomaticConfig::default()
    };
    Ok(config.build(&limiter, None)?)
}

/// Returns whether a cgroup's level is to be chosen: not that of the root, where everything is that belongs
/// to nobody, and not where `exec` has given one.
fn is_application(path: &Path) -> bool {
    let by_hand = matches!(method_of_cgroup(path), Some(Method::Cgroup { .. }));
    path != Path::new("/") && !by_hand
}

fn keys(map: &Map) -> Result<Vec<u64>, Error> {
    Ok(map.keys().map_err(kernel("read the cgroups"))?)
}
