//! Time from an event at the controller to its directives.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use shallows_core::control::Agent;
use shallows_core::units::Time;
use shallows_core::xco::config::Protocol;
use shallows_core::xco::controller::{Controller, ControllerConfig};
use shallows_core::xco::fabric::Routes;
use shallows_core::xco::message::{self, Body, ClusterKey, Epoch, Header, Key, PermitKind, Report};

use super::{CONTROLLER, LeafSpine, SLOT, destinations, mix};

/// A report of a host to come: when, who, the number of its grant, the destination that it gives up.
type Visit = (Time, u32, u64, Option<u32>);

/// What a run showed. The best of several has the least `total`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Measured {
    /// In the controller, by the wall clock.
    pub(super) total: Duration,
    /// CPU time of the process over the wall clock, in millionths, while events were counted.
    pub(super) cpu_share: Option<u64>,
    pub(super) times: Vec<Duration>,
    pub(super) directives: u64,
}

/// The CPU time of this thread so far, where Linux tells it.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// One event of the controller and all that it has to say to it. Callgrind counts this function.
#[inline(never)]
fn serve<R: Routes>(
    controller: &mut Controller<R>,
    now: Time,
    message: Option<&(u32, Vec<u8>)>,
    sent: &mut Vec<(u32, Vec<u8>)>,
) {
    match message {
        Some((host, bytes)) => controller.handle(now, *host, bytes),
        None => controller.handle_timeout(now),
    }
    let mut buffer = Vec::new();
    while let Some(to) = controller.transmit(now, &mut buffer) {
        sent.push((to, std::mem::take(&mut buffer)));
    }
}

/// Hosts that report.
struct Reporters {
    keys: Vec<Key>,
    backlogs: Vec<Vec<u32>>,
    sequence: u64,
}

impl Reporters {
    fn new(hosts: u32, pairs: u32, key: &ClusterKey) -> Self {
        let backlog = |host| destinations(hosts, host, pairs);
        Self {
            keys: (0..hosts).map(|host| key.host(host)).collect(),
            backlogs: (0..hosts).map(backlog).collect(),
            sequence: 0,
        }
    }

    /// The report of a host that is backlogged to all its destinations but one.
    fn report(&mut self, host: u32, now: Time, grant: u64, given_up: Option<u32>) -> Vec<u8> {
        self.sequence += 1;
        let header = Header {
            from: host,
            to: CONTROLLER,
            incarnation: 1,
            sequence: self.sequence,
        };
        let mut backlog = self.backlogs[host as usize].clone();
        backlog.retain(|&to| Some(to) != given_up);
        let body = Body::Report(Report {
            epoch: Epoch {
                counter: 1,
                leader: CONTROLLER,
            },
            clock: now,
            grant,
            backlog,
            ..Report::default()
        });
        let mut bytes = Vec::new();
        message::seal(&self.keys[host as usize], &header, &body, &mut bytes);
        bytes
    }

    /// The visit of a host that gives its slot back early, as a fifth of them do.
    fn early_return(&self, now: Time, host: u32, bytes: &[u8]) -> Option<Visit> {
        let Ok(Body::Directive(directive)) = message::open(&self.keys[host as usize], bytes) else {
            return None;
        };
        let permit = directive.permits.first()?;
        let is_early = permit.kind == PermitKind::Slot
            && mix(directive.grant ^ u64::from(host)).is_multiple_of(5);
        let early = SLOT.ps() * (mix(u64::from(host)) % 90 + 5) / 100;
        let back = now + Time::from_ps(early);
        is_early.then_some((back, host, directive.grant, Some(permit.destination)))
    }
}

/// A controller whose term has begun and that has asked hosts to report, and the time.
fn controller(hosts: u32, key: &ClusterKey) -> (Controller<LeafSpine>, Time) {
    let fabric = LeafSpine { hosts, uplinks: 16 }.fabric();
    let start = Time::from_ms(1);
    let controller = Controller::new(settings(), fabric, key, start);
    let mut controller = controller.expect("the settings are sound");
    let begin = start + SLOT * 2;
    controller.handle_timeout(begin);
    let mut buffer = Vec::new();
    while controller.transmit(begin, &mut buffer).is_some() {
        buffer.clear();
    }
    (controller, begin)
}

