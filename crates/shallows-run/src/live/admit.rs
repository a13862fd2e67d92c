//! The scenarios that can run live, and the reasons why others cannot.

use shallows_core::host::udp::ReassemblyConfig;
use shallows_core::port::SchedulerConfig;
use shallows_core::units::{Bytes, Rate, Time};
use shallows_live::lab;
use shallows_live::traffic::STREAM_HEADER;
use shallows_model::HostSetup;
use shallows_model::topology::TopologyConfig;

use super::plan as experiment;
use super::transports::Wishes;
use super::{difference, xco};
use crate::plan::RunPlan;
use crate::scenario::{Diagnostic, Ports, Probes, Sampled, ScenarioConfig};

/// Rate that one CPU for the switch and one for the hosts can carry.
const MOST_RATE: Rate = Rate::from_gbps(1);

/// Rate that they carry faithfully, suggested by refusals.
const GOOD_RATE: Rate = Rate::from_mbps(200);

/// The shortest interval of samples of queues: the switch takes them between two frames.
const SHORTEST_SAMPLE: Time = Time::from_us(10);

/// The shortest interval of samples of goodput, which visit every flow.
const SHORTEST_GOODPUT: Time = Time::from_ms(1);

/// Refuses what cannot run live at this scale, before anything is made.
pub(super) fn refuse(plan: &RunPlan, scale: Option<f64>) -> Result<(), Diagnostic> {
    refuse_topology(plan)?;
    refuse_what_is_simulated_only(plan)?;
    refuse_streams(plan)?;
    refuse_intervals(plan, scale.unwrap_or(1.0))?;
    let fabric = &plan.fabric;
    xco::refuse(plan)?;
    Wishes::of(plan)?;
    difference::refuse(plan, scale.unwrap_or(1.0))?;
    let hosts = xco::lab_hosts(plan);
    if !(2..=lab::MOST_HOSTS).contains(&hosts) {
        let problem = format!("a live run has 2 to {} hosts, not {hosts}", lab::MOST_HOSTS);
        return Err(plan.scenario.error("topology", problem));
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
        return Err(plan.scenario.error("topology", problem).help(format!(
            "--scale {factor:.4} makes {GOOD_RATE} of {fastest} and all times longer by as much, \
             so that nothing changes in units of packets"
        )));
    }
    let ports = &plan.ports;
    let mut schedulers = [&ports.switches, &ports.hosts].into_iter();
    let mut schedulers = schedulers.by_ref().chain(ports.special.values());
    if schedulers.any(|port| port.scheduler == SchedulerConfig::Pfabric) {
        let problem = "pfabric needs the remaining size of a flow in every packet, and the \
                       kernel's packets do not have it";
        let help = "choose strict or dwrr, or simulate it";
        return Err(plan
            .scenario
            .error("ports.switch.scheduler", problem)
            .help(help));
    }
    Ok(())
}

fn refuse_topology(plan: &RunPlan) -> Result<(), Diagnostic> {
    if plan.fabric.has_several_nics() {
        let problem = "hosts of a lab have one NIC";
        let error = plan.scenario.error("topology.leaf-spine.nics", problem);
        return Err(error.help("leave it out, or simulate it"));
    }
    let name = match plan.scenario.config.topology {
        TopologyConfig::LeafSpine { spines: 1, .. }
        | TopologyConfig::Star { .. }
        | TopologyConfig::Dumbbell { .. }
        | TopologyConfig::Chain { .. }
        | TopologyConfig::Custom { .. } => return Ok(()),
        TopologyConfig::LeafSpine { .. } => "leaf-spine",
        TopologyConfig::FatTree { .. } => "fat-tree",
    };
    let problem = format!("a {name} has several paths between hosts, and live switches have one");
    let help = "use a tree: star (one rack), dumbbell (two racks) or a leaf-spine with spines = 1, \
                such as topology.star = { hosts = 8, rate = \"200Mbps\", delay = \"50us\" }";
    Err(plan.scenario.error("topology", problem).help(help))
}

