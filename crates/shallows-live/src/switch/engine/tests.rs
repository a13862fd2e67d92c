use std::sync::Arc;

use shallows_core::host::HostGateConfig;
use shallows_core::host::gate::Refusal;
use shallows_core::host::qjump::{Excess, LimiterConfig, QjumpGateConfig, Scope};
use shallows_core::packet::Ecn;
use shallows_core::port::{BufferConfig, Framing};
use shallows_core::units::{Bytes, Length};

use super::*;
use crate::switch::departures::Streams;
use crate::switch::{Departures, PortPlan, TrunkPlan, UplinkPlan};

const SLOT: usize = 1522;

fn fifo() -> PortConfig {
    PortConfig {
        framing: Framing::ETHERNET,
        ..PortConfig::fifo(BufferConfig::Unlimited)
    }
}

/// Ports at 100 Mbps, each with one station: 02..00, 02..01 and so on.
fn config(ports: usize, egress: PortConfig) -> SwitchConfig {
    let mut config =
        SwitchConfig::parse("egress = { buffer = \"unlimited\", scheduler = \"fifo\" }\nport = []")
            .unwrap();
    config.egress = egress;
    config.forwarding = Forwarding::Static;
    for number in 0..ports {
        let mut port = PortPlan::new(format!("p{number}"), Rate::from_mbps(100));
        port.stations = vec![format!("02:00:00:00:00:{number:02x}")];
        config.ports.push(port);
    }
    config
}

/// An ECN-capable packet of 1500 bytes.
fn frame(from: u8, to: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
    frame.extend([0x45, 0x02, 0x05, 0xdc, 0, 0, 0, 0, 64, 253, 0, 0]);
    frame.extend([10, 0, 0, from, 10, 0, 0, to]);
    frame.resize(1514, 0);
    frame
}

fn arrive(engine: &mut Engine, now: Time, device: usize, frame: &[u8]) {
    assert_eq!(
        engine.arrive(now, device, (frame, &[])),
        Ok(Network::Ipv4(14))
    );
}

/// Devices and due times of everything that leaves until `now`.
fn leaving(engine: &mut Engine, now: Time) -> Vec<(usize, Time)> {
    let mut deliveries = Vec::new();
    engine.advance(now, &mut deliveries);
    for delivery in &deliveries {
        engine.release(&delivery.frame);
    }
    deliveries.iter().map(|d| (d.device, d.due)).collect()
}

/// 1538 B at 100 Mbps.
const FULL: Time = Time::from_ns(123_040);

#[test]
fn a_late_driver_loses_no_bandwidth() {
    let mut engine = Engine::new(&config(2, fifo()), SLOT).unwrap();
    for _ in 0..3 {
        arrive(&mut engine, Time::ZERO, 0, &frame(0, 1));
    }
    assert_eq!(engine.next(), Some(FULL));
    assert_eq!(leaving(&mut engine, FULL - Time::from_ps(1)), []);
    // Long after: every frame still has the time at which it should have left.
    let times = [FULL, FULL * 2, FULL * 3].map(|time| (1, time));
    assert_eq!(leaving(&mut engine, Time::from_secs(1)), times);
    assert_eq!(engine.frames(), 0);
}

#[test]
fn an_uplink_and_delays_add_up() {
    let mut config = config(2, fifo());
    for port in &mut config.ports {
        port.delay = Time::from_us(10);
        port.uplink = Some(UplinkPlan {
            rate: Rate::from_mbps(200),
            delay: Time::from_us(5),
            egress: fifo(),
            gates: Vec::new(),
        });
    }
    let mut engine = Engine::new(&config, SLOT).unwrap();
    arrive(&mut engine, Time::ZERO, 0, &frame(0, 1));
    arrive(&mut engine, Time::ZERO, 0, &frame(0, 1));
    // Half a full time on the uplink, 5 us, a full time on the downlink, 10 us; the second frame
    // waits for the first there.
    let first = FULL / 2 + FULL + Time::from_us(15);
    assert_eq!(
        leaving(&mut engine, Time::MAX),
        [(1, first), (1, first + FULL)]
    );
}

