use proptest::prelude::*;

use super::listing::Listing;
use super::{Event, Grant, Schedule, Timing};
use crate::units::{Rate, Time};
use crate::xco::fabric::CoordinatedFabric;

const CALM: Timing = Timing {
    preempt_after: None,
    patience: Time::from_secs(1),
};

/// Fig. 1(a): senders 1 to 5 and their receiver 0 at one switch. Link `h` leads up from host `h`,
/// link `6 + h` down to it.
fn star(source: u32, destination: u32, path: &mut Vec<u32>) {
    path.extend([source, 6 + destination]);
}

fn star_of(rate: Rate) -> CoordinatedFabric<fn(u32, u32, &mut Vec<u32>)> {
    CoordinatedFabric::new(
        vec![rate; 6],
        vec![Rate::from_gbps(1); 12],
        star as fn(_, _, &mut _),
    )
    .unwrap()
}

/// Fig. 1(b): senders 0 to 12 share link 13, of 10 Gbps, on their way to receivers 13 to 25.
fn uplink(source: u32, destination: u32, path: &mut Vec<u32>) {
    path.extend([source, 13, 1 + destination]);
}

fn at(ms: u64) -> Time {
    Time::from_ms(ms)
}

fn backlogged<R: super::Routes>(
    schedule: &mut Schedule<R>,
    pairs: &[(u32, u32)],
) -> Vec<(u32, u32)> {
    let mut grants = Vec::new();
    for &(host, destination) in pairs {
        assert!(schedule.add(Time::ZERO, host, destination));
        schedule.handle(Time::ZERO, Event::Backlogged(host), &mut grants);
    }
    sent(&grants)
}

fn sent(grants: &[Grant]) -> Vec<(u32, u32)> {
    grants
        .iter()
        .map(|grant| (grant.host, grant.destination))
        .collect()
}

fn handle<R: super::Routes>(
    schedule: &mut Schedule<R>,
    now: Time,
    event: Event,
) -> Vec<(u32, u32)> {
    let mut grants = Vec::new();
    schedule.handle(now, event, &mut grants);
    sent(&grants)
}

#[test]
fn one_of_five_senders_at_a_time_as_in_figure_9a() {
    let mut schedule = Schedule::new(star_of(Rate::from_gbps(1)), CALM);
    let all = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)];
    assert_eq!(backlogged(&mut schedule, &all), [(1, 0)]);
    for slot in 0..12 {
        let (now, next) = (slot % 5 + 1, (slot + 1) % 5 + 1);
        assert_eq!(
            handle(
                &mut schedule,
                at(10 * u64::from(slot + 1)),
                Event::Expired(now)
            ),
            [(next, 0)]
        );
    }
}

#[test]
fn ten_of_thirteen_senders_at_a_time_as_in_figure_9b() {
    let mut capacities = vec![Rate::from_gbps(1); 27];
    capacities[13] = Rate::from_gbps(10);
    let fabric = CoordinatedFabric::new(vec![Rate::from_gbps(1); 26], capacities, uplink).unwrap();
    let mut schedule = Schedule::new(fabric, CALM);
    let all: Vec<_> = (0..13).map(|host| (host, 13 + host)).collect();
    assert_eq!(backlogged(&mut schedule, &all), all[..10]);
    assert_eq!(schedule.load(13), Rate::from_gbps(10));
    assert_eq!(handle(&mut schedule, at(10), Event::Expired(0)), [(10, 23)]);
    assert_eq!(handle(&mut schedule, at(10), Event::Expired(1)), [(11, 24)]);
    assert_eq!(handle(&mut schedule, at(10), Event::Expired(2)), [(12, 25)]);
    assert_eq!(handle(&mut schedule, at(10), Event::Expired(3)), [(0, 13)]);
}

#[test]
fn a_slot_given_back_goes_to_the_next() {
    let mut schedule = Schedule::new(star_of(Rate::from_gbps(1)), CALM);
    backlogged(&mut schedule, &[(1, 0), (2, 0), (1, 3)]);
    assert_eq!(
        handle(&mut schedule, at(1), Event::Returned(1)),
        [(2, 0), (1, 3)]
    );
    assert_eq!(schedule.backlog(1).collect::<Vec<_>>(), [3]);
    assert_eq!(schedule.directive(2), Some((0, at(1))));
    assert_eq!(handle(&mut schedule, at(2), Event::Returned(2)), []);
    assert_eq!(schedule.load(6), Rate::from_bps(0));
}

