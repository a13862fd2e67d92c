//! QJUMP's limiter at real devices.

use std::fs::File;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use shallows_bpf::qjump::{
    self, Allotment, Device, Error, Hook, LevelStatus, Limits, Options, Status, priority_of,
};
use shallows_core::host::qjump::{EpochClock, Excess};
use shallows_core::units::{Bytes, Time};
use shallows_testing::{alone, skipped};
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
            skipped(&reason.to_string());
            return None;
        }
        let lock = alone();
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
    fn send(&self, level: u8, bytes: usize, count: usize) {
        within(&self.name, || {
            let socket = UdpSocket::bind("10.99.1.1:0").unwrap();
            SockRef::from(&socket)
                .set_priority(priority_of(level))
                .unwrap();
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

pub(crate) fn limits() -> Limits {
    let bytes = |bytes| Allotment::Bytes(Bytes::new(bytes));
    Limits {
        // No test lasts as long.
        epoch: Time::from_secs(10),
        levels: vec![Allotment::Unlimited, bytes(15_380), bytes(280)],
        clock: EpochClock::Reanchored,
        excess: Excess::Drop,
        hold_limit: None,
        dscp: None,
        priority_tag: false,
    }
}

fn at(hook: Hook) -> Options {
    Options {
        hook: Some(hook),
        ..Options::default()
    }
}

fn apply(device: &Device, limits: &Limits) -> Result<qjump::Report, Error> {
    qjump::apply(device, limits, &Options::default())
}

#[test]
fn a_limiter_is_applied_found_and_removed() {
    for hook in [Hook::Tcx, Hook::Clsact] {
        let Some(host) = Host::new("apply") else {
            return;
        };
        let link = host.ip("-d -o link show dev eth0.1");
        let would = qjump::check(&host.device(), &limits(), &at(hook)).unwrap();
        assert_eq!((would.hook, would.replaced), (Some(hook), None));
        assert_eq!(host.status(), None, "nothing was changed");
        let report = match qjump::apply(&host.device(), &limits(), &at(hook)) {
            Err(Error::NoHook(why)) => {
                skipped(&format!("no {hook}: {why}"));
                continue;
            }
            report => report.unwrap(),
        };
        assert_eq!(report.hook, Some(hook));
        assert_eq!(report.frame, Bytes::new(1514));
        assert_eq!(
            (&*report.queue.qdisc, report.queue.problem),
            ("noqueue", None)
        );
        let same = host.ip("-d -o link show dev eth0.1");
        assert_eq!(same, link, "the device is as it was");

        host.send(0, 1000, 20);
        host.send(2, 100, 5);
        host.send(1, 1514, 11);
        let status = host.status().expect("it is found again");
        assert_eq!(status.hook, Some(hook));
        assert_eq!(
            status.limits,
            Limits {
                dscp: Some(vec![0, 11, 19]),
                ..limits()
            }
        );
        // The kernel may have packets of its own (IPv6) at the lowest level.
        assert!(status.levels[0].passed_bytes >= 20 * 1024);
        let expected = |passed, bytes, dropped, tokens| LevelStatus {
            waiting_bytes: None,
            passed_packets: passed,
            passed_bytes: passed * bytes,
            dropped_packets: dropped,
            dropped_bytes: dropped * bytes,
            epochs: 1,
            tokens: Some(tokens),
        };
        assert_eq!(status.levels[2], expected(2, 124, 3, 32));
        assert_eq!(status.levels[1], expected(10, 1538, 1, 0));

        qjump::remove(&host.device()).unwrap();
        assert_eq!(host.status(), None);
        assert_eq!(host.ip("-d -o link show dev eth0.1"), link);
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
        if let Err(Error::NoHook(why)) = qjump::apply(&host.device(), &limits(), &at(hook)) {
            skipped(&format!("no {hook}: {why}"));
            continue;
        }
        run(&format!("ip -n {} link del eth0.1", host.name));
        assert_eq!(host.status(), None, "what was left has been cleared away");
        let missing = apply(&host.device(), &limits());
        assert!(matches!(missing, Err(Error::NoDevice(_))), "{missing:?}");
        host.add_device();
        apply(&host.device(), &limits()).unwrap();
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
    let refused = apply(&host.device(), &too_small);
    assert!(matches!(refused, Err(Error::Limits(_))), "{refused:?}");
    let nowhere = Device {
        netns: Some("shallows-no-such".to_owned()),
        ..host.device()
    };
    let refused = apply(&nowhere, &limits());
    assert!(
        matches!(refused, Err(Error::NoNamespace { .. })),
        "{refused:?}"
    );
    run(&format!("ip -n {} tuntap add dev tun0 mode tun", host.name));
    let tun = Device {
        name: "tun0".to_owned(),
        ..host.device()
    };
    let refused = apply(&tun, &limits());
    assert!(matches!(refused, Err(Error::NotEthernet(_))), "{refused:?}");
    assert_eq!(host.status(), None);
}

#[test]
fn limits_change_without_a_gap() {
    let Some(host) = Host::new("change") else {
        return;
    };
    for hook in [Hook::Tcx, Hook::Clsact] {
        qjump::apply(&host.device(), &limits(), &at(hook)).unwrap();
        host.send(2, 256, 3);
        let narrower = Limits {
            levels: vec![Allotment::Unlimited, Allotment::Bytes(Bytes::new(124))],
            ..limits()
        };
        let report = apply(&host.device(), &narrower).unwrap();
        assert_eq!(report.hook, Some(hook), "it is the same program");
        let before = report.replaced.expect("there were limits before");
        assert_eq!(before.levels, limits().levels);
        let status = host.status().unwrap();
        assert_eq!(status.limits.levels, narrower.levels);
        host.send(1, 100, 3);
        let status = host.status().unwrap();
        let one = status.levels[1];
        assert_eq!((one.passed_packets, one.dropped_packets), (1, 2));
        // Back again, level 2 has its counts, and no second allotment in its epoch.
        apply(&host.device(), &limits()).unwrap();
        host.send(2, 256, 1);
        let two = host.status().unwrap().levels[2];
        assert_eq!((two.passed_packets, two.dropped_packets), (1, 3));
        qjump::remove(&host.device()).unwrap();
    }
}

#[test]
fn a_trial_ends_unless_it_is_confirmed() {
    let Some(host) = Host::new("trial") else {
        return;
    };
    let device = host.device();
    let trial = Options {
        trial: Some(Time::from_ms(400)),
        ..Options::default()
    };
    let guard = |report: &qjump::Report| {
        let until = report.until_ns.expect("it is on trial");
        qjump::guard(
            &device,
            until,
            report.replaced.as_ref(),
            &Options::default(),
        )
        .unwrap();
    };
    let report = qjump::apply(&device, &limits(), &trial).unwrap();
    assert!(host.status().unwrap().trial.is_some());
    guard(&report);
    assert_eq!(host.status(), None, "it is undone");

    let report = qjump::apply(&device, &limits(), &trial).unwrap();
    qjump::confirm(&device).unwrap();
    guard(&report);
    assert_eq!(host.status().unwrap().trial, None, "it stays");
    let again = qjump::confirm(&device);
    assert!(matches!(again, Err(Error::NotOnTrial(_))), "{again:?}");

    // New limits on trial: the old ones come back.
    let wider = Limits {
        epoch: Time::from_secs(5),
        ..limits()
    };
    let report = qjump::apply(&device, &wider, &trial).unwrap();
    guard(&report);
    let status = host.status().unwrap();
    assert_eq!((status.limits.epoch, status.trial), (limits().epoch, None));

    // A second trial could only return to the first one, which nobody has confirmed.
    qjump::remove(&device).unwrap();
    let report = qjump::apply(&device, &limits(), &trial).unwrap();
    let second = qjump::apply(&device, &wider, &trial);
    assert!(matches!(second, Err(Error::OnTrial(_))), "{second:?}");
    guard(&report);
    assert_eq!(host.status(), None, "nothing stays that was not confirmed");

    // Nobody stands guard: the program lets everything pass, and the next trial returns to nothing.
    qjump::apply(&device, &limits(), &trial).unwrap();
    thread::sleep(Duration::from_millis(450));
    let report = qjump::apply(&device, &limits(), &trial).unwrap();
    assert_eq!(report.replaced, None);
    thread::sleep(Duration::from_millis(450));
    assert_eq!(host.status().unwrap().trial, Some(Time::ZERO));
    let dropped = host.status().unwrap().levels[2].dropped_packets;
    host.send(2, 1514, 5);
    assert_eq!(host.status().unwrap().levels[2].dropped_packets, dropped);
    let late = qjump::confirm(&device);
    assert!(matches!(late, Err(Error::TrialEnded(_))), "{late:?}");
    drop(report);
}

/// Names of the directories that limiters are pinned in.
fn pinned() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/fs/bpf/shallows/qjump").unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn a_trial_of_a_device_that_disappears_leaves_nothing() {
    let Some(host) = Host::new("vanish") else {
        return;
    };
    let device = host.device();
    qjump::clean().unwrap();
    let before = pinned();
    let trial = Options {
        trial: Some(Time::from_ms(200)),
        ..Options::default()
    };
    let guard = |report: &qjump::Report| {
        let until = report.until_ns.expect("it is on trial");
        qjump::guard(&device, until, None, &Options::default()).unwrap();
    };

    let report = qjump::apply(&device, &limits(), &trial).unwrap();
    host.ip("link del eth0.1");
    guard(&report);
    assert_eq!(pinned(), before, "of the deleted device");

    // One of the same name takes its place and has limits of its own.
    host.add_device();
    let report = qjump::apply(&device, &limits(), &trial).unwrap();
    host.ip("link del eth0.1");
    host.add_device();
    apply(&device, &limits()).unwrap();
    guard(&report);
    assert_eq!(host.status().unwrap().trial, None, "the new one keeps its");
    qjump::remove(&device).unwrap();
    assert_eq!(pinned(), before, "of the first device of that name");

    let report = qjump::apply(&device, &limits(), &trial).unwrap();
    run(&format!("ip netns del {}", host.name));
    guard(&report);
    run(&format!("ip netns add {}", host.name));
}

/// One change at a time: pins that another process is just making look like those of a dead one.
#[test]
fn changes_wait_for_each_other() {
    let Some(host) = Host::new("wait") else {
        return;
    };
    apply(&host.device(), &limits()).unwrap();
    let held = File::options().append(true).open("/run/shallows/bpf.lock");
    let held = Flock::lock(held.unwrap(), FlockArg::LockExclusive).unwrap();
    let (device, changed) = (host.device(), Arc::new(AtomicBool::new(false)));
    let is_changed = changed.clone();
    let change = thread::spawn(move || {
        qjump::remove(&device).unwrap();
        is_changed.store(true, Ordering::SeqCst);
    });
    thread::sleep(Duration::from_millis(300));
    assert!(!changed.load(Ordering::SeqCst), "it has not waited");
    drop(held);
    change.join().unwrap();
    assert_eq!(host.status(), None);
}

#[test]
fn limiters_of_dead_namespaces_go_by_themselves() {
    let Some(host) = Host::new("dead") else {
        return;
    };
    apply(&host.device(), &limits()).unwrap();
    let device = host.device();
    let of_it = |status: Vec<Status>| {
        let mut names = status.into_iter().map(|of| of.device.to_string());
        names.any(|name| name == device.to_string() || name.contains("net:["))
    };
    assert!(of_it(qjump::status().unwrap()));
    run(&format!("ip netns del {}", host.name));
    // The kernel takes a namespace apart a moment later.
    for _ in 0..100 {
        if !of_it(qjump::status().unwrap()) {
            run(&format!("ip netns add {}", host.name));
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("it is still there");
}
