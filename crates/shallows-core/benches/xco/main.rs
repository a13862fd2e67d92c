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

mod latency;
mod throughput;

use std::collections::BTreeSet;
use std::env;

use shallows_core::units::{Rate, Time};
use shallows_core::xco::fabric::{CoordinatedFabric, Routes};

use latency::{Measured, instructions, latencies};
use throughput::{hierarchy, shares};

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
    print_latencies(only.as_ref());
    if only.is_some() {
        return;
    }
    print_shares();
    hierarchy(1_024, 10);
}

/// Latencies of all sizes, or of one.
fn print_latencies(only: Option<&(String, String)>) {
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
        if only.is_some_and(|only| *only != size) {
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
}

fn print_shares() {
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

    fn fabric(self) -> CoordinatedFabric<Self> {
        let links = 2 * self.hosts + 2 * self.racks() * self.uplinks;
        CoordinatedFabric::new(
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
