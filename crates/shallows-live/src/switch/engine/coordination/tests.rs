use shallows_core::control::Agent as _;
use shallows_core::port::{BufferConfig, Framing, PortConfig};
use shallows_core::units::Rate;
use shallows_core::xco::config::Protocol;
use shallows_core::xco::controller::{Controller, ControllerConfig};
use shallows_core::xco::coordinator::{CoordinatorConfig, GateConfig};
use shallows_core::xco::fabric::{CoordinatedFabric, Routes};
use shallows_core::xco::message::ClusterKey;

use super::*;
use crate::switch::{Forwarding, PortPlan, SwitchConfig, UplinkPlan};

const RATE: Rate = Rate::from_mbps(100);
const HOSTS: u32 = 3;

/// A packet of 1500 bytes between stations 02..00 to 02..02, of this IP protocol.
fn frame(from: u8, to: u8, protocol: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
    frame.extend([0x45, 0, 0x05, 0xdc, 0, 0, 0, 0, 64, protocol, 0, 0]);
    frame.extend([10, 0, 0, from, 10, 0, 0, to]);
    frame.extend(1000u16.to_be_bytes());
    frame.extend(4783u16.to_be_bytes());
    frame.resize(1514, 0);
    frame
}

/// Three hosts at a switch, each with a coordinator before its uplink, which knows one station of
/// each.
fn engine(key: &ClusterKey) -> Engine {
    let mut destinations = Destinations::default();
    for host in 0..HOSTS {
        let station = format!("02:00:00:00:00:{host:02x}").parse().unwrap();
        assert!(destinations.add_station(station, host));
    }
    engine_with(key, destinations, |coordinator| coordinator)
}

fn engine_with(
    key: &ClusterKey,
    destinations: Destinations,
    prepare: fn(Coordinator<Frame>) -> Coordinator<Frame>,
) -> Engine {
    let text = "egress = { buffer = \"unlimited\", scheduler = \"fifo\" }\nport = []";
    let mut config = SwitchConfig::parse(text).unwrap();
    config.forwarding = Forwarding::Static;
    let fifo = PortConfig {
        framing: Framing::ETHERNET,
        ..PortConfig::fifo(BufferConfig::Unlimited)
    };
    config.egress = fifo.clone();
    for number in 0..HOSTS {
        let mut port = PortPlan::new(format!("p{number}"), RATE);
        port.stations = vec![format!("02:00:00:00:00:{number:02x}")];
        port.uplink = Some(UplinkPlan {
            rate: RATE,
            delay: Time::ZERO,
            egress: fifo.clone(),
            gates: Vec::new(),
        });
        config.ports.push(port);
    }
    let mut engine = Engine::new(&config, 1522).unwrap();
    let destinations = Arc::new(destinations);
    for host in 0..HOSTS {
        let config = CoordinatorConfig {
            host,
            controllers: vec![HOSTS],
            incarnation: 1,
            rate: RATE,
            framing: Framing::ETHERNET,
            gate: GateConfig::default(),
            budget: GateConfig::default().budget(RATE, HOSTS),
            protocol: Protocol::default(),
            on_demand: None,
        };
        let coordinator = Coordinator::new(config, key.host(host), Time::ZERO).unwrap();
        let link = engine.uplink(host as usize).unwrap();
        let (who, how) = (
            (host, Level::Cluster, prepare(coordinator)),
            destinations.clone(),
        );
        assert_eq!(engine.coordinate(link, who, how, Some(4783)), host as usize);
    }
    engine
}

fn star(from: u32, to: u32, path: &mut Vec<u32>) {
    path.extend([from, HOSTS + to]);
}

fn controller(key: &ClusterKey) -> Controller<impl Routes> {
    let config = ControllerConfig {
        address: HOSTS,
        ..ControllerConfig::default()
    };
    let links = vec![RATE; 2 * HOSTS as usize];
    let fabric = CoordinatedFabric::new(vec![RATE; HOSTS as usize], links, star).unwrap();
    Controller::new(config, fabric, key, Time::ZERO).unwrap()
}

/// Carries messages at once, and gives devices and due times of frames that leave.
fn step(
    engine: &mut Engine,
    controller: &mut Controller<impl Routes>,
    now: Time,
) -> Vec<(usize, Time)> {
    let mut deliveries = Vec::new();
    engine.advance(now, &mut deliveries);
    controller.handle_timeout(now);
    let reports: Vec<Outgoing> = engine.take_outgoing().collect();
    for report in reports {
        controller.handle(now, report.coordinator as u32, &report.message);
    }
    let mut message = Vec::new();
    while let Some(host) = controller.transmit(now, &mut message) {
        engine.handle_message(now, host as usize, HOSTS, &message);
        message.clear();
    }
    for delivery in &deliveries {
        engine.release(&delivery.frame);
    }
    deliveries.iter().map(|of| (of.device, of.due)).collect()
}

