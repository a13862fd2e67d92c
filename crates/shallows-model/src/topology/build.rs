//! The regular fabrics.

use shallows_core::units::{Rate, Time};

use super::{Fabric, HostLocation, Link, Nics, Node, TopologyError};
use crate::ids::{HostId, IdVec};

/// More directed links than this are refused: their ports would take 17 GB, a kilobyte each.
pub(super) const MOST_LINKS: u64 = 1 << 24;

/// Rates and delays of a regular fabric.
#[derive(Clone, Copy)]
pub(super) struct Cabling {
    host: (Rate, Time),
    fabric: (Rate, Time),
}

impl Cabling {
    pub(super) fn new(
        host_rate: Rate,
        host_delay: Time,
        fabric_rate: Rate,
        fabric_delay: Time,
    ) -> Result<Self, TopologyError> {
        if host_rate.bps() == 0 {
            return Err(TopologyError::HostRate);
        }
        if fabric_rate.bps() == 0 {
            return Err(TopologyError::FabricRate);
        }
        Ok(Self {
            host: (host_rate, host_delay),
            fabric: (fabric_rate, fabric_delay),
        })
    }

    pub(super) fn uniform(rate: Rate, delay: Time) -> Result<Self, TopologyError> {
        Self::new(rate, delay, rate, delay)
    }
}

/// Star, dumbbell and chain: switches in a row with this many hosts each.
pub(super) fn chain(hosts: &[u32], cabling: Cabling) -> Result<Fabric, TopologyError> {
    require(hosts.len() as u64, "switches")?;
    let total: u64 = hosts.iter().map(|&n| u64::from(n)).sum();
    require(total, "hosts")?;
    let mut parts = Parts::sized(total, hosts.len() as u64 - 1)?;
    parts.name_switches("switch", hosts.len() as u32);
    for (switch, &count) in (0..).zip(hosts) {
        let place = HostLocation {
            rack: switch,
            pod: 0,
            upper_pod: 0,
        };
        parts.add_hosts(count, place, cabling);
    }
    for right in 1..hosts.len() as u32 {
        parts.join(right - 1, right, cabling);
    }
    Ok(parts.finish())
}

/// With several NICs a host has a link to each leaf of its group of as many leaves, its own first.
pub(super) fn leaf_spine(
    (leaves, nics): (u32, u32),
    hosts_per_leaf: u32,
    spines: u32,
    cabling: Cabling,
) -> Result<Fabric, TopologyError> {
    require(leaves, "leaves")?;
    require(hosts_per_leaf, "hosts-per-leaf")?;
    require(spines, "spines")?;
    require(nics, "nics")?;
    if !leaves.is_multiple_of(nics) {
        return Err(TopologyError::Nics { leaves, nics });
    }
    let each = |n: u32| u64::from(leaves) * u64::from(n);
    let host_cables = each(hosts_per_leaf).saturating_mul(u64::from(nics));
    let mut parts = Parts::sized(host_cables, each(spines))?;
    parts.name_switches("leaf", leaves);
    parts.name_switches("spine", spines);
    for rack in 0..leaves {
        let place = HostLocation {
            rack,
            pod: 0,
            upper_pod: 0,
        };
        let group = rack / nics * nics;
        let switches: Vec<u32> = (0..nics)
            .map(|nic| group + (rack - group + nic) % nics)
            .collect();
        for _ in 0..hosts_per_leaf {
            parts.add_host_at(&switches, place, cabling.host);
        }
    }
    for leaf in 0..leaves {
        for spine in 0..spines {
            parts.join(leaf, leaves + spine, cabling);
        }
    }
    Ok(parts.finish())
}

