//! How long XCo's controller takes from an event to its directives, and what its schedule is worth.
//!
//! `cargo bench -p shallows-core --bench xco` prints, for leaf-spine fabrics of 100 to 10,000 hosts
//! with 10 backlogged pairs each (and 10,000 hosts with 1, 3 and 30), the time from a report or the end
//! of a slot to the last directive sealed: median, 99th percentile and longest of all events, and
//! events a second on one core; two numbers as arguments choose one of these sizes. Messages are
//! authenticated and read, as they would be from a network. Hosts become backlogged one after the
//! other in the course of a slot, because slots that end at one instant are one event of the
//! controller. Times are of the best of three runs, as a shared machine can only make them longer.
//! Only the controller is timed, not the driver that makes reports and reads directives. "cpu"
//! counts the same events by the CPU time of the process, which others on the machine do not take
//! from: the share of the controller in it is taken to be its share of the wall clock.
//! Instructions are those of the controller, from callgrind, if valgrind is installed.
//!
//! Then the share of the achievable throughput: pairs that send at a time, over the most that could
//! (a maximum matching of sources and destinations where only host links are bottlenecks), beside
//! an arbiter in the manner of Fastpass that makes a new maximal matching for each timeslot. Last the
//! same for a controller of each rack and one above (`-- hierarchy` prints this alone).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use shallows_core::control::Agent;
use shallows_core::units::{Rate, Time};
use shallows_core::xco::config::Protocol;
use shallows_core::xco::controller::{Controller, ControllerConfig};
use shallows_core::xco::fabric::{Fabric, Routes};
use shallows_core::xco::hierarchy::Pods;
use shallows_core::xco::message::{self, Body, ClusterKey, Epoch, Header, PermitKind, Report};
use shallows_core::xco::schedule::{Event, Schedule, Timing};

const CONTROLLER: u32 = u32::MAX;
const SLOT: Time = Time::from_ms(10);
const RUNS: usize = 3;
/// Of every link.
const RATE: Rate = Rate::from_gbps(10);
/// Hosts, backlogged pairs of each.
const SIZES: [(u32, u32); 7] = [
    (100, 10),
    (1_000, 10),
    (3_000, 10),
    (10_000, 1),
    (10_000, 3),
    (10_000, 10),
    (10_000, 30),
];
const EVENTS: u64 = 100_000;

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [flag, hosts, pairs, events] = args.as_slice()
        && flag == "--count"
    {
        let number = |text: &String| text.parse::<u32>().expect("callgrind runs pass numbers");
        latencies(number(hosts), number(pairs), u64::from(number(events)));
        return;
    }
    if args == ["hierarchy"] {
        return hierarchy(1_024, 10);
    }
    let only = match args.as_slice() {
        [hosts, pairs] => Some((hosts.clone(), pairs.clone())),
        _ => None,
    };
    println!("directive latency, {EVENTS} events, slots of {SLOT}");
    println!(
        "{:>8} {:>10} {:>9} {:>9} {:>9} {:>12} {:>12} {:>11} {:>14}",
        "hosts",
        "pairs",
        "p50 us",
        "p99 us",
        "max us",
        "events/s",
        "events/s cpu",
        "directives",
        "instructions"
    );
    for (hosts, pairs) in SIZES {
        let size = (hosts.to_string(), pairs.to_string());
        if only.as_ref().is_some_and(|only| *only != size) {
            continue;
        }
        let best = (0..RUNS).map(|_| latencies(hosts, pairs, EVENTS)).min();
        let Some(Measured {
            total,
            cpu_share,
            mut times,
            directives,
        }) = best
        else {
            continue;
        };
        times.sort_unstable();
        let us = |place: usize| times[place].as_secs_f64() * 1e6;
        let counted = (pairs == 10).then(|| instructions(hosts, pairs)).flatten();
        let count = counted.map_or("-".into(), |count| format!("{count:.0}"));
        println!(
            "{:>8} {:>10} {:>9.2} {:>9.2} {:>9.1} {:>12.0} {:>12} {:>11.2} {:>14}",
            hosts,
            hosts * pairs,
            us(times.len() / 2),
            us(times.len() * 99 / 100),
            us(times.len() - 1),
            times.len() as f64 / total.as_secs_f64(),
            cpu_share.map_or("-".into(), |share| {
                let cpu = total.as_secs_f64() * share as f64 / 1e6;
                format!("{:.0}", times.len() as f64 / cpu)
            }),
            directives as f64 / times.len() as f64,
            count
        );
    }
    if only.is_some() {
        return;
    }
    println!("\nshare of the achievable throughput, 1000 hosts, mean of 300 schedules");
    println!(
        "{:>8} {:>9} {:>9} {:>9}",
        "pairs", "XCo", "Fastpass", "fabric"
    );
    for pairs in [1, 2, 5, 10] {
        for (uplinks, name) in [(64, "free"), (8, "4:1")] {
            let share = shares(1_000, pairs, uplinks);
            println!(
                "{:>8} {:>9.3} {:>9.3} {:>9}",
                1_000 * pairs,
                share.xco,
                share.fastpass,
                name
            );
        }
    }
    hierarchy(1_024, 10);
}

