//! From a scenario to an experiment, or to the reason why it cannot be run live.

use std::time::Duration;

use shallows_core::application::{ApplicationConfig, Members, Span};
use shallows_core::port::SchedulerConfig;
use shallows_core::tcp::{AfterIdle, EcnEcho, Recovery};
use shallows_core::units::{Rate, Time};
use shallows_live::command::{CommandPlace, CommandPlan, CommandUser};
use shallows_live::experiment::Experiment;
use shallows_live::lab::{self, Cpus, LabPlan};
use shallows_live::switch::{
    FidelityConfig, Forwarding, GatePlan, PortPlan, STATIONS_PER_PORT, SampleConfig, SwitchConfig,
    TrunkPlan, UplinkPlan, Wait,
};
use shallows_live::traffic::{ApplicationPlan, Barrier, Flow, ProbePlan};
use shallows_sim::topology::{Fabric, Node, TopologyConfig};
use shallows_sim::workload::{FlowSpec, HostSet};
use shallows_sim::{ApplicationEntry, Completion, HostSetup};

use super::controller::Chosen;
use super::xco;
use crate::failure::Failure;
use crate::ideal::{self, Handshake};
use crate::scenario::{Built, Diagnostic, Probe, Role, Scenario};

/// What a CPU for the switch and one for the hosts carry.
const MOST_RATE: Rate = Rate::from_gbps(1);

/// What they carry exactly, and what refusals suggest.
const GOOD_RATE: Rate = Rate::from_mbps(200);

/// From one sample of the queues to the next.
pub const SAMPLE_EVERY: Time = Time::from_ms(1);

/// Refuses what cannot run live at this scale, before anything is made.
pub(super) fn refuse(
    scenario: &Scenario,
    built: &Built,
    scale: Option<f64>,
) -> Result<(), Diagnostic> {
    let config = &scenario.config;
    refuse_topology(scenario)?;
    refuse_what_is_simulated_only(scenario, built)?;
    let fabric = &built.fabric;
    xco::refuse(scenario, fabric)?;
    let hosts = xco::lab_hosts(scenario, fabric);
    if !(2..=lab::MOST_HOSTS).contains(&hosts) {
        let problem = format!("a live run has 2 to {} hosts, not {hosts}", lab::MOST_HOSTS);
        return Err(scenario.error("topology", problem));
    }
    let fastest = fabric.links().iter().map(|link| link.rate).max();
    let fastest = fastest.unwrap_or(GOOD_RATE);
    let scaled = fastest.bps() as f64 * scale.unwrap_or(1.0);
    if scaled > MOST_RATE.bps() as f64 {
        let problem = format!(
            "a link of {} is more than this machine can carry live",
            Rate::from_bps(scaled as u64)
        );
        let factor = GOOD_RATE.bps() as f64 / fastest.bps() as f64;
        return Err(scenario.error("topology", problem).help(format!(
            "--scale {factor:.4} makes {GOOD_RATE} of {fastest} and all times longer by as much, \
             so that nothing changes in units of packets"
        )));
    }
    if config.ports.switch.scheduler == SchedulerConfig::Pfabric {
        let problem = "pfabric needs the remaining size of a flow in every packet, and the \
                       kernel's packets do not have it";
        let help = "choose strict or dwrr, or simulate it";
        return Err(scenario.error("ports.switch", problem).help(help));
    }
    Ok(())
}

fn refuse_topology(scenario: &Scenario) -> Result<(), Diagnostic> {
    let name = match scenario.config.topology {
        TopologyConfig::LeafSpine { spines: 1, .. }
        | TopologyConfig::Star { .. }
        | TopologyConfig::Dumbbell { .. }
        | TopologyConfig::Chain { .. }
        | TopologyConfig::Custom { .. } => return Ok(()),
        TopologyConfig::LeafSpine { .. } => "leaf-spine",
        TopologyConfig::FatTree { .. } => "fat-tree",
    };
    let problem = format!("a {name} has several ways between hosts, and live switches have one");
    let help = "nearest are star, for one rack, and dumbbell, for two racks and what is between \
                them, or spines = 1: topology.star = { hosts = 8, rate = \"200Mbps\", delay = \"50us\" }";
    Err(scenario.error("topology", problem).help(help))
}