#[test]
fn two_hosts_take_turns_at_a_receiver() {
    let key = ClusterKey::new([3; 16]);
    let (mut engine, mut controller) = (engine(&key), controller(&key));
    let tick = Time::from_us(20);
    let mut now = Time::ZERO;
    while now < Time::from_ms(300) {
        step(&mut engine, &mut controller, now);
        now += tick;
    }
    let modes = engine.coordinators(now);
    assert!(modes.iter().all(|of| of.mode == "coordinated"), "{modes:?}");
    // 40 frames each: 5 ms at 100 Mbps, in slots of 2 ms.
    for source in [0, 1] {
        for _ in 0..40 {
            let sent = frame(source, 2, 253);
            engine.arrive(now, source.into(), (&sent, &[])).unwrap();
        }
    }
    assert_eq!(engine.frames(), 80, "all are held");
    let mut arrived = 0;
    let mut both = 0;
    let begun = now;
    while arrived < 80 && now < begun + Time::from_ms(40) {
        let left = step(&mut engine, &mut controller, now);
        assert!(left.iter().all(|(device, _)| *device == 2));
        arrived += left.len();
        let permitted = engine.coordinators(now);
        let senders = permitted.iter().filter(|of| !of.permits.is_empty());
        both += usize::from(senders.count() > 1);
        now += tick;
    }
    assert_eq!((arrived, both), (80, 0));
    // 80 frames take 9.8 ms; a slot is lost here and there.
    assert!(now - begun < Time::from_ms(20), "{}", now - begun);
    let slots: Vec<u64> = engine.coordinators(now).iter().map(|of| of.slots).collect();
    assert!(slots[0] >= 2 && slots[1] >= 2 && slots[2] == 0, "{slots:?}");
}

#[test]
fn control_messages_and_unknown_destinations_pass() {
    let key = ClusterKey::new([3; 16]);
    let (mut engine, mut controller) = (engine(&key), controller(&key));
    let mut now = Time::ZERO;
    while now < Time::from_ms(300) {
        step(&mut engine, &mut controller, now);
        now += Time::from_us(100);
    }
    engine.arrive(now, 0, (&frame(0, 2, 17), &[])).unwrap();
    assert_eq!(engine.coordinators(now)[0].held, 0, "UDP to port 4783");
    engine.arrive(now, 0, (&frame(0, 2, 253), &[])).unwrap();
    assert_eq!(engine.coordinators(now)[0].held, 1);
    engine.arrive(now, 0, (&frame(0, 9, 253), &[])).unwrap();
    let after = &engine.coordinators(now)[0];
    assert_eq!((after.held, after.unknown), (1, 1));
    // At the end what is held goes out.
    engine.leave(now);
    assert_eq!(engine.coordinators(now)[0].mode, "leaving");
    assert_eq!(
        step(&mut engine, &mut controller, now + Time::from_ms(1)).len(),
        2
    );
}

/// A guest whose station no file names is coordinated as soon as it has sent a frame, and is known
/// to be elsewhere after its first frame from there.
#[test]
fn a_guest_is_found_where_it_has_migrated() {
    const GUEST: u8 = 9;
    let key = ClusterKey::new([3; 16]);
    let learning = Coordinator::with_places;
    let mut engine = engine_with(&key, Destinations::default(), learning);
    let mut controller = controller(&key);
    let mut now = Time::ZERO;
    let mut run = |engine: &mut Engine, span: Time| {
        let end = now + span;
        while now < end {
            step(engine, &mut controller, now);
            now += Time::from_us(50);
        }
        now
    };
    let now = run(&mut engine, Time::from_ms(300));
    engine.arrive(now, 0, (&frame(0, GUEST, 253), &[])).unwrap();
    let before = &engine.coordinators(now)[0];
    assert_eq!((before.held, before.unknown), (0, 1), "nobody knows it");
    // It is at host 1, then at host 2, where its first frame is a broadcast.
    for host in [1_u32, 2] {
        let mut hello = frame(GUEST, 0, 253);
        hello[..6].fill(0xff);
        engine.arrive(now, host as usize, (&hello, &[])).unwrap();
        let now = run(&mut engine, Time::from_ms(110));
        engine.arrive(now, 0, (&frame(0, GUEST, 253), &[])).unwrap();
        assert_eq!(engine.coordinators(now)[0].held, 1, "it waits for a slot");
        let mut to = Vec::new();
        let mut now = now;
        while to.is_empty() {
            let asked = now;
            now = run(&mut engine, Time::from_us(50));
            let permits = engine.coordinators(now)[0].permits.clone();
            to = permits.into_iter().map(|(to, _)| to).collect();
            assert!(now < asked + Time::from_secs(1));
        }
        assert_eq!(to, [host]);
        let now = run(&mut engine, Time::from_ms(10));
        let all = engine.coordinators(now);
        assert!(all.iter().all(|each| each.stations >= 1), "{all:?}");
    }
}
