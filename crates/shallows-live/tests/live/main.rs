//! The switch and the lab on the real kernel: real namespaces, real TCP, real programs.
//!
//! Each test takes a few seconds. Without root they are skipped; nothing here looks at how fast
//! the machine is.

mod commands;
mod leftovers;
mod loss;
mod ports;
mod switching;
mod traffic;
mod xco;

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use shallows_core::units::Rate;
use shallows_live::lab::{self, Cpus, Lab, LabPlan};
use shallows_live::switch::{Control, Forwarding, PortPlan, Report, Switch, SwitchConfig};
use socket2::{Domain, Protocol, Socket, Type};

/// Says why a test cannot run here, if it cannot.
fn unable() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("it needs root".to_owned());
    }
    shallows_testing::missing_program(&["ip"])
}

/// Skips the test where it cannot run, and waits until it is alone: live tests would take each
/// other's CPUs.
macro_rules! need_a_lab {
    () => {
        if let Some(reason) = crate::unable() {
            shallows_testing::skip!("{reason}");
        }
        let _alone = shallows_testing::alone();
    };
}
pub(crate) use need_a_lab;

fn plan(hosts: usize) -> LabPlan {
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    LabPlan {
        hosts,
        mtu: 1500,
        settings: vec![
            set("net.ipv4.tcp_ecn", "1"),
            set("net.ipv4.tcp_congestion_control", "reno"),
            set("net.ipv4.tcp_no_metrics_save", "1"),
        ],
        route: Vec::new(),
        cpus: Cpus::split().unwrap(),
    }
}

/// A switch for a lab with this egress at every port.
fn switch_config(hosts: usize, rate: Rate, egress: &str) -> SwitchConfig {
    let text = format!("port = []\n[egress]\nframing = \"ethernet\"\n{egress}");
    let mut config = SwitchConfig::parse(&text).unwrap();
    config.cpu = Cpus::split().unwrap().switch;
    config.nice = Some(-20);
    config.forwarding = Forwarding::Static;
    for host in 0..hosts {
        let mut port = PortPlan::new(lab::port(host), rate);
        port.stations = vec![lab::station(host).to_string()];
        config.ports.push(port);
    }
    config
}

/// A switch on a thread of its own in the lab's namespace.
struct Running {
    control: Control,
    thread: JoinHandle<Report>,
}

impl Running {
    fn start(lab: &Lab, config: SwitchConfig) -> Self {
        Self::start_with(lab, config, Control::default())
    }

    fn start_with(lab: &Lab, config: SwitchConfig, control: Control) -> Self {
        let (namespace, inside) = (lab.switch().clone(), control.clone());
        let thread = thread::spawn(move || {
            namespace.join().unwrap();
            Switch::open(&config).unwrap().run(&inside).unwrap()
        });
        let running = Self { control, thread };
        let answer = running.control.snapshot(Duration::from_secs(10));
        assert!(answer.is_some(), "the switch is up");
        running
    }

    fn stop(self) -> Report {
        self.control.stop();
        self.thread.join().unwrap()
    }
}

/// Runs a program at a host.
fn at(lab: &Lab, host: usize, program: &str) -> Output {
    let name = lab.host(host).name();
    let words = program.split(' ');
    let output = Command::new("ip")
        .args(["netns", "exec", name])
        .args(words)
        .output();
    output.unwrap()
}

/// Sends echo requests of ICMP with this DSCP from a host, 50 ms apart, and expects an answer to
/// each. Hosts of a lab let every program do so.
fn ping(lab: &Lab, host: usize, to: Ipv4Addr, dscp: u8, count: u8) {
    let opened = lab
        .host(host)
        .enter(|| Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4)));
    let socket = opened.unwrap().unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket.set_tos_v4(u32::from(dscp) << 2).unwrap();
    socket.connect(&SocketAddr::from((to, 0)).into()).unwrap();
    for number in 0..count {
        // Type, code, checksum and identifier, the latter two of the kernel, then the number.
        let mut request = vec![8, 0, 0, 0, 0, 0, 0, number];
        request.resize(64, 0);
        socket.send(&request).unwrap();
        let mut answer = [0; 64];
        let length = (&socket).read(&mut answer);
        let length = length.unwrap_or_else(|error| panic!("no answer to ping {number}: {error}"));
        assert_eq!((length, answer[0], answer[7]), (64, 0, number));
        thread::sleep(Duration::from_millis(50));
    }
}

/// Runs `ip`, which must succeed.
fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {said}");
}
