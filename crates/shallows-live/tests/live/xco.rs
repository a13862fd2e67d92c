//! XCo on the real kernel: controllers in namespaces, coordinators in the switch, agents between
//! devices, forged messages.

use std::io::Read as _;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use shallows_core::port::Framing;
use shallows_core::units::{Bytes, Rate, Time};
use shallows_core::xco::config::Protocol as XcoProtocol;
use shallows_core::xco::coordinator::GateConfig;
use shallows_core::xco::message::ClusterKey;
use shallows_live::experiment::{Experiment, Observed};
use shallows_live::lab::{self, Lab};
use shallows_live::switch::{Control, Snapshot, UplinkPlan, Wait};
use shallows_live::traffic::FlowControllers;
use shallows_live::xco::cluster::{Cluster, ControllerPlan, HostPlan, InsidePlan};
use shallows_live::xco::controller::ControllerDaemon;
use shallows_live::xco::lab::{AGENT_PORT, CONTROLLER_PORT, XcoPlan};
use shallows_live::xco::{ControllerSnapshot, agent};
use shallows_model::workload::{FlowSpec, Workload};
use shallows_model::{Directives, Forgery, HostId, Outage};
use socket2::{Domain, Protocol, Socket, Type};

use crate::switching::FIFO;
use crate::{Running, ip, need_a_lab, ping, plan, switch_config};

const RATE: Rate = Rate::from_mbps(50);

/// Where datagrams are sent to.
const PORT: u16 = 4000;

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
        pod: None,
        pod_address: None,
        weight: 1,
        stations: vec![lab::station(number).to_string()],
        networks: Vec::new(),
        nic: String::new(),
        inside: Vec::new(),
        metrics: None,
        wait: Wait::Block,
        cpu: None,
        gone: false,
    };
    let controller = |place: usize| ControllerPlan {
        name: format!("c{place}"),
        address: address(hosts + place, CONTROLLER_PORT),
        pod: None,
        metrics: None,
        wait: Wait::Block,
    };
    Cluster {
        key_file: PathBuf::new(),
        slot: Time::from_ms(10),
        directives: Directives::Timeslice,
        preempt_after: None,
        patience: Time::from_ms(500),
        protocol: XcoProtocol::default(),
        on_demand: None,
        learn_places: false,
        hierarchy: None,
        gate: GateConfig::default(),
        framing: Framing::ETHERNET,
        controllers: (0..controllers).map(controller).collect(),
        hosts: (0..hosts).map(host).collect(),
        trunks: Vec::new(),
    }
}

/// Three hosts, of which two send to the third, and what happens to their two controllers.
fn run(flows: Vec<FlowSpec>, until: Time, change: impl FnOnce(&mut XcoPlan)) -> Observed {
    let (hosts, controllers, forgers) = (3, 2, 1);
    let all = hosts + controllers + forgers;
    let mut switch = switch_config(all, RATE, FIFO);
    for port in &mut switch.ports[..hosts] {
        port.uplink = Some(UplinkPlan {
            rate: RATE,
            delay: Time::ZERO,
            egress: switch.egress.clone(),
            gates: Vec::new(),
        });
    }
    let mut xco = XcoPlan {
        cluster: cluster(hosts, controllers),
        controllers_at: vec![hosts, hosts + 1],
        outages: Vec::new(),
        forger: None,
    };
    change(&mut xco);
    let experiment = Experiment {
        lab: plan(all),
        switch,
        workload: Arc::new(Workload {
            flows: flows.into(),
            ..Workload::default()
        }),
        controllers: FlowControllers::default(),
        seed: 1,
        applications: Vec::new(),
        goodput_every: shallows_live::traffic::GOODPUT_EVERY,
        probes: Vec::new(),
        commands: Vec::new(),
        outputs: None,
        until: Some(until),
        xco: Some(xco),
        stages: None,
    };
    experiment.run(&|| false).unwrap()
}