#[test]
fn a_trunk_joins_two_bridges() {
    let mut config = config(4, fifo());
    config.ports[2].bridge = 1;
    config.ports[3].bridge = 1;
    config.trunks.push(TrunkPlan {
        between: [0, 1],
        rate: Rate::from_mbps(50),
        delay: Time::from_us(1),
        egress: None,
    });
    let mut engine = Engine::new(&config, SLOT).unwrap();
    arrive(&mut engine, Time::ZERO, 0, &frame(0, 3));
    arrive(&mut engine, Time::ZERO, 2, &frame(2, 3));
    arrive(&mut engine, Time::ZERO, 1, &frame(1, 0));
    let across = FULL * 2 + Time::from_us(1) + FULL;
    assert_eq!(
        leaving(&mut engine, Time::MAX),
        [(0, FULL), (3, FULL), (3, across)]
    );
    // To all: on its own bridge at once, on the other over the trunk.
    let mut broadcast = frame(1, 0);
    broadcast[..6].fill(0xff);
    arrive(&mut engine, Time::from_secs(1), 1, &broadcast);
    let devices: Vec<usize> = leaving(&mut engine, Time::MAX)
        .iter()
        .map(|d| d.0)
        .collect();
    assert_eq!(devices, [0, 2, 3]);
    assert_eq!(engine.frames(), 0);
}

#[test]
fn bridges_must_form_a_tree() {
    let mut config = config(2, fifo());
    config.ports[1].bridge = 1;
    let error = Engine::new(&config, SLOT).unwrap_err().to_string();
    assert!(error.contains("2 bridges need 1 trunks"), "{error}");
}

#[test]
fn frames_above_the_threshold_leave_marked_and_their_copies_do_not() {
    let mut egress = fifo();
    egress.marker = toml::from_str("scheme = { per-queue = { threshold = \"2pkts\" } }").unwrap();
    let mut engine = Engine::new(&config(3, egress), SLOT).unwrap();
    for _ in 0..4 {
        arrive(&mut engine, Time::ZERO, 0, &frame(0, 1));
    }
    let mut broadcast = frame(0, 1);
    broadcast[..6].fill(0xff);
    arrive(&mut engine, Time::ZERO, 0, &broadcast);
    let mut deliveries = Vec::new();
    engine.advance(Time::MAX, &mut deliveries);
    let ecn = |device: usize| -> Vec<Ecn> {
        let of = deliveries.iter().filter(|d| d.device == device);
        of.map(|d| Header::parse(engine.bytes(&d.frame)).unwrap().ecn)
            .collect()
    };
    // The first is on the wire; the fourth makes three in the queue.
    assert_eq!(ecn(1), [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ce]);
    assert_eq!(ecn(2), [Ecn::Ect0]);
}

#[test]
fn dropped_frames_give_their_memory_back() {
    let mut egress = fifo();
    egress.buffer = BufferConfig::Shared {
        size: "3000B".parse().unwrap(),
    };
    let mut engine = Engine::new(&config(2, egress), SLOT).unwrap();
    for _ in 0..10 {
        arrive(&mut engine, Time::ZERO, 0, &frame(0, 1));
    }
    assert_eq!(engine.frames(), 3, "one on the wire and two in the queue");
    arrive(&mut engine, Time::ZERO, 0, &frame(0, 9));
    assert_eq!(engine.filtered(), 1);
    assert_eq!(leaving(&mut engine, Time::MAX).len(), 3);
    assert_eq!(engine.frames(), 0);
}

/// Two packets of 1500 B an epoch of 1 ms. Of six that come at once two pass, three wait for the next
/// epochs and the last finds the gate full.
#[test]
fn a_gate_holds_a_hosts_frames_back_before_its_uplink() {
    let mut config = config(2, fifo());
    let limits = LimiterConfig {
        epoch: Time::from_ms(1),
        levels: vec![Bytes::new(3000)],
        excess: Excess::Hold,
        ..LimiterConfig::default()
    };
    config.ports[0].uplink = Some(UplinkPlan {
        rate: Rate::from_mbps(100),
        delay: Time::ZERO,
        egress: fifo(),
        gates: vec![HostGateConfig::Qjump(QjumpGateConfig {
            hold_limit: Some(Bytes::new(4500)),
            ..QjumpGateConfig::new(limits)
        })],
    });
    let mut engine = Engine::new(&config, SLOT).unwrap();
    for _ in 0..6 {
        arrive(&mut engine, Time::ZERO, 0, &frame(0, 1));
    }
    // Over the uplink and over the port: two transmissions each.
    let epoch = |number| Time::from_ms(number);
    let expected = [
        (1, FULL * 2),
        (1, FULL * 3),
        (1, epoch(1) + FULL * 2),
        (1, epoch(1) + FULL * 3),
        (1, epoch(2) + FULL * 2),
    ];
    assert_eq!(leaving(&mut engine, Time::from_ms(10)), expected);
    assert_eq!(engine.gate_drops()[2], (Refusal::Full, 1));
    assert_eq!(engine.frames(), 0);
}

