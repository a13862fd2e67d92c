//! WRED profiles as a scenario's marker.

use shallows_core::port::marker::{MarkerConfig, NotEct, RedConfig, SchemeConfig, Threshold};
use shallows_core::units::{Bytes, Length};

use super::super::port::PortGroup;
use super::super::read::ConfigPlace;
use super::super::tables::WredProfile;
use super::super::words;
use super::{Notes, per_index};

/// A threshold that no queue reaches, for queues that are not marked.
pub(in super::super) const NEVER: Bytes = Bytes::new(1_000_000_000_000);

/// Marking of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Marks {
    /// Bytes at which the probability begins to rise.
    pub(in super::super) min: u64,
    /// Bytes above which it is 1.
    pub(in super::super) max: u64,
    /// The probability at `max`, in percent; 100 for a step.
    pub(in super::super) percent: u8,
}

/// Marking of a profile, if it marks.
pub(in super::super) fn marks(profile: &WredProfile) -> Option<Marks> {
    let (min, max) = (profile.green.min?, profile.green.max?);
    let sound = min <= max && max > 0 && min < NEVER.get();
    if !(sound && profile.ecn.green && profile.green.is_on()) {
        return None;
    }
    let percent = if min == max {
        100
    } else {
        profile.green.probability
    };
    Some(Marks { min, max, percent })
}

pub(super) fn import(group: &PortGroup<'_>, order: &[u8], notes: &mut Notes) -> MarkerConfig {
    let mut queues = Vec::new();
    for &queue in order {
        let profile = group.queues[usize::from(queue)].wred;
        queues.push(profile.and_then(|(_, profile)| marks(profile)));
        if let Some((name, profile)) = profile {
            explain(name, profile, notes);
        }
    }
    if queues.iter().all(Option::is_none) {
        return MarkerConfig::default();
    }
    let place = ConfigPlace::table("WRED_PROFILE");
    notes.add(
        place,
        "marked at enqueue here; at enqueue or at dequeue in a chip",
    );
    if queues.iter().any(Option::is_none) {
        let unmarked = order
            .iter()
            .zip(&queues)
            .filter(|(_, marks)| marks.is_none());
        let mut unmarked: Vec<u8> = unmarked.map(|(queue, _)| *queue).collect();
        unmarked.sort_unstable();
        let says = format!(
            "queues {} are not marked: their threshold is {NEVER} here, which nothing reaches",
            words::numbers(&unmarked)
        );
        notes.add(ConfigPlace::row("QUEUE", notes.port()), says);
    }
    MarkerConfig {
        scheme: scheme(&queues),
        not_ect: NotEct::Drop,
        ..MarkerConfig::default()
    }
}

/// Steps as thresholds, slopes as RED.
pub(in super::super) fn scheme(queues: &[Option<Marks>]) -> SchemeConfig {
    let never = Marks {
        min: NEVER.get(),
        max: NEVER.get(),
        percent: 100,
    };
    let lanes: Vec<Marks> = queues.iter().map(|marks| marks.unwrap_or(never)).collect();
    let length = |bytes: u64| Length::Bytes(Bytes::new(bytes));
    if lanes.iter().all(|lane| lane.min == lane.max) {
        let steps = lanes.iter().map(|lane| Threshold::Length(length(lane.max)));
        return SchemeConfig::PerQueue {
            threshold: per_index(steps.collect()),
        };
    }
    let percents = lanes.iter().map(|lane| f64::from(lane.percent) / 100.0);
    SchemeConfig::Red(RedConfig {
        min: per_index(lanes.iter().map(|lane| length(lane.min)).collect()),
        max: per_index(lanes.iter().map(|lane| length(lane.max)).collect()),
        max_probability: per_index(percents.collect()),
        gentle: false,
        average: shallows_core::port::marker::Average::Instantaneous,
        spread: false,
    })
}

/// Notes the settings of a profile that have no equal.
fn explain(name: &str, profile: &WredProfile, notes: &mut Notes) {
    let place = ConfigPlace::row("WRED_PROFILE", name);
    let green = profile.green;
    let depths = |curve: &super::super::tables::Curve| (curve.min, curve.max, curve.probability);
    for (color, curve) in &profile.curves()[1..] {
        if curve.min.is_some() && depths(curve) != depths(&green) {
            let says = format!("packets of a scenario have no colour: {color} is left out");
            notes.add(place.clone(), says);
        }
    }
    if marks(profile).is_some() || green.min.is_none() {
        return;
    }
    let says = if green.is_on() && !profile.ecn.green {
        "drops early instead of marking, which has no equal; its queues are not marked"
    } else if green.is_on() {
        "its thresholds cannot be followed; its queues are not marked"
    } else {
        "wred_green_enable is not true: its queues are not marked"
    };
    notes.add(place, says);
}