/// Hosts 0 and 1 send to host 2 for as long as the run takes.
fn two_senders() -> Vec<FlowSpec> {
    let flow = |src| FlowSpec {
        start: Time::ZERO,
        src: HostId(src),
        dst: HostId(2),
        bytes: FlowSpec::ENDLESS,
        service: 0,
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
        plan.outages = vec![Outage {
            controller: 0,
            crash: Time::from_secs(1),
            restart: None,
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
        assert_eq!(of.leader, 1_000_001, "{of}");
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
fn a_lone_controller_that_restarts_leads_again() {
    need_a_lab!();
    let observed = run(two_senders(), Time::from_secs(4), |plan| {
        plan.cluster.controllers.truncate(1);
        plan.controllers_at.truncate(1);
        plan.outages = vec![Outage {
            controller: 0,
            crash: Time::from_ms(1000),
            restart: Some(Time::from_ms(1200)),
        }];
    });
    let last = observed.xco.as_ref().unwrap().samples.last().unwrap();
    let leader = last.controllers[0].as_ref().unwrap();
    assert_eq!((leader.mode.as_str(), leader.epoch), ("leader", 2));
    assert!(leader.grants > 50, "{leader}");
    for of in &last.coordinators {
        assert_eq!((of.mode.as_str(), of.epoch), ("coordinated", 2), "{of}");
    }
}

#[test]
fn forged_directives_are_refused_by_reason() {
    need_a_lab!();
    let observed = run(two_senders(), Time::from_secs(3), |plan| {
        let forgery = Forgery {
            victim: 0,
            start: Time::from_ms(500),
            stop: Time::from_ms(2500),
            every: Time::from_ms(20),
        };
        plan.forger = Some((5, forgery));
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

/// The cluster of a lab of two: host 0 of the lab is a VM, host 1 the other end of the agent's NIC,
/// and the switch's namespace the machine that the agent runs at.
fn cluster_of_one_agent(lab: &Lab) -> Cluster {
    // The machine has an address of its own, by which it speaks with the controller.
    ip(&format!("-n {} link set lo up", lab.switch().name()));
    let mut cluster = cluster(2, 1);
    cluster.controllers[0].address = ([127, 0, 0, 1], CONTROLLER_PORT).into();
    cluster.hosts[0].address = ([127, 0, 0, 1], AGENT_PORT).into();
    cluster.hosts[0].nic = lab::port(1);
    cluster.hosts[0].inside = vec![InsidePlan {
        device: lab::port(0),
        io: shallows_live::io::IoKind::Packet,
    }];
    cluster
}

fn start_agent(lab: &Lab, cluster: &Cluster, key: &ClusterKey) -> Running {
    cluster.check().unwrap();
    let (namespace, cluster) = (lab.switch().clone(), cluster.clone());
    let key = cluster.host_key(key, 0);
    let control = Control::<Snapshot>::default();
    let inside = control.clone();
    let thread = thread::spawn(move || {
        namespace.join().unwrap();
        let switch = agent::open(&cluster, 0, &key.into(), 1).unwrap();
        switch.run(&inside).unwrap()
    });
    let agent = Running { control, thread };
    assert!(
        agent.control.snapshot(PATIENCE).is_some(),
        "the agent is up"
    );
    agent
}

#[test]
fn an_agent_stands_between_a_vm_and_the_network() {
    need_a_lab!();
    let lab = Lab::build(&plan(2)).unwrap();
    let mut cluster = cluster_of_one_agent(&lab);
    // Pings are held like everything else.
    cluster.gate.small_packet = Bytes::ZERO;
    // The file says where the other end is, and the agent finds out where the VM is.
    cluster.hosts[0].stations.clear();
    cluster.learn_places = true;
    let key = ClusterKey::new([7; 16]);
    let agent = start_agent(&lab, &cluster, &key);
    // Without a controller traffic passes.
    ping(&lab, 0, lab::address(1), 0, 3);
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
    ping(&lab, 0, lab::address(1), 0, 5);
    let after = coordinator();
    assert!(after.slots >= 1, "{after}");
    assert_eq!(after.stations, 1, "{after}");
    stop.stop();
    let controller = controller.join().unwrap();
    assert_eq!((controller.joined, controller.mode.as_str()), (1, "leader"));
    assert!(controller.grants >= 1, "{controller}");
    agent.stop();
}

/// Directives and ssh to the machine come in by the NIC that its guests share.
#[test]
fn guests_do_not_see_the_frames_of_their_machine() {
    need_a_lab!();
    let lab = Lab::build(&plan(2)).unwrap();
    let machine = lab.switch().name();
    let nic = lab::port(1);
    ip(&format!("-n {machine} addr add 10.83.1.1/16 dev {nic}"));
    let agent = start_agent(&lab, &cluster_of_one_agent(&lab), &ClusterKey::new([7; 16]));
    let guest = lab.host(0).enter(|| {
        let everything = Protocol::from(i32::from(0x0003_u16.to_be()));
        Socket::new(Domain::PACKET, Type::RAW, Some(everything)).unwrap()
    });
    let guest = guest.unwrap();
    guest
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let listen = || UdpSocket::bind(("10.83.1.1", PORT)).unwrap();
    let machine = lab.switch().enter(listen).unwrap();
    machine.set_read_timeout(Some(PATIENCE)).unwrap();
    let beyond = lab.host(1).enter(|| UdpSocket::bind("0.0.0.0:0").unwrap());
    let beyond = beyond.unwrap();
    let mut buffer = [0; 2048];
    for number in 0..20_u8 {
        let message = [b's', b'e', b'c', b'r', b'e', b't', number];
        beyond.send_to(&message, ("10.83.1.1", PORT)).unwrap();
        let length = machine.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..length], message, "the machine has it");
    }
    let to_guest = SocketAddr::from((lab::address(0), PORT));
    beyond.send_to(b"for the guest", to_guest).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut has_its_own = false;
    // The guest's own frame comes last, so what was before it is there as well.
    while !has_its_own {
        assert!(Instant::now() < deadline, "the guest has its own frame");
        let Ok(length) = (&guest).read(&mut buffer) else {
            continue;
        };
        let frame = &buffer[..length];
        let holds = |text: &[u8]| frame.windows(text.len()).any(|part| part == text);
        assert!(!holds(b"secret"), "a frame of the machine: {frame:02x?}");
        has_its_own = holds(b"for the guest");
    }
    agent.stop();
}
