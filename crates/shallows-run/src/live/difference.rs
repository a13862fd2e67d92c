//! Keys that a live run cannot honour: the kernel decides, or a lab works otherwise.
//!
//! A scenario that asks for one is refused, unless `live.ignore` names the key.

use std::fmt::Write as _;

use shallows_core::tcp::{
    AckCount, AfterIdle, ControllerConfig, DelayedAck, EcnEcho, Growth, MarkedGrowth, Recovery,
    RtoConfig, TcpConfig,
};
use shallows_core::units::Time;
use shallows_model::{Completion, Connections, XcoConfig};

use super::plan::KERNEL_TIMEOUTS;
use crate::plan::RunPlan;
use crate::scenario::{Diagnostic, ProbesConfig, Scenario};

/// A key and the behaviour of live runs instead of it.
struct Difference {
    key: &'static str,
    live: &'static str,
}

/// All of them.
const DIFFERENCES: [Difference; 22] = [
    Difference {
        key: "completion",
        live: "a flow is complete when its client, which has asked for it, has the last byte",
    },
    Difference {
        key: "connections",
        live: "flows share connections that are open before the run and last for all of it",
    },
    Difference {
        key: "hosts.xco.delay",
        live: "messages cross the links of the lab and take as long as that takes",
    },
    Difference {
        key: "hosts.xco.dscp",
        live: "messages carry DSCP 0",
    },
    Difference {
        key: "probes.capture",
        live: "packets are not captured",
    },
    Difference {
        key: "probes.flows",
        live: "the kernel's windows are not sampled",
    },
    Difference {
        key: "probes.rtt",
        live: "the kernel's round-trip times are not recorded",
    },
    Difference {
        key: "probes.sojourn",
        live: "waiting times of frames are not recorded",
    },
    Difference {
        key: "transport.after-idle",
        live: "an idle connection keeps its window or restarts with at most the initial one",
    },
    Difference {
        key: "transport.delayed-ack.count",
        live: "the kernel answers at once when more than a full segment waits",
    },
    Difference {
        key: "transport.delayed-ack.every",
        live: "the kernel answers every second segment",
    },
    Difference {
        key: "transport.duplicate-acks",
        live: "the kernel finds losses by time (RACK), or by three duplicate ACKs",
    },
    Difference {
        key: "transport.ecn",
        live: "the kernel's echo is precise for dctcp and ear, and classic for the others",
    },
    Difference {
        key: "transport.ect-acks",
        live: "the kernel's ACKs are ECN-capable with dctcp, ear and ecn-star only",
    },
    Difference {
        key: "transport.growth",
        live: "the kernel has a congestion avoidance of its own",
    },
    Difference {
        key: "transport.handshake",
        live: "connections are open before their first flow starts",
    },
    Difference {
        key: "transport.least-window",
        live: "the kernel's least window is 2 segments",
    },
    Difference {
        key: "transport.limited-transmit",
        live: "the kernel always has limited transmit",
    },
    Difference {
        key: "transport.marked-growth",
        live: "the kernel's window never grows with a marked ACK",
    },
    Difference {
        key: "transport.recovery",
        live: "the kernel has \"sack\" and \"new-reno\"",
    },
    Difference {
        key: "transport.rto.granularity",
        live: "the kernel has a clock of its own",
    },
    Difference {
        key: "transport.rto.maximum",
        live: "the kernel's longest timeout, in the time of the lab, is 1 to 120 seconds",
    },
];

/// Refuses a scenario that asks for what a live run at this scale cannot do, unless it says that
/// this may be ignored.
pub(super) fn refuse(plan: &RunPlan, scale: f64) -> Result<(), Diagnostic> {
    let scenario = &plan.scenario;
    let ignored = &scenario.config.live.ignore;
    let known = || DIFFERENCES.iter().map(|difference| difference.key);
    for (place, key) in ignored.iter().enumerate() {
        if !known().any(|known| known == key) {
            let path = format!("live.ignore.{place}");
            let known: Vec<&str> = known().collect();
            return Err(scenario.unknown_name(&path, key, &known));
        }
    }
    for Asked { key, path } in asked(plan, scale) {
        let mut differences = DIFFERENCES.iter().filter(|of| of.key == key);
        let is_ignored = ignored.iter().any(|ignored| ignored == key);
        if let Some(Difference { live, .. }) = differences.find(|_| !is_ignored) {
            let problem = format!("a live run cannot honour {path}: {live}");
            let help = format!(
                "leave it out, simulate it, or accept the difference with live.ignore = [\"{key}\"]"
            );
            return Err(scenario.error(&path, problem).help(help));
        }
    }
    Ok(())
}