/// Refuses what the hosts and links of a simulation can have and those of a lab cannot.
fn refuse_what_is_simulated_only(plan: &RunPlan) -> Result<(), Diagnostic> {
    // What is new here has to be planned, refused here or listed as a difference.
    let ScenarioConfig {
        links,
        application,
        ports,
        hosts,
        until,
        measure,
        // Refused or planned apart.
        transports: _,
        topology: _,
        workload: _,
        live: _,
        // Differences, or planned.
        completion: _,
        connections: _,
        transport: _,
        probes: _,
        // A tree has one path between two hosts.
        routing: _,
        // Results.
        version: _,
        name: _,
        seed: _,
        report: _,
    } = &plan.scenario.config;
    let refused = [
        (
            !links.is_empty(),
            "links",
            "links with faults are simulated only",
        ),
        (
            !application.is_empty() && until.is_none(),
            "application",
            "a live run does not know when its applications are done",
        ),
        (
            application.iter().any(|entry| entry.run.broadcasts()),
            "application",
            "fan-out = \"broadcast\" is simulated only: the hosts of a lab have no common broadcast \
             address",
        ),
        (
            measure.is_some(),
            "measure",
            "measuring windows are simulated only: a live run counts all its flows",
        ),
    ];
    let of_tables = in_hosts(hosts, plan)
        .into_iter()
        .chain(in_ports(ports, plan));
    let mut refused = refused.into_iter().chain(of_tables);
    match refused.find(|(found, ..)| *found) {
        Some((_, table, problem)) => {
            let help = match table {
                "application" if until.is_none() => "set until at the top of the file",
                _ => "leave it out, or simulate it; live.commands can run any program",
            };
            Err(plan.scenario.error(table, problem).help(help))
        }
        None => Ok(()),
    }
}

/// Keys of `[hosts]` that are simulated only: true where the scenario has one, its name, and the
/// problem.
fn in_hosts(hosts: &HostSetup, plan: &RunPlan) -> [(bool, &'static str, &'static str); 2] {
    let HostSetup {
        stages,
        jitter: _,
        qjump: _,
        xco: _,
    } = hosts;
    [
        (
            stages.is_some() && !plan.scenario.config.application.is_empty(),
            "hosts.stages",
            "live, a message of an application cannot be told from the one before, so its stage \
             would count both",
        ),
        (
            stages.is_some() && !plan.workload.streams.is_empty(),
            "hosts.stages",
            "live, stages are those of TCP flows, not of UDP flows",
        ),
    ]
}

/// Those of `[ports]`.
fn in_ports(ports: &Ports, plan: &RunPlan) -> [(bool, &'static str, &'static str); 2] {
    let Ports {
        pause,
        pool: _,
        host_delay: _,
        switch: _,
        host: _,
        special: _,
    } = ports;
    let mut trunks = plan.fabric.core_links();
    [
        (
            pause.is_some(),
            "ports.pause",
            "pauses are simulated only: virtual devices do not obey pause frames",
        ),
        (
            trunks.any(|(link, _)| plan.ports.special.contains_key(&link)),
            "ports.special",
            "special ports between switches are simulated only",
        ),
    ]
}

/// Refuses probes that would hold up the switch or the receivers.
fn refuse_intervals(plan: &RunPlan, scale: f64) -> Result<(), Diagnostic> {
    let Probes {
        queues,
        throughput,
        goodput,
        // Differences.
        watch: _,
        flows: _,
        // Threads of their own, which wait for each answer.
        pings: _,
    } = &plan.probes;
    let probes = [
        ("queues", interval(queues.as_ref()), SHORTEST_SAMPLE),
        ("throughput", interval(throughput.as_ref()), SHORTEST_SAMPLE),
        ("goodput", interval(goodput.as_ref()), SHORTEST_GOODPUT),
    ];
    for (name, interval, shortest) in probes {
        let Some(interval) = interval else { continue };
        let live = Time::from_ps((interval.ps() as f64 / scale) as u64);
        if live < shortest {
            let key = format!("probes.{name}.interval");
            let problem = format!(
                "{key} is {live} in a live run, which samples {name} every {shortest} at most"
            );
            return Err(plan.scenario.error(&key, problem));
        }
    }
    Ok(())
}

