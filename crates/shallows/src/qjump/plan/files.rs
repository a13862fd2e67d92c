//! Files of a plan: limits for real hosts, the part of a scenario, and a figure.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use shallows_core::host::qjump::{EpochClock, Excess, Latency, Limits, Phase, Plan, PlannedLevel};
use shallows_core::units::Time;
use shallows_results::figure::{Axis, Curve, Extent, Figure, Origin, Panel, Plot, Point, Words};
use shallows_results::write_text;

use super::{allotment, service, shown_latency};
use crate::qjump::shown_rate;

/// Writes the files; what was written, for people.
pub(super) fn write(plan: &Plan, directory: &Path) -> anyhow::Result<String> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let mut paths = vec![directory.join("qjump.toml"), directory.join("hosts.toml")];
    write_text(&paths[0], &limits_file(plan)?)?;
    write_text(&paths[1], &hosts_file(plan))?;
    paths.extend(figure(plan).write(directory, "levels", &Words::default())?);
    let names: Vec<_> = paths.iter().filter_map(|path| path.file_name()).collect();
    let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
    Ok(format!(
        "written to {}: {}\n",
        directory.display(),
        names.join(", ")
    ))
}

/// Text of the file that `qjump apply` reads. Its clock counts whole nanoseconds: rounded up, an
/// epoch is still a bound.
fn limits_file(plan: &Plan) -> anyhow::Result<String> {
    let ns = Time::from_ns(1).ps();
    let limits = Limits {
        epoch: Time::from_ns(plan.epoch.ps().div_ceil(ns)),
        levels: plan.levels.iter().map(allotment).collect(),
        clock: EpochClock::Grid,
        excess: Excess::Drop,
        hold_limit: None,
        dscp: None,
        priority_tag: false,
    };
    if let Err(problem) = limits.validate() {
        bail!("no device can be limited like this: {problem}");
    }
    let mut text = format!(
        "# Limits of QJUMP for {} hosts: shallows qjump apply --dev DEVICE qjump.toml\n\
         # Level 0 is the lowest priority; shallows exec --level gives a program its level. Bytes are\n\
         # those on the wire: a full frame takes 1538B.\n",
        plan.network.hosts
    );
    for (number, level) in plan.levels.iter().enumerate() {
        let _ = writeln!(
            text,
            "# level {number}: {}, {} {}",
            shown_rate(level.rate),
            shown_latency(level.latency),
            level.names().join(", ")
        );
    }
    Ok(text + &toml::to_string(&limits)?)
}

/// The part of a scenario. There the level of a packet is its service, and service 0 is served
/// first.
fn hosts_file(plan: &Plan) -> String {
    let levels: Vec<String> = plan
        .levels
        .iter()
        .rev()
        .map(|level| match level.bytes {
            Some(bytes) => format!("\"{bytes}\""),
            // Without a limit: more than any link carries in an epoch.
            None => "\"1GB\"".to_owned(),
        })
        .collect();
    let phase = match plan.phase {
        Phase::Synchronized => "synchronized",
        Phase::Mesochronous => "mesochronous",
    };
    let count = plan.levels.len();
    let mut services = String::new();
    for level in (0..count).rev() {
        let service = service(plan, level);
        let _ = writeln!(
            services,
            "# service {service} is level {level} of real hosts"
        );
    }
    format!(
        "# QJUMP: service 0 has the highest priority and the least bytes an epoch. Switches need\n\
         # [ports.switch] with queues = {count}, classifier = \"dscp\" and scheduler = \"strict\". Bytes are\n\
         # those on a host's link, by the framing of its port.\n\
         {services}\
         [hosts.qjump]\n\
         epoch = \"{}\"\n\
         levels = [{}]\n\
         excess = \"drop\"\n\
         phase = \"{phase}\"\n",
        plan.epoch,
        levels.join(", ")
    )
}

/// Latency against throughput, by level.
fn figure(plan: &Plan) -> Figure {
    let point = |level: &PlannedLevel, time: Time| {
        Point::new(level.rate.bps() as f64 / 1e6, time.as_secs_f64() * 1e6)
    };
    let mut guaranteed = Vec::new();
    let mut expected = Vec::new();
    for level in plan.levels.iter().rev() {
        match level.latency {
            Latency::Guaranteed(time) => guaranteed.push(point(level, time)),
            Latency::Expected(time) => expected.push(point(level, time)),
            Latency::Unbounded => {}
        }
    }
    let curves = [("guaranteed", guaranteed), ("expected", expected)];
    let curves = curves
        .into_iter()
        .enumerate()
        .filter(|(_, (_, points))| !points.is_empty());
    let curves = curves.map(|(style, (label, points))| Curve {
        origin: Origin::Simulated,
        label: label.to_owned(),
        style,
        points,
    });
    Figure {
        name: "levels".to_owned(),
        alt: format!(
            "Latency against throughput of QJUMP's levels for {} hosts; the epoch is {}.",
            plan.network.hosts, plan.epoch
        ),
        panels: vec![Panel {
            title: format!("{} hosts, epoch {}", plan.network.hosts, plan.epoch),
            x: Axis::new("rate of a host (Mbps)", Extent::Data).logarithmic(),
            y: Axis::new("latency in the network (us)", Extent::FromZero),
            plot: Plot::Points(curves.collect()),
        }],
    }
}
