//! A lab for daemons: hosts in network namespaces, and XCo's controllers and agents on one machine.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use shallows_live::lab::{Cpus, Lab, LabPlan};
use tempfile::TempDir;

use crate::support::directory;

/// A lab whose hosts have the kernel's own settings.
pub(crate) fn lab(hosts: usize) -> Lab {
    let lab = Lab::build(&LabPlan {
        hosts,
        mtu: 1500,
        settings: Vec::new(),
        route: Vec::new(),
        cpus: Cpus::split().unwrap(),
    });
    lab.unwrap()
}

/// Runs `ip` in a network namespace.
pub(crate) fn ip(namespace: &str, arguments: &str) {
    let status = Command::new("ip")
        .args(["-n", namespace])
        .args(arguments.split(' '))
        .status();
    assert!(status.unwrap().success(), "{arguments}");
}

/// A daemon, ended with the test.
pub(crate) struct Daemon(Child);

impl Daemon {
    pub(crate) fn signal(&mut self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), signal);
        let _ = self.0.wait();
    }

    /// The process that works: a child of the supervisor, which `ip` has become.
    pub(crate) fn worker(&self) -> Option<Pid> {
        let supervisor = self.0.id();
        let children = format!("/proc/{supervisor}/task/{supervisor}/children");
        let children = fs::read_to_string(children).ok()?;
        let child = children.split_whitespace().next()?;
        child.parse().ok().map(Pid::from_raw)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
    }
}

/// Guests, which are the hosts of a lab, and a machine with all daemons, which is the lab's switch.
/// Each daemon has a directory with the cluster's file and its own key.
pub(crate) struct Cluster {
    pub(crate) lab: Lab,
    directory: TempDir,
}

impl Cluster {
    pub(crate) fn new(guests: usize) -> Self {
        let cluster = Self {
            lab: lab(guests),
            directory: directory(),
        };
        cluster.ip("link set lo up");
        cluster
    }

    /// Runs `ip` on the machine.
    pub(crate) fn ip(&self, arguments: &str) {
        ip(self.lab.switch().name(), arguments);
    }

    pub(crate) fn add_bridge(&self, name: &str) {
        self.ip(&format!("link add {name} type bridge"));
        self.ip(&format!("link set {name} up"));
    }

    pub(crate) fn attach(&self, device: &str, bridge: &str) {
        self.ip(&format!("link set {device} master {bridge}"));
        self.ip(&format!("link set {device} up"));
    }

    /// Adds the device `nic<host>`, whose other end is at a bridge.
    pub(crate) fn add_nic(&self, host: usize, bridge: &str) {
        self.ip(&format!("link add nic{host} type veth peer name up{host}"));
        self.ip(&format!("link set nic{host} up"));
        self.attach(&format!("up{host}"), bridge);
    }

    fn place(&self, daemon: &str) -> PathBuf {
        self.directory.path().join(daemon)
    }

    /// Gives controllers and the agents h0, h1 and so on the cluster's file, the first controller
    /// the cluster's key, and each agent the key of its host.
    pub(crate) fn equip(&self, file: &str, controllers: &[&str], hosts: usize) {
        let agents = (0..hosts).map(|host| format!("h{host}"));
        let controllers = controllers.iter().map(|&name| name.to_owned());
        let daemons: Vec<String> = controllers.chain(agents).collect();
        for daemon in &daemons {
            fs::create_dir(self.place(daemon)).unwrap();
            fs::write(self.place(daemon).join("cluster.toml"), file).unwrap();
        }
        let first = &daemons[0];
        self.make_key(first, "--out xco.key");
        for host in 0..hosts {
            let of_host = format!("--config cluster.toml --host h{host} --out ../h{host}/xco.key");
            self.make_key(first, &of_host);
        }
    }

    /// Makes a key in the directory of a daemon.
    pub(crate) fn make_key(&self, daemon: &str, arguments: &str) {
        let made = Command::new(env!("CARGO_BIN_EXE_shallows"))
            .args(["controller", "key"])
            .args(arguments.split(' '))
            .current_dir(self.place(daemon))
            .status();
        assert!(made.unwrap().success(), "{arguments}");
    }

    /// The command on the machine.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", self.lab.switch().name()])
            .arg(env!("CARGO_BIN_EXE_shallows"))
            .args(arguments);
        command
    }

    /// Starts a controller or an agent.
    pub(crate) fn start(&self, kind: &str, name: &str) -> Daemon {
        let started = self
            .command(&[kind, "--config", "cluster.toml", "--name", name])
            .current_dir(self.place(name))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Daemon(started.unwrap())
    }

    /// Starts the agents of the first hosts.
    pub(crate) fn start_agents(&self, hosts: usize) -> Vec<Daemon> {
        let names = (0..hosts).map(|host| format!("h{host}"));
        names.map(|name| self.start("agent", &name)).collect()
    }

    /// Status of the coordinators of a host, whose agent has its metrics at port 4810 + host.
    pub(crate) fn coordinators(&self, host: usize) -> Option<Vec<Value>> {
        let at = format!("127.0.0.1:481{host}");
        let mut asked = self.command(&["agent", "status", "--json", "--at", &at]);
        let status: Value = serde_json::from_slice(&asked.output().unwrap().stdout).ok()?;
        status["coordinators"].as_array().cloned()
    }
}