/// The differences that a scenario has accepted or that need no consent, line by line.
pub(super) fn describe(scenario: &Scenario) -> String {
    let mut lines = String::new();
    for of in &DIFFERENCES {
        if scenario.config.live.ignore.iter().any(|key| key == of.key) {
            let _ = writeln!(lines, "{} is ignored: {}", of.key, of.live);
        }
    }
    for (key, live) in [
        (
            "transport.rto.initial",
            "it is the kernel's 1s until a round-trip time is known",
        ),
        (
            "transport.delayed-ack.timeout",
            "it is the kernel's 40ms to 200ms",
        ),
    ] {
        if scenario.has(key) {
            let _ = writeln!(lines, "{key} is for simulations: {live}");
        }
    }
    lines
}

/// A key by which a scenario asks for something that a live run does not do.
struct Asked {
    key: &'static str,
    /// The key, or its place in `[[transports]]`.
    path: String,
}

impl From<&'static str> for Asked {
    fn from(key: &'static str) -> Self {
        let path = key.to_owned();
        Self { key, path }
    }
}

/// All of them.
fn asked(plan: &RunPlan, scale: f64) -> Vec<Asked> {
    let scenario = &plan.scenario;
    let config = &scenario.config;
    // Files that this program writes have all keys; what is a default there asks for nothing.
    let is_written = |key: &str| config.version.is_none() && scenario.has(key);
    let connections = match config.connections {
        Connections::PerFlow => is_written("connections"),
        Connections::Persistent => false,
        Connections::WarmedUp => true,
    };
    let ProbesConfig {
        rtt,
        sojourn,
        capture,
        flows,
        // Sampled by the switch, and by the receivers.
        queues: _,
        throughput: _,
        goodput: _,
        // ICMP.
        ping: _,
    } = &config.probes;
    let usual = of_transport(&config.transport, scale);
    let mut asked: Vec<Asked> = usual.iter().copied().map(Asked::from).collect();
    for (index, special) in plan.overrides.iter().enumerate() {
        let own = of_transport(&special.transport, scale);
        asked.extend(own.iter().filter(|key| !usual.contains(key)).map(|key| {
            let path = key.replace("transport.", &format!("transports.{index}.set."));
            Asked { key, path }
        }));
    }
    asked.extend(
        [
            (config.completion == Completion::Receiver, "completion"),
            (connections, "connections"),
            (!capture.0.is_empty(), "probes.capture"),
            (flows.is_some(), "probes.flows"),
            (*rtt, "probes.rtt"),
            (!sojourn.0.is_empty(), "probes.sojourn"),
        ]
        .into_iter()
        .filter_map(|(is_asked, key)| is_asked.then_some(Asked::from(key))),
    );
    if let Some(xco) = &config.hosts.xco {
        let usual = XcoConfig::default();
        if xco.controller.is_none() && xco.delay != usual.delay {
            asked.push("hosts.xco.delay".into());
        }
        if xco.dscp != usual.dscp {
            asked.push("hosts.xco.dscp".into());
        }
    }
    asked
}

/// Those of the transport.
fn of_transport(transport: &TcpConfig, scale: f64) -> Vec<&'static str> {
    let TcpConfig {
        least_window,
        rto,
        delayed_ack,
        ect_acks,
        growth,
        marked_growth,
        handshake,
        recovery,
        limited_transmit,
        duplicate_acks,
        after_idle,
        controller,
        // By its effect.
        ecn: _,
        // Settings of the lab.
        segment: _,
        header: _,
        initial_window: _,
        receive_window: _,
    } = transport;
    let usual = TcpConfig::default();
    let is_precise = matches!(
        controller,
        ControllerConfig::Dctcp(_) | ControllerConfig::Ear(_)
    );
    let marks_acks = is_precise || matches!(controller, ControllerConfig::EcnStar {});
    let window = (
        ![usual.least_window, 2].contains(least_window),
        "transport.least-window",
    );
    let others = [
        (
            transport.echo() == EcnEcho::Precise && !is_precise,
            "transport.ecn",
        ),
        (*ect_acks && !marks_acks, "transport.ect-acks"),
        (*growth != Growth::default(), "transport.growth"),
        (
            *marked_growth != MarkedGrowth::Never,
            "transport.marked-growth",
        ),
        (*handshake, "transport.handshake"),
        (*recovery == Recovery::FullTcp, "transport.recovery"),
        (!limited_transmit, "transport.limited-transmit"),
        (
            *duplicate_acks != usual.duplicate_acks,
            "transport.duplicate-acks",
        ),
        (
            *after_idle == AfterIdle::InitialWindow,
            "transport.after-idle",
        ),
    ];
    let asked = [window].into_iter().chain(of_rto(rto, scale));
    let asked = asked.chain(delayed_ack.iter().flat_map(of_delayed_ack));
    let asked = asked.chain(others).filter(|(is_asked, _)| *is_asked);
    asked.map(|(_, key)| key).collect()
}

