//! Destinations of flows: any host, or more often those nearby (EAR §3.2).
//!
//! EAR has four cases: all traffic within a rack, within a two-level pod, within a three-level pod,
//! or evenly over the fabric. We read "within" as any other host of that part, near ones included,
//! and allow any mixture.

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use super::random::Stream;
use crate::ids::{HostId, IdVec};
use crate::topology::{Fabric, Node};

/// Weights of flows whose destination is another host of the source's rack, pod, upper pod or
/// fabric. Only their ratios matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LocalityConfig {
    /// Within the rack.
    pub rack: f64,
    /// Within the pod; the whole fabric if it has at most two tiers.
    pub pod: f64,
    /// Within the upper pod; the whole fabric if it has at most three tiers.
    pub upper_pod: f64,
    /// Anywhere.
    pub all: f64,
}

/// Chooses destinations.
pub(super) struct Destinations {
    scopes: Vec<Scope>,
}

/// One part of the mixture.
struct Scope {
    /// Sum of the shares up to this one.
    cumulative: f64,
    share: f64,
    /// The group of each host of the fabric.
    groups: IdVec<HostId, u32>,
    /// The destinations of each group, in ascending order.
    members: Vec<Vec<HostId>>,
}

impl Destinations {
    /// Refuses a mixture that leaves one of `sources` with nobody to send to.
    pub(super) fn new(
        fabric: &Fabric,
        locality: Option<LocalityConfig>,
        sources: &[HostId],
        destinations: &[HostId],
    ) -> Result<Self, WorkloadError> {
        let anywhere = LocalityConfig {
            all: 1.0,
            ..LocalityConfig::default()
        };
        let LocalityConfig {
            rack,
            pod,
            upper_pod,
            all,
        } = locality.unwrap_or(anywhere);
        let shares = [rack, pod, upper_pod, all];
        let total: f64 = shares.iter().sum();
        let valid = shares.iter().all(|&share| share >= 0.0) && total > 0.0 && total.is_finite();
        if !valid {
            return Err(WorkloadError::Locality);
        }
        let mut scopes = Vec::new();
        let mut cumulative = 0.0;
        for (which, share) in shares.into_iter().enumerate() {
            if share == 0.0 {
                continue;
            }
            cumulative += share / total;
            let group = |host| {
                let place = fabric.place(host);
                [place.rack, place.pod, place.upper_pod, 0][which]
            };
            let groups: IdVec<HostId, u32> = fabric.host_ids().map(group).collect();
            let count = groups.iter().max().map_or(0, |&last| last as usize + 1);
            let mut members = vec![Vec::new(); count];
            for &host in destinations {
                members[groups[host] as usize].push(host);
            }
            let scope = Scope {
                cumulative,
                share: share / total,
                groups,
                members,
            };
            if let Some(&lonely) = sources.iter().find(|&&src| scope.choices(src) == 0) {
                return Err(WorkloadError::NobodyToSendTo {
                    host: fabric.name(Node::Host(lonely)).to_owned(),
                    scope: ["rack", "pod", "upper pod", "fabric"][which],
                });
            }
            scopes.push(scope);
        }
        Ok(Self { scopes })
    }

    /// A destination for a flow from `src`.
    pub(super) fn draw(&self, src: HostId, stream: &mut Stream) -> HostId {
        let scope = match &self.scopes[..] {
            [only] => only,
            scopes => {
                let u = stream.unit();
                let reached = scopes.iter().find(|scope| u < scope.cumulative);
                // The sum of the shares may round to a little less than one.
                reached.unwrap_or(&scopes[scopes.len() - 1])
            }
        };
        scope.draw(src, stream)
    }

    /// The share of flows from `src` that go to `dst`.
    pub(super) fn share(&self, src: HostId, dst: HostId) -> f64 {
        let to = |scope: &Scope| {
            let group = scope.group(src);
            if src == dst || group.binary_search(&dst).is_err() {
                0.0
            } else {
                scope.share / scope.choices(src) as f64
            }
        };
        self.scopes.iter().map(to).sum()
    }

    /// The share of flows from `src` that leave its rack.
    pub(super) fn leaving(&self, fabric: &Fabric, src: HostId) -> f64 {
        let rack = fabric.place(src).rack;
        let leaving = |scope: &Scope| {
            let outside = |&&host: &&HostId| fabric.place(host).rack != rack;
            let count = scope.group(src).iter().filter(outside).count();
            scope.share * count as f64 / scope.choices(src) as f64
        };
        self.scopes.iter().map(leaving).sum()
    }
}

impl Scope {
    fn group(&self, src: HostId) -> &[HostId] {
        &self.members[self.groups[src] as usize]
    }

    /// Destinations in the group of `src` other than itself.
    fn choices(&self, src: HostId) -> usize {
        let group = self.group(src);
        group.len() - usize::from(group.binary_search(&src).is_ok())
    }

    fn draw(&self, src: HostId, stream: &mut Stream) -> HostId {
        let group = self.group(src);
        let itself = group.binary_search(&src);
        let choices = group.len() - usize::from(itself.is_ok());
        let index = stream.below(choices as u64) as usize;
        match itself {
            Ok(position) if index >= position => group[index + 1],
            _ => group[index],
        }
    }
}
