//! Buffer profiles as a scenario's buffer.

use std::collections::BTreeMap;

use shallows_core::port::BufferConfig;
use shallows_core::units::{Bytes, Length};

use super::super::database::ConfigDb;
use super::super::port::PortGroup;
use super::super::read::ConfigPlace;
use super::super::tables::{BufferProfile, Threshold};
use super::super::words;
use super::{Notes, QUANTUM, per_index};

/// The buffer of a port, and the pool that it shares.
pub(super) fn import(
    db: &ConfigDb,
    group: &PortGroup<'_>,
    order: &[u8],
    pool: Option<Bytes>,
    notes: &mut Notes,
) -> (BufferConfig, Option<Bytes>) {
    let profiles = order
        .iter()
        .map(|&queue| group.queues[usize::from(queue)].buffer);
    let profiles: Vec<_> = profiles.collect();
    for (name, profile) in profiles.iter().flatten() {
        if profile.trims {
            let place = ConfigPlace::row("BUFFER_PROFILE", name).field("packet_discard_action");
            notes.add(
                place,
                "packets that find no room are dropped here, not trimmed",
            );
        }
    }
    let place = ConfigPlace::row("BUFFER_QUEUE", notes.port());
    let thresholds: Vec<Threshold> = profiles
        .iter()
        .filter_map(|profile| profile.and_then(|(_, profile)| profile.threshold))
        .collect();
    let is_static = |threshold: &Threshold| matches!(threshold, Threshold::Static(_));
    if thresholds.is_empty() {
        notes.add(
            place,
            "no queue has a limit in the file: set ports.switch.buffer, which is \"unlimited\" here",
        );
        return (BufferConfig::Unlimited, None);
    }
    if thresholds.iter().all(is_static) && thresholds.len() == profiles.len() {
        let limits = profiles.iter().flatten();
        let limits = limits.map(|(name, profile)| limit(name, profile, notes));
        let limits = limits
            .map(|bytes| Length::Bytes(Bytes::new(bytes)))
            .collect();
        return (
            BufferConfig::PerQueue {
                limit: per_index(limits),
            },
            None,
        );
    }
    if thresholds.iter().all(is_static) {
        notes.add(
            place,
            "some queues have a limit and some have none, which has no equal: set ports.switch.buffer, which is \"unlimited\" here",
        );
        return (BufferConfig::Unlimited, None);
    }
    dynamic(db, &profiles, order, pool, notes)
}

/// Limit of a queue with a static limit.
fn limit(name: &str, profile: &BufferProfile, notes: &mut Notes) -> u64 {
    let Some(Threshold::Static(bytes)) = profile.threshold else {
        return QUANTUM;
    };
    let bytes = bytes.saturating_add(profile.reserved);
    if bytes < QUANTUM {
        let says = format!("{bytes} B hold no packet; the limit is {QUANTUM} B here");
        notes.add(ConfigPlace::row("BUFFER_PROFILE", name), says);
    }
    bytes.max(QUANTUM)
}

/// One alpha for all queues: that of most.
fn dynamic(
    db: &ConfigDb,
    profiles: &[Option<(&str, &BufferProfile)>],
    order: &[u8],
    given: Option<Bytes>,
    notes: &mut Notes,
) -> (BufferConfig, Option<Bytes>) {
    let mut uses: BTreeMap<i8, usize> = BTreeMap::new();
    for (_, profile) in profiles.iter().flatten() {
        if let Some(Threshold::Dynamic(exponent)) = profile.threshold {
            *uses.entry(exponent).or_default() += 1;
        }
    }
    let most = uses
        .iter()
        .max_by_key(|(exponent, uses)| (**uses, -**exponent));
    let exponent = most.map_or(0, |(exponent, _)| *exponent);
    let chosen = Some(Threshold::Dynamic(exponent));
    let of = |profile: &Option<(&str, &BufferProfile)>| profile.and_then(|(_, p)| p.threshold);
    let others = order.iter().zip(profiles);
    let others = others.filter(|(_, profile)| of(profile) != chosen);
    let mut others: Vec<u8> = others.map(|(queue, _)| *queue).collect();
    others.sort_unstable();
    if !others.is_empty() {
        let says = format!(
            "queues {} have another limit or none; a scenario has one alpha for all queues, here {}",
            words::numbers(&others),
            f64::from(exponent).exp2()
        );
        notes.add(ConfigPlace::row("BUFFER_QUEUE", notes.port()), says);
    }
    let first = profiles.iter().flatten();
    let first = first
        .copied()
        .find(|(_, profile)| profile.threshold == chosen);
    let Some((name, profile)) = first else {
        return (BufferConfig::Unlimited, None);
    };
    if profile.reserved > 0 {
        let place = ConfigPlace::row("BUFFER_PROFILE", name).field("size");
        notes.add(place, "reserved memory has no equal");
    }
    let pool = profile.pool.as_deref().unwrap_or_default();
    let size = db.pools.get(pool).and_then(|pool| pool.size);
    let size = size.map(Bytes::new);
    let Some(size) = size.filter(|size| size.get() >= QUANTUM).or(given) else {
        let says = "the switch computes the size of this pool: give it with --pool 32MB; the buffer is \"unlimited\" here";
        notes.add(ConfigPlace::row("BUFFER_POOL", pool).field("size"), says);
        return (BufferConfig::Unlimited, None);
    };
    let alpha = f64::from(exponent).exp2();
    (BufferConfig::Dynamic { alpha }, Some(size))
}
