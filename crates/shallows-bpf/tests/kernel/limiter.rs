//! QJUMP's limiter at real devices.

use std::fs::File;
use std::net::UdpSocket;

use nix::fcntl::{Flock, FlockArg};
use shallows_bpf::qjump::{self, Allotment, Device, Error, Hook, LevelStatus, Limits, Status};
use shallows_core::host::qjump::EpochClock;
use shallows_core::units::{Bytes, Time};
use socket2::SockRef;

use crate::lab::{run, within};

/// A namespace with a device, removed whatever happens.
pub(crate) struct Host {
    pub(crate) name: String,
    _lock: Flock<File>,
}

impl Host {
    /// None, with the reason printed, where this machine cannot do it.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if let Err(reason) = shallows_bpf::check() {
            println!("skipped: {reason}");
            return None;
        }
        let lock = File::create("/run/shallows-bpf-tests.lock").unwrap();
        let lock = Flock::lock(lock, FlockArg::LockExclusive).unwrap();
        let name = format!("shallows-bpf-test-qjump-{test}");
        let _ = std::process::Command::new("ip")
            .args(["netns", "del", &name])
            .output();
        run(&format!("ip netns add {name}"));
        let host = Self { name, _lock: lock };
        host.add_device();
        Some(host)
    }

    fn add_device(&self) {
        let name = &self.name;
        run(&format!(
            "ip -n {name} link add eth0.1 type veth peer name far"
        ));
        run(&format!("ip -n {name} addr add 10.99.1.1/24 dev eth0.1"));
        run(&format!("ip -n {name} link set eth0.1 up"));
        run(&format!("ip -n {name} link set far up"));
        run(&format!(
            "ip -n {name} neigh add 10.99.1.2 lladdr 02:00:00:00:00:02 dev eth0.1"
        ));
    }

    /// A name with a dot, as those of VLAN devices have.
    pub(crate) fn device(&self) -> Device {
        Device {
            name: "eth0.1".to_owned(),
            netns: Some(self.name.clone()),
        }
    }

    /// Sends packets of `bytes` with their Ethernet header at a level.
    fn send(&self, level: u32, bytes: usize, count: usize) {
        within(&self.name, || {
            let socket = UdpSocket::bind("10.99.1.1:0").unwrap();
            SockRef::from(&socket).set_priority(level).unwrap();
            for _ in 0..count {
                socket.send_to(&vec![0; bytes - 42], "10.99.1.2:9").unwrap();
            }
        });
    }

    pub(crate) fn status(&self) -> Option<Status> {
        let mut limiters = qjump::status().unwrap();
        limiters.retain(|limiter| limiter.device == self.device());
        limiters.pop()
    }

    fn ip(&self, arguments: &str) -> String {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = std::process::Command::new("ip")
            .args(["-n", &self.name])
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = qjump::remove(&self.device());
        run(&format!("ip netns del {}", self.name));
    }
}

fn limits() -> Limits {
    let bytes = |bytes| Allotment::Bytes(Bytes::new(bytes));
    Limits {
        // No test lasts as long.
        epoch: Time::from_secs(10),
        levels: vec![Allotment::Unlimited, bytes(15_140), bytes(256)],
        clock: EpochClock::Reanchored,
        dscp: None,
    }
}

#[test]
fn a_limiter_is_applied_found_and_removed() {
    for hook in [Hook::Tcx, Hook::Clsact] {
        let Some(host) = Host::new("apply") else {
            return;
        };
        let segments = host.ip("-d -o link show dev eth0.1");
        let report = match qjump::apply(&host.device(), &limits(), Some(hook)) {
            Err(Error::NoHook(why)) => {
                println!("skipped: no {hook}: {why}");
                continue;
            }
            report => report.unwrap(),
        };
        assert_eq!(report.hook, hook);
        assert_eq!(report.frame, Bytes::new(1514));
        assert_eq!(report.most_segments, Some(10));
        assert!(
            host.ip("-d link show dev eth0.1")
                .contains("gso_max_segs 10 ")
        );
        let again = qjump::apply(&host.device(), &limits(), None);
        assert!(matches!(again, Err(Error::AlreadyThere(_))), "{again:?}");

        host.send(0, 1000, 20);
        host.send(2, 100, 5);
        host.send(1, 1514, 11);
        let status = host.status().expect("it is found again");
        assert_eq!(status.hook, Some(hook));
        assert_eq!(
            status.limits,
            Limits {
                dscp: Some(vec![0, 8, 16]),
                ..limits()
            }
        );
        // The kernel may have packets of its own (IPv6) at the lowest level.
        assert!(status.levels[0].passed_bytes >= 20_000);
        let expected = |passed, bytes, dropped, tokens| LevelStatus {
            passed_packets: passed,
            passed_bytes: passed * bytes,
            dropped_packets: dropped,
            dropped_bytes: dropped * bytes,
            epochs: 1,
            tokens: Some(tokens),
        };
        assert_eq!(status.levels[2], expected(2, 100, 3, 56));
        assert_eq!(status.levels[1], expected(10, 1514, 1, 0));

        qjump::remove(&host.device()).unwrap();
        assert_eq!(host.status(), None);
        assert_eq!(host.ip("-d -o link show dev eth0.1"), segments);
        let gone = qjump::remove(&host.device());
        assert!(matches!(gone, Err(Error::NotThere(_))), "{gone:?}");
        host.send(2, 100, 5);
    }
}

#[test]
fn a_limiter_goes_with_its_device() {
    let Some(host) = Host::new("gone") else {
        return;
    };
    for hook in [Hook::Tcx, Hook::Clsact] {
        if let Err(Error::NoHook(why)) = qjump::apply(&host.device(), &limits(), Some(hook)) {
            println!("skipped: no {hook}: {why}");
            continue;
        }
        run(&format!("ip -n {} link del eth0.1", host.name));
        let missing = qjump::apply(&host.device(), &limits(), None);
        assert!(matches!(missing, Err(Error::NoDevice(_))), "{missing:?}");
        assert_eq!(host.status(), None, "what was left has been cleared away");
        host.add_device();
        qjump::apply(&host.device(), &limits(), None).unwrap();
        qjump::remove(&host.device()).unwrap();
    }
}

#[test]
fn what_is_impossible_leaves_nothing() {
    let Some(host) = Host::new("bad") else {
        return;
    };
    let too_small = Limits {
        levels: vec![Allotment::Bytes(Bytes::new(10))],
        ..limits()
    };
    let refused = qjump::apply(&host.device(), &too_small, None);
    assert!(matches!(refused, Err(Error::Limits(_))), "{refused:?}");
    let nowhere = Device {
        netns: Some("shallows-no-such".to_owned()),
        ..host.device()
    };
    let refused = qjump::apply(&nowhere, &limits(), None);
    assert!(
        matches!(refused, Err(Error::NoNamespace { .. })),
        "{refused:?}"
    );
    run(&format!("ip -n {} tuntap add dev tun0 mode tun", host.name));
    let tun = Device {
        name: "tun0".to_owned(),
        ..host.device()
    };
    let refused = qjump::apply(&tun, &limits(), None);
    assert!(matches!(refused, Err(Error::NotEthernet(_))), "{refused:?}");
    assert_eq!(host.status(), None);
}
