//! Looks at a world: what holds now, and what must always hold.

use shallows_core::units::{Rate, Time};
use shallows_core::xco::controller::Role;
use shallows_core::xco::coordinator::Coordinator;
use shallows_core::xco::fabric::Routes as _;
use shallows_core::xco::message::{Epoch, Standing};

use super::{HOSTS, LINKS, TwoRacks, Violation, World, capacity};

impl World {
    pub(crate) fn has_host(&self, host: u32) -> bool {
        self.hosts[host as usize].coordinator.is_some()
    }

    pub(crate) fn has_controller(&self, place: usize) -> bool {
        self.controllers[place].controller.is_some()
    }

    /// Hosts that run but do not do what a controller says.
    pub(crate) fn uncoordinated(&self) -> Vec<u32> {
        let stands = |host: &u32| {
            let coordinator = self.hosts[*host as usize].coordinator.as_ref();
            coordinator.is_some_and(|it| it.standing() != Standing::Coordinated)
        };
        (0..HOSTS).filter(stands).collect()
    }

    /// Packets that hosts hold.
    pub(crate) fn held(&self) -> usize {
        let coordinators = self
            .hosts
            .iter()
            .filter_map(|node| node.coordinator.as_ref());
        coordinators.map(Coordinator::held).sum()
    }

    pub(crate) fn leaders(&self) -> usize {
        let controllers = self
            .controllers
            .iter()
            .filter_map(|node| node.controller.as_ref());
        controllers
            .filter(|controller| controller.role() == Role::Leader)
            .count()
    }

    /// How long the pair that waits longest has not moved a packet.
    pub(crate) fn longest_wait(&self) -> (Time, u32, u32) {
        let waits = self.hosts.iter().zip(0..).flat_map(|(node, host)| {
            let waiting = node.waiting.iter();
            waiting.map(move |(&to, &(_, since))| (self.now.saturating_sub(since), host, to))
        });
        waits.max().unwrap_or_default()
    }

    /// Forgets how long pairs have waited, when faults are over.
    pub(crate) fn restart_waits(&mut self) {
        for node in &mut self.hosts {
            for (_, since) in node.waiting.values_mut() {
                *since = self.now;
            }
        }
        self.stats.longest_wait = Time::ZERO;
    }

    /// What must hold at every instant, whatever goes wrong: permits in force fit the links, and
    /// come from one leader.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let mut loads = [0; LINKS];
        let mut leader: Option<Epoch> = None;
        let mut path = Vec::with_capacity(4);
        for (node, host) in self.hosts.iter().zip(0..) {
            let Some(coordinator) = &node.coordinator else {
                continue;
            };
            for (destination, rate) in coordinator.permits(node.clock.at(self.now)) {
                let epoch = coordinator.epoch();
                if *leader.get_or_insert(epoch) != epoch {
                    return Err(format!("permits of {leader:?} and {epoch:?} are in force"));
                }
                path.clear();
                TwoRacks.path(host, destination, &mut path);
                for &link in &path {
                    loads[link as usize] += rate.bps();
                }
            }
        }
        for (link, load) in loads.into_iter().enumerate() {
            let capacity = capacity(link as u32);
            if load > capacity.bps() {
                let load = Rate::from_bps(load);
                return Err(format!(
                    "link {link} has permits for {load} and carries {capacity}"
                ));
            }
        }
        Ok(())
    }
}
