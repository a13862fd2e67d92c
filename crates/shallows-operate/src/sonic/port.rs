//! Ports with all references resolved.

use std::collections::BTreeMap;

use shallows_core::units::Rate;

use super::database::{ConfigDb, LAST_DSCP};
use super::names::PortName;
use super::read::ConfigPlace;
use super::tables::{BufferProfile, Scheduler, WredProfile};

/// Ports of one speed whose queues have the same rows.
#[derive(Clone, Debug)]
pub struct PortGroup<'d> {
    /// The ports.
    pub ports: Vec<PortName>,
    /// Their speed, if the file has it.
    pub speed: Option<Rate>,
    /// Their queues, from 0.
    pub queues: Vec<QueueView<'d>>,
    /// The queue of each DSCP.
    pub classes: Classes,
    /// Queues with priority flow control.
    pub pfc: Vec<u8>,
    /// The scheduler of the port as a whole.
    pub scheduler: Option<(&'d str, &'d Scheduler)>,
}

/// The queue of each DSCP, by the two maps of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// The name of the map from DSCP to traffic class.
    pub dscp_map: Option<String>,
    /// The name of the map from traffic class to queue.
    pub queue_map: Option<String>,
    /// The queue of each DSCP; nothing where its class has no queue.
    pub queues: Vec<Option<u8>>,
}

/// Settings of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueView<'d> {
    /// The key of its row in `QUEUE`.
    pub row: Option<&'d str>,
    /// Its scheduler.
    pub scheduler: Option<(&'d str, &'d Scheduler)>,
    /// Its WRED profile.
    pub wred: Option<(&'d str, &'d WredProfile)>,
    /// The key of its row in `BUFFER_QUEUE`.
    pub buffer_row: Option<&'d str>,
    /// Its buffer profile.
    pub buffer: Option<(&'d str, &'d BufferProfile)>,
}

/// Rows of the same queue, of which SONiC applies one after the other.
#[derive(Clone, Debug)]
pub(super) struct GivenTwice {
    pub(super) place: ConfigPlace,
    pub(super) other: String,
}

