//! XCo on the real kernel: controllers in namespaces, coordinators in the switch, agents between
//! devices, forged messages.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use shallows_core::port::Framing;
use shallows_core::units::{Bytes, Rate, Time};
use shallows_core::xco::config::Protocol;
use shallows_core::xco::coordinator::GateConfig;
use shallows_core::xco::message::ClusterKey;
use shallows_live::experiment::{Experiment, Observed};
use shallows_live::lab::{self, Lab};
use shallows_live::switch::{Control, Snapshot, UplinkPlan, Wait};
use shallows_live::traffic::{Flow, StreamPlan};
use shallows_live::xco::cluster::{Cluster, ControllerPlan, DirectiveForm, HostPlan, InsidePlan};
use shallows_live::xco::controller::ControllerDaemon;
use shallows_live::xco::lab::{
    AGENT_PORT, CONTROLLER_PORT, ControllerFault, FaultKind, ForgerPlan, XcoPlan,
};
use shallows_live::xco::{ControllerSnapshot, agent};

use crate::switching::{FIFO, has};
use crate::{Running, at, ip, need_a_lab, plan, switch_config};

const RATE: Rate = Rate::from_mbps(50);

/// How long the protocol and a busy machine may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Hosts are the first of the lab, controllers come after them.
fn cluster(hosts: usize, controllers: usize) -> Cluster {
    let address = |host, port| SocketAddr::from((lab::address(host), port));
    let host = |number: usize| HostPlan {
        name: format!("h{number}"),
        rate: RATE,
        address: address(number, AGENT_PORT),
        switch: String::new(),
        weight: 1,
        stations: vec![lab::station(number).to_string()],
        networks: Vec::new(),
        nic: String::new(),
        inside: Vec::new(),
        metrics: None,
        wait: Wait::Block,
        cpu: None,
    };
    let controller = |place: usize| ControllerPlan {
        name: format!("c{place}"),
        address: address(hosts + place, CONTROLLER_PORT),
        metrics: None,
        wait: Wait::Block,
    };
    Cluster {
        key_file: PathBuf::new(),
        slot: Time::from_ms(10),
        directives: DirectiveForm::Timeslice,
        preempt_after: None,
        patience: Time::from_ms(500),
        protocol: Protocol::default(),
        on_demand: None,
        gate: GateConfig::default(),
        framing: Framing::ETHERNET,
        controllers: (0..controllers).map(controller).collect(),
        hosts: (0..hosts).map(host).collect(),
        trunks: Vec::new(),
    }
}

/// Three hosts, of which two send to the third, and what happens to their two controllers.
fn run(flows: Vec<Flow>, until: Time, change: impl FnOnce(&mut XcoPlan)) -> Observed {
    let (hosts, controllers, forgers) = (3, 2, 1);
    let all = hosts + controllers + forgers;
    let mut switch = switch_config(all, RATE, FIFO);
    for port in &mut switch.ports[..hosts] {
        port.uplink = Some(UplinkPlan {
            rate: RATE,
            delay: Time::ZERO,
            egress: switch.egress.clone(),
            gate: None,
        });
    }
    let mut xco = XcoPlan {
        cluster: cluster(hosts, controllers),
        controllers_at: vec![hosts, hosts + 1],
        faults: Vec::new(),
        forger: None,
    };
    change(&mut xco);
    let experiment = Experiment {
        lab: plan(all),
        switch,
        flows,
        barriers: Vec::new(),
        streams: StreamPlan::default(),
        applications: Vec::new(),
        probes: Vec::new(),
        commands: Vec::new(),
        outputs: None,
        until: Some(until),
        xco: Some(xco),
    };
    experiment.run(&AtomicBool::new(false)).unwrap()
}

/// Hosts 0 and 1 send to host 2 for as long as the run takes.
fn two_senders() -> Vec<Flow> {
    let flow = |src| Flow {
        start: Some(Time::ZERO),
        src,
        dst: 2,
        bytes: None,
        stop: None,
        dscp: 0,
        stream: None,
    };
    [0, 1].map(flow).into()
}

fn refused(of: &Observed, host: usize, reason: &str) -> u64 {
    let last = of.xco.as_ref().unwrap().samples.last().unwrap();
    let mut refused = last.coordinators[host].refused.iter();
    refused.find(|(of, _)| of == reason).unwrap().1
}

#[test]
fn hosts_send_in_turn_and_both_get_their_share() {
    need_a_lab!();
    let observed = run(two_senders(), Time::from_secs(3), |_| {});
    let seen = observed.xco.as_ref().unwrap();
    let last = seen.samples.last().unwrap();
    for of in &last.coordinators {
        assert_eq!(of.mode, "coordinated", "{of}");
        assert_eq!(of.lost_control, 0, "{of}");
    }
    let received: Vec<u64> = observed.outcomes.iter().map(|of| of.received).collect();
    assert!(
        received.iter().all(|&bytes| bytes > 500_000),
        "{received:?}"
    );
    let leader = seen.controllers.iter().find(|of| of.mode == "leader");
    let leader = leader.expect("one leads");
    assert!(leader.grants > 50, "{leader}");
    // Everything else is small or a control message.
    let uplinks = observed.report.snapshot.coordinators.iter();
    assert!(uplinks.take(2).all(|of| of.slots > 20), "{last:?}");
    // Never do two hosts have the receiver's link at once.
    for sample in &seen.samples {
        let permits = sample.coordinators.iter().flat_map(|of| &of.permits);
        let to_receiver: u64 = permits
            .filter(|(to, _)| *to == 2)
            .map(|(_, rate)| rate)
            .sum();
        assert!(to_receiver <= RATE.bps(), "{sample:?}");
    }
}