/// Refuses what the hosts and links of a simulation can have and those of a lab cannot.
fn refuse_what_is_simulated_only(scenario: &Scenario, built: &Built) -> Result<(), Diagnostic> {
    let config = &scenario.config;
    // What is new here has to be set up below or refused.
    let HostSetup {
        stages,
        qjump: _,
        xco: _,
    } = &config.hosts;
    let trunks = 2 * built.fabric.hosts()..;
    let refused = [
        (
            !config.links.is_empty(),
            "links",
            "links with faults are simulated only",
        ),
        (
            config.application.iter().any(opens_connections),
            "application",
            "short connections are simulated only: live applications keep theirs",
        ),
        (
            !config.application.is_empty() && config.until.is_none(),
            "application",
            "a live run does not know when its applications are done",
        ),
        (
            !config.transports.is_empty(),
            "transports",
            "transports of some services or hosts are simulated only: a lab's hosts are all alike",
        ),
        (
            stages.is_some(),
            "hosts",
            "stages are simulated only: how much of a flow a packet of the kernel carries is known \
             too late to tag it",
        ),
        (
            !built.workload.datagrams.is_empty(),
            "workload",
            "UDP flows are simulated only",
        ),
        (
            config.ports.pause.is_some(),
            "ports.pause",
            "pauses are simulated only: virtual devices do not obey pause frames",
        ),
        (
            built.ports.special.keys().any(|link| trunks.contains(link)),
            "ports",
            "special ports between switches are simulated only",
        ),
    ];
    match refused.into_iter().find(|(found, ..)| *found) {
        Some((_, table, problem)) => {
            let help = match table {
                "application" if config.until.is_none() => "set until at the top of the file",
                _ => "leave it out, or simulate it; live.commands can run any program",
            };
            Err(scenario.error(table, problem).help(help))
        }
        None => Ok(()),
    }
}

fn opens_connections(entry: &ApplicationEntry) -> bool {
    matches!(entry.run, ApplicationConfig::ShortConnections(_))
}

/// The experiment of a scenario that was not refused.
pub(super) fn experiment(
    scenario: &Scenario,
    built: &Built,
    controller: &Chosen,
) -> Result<Experiment, Failure> {
    let cpus = Cpus::split().map_err(anyhow::Error::from)?;
    Ok(Experiment {
        switch: switch(scenario, built, &cpus),
        lab: lab_plan(scenario, built, controller, cpus),
        flows: flows(scenario, built)?,
        barriers: barriers(built),
        applications: applications(scenario, &built.fabric)?,
        probes: probes(scenario, &built.fabric)?,
        commands: commands(scenario, &built.fabric)?,
        outputs: None,
        until: scenario.config.until,
        xco: xco::plan(scenario, built),
    })
}

fn lab_plan(scenario: &Scenario, built: &Built, controller: &Chosen, cpus: Cpus) -> LabPlan {
    let transport = &scenario.config.transport;
    let set = |name: &str, value: String| (format!("net.ipv4.{name}"), value);
    let on = |yes: bool| u8::from(yes).to_string();
    let minimum = transport.rto.minimum.ps() / 1_000_000;
    let mut settings = vec![
        set("tcp_ecn", on(transport.echo() != EcnEcho::Off)),
        set("tcp_rto_min_us", minimum.max(1).to_string()),
        set("tcp_sack", on(transport.recovery != Recovery::NewReno)),
        set(
            "tcp_slow_start_after_idle",
            on(transport.after_idle != AfterIdle::Keep),
        ),
        set("tcp_no_metrics_save", on(true)),
    ];
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
    LabPlan {
        hosts: xco::lab_hosts(scenario, &built.fabric),
        mtu: transport.segment + transport.header,
        settings,
        route,
        cpus,
    }
}

fn switch(scenario: &Scenario, built: &Built, cpus: &Cpus) -> SwitchConfig {
    let fabric = &built.fabric;
    let hosts = 0..fabric.hosts();
    let host_links = 2 * fabric.hosts();
    let trunks = (host_links..fabric.links().len() as u32).step_by(2);
    SwitchConfig {
        cpu: cpus.switch,
        nice: Some(-20),
        wait: match cpus.switch {
            Some(_) => Wait::Poll,
            None => Wait::Block,
        },
        forwarding: Forwarding::Static,
        stations_per_port: STATIONS_PER_PORT,
        classify: shallows_live::switch::Classify::Dscp,
        seed: scenario.config.seed,
        metrics: None,
        fidelity: FidelityConfig::default(),
        sample: Some(SampleConfig {
            every: SAMPLE_EVERY,
        }),
        pool: built.ports.pool,
        egress: built.ports.switches.clone(),
        ports: hosts
            .map(|host| port(scenario, built, host))
            .chain(xco::extra_ports(scenario, built))
            .collect(),
        trunks: trunks.map(|link| trunk(fabric, link)).collect(),
    }
}

/// QJUMP's limits of a host, which stand before its uplink in the switch: the kernel has no qdisc
/// that holds packets back by level.
fn gate(scenario: &Scenario, built: &Built, host: u32) -> Option<GatePlan> {
    let qjump = scenario.config.hosts.qjump.as_ref()?;
    // Limits that make no sense were refused with the scenario.
    let limits = qjump.limits(&built.fabric).ok()?;
    Some(GatePlan {
        start: qjump.first_epoch(&limits, host, scenario.config.seed),
        hold_limit: qjump.hold_limit,
        automatic: qjump.automatic.clone(),
        limits,
    })
}

fn port(scenario: &Scenario, built: &Built, host: u32) -> PortPlan {
    let fabric = &built.fabric;
    let (uplink, downlink) = (fabric.uplink(host), fabric.downlink(host));
    let (up, down) = (fabric.link(uplink), fabric.link(downlink));
    let number = host as usize;
    PortPlan {
        delay: built.ports.delay(fabric, downlink),
        bridge: bridge(down.from),
        uplink: Some(UplinkPlan {
            rate: up.rate,
            delay: up.propagation,
            egress: built.ports.config(fabric, uplink).clone(),
            gate: gate(scenario, built, host),
        }),
        egress: built.ports.special.get(&downlink).cloned(),
        stations: vec![lab::station(number).to_string()],
        ..PortPlan::new(lab::port(number), down.rate)
    }
}

