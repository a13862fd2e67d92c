//! From a scenario that can run live to its experiment.

use std::ops::RangeInclusive;
use std::sync::Arc;

use shallows_core::host::HostGateConfig;
use shallows_core::tcp::{AfterIdle, Recovery, RtoConfig, TcpConfig};
use shallows_core::units::Time;
use shallows_live::command::{CommandPlace, CommandPlan, CommandUser};
use shallows_live::experiment::Experiment;
use shallows_live::lab::{self, Cpus, LabPlan};
use shallows_live::switch::{
    FidelityConfig, Forwarding, PortPlan, STATIONS_PER_PORT, SampleConfig, SwitchConfig, TrunkPlan,
    UplinkPlan, Wait,
};
use shallows_live::traffic::{GOODPUT_EVERY, ProbePlan};
use shallows_model::topology::{Fabric, Link, Node};
use shallows_model::workload::Workload;
use shallows_model::{
    ApplicationSetup, Completion, Connections, HostId, Id as _, IdVec, Interrupt,
};

use super::controller::Chosen;
use super::transports::{self, Controllers};
use super::xco;
use crate::failure::Failure;
use crate::ideal;
use crate::plan::RunPlan;
use crate::scenario::{Diagnostic, LiveCommand, Pings, Role};

/// From one sample of the queues to the next, if no probe wants more.
pub const SAMPLE_EVERY: Time = Time::from_ms(1);

/// The longest timeouts that the kernel can be set to.
pub(super) const KERNEL_TIMEOUTS: RangeInclusive<Time> = Time::from_secs(1)..=Time::from_secs(120);

/// TCP's largest window.
const MOST_WINDOW: u64 = 1 << 30;

/// Bytes that the kernel lets a receive buffer grow to, if nobody asks for more.
const MOST_MEMORY: u64 = 6 << 20;

/// The kernel's memory for fragments, and seconds until it gives a message up. Where its memory is
/// full it refuses new messages, and a receiver of a scenario gives up the oldest one; so it gets
/// plenty, and the shortest time that there is.
const FRAGMENTS: [(&str, &str); 2] = [("ipfrag_high_thresh", "268435456"), ("ipfrag_time", "1")];

/// The experiment of a scenario that was not refused.
pub(super) fn experiment(plan: &RunPlan, controllers: &Controllers) -> Result<Experiment, Failure> {
    let cpus = Cpus::split().map_err(anyhow::Error::from)?;
    Ok(Experiment {
        switch: switch(plan, &cpus)?,
        lab: lab_plan(plan, &controllers.usual, cpus),
        workload: workload(plan)?,
        controllers: controllers.of_flows(plan),
        seed: plan.scenario.config.seed,
        applications: applications(plan)?,
        goodput_every: goodput_every(plan),
        probes: probes(plan)?,
        commands: commands(plan)?,
        outputs: None,
        until: plan.until,
        xco: xco::plan(plan),
        stages: plan.hosts.stages.clone(),
    })
}

/// The largest packet of a host.
pub(super) fn mtu(plan: &RunPlan) -> u32 {
    plan.scenario.config.transport.segment + plan.scenario.config.transport.header
}

/// Bytes of the window that a receiver offers, if the scenario has one that is smaller than usual.
fn receive_window(transport: &TcpConfig) -> Option<u64> {
    let usual = TcpConfig::default().receive_window;
    let usual = usual.min(u32::MAX / transport.segment);
    let window = u64::from(transport.receive_window) * u64::from(transport.segment);
    (transport.receive_window < usual && window < MOST_WINDOW).then_some(window)
}

/// Milliseconds of the longest timeout, if the scenario has one of its own that the kernel can have.
fn longest_timeout(transport: &TcpConfig) -> Option<String> {
    let maximum = transport.rto.maximum;
    let is_own = maximum != RtoConfig::default().maximum;
    (is_own && KERNEL_TIMEOUTS.contains(&maximum))
        .then(|| (maximum.ps() / Time::from_ms(1).ps()).to_string())
}

