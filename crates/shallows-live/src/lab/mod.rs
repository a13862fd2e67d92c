//! A lab on one machine: hosts are network namespaces, each with a cable to the switch's.
//!
//! ```text
//! namespace h0: eth0 == veth == p0 \
//! namespace h1: eth0 == veth == p1  > namespace switch: the ports of a Switch
//! namespace h2: eth0 == veth == p2 /
//! ```
//!
//! Everything is in namespaces whose names begin with `shallows-`, and goes with them. A small
//! guard process waits for the end of the program, however it ends, and removes them;
//! [`clean`] finds what is left where the guard was killed as well.

mod cpus;
mod guard;
mod namespace;
mod niceness;
mod steal;
mod unprivileged;

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use thiserror::Error;

use crate::frame::Mac;
use crate::io::{IoError, Offload, set_offload};

pub use cpus::Cpus;
use guard::Guard;
pub(crate) use guard::MARK;
pub use guard::{Cleaned, clean};
pub use namespace::Namespace;
pub(crate) use niceness::Urgency;
pub use steal::StealClock;
pub(crate) use unprivileged::Unprivileged;
pub use unprivileged::calling_user;

/// Prefix of the names of our namespaces.
pub(crate) const PREFIX: &str = "shallows-";

/// The device of every host.
pub(crate) const DEVICE: &str = "eth0";

/// Most hosts: beyond it addresses would run out, long after CPUs.
pub const MOST_HOSTS: usize = 250;

/// Labs that this program has built.
static LABS: AtomicU32 = AtomicU32::new(0);

/// Hosts to make and how they are set.
#[derive(Clone, Debug)]
pub struct LabPlan {
    /// Number of hosts.
    pub hosts: usize,
    /// Largest IP packet.
    pub mtu: u32,
    /// Kernel settings of each host, such as `net.ipv4.tcp_ecn` and `1`.
    pub settings: Vec<(String, String)>,
    /// Options of each host's route to the others, such as `initcwnd` and `16`.
    pub route: Vec<(String, String)>,
    /// CPUs of the switch and of the hosts.
    pub cpus: Cpus,
}

/// The reason why a lab cannot be built.
#[derive(Debug, Error)]
pub enum LabError {
    /// Not allowed.
    #[error("network namespaces of a live lab need root: run it with sudo")]
    Root,
    /// Too many hosts.
    #[error("a live lab has 2 to {MOST_HOSTS} hosts, not {0}")]
    Hosts(usize),
    /// A program is missing.
    #[error("cannot run `{program}`: {error}; install the package {package}")]
    Program {
        /// Its name.
        program: String,
        /// Package that provides it.
        package: &'static str,
        /// Error of the system.
        error: std::io::Error,
    },
    /// A command failed.
    #[error("`{command}` failed: {output}")]
    Command {
        /// The command line.
        command: String,
        /// Output of the program.
        output: String,
    },
    /// A setting is missing or refuses its value.
    #[error("cannot set {name} = {value} in a namespace: {error}")]
    Setting {
        /// Its name.
        name: String,
        /// The value.
        value: String,
        /// Error of the system.
        error: std::io::Error,
    },
    /// A file of ours.
    #[error("{what}: {error}")]
    File {
        /// Attempted operation.
        what: String,
        /// Error of the system.
        error: std::io::Error,
    },
    /// A device.
    #[error(transparent)]
    Io(#[from] IoError),
}

/// Hosts and cables. They go when it is dropped, and also when the program is killed.
#[derive(Debug)]
pub struct Lab {
    switch: Namespace,
    hosts: Vec<Namespace>,
    guard: Guard,
}

impl Lab {
    /// Builds the lab, after clearing away what dead programs have left.
    pub fn build(plan: &LabPlan) -> Result<Self, LabError> {
        if !nix::unistd::geteuid().is_root() {
            return Err(LabError::Root);
        }
        if !(2..=MOST_HOSTS).contains(&plan.hosts) {
            return Err(LabError::Hosts(plan.hosts));
        }
        clean()?;
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let id = format!("{PREFIX}{}-{number}", std::process::id());
        let switch = Namespace::named(format!("{id}-switch"));
        let hosts = (0..plan.hosts).map(|host| Namespace::named(format!("{id}-h{host}")));
        let hosts: Vec<Namespace> = hosts.collect();
        let names = hosts.iter().chain([&switch]).map(Namespace::name);
        // Before anything is made, so that whatever happens next is cleared away.
        let guard = Guard::start(&id, names)?;
        let lab = Self {
            switch,
            hosts,
            guard,
        };
        lab.connect(plan)?;
        for number in 0..plan.hosts {
            lab.set_up_host(number, plan)?;
        }
        Ok(lab)
    }

