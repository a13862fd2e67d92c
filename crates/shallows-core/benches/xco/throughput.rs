//! Share of the achievable throughput that schedules get.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use shallows_core::units::Time;
use shallows_core::xco::fabric::{CoordinatedFabric, Routes};
use shallows_core::xco::hierarchy::Pods;
use shallows_core::xco::schedule::{Event, Schedule, Timing};

use super::{LeafSpine, PER_RACK, RATE, SLOT, destinations, mix};

pub(super) struct Share {
    pub(super) xco: f64,
    pub(super) fastpass: f64,
}

/// Pairs that send at once, over the most that could if only the hosts' links were limits.
pub(super) fn shares(hosts: u32, pairs: u32, uplinks: u32) -> Share {
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
fn scheduled<R: Routes>(
    fabric: CoordinatedFabric<R>,
    demand: &[Vec<u32>],
    slot: Time,
) -> Scheduled {
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
pub(super) fn hierarchy(hosts: u32, pairs: u32) {
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