/// Limits of each flow: the second frame of a flow exceeds them, the first of another does not.
#[test]
fn a_gate_may_limit_each_flow() {
    let mut config = config(3, fifo());
    let limits = LimiterConfig {
        epoch: Time::from_ms(1),
        levels: vec![Bytes::new(1500)],
        ..LimiterConfig::default()
    };
    config.ports[0].uplink = Some(UplinkPlan {
        rate: Rate::from_mbps(100),
        delay: Time::ZERO,
        egress: fifo(),
        gates: vec![HostGateConfig::Qjump(QjumpGateConfig {
            scope: Scope::Flow,
            ..QjumpGateConfig::new(limits)
        })],
    });
    let mut engine = Engine::new(&config, SLOT).unwrap();
    for to in [1, 1, 2] {
        arrive(&mut engine, Time::ZERO, 0, &frame(0, to));
    }
    let left = leaving(&mut engine, Time::from_ms(10));
    let devices: Vec<usize> = left.iter().map(|(device, _)| *device).collect();
    assert_eq!(devices, [1, 2]);
    assert_eq!(engine.gate_drops()[0], (Refusal::OverLimit, 1));
}

/// A fragment of UDP to a port, 1500 bytes long; only the first has the port.
fn fragment(from: u8, to: u8, port: u16, offset: u16) -> Vec<u8> {
    let mut frame = frame(from, to);
    frame[20..22].copy_from_slice(&(0x2000 | offset).to_be_bytes());
    frame[23] = 17;
    if offset == 0 {
        frame[36..38].copy_from_slice(&port.to_be_bytes());
    }
    frame
}

/// A sender hears of a packet when it begins to leave by the uplink, or when it is dropped before:
/// of streams alone, with all their fragments, and by destination.
#[test]
fn senders_of_streams_hear_what_has_left_their_host() {
    let mut config = config(3, fifo());
    config.ports[0].uplink = Some(UplinkPlan {
        rate: Rate::from_mbps(100),
        delay: Time::ZERO,
        egress: PortConfig::fifo(BufferConfig::Shared {
            size: Length::Bytes(Bytes::new(4_500)),
        }),
        gates: Vec::new(),
    });
    let mut engine = Engine::new(&config, SLOT).unwrap();
    let departures = Arc::new(Departures::new(3));
    let stations = (0..3).map(|last| Mac([2, 0, 0, 0, 0, last]));
    engine.tell(Streams::new(7184, stations, Arc::clone(&departures)));
    let left = || (departures.bytes(0, 1), departures.bytes(0, 2));
    arrive(&mut engine, Time::ZERO, 0, &fragment(0, 1, 7184, 0));
    assert_eq!(left(), (1_500, 0), "the link is free");
    arrive(&mut engine, Time::ZERO, 0, &fragment(0, 1, 7184, 185));
    arrive(&mut engine, Time::ZERO, 0, &fragment(0, 2, 7184, 0));
    arrive(&mut engine, Time::ZERO, 0, &fragment(0, 1, 53, 0));
    assert_eq!(left(), (1_500, 0), "they wait");
    // The fifth finds the buffer full.
    arrive(&mut engine, Time::ZERO, 0, &fragment(0, 2, 7184, 0));
    assert_eq!(left(), (1_500, 1_500));
    leaving(&mut engine, Time::from_secs(1));
    assert_eq!(left(), (3_000, 3_000), "port 53 is no stream");
    // Without a model of the uplink a packet has left its host when it is here.
    arrive(&mut engine, Time::from_secs(1), 1, &fragment(1, 2, 7184, 0));
    assert_eq!(departures.bytes(1, 2), 1_500);
}

/// A frame that finds no memory was dropped in its host: its sender does not wait for it for ever.
#[test]
fn senders_of_streams_hear_of_frames_without_memory() {
    let slow = UplinkPlan {
        rate: Rate::from_mbps(1),
        delay: Time::ZERO,
        egress: PortConfig::fifo(BufferConfig::Unlimited),
        gates: Vec::new(),
    };
    let mut config = config(3, fifo());
    config.ports[0].uplink = Some(slow);
    let mut engine = Engine::new(&config, SLOT).unwrap();
    let departures = Arc::new(Departures::new(3));
    let stations = (0..3).map(|last| Mac([2, 0, 0, 0, 0, last]));
    engine.tell(Streams::new(7184, stations, Arc::clone(&departures)));
    let frame = fragment(0, 1, 7184, 0);
    let taken = std::iter::repeat_with(|| engine.arrive(Time::ZERO, 0, (&frame, &[])))
        .take_while(Result::is_ok)
        .count();
    assert!(taken > 1_000);
    assert_eq!(departures.bytes(0, 1), 2 * 1_500, "the first and the last");
}
