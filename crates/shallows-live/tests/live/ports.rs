//! Kinds of ports, and what classifies frames.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use shallows_core::units::Rate;
use shallows_live::io::{Device, IoKind};
use shallows_live::lab::{self, Lab};
use shallows_live::switch::{Classify, Forwarding, PortPlan, Report, SwitchConfig};

use crate::{Running, at, ip, need_a_lab, ping, plan, switch_config};

/// A queue for each DSCP or priority up to 7.
const EIGHT_QUEUES: &str = "queues = 8
    buffer = { shared = { size = \"96KB\" } }
    scheduler = { dwrr = { quantum = \"1500B\" } }
    marker = { scheme = { per-queue = { threshold = \"15KB\" } } }";

fn packets(switch: &Report, link: usize) -> Vec<u64> {
    let queues = switch.snapshot.links[link].queues.iter();
    queues.map(|queue| queue.accepted_packets).collect()
}

/// Two ports of a kind, in a switch that learns.
fn config(io: IoKind, devices: [&str; 2]) -> SwitchConfig {
    let mut config = switch_config(0, Rate::from_mbps(50), EIGHT_QUEUES);
    config.forwarding = Forwarding::Learning;
    config.ports = devices
        .map(|name| PortPlan {
            io,
            ..PortPlan::new(name, Rate::from_mbps(50))
        })
        .into();
    config
}

/// ARP, ICMP and TCP from host 0 to `address` of host 1: classified, shaped and marked.
fn carries_everything(lab: &Lab, switch: Running, address: Ipv4Addr) {
    ping(lab, 0, address, 3, 5);
    transfer(lab, address, 3_000_000);
    let report = switch.stop();
    println!("{}", report.snapshot);
    let towards_1 = packets(&report, 1);
    assert_eq!(towards_1[3], 5, "{towards_1:?}");
    assert!(towards_1[0] > 2_000, "{towards_1:?}");
    assert!(
        report.snapshot.marks() > 0,
        "3 MB must pass the threshold of 15 KB"
    );
    for (device, counters) in &report.snapshot.devices {
        let odd = counters.oversized + counters.unfinished + counters.runts + counters.refused;
        assert_eq!(odd, 0, "{device}: {counters:?}");
        assert!(counters.malformed.iter().all(|&count| count == 0));
    }
}

#[test]
fn tap_ports_behave_like_others() {
    need_a_lab!();
    let lab = Lab::build(&plan(2)).unwrap();
    let switch = Running::start(&lab, config(IoKind::Tap, ["tap0", "tap1"]));
    // The switch keeps the file; the other end of the cable goes to the host.
    for host in 0..2 {
        let (switch, to) = (lab.switch().name(), lab.host(host).name());
        ip(&format!("-n {switch} link set tap{host} netns {to}"));
        ip(&format!("-n {to} addr add 10.84.0.{host}/24 dev tap{host}"));
        ip(&format!("-n {to} link set tap{host} up"));
    }
    carries_everything(&lab, switch, Ipv4Addr::new(10, 84, 0, 1));
}

#[test]
fn xdp_ports_behave_like_others() {
    need_a_lab!();
    let lab = Lab::build(&plan(2)).unwrap();
    let config = config(IoKind::Xdp, [&lab::port(0), &lab::port(1)]);
    let opened = lab
        .switch()
        .enter(|| Device::open(&lab::port(0), IoKind::Xdp));
    if let Err(error) = opened.unwrap() {
        assert!(error.to_string().contains("io = \"packet\""), "{error}");
        shallows_testing::skip!("{error}");
    }
    at(&lab, 0, "ip neigh flush all nud permanent");
    let switch = Running::start(&lab, config);
    carries_everything(&lab, switch, lab::address(1));
}

/// Sends bytes over TCP from host 0 to an address of host 1.
fn transfer(lab: &Lab, address: Ipv4Addr, bytes: usize) {
    let server = lab.host(1).enter(|| TcpListener::bind((address, 7000)));
    let server = server.unwrap().unwrap();
    let receiver = thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all.len()
    });
    let client = lab.host(0).enter(|| TcpStream::connect((address, 7000)));
    let mut client = client.unwrap().unwrap();
    client.write_all(&vec![7; bytes]).unwrap();
    drop(client);
    assert_eq!(receiver.join().unwrap(), bytes);
}

/// An Ethernet frame from host 0 to host 1 of an experimental protocol, with an 802.1Q tag.
fn tagged(priority: u8, number: u8) -> Vec<u8> {
    let mut frame = [lab::station(1).0, lab::station(0).0].concat();
    frame.extend([0x81, 0x00, priority << 5, 42]);
    frame.extend([0x88, 0xb5, number]);
    frame.resize(64, 0);
    frame
}

fn host_device(lab: &Lab, host: usize) -> Device {
    let device = lab
        .host(host)
        .enter(|| Device::open("eth0", IoKind::Packet));
    device.unwrap().unwrap()
}

/// The kernel takes the tag out of a frame on its way into the ring. The switch puts it back: it
/// classifies by the priority, and the frame arrives as it was sent.
#[test]
fn priorities_in_tags_choose_the_queue_and_tags_stay() {
    need_a_lab!();
    let lab = Lab::build(&plan(2)).unwrap();
    let mut config: SwitchConfig = switch_config(2, Rate::from_mbps(50), EIGHT_QUEUES);
    config.classify = Classify::Pcp;
    let switch = Running::start(&lab, config);
    let (mut sender, mut receiver) = (host_device(&lab, 0), host_device(&lab, 1));
    let sent: Vec<Vec<u8>> = (0..36u8)
        // One of priority 0, two of 1, and so on.
        .scan((0, 0), |(priority, left), number| {
            if *left == 0 {
                *left = *priority + 1;
                *priority += 1;
            }
            *left -= 1;
            Some(tagged(*priority - 1, number))
        })
        .collect();
    for frame in &sent {
        let done = sender.send(std::iter::once(&frame[..]));
        assert_eq!((done.sent, done.refused), (1, 0));
    }
    let mut arrived = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(10);
    while arrived.len() < sent.len() && Instant::now() < deadline {
        let Some(received) = receiver.receive() else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        if let Some((kind, tci)) = received.tag {
            let mut frame = received.bytes[..12].to_vec();
            frame.extend(kind.to_be_bytes());
            frame.extend(tci.to_be_bytes());
            frame.extend(&received.bytes[12..]);
            arrived.push(frame);
        }
    }
    let report = switch.stop();
    arrived.sort_by_key(|frame| frame[18]);
    assert_eq!(arrived, sent);
    assert_eq!(packets(&report, 1), [1, 2, 3, 4, 5, 6, 7, 8]);
}
