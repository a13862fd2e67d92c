//! The switch and the lab on the real kernel: real namespaces, real TCP, real programs.
//!
//! Each test takes a few seconds. Without root they say so and pass; nothing here looks at how fast
//! the machine is.

mod commands;
mod leftovers;
mod loss;
mod ports;
mod switching;
mod traffic;
mod xco;

use std::fs::File;
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use shallows_core::units::Rate;
use shallows_live::lab::{self, Cpus, Lab, LabPlan};
use shallows_live::switch::{Control, Forwarding, PortPlan, Report, Switch, SwitchConfig};

/// Says why a test cannot run here, if it cannot.
fn unable() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return Some("it needs root");
    }
    let ip = Command::new("ip").arg("-V").output();
    if !ip.is_ok_and(|output| output.status.success()) {
        return Some("it needs `ip` of iproute2");
    }
    None
}

/// Returns from the test with a printed reason where it cannot run.
macro_rules! need_a_lab {
    () => {
        if let Some(reason) = crate::unable() {
            println!("skipped: {reason}");
            return;
        }
        let _turn = crate::turn();
    };
}
pub(crate) use need_a_lab;

/// One live test at a time, or they would take each other's CPUs.
fn turn() -> Flock<File> {
    let file = File::create("/run/shallows-test-turn").unwrap();
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, error)| error)
        .unwrap()
}

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

/// Runs `ip`, which must succeed.
fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {said}");
}