/// Drives a controller: hosts give a fifth of their slots back early and become backlogged again a
/// little later; all others end by the clock.
pub(super) fn latencies(hosts: u32, pairs: u32, events: u64) -> Measured {
    let key = ClusterKey::new([7; 16]);
    let mut reporters = Reporters::new(hosts, pairs, &key);
    let (mut controller, begin) = controller(hosts, &key);
    let first = |host| {
        let late = SLOT * u64::from(host) / u64::from(hosts);
        Reverse((begin + late, host, 0, None))
    };
    let mut agenda: BinaryHeap<Reverse<Visit>> = (0..hosts).map(first).collect();
    let mut times = Vec::with_capacity(events as usize);
    let (mut directives, mut total, mut number) = (0, Duration::ZERO, 0);
    let warm_up = u64::from(hosts) + events / 10;
    let mut counted_from = None;
    while number < events + warm_up {
        let timeout = controller.timeout().unwrap_or(Time::MAX);
        let next = agenda.peek().map_or(Time::MAX, |Reverse((time, ..))| *time);
        let now = timeout.min(next);
        let arrival = (next < timeout).then(|| agenda.pop()).flatten();
        let message = arrival.map(|Reverse((_, host, grant, given_up))| {
            if given_up.is_some() {
                // It is backlogged to that destination again after a while.
                agenda.push(Reverse((now + Time::from_us(300), host, 0, None)));
            }
            (host, reporters.report(host, now, grant, given_up))
        });
        if number == warm_up {
            counted_from = cpu_time().map(|cpu| (cpu, Instant::now()));
        }
        let mut sent = Vec::new();
        let begin = Instant::now();
        serve(&mut controller, now, message.as_ref(), &mut sent);
        let elapsed = begin.elapsed();
        number += 1;
        if number > warm_up {
            times.push(elapsed);
            total += elapsed;
            directives += sent.len() as u64;
        }
        let back = |(host, bytes): (u32, Vec<u8>)| reporters.early_return(now, host, &bytes);
        agenda.extend(sent.into_iter().filter_map(back).map(Reverse));
    }
    let cpu_share = counted_from.and_then(|(cpu, wall)| {
        let cpu = cpu_time()?.checked_sub(cpu)?;
        Some((cpu.as_secs_f64() / wall.elapsed().as_secs_f64() * 1e6) as u64)
    });
    Measured {
        total,
        cpu_share,
        times,
        directives,
    }
}

fn settings() -> ControllerConfig {
    ControllerConfig {
        address: CONTROLLER,
        slot: SLOT,
        patience: Time::from_secs(1),
        // Nobody needs to be kept alive.
        protocol: Protocol {
            keepalive: Time::from_secs(10),
            silence: Time::from_secs(10_000),
            ..Protocol::default()
        },
        ..ControllerConfig::default()
    }
}

/// Instructions an event, as the difference of a long and a short run.
pub(super) fn instructions(hosts: u32, pairs: u32) -> Option<f64> {
    const SHORT: u64 = 2_000;
    const LONG: u64 = 12_000;
    let count = |events: u64| -> Option<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg("--toggle-collect=xco::serve*")
            .arg(env::current_exe().ok()?)
            .args([
                "--count",
                &hosts.to_string(),
                &pairs.to_string(),
                &events.to_string(),
            ])
            .output()
            .ok()?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let collected = log
            .lines()
            .find_map(|line| line.split_once("Collected : "))?;
        collected.1.trim().parse().ok()
    };
    // The warm-up of both is that of the hosts, and a tenth of the events.
    Some((count(LONG)? - count(SHORT)?) / ((LONG - SHORT) as f64 * 1.1))
}
