use std::sync::Arc;
use std::time::Duration;

use shallows_core::application::{Members, Span};
use shallows_core::port::PortConfig;
use shallows_core::units::{Rate, Time};
use shallows_live::command::{CommandPlace, CommandPlan, CommandUser, Ending};
use shallows_live::experiment::{Experiment, Observed};
use shallows_live::lab;
use shallows_live::switch::UplinkPlan;
use shallows_live::traffic::{FlowControllers, Ping, ProbePlan};
use shallows_model::workload::{Barrier, DatagramFlow, FlowSpec, Stop, Workload};
use shallows_model::{ApplicationSetup, FlowId, HostId};

use crate::{need_a_lab, plan, switch_config};

const TWO_QUEUES: &str = "queues = 2
    buffer = { shared = { size = \"96KB\" } }
    scheduler = { dwrr = { quantum = \"1500B\" } }
    marker = { scheme = { mq-ecn = { threshold = \"32KB\" } } }";

fn experiment(hosts: usize, rate: Rate, flows: Vec<FlowSpec>) -> Experiment {
    let workload = Workload {
        flows: flows.into(),
        ..Workload::default()
    };
    Experiment {
        lab: plan(hosts),
        switch: switch_config(hosts, rate, TWO_QUEUES),
        workload: Arc::new(workload),
        controllers: FlowControllers::default(),
        seed: 1,
        applications: Vec::new(),
        goodput_every: shallows_live::traffic::GOODPUT_EVERY,
        probes: Vec::new(),
        commands: Vec::new(),
        outputs: None,
        until: None,
        xco: None,
        stages: None,
    }
}

fn run(experiment: &Experiment) -> Observed {
    experiment.run(&|| false).unwrap()
}

fn flow(src: u32, dst: u32, bytes: u64, service: u16) -> FlowSpec {
    FlowSpec {
        start: Time::ZERO,
        src: HostId(src),
        dst: HostId(dst),
        bytes,
        service,
    }
}

#[test]
fn one_flow_gets_as_much_as_four_in_the_other_queue() {
    need_a_lab!();
    let endless = |src, service| flow(src, 2, FlowSpec::ENDLESS, service);
    let mut flows = vec![endless(0, 0)];
    flows.extend([endless(1, 1); 4]);
    let mut experiment = experiment(3, Rate::from_mbps(20), flows);
    experiment.until = Some(Time::from_secs(4));
    let observed = run(&experiment);
    let rows = &observed.goodput.rows;
    let warm = rows
        .iter()
        .find(|(time, _)| *time > Time::from_secs(1))
        .unwrap();
    let last = rows.last().unwrap();
    let arrived: Vec<f64> = warm
        .1
        .iter()
        .zip(&last.1)
        .map(|(a, b)| (b - a) as f64)
        .collect();
    let share = arrived[0] / (arrived[0] + arrived[1]);
    println!("share {share:.4}, {}", observed.report.snapshot);
    assert!((share - 0.5).abs() < 0.02, "{share}");
    let snapshot = &observed.report.snapshot;
    assert!(snapshot.marks() > 0);
    let marks: u32 = observed.outcomes.iter().map(|outcome| outcome.marks).sum();
    assert!(marks > 0, "senders hear of them");
}

#[test]
fn flows_finish_on_kept_connections_and_barriers_hold() {
    need_a_lab!();
    let mut flows = vec![
        flow(0, 1, 30_000, 0),
        flow(2, 1, 1, 1),
        flow(0, 1, 200_000, 1),
    ];
    flows[1].start = Time::from_ms(50);
    flows[2].start = FlowSpec::AT_BARRIER;
    let mut experiment = experiment(3, Rate::from_mbps(100), flows);
    Arc::make_mut(&mut experiment.workload)
        .barriers
        .push(Barrier {
            waits_for: [0, 1].map(FlowId).to_vec(),
            releases: vec![FlowId(2)],
            pause: Time::from_ms(20),
        });
    let observed = run(&experiment);
    let times: Vec<(Time, Time)> = observed
        .outcomes
        .iter()
        .map(|o| (o.start.unwrap(), o.fct.unwrap()))
        .collect();
    assert!(times[1].0 >= Time::from_ms(50));
    assert!(times[2].0 >= times[1].0 + times[1].1 + Time::from_ms(20));
    // 200 KB at 100 Mbps take 16 ms on the wire.
    assert!(times[2].1 > Time::from_ms(16), "{}", times[2].1);
    let received: Vec<u64> = observed
        .outcomes
        .iter()
        .map(|outcome| outcome.received)
        .collect();
    assert_eq!(received, [30_000, 1, 200_000]);
    let port = &observed.report.snapshot.links[1];
    assert!(
        port.queues.iter().all(|queue| queue.accepted_packets > 0),
        "both DSCPs came"
    );
}

#[test]
fn pings_and_programs_run_beside_flows() {
    need_a_lab!();
    let mut experiment = experiment(2, Rate::from_mbps(100), vec![flow(0, 1, 1000, 0)]);
    let probe = ProbePlan {
        to: lab::address(1),
        dscp: 1,
        start: Duration::from_millis(30),
        every: Duration::from_millis(20),
    };
    experiment.probes.push((0, probe));
    let command = |line: &str, awaited| CommandPlan {
        host: 0,
        start: Time::from_ms(10),
        line: line.to_owned(),
        awaited,
        timeout: Time::from_secs(600),
        user: CommandUser::Unprivileged,
        place: CommandPlace::Inside,
        may_fail: false,
    };
    experiment.commands = vec![
        command("ip -4 addr show eth0; sleep 0.3; echo {h1}", true),
        command("sleep 1000", false),
    ];
    let observed = run(&experiment);
    let printed = String::from_utf8_lossy(&observed.commands[0].stdout.last).into_owned();
    assert!(
        printed.contains("10.83.0.1/16") && printed.contains("10.83.0.2\n"),
        "{printed}"
    );
    assert_eq!(observed.commands[1].ending, Ending::Stopped);
    let answered = observed.pings[0]
        .iter()
        .filter(|ping| ping.rtt.is_some())
        .count();
    assert!(answered >= 5, "{:?}", observed.pings);
    let rtt = observed.pings[0][1].rtt.unwrap();
    assert!(rtt > Time::from_us(10) && rtt < Time::from_secs(1), "{rtt}");
}

/// The sockets of a host all get its echo replies, and sequences run in step.
#[test]
fn a_ping_does_not_take_the_answers_of_another() {
    need_a_lab!();
    let endless = flow(0, 1, FlowSpec::ENDLESS, 0);
    let mut experiment = experiment(2, Rate::from_mbps(100), vec![endless]);
    // Nobody has the second address.
    for to in [lab::address(1), lab::address(200)] {
        let probe = ProbePlan {
            to,
            dscp: 0,
            start: Duration::from_millis(30),
            every: Duration::from_millis(20),
        };
        experiment.probes.push((0, probe));
    }
    experiment.until = Some(Time::from_ms(500));
    let observed = run(&experiment);
    let answered = |pings: &[Ping]| pings.iter().filter(|ping| ping.rtt.is_some()).count();
    assert!(answered(&observed.pings[0]) >= 5, "{:?}", observed.pings);
    assert!(!observed.pings[1].is_empty());
    assert_eq!(answered(&observed.pings[1]), 0, "{:?}", observed.pings);
    // The end of the run is not that of what is taken down after it.
    assert!(
        observed.duration <= Time::from_ms(500),
        "{}",
        observed.duration
    );
}

/// Over streams and datagrams, each with its DSCP and as far apart as their links say.
#[test]
fn applications_of_the_core_run_over_real_sockets() {
    need_a_lab!();
    let application =
        |name: &str, clients: &[u32], servers: &[u32], config: &str| ApplicationSetup {
            name: name.to_owned(),
            service: 1,
            hosts: clients.iter().chain(servers).copied().map(HostId).collect(),
            members: Members {
                clients: clients.len() as u32,
                servers: servers.len() as u32,
            },
            span: Span {
                start: Time::from_ms(20),
                stop: Some(Time::from_ms(1_500)),
            },
            run: toml::from_str(config).unwrap(),
        };
    let mut experiment = experiment(3, Rate::from_mbps(100), Vec::new());
    for port in &mut experiment.switch.ports {
        port.delay = Time::from_ms(2);
    }
    experiment.applications = vec![
        application("echo", &[0], &[1], "ping = { interval = \"10ms\" }"),
        application("naiad", &[0, 1, 2], &[], "barrier = { size = \"64B\" }"),
        application("hadoop", &[1, 2], &[], "shuffle = { size = \"50KB\" }"),
        application(
            "shorttcp",
            &[0],
            &[2],
            "short-connections = { parallel = 3, request = \"30KB\", response = \"1B\" }",
        ),
        application(
            "commit",
            &[0],
            &[1, 2],
            "two-phase-commit = { size = \"64B\", timeout = \"500ms\", protocol = \"datagram\" }",
        ),
    ];
    experiment.until = Some(Time::from_secs(2));
    let observed = run(&experiment);
    for (application, name) in [
        ("echo", "ping"),
        ("naiad", "barrier"),
        ("hadoop", "shuffle"),
        ("shorttcp", "connection"),
        ("commit", "commit"),
    ] {
        let operations = observed.operations.iter();
        let mut latencies: Vec<Time> = operations
            .filter(|of| (&*of.application, of.name) == (application, name))
            .map(|of| of.latency)
            .collect();
        assert!(latencies.len() > 5, "{application}: {}", latencies.len());
        // Those that wait for an answer see both directions. Of a switch that shares its CPU with the
        // hosts a single frame may be early: it arrived while the turn that took it was under way.
        if ["ping", "commit"].contains(&name) {
            latencies.sort_unstable();
            let median = latencies[latencies.len() / 2];
            assert!(median >= Time::from_ms(4), "{application}: {median}");
        }
    }
    let starts = observed.operations.iter().map(|of| of.start);
    assert!(starts.clone().min().unwrap() >= Time::from_ms(20));
    assert!(starts.is_sorted());
    let in_queue = |queue: usize| {
        let links = observed.report.snapshot.links.iter();
        links
            .map(|link| link.queues[queue].accepted_packets)
            .sum::<u64>()
    };
    assert!(in_queue(1) > 10 * in_queue(0), "DSCP 1 has queue 1");
}

/// A constant rate arrives whole, and two senders without end keep no more in their hosts than their
/// send buffers, because they are told what has left.
#[test]
fn udp_flows_send_whole_messages_and_wait_for_room() {
    need_a_lab!();
    let stream = |text: &str| toml::from_str(text).unwrap();
    let rate = Rate::from_mbps(20);
    let udp = |src, dst, service| flow(src, dst, FlowSpec::ENDLESS, service);
    let mut experiment = experiment(4, rate, vec![udp(0, 1, 0), udp(2, 3, 1), udp(3, 2, 1)]);
    let workload = Arc::make_mut(&mut experiment.workload);
    workload.datagrams = [(0, 0), (1, 1), (2, 1)]
        .map(|(flow, stream)| DatagramFlow {
            flow: FlowId(flow),
            stream,
        })
        .into();
    workload.streams = vec![
        stream("latencies = true\nsend = { constant = { rate = \"4Mbps\", size = \"8KB\" } }"),
        stream("send = { message = { size = \"64KB\" } }"),
    ];
    let at = Time::from_ms(1_500);
    workload.stops = vec![Stop {
        flow: FlowId(0),
        at,
    }];
    let host: PortConfig =
        toml::from_str("framing = \"ethernet\"\nbuffer = \"unlimited\"\nscheduler = \"fifo\"")
            .unwrap();
    for port in &mut experiment.switch.ports {
        port.uplink = Some(UplinkPlan {
            rate,
            delay: Time::from_us(50),
            egress: host.clone(),
            gates: Vec::new(),
        });
    }
    experiment.until = Some(Time::from_secs(2));
    let observed = run(&experiment);
    let totals = observed.streams.unwrap();
    println!("{totals:?}");
    // 8 KB at 4 Mbps are 16 ms: at most 94 messages in 1.5 s, which have half a second to arrive.
    let paced = observed.outcomes[FlowId(0)].received / 8_000;
    assert!((1..=94).contains(&paced), "{paced}");
    let latencies: Vec<Time> = observed.operations.iter().map(|of| of.latency).collect();
    assert_eq!(latencies.len() as u64, paced);
    // 8,128 bytes take 3.2 ms at 20 Mbps, and the last fragment's bytes are sent twice.
    let least = latencies.iter().min().copied().unwrap();
    assert!(least > Time::from_us(3_200), "{least}");
    // What 20 Mbps carry in 2 s, and a send buffer and a message more.
    let most = 20e6 / 8.0 * 2.0 + 208.0 * 1024.0 + 64e3;
    let greedy = totals.sent - paced;
    assert!(
        (greedy as f64) < 2.0 * most / 64e3,
        "{greedy} messages sent"
    );
    for outcome in &observed.outcomes.as_slice()[1..] {
        assert!(outcome.received > 0, "{outcome:?}");
        assert_eq!(outcome.received % 64_000, 0, "whole messages");
        assert_eq!(outcome.fct, None);
    }
    assert_eq!(totals.not_taken, 0);
}