#[test]
fn a_host_that_leaves_makes_room() {
    let mut schedule = Schedule::new(star_of(Rate::from_gbps(1)), CALM);
    backlogged(&mut schedule, &[(1, 0), (2, 0), (1, 3)]);
    assert_eq!(handle(&mut schedule, at(1), Event::Left(1)), [(2, 0)]);
    assert_eq!(schedule.backlogged(), 1);
}

#[test]
fn a_host_faster_than_its_path_sends_at_the_rate_of_the_path() {
    let mut schedule = Schedule::new(star_of(Rate::from_gbps(10)), CALM);
    assert!(schedule.add(Time::ZERO, 1, 0));
    let mut grants = Vec::new();
    schedule.handle(Time::ZERO, Event::Backlogged(1), &mut grants);
    assert_eq!(grants[0].rate, Rate::from_gbps(1));
}

#[test]
fn a_pair_that_needs_two_busy_links_claims_them() {
    // Links 0 and 1 in a row; host 0 uses both, host 1 the first, host 2 the second.
    let line = |source: u32, _: u32, path: &mut Vec<u32>| match source {
        0 => path.extend([0, 1]),
        1 => path.push(0),
        _ => path.push(1),
    };
    let fabric = CoordinatedFabric::new(
        vec![Rate::from_gbps(1); 4],
        vec![Rate::from_gbps(1); 2],
        line,
    );
    let patience = at(40);
    let mut schedule = Schedule::new(fabric.unwrap(), Timing { patience, ..CALM });
    assert_eq!(
        backlogged(&mut schedule, &[(1, 3), (2, 3), (0, 3)]),
        [(1, 3), (2, 3)]
    );
    // Slots of 10 ms that overlap by half: never are both links free at once.
    for slot in 1..=4 {
        assert_eq!(
            handle(&mut schedule, at(10 * slot), Event::Expired(1)),
            [(1, 3)]
        );
        if slot < 4 {
            assert_eq!(
                handle(&mut schedule, at(10 * slot + 5), Event::Expired(2)),
                [(2, 3)]
            );
        }
    }
    // Overdue at 45 ms: the second link stays empty until the first is.
    assert_eq!(handle(&mut schedule, at(45), Event::Expired(2)), []);
    assert_eq!(handle(&mut schedule, at(50), Event::Expired(1)), [(0, 3)]);
    assert_eq!(
        handle(&mut schedule, at(60), Event::Expired(0)),
        [(2, 3), (1, 3)]
    );
}

#[test]
fn a_link_that_fails_ends_its_slots_and_one_that_returns_is_used() {
    let mut schedule = Schedule::new(star_of(Rate::from_gbps(1)), CALM);
    backlogged(&mut schedule, &[(1, 0), (2, 3)]);
    let mut grants = Vec::new();
    schedule.set_capacity(at(1), 6, Rate::from_bps(0), &mut grants);
    assert_eq!((schedule.directive(1), schedule.backlogged()), (None, 1));
    assert!(!schedule.add(at(1), 1, 0), "no path while the link is down");
    schedule.set_capacity(at(2), 6, Rate::from_mbps(100), &mut grants);
    assert!(schedule.add(at(2), 1, 0));
    grants.clear();
    schedule.handle(at(2), Event::Backlogged(1), &mut grants);
    assert_eq!(grants[0].rate, Rate::from_mbps(100));
}

/// Racks of hosts under two spines; a pair takes the spine that its hash gives.
#[derive(Clone, Debug)]
struct LeafSpine {
    racks: u32,
    per_rack: u32,
}

const SPINES: u32 = 2;