/// A folded Clos with half of the radix up and half down.
///
/// With h = radix / 2, a pod of `t` tiers holds h pods of `t - 1` tiers and `h^(t-1)` switches in
/// its top tier; the whole fabric holds 2h pods. Switch `i` of a pod's top tier reaches the
/// switches `i * h` to `i * h + h - 1` of the tier above.
pub(super) fn fat_tree(
    tiers: u32,
    radix: u32,
    oversubscription: u32,
    cabling: Cabling,
) -> Result<Fabric, TopologyError> {
    if !(3..=4).contains(&tiers) {
        return Err(TopologyError::Tiers(tiers));
    }
    if radix < 2 || !radix.is_multiple_of(2) {
        return Err(TopologyError::Radix(radix));
    }
    require(oversubscription, "oversubscription")?;
    let half = u64::from(radix / 2);
    let per_tier = half.saturating_pow(tiers - 1).saturating_mul(2);
    let hosts_per_edge = half.saturating_mul(u64::from(oversubscription));
    let mut parts = Parts::sized(
        per_tier.saturating_mul(hosts_per_edge),
        per_tier
            .saturating_mul(half)
            .saturating_mul(u64::from(tiers - 1)),
    )?;

    // The size check keeps every number below 2^24.
    let (half, per_tier, hosts_per_edge) = (half as u32, per_tier as u32, hosts_per_edge as u32);
    let names = ["edge", "agg", "upper"];
    for name in &names[..tiers as usize - 1] {
        parts.name_switches(name, per_tier);
    }
    parts.name_switches("core", per_tier / 2);

    for rack in 0..per_tier {
        let place = HostLocation {
            rack,
            pod: rack / half,
            upper_pod: if tiers == 4 { rack / (half * half) } else { 0 },
        };
        parts.add_hosts(hosts_per_edge, place, cabling);
    }
    for tier in 1..tiers {
        let in_pod = half.pow(tier - 1);
        let pods_above = if tier + 1 == tiers { 2 * half } else { half };
        for switch in 0..per_tier {
            let (pod, index) = (switch / in_pod, switch % in_pod);
            let above = tier * per_tier + pod / pods_above * in_pod * half + index * half;
            for port in 0..half {
                parts.join((tier - 1) * per_tier + switch, above + port, cabling);
            }
        }
    }
    Ok(parts.finish())
}

/// A fabric under construction. All hosts come before the first cable between switches.
pub(super) struct Parts {
    links: Vec<Link>,
    nics: Nics,
    places: IdVec<HostId, HostLocation>,
    switch_names: Vec<String>,
}

impl Parts {
    /// Room for so many cables, or a refusal.
    pub(super) fn sized(host_cables: u64, fabric_cables: u64) -> Result<Self, TopologyError> {
        let links = host_cables.saturating_add(fabric_cables).saturating_mul(2);
        if links > MOST_LINKS {
            return Err(TopologyError::TooLarge {
                links,
                most: MOST_LINKS,
            });
        }
        Ok(Self {
            links: Vec::with_capacity(links as usize),
            nics: Nics::with_capacity(host_cables as usize),
            places: IdVec::with_capacity(host_cables as usize),
            switch_names: Vec::new(),
        })
    }

    fn name_switches(&mut self, tier: &str, count: u32) {
        self.switch_names.extend(numbered(tier, count));
    }

    fn add_hosts(&mut self, count: u32, place: HostLocation, cabling: Cabling) {
        for _ in 0..count {
            self.add_host(place, cabling.host);
        }
    }

    pub(super) fn add_host(&mut self, place: HostLocation, kind: (Rate, Time)) {
        self.add_host_at(&[place.rack], place, kind);
    }

    /// Adds a host with a NIC at each of these switches.
    fn add_host_at(&mut self, switches: &[u32], place: HostLocation, kind: (Rate, Time)) {
        let host = self.places.push(place);
        self.nics.push(switches);
        for &switch in switches {
            self.lay(Node::Host(host), Node::Switch(switch), kind);
        }
    }

    fn join(&mut self, a: u32, b: u32, cabling: Cabling) {
        self.lay(Node::Switch(a), Node::Switch(b), cabling.fabric);
    }

    pub(super) fn lay(&mut self, a: Node, b: Node, (rate, propagation): (Rate, Time)) {
        for (from, to) in [(a, b), (b, a)] {
            self.links.push(Link {
                from,
                to,
                rate,
                propagation,
            });
        }
    }

    fn finish(mut self) -> Fabric {
        let hosts = numbered("h", self.places.len() as u32).collect();
        let switches = std::mem::take(&mut self.switch_names);
        self.named(hosts, switches)
    }

    pub(super) fn named(self, hosts: Vec<String>, switches: Vec<String>) -> Fabric {
        Fabric {
            links: self.links.into(),
            nics: self.nics,
            places: self.places,
            host_names: hosts.into(),
            switch_names: switches,
        }
    }
}

pub(super) fn numbered(prefix: &str, count: u32) -> impl Iterator<Item = String> {
    (0..count).map(move |n| format!("{prefix}{n}"))
}

fn require(value: impl Into<u64>, what: &'static str) -> Result<(), TopologyError> {
    if value.into() == 0 {
        return Err(TopologyError::Zero(what));
    }
    Ok(())
}