    /// The namespace that the switch's devices are in.
    pub fn switch(&self) -> &Namespace {
        &self.switch
    }

    /// A host's namespace.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn host(&self, number: usize) -> &Namespace {
        &self.hosts[number]
    }

    /// Removes everything and waits until it is gone.
    pub fn remove(self) {
        drop(self.guard);
    }

    fn connect(&self, plan: &LabPlan) -> Result<(), LabError> {
        let mut namespaces = String::new();
        let mut cables = String::new();
        for namespace in self.hosts.iter().chain([&self.switch]) {
            writeln!(namespaces, "netns add {}", namespace.name()).expect("a text takes any line");
        }
        for (number, host) in self.hosts.iter().enumerate() {
            let (port, mtu, station) = (port(number), plan.mtu, station(number));
            writeln!(
                cables,
                "link add {port} mtu {mtu} gso_max_segs 1 type veth \
                 peer name {DEVICE} address {station} mtu {mtu} gso_max_segs 1 netns {}\n\
                 link set {port} up",
                host.name()
            )
            .expect("a text takes any line");
        }
        batch(&[], &namespaces)?;
        self.switch.set("net.ipv6.conf.default.disable_ipv6", "1")?;
        batch(&["-n", self.switch.name()], &cables)?;
        let ports: Vec<String> = (0..plan.hosts).map(port).collect();
        self.switch
            .enter(|| ports.iter().try_for_each(|port| without_offloads(port)))??;
        Ok(())
    }

    fn set_up_host(&self, number: usize, plan: &LabPlan) -> Result<(), LabError> {
        let host = &self.hosts[number];
        host.set("net.ipv6.conf.all.disable_ipv6", "1")?;
        // What programs there need root for elsewhere: ping, and ports below 1024.
        host.set("net.ipv4.ping_group_range", "0 2147483647")?;
        host.set("net.ipv4.ip_unprivileged_port_start", "0")?;
        host.enter(|| without_offloads(DEVICE))??;
        let mut commands = format!(
            "link set lo up\naddr add {}/16 dev {DEVICE}\nlink set {DEVICE} up\n",
            address(number)
        );
        // Known beforehand, so that no measurement begins with ARP.
        for other in (0..plan.hosts).filter(|&other| other != number) {
            let (address, station) = (address(other), station(other));
            writeln!(
                commands,
                "neigh add {address} lladdr {station} dev {DEVICE} nud permanent"
            )
            .expect("a text takes any line");
        }
        if !plan.route.is_empty() {
            write!(commands, "route replace 10.83.0.0/16 dev {DEVICE}").expect("a text takes it");
            for (name, value) in &plan.route {
                write!(commands, " {name} {value}").expect("a text takes it");
            }
            commands.push('\n');
        }
        batch(&["-n", host.name()], &commands)?;
        // Or what the switch sends would be received on the switch's own CPU.
        let steering = format!(
            "echo {} > /sys/class/net/{DEVICE}/queues/rx-0/rps_cpus",
            plan.cpus.host_mask()
        );
        ip(&["netns", "exec", host.name(), "sh", "-c", &steering], "")?;
        for (name, value) in &plan.settings {
            host.set(name, value)?;
        }
        Ok(())
    }
}

fn without_offloads(device: &str) -> Result<(), IoError> {
    Offload::ALL
        .into_iter()
        .try_for_each(|offload| set_offload(device, offload, false))
}

/// The switch's device of a host's cable.
pub fn port(host: usize) -> String {
    format!("p{host}")
}

/// A host's address.
pub fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 83, 0, host as u8 + 1)
}

/// A host's Ethernet address.
pub fn station(host: usize) -> Mac {
    Mac([0x02, 0x53, 0, 0, 0, host as u8 + 1])
}

/// Runs several commands of `ip` at once.
fn batch(options: &[&str], commands: &str) -> Result<(), LabError> {
    ip(&[options, &["-batch", "-"]].concat(), commands)
}

/// Runs `ip` with this input.
pub(crate) fn ip(arguments: &[&str], input: &str) -> Result<(), LabError> {
    let missing = |error| LabError::Program {
        program: "ip".to_owned(),
        package: "iproute2",
        error,
    };
    let mut child = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early says why below.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(missing)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::Command {
        command: format!("ip {}", arguments.join(" ")),
        output: said.trim().to_owned(),
    })
}
