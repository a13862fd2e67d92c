//! XCo's controllers of two racks under a root: daemons, agents and guests in network namespaces.

use std::fmt::Write as _;
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use shallows_live::lab::{self, Cpus, Lab, LabPlan};
use shallows_testing::{alone, skip};
use tempfile::TempDir;

use crate::runs::unable;
use crate::support::directory;

/// How long a busy machine may take.
const PATIENCE: Duration = Duration::from_secs(60);

const HOSTS: usize = 4;
const PORT: u16 = 4000;

/// Hosts 0 and 1 are in the left rack, 2 and 3 in the right one.
const RACKS: [&str; HOSTS] = ["left", "left", "right", "right"];
const CONTROLLERS: [(&str, Option<&str>); 3] =
    [("root", None), ("p0", Some("left")), ("p1", Some("right"))];

/// A daemon, ended with the test.
pub(crate) struct Daemon(pub(crate) Child);

impl Daemon {
    pub(crate) fn signal(&mut self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), signal);
        let _ = self.0.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
    }
}

/// Guests, which are the hosts of a lab, and a machine with two bridges and all daemons, which is the
/// lab's switch. Each daemon has a directory with the file and its own key.
struct Racks {
    lab: Lab,
    directory: TempDir,
}

impl Racks {
    fn build() -> Self {
        let lab = Lab::build(&LabPlan {
            hosts: HOSTS,
            mtu: 1500,
            settings: Vec::new(),
            route: Vec::new(),
            cpus: Cpus::split().unwrap(),
        });
        let racks = Self {
            lab: lab.unwrap(),
            directory: directory(),
        };
        racks.ip("link set lo up");
        for rack in ["left", "right"] {
            racks.ip(&format!("link add {rack} type bridge"));
            racks.ip(&format!("link set {rack} up"));
        }
        racks.ip("link add trunk0 type veth peer name trunk1");
        racks.attach("trunk0", "left");
        racks.attach("trunk1", "right");
        for (host, rack) in RACKS.iter().enumerate() {
            racks.ip(&format!("link add nic{host} type veth peer name up{host}"));
            racks.ip(&format!("link set nic{host} up"));
            racks.attach(&format!("up{host}"), rack);
        }
        racks.write_files();
        racks
    }

    fn ip(&self, arguments: &str) {
        let status = Command::new("ip")
            .args(["-n", self.lab.switch().name()])
            .args(arguments.split(' '))
            .status();
        assert!(status.unwrap().success(), "{arguments}");
    }

    fn attach(&self, device: &str, bridge: &str) {
        self.ip(&format!("link set {device} master {bridge}"));
        self.ip(&format!("link set {device} up"));
    }

    fn place(&self, daemon: &str) -> PathBuf {
        self.directory.path().join(daemon)
    }

    fn write_files(&self) {
        let mut text = String::from(
            "key-file = \"xco.key\"\nhierarchy = { root-share = 50 }\n\
             [[trunk]]\nbetween = [\"left\", \"right\"]\nrate = \"100Mbps\"\n",
        );
        for (number, (name, pod)) in CONTROLLERS.iter().enumerate() {
            let _ = write!(
                text,
                "[[controller]]\nname = \"{name}\"\naddress = \"127.0.0.1:478{number}\"\n"
            );
            text += &pod.map_or(String::new(), |pod| format!("pod = \"{pod}\"\n"));
        }
        for (host, rack) in RACKS.iter().enumerate() {
            let _ = write!(
                text,
                "[[host]]\nname = \"h{host}\"\nrate = \"100Mbps\"\nswitch = \"{rack}\"\n\
                 address = \"127.0.0.1:479{host}\"\npod-address = \"127.0.0.1:480{host}\"\n\
                 metrics = \"127.0.0.1:481{host}\"\nnic = \"nic{host}\"\n\
                 inside = [{{ device = \"{}\" }}]\nstations = [\"{}\"]\n",
                lab::port(host),
                lab::station(host)
            );
        }
        let hosts = (0..HOSTS).map(|host| format!("h{host}"));
        let controllers = CONTROLLERS.iter().map(|(name, _)| (*name).to_owned());
        for daemon in controllers.chain(hosts) {
            fs::create_dir(self.place(&daemon)).unwrap();
            fs::write(self.place(&daemon).join("cluster.toml"), &text).unwrap();
        }
        self.key("--out xco.key");
        self.key("--config cluster.toml --pod left --out ../p0/xco.key");
        self.key("--config cluster.toml --pod right --out ../p1/xco.key");
        for host in 0..HOSTS {
            self.key(&format!(
                "--config cluster.toml --host h{host} --out ../h{host}/xco.key"
            ));
        }
    }

