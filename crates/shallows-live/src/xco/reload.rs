//! Changes of a cluster's file that a running daemon can adopt.
//!
//! Hosts are numbered by their places in the file, and machines read it at different times. So a
//! host keeps its number: new ones come after all others, and one that has gone stays in the file
//! with `gone = true`, unless it is the last.

use std::fmt::{self, Display, Formatter};

use thiserror::Error;

use super::cluster::{Cluster, HostPlan};

/// Owner of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A controller.
    Controller,
    /// The agent of the host at this place.
    Agent(usize),
}

/// The reason why a new file is not taken over.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReloadError {
    /// A setting that all machines must change together.
    #[error(
        "{0} has changed, which a running cluster cannot take over: restart controllers and agents"
    )]
    Setting(&'static str),
    /// Parts of links that all controllers and agents must change together.
    #[error(
        "a hierarchy takes no change of hosts or trunks over: restart controllers and agents with \
         the new file"
    )]
    Hierarchy,
    /// A host with another number.
    #[error(
        "host {name} is the file's number {before} and would become {after}: add hosts at the end, \
         and keep one that has gone in its place with gone = true"
    )]
    Moved {
        /// The host.
        name: String,
        /// Its number now.
        before: usize,
        /// Its number in the new file.
        after: String,
    },
    /// A device or the like of this host.
    #[error("{0} of this host has changed: restart its agent")]
    OwnHost(&'static str),
}

/// Differences of a new file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Hosts that join.
    pub joined: Vec<String>,
    /// Hosts that have gone.
    pub left: Vec<String>,
    /// Hosts with another rate, weight, switch or other addresses.
    pub changed: Vec<String>,
    /// Trunks have changed.
    pub trunks: bool,
}

impl Display for Changes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (word, hosts) in [
            ("joined", &self.joined),
            ("left", &self.left),
            ("changed", &self.changed),
        ] {
            if !hosts.is_empty() {
                parts.push(format!("{word}: {}", hosts.join(", ")));
            }
        }
        if self.trunks {
            parts.push("trunks changed".to_owned());
        }
        if parts.is_empty() {
            parts.push("nothing changed".to_owned());
        }
        f.write_str(&parts.join("; "))
    }
}

impl Cluster {
    /// Differences of a new file, or the reason why it cannot be adopted.
    pub fn changes(&self, new: &Self, reader: Reader) -> Result<Changes, ReloadError> {
        self.check_settings(new)?;
        let is_same = self.hosts == new.hosts && self.trunks == new.trunks;
        if self.hierarchy.is_some() && !is_same {
            return Err(ReloadError::Hierarchy);
        }
        let mut changes = Changes {
            trunks: self.trunks != new.trunks,
            ..Changes::default()
        };
        for (number, host) in self.hosts.iter().enumerate() {
            match new.hosts.get(number) {
                Some(other) if other.name == host.name => changes.compare(host, other),
                other => {
                    let after = new.hosts.iter().position(|other| other.name == host.name);
                    if other.is_none() && after.is_none() {
                        changes.left.push(host.name.clone());
                        continue;
                    }
                    return Err(ReloadError::Moved {
                        name: host.name.clone(),
                        before: number,
                        after: after.map_or("nobody's".to_owned(), |after| after.to_string()),
                    });
                }
            }
        }
        let added = new.hosts.iter().skip(self.hosts.len());
        changes.joined.extend(added.map(|host| host.name.clone()));
        if let Reader::Agent(own) = reader {
            let other = new
                .hosts
                .get(own)
                .ok_or(ReloadError::OwnHost("the place"))?;
            check_own(&self.hosts[own], other)?;
        }
        Ok(changes)
    }