fn lab_plan(plan: &RunPlan, controller: &Chosen, cpus: Cpus) -> LabPlan {
    let transport = &plan.scenario.config.transport;
    let set = |name: &str, value: String| (format!("net.ipv4.{name}"), value);
    let on = |yes: bool| u8::from(yes).to_string();
    let minimum = transport.rto.minimum.ps() / 1_000_000;
    let mut settings = vec![
        set("tcp_ecn", on(transports::hosts_use_ecn(plan))),
        set("tcp_rto_min_us", minimum.max(1).to_string()),
        set("tcp_sack", on(transport.recovery != Recovery::NewReno)),
        set(
            "tcp_slow_start_after_idle",
            on(transport.after_idle != AfterIdle::Keep),
        ),
        set("tcp_no_metrics_save", on(true)),
    ];
    if !plan.workload.streams.is_empty() {
        settings.extend(FRAGMENTS.map(|(name, value)| set(name, value.to_owned())));
    }
    let mut route = vec![("initcwnd".to_owned(), transport.initial_window.to_string())];
    let name = controller.name.clone();
    if controller.may_be_default() {
        settings.push(set("tcp_congestion_control", name));
    } else {
        // Namespaces may not make it their default, but may have it on a route.
        route.push(("congctl".to_owned(), name));
    }
    if transport.delayed_ack.is_none() {
        route.push(("quickack".to_owned(), on(true)));
    }
    settings.extend(longest_timeout(transport).map(|value| set("tcp_rto_max_ms", value)));
    if let Some(window) = receive_window(transport) {
        route.push(("window".to_owned(), window.to_string()));
        let memory = MOST_MEMORY.max(2 * window);
        settings.push(set("tcp_rmem", format!("4096 131072 {memory}")));
    }
    LabPlan {
        hosts: xco::lab_hosts(plan),
        mtu: mtu(plan),
        settings,
        route,
        cpus,
    }
}

fn switch(plan: &RunPlan, cpus: &Cpus) -> Result<SwitchConfig, Diagnostic> {
    let fabric = &plan.fabric;
    Ok(SwitchConfig {
        cpu: cpus.switch,
        nice: Some(-20),
        wait: match cpus.switch {
            Some(_) => Wait::Poll,
            None => Wait::Block,
        },
        forwarding: Forwarding::Static,
        stations_per_port: STATIONS_PER_PORT,
        classify: shallows_live::switch::Classify::Dscp,
        seed: plan.scenario.config.seed,
        metrics: None,
        fidelity: FidelityConfig::default(),
        sample: Some(SampleConfig {
            every: sample_every(plan),
        }),
        pool: plan.ports.pool,
        egress: plan.ports.switches.clone(),
        ports: gates(plan)?
            .numbered()
            .map(|(host, gates)| port(plan, host, gates.clone()))
            .chain(xco::extra_ports(plan))
            .collect(),
        trunks: trunks(fabric).map(trunk).collect(),
    })
}

/// The interval of the switch's samples: that of the most frequent probe of queues.
fn sample_every(plan: &RunPlan) -> Time {
    let probes = [&plan.probes.queues, &plan.probes.throughput];
    let intervals = probes.into_iter().flatten().map(|of| of.interval);
    intervals.fold(SAMPLE_EVERY, Time::min)
}

/// The interval at which bytes that have arrived are noted.
fn goodput_every(plan: &RunPlan) -> Time {
    let interval = plan.probes.goodput.as_ref().map(|of| of.interval);
    interval.map_or(GOODPUT_EVERY, |interval| interval.min(GOODPUT_EVERY))
}

/// The gates of all hosts, which stand before their uplinks in the switch: the kernel has no qdisc
/// that holds packets back by level.
fn gates(plan: &RunPlan) -> Result<IdVec<HostId, Vec<HostGateConfig>>, Diagnostic> {
    let (framing, seed) = (plan.ports.hosts.framing, plan.scenario.config.seed);
    let gates = plan.hosts.gates(&plan.fabric, framing, seed);
    gates.map_err(|error| plan.scenario.error_in("hosts.qjump", &error))
}

