//! XCo's agent under its supervisor, between a guest and the network.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use shallows_live::lab;
use shallows_testing::{alone, skip};

use crate::cluster::{Cluster, Daemon};
use crate::runs::unable;

/// How long a busy machine may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The guest sends a datagram this often.
const INTERVAL: Duration = Duration::from_millis(1);

const PORT: u16 = 4000;

/// An agent between host 0 of the lab, its guest, and host 1, which is beyond its NIC. There is no
/// controller.
fn start_agent(cluster: &Cluster) -> Daemon {
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
    cluster.equip(&text, &["c0"], 1);
    cluster.start("agent", "h0")
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
    let cluster = Cluster::new(2);
    let open = |host: usize, port| {
        let bound = || UdpSocket::bind((lab::address(host), port)).unwrap();
        cluster.lab.host(host).enter(bound).unwrap()
    };
    let (guest, beyond) = (open(0, 0), open(1, PORT));
    beyond.set_read_timeout(Some(PATIENCE)).unwrap();
    let agent = start_agent(&cluster);
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
