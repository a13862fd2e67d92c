//! Depth of queues at which they mark, in bytes, in time and by the fabric's bandwidth-delay
//! product.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use shallows_core::port::marker::standard_threshold;
use shallows_core::units::{Bytes, Rate, Time};

use super::super::database::ConfigDb;
use super::super::names::phrase;
use super::super::port::PortGroup;
use super::super::read::ConfigPlace;
use super::super::tables::{BufferProfile, Threshold, WredProfile};
use super::super::words;
use super::{Context, Report, Rule, Severity, place_of};

/// Above this multiple of C x RTT a threshold adds delay and no throughput.
const TOO_DEEP: f64 = 2.0;
/// DCTCP's guideline: K above C x RTT / 7 keeps the link busy.
const DCTCP_SHARE: f64 = 1.0 / 7.0;

pub(super) fn check(
    db: &ConfigDb,
    groups: &[PortGroup<'_>],
    context: &Context,
    report: &mut Report,
) {
    for group in groups {
        let speed = group.speed.or(context.speed);
        if speed.is_none() && group.queues.iter().any(|queue| queue.wred.is_some()) {
            let says = format!(
                "the speed of {} is not in the file, so that depths cannot be given as times",
                phrase(&group.ports)
            );
            let place = ConfigPlace::row("PORT", group.ports[0].as_str());
            let fix = "add the table PORT, or use --speed 25Gbps";
            report.add(Rule::NoSpeed, Severity::Note, place, says, fix);
        }
        for (queues, name, profile) in marked(group) {
            let place = place_of(group, usize::from(queues[0]));
            let of = Subject {
                what: format!("{} of {}", words::queues(&queues), phrase(&group.ports)),
                place,
                name,
            };
            depth(&of, profile, speed, context.rtt, report);
            for &queue in &queues {
                let buffer = group.queues[usize::from(queue)].buffer;
                if let Some((buffer_name, buffer)) = buffer {
                    let what = format!("queue {queue} of {}", phrase(&group.ports));
                    holds(db, &what, (buffer_name, buffer), (name, profile), report);
                }
            }
        }
    }
    speeds(groups, context, report);
}

/// Queues that are marked, those of one profile together.
fn marked<'d>(group: &PortGroup<'d>) -> Vec<(Vec<u8>, &'d str, &'d WredProfile)> {
    let mut by_name: BTreeMap<&str, (Vec<u8>, &WredProfile)> = BTreeMap::new();
    for (queue, view) in (0..).zip(&group.queues) {
        if let Some((name, profile)) = view.wred
            && profile.green.min.is_some()
        {
            let entry = by_name.entry(name);
            entry.or_insert((Vec::new(), profile)).0.push(queue);
        }
    }
    let sets = by_name.into_iter();
    sets.map(|(name, (queues, profile))| (queues, name, profile))
        .collect()
}

struct Subject<'d> {
    what: String,
    place: ConfigPlace,
    name: &'d str,
}

fn depth(
    of: &Subject<'_>,
    profile: &WredProfile,
    speed: Option<Rate>,
    rtt: Option<Time>,
    report: &mut Report,
) {
    let Some(min) = profile.green.min else {
        return;
    };
    let max = profile.green.max.unwrap_or(min);
    let verb = if profile.ecn.green { "mark" } else { "drop" };
    let starts = if of.what.starts_with("queues") {
        "start"
    } else {
        "starts"
    };
    let mut says = format!("{} {starts} to {verb} at {}", of.what, words::size(min));
    let product = speed
        .zip(rtt)
        .map(|(speed, rtt)| standard_threshold(speed, rtt, 1.0));
    if let Some(speed) = speed {
        let time = words::time(speed.transmission_time(Bytes::new(min)));
        let _ = write!(says, ", which is {time} at {}", words::rate(speed));
    }
    if let Some(product) = product {
        let factor = words::factor(min as f64 / product);
        let _ = write!(says, " and {factor} times C x RTT");
    }
    if min == max {
        says += ", and does so with every packet above that";
    } else {
        let (p, max) = (profile.green.probability, words::size(max));
        let _ = write!(
            says,
            "; the probability rises to {p}% at {max} and is 1 above"
        );
    }
    report.add(Rule::Depth, Severity::Note, of.place.clone(), says, "");
    if let (Some(speed), Some(product)) = (speed, product) {
        compare(of, (min, max), speed, product, report);
    }
}