/// Racks of 32 hosts at 10 Gbps with uplinks to as many spines, also of 10 Gbps; a pair takes the
/// uplink that a hash gives.
#[derive(Clone, Copy, Debug)]
struct LeafSpine {
    hosts: u32,
    uplinks: u32,
}

const PER_RACK: u32 = 32;

impl Routes for LeafSpine {
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>) {
        let (from, to) = (source / PER_RACK, destination / PER_RACK);
        path.push(source);
        if from != to {
            let spine = mix(u64::from(source) << 32 | u64::from(destination)) as u32 % self.uplinks;
            let up = 2 * self.hosts + from * self.uplinks + spine;
            let down = 2 * self.hosts + (self.racks() + to) * self.uplinks + spine;
            path.extend([up, down]);
        }
        path.push(self.hosts + destination);
    }
}

impl LeafSpine {
    fn racks(self) -> u32 {
        self.hosts.div_ceil(PER_RACK)
    }

    fn fabric(self) -> Fabric<Self> {
        let links = 2 * self.hosts + 2 * self.racks() * self.uplinks;
        Fabric::new(
            vec![RATE; self.hosts as usize],
            vec![RATE; links as usize],
            self,
        )
        .expect("the fabric is sound")
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Destinations of a host, chosen by hash.
fn destinations(hosts: u32, host: u32, pairs: u32) -> Vec<u32> {
    let mut chosen = BTreeSet::new();
    let mut draw = 0;
    while chosen.len() < pairs as usize {
        let to = (mix(u64::from(host) << 20 | draw) % u64::from(hosts)) as u32;
        draw += 1;
        if to != host {
            chosen.insert(to);
        }
    }
    chosen.into_iter().collect()
}

/// A report of a host to come: when, who, the number of its grant, the destination that it gives up.
type Visit = (Time, u32, u64, Option<u32>);

/// What a run showed. The best of several has the least `total`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Measured {
    /// In the controller, by the wall clock.
    total: Duration,
    /// CPU time of the process over the wall clock, in millionths, while events were counted.
    cpu_share: Option<u64>,
    times: Vec<Duration>,
    directives: u64,
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

/// Drives a controller: hosts give a fifth of their slots back early and become backlogged again a
/// little later; all others end by the clock.
fn latencies(hosts: u32, pairs: u32, events: u64) -> Measured {
    let key = ClusterKey::new([7; 16]);
    let keys: Vec<_> = (0..hosts).map(|host| key.host(host)).collect();
    let backlogs: Vec<_> = (0..hosts)
        .map(|host| destinations(hosts, host, pairs))
        .collect();
    let fabric = LeafSpine { hosts, uplinks: 16 }.fabric();
    let start = Time::from_ms(1);
    let mut controller =
        Controller::new(settings(), fabric, &key, start).expect("the settings are sound");
    let epoch = Epoch {
        counter: 1,
        leader: CONTROLLER,
    };
    let mut sequence = 0;
    let mut report = |host: u32, now: Time, grant, is_sending, backlog: Vec<u32>| {
        sequence += 1;
        let header = Header {
            from: host,
            to: CONTROLLER,
            incarnation: 1,
            sequence,
        };
        let body = Body::Report(Report {
            epoch,
            clock: now,
            grant,
            is_sending,
            backlog,
            ..Report::default()
        });
        let mut bytes = Vec::new();
        message::seal(&keys[host as usize], &header, &body, &mut bytes);
        bytes
    };
    let mut buffer = Vec::new();
    // The term has begun, and hosts have been asked to report.
    let begin = start + SLOT * 2;
    controller.handle_timeout(begin);
    while controller.transmit(begin, &mut buffer).is_some() {
        buffer.clear();
    }
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
            let mut backlog = backlogs[host as usize].clone();
            backlog.retain(|&to| Some(to) != given_up);
            if given_up.is_some() {
                // It is backlogged to that destination again after a while.
                agenda.push(Reverse((now + Time::from_us(300), host, 0, None)));
            }
            (host, report(host, now, grant, false, backlog))
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
        for (host, bytes) in sent {
            let Ok(Body::Directive(directive)) = message::open(&keys[host as usize], &bytes) else {
                continue;
            };
            let slot = directive.permits.first();
            if let Some(permit) = slot.filter(|permit| permit.kind == PermitKind::Slot)
                && mix(directive.grant ^ u64::from(host)).is_multiple_of(5)
            {
                let early = SLOT.ps() * (mix(u64::from(host)) % 90 + 5) / 100;
                let back = now + Time::from_ps(early);
                let given_up = Some(permit.destination);
                agenda.push(Reverse((back, host, directive.grant, given_up)));
            }
        }
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
fn instructions(hosts: u32, pairs: u32) -> Option<f64> {
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

struct Share {
    xco: f64,
    fastpass: f64,
}

/// Pairs that send at once, over the most that could if only the hosts' links were limits.
fn shares(hosts: u32, pairs: u32, uplinks: u32) -> Share {
    let shape = LeafSpine { hosts, uplinks };
    let demand: Vec<Vec<u32>> = (0..hosts)
        .map(|host| destinations(hosts, host, pairs))
        .collect();
    let most = maximum_matching(&demand) as f64;
    Share {
        xco: scheduled(shape.fabric(), &demand, SLOT).hosts_worth / most,
        fastpass: fastpass(shape, &demand, SCHEDULES) / most,
    }
}

const SCHEDULES: u64 = 300;

/// What the schedule of a controller gives away.
#[derive(Clone, Copy, Default)]
struct Scheduled {
    /// Mean sum of all rates, in links of a host.
    hosts_worth: f64,
    slots_per_second: f64,
}

/// Schedules pairs that stay backlogged; slots end one after the other, each after its length.
fn scheduled<R: Routes>(fabric: Fabric<R>, demand: &[Vec<u32>], slot: Time) -> Scheduled {
    let timing = Timing {
        preempt_after: None,
        patience: slot * 100,
    };
    let mut schedule = Schedule::new(fabric, timing);
    let mut grants = Vec::new();
    for (host, list) in (0..).zip(demand) {
        for &to in list {
            schedule.add(Time::ZERO, host, to);
        }
    }
    schedule.handle_all_silent(Time::ZERO, &mut grants);
    let mut ends: BinaryHeap<Reverse<(Time, u32, u64)>> = BinaryHeap::new();
    let (mut now, mut sending, mut area, mut slots) = (Time::ZERO, 0, 0.0, 0_u64);
    let end = slot * SCHEDULES;
    loop {
        slots += grants.len() as u64;
        for (grant, number) in grants.drain(..).zip(0_u64..) {
            // Not all at the same instant, as with messages that take their time.
            let late = Time::from_ns(mix(u64::from(grant.host) + number) % 50_000);
            sending += grant.rate.bps();
            ends.push(Reverse((now + slot + late, grant.host, grant.rate.bps())));
        }
        let Some(Reverse((time, host, rate))) = ends.pop() else {
            return Scheduled::default();
        };
        area += sending as f64 * (time - now).as_secs_f64();
        now = time;
        if now >= end {
            break;
        }
        sending -= rate;
        schedule.handle(now, Event::Expired(host), &mut grants);
    }
    let span = now.as_secs_f64();
    Scheduled {
        hosts_worth: area / span / RATE.bps() as f64,
        slots_per_second: slots as f64 / span,
    }
}

/// One controller for all hosts beside one for each rack and one above, by how many of the pairs of
/// a host stay in its rack.
fn hierarchy(hosts: u32, pairs: u32) {
    println!("\nhierarchy, {hosts} hosts in racks of {PER_RACK}, {pairs} pairs each");
    println!(
        "{:>8} {:>7} {:>9} {:>9} {:>12} {:>12} {:>12}",
        "in rack", "root %", "flat", "two-level", "slots/s", "root's", "a rack's"
    );
    let shape = LeafSpine { hosts, uplinks: 64 };
    for local in [0, pairs / 2, pairs * 4 / 5, pairs] {
        let demand: Vec<Vec<u32>> = (0..hosts)
            .map(|host| with_neighbours(hosts, host, local, pairs))
            .collect();
        let most = maximum_matching(&demand) as f64;
        let flat = scheduled(shape.fabric(), &demand, SLOT);
        for root_share in [20, 50, 80] {
            let [root, racks, busiest] = two_levels(shape, &demand, root_share);
            println!(
                "{:>8} {:>7} {:>9.3} {:>9.3} {:>12.0} {:>12.0} {:>12.0}",
                format!("{}%", 100 * local / pairs),
                root_share,
                flat.hosts_worth / most,
                (root.hosts_worth + racks.hosts_worth) / most,
                flat.slots_per_second,
                root.slots_per_second,
                busiest.slots_per_second,
            );
        }
    }
}

/// Destinations of a host, some of them in its rack.
fn with_neighbours(hosts: u32, host: u32, local: u32, pairs: u32) -> Vec<u32> {
    let rack = host / PER_RACK * PER_RACK;
    let size = PER_RACK.min(hosts - rack);
    let neighbours = destinations(size, host - rack, local);
    let mut chosen: Vec<u32> = neighbours.iter().map(|number| rack + number).collect();
    let others = destinations(hosts, host, pairs.min(hosts / 2) + PER_RACK);
    let far = others
        .into_iter()
        .filter(|to| to / PER_RACK != host / PER_RACK);
    let mut far: Vec<u32> = far.collect();
    far.sort_unstable_by_key(|&to| mix(u64::from(to) << 32 | u64::from(host)));
    chosen.extend(far.into_iter().take((pairs - local) as usize));
    chosen
}

/// What the root gives, what all racks give together, and what the busiest of them gives.
fn two_levels(shape: LeafSpine, demand: &[Vec<u32>], root_share: u32) -> [Scheduled; 3] {
    let racks = Pods::of_size(PER_RACK, shape.hosts).expect("there are several racks");
    let divided = racks.divide(&shape.fabric(), root_share);
    let divided = divided.expect("racks share no links");
    let rack_of = |host: u32| host / PER_RACK;
    let beyond = |(host, list): (u32, &Vec<u32>)| {
        let far = list.iter().copied();
        far.filter(|&to| rack_of(to) != rack_of(host)).collect()
    };
    let beyond: Vec<Vec<u32>> = (0..).zip(demand).map(beyond).collect();
    // Slots carry as much as without racks of their own.
    let slot = |percent: u32| SLOT * 100 / u64::from(percent);
    let root = scheduled(divided.root, &beyond, slot(root_share));
    let (mut all, mut busiest) = (Scheduled::default(), Scheduled::default());
    for (rack, fabric) in (0..).zip(divided.pods) {
        let inside = |&host: &u32| {
            let near = demand[host as usize].iter();
            let near = near.filter(|&&to| rack_of(to) == rack);
            near.map(|to| to % PER_RACK).collect()
        };
        let inside: Vec<Vec<u32>> = racks.hosts(rack).iter().map(inside).collect();
        let given = scheduled(fabric, &inside, slot(100 - root_share));
        all.hosts_worth += given.hosts_worth;
        all.slots_per_second += given.slots_per_second;
        if given.slots_per_second > busiest.slots_per_second {
            busiest = given;
        }
    }
    [root, all, busiest]
}

/// An arbiter that makes a maximal matching for each timeslot, pairs served longest ago first, as
/// Fastpass does (Perry et al., SIGCOMM 2014, §3): mean number of pairs in a timeslot.
fn fastpass(shape: LeafSpine, demand: &[Vec<u32>], slots: u64) -> f64 {
    let mut order: Vec<(u64, u32, u32)> = (0..)
        .zip(demand)
        .flat_map(|(host, list)| list.iter().map(move |&to| (0, host, to)))
        .collect();
    let links = 2 * shape.hosts + 2 * shape.racks() * shape.uplinks;
    let (mut sent, mut path) = (0_u64, Vec::new());
    for slot in 1..=slots {
        order.sort_unstable();
        let mut busy = vec![false; links as usize];
        for (served, host, to) in &mut order {
            path.clear();
            shape.path(*host, *to, &mut path);
            if path.iter().all(|&link| !busy[link as usize]) {
                for &link in &path {
                    busy[link as usize] = true;
                }
                *served = slot;
                sent += 1;
            }
        }
    }
    sent as f64 / slots as f64
}

/// The most pairs with distinct sources and destinations: augmenting paths.
fn maximum_matching(demand: &[Vec<u32>]) -> usize {
    fn augment(host: u32, demand: &[Vec<u32>], of: &mut [Option<u32>], seen: &mut [bool]) -> bool {
        for &to in &demand[host as usize] {
            if std::mem::replace(&mut seen[to as usize], true) {
                continue;
            }
            if of[to as usize].is_none_or(|other| augment(other, demand, of, seen)) {
                of[to as usize] = Some(host);
                return true;
            }
        }
        false
    }
    let mut of = vec![None; demand.len()];
    let found = |&host: &u32| augment(host, demand, &mut of, &mut vec![false; demand.len()]);
    (0..demand.len() as u32).filter(found).count()
}
