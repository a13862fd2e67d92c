//! XCo in live runs: from a scenario to controllers and coordinators, and what became of them.

use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use shallows_core::units::Time;
use shallows_live::lab;
use shallows_live::switch::{PortPlan, Wait};
use shallows_live::xco::ControllerSnapshot;
use shallows_live::xco::cluster::{Cluster, ClusterTrunk, ControllerPlan, HostPlan};
use shallows_live::xco::lab::{AGENT_PORT, CONTROLLER_PORT, XcoObserved, XcoPlan, XcoSample};
use shallows_model::topology::{Fabric, Link, Node};
use shallows_model::{HostId, Id as _, XcoConfig};
use shallows_results::figure::{Axis, Curve, Extent, Figure, Origin, Panel, Plot, Point, Words};

use super::plan::trunks;
use crate::failure::Failure;
use crate::plan::RunPlan;
use crate::scenario::{Diagnostic, LiveXco};

/// Refuses what of XCo cannot run live.
pub(super) fn refuse(plan: &RunPlan) -> Result<(), Diagnostic> {
    let live = &plan.scenario.config.live.xco;
    let Some(xco) = &plan.scenario.config.hosts.xco else {
        if *live == LiveXco::default() {
            return Ok(());
        }
        let problem = "there is no XCo whose controller a forger could pose as";
        return Err(plan.scenario.error("live", problem).help("add [hosts.xco]"));
    };
    if xco.hierarchy.is_some() {
        let problem = "controllers of pods run in simulations only";
        let help = "leave out hosts.xco.hierarchy";
        return Err(plan
            .scenario
            .error("hosts.xco.hierarchy", problem)
            .help(help));
    }
    match &live.forge {
        Some(forge) if forge.victim >= plan.fabric.hosts() => {
            let problem = format!("there is no host {} to deceive", forge.victim);
            Err(plan.scenario.error("live", problem))
        }
        Some(forge) if forge.every == Time::ZERO => {
            let problem = "forge.every must not be zero";
            Err(plan.scenario.error("live", problem))
        }
        _ => Ok(()),
    }
}

/// Hosts of the lab: those of the scenario, then the controllers' and the forger's.
pub(super) fn lab_hosts(plan: &RunPlan) -> usize {
    plan.fabric.hosts() as usize + extra_hosts(plan)
}

fn extra_hosts(plan: &RunPlan) -> usize {
    let Some(xco) = &plan.scenario.config.hosts.xco else {
        return 0;
    };
    let LiveXco { forge } = &plan.scenario.config.live.xco;
    let extra = [xco.controller.is_none(), xco.standby, forge.is_some()];
    extra.into_iter().map(usize::from).sum()
}

/// Their ports, at the first switch, with links like that of host 0.
pub(super) fn extra_ports(plan: &RunPlan) -> Vec<PortPlan> {
    let fabric = &plan.fabric;
    let first = fabric.hosts() as usize;
    let like = fabric.link(fabric.downlink(HostId(0)));
    let port = |number: usize| PortPlan {
        delay: like.propagation,
        stations: vec![lab::station(number).to_string()],
        ..PortPlan::new(lab::port(number), like.rate)
    };
    let numbers = first..first + extra_hosts(plan);
    numbers.map(port).collect()
}

/// Controllers and coordinators of a scenario that was not refused.
pub(super) fn plan(plan: &RunPlan) -> Option<XcoPlan> {
    let xco = plan.scenario.config.hosts.xco.as_ref()?;
    let mut extra = plan.fabric.hosts() as usize..;
    let mut seat = || extra.next().unwrap_or_default();
    let first = xco.controller.map_or_else(&mut seat, |host| host as usize);
    let mut controllers_at = vec![first];
    controllers_at.extend(xco.standby.then(&mut seat));
    let LiveXco { forge } = &plan.scenario.config.live.xco;
    let forger = forge.map(|forgery| (seat(), forgery));
    Some(XcoPlan {
        cluster: cluster(xco, plan, &controllers_at),
        outages: xco.outages.clone(),
        controllers_at,
        forger,
    })
}

