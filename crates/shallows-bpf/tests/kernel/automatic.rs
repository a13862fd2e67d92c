//! Levels that choose themselves, at a real device.

use std::fs;
use std::net::UdpSocket;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use shallows_bpf::mark;
use shallows_bpf::qjump::{
    self, Allotment, ApplicationStatus, Change, Chooser, Error, Limits, Options,
};
use shallows_core::host::qjump::EpochClock;
use shallows_core::units::{Bytes, Time};
use shallows_testing::{missing_program, skip};

use crate::lab::{run, within};
use crate::limiter::Host;

const SETTLE: Time = Time::from_ms(200);

/// No limit, 121 Mbps, and 12 Mbps.
fn limits() -> Limits {
    let bytes = |bytes| Allotment::Bytes(Bytes::new(bytes));
    Limits {
        epoch: Time::from_ms(1),
        levels: vec![Allotment::Unlimited, bytes(15_380), bytes(1_538)],
        clock: EpochClock::Grid,
        ..crate::limiter::limits()
    }
}

/// A cgroup, removed whatever happens.
struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    fn new(name: &str) -> Self {
        // It mounts cgroup2 where nobody has.
        mark::run_apart(&mut Command::new("true"), || ()).unwrap();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let root = mounts.find_map(|mut words| {
            let place = words.nth(1)?;
            (words.next()? == "cgroup2").then(|| PathBuf::from(place))
        });
        let path = root.unwrap().join(format!("shallows-bpf-test-{name}"));
        let _ = fs::create_dir(&path);
        Self { path }
    }

    fn name(&self) -> PathBuf {
        Path::new("/").join(self.path.file_name().unwrap())
    }

    /// Does something with this process in the cgroup.
    fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let root = self.path.parent().unwrap().join("cgroup.procs");
        fs::write(self.path.join("cgroup.procs"), "0").unwrap();
        let done = work();
        fs::write(root, "0").unwrap();
        done
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// The application of a cgroup, if somebody chooses its level.
fn application(host: &Host, cgroup: &Path) -> Option<ApplicationStatus> {
    let applications = host.status().unwrap().applications?;
    applications.into_iter().find(|of| of.cgroup == cgroup)
}

fn level(host: &Host, cgroup: &Path) -> Option<u8> {
    application(host, cgroup).map(|of| of.level)
}

/// Chooses levels while `work` is done; what changed, and when, from the beginning.
fn choosing<T>(host: &Host, work: impl FnOnce() -> T) -> (T, Vec<(Duration, Change)>) {
    let (stop, changes) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let mut chooser = Chooser::begin(&host.device(), SETTLE).unwrap();
    let interval = chooser.interval().to_duration();
    let began = Instant::now();
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(interval);
                for change in chooser.step().unwrap() {
                    changes.lock().unwrap().push((began.elapsed(), change));
                }
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|why| std::panic::resume_unwind(why))
    });
    (done, changes.into_inner().unwrap())
}

/// Does something again and again until a cgroup has a level; how long it took.
fn until_level(host: &Host, cgroup: &Cgroup, wanted: u8, mut work: impl FnMut()) -> Duration {
    let began = Instant::now();
    let mut looked = began;
    loop {
        work();
        if looked.elapsed() > Duration::from_millis(10) {
            looked = Instant::now();
            if level(host, &cgroup.name()) == Some(wanted) {
                return began.elapsed();
            }
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "no level {wanted}: {:?}",
            host.status()
        );
    }
}