impl super::Routes for LeafSpine {
    fn path(&self, source: u32, destination: u32, path: &mut Vec<u32>) {
        let hosts = self.racks * self.per_rack;
        path.push(source);
        let (from, to) = (source / self.per_rack, destination / self.per_rack);
        if from != to {
            let spine = (source * 7 + destination * 13) % SPINES;
            path.push(2 * hosts + from * SPINES + spine);
            path.push(2 * hosts + (self.racks + to) * SPINES + spine);
        }
        path.push(hosts + destination);
    }
}

impl LeafSpine {
    /// Hosts of 1 or 2 Gbps, so that what is feasible for one need not be for another.
    fn fabric(&self, uplink: u64) -> CoordinatedFabric<Self> {
        let hosts = self.racks * self.per_rack;
        let rate = |host: u32| Rate::from_gbps(1 + u64::from(host.is_multiple_of(3)));
        let edge = (0..hosts).chain(0..hosts).map(rate);
        let core = (0..2 * self.racks * SPINES).map(|_| Rate::from_gbps(uplink));
        CoordinatedFabric::new(
            (0..hosts).map(rate).collect(),
            edge.chain(core).collect(),
            self.clone(),
        )
        .unwrap()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(u32, u32),
    Remove(u32, u32),
    Expire(usize),
    Return(usize),
    Leave(u32),
}

fn steps(hosts: u32) -> impl Strategy<Value = Vec<(u64, Step)>> {
    let pair = move || (0..hosts, 0..hosts);
    let step = prop_oneof![
        6 => pair().prop_map(|(s, d)| Step::Add(s, d)),
        1 => pair().prop_map(|(s, d)| Step::Remove(s, d)),
        6 => any::<prop::sample::Index>().prop_map(|i| Step::Expire(i.index(1 << 16))),
        2 => any::<prop::sample::Index>().prop_map(|i| Step::Return(i.index(1 << 16))),
        1 => (0..hosts).prop_map(Step::Leave),
    ];
    prop::collection::vec((0..3_u64, step), 1..120)
}

fn timing() -> impl Strategy<Value = Timing> {
    let preempt = prop_oneof![
        3 => Just(None),
        1 => (0..12_u64).prop_map(|ms| Some(at(ms))),
    ];
    (preempt, 1..60_u64).prop_map(|(preempt_after, patience)| Timing {
        preempt_after,
        patience: at(patience),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_fast_version_gives_the_directives_of_the_listing(
        (racks, per_rack) in (1..4_u32, 2..5_u32),
        uplink in 1..4_u64,
        timing in timing(),
        steps in steps(16),
    ) {
        let hosts = racks * per_rack;
        let shape = LeafSpine { racks, per_rack };
        let mut fast = Schedule::new(shape.fabric(uplink), timing);
        let mut listing = Listing::new(shape.fabric(uplink), timing);
        let mut now = Time::ZERO;
        for (wait, step) in steps {
            now += at(wait);
            let active: Vec<u32> = listing.directive.keys().copied().collect();
            let chosen = |index: usize| (!active.is_empty()).then(|| active[index % active.len()]);
            let event = match step {
                Step::Add(s, d) => {
                    let (s, d) = (s % hosts, d % hosts);
                    prop_assert_eq!(fast.add(now, s, d), listing.add(now, s, d));
                    Some(Event::Backlogged(s)).filter(|_| !active.contains(&s))
                }
                Step::Remove(s, d) => {
                    let (s, d) = (s % hosts, d % hosts);
                    fast.remove(s, d);
                    listing.remove(s, d);
                    Some(Event::Backlogged(s)).filter(|_| !active.contains(&s))
                }
                Step::Expire(index) => chosen(index).map(Event::Expired),
                Step::Return(index) => chosen(index).map(Event::Returned),
                Step::Leave(host) => Some(Event::Left(host % hosts)),
            };
            let Some(event) = event else { continue };
            let mut grants = Vec::new();
            fast.handle(now, event, &mut grants);
            prop_assert_eq!(&grants, &listing.handle(now, event), "{:?} at {}", event, now);
            for link in 0..listing.fabric.links.len() {
                prop_assert!(fast.load(link as u32) <= listing.fabric.links[link]);
            }
            for host in 0..hosts {
                let directive = listing.directive.get(&host).copied();
                prop_assert_eq!(fast.directive(host), directive);
            }
        }
    }
}