fn cluster(xco: &XcoConfig, plan: &RunPlan, controllers_at: &[usize]) -> Cluster {
    let XcoConfig {
        slot,
        directives,
        preempt_after,
        patience,
        weights,
        on_demand,
        gate,
        protocol,
        // Places and outages of controllers.
        controller: _,
        standby: _,
        outages: _,
        // Refused.
        hierarchy: _,
        // Differences.
        delay: _,
        dscp: _,
    } = xco;
    let fabric = &plan.fabric;
    let weight = |host: u32| {
        let of = weights.iter().find(|of| of.host == host);
        of.map_or(1, |of| of.weight)
    };
    let trunk = |link: &Link| ClusterTrunk {
        between: [switch_name(link.from), switch_name(link.to)],
        rate: link.rate,
    };
    let controllers = controllers_at.iter().enumerate();
    Cluster {
        key_file: PathBuf::new(),
        slot: *slot,
        directives: *directives,
        preempt_after: *preempt_after,
        patience: *patience,
        protocol: *protocol,
        on_demand: *on_demand,
        // Hosts of a scenario have one station each, which stays.
        learn_places: false,
        hierarchy: None,
        gate: *gate,
        framing: plan.ports.hosts.framing,
        controllers: controllers
            .map(|(place, &host)| ControllerPlan {
                name: format!("c{place}"),
                address: address(host, CONTROLLER_PORT),
                pod: None,
                metrics: None,
                wait: Wait::Block,
            })
            .collect(),
        hosts: fabric
            .host_ids()
            .map(|host| host_plan(fabric, host, weight(host.0)))
            .collect(),
        trunks: trunks(fabric).map(trunk).collect(),
    }
}

/// A host of the lab with its agent.
fn host_plan(fabric: &Fabric, host: HostId, weight: u32) -> HostPlan {
    let up = fabric.link(fabric.uplink(host));
    let lab_host = host.index();
    HostPlan {
        name: format!("h{lab_host}"),
        rate: up.rate,
        address: address(lab_host, AGENT_PORT),
        switch: switch_name(up.to),
        pod: None,
        pod_address: None,
        weight,
        stations: vec![lab::station(lab_host).to_string()],
        networks: Vec::new(),
        nic: String::new(),
        inside: Vec::new(),
        metrics: None,
        wait: Wait::Poll,
        cpu: None,
        gone: false,
    }
}

fn address(host: usize, port: u16) -> SocketAddr {
    SocketAddr::from((lab::address(host), port))
}

/// Name of a switch in the file of a cluster.
fn switch_name(node: Node) -> String {
    match node {
        Node::Switch(switch) => switch.to_string(),
        Node::Host(_) => String::new(),
    }
}

/// Facts about XCo in `live.json` and the report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct XcoFacts<'a> {
    /// Each controller at its end.
    controllers: &'a [ControllerSnapshot],
    /// Seconds and what happened.
    events: Vec<(f64, &'a str)>,
    /// Messages without the key.
    forged: u64,
    /// Messages that coordinators refused, by reason.
    refused: Vec<(&'a str, u64)>,
}

impl<'a> XcoFacts<'a> {
    pub(super) fn new(of: &'a XcoObserved) -> Self {
        let events = of.events.iter();
        let mut refused: Vec<(&str, u64)> = Vec::new();
        let last = of.samples.last().into_iter();
        let hosts = last.flat_map(|sample| &sample.coordinators);
        for (reason, count) in hosts.flat_map(|host| &host.refused) {
            match refused
                .iter_mut()
                .find(|(known, _)| *known == reason.as_str())
            {
                Some((_, sum)) => *sum += count,
                None => refused.push((reason.as_str(), *count)),
            }
        }
        Self {
            controllers: &of.controllers,
            events: events
                .map(|(at, what)| (at.as_secs_f64(), what.as_str()))
                .collect(),
            forged: of.forged,
            refused,
        }
    }
}

impl Display for XcoFacts<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, what) in &self.events {
            writeln!(f, "at {at:.2} s: {what}")?;
        }
        for controller in self.controllers {
            write!(f, "controller {controller}")?;
        }
        if self.forged > 0 {
            writeln!(f, "{} forged messages", self.forged)?;
        }
        write!(f, "hosts refused:")?;
        let refused = self.refused.iter().filter(|(_, count)| *count > 0);
        let mut any = false;
        for (reason, count) in refused {
            any = true;
            write!(f, " {reason} {count}")?;
        }
        f.write_str(if any { " messages" } else { " none" })
    }
}

