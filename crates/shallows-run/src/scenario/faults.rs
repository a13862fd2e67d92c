//! Links that lose packets, go down and come back.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shallows_core::units::Time;
use shallows_model::routing::LinkState;
use shallows_model::topology::Fabric;
use shallows_model::{Fault, LinkChange, LinkId};

use super::links::{self, name};
use super::{Diagnostic, Scenario};

/// Faults of one or more links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkConfig {
    /// `"leaf0->spine1"`, or `"leaf0<->spine1"` for both directions.
    pub link: String,
    /// Fraction of packets that are lost.
    #[serde(default)]
    pub loss: f64,
    /// Fraction of the remaining packets that arrive corrupted and are dropped.
    #[serde(default)]
    pub corruption: f64,
    /// Time at which the link goes down.
    #[serde(default)]
    pub down: Option<Time>,
    /// Time at which the link comes back; never if not given.
    #[serde(default)]
    pub up: Option<Time>,
}

/// Faults of a run's links.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// Losses, by link.
    pub(super) faults: BTreeMap<LinkId, Fault>,
    /// Changes of links (down, up), in order of time.
    pub(super) changes: Vec<LinkChange>,
}

impl Scenario {
    /// Resolves the faults of a fabric's links.
    pub(super) fn faults(&self, fabric: &Fabric) -> Result<Faults, Diagnostic> {
        let mut faults = Faults::default();
        // Times at which each link is down.
        let mut outages: BTreeMap<LinkId, Vec<(Time, Time)>> = BTreeMap::new();
        for (index, entry) in self.config.links.iter().enumerate() {
            let error = |key: &str, problem: String| {
                Err(self.error(&format!("links.{index}.{key}"), problem))
            };
            if let Err((key, problem)) = entry.check() {
                return error(key, problem);
            }
            let found = match links::find(fabric, &entry.link) {
                Ok(found) => found,
                Err(problem) => return error("link", problem),
            };
            for link in found {
                let named = name(fabric, fabric.link(link));
                let fault = Fault {
                    loss: entry.loss,
                    corruption: entry.corruption,
                };
                if fault != Fault::default() && faults.faults.insert(link, fault).is_some() {
                    let problem = format!("{named} has loss or corruption in an entry before");
                    return error("link", problem);
                }
                let Some(down) = entry.down else { continue };
                let up = entry.up.unwrap_or(Time::MAX);
                let before = outages.entry(link).or_default();
                if before.iter().any(|&(from, to)| down <= to && from <= up) {
                    let problem = format!("{named} is down at that time by an entry before");
                    return error("down", problem);
                }
                before.push((down, up));
                let down = Some((down, LinkState::Down));
                let up = entry.up.map(|at| (at, LinkState::Up));
                let changes = down.into_iter().chain(up);
                let change = |(at, state)| LinkChange { at, link, state };
                faults.changes.extend(changes.map(change));
            }
        }
        faults
            .changes
            .sort_by_key(|change| (change.at, change.link));
        Ok(faults)
    }
}

impl LinkConfig {
    /// Returns whether it makes sense by itself; if not, which key does not.
    fn check(&self) -> Result<(), (&'static str, String)> {
        for (key, share) in [("loss", self.loss), ("corruption", self.corruption)] {
            if !(0.0..=1.0).contains(&share) {
                let problem = format!("{key} is {share}, it is a share from 0 to 1");
                return Err((key, problem));
            }
        }
        match (self.down, self.up) {
            (None, Some(_)) => Err(("up", "it comes up and never goes down: add down".to_owned())),
            (Some(down), Some(up)) if down >= up => Err((
                "up",
                format!("it comes up at {up} and goes down at {down}: up must be later"),
            )),
            (None, None) if self.loss == 0.0 && self.corruption == 0.0 => Err((
                "link",
                "nothing is wrong with this link: add loss, corruption or down".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}