/// Compares thresholds with C x RTT.
fn compare(
    of: &Subject<'_>,
    (min, max): (u64, u64),
    speed: Rate,
    product: f64,
    report: &mut Report,
) {
    let (low, high) = (product * DCTCP_SHARE, product);
    let range = format!(
        "set min = max between {} (C x RTT / 7, DCTCP) and {} (C x RTT) in {}, and measure: shallows run --vary",
        words::size(low.ceil() as u64),
        words::size(high.ceil() as u64),
        of.name
    );
    if min as f64 > TOO_DEEP * product {
        let wait = words::time(speed.transmission_time(Bytes::new(min)));
        let says = format!(
            "{} may hold {wait} of packets before anything is marked, {} times C x RTT: that is delay for every flow of the queue without more throughput",
            of.what,
            words::factor(min as f64 / product)
        );
        report.add(
            Rule::TooDeep,
            Severity::Warning,
            of.place.clone(),
            says,
            &range,
        );
    } else if (max as f64) < low {
        let says = format!(
            "every packet above {1} is marked in {0}, which is {2} times C x RTT: even DCTCP loses throughput below 1/7",
            of.what,
            words::size(max),
            words::factor(max as f64 / product)
        );
        report.add(
            Rule::TooShallow,
            Severity::Warning,
            of.place.clone(),
            says,
            &range,
        );
    }
}

/// Returns whether a buffer has room for what its queue holds when it is marked.
fn holds(
    db: &ConfigDb,
    what: &str,
    (buffer_name, buffer): (&str, &BufferProfile),
    (name, profile): (&str, &WredProfile),
    report: &mut Report,
) {
    let Some(limit) = alone(db, buffer) else {
        return;
    };
    let Some(min) = profile.green.min else {
        return;
    };
    let max = profile.green.max.unwrap_or(min);
    let place = ConfigPlace::row("BUFFER_PROFILE", buffer_name);
    let says = |depth: &str, consequence: &str| {
        format!(
            "{what} can hold {} with {buffer_name} if no other queue is busy, and {name} {depth}: {consequence}",
            words::size(limit)
        )
    };
    let fix = "lower the thresholds of the profile, or give the queue more buffer";
    if min > limit {
        let depth = format!("starts at {}", words::size(min));
        let says = says(&depth, "packets are dropped before any is marked");
        add_once(report, Severity::Error, place, says, fix);
    } else if max > limit {
        let depth = format!("ends at {}", words::size(max));
        let says = says(
            &depth,
            "packets are dropped while others are not marked yet",
        );
        add_once(report, Severity::Warning, place, says, fix);
    }
}

fn add_once(report: &mut Report, severity: Severity, place: ConfigPlace, says: String, fix: &str) {
    if !report.0.iter().any(|finding| finding.says == says) {
        report.add(Rule::SmallBuffer, severity, place, says, fix);
    }
}

/// Limit of a queue while no other queue holds anything.
fn alone(db: &ConfigDb, buffer: &BufferProfile) -> Option<u64> {
    let shared = match buffer.threshold? {
        Threshold::Static(bytes) => bytes,
        Threshold::Dynamic(exponent) => {
            let pool = db.pools.get(buffer.pool.as_deref()?)?.size?;
            let alpha = f64::from(exponent).exp2();
            (pool as f64 * alpha / (1.0 + alpha)) as u64
        }
    };
    Some(shared.saturating_add(buffer.reserved))
}

/// One profile at ports of several speeds.
fn speeds(groups: &[PortGroup<'_>], context: &Context, report: &mut Report) {
    let mut by_name: BTreeMap<&str, (u64, Vec<Rate>)> = BTreeMap::new();
    for group in groups {
        for (_, name, profile) in marked(group) {
            if let (Some(min), Some(speed)) = (profile.green.min, group.speed.or(context.speed)) {
                by_name
                    .entry(name)
                    .or_insert((min, Vec::new()))
                    .1
                    .push(speed);
            }
        }
    }
    for (name, (min, mut speeds)) in by_name {
        speeds.sort_unstable();
        speeds.dedup();
        if speeds.len() < 2 {
            continue;
        }
        let depth = |speed: &Rate| {
            let time = words::time(speed.transmission_time(Bytes::new(min)));
            format!("{time} at {}", words::rate(*speed))
        };
        let depths: Vec<String> = speeds.iter().map(depth).collect();
        let says = format!(
            "{name} is at ports of {} speeds, where its {} are {}",
            speeds.len(),
            words::size(min),
            words::list(&depths)
        );
        let fix =
            "give each speed a profile of its own, with thresholds in proportion to the speed";
        let place = ConfigPlace::row("WRED_PROFILE", name);
        report.add(Rule::SeveralSpeeds, Severity::Warning, place, says, fix);
    }
}