/// Writes the timeline of a run, as a figure and its numbers.
pub(super) fn write(out: &Path, seen: &XcoObserved) -> Result<(), Failure> {
    let figure = timeline(seen);
    let written = figure.write(out, "xco", &Words::default());
    written.map_err(anyhow::Error::from)?;
    Ok(())
}

fn timeline(seen: &XcoObserved) -> Figure {
    let samples = &seen.samples;
    let over_time = |label: &str, style: usize, value: &dyn Fn(&XcoSample) -> f64| Curve {
        origin: Origin::Simulated,
        label: label.to_owned(),
        style,
        points: samples
            .iter()
            .map(|sample| Point::new(sample.time.as_secs_f64(), value(sample)))
            .collect(),
    };
    let panel = |title: &str, label: &str, curves: Vec<Curve>| Panel {
        title: title.to_owned(),
        x: Axis::new("Time (s)", Extent::FromZero),
        y: Axis::new(label, Extent::FromZero),
        plot: Plot::Lines(curves),
    };
    let controllers = samples.first().map_or(0, |of| of.controllers.len());
    let grants = |sample: &XcoSample, place: usize| {
        let of = sample.controllers[place].as_ref();
        of.map_or(0.0, |of| of.slots as f64)
    };
    let slots = (0..controllers).map(|place| {
        over_time(&format!("controller c{place}"), place, &|of| {
            grants(of, place)
        })
    });
    let reasons = ["sender", "forged", "replayed"];
    let refused = reasons
        .iter()
        .zip(3..)
        .map(|(reason, style)| over_time(reason, style, &|of| refusals(of, reason) as f64));
    let mode = |mode: &'static str| {
        move |of: &XcoSample| of.coordinators.iter().filter(|c| c.mode == mode).count() as f64
    };
    let mut attempts = vec![over_time("attempts", 6, &|of| of.forged as f64)];
    attempts.extend(refused);
    Figure {
        name: "xco".to_owned(),
        alt: alt(seen),
        panels: vec![
            panel(
                "Throughput of the switch",
                "Throughput (Mbps)",
                vec![throughput(samples)],
            ),
            panel("Slots in force", "Slots", slots.collect()),
            panel(
                "Hosts",
                "Hosts",
                vec![
                    over_time("coordinated", 0, &mode("coordinated")),
                    over_time("uncoordinated", 1, &mode("uncoordinated")),
                ],
            ),
            panel(
                "Packets dropped by the switch",
                "Packets",
                vec![over_time("dropped", 2, &|of| of.drops as f64)],
            ),
            panel("Forged messages, and refused ones", "Messages", attempts),
        ],
    }
}

fn refusals(of: &XcoSample, reason: &str) -> u64 {
    let counts = of.coordinators.iter().flat_map(|of| &of.refused);
    counts.filter(|(of, _)| of == reason).map(|(_, n)| n).sum()
}

fn throughput(samples: &[XcoSample]) -> Curve {
    let total = |of: &XcoSample| of.delivered.iter().sum::<u64>();
    let rates = samples.windows(2).map(|pair| {
        let [before, after] = pair else {
            unreachable!("windows of two")
        };
        let seconds = (after.time - before.time).as_secs_f64();
        let bits = (total(after) - total(before)) as f64 * 8.0;
        Point::new(after.time.as_secs_f64(), bits / seconds / 1e6)
    });
    Curve {
        origin: Origin::Simulated,
        label: "all hosts".to_owned(),
        style: 0,
        points: rates.collect(),
    }
}

fn alt(seen: &XcoObserved) -> String {
    let events = seen.events.iter();
    let events: Vec<String> = events
        .map(|(at, what)| format!("{:.1} s: {what}", at.as_secs_f64()))
        .collect();
    format!("XCo over the time of a run. {}", events.join("; "))
}