#[test]
fn a_socket_is_lifted_and_lowered_by_what_it_sends() {
    let Some(host) = Host::new("auto") else {
        return;
    };
    qjump::apply(&host.device(), &limits(), &Options::default()).unwrap();
    let cgroup = Cgroup::new("auto");
    let socket = cgroup.within(|| {
        within(&host.name, || {
            let socket = UdpSocket::bind("10.99.1.1:0").unwrap();
            socket.connect("10.99.1.2:9").unwrap();
            socket
        })
    });
    let trickle = || {
        socket.send(&[0; 58]).unwrap();
        thread::sleep(Duration::from_millis(2));
    };
    // 100 packets of 1,500 B a millisecond exceed level 1; a busy machine may send less of them.
    let burst = || {
        for _ in 0..100 {
            // The queue of the device may be full.
            let _ = socket.send(&[0; 1_458]);
        }
        thread::sleep(Duration::from_micros(500));
    };
    let ((), changes) = choosing(&host, || {
        let lifted = until_level(&host, &cgroup, 2, trickle);
        let before = host.status().unwrap().levels;
        trickle();
        let after = host.status().unwrap().levels;
        assert!(after[2].passed_packets > before[2].passed_packets);
        let lowered = until_level(&host, &cgroup, 0, burst);
        let again = Chooser::begin(&host.device(), SETTLE);
        assert!(matches!(again, Err(Error::AlreadyChosen(_))), "{again:?}");
        let lifted_again = until_level(&host, &cgroup, 2, trickle);
        println!("lifted in {lifted:?}, lowered in {lowered:?}, lifted again in {lifted_again:?}");
    });
    println!("{changes:?}");
    let status = host.status().unwrap();
    assert_eq!(status.applications, None, "nobody chooses any more");
    // What exceeded a level went at a lower one.
    let dropped = status.levels.iter().map(|level| level.dropped_packets);
    assert_eq!(dropped.sum::<u64>(), 0);
    let before = status.levels;
    trickle();
    let after = host.status().unwrap().levels;
    assert_eq!(after[2], before[2]);
    assert!(after[0].passed_packets > before[0].passed_packets);
}

/// Lets the far end of the host's device be another host.
fn connect(host: &Host) -> String {
    let far = format!("{}-far", host.name);
    let _ = Command::new("ip").args(["netns", "del", &far]).output();
    run(&format!("ip netns add {far}"));
    run(&format!("ip -n {} link set far netns {far}", host.name));
    run(&format!("ip -n {far} addr add 10.99.1.2/24 dev far"));
    run(&format!("ip -n {far} link set far up"));
    run(&format!(
        "ip -n {} neigh del 10.99.1.2 dev eth0.1",
        host.name
    ));
    far
}

fn spawn(namespace: &str, line: &str) -> Child {
    Command::new("ip")
        .args(["netns", "exec", namespace])
        .args(line.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn iperf3_stays_at_the_bottom_and_ping_is_lifted() {
    if let Some(reason) = missing_program(&["iperf3", "ping"]) {
        skip!("{reason}");
    }
    let Some(host) = Host::new("programs") else {
        return;
    };
    let far = connect(&host);
    qjump::apply(&host.device(), &limits(), &Options::default()).unwrap();
    let small = Cgroup::new("small");
    let mut server = spawn(&far, "iperf3 -s -1");
    let mut ping = small.within(|| spawn(&host.name, "ping -i 0.002 -s 58 10.99.1.2"));
    let (levels, changes) = choosing(&host, || {
        let line = format!("netns exec {} iperf3 -c 10.99.1.2 -t 3", host.name);
        let bulk = thread::scope(|scope| {
            let bulk = scope.spawn(|| {
                let mut command = Command::new("ip");
                command.args(line.split(' ')).stdout(Stdio::null());
                mark::run_apart(&mut command, || ()).unwrap()
            });
            let name = PathBuf::from(format!("/shallows-exec-{}-auto", std::process::id()));
            let mut seen = Vec::new();
            while !bulk.is_finished() {
                seen.extend(level(&host, &name));
                thread::sleep(Duration::from_millis(50));
            }
            assert!(bulk.join().unwrap().success());
            seen
        });
        until_level(&host, &small, 2, || thread::sleep(Duration::from_millis(5)));
        bulk
    });
    let _ = (ping.kill(), ping.wait(), server.kill(), server.wait());
    println!("bulk at {levels:?}; {changes:?}");
    assert!(levels.contains(&0), "it was seen");
    // It may be lifted while its connection is set up on a busy machine, and not afterwards.
    assert_eq!(levels.last(), Some(&0));
    run(&format!("ip netns del {far}"));
}

#[test]
fn levels_that_cannot_be_chosen_are_refused() {
    let Some(host) = Host::new("refused") else {
        return;
    };
    let begin = |settle| Chooser::begin(&host.device(), settle).map(drop);
    assert!(matches!(begin(SETTLE), Err(Error::NotThere(_))));
    qjump::apply(&host.device(), &limits(), &Options::default()).unwrap();
    let short = begin(Time::from_ms(63));
    assert!(matches!(short, Err(Error::Settle { .. })), "{short:?}");
    begin(Time::from_ms(64)).unwrap();
    qjump::remove(&host.device()).unwrap();
    let equal = Limits {
        levels: vec![Allotment::Unlimited, Allotment::Unlimited],
        ..limits()
    };
    qjump::apply(&host.device(), &equal, &Options::default()).unwrap();
    assert!(matches!(begin(SETTLE), Err(Error::Automatic(_))));
}
