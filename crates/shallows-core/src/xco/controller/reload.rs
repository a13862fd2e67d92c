//! Changes of the fabric and of its hosts while a controller runs.

use std::collections::BTreeMap;

use super::{Controller, Key, Limits, Member, Role, Routes, Schedule};
use crate::units::Time;
use crate::xco::fabric::CoordinatedFabric;

impl<R: Routes> Controller<R> {
    /// Has hosts keys of their own choice, in the order of their numbers.
    #[must_use]
    pub fn with_host_keys(mut self, keys: Vec<Key>) -> Self {
        self.set_host_keys(keys);
        self
    }

    fn set_host_keys(&mut self, keys: Vec<Key>) {
        for (member, key) in self.members.iter_mut().zip(keys) {
            member.key = key;
        }
    }

    /// Goes on with another fabric. Hosts keep their numbers: those behind the ones that there were
    /// have joined, and those that are missing at the end have left. `weights` are those of
    /// [`ControllerConfig::weights`](super::ControllerConfig::weights), `keys` those of all hosts.
    ///
    /// What was permitted stays in force until it ends, and nothing else is permitted before.
    pub fn replace_fabric(
        &mut self,
        now: Time,
        mut fabric: CoordinatedFabric<R>,
        weights: BTreeMap<u32, u32>,
        keys: Vec<Key>,
    ) {
        let wait = self.config.protocol.stretch(self.config.longest_slot());
        self.config.weights = weights;
        self.config.reserve(&mut fabric);
        let hosts = fabric.hosts();
        let backlog: Vec<(u32, u32)> = (0..hosts.min(self.members.len() as u32))
            .flat_map(|host| self.schedule.backlog(host).map(move |to| (host, to)))
            .collect();
        self.members.truncate(hosts as usize);
        let known = self.members.len();
        let new = keys.iter().skip(known).cloned().map(Member::new);
        self.members.extend(new);
        self.set_host_keys(keys);
        for member in &mut self.members {
            (member.slot, member.limits) = (None, Limits::default());
            member.exempt.clear();
        }
        self.outbox.retain(|&host| host < hosts);
        self.ends.clear();
        self.schedule = Schedule::new(fabric, self.config.timing());
        for (host, destination) in backlog {
            self.schedule.add(now, host, destination);
        }
        if let Some(demand) = &mut self.demand {
            demand.truncate(hosts);
        }
        self.restart_demand(now, true);
        if self.leadership.role() == Role::Leader {
            self.next_round = self.leadership.pause(now + wait);
        }
    }
}