    fn check_settings(&self, new: &Self) -> Result<(), ReloadError> {
        for (is_same, key) in [
            (self.slot == new.slot, "slot"),
            (self.directives == new.directives, "directives"),
            (self.preempt_after == new.preempt_after, "preempt-after"),
            (self.patience == new.patience, "patience"),
            (self.protocol == new.protocol, "protocol"),
            (self.on_demand == new.on_demand, "on-demand"),
            (self.learn_places == new.learn_places, "learn-places"),
            (self.hierarchy == new.hierarchy, "hierarchy"),
            (self.gate == new.gate, "gate"),
            (self.framing == new.framing, "framing"),
            (self.key_file == new.key_file, "key-file"),
            (self.controllers == new.controllers, "controller"),
        ] {
            if !is_same {
                return Err(ReloadError::Setting(key));
            }
        }
        Ok(())
    }
}

impl Changes {
    fn compare(&mut self, before: &HostPlan, after: &HostPlan) {
        let list = match (before.gone, after.gone) {
            (false, true) => &mut self.left,
            (true, false) => &mut self.joined,
            _ if before == after => return,
            _ => &mut self.changed,
        };
        list.push(after.name.clone());
    }
}

fn check_own(before: &HostPlan, after: &HostPlan) -> Result<(), ReloadError> {
    for (is_same, key) in [
        (before.rate == after.rate, "rate"),
        (before.address == after.address, "address"),
        (before.nic == after.nic, "nic"),
        (before.inside == after.inside, "inside"),
        (before.metrics == after.metrics, "metrics"),
        (before.wait == after.wait, "wait"),
        (before.cpu == after.cpu, "cpu"),
        (before.gone == after.gone, "gone"),
    ] {
        if !is_same {
            return Err(ReloadError::OwnHost(key));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(hosts: &[&str], more: &str) -> Cluster {
        let hosts = hosts.iter().enumerate().map(|(number, name)| {
            format!(
                "[[host]]\nname = \"{name}\"\nrate = \"1Gbps\"\naddress = \"10.0.0.{number}:1\"\n\
                 stations = [\"02:00:00:00:00:{number:02}\"]\n"
            )
        });
        let hosts: String = hosts.collect();
        Cluster::parse(&format!(
            "key-file = \"key\"\n{more}\n\
             [[controller]]\nname = \"c0\"\naddress = \"10.0.0.100:4783\"\n{hosts}"
        ))
        .unwrap()
    }

    #[test]
    fn hosts_join_at_the_end_and_leave_in_their_place() {
        let before = cluster(&["a", "b", "c"], "");
        let changes = |new: &Cluster| before.changes(new, Reader::Controller);
        assert_eq!(changes(&before).unwrap().to_string(), "nothing changed");
        let more = cluster(&["a", "b", "c", "d"], "");
        assert_eq!(changes(&more).unwrap().to_string(), "joined: d");
        let fewer = cluster(&["a", "b"], "");
        assert_eq!(changes(&fewer).unwrap().to_string(), "left: c");
        let mut gone = before.clone();
        gone.hosts[0].gone = true;
        gone.hosts[1].rate = shallows_core::units::Rate::from_gbps(10);
        assert_eq!(changes(&gone).unwrap().to_string(), "left: a; changed: b");
        let refusal = |new: &Cluster| changes(new).unwrap_err().to_string();
        let moved = refusal(&cluster(&["z", "a", "b", "c"], ""));
        assert!(
            moved.starts_with("host a is the file's number 0 and would become 1"),
            "{moved}"
        );
        assert!(refusal(&cluster(&["b", "c"], "")).contains("gone = true"));
        let slower = refusal(&cluster(&["a", "b", "c"], "slot = \"5ms\""));
        assert!(slower.starts_with("slot has changed"), "{slower}");
    }

    #[test]
    fn an_agent_takes_over_what_concerns_others() {
        let before = cluster(&["a", "b"], "");
        let mut new = before.clone();
        new.hosts[1].rate = shallows_core::units::Rate::from_gbps(10);
        assert!(before.changes(&new, Reader::Agent(0)).is_ok());
        let own = before.changes(&new, Reader::Agent(1));
        assert_eq!(own, Err(ReloadError::OwnHost("rate")));
        let last = cluster(&["a"], "");
        assert!(before.changes(&last, Reader::Agent(1)).is_err());
    }
}
