//! WRED profiles by themselves.

use std::collections::BTreeSet;

use super::super::database::ConfigDb;
use super::super::names::phrase;
use super::super::port::PortGroup;
use super::super::read::ConfigPlace;
use super::super::tables::WredProfile;
use super::super::words;
use super::{Report, Rule, Severity};

/// A threshold below this marks every packet that has to wait.
const FULL_PACKET: u64 = 1_500;

pub(super) fn check(db: &ConfigDb, groups: &[PortGroup<'_>], report: &mut Report) {
    for (name, profile) in &db.wred {
        let place = ConfigPlace::row("WRED_PROFILE", name);
        thresholds(name, profile, &place, report);
        switches(name, profile, &place, report);
        uses(db, name, profile, groups, report);
    }
}

fn thresholds(name: &str, profile: &WredProfile, place: &ConfigPlace, report: &mut Report) {
    for (color, curve) in profile.curves() {
        let field = |end: &str| place.clone().field(&format!("{color}_{end}_threshold"));
        match (curve.min, curve.max) {
            (Some(min), Some(max)) if min > max => {
                let says = format!(
                    "{color} of {name} begins at {} and ends at {}, the wrong way round; such a row has crashed the agent of a switch",
                    words::size(min),
                    words::size(max)
                );
                let fix = format!("exchange {color}_min_threshold and {color}_max_threshold");
                report.add(Rule::MinAboveMax, Severity::Error, field("min"), says, &fix);
            }
            (Some(_), Some(max)) if max < FULL_PACKET => {
                let says = format!(
                    "{color} of {name} ends at {max} B, less than one packet: a placeholder, or every packet that waits is marked or dropped"
                );
                let fix = "set the depth in bytes at which this queue should mark";
                report.add(Rule::NoThreshold, Severity::Error, field("max"), says, fix);
            }
            (Some(_), Some(_)) => {}
            (None, None) if curve.enable != Some(true) => {}
            (min, _) => {
                let missing = if min.is_none() { "min" } else { "max" };
                let says = format!("{color}_{missing}_threshold of {name} is missing");
                let fix = "set both thresholds in bytes; a step at K is min = max = K";
                report.add(Rule::NoThreshold, Severity::Error, place.clone(), says, fix);
            }
        }
    }
}

/// Returns whether anything is marked at all, and what else happens to packets.
fn switches(name: &str, profile: &WredProfile, place: &ConfigPlace, report: &mut Report) {
    let has_thresholds = profile.green.min.is_some() || profile.green.max.is_some();
    if profile.ecn.green && has_thresholds && !profile.green.is_on() {
        let (says, field) = match profile.green.enable {
            None => (
                format!(
                    "wred_green_enable is missing in {name}: nothing is marked on platforms that follow SAI, whose default is off"
                ),
                place.clone(),
            ),
            Some(_) => (
                format!("wred_green_enable is false in {name}: nothing is marked"),
                place.clone().field("wred_green_enable"),
            ),
        };
        let fix = "set \"wred_green_enable\": \"true\"";
        report.add(Rule::NotEnabled, Severity::Error, field, says, fix);
    }
    if !profile.ecn.green && has_thresholds {
        let word = profile.ecn.word();
        let given = if profile.ecn_given {
            format!("ecn is {word} in {name}")
        } else {
            format!("ecn is missing in {name}, which means {word}")
        };
        let says = if profile.green.is_on() {
            format!(
                "{given}: green packets, which all are unless a policer colours them, are dropped above {} and never marked",
                words::size(profile.green.min.unwrap_or(0))
            )
        } else {
            format!("{given} and wred_green_enable is not true: the profile has no effect")
        };
        let fix = "set \"ecn\": \"ecn_all\" to mark, or remove the profile from the queues";
        let place = place.clone().field("ecn");
        report.add(
            Rule::DropsInsteadOfMarks,
            Severity::Warning,
            place,
            says,
            fix,
        );
    }
    for (color, curve, marks) in [
        ("yellow", profile.yellow, profile.ecn.yellow),
        ("red", profile.red, profile.ecn.red),
    ] {
        if profile.ecn.green && marks && profile.green.is_on() && !curve.is_on() {
            let says = format!(
                "wred_{color}_enable is not true in {name}: {color} packets, which only a policer makes, are not marked"
            );
            let fix = format!("set \"wred_{color}_enable\": \"true\", or leave {color} out of ecn");
            report.add(Rule::NotEnabled, Severity::Note, place.clone(), says, &fix);
        }
    }
}

/// Queues that have the profile.
fn uses(
    db: &ConfigDb,
    name: &str,
    profile: &WredProfile,
    groups: &[PortGroup<'_>],
    report: &mut Report,
) {
    let place = ConfigPlace::row("WRED_PROFILE", name);
    if !db
        .queues
        .iter()
        .any(|row| row.wred.as_deref() == Some(name))
    {
        let says = format!("no queue has the profile {name}, so it has no effect");
        let fix = format!("add \"wred_profile\": {name:?} to the rows of QUEUE that should mark");
        report.add(Rule::UnusedProfile, Severity::Warning, place, says, &fix);
        return;
    }
    let marks = profile.ecn.green && profile.green.is_on();
    let (true, Some(min)) = (marks, profile.green.min) else {
        return;
    };
    let mut lossless = BTreeSet::new();
    let mut ports = Vec::new();
    for group in groups {
        let has = |queue: &&u8| {
            let view = group.queues.get(usize::from(**queue));
            view.and_then(|view| view.wred)
                .is_some_and(|(of, _)| of == name)
        };
        let queues: Vec<u8> = group.pfc.iter().filter(has).copied().collect();
        if !queues.is_empty() {
            lossless.extend(queues);
            ports.extend(group.ports.iter().cloned());
        }
    }
    let depth = words::size(min);
    let rest = "ECT and not-ECT packets share the thresholds of a profile";
    let (severity, says) = if lossless.is_empty() {
        let says = format!("{name} drops packets that are not ECT from {depth} on: {rest}");
        (Severity::Note, says)
    } else {
        let lossless: Vec<u8> = lossless.into_iter().collect();
        let says = format!(
            "{name} drops packets that are not ECT from {depth} on, also in the lossless {} of {}: {rest}",
            words::queues(&lossless),
            phrase(&ports)
        );
        (Severity::Warning, says)
    };
    let fix = "let hosts send ECT (tcp_ecn = 1, RoCE with ECN), and give other traffic a queue of its own";
    report.add(Rule::NotEctDropped, severity, place, says, fix);
}
