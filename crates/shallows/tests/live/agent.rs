//! XCo's agent under its supervisor, between a guest and the network.

use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shallows_live::lab::{self, Cpus, Lab, LabPlan};
use shallows_testing::{alone, skip};
use tempfile::TempDir;

use crate::runs::unable;
use crate::support::{directory, shallows, write};

/// How long a busy machine may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The guest sends a datagram this often.
const INTERVAL: Duration = Duration::from_millis(1);

const PORT: u16 = 4000;

/// An agent in the switch's namespace of a lab, ended with the test. Host 0 of the lab is its
/// guest, host 1 is beyond its NIC.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

impl Agent {
    fn start(lab: &Lab, directory: &TempDir) -> Self {
        let text = format!(
            "key-file = \"xco.key\"
             [[controller]]
             name = \"c0\"
             address = \"127.0.0.1:4783\"
             [[host]]
             name = \"h0\"
             rate = \"1Gbps\"
             address = \"127.0.0.1:4784\"
             nic = \"{}\"
             inside = [{{ device = \"{}\" }}]
             stations = [\"{}\"]\n",
            lab::port(1),
            lab::port(0),
            lab::station(0)
        );
        write(directory, "cluster.toml", &text);
        for key in [
            "controller key --out xco.key",
            "controller key --config cluster.toml --host h0 --out h0.key",
        ] {
            shallows(directory).args(key.split(' ')).assert().success();
        }
        let file = |name| directory.path().join(name);
        fs::rename(file("h0.key"), file("xco.key")).unwrap();
        let agent = Command::new("ip")
            .args(["netns", "exec", lab.switch().name()])
            .arg(env!("CARGO_BIN_EXE_shallows"))
            .args(["agent", "--config", "cluster.toml", "--name", "h0"])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(agent.unwrap())
    }

    /// The process that works: a child of the supervisor, which `ip` has become.
    fn worker(&self) -> Option<Pid> {
        let supervisor = self.0.id();
        let children = format!("/proc/{supervisor}/task/{supervisor}/children");
        let children = fs::read_to_string(children).ok()?;
        let child = children.split_whitespace().next()?;
        child.parse().ok().map(Pid::from_raw)
    }
}

/// Receives until this has passed; the longest time without a datagram since it began.
fn longest_gap(socket: &UdpSocket, during: Duration) -> Duration {
    let mut last = Instant::now();
    let (end, mut longest) = (last + during, Duration::ZERO);
    while last < end {
        socket.recv(&mut [0; 64]).expect("traffic resumes");
        let now = Instant::now();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

#[test]
fn traffic_of_guests_resumes_after_their_agent_is_killed() {
    if let Some(reason) = unable() {
        skip!("{reason}");
    }
    let _alone = alone();
    let lab = Lab::build(&LabPlan {
        hosts: 2,
        mtu: 1500,
        settings: Vec::new(),
        route: Vec::new(),
        cpus: Cpus::split().unwrap(),
    });
    let (lab, directory) = (lab.unwrap(), directory());
    let open = |host: usize, port| {
        let bound = || UdpSocket::bind((lab::address(host), port)).unwrap();
        lab.host(host).enter(bound).unwrap()
    };
    let (guest, beyond) = (open(0, 0), open(1, PORT));
    beyond.set_read_timeout(Some(PATIENCE)).unwrap();
    let agent = Agent::start(&lab, &directory);
    let is_done = AtomicBool::new(false);
    let begun = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) && begun.elapsed() < 2 * PATIENCE {
                guest.send_to(b"tick", (lab::address(1), PORT)).unwrap();
                thread::sleep(INTERVAL);
            }
        });
        beyond.recv(&mut [0; 64]).expect("the agent is up");
        // More than a second each, after which the supervisor does not wait before it starts one.
        let usual = longest_gap(&beyond, Duration::from_millis(1500));
        let mut outages = Vec::new();
        for _ in 0..5 {
            let killed = agent.worker().expect("the agent has a worker");
            kill(killed, Signal::SIGKILL).unwrap();
            outages.push(longest_gap(&beyond, Duration::from_millis(1500)));
            assert_ne!(agent.worker(), Some(killed), "another process works");
        }
        println!("longest time without a datagram: {usual:?}; with kill -9 in it {outages:?}");
        is_done.store(true, Ordering::Relaxed);
    });
}