    /// Makes a key where the cluster's is.
    fn key(&self, arguments: &str) {
        let made = Command::new(env!("CARGO_BIN_EXE_shallows"))
            .args(["controller", "key"])
            .args(arguments.split(' '))
            .current_dir(self.place("root"))
            .status();
        assert!(made.unwrap().success(), "{arguments}");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", self.lab.switch().name()])
            .arg(env!("CARGO_BIN_EXE_shallows"))
            .args(arguments);
        command
    }

    fn start(&self, what: &str, name: &str) -> Daemon {
        let started = self
            .command(&[what, "--config", "cluster.toml", "--name", name])
            .current_dir(self.place(name))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Daemon(started.unwrap())
    }

    /// Mode and slots of the coordinators of a host: that of its pod, then the root's.
    fn coordinators(&self, host: usize) -> Option<[(String, u64); 2]> {
        let at = format!("127.0.0.1:481{host}");
        let mut asked = self.command(&["agent", "status", "--json", "--at", &at]);
        let status: Value = serde_json::from_slice(&asked.output().unwrap().stdout).ok()?;
        let levels = ["pod", "root"].map(|level| {
            let all = status["coordinators"].as_array().into_iter().flatten();
            let of = all.into_iter().find(|of| of["level"] == level).unwrap();
            let mode = of["mode"].as_str().unwrap().to_owned();
            (mode, of["slots"].as_u64().unwrap())
        });
        Some(levels)
    }

    /// Waits until the coordinators of all hosts are coordinated at these levels, and only there.
    fn await_modes(&self, expected: [[bool; 2]; HOSTS]) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let modes: Vec<_> = (0..HOSTS).map(|host| self.coordinators(host)).collect();
            let is = |of: &Option<[(String, u64); 2]>| {
                let of = of.as_ref()?;
                Some(of.each_ref().map(|(mode, _)| mode == "coordinated"))
            };
            if modes.iter().map(is).eq(expected.map(Some)) {
                return;
            }
            assert!(Instant::now() < deadline, "{modes:?} is not {expected:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sends datagrams from one guest to another and waits for all of them.
    fn send(&self, from: usize, to: usize) {
        let open = |host: usize, port| {
            let bound = || UdpSocket::bind((lab::address(host), port)).unwrap();
            self.lab.host(host).enter(bound).unwrap()
        };
        let (sender, receiver) = (open(from, 0), open(to, PORT));
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        for _ in 0..40 {
            sender
                .send_to(&[0; 1400], (lab::address(to), PORT))
                .unwrap();
        }
        for number in 0..40 {
            let received = receiver.recv(&mut [0; 1500]);
            assert!(received.is_ok(), "datagram {number} from {from} to {to}");
        }
    }
}

#[test]
fn racks_under_a_root_are_coordinated_and_fail_alone() {
    if let Some(reason) = unable() {
        skip!("{reason}");
    }
    let _alone = alone();
    let racks = Racks::build();
    let mut controllers = CONTROLLERS.map(|(name, _)| racks.start("controller", name));
    let _agents: Vec<Daemon> = (0..HOSTS)
        .map(|host| racks.start("agent", &format!("h{host}")))
        .collect();
    racks.await_modes([[true; 2]; HOSTS]);

    // Each level gives slots to its own pairs only.
    racks.send(0, 1);
    let [pod, root] = racks.coordinators(0).unwrap();
    assert!(pod.1 > 0 && root.1 == 0, "pod {pod:?}, root {root:?}");
    racks.send(2, 0);
    let [pod, root] = racks.coordinators(2).unwrap();
    assert!(pod.1 == 0 && root.1 > 0, "pod {pod:?}, root {root:?}");

    // A pod without its controller: its own pairs go on uncoordinated, all others as before.
    controllers[1].signal(Signal::SIGKILL);
    let left_alone = [[false, true], [false, true], [true; 2], [true; 2]];
    racks.await_modes(left_alone);
    racks.send(1, 0);
    racks.send(0, 3);
    racks.send(3, 2);
    controllers[1] = racks.start("controller", "p0");
    racks.await_modes([[true; 2]; HOSTS]);

    // Without the root pods go on.
    controllers[0].signal(Signal::SIGKILL);
    racks.await_modes([[true, false]; HOSTS]);
    racks.send(0, 1);
    racks.send(0, 2);
}