/// Those of timeouts. The kernel's times are not scaled, and so are compared with what the
/// scenario's become.
fn of_rto(rto: &RtoConfig, scale: f64) -> [(bool, &'static str); 2] {
    let RtoConfig {
        maximum,
        granularity,
        // A setting of the lab, and one for simulations only, which the report says.
        minimum: _,
        initial: _,
    } = rto;
    let usual = RtoConfig::default();
    let in_lab = Time::from_ps((maximum.ps() as f64 / scale) as u64);
    [
        (
            *maximum != usual.maximum && !KERNEL_TIMEOUTS.contains(&in_lab),
            "transport.rto.maximum",
        ),
        (
            *granularity != usual.granularity,
            "transport.rto.granularity",
        ),
    ]
}

/// Those of delayed ACKs.
fn of_delayed_ack(delayed_ack: &DelayedAck) -> [(bool, &'static str); 2] {
    let DelayedAck {
        every,
        count,
        // For simulations only, which the report says.
        timeout: _,
    } = delayed_ack;
    [
        (*every != 2, "transport.delayed-ack.every"),
        (*count != AckCount::default(), "transport.delayed-ack.count"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = r#"
topology.star = { hosts = 3, rate = "1Gbps", delay = "5us" }
ports.switch = { buffer = "unlimited", scheduler = "fifo" }
workload.flows = [{ start = "0s", src = 0, dst = 1, size = "1MB" }]
"#;

    fn refusal(keys: &str) -> Option<String> {
        let scenario: Scenario = format!("{keys}\n{REST}").parse().unwrap();
        let plan = scenario.build().unwrap();
        refuse(&plan, 0.2).err().map(|error| error.to_string())
    }

    #[test]
    fn a_difference_is_refused_with_its_place_unless_it_is_ignored() {
        assert_eq!(refusal(""), None);
        assert_eq!(refusal("connections = \"persistent\""), None);
        let refused = refusal("completion = \"receiver\"").unwrap();
        assert!(refused.contains("cannot honour completion"), "{refused}");
        assert!(refused.contains("scenario:1:1"), "{refused}");
        assert!(
            refused.contains("live.ignore = [\"completion\"]"),
            "{refused}"
        );
        let keys = "completion = \"receiver\"\nlive.ignore = [\"completion\"]";
        assert_eq!(refusal(keys), None);
        let unknown = refusal("live.ignore = [\"completoin\"]").unwrap();
        assert!(
            unknown.contains("did you mean \"completion\"?"),
            "{unknown}"
        );
        assert!(refusal("connections = \"per-flow\"").is_some());
    }

    #[test]
    fn a_difference_of_some_flows_is_refused_at_their_transport() {
        let keys = "transport.controller = \"reno\"\n\
                    transports = [{ services = [0], set = { ecn = \"precise\" } }]";
        let refused = refusal(keys).unwrap();
        assert!(
            refused.contains("cannot honour transports.0.set.ecn"),
            "{refused}"
        );
        assert!(refused.contains("scenario:2:"), "{refused}");
    }

    #[test]
    fn the_kernels_times_are_those_of_the_lab() {
        // 10 s become 50 s, 30 s become 150 s.
        assert_eq!(refusal("transport.rto.maximum = \"10s\""), None);
        assert!(refusal("transport.rto.maximum = \"30s\"").is_some());
    }

    #[test]
    fn a_resolved_scenario_asks_for_no_more_than_its_own() {
        let scenario: Scenario = REST.parse().unwrap();
        let (text, _) = scenario.config.resolved().unwrap();
        let resolved: Scenario = text.parse().unwrap();
        refuse(&resolved.build().unwrap(), 0.2).unwrap();
    }
}