fn interval<I>(probe: Option<&Sampled<I>>) -> Option<Time> {
    probe.map(|probe| probe.interval)
}

/// Refuses UDP flows that the kernel cannot send as they are simulated.
fn refuse_streams(plan: &RunPlan) -> Result<(), Diagnostic> {
    let mtu = experiment::mtu(plan);
    for stream in &plan.workload.streams {
        let size = stream.send.size();
        let (problem, help) = if stream.mtu != mtu {
            (
                format!(
                    "live hosts have one MTU, {mtu} bytes (transport.segment and transport.header), \
                     and UDP flows have {}",
                    stream.mtu
                ),
                format!("stream.mtu = {mtu}"),
            )
        } else if size < Bytes::new(STREAM_HEADER as u64) {
            (
                format!(
                    "live, a UDP message says in its first {STREAM_HEADER} bytes which one it is \
                     and when it was sent, and has {size}"
                ),
                "make it longer, or simulate it".to_owned(),
            )
        } else if stream.reassembly != ReassemblyConfig::default() {
            (
                "live, the kernel reassembles messages, with memory and a timeout of its own"
                    .to_owned(),
                "leave out stream.reassembly, or simulate it".to_owned(),
            )
        } else if stream.ect {
            (
                "the marks of UDP packets are not counted live".to_owned(),
                "leave out stream.ect, or simulate it".to_owned(),
            )
        } else {
            continue;
        };
        return Err(plan.scenario.error("workload", problem).help(help));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(rest: &str) -> Option<String> {
        let text = format!(
            r#"
until = "100ms"
topology.star = {{ hosts = 4, rate = "100Mbps", delay = "50us" }}
ports.switch = {{ buffer = "unlimited", scheduler = "fifo" }}
hosts.stages = ["20KB", "1MB"]
{rest}"#
        );
        let scenario: crate::Scenario = text.parse().unwrap();
        let refused = refuse(&scenario.build().unwrap(), None);
        refused.err().map(|error| error.to_string())
    }

    #[test]
    fn hosts_with_several_nics_are_refused_by_name() {
        let text = r#"
until = "100ms"
topology.leaf-spine = { leaves = 2, hosts-per-leaf = 2, spines = 1, nics = 2, host-rate = "100Mbps", host-delay = "10us", fabric-rate = "100Mbps", fabric-delay = "10us" }
ports.switch = { buffer = "unlimited", scheduler = "fifo" }
workload.flows = [{ start = "0s", src = 0, dst = 1, size = "1MB" }]"#;
        let scenario: crate::Scenario = text.parse().unwrap();
        let refused = refuse(&scenario.build().unwrap(), None).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("nics = 2") && said.contains("one NIC"),
            "{said}"
        );
    }

    #[test]
    fn stages_are_those_of_tcp_flows() {
        let flows = r#"workload.flows = [{ start = "0s", src = 0, dst = 1, size = "1MB" }]"#;
        assert_eq!(refusal(flows), None);
        let udp = r#"workload.udp = { src = 0, dst = 1, stop = "10ms", stream = { send = { message = { size = "16KB", interval = "1ms" } } } }"#;
        let refused = refusal(udp).unwrap();
        assert!(refused.contains("not of UDP flows"), "{refused}");
        let application = r#"application = [{ clients = 0, servers = 1, run = { ping = { interval = "1ms" } } }]"#;
        let refused = refusal(application).unwrap();
        assert!(refused.contains("message of an application"), "{refused}");
    }
}
