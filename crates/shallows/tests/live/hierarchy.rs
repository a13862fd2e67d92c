//! XCo's controllers of two racks under a root: daemons, agents and guests in network namespaces.

use std::fmt::Write as _;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use shallows_live::lab;
use shallows_testing::{alone, skip};

use crate::cluster::Cluster;
use crate::runs::unable;

/// How long a busy machine may take.
const PATIENCE: Duration = Duration::from_secs(60);

const HOSTS: usize = 4;
const PORT: u16 = 4000;

/// Hosts 0 and 1 are in the left rack, 2 and 3 in the right one.
const RACKS: [&str; HOSTS] = ["left", "left", "right", "right"];
const CONTROLLERS: [(&str, Option<&str>); 3] =
    [("root", None), ("p0", Some("left")), ("p1", Some("right"))];

/// Two bridges on one machine, with a trunk between them: a rack each.
struct Racks(Cluster);

impl Racks {
    fn build() -> Self {
        let cluster = Cluster::new(HOSTS);
        cluster.add_bridge("left");
        cluster.add_bridge("right");
        cluster.ip("link add trunk0 type veth peer name trunk1");
        cluster.attach("trunk0", "left");
        cluster.attach("trunk1", "right");
        for (host, rack) in RACKS.iter().enumerate() {
            cluster.add_nic(host, rack);
        }
        let racks = Self(cluster);
        racks.write_files();
        racks
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
        let names = CONTROLLERS.map(|(name, _)| name);
        self.0.equip(&text, &names, HOSTS);
        for (name, pod) in CONTROLLERS {
            if let Some(pod) = pod {
                let of_pod = format!("--config cluster.toml --pod {pod} --out ../{name}/xco.key");
                self.0.make_key(names[0], &of_pod);
            }
        }
    }

    /// Mode and slots of the coordinators of a host: that of its pod, then the root's.
    fn coordinators(&self, host: usize) -> Option<[(String, u64); 2]> {
        let all = self.0.coordinators(host)?;
        let levels = ["pod", "root"].map(|level| {
            let of = all.iter().find(|of| of["level"] == level).unwrap();
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
            self.0.lab.host(host).enter(bound).unwrap()
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
    let start = |(name, _)| racks.0.start("controller", name);
    let mut controllers = CONTROLLERS.map(start);
    let _agents = racks.0.start_agents(HOSTS);
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
    controllers[1] = start(CONTROLLERS[1]);
    racks.await_modes([[true; 2]; HOSTS]);

    // Without the root pods go on.
    controllers[0].signal(Signal::SIGKILL);
    racks.await_modes([[true, false]; HOSTS]);
    racks.send(0, 1);
    racks.send(0, 2);
}