fn port(plan: &RunPlan, host: HostId, gates: Vec<HostGateConfig>) -> PortPlan {
    let fabric = &plan.fabric;
    let (uplink, downlink) = (fabric.uplink(host), fabric.downlink(host));
    let (up, down) = (fabric.link(uplink), fabric.link(downlink));
    let number = host.index();
    PortPlan {
        delay: plan.ports.delay(fabric, downlink),
        bridge: bridge(down.from),
        uplink: Some(UplinkPlan {
            rate: up.rate,
            delay: up.propagation,
            egress: plan.ports.config(fabric, uplink).clone(),
            gates,
        }),
        egress: plan.ports.special.get(&downlink).cloned(),
        stations: vec![lab::station(number).to_string()],
        ..PortPlan::new(lab::port(number), down.rate)
    }
}

/// One direction of each cable between switches.
pub(super) fn trunks(fabric: &Fabric) -> impl Iterator<Item = &Link> {
    fabric.core_links().map(|(_, link)| link).step_by(2)
}

fn trunk(link: &Link) -> TrunkPlan {
    TrunkPlan {
        between: [bridge(link.from), bridge(link.to)],
        rate: link.rate,
        delay: link.propagation,
        egress: None,
    }
}

fn bridge(node: Node) -> usize {
    match node {
        Node::Switch(switch) => switch as usize,
        Node::Host(_) => unreachable!("cables end at a switch"),
    }
}

/// The flows, with the levels that QJUMP gives them by their sizes.
fn workload(plan: &RunPlan) -> Result<Arc<Workload>, Diagnostic> {
    let qjump = plan.scenario.config.hosts.qjump.as_ref();
    let mut workload = Arc::clone(&plan.workload);
    if let Some(qjump) = qjump.filter(|qjump| qjump.by_size.is_some()) {
        qjump.choose_levels(Arc::make_mut(&mut workload));
    }
    for flow in &workload.flows {
        dscp(plan, "workload", flow.service)?;
    }
    Ok(workload)
}

fn probes(plan: &RunPlan) -> Result<Vec<(usize, ProbePlan)>, Diagnostic> {
    let probe = |(index, pings): (usize, &Pings)| {
        let plan = ProbePlan {
            to: lab::address(pings.to.index()),
            dscp: dscp(plan, &format!("probes.ping.{index}"), pings.service)?,
            start: pings.start.to_duration(),
            every: pings.interval.to_duration(),
        };
        Ok((pings.from.index(), plan))
    };
    plan.probes.pings.iter().enumerate().map(probe).collect()
}

fn applications(plan: &RunPlan) -> Result<Vec<ApplicationSetup>, Diagnostic> {
    let applications = plan.applications.clone();
    for (index, application) in applications.iter().enumerate() {
        dscp(plan, &format!("application.{index}"), application.service)?;
    }
    Ok(applications)
}

fn commands(plan: &RunPlan) -> Result<Vec<CommandPlan>, Diagnostic> {
    let mut plans = Vec::new();
    for command in &plan.scenario.config.live.commands {
        let LiveCommand {
            host,
            run,
            start,
            role,
            timeout,
            may_fail,
            as_root,
            outside,
            // Read from what it prints.
            latencies: _,
        } = command;
        let hosts = host.resolve(&plan.fabric);
        for host in hosts.map_err(|error| plan.scenario.error_in("live", &error))? {
            plans.push(CommandPlan {
                host: host.index(),
                start: *start,
                line: run.clone(),
                awaited: *role == Role::Client,
                timeout: *timeout,
                user: if *as_root {
                    CommandUser::Root
                } else {
                    CommandUser::Unprivileged
                },
                place: if *outside {
                    CommandPlace::Outside
                } else {
                    CommandPlace::Inside
                },
                may_fail: *may_fail,
            });
        }
    }
    Ok(plans)
}

/// The DSCP that a service's packets carry.
fn dscp(plan: &RunPlan, table: &str, service: u16) -> Result<u8, Diagnostic> {
    u8::try_from(service)
        .ok()
        .filter(|dscp| *dscp < 64)
        .ok_or_else(|| {
            let problem = format!("service {service} has no DSCP: packets carry services 0 to 63");
            plan.scenario.error(table, problem)
        })
}

/// Ideal completion times: as for a simulated flow up to its sender's last ACK, because the path of
/// a live flow's request is as long as that of an ACK.
pub fn ideal_fcts(plan: &RunPlan) -> Result<Vec<Time>, Failure> {
    // Connections are open before the run.
    let moments = (Connections::Persistent, Completion::Sender);
    ideal::fcts(plan, moments, Interrupt::Never)
}