fn trunk(fabric: &Fabric, link: u32) -> TrunkPlan {
    let link = fabric.link(link);
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
        Node::Host(_) => unreachable!("hosts have one cable, to a switch"),
    }
}

fn flows(scenario: &Scenario, built: &Built) -> Result<Vec<Flow>, Diagnostic> {
    let workload = &built.workload;
    let flow = |spec: &FlowSpec| {
        Ok(Flow {
            start: (spec.start != FlowSpec::AT_BARRIER).then_some(spec.start),
            src: spec.src as usize,
            dst: spec.dst as usize,
            bytes: (spec.bytes != FlowSpec::ENDLESS).then_some(spec.bytes),
            stop: None,
            dscp: dscp(scenario, "workload", spec.service)?,
        })
    };
    let mut flows: Vec<Flow> = workload.flows.iter().map(flow).collect::<Result<_, _>>()?;
    for stop in &workload.stops {
        flows[stop.flow as usize].stop = Some(stop.at);
    }
    Ok(flows)
}

fn probes(scenario: &Scenario, fabric: &Fabric) -> Result<Vec<(usize, ProbePlan)>, Diagnostic> {
    let probe = |probe: &Probe| {
        let host = |set: &HostSet| {
            set.one(fabric)
                .map_err(|error| scenario.error_in("live", &error))
        };
        let plan = ProbePlan {
            to: lab::address(host(&probe.to)? as usize),
            dscp: dscp(scenario, "live", probe.service)?,
            every: Duration::from_nanos(probe.every.ps() / 1_000),
        };
        Ok((host(&probe.from)? as usize, plan))
    };
    scenario.config.live.probes.iter().map(probe).collect()
}

fn applications(scenario: &Scenario, fabric: &Fabric) -> Result<Vec<ApplicationPlan>, Diagnostic> {
    let plan = |(index, entry): (usize, &ApplicationEntry)| {
        let path = format!("application.{index}");
        let resolve = |set: &HostSet| {
            set.resolve(fabric)
                .map_err(|error| scenario.error_in(&path, &error))
        };
        let clients = resolve(&entry.clients)?;
        let servers = entry.servers.as_ref().map(resolve).transpose()?;
        let servers = servers.unwrap_or_default();
        Ok(ApplicationPlan {
            name: entry.name().to_owned(),
            dscp: dscp(scenario, &path, entry.service)?,
            members: Members {
                clients: clients.len() as u32,
                servers: servers.len() as u32,
            },
            hosts: clients
                .into_iter()
                .chain(servers)
                .map(|host| host as usize)
                .collect(),
            span: Span {
                start: entry.start,
                stop: entry.stop,
            },
            config: entry.run.clone(),
        })
    };
    let entries = scenario.config.application.iter().enumerate();
    entries.map(plan).collect()
}

fn commands(scenario: &Scenario, fabric: &Fabric) -> Result<Vec<CommandPlan>, Diagnostic> {
    let mut plans = Vec::new();
    for command in &scenario.config.live.commands {
        let hosts = command.host.resolve(fabric);
        for host in hosts.map_err(|error| scenario.error_in("live", &error))? {
            plans.push(CommandPlan {
                host: host as usize,
                start: command.start,
                line: command.run.clone(),
                awaited: command.role == Role::Client,
                timeout: command.timeout,
                user: if command.as_root {
                    CommandUser::Root
                } else {
                    CommandUser::Unprivileged
                },
                place: if command.outside {
                    CommandPlace::Outside
                } else {
                    CommandPlace::Inside
                },
                may_fail: command.may_fail,
            });
        }
    }
    Ok(plans)
}

/// The DSCP that a service's packets carry.
fn dscp(scenario: &Scenario, table: &str, service: u16) -> Result<u8, Diagnostic> {
    u8::try_from(service)
        .ok()
        .filter(|dscp| *dscp < 64)
        .ok_or_else(|| {
            let problem = format!("service {service} has no DSCP: packets carry services 0 to 63");
            scenario.error(table, problem)
        })
}

fn barriers(built: &Built) -> Vec<Barrier> {
    let positions = |flows: &[u32]| flows.iter().map(|&flow| flow as usize).collect();
    let barriers = built.workload.barriers.iter();
    barriers
        .map(|barrier| Barrier {
            waits_for: positions(&barrier.waits_for),
            releases: positions(&barrier.releases),
            pause: barrier.pause,
        })
        .collect()
}

/// What flows would take alone: as for a simulated flow up to its sender's last ACK, because the
/// way of a live flow's request is as long as that of an ACK.
pub fn ideal_fcts(scenario: &Scenario, built: &Built) -> Result<Vec<Time>, Failure> {
    Ok(ideal::fcts(
        scenario,
        built,
        Handshake::None,
        Completion::Sender,
    )?)
}