impl ConfigDb {
    /// The ports, those alike together, in the order of their first ports.
    pub fn groups(&self) -> Vec<PortGroup<'_>> {
        let mut groups: Vec<PortGroup<'_>> = Vec::new();
        for (port, queues) in self.queue_views() {
            let found = self.view(port, queues);
            match groups.iter_mut().find(|group| group.is_like(&found)) {
                Some(group) => group.ports.extend(found.ports),
                None => groups.push(found),
            }
        }
        groups
    }

    /// The ports as they are grouped, but for their speeds.
    pub(super) fn groups_of_any_speed(&self) -> Vec<PortGroup<'_>> {
        let mut merged: Vec<PortGroup<'_>> = Vec::new();
        for group in self.groups() {
            let group = PortGroup {
                speed: None,
                ..group
            };
            match merged.iter_mut().find(|other| other.is_like(&group)) {
                Some(other) => other.ports.extend(group.ports),
                None => merged.push(group),
            }
        }
        merged
    }

    /// The queues of each port that has a row in some table.
    fn queue_views(&self) -> BTreeMap<PortName, BTreeMap<u8, QueueView<'_>>> {
        let mut ports: BTreeMap<PortName, BTreeMap<u8, QueueView<'_>>> = BTreeMap::new();
        for port in self.ports.keys().chain(self.port_maps.keys()) {
            ports.entry(port.clone()).or_default();
        }
        for row in &self.queues {
            for (port, queue) in row.members() {
                let view = ports.entry(port.clone()).or_default().entry(queue);
                let view = view.or_default();
                view.row = Some(&row.key);
                view.scheduler = look_up(&self.schedulers, row.scheduler.as_deref());
                view.wred = look_up(&self.wred, row.wred.as_deref());
            }
        }
        for row in &self.buffer_queues {
            for (port, queue) in row.members() {
                let view = ports.entry(port.clone()).or_default().entry(queue);
                let view = view.or_default();
                view.buffer_row = Some(&row.key);
                view.buffer = look_up(&self.profiles, row.buffer.as_deref());
            }
        }
        ports.remove(&PortName::new("CPU"));
        ports
    }

    fn view<'d>(&'d self, port: PortName, found: BTreeMap<u8, QueueView<'d>>) -> PortGroup<'d> {
        let own = self.port_maps.get(&port);
        let or_global =
            |own: Option<&'d String>, global: &'d Option<String>| own.or(global.as_ref()).cloned();
        let global = &self.global_map;
        let dscp_map = or_global(
            own.and_then(|map| map.dscp_to_tc.as_ref()),
            &global.dscp_to_tc,
        );
        let queue_map = or_global(
            own.and_then(|map| map.tc_to_queue.as_ref()),
            &global.tc_to_queue,
        );
        let classes = self.classes(dscp_map, queue_map);
        let last_named = found
            .keys()
            .copied()
            .chain(classes.queues.iter().flatten().copied());
        let count = last_named.max().map_or(0, |last| usize::from(last) + 1);
        let mut queues = vec![QueueView::default(); count];
        for (queue, view) in found {
            queues[usize::from(queue)] = view;
        }
        let speed = self.ports.get(&port).or_else(|| {
            let local = PortName::new(port.local());
            self.ports.get(&local)
        });
        PortGroup {
            speed: speed.copied().flatten(),
            queues,
            classes,
            pfc: own.map(|map| map.pfc.clone()).unwrap_or_default(),
            scheduler: own.and_then(|map| look_up(&self.schedulers, map.scheduler.as_deref())),
            ports: vec![port],
        }
    }

    /// The queue of each DSCP. A DSCP without a class has class 0; without maps all join queue 0.
    fn classes(&self, dscp_map: Option<String>, queue_map: Option<String>) -> Classes {
        let classes = dscp_map.as_ref().and_then(|name| self.dscp_maps.get(name));
        let by_class = queue_map
            .as_ref()
            .and_then(|name| self.queue_maps.get(name));
        let queue = |dscp: u8| {
            let class = classes.and_then(|map| map.get(&dscp)).copied().unwrap_or(0);
            match by_class {
                Some(map) => map.get(&class).copied(),
                None => Some(if classes.is_some() { class } else { 0 }),
            }
        };
        Classes {
            queues: (0..=LAST_DSCP).map(queue).collect(),
            dscp_map,
            queue_map,
        }
    }

    /// Queues that two rows of one table name.
    pub(super) fn given_twice(&self) -> Vec<GivenTwice> {
        let mut twice = Vec::new();
        for (table, rows) in [
            ("QUEUE", &self.queues),
            ("BUFFER_QUEUE", &self.buffer_queues),
        ] {
            let mut seen: BTreeMap<(&PortName, u8), &str> = BTreeMap::new();
            for row in rows {
                let mut other = None;
                for member in row.members() {
                    other = seen.insert(member, &row.key).or(other);
                }
                if let Some(other) = other {
                    twice.push(GivenTwice {
                        place: ConfigPlace::row(table, &row.key),
                        other: other.to_owned(),
                    });
                }
            }
        }
        twice
    }
}

impl PortGroup<'_> {
    fn is_like(&self, other: &Self) -> bool {
        let names = |group: &PortGroup<'_>| -> Vec<[Option<String>; 3]> {
            let owned = |name: &str| name.to_owned();
            let queue = |view: &QueueView<'_>| {
                [
                    view.scheduler.map(|(name, _)| owned(name)),
                    view.wred.map(|(name, _)| owned(name)),
                    view.buffer.map(|(name, _)| owned(name)),
                ]
            };
            group.queues.iter().map(queue).collect()
        };
        let scheduler = |group: &PortGroup<'_>| group.scheduler.map(|(name, _)| name.to_owned());
        self.speed == other.speed
            && self.classes == other.classes
            && self.pfc == other.pfc
            && scheduler(self) == scheduler(other)
            && names(self) == names(other)
    }

    /// The DSCPs of a queue.
    pub(super) fn dscps(&self, queue: u8) -> Vec<u8> {
        (0..=LAST_DSCP)
            .filter(|&dscp| self.classes.queues[usize::from(dscp)] == Some(queue))
            .collect()
    }
}

fn look_up<'d, T>(rows: &'d BTreeMap<String, T>, name: Option<&str>) -> Option<(&'d str, &'d T)> {
    let (name, row) = rows.get_key_value(name?)?;
    Some((name, row))
}
