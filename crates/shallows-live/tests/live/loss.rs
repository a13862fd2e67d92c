//! Devices that go away, and switches that want the same one.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use shallows_core::units::Rate;
use shallows_live::io::{Device, IoKind, Offload, set_offload};
use shallows_live::lab::{self, Lab};
use shallows_live::switch::{Control, Forwarding, PortEvent, Switch, SwitchConfig, Wait};

use crate::switching::FIFO;
use crate::{Running, ip, need_a_lab, plan, switch_config};

/// How long the kernel and the switch may take to notice.
const PATIENCE: Duration = Duration::from_secs(20);

fn config(hosts: usize, io: IoKind) -> SwitchConfig {
    let mut config = switch_config(hosts, Rate::from_mbps(100), FIFO);
    config.forwarding = Forwarding::Learning;
    config.wait = Wait::Block;
    config.ports.iter_mut().for_each(|port| port.io = io);
    config
}

fn expect(events: &Receiver<PortEvent>, wanted: &PortEvent) {
    let event = events.recv_timeout(PATIENCE);
    assert_eq!(event.as_ref(), Ok(wanted));
}

/// Turns of the loop in a while in which nothing happens.
fn turns(switch: &Running) -> u64 {
    let count = || switch.control.snapshot(PATIENCE).unwrap().gaps.count;
    let before = count();
    thread::sleep(Duration::from_millis(500));
    count() - before
}

/// Returns whether host `from` can open a connection to host `to`.
fn reaches(lab: &Lab, from: usize, to: usize) -> bool {
    let address = SocketAddr::from((lab::address(to), 7000));
    let server = lab.host(to).enter(|| TcpListener::bind(address));
    let _server = server.unwrap().unwrap();
    let connect = || TcpStream::connect_timeout(&address, PATIENCE).is_ok();
    lab.host(from).enter(connect).unwrap()
}

fn a_device_goes_and_comes_back(io: IoKind) {
    let lab = Lab::build(&plan(3)).unwrap();
    let (sender, events) = channel();
    let control = Control::with_events(sender);
    let switch = Running::start_with(&lab, config(3, io), control);
    let (inside, host) = (lab.switch().name(), lab.host(1).name());
    let device = lab::port(1);
    let lost = PortEvent::Lost {
        device: device.clone(),
    };
    let back = PortEvent::Back {
        device: device.clone(),
    };

    ip(&format!("-n {inside} link set {device} down"));
    expect(&events, &lost);
    // It sleeps for 20 ms at a time, and looks after a port every 67 ms.
    let idle = turns(&switch);
    assert!(
        idle < 200,
        "{idle} turns in half a second: it does not sleep"
    );
    ip(&format!("-n {inside} link set {device} up"));
    expect(&events, &back);
    let idle = turns(&switch);
    assert!(
        idle < 200,
        "{idle} turns in half a second: it does not sleep"
    );
    assert!(reaches(&lab, 0, 1), "through the port that came back");

    ip(&format!("-n {inside} link del {device}"));
    expect(&events, &lost);
    let idle = turns(&switch);
    assert!(
        idle < 200,
        "{idle} turns in half a second: it does not sleep"
    );
    assert!(reaches(&lab, 0, 2), "the other ports work on");

    let address = lab::address(1);
    let station = lab::station(1);
    ip(&format!(
        "-n {inside} link add {device} type veth peer name eth0 address {station} netns {host}"
    ));
    for (namespace, end) in [(lab.switch(), device.as_str()), (lab.host(1), "eth0")] {
        let off = || Offload::ALL.map(|offload| set_offload(end, offload, false).unwrap());
        namespace.enter(off).unwrap();
    }
    ip(&format!("-n {host} addr add {address}/16 dev eth0"));
    ip(&format!("-n {host} link set eth0 up"));
    ip(&format!("-n {inside} link set {device} up"));
    expect(&events, &back);
    assert!(
        reaches(&lab, 0, 1),
        "through the device that was made again"
    );

    let report = switch.stop();
    let counters = &report.snapshot.devices[1].1;
    assert_eq!((counters.losses, counters.lost), (2, false));
}

#[test]
fn a_lost_device_is_told_slept_through_and_taken_back() {
    need_a_lab!();
    a_device_goes_and_comes_back(IoKind::Packet);
}

#[test]
fn a_lost_xdp_device_is_taken_back_too() {
    need_a_lab!();
    let lab = Lab::build(&plan(2)).unwrap();
    let opened = lab
        .switch()
        .enter(|| Device::open(&lab::port(0), IoKind::Xdp));
    if let Err(error) = opened.unwrap() {
        shallows_testing::skip!("{error}");
    }
    lab.remove();
    a_device_goes_and_comes_back(IoKind::Xdp);
}

#[test]
fn a_device_belongs_to_one_switch() {
    need_a_lab!();
    let lab = Lab::build(&plan(3)).unwrap();
    let running = Running::start(&lab, config(2, IoKind::Packet));
    let open = |config: &SwitchConfig| {
        let opened = lab.switch().enter(|| Switch::open(config).map(drop));
        opened.unwrap().map_err(|error| error.to_string())
    };
    let error = open(&config(3, IoKind::Packet)).unwrap_err();
    let process = std::process::id();
    let expected = format!("another switch (process {process}) has the device p0");
    assert!(error.starts_with(&expected), "{error}");
    // Another device of the same namespace, and the same name elsewhere, are free.
    let mut other = config(3, IoKind::Packet);
    other.ports.drain(..2);
    open(&other).unwrap();
    let elsewhere = Lab::build(&plan(2)).unwrap();
    Running::start(&elsewhere, config(2, IoKind::Packet)).stop();
    running.stop();
    open(&config(3, IoKind::Packet)).unwrap();
}
