//! A guest that migrates from one machine with an agent of XCo to another.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use shallows_live::io::{Offload, set_offload};
use shallows_live::lab;
use shallows_testing::{alone, skip};

use crate::cluster::{Cluster, ip};
use crate::runs::unable;

/// Time that a busy machine may take.
const PATIENCE: Duration = Duration::from_secs(60);

const PORT: u16 = 4000;
const MACHINES: usize = 3;

/// Hosts of the lab: the guest that migrates, and the one that it talks to.
const GUEST: usize = 0;
const PEER: usize = 1;

/// The guest's second device, of the machine that it migrates to, and its end there.
const NEW_DEVICE: &str = "eth1";
const NEW_PORT: &str = "vnet1";

/// Three machines at one switch: agents h0, h1 and h2 and a controller. The guest begins at h0 and
/// migrates to h1; its peer is at h2.
struct Machines(Cluster);

impl Machines {
    fn build() -> Self {
        let cluster = Cluster::new(2);
        let guest = cluster.lab.host(GUEST);
        cluster.add_bridge("wire");
        for host in 0..MACHINES {
            cluster.add_nic(host, "wire");
        }
        // The new device has the address of the old one, as after every migration.
        cluster.ip(&format!(
            "link add {NEW_PORT} type veth peer name {NEW_DEVICE} address {} netns {}",
            lab::station(GUEST),
            guest.name()
        ));
        cluster.ip(&format!("link set {NEW_PORT} up"));
        let without = |device: &'static str| {
            move || {
                Offload::ALL
                    .into_iter()
                    .try_for_each(|of| set_offload(device, of, false))
            }
        };
        guest.enter(without(NEW_DEVICE)).unwrap().unwrap();
        cluster
            .lab
            .switch()
            .enter(without(NEW_PORT))
            .unwrap()
            .unwrap();
        let machines = Self(cluster);
        machines.write_files();
        machines
    }

    fn write_files(&self) {
        let mut text = String::from(
            "key-file = \"xco.key\"\nlearn-places = true\n\
             [[controller]]\nname = \"c0\"\naddress = \"127.0.0.1:4780\"\n",
        );
        let inside = [lab::port(GUEST), NEW_PORT.to_owned(), lab::port(PEER)];
        for (host, device) in inside.iter().enumerate() {
            let _ = write!(
                text,
                "[[host]]\nname = \"h{host}\"\nrate = \"100Mbps\"\naddress = \"127.0.0.1:479{host}\"\n\
                 metrics = \"127.0.0.1:481{host}\"\nnic = \"nic{host}\"\n\
                 inside = [{{ device = \"{device}\" }}]\n"
            );
        }
        self.0.equip(&text, &["c0"], MACHINES);
    }

    /// The coordinator of a host.
    fn coordinator(&self, host: usize) -> Option<Value> {
        self.0.coordinators(host)?.into_iter().next()
    }

    fn await_coordination(&self) {
        let deadline = Instant::now() + PATIENCE;
        for host in 0..MACHINES {
            while self
                .coordinator(host)
                .is_none_or(|of| of["mode"] != "coordinated")
            {
                assert!(Instant::now() < deadline, "h{host} is not coordinated");
                thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// The hosts that a host has permits to, over several looks at it.
    fn permitted(&self, host: usize) -> BTreeSet<u64> {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = BTreeSet::new();
        while seen.is_empty() {
            assert!(Instant::now() < deadline, "h{host} has no permits");
            for _ in 0..10 {
                let of = self.coordinator(host).expect("the agent answers");
                let permits = of["permits"].as_array().into_iter().flatten();
                seen.extend(permits.filter_map(|permit| permit[0].as_u64()));
            }
        }
        seen
    }

    /// Moves the guest's address from its device at h0 to that at h1.
    fn migrate(&self) {
        let (guest, station) = (self.0.lab.host(GUEST).name(), lab::station(PEER));
        ip(guest, "link set eth0 down");
        ip(guest, "addr flush dev eth0");
        ip(
            guest,
            &format!("addr add {}/16 dev {NEW_DEVICE}", lab::address(GUEST)),
        );
        ip(guest, &format!("link set {NEW_DEVICE} up"));
        ip(
            guest,
            &format!(
                "neigh replace {} lladdr {station} dev {NEW_DEVICE} nud permanent",
                lab::address(PEER)
            ),
        );
    }
}

/// Sends full datagrams from a socket until it is done, 50 Mbps at most.
fn flood(socket: &UdpSocket, to: usize, is_done: &AtomicBool) {
    let begun = Instant::now();
    while !is_done.load(Ordering::Relaxed) && begun.elapsed() < 2 * PATIENCE {
        for _ in 0..5 {
            // Without a device there is no way; the guest goes on when it has one.
            let _ = socket.send_to(&[0; 1400], (lab::address(to), PORT));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Datagrams that a socket has received, and the longest time between two since the last look.
#[derive(Default)]
struct Received {
    datagrams: AtomicU64,
    longest_gap: AtomicU64,
}

impl Received {
    fn run(&self, socket: &UdpSocket, is_done: &AtomicBool) {
        let mut last = Instant::now();
        while !is_done.load(Ordering::Relaxed) && last.elapsed() < PATIENCE {
            if socket.recv(&mut [0; 1500]).is_ok() {
                let gap = last.elapsed().as_micros() as u64;
                self.longest_gap.fetch_max(gap, Ordering::Relaxed);
                self.datagrams.fetch_add(1, Ordering::Relaxed);
                last = Instant::now();
            }
        }
    }

    /// Waits for a thousand more; the longest gap in milliseconds since the last call.
    fn thousand_more(&self) -> f64 {
        let (begun, before) = (Instant::now(), self.datagrams.load(Ordering::Relaxed));
        while self.datagrams.load(Ordering::Relaxed) < before + 1000 {
            assert!(begun.elapsed() < PATIENCE, "traffic goes on");
            thread::sleep(Duration::from_millis(10));
        }
        self.longest_gap.swap(0, Ordering::Relaxed) as f64 / 1e3
    }
}

#[test]
fn a_guest_that_migrates_is_coordinated_at_its_new_machine() {
    if let Some(reason) = unable() {
        skip!("{reason}");
    }
    let _alone = alone();
    let machines = Machines::build();
    let _controller = machines.0.start("controller", "c0");
    let mut agents = machines.0.start_agents(MACHINES);
    machines.await_coordination();
    let open = |host: usize| {
        let bound = || UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
        let socket = machines.0.lab.host(host).enter(bound).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        socket
    };
    let (guest, peer) = (open(GUEST), open(PEER));
    let is_done = AtomicBool::new(false);
    let (at_guest, at_peer) = (Received::default(), Received::default());
    thread::scope(|scope| {
        scope.spawn(|| flood(&guest, PEER, &is_done));
        scope.spawn(|| flood(&peer, GUEST, &is_done));
        scope.spawn(|| at_guest.run(&guest, &is_done));
        scope.spawn(|| at_peer.run(&peer, &is_done));
        let gaps = || (at_guest.thousand_more(), at_peer.thousand_more());
        gaps();
        let usual = gaps();
        // The guest is at h0, and its peer has permits to that host.
        assert_eq!(machines.permitted(2), BTreeSet::from([0]));
        assert_eq!(machines.permitted(0), BTreeSet::from([2]));

        gaps();
        let begun = Instant::now();
        machines.migrate();
        let commands = begun.elapsed().as_secs_f64() * 1e3;
        let outage = gaps();
        println!(
            "longest gap of the guest and its peer: usually {usual:?} ms, around the migration \
             {outage:?} ms, of which its commands take {commands:.1} ms"
        );
        // Its old machine may go.
        agents[0].signal(Signal::SIGTERM);
        gaps();
        assert_eq!(machines.permitted(2), BTreeSet::from([1]));
        assert_eq!(machines.permitted(1), BTreeSet::from([2]));
        is_done.store(true, Ordering::Relaxed);
    });
}