#[test]
fn a_standby_takes_over_and_traffic_never_stops() {
    need_a_lab!();
    let observed = run(two_senders(), Time::from_secs(6), |plan| {
        plan.faults = vec![ControllerFault {
            at: Time::from_secs(1),
            controller: 0,
            kind: FaultKind::Kill,
        }];
    });
    let seen = observed.xco.as_ref().unwrap();
    let last = seen.samples.last().unwrap();
    let standby = last.controllers[1].as_ref().unwrap();
    assert_eq!((standby.mode.as_str(), standby.terms), ("leader", 1));
    assert!(last.controllers[0].is_none());
    for of in &last.coordinators {
        assert_eq!(
            (of.mode.as_str(), of.lost_control),
            ("coordinated", 1),
            "{of}"
        );
        assert_eq!(of.leader, 4, "{of}");
    }
    // In each second something arrives, also in those without a controller.
    let mut before = 0;
    for second in 1..6 {
        let mut samples = seen.samples.iter();
        let sample = samples.find(|of| of.time >= Time::from_secs(second));
        let now = sample.unwrap().delivered[2];
        assert!(now > before + 100_000, "second {second}: {before} to {now}");
        before = now;
    }
}

#[test]
fn forged_directives_are_refused_by_reason() {
    need_a_lab!();
    let observed = run(two_senders(), Time::from_secs(3), |plan| {
        plan.forger = Some(ForgerPlan {
            at: 5,
            victim: 0,
            start: Time::from_ms(500),
            stop: Time::from_ms(2500),
            every: Time::from_ms(20),
        });
    });
    let seen = observed.xco.as_ref().unwrap();
    assert!(seen.forged > 20, "{}", seen.forged);
    for reason in ["sender", "forged", "replayed"] {
        assert!(refused(&observed, 0, reason) > 5, "{reason}");
    }
    assert_eq!(refused(&observed, 1, "forged"), 0);
    let last = seen.samples.last().unwrap();
    let victim = &last.coordinators[0];
    assert_eq!(
        (victim.mode.as_str(), victim.lost_control),
        ("coordinated", 0)
    );
    assert!(victim.epoch < 100, "{victim}");
}

/// A VM as a namespace behind an agent: host 0 of the lab is the VM, host 1 the other end of the
/// agent's NIC, and the switch's namespace the machine that the agent runs at.
#[test]
fn an_agent_stands_between_a_vm_and_the_network() {
    need_a_lab!();
    if !has("ping") {
        println!("skipped: there is no ping");
        return;
    }
    let lab = Lab::build(&plan(2)).unwrap();
    let inside = lab.switch().name();
    // The machine has an address of its own, by which it speaks with the controller.
    ip(&format!("-n {inside} link set lo up"));
    let mut cluster = cluster(2, 1);
    cluster.controllers[0].address = ([127, 0, 0, 1], CONTROLLER_PORT).into();
    cluster.hosts[0].address = ([127, 0, 0, 1], AGENT_PORT).into();
    cluster.hosts[0].nic = lab::port(1);
    cluster.hosts[0].inside = vec![InsidePlan {
        device: lab::port(0),
        io: shallows_live::io::IoKind::Packet,
    }];
    // Pings are held like everything else.
    cluster.gate.small_packet = Bytes::ZERO;
    cluster.check().unwrap();
    let key = ClusterKey::new([7; 16]);
    let (namespace, agents, host_key) = (lab.switch().clone(), cluster.clone(), key.host(0));
    let control = Control::<Snapshot>::default();
    let agent_control = control.clone();
    let agent = thread::spawn(move || {
        namespace.join().unwrap();
        let switch = agent::open(&agents, 0, host_key, 1).unwrap();
        switch.run(&agent_control).unwrap()
    });
    let agent = Running {
        control,
        thread: agent,
    };
    let ping = |count: u32| {
        at(
            &lab,
            0,
            &format!("ping -c {count} -i 0.05 -W 5 {}", lab::address(1)),
        )
    };
    // Without a controller traffic passes.
    assert!(ping(3).status.success());
    let coordinator = || {
        let snapshot = agent.control.snapshot(PATIENCE).unwrap();
        snapshot.coordinators[0].clone()
    };
    assert_eq!(coordinator().mode, "uncoordinated");
    let (namespace, controlled) = (lab.switch().clone(), cluster.clone());
    let stop = Control::<ControllerSnapshot>::default();
    let inside = stop.clone();
    let controller = thread::spawn(move || {
        namespace.join().unwrap();
        let daemon = ControllerDaemon::open(&controlled, 0, &key, 1).unwrap();
        daemon.run(&inside, |_| {})
    });
    let deadline = Instant::now() + PATIENCE;
    while coordinator().mode != "coordinated" {
        assert!(Instant::now() < deadline, "{}", coordinator());
        thread::sleep(Duration::from_millis(20));
    }
    assert!(ping(5).status.success());
    let after = coordinator();
    assert!(after.slots >= 1, "{after}");
    stop.stop();
    let controller = controller.join().unwrap();
    assert_eq!((controller.joined, controller.mode.as_str()), (1, "leader"));
    assert!(controller.grants >= 1, "{controller}");
    agent.stop();
}
