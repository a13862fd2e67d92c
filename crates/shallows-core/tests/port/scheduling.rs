//! What every scheduler promises, checked on random traffic.

use std::collections::VecDeque;

use proptest::prelude::*;
use shallows_core::packet::Descriptor;
use shallows_core::port::{Offer, PortConfig, Transmit};
use shallows_core::units::Time;

use crate::driver::{Driver, config, packet};

const MTU: u32 = 1500;

/// Schedulers for four queues, as TOML.
const SCHEDULERS: [&str; 6] = [
    r#""strict""#,
    r#"{ wrr = { quantum = ["1500B", "3000B", "4500B", "1500B"] } }"#,
    r#"{ dwrr = { quantum = ["1500B", "3000B", "2000B", "1700B"] } }"#,
    "{ wfq = { weight = [1, 2, 3, 4] } }",
    r#"{ strict-over = { strict = 1, rest = "wrr", quantum = "1500B" } }"#,
    r#"{ strict-over = { strict = 2, rest = "dwrr", quantum = "1500B" } }"#,
];

#[derive(Clone, Debug)]
enum Step {
    Offer { queue: usize, size: u32 },
    Transmit,
    Wait(Time),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4usize, 40..=MTU).prop_map(|(queue, size)| Step::Offer { queue, size }),
        3 => Just(Step::Transmit),
        1 => (0..5_000_000u64).prop_map(|ps| Step::Wait(Time::from_ps(ps))),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    /// Work conservation: a port with a free link and a packet sends it. Order: each queue's
    /// packets leave in the order in which they came, all of them, once.
    #[test]
    fn nothing_is_lost_duplicated_reordered_or_held_back(
        scheduler in prop::sample::select(SCHEDULERS.as_slice()),
        steps in steps(),
    ) {
        let mut driver = Driver::new(&config(4, scheduler, r#""none""#));
        let mut expected = Expected::default();
        for (tag, step) in steps.into_iter().enumerate() {
            match step {
                Step::Wait(span) => driver.now += span,
                Step::Transmit => {
                    expected.check_transmit(&mut driver)?;
                }
                Step::Offer { queue, size } => {
                    let packet = packet(queue, size, tag as u64);
                    let outcome = driver.port.offer(driver.now, packet, &mut driver.pool);
                    prop_assert_eq!(outcome, Offer::Queued);
                    expected.0[queue].push_back(packet);
                }
            }
        }
        while expected.check_transmit(&mut driver)? {}
        prop_assert_eq!(driver.port.packets(), 0);
        prop_assert_eq!(driver.pool.used().get(), 0);
    }
}

/// The packets that are due from each queue, in order.
#[derive(Default)]
struct Expected([VecDeque<Descriptor>; 4]);

impl Expected {
    /// Asks the port for a packet; false if it is idle, and rightly so.
    fn check_transmit(&mut self, driver: &mut Driver) -> Result<bool, TestCaseError> {
        let backlog: usize = self.0.iter().map(VecDeque::len).sum();
        match driver.port.transmit(driver.now, &mut driver.pool) {
            Transmit::Packet(departure) => {
                let due = self.0[departure.queue].pop_front();
                prop_assert_eq!(Some(departure.packet), due);
            }
            Transmit::Wait(at) => {
                prop_assert!(backlog > 0);
                prop_assert!(at > driver.now && at == driver.port.busy_until());
                driver.now = at;
            }
            Transmit::Idle => {
                prop_assert_eq!(backlog, 0);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Departures of a port whose queues never run empty, as (queue, bytes).
fn backlogged(config: &PortConfig, sizes: &[u32], packets: usize) -> Vec<(usize, u32)> {
    let mut driver = Driver::new(config);
    let mut sizes = sizes.iter().copied().cycle();
    let mut size = || sizes.next().expect("a cycle has no end");
    for queue in 0..config.queues {
        for _ in 0..3 {
            driver.offer(packet(queue, size(), 0));
        }
    }
    let mut departures = Vec::new();
    for _ in 0..packets {
        let departure = driver.next().expect("there is always a backlog");
        departures.push((departure.queue, departure.packet.size));
        driver.offer(packet(departure.queue, size(), 0));
    }
    departures
}

/// Bytes of each visit to a queue: the runs of departures from it. The first and the last may be
/// cut short and are left out.
fn visits(departures: &[(usize, u32)], queue: usize) -> Vec<u64> {
    let runs: Vec<_> = departures.chunk_by(|a, b| a.0 == b.0).collect();
    let inner = &runs[1..runs.len() - 1];
    inner
        .iter()
        .filter(|run| run[0].0 == queue)
        .map(|run| run.iter().map(|&(_, size)| u64::from(size)).sum())
        .collect()
}

fn packet_sizes() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(40..=MTU, 1..50)
}

proptest! {
    /// Eq. 7: over any M rounds a backlogged queue sends M x Q, give or take an MTU.
    #[test]
    fn dwrr_keeps_equation_7(
        sizes in packet_sizes(),
        quanta in prop::collection::vec(MTU..6000, 2..6),
    ) {
        let list: Vec<_> = quanta.iter().map(|q| format!("\"{q}B\"")).collect();
        let scheduler = format!("{{ dwrr = {{ quantum = [{}] }} }}", list.join(", "));
        let departures = backlogged(&config(quanta.len(), &scheduler, r#""none""#), &sizes, 600);
        for (queue, &quantum) in quanta.iter().enumerate() {
            let visits = visits(&departures, queue);
            for first in 0..visits.len() {
                let mut sent = 0;
                for (round, bytes) in visits[first..].iter().enumerate() {
                    sent += bytes;
                    let ideal = (round as u64 + 1) * u64::from(quantum);
                    prop_assert!(
                        sent.abs_diff(ideal) <= u64::from(MTU),
                        "queue {} sent {} in {} rounds of {}", queue, sent, round + 1, quantum
                    );
                }
            }
        }
    }

    /// WRR: never more than the quantum in a round, and never a packet less than fits.
    #[test]
    fn wrr_fills_but_never_exceeds_its_quantum(
        sizes in packet_sizes(),
        quanta in prop::collection::vec(MTU..6000, 2..6),
    ) {
        let list: Vec<_> = quanta.iter().map(|q| format!("\"{q}B\"")).collect();
        let scheduler = format!("{{ wrr = {{ quantum = [{}] }} }}", list.join(", "));
        let departures = backlogged(&config(quanta.len(), &scheduler, r#""none""#), &sizes, 600);
        for (queue, &quantum) in quanta.iter().enumerate() {
            for bytes in visits(&departures, queue) {
                prop_assert!(bytes <= u64::from(quantum));
                prop_assert!(bytes + u64::from(MTU) > u64::from(quantum));
            }
        }
    }

    /// WFQ: at every instant of a backlogged period each queue is within one MTU of its share of
    /// what was sent so far.
    #[test]
    fn wfq_stays_within_one_mtu_of_gps(
        sizes in packet_sizes(),
        weights in prop::collection::vec(1u32..10, 2..8),
    ) {
        let scheduler = format!("{{ wfq = {{ weight = {weights:?} }} }}");
        let departures = backlogged(&config(weights.len(), &scheduler, r#""none""#), &sizes, 600);
        let sum: u64 = weights.iter().copied().map(u64::from).sum();
        let mut sent = vec![0u64; weights.len()];
        let mut total = 0;
        for (queue, size) in departures {
            sent[queue] += u64::from(size);
            total += u64::from(size);
            for (&sent, &weight) in sent.iter().zip(&weights) {
                let (is, ideal) = (sent * sum, total * u64::from(weight));
                prop_assert!(is.abs_diff(ideal) <= u64::from(MTU) * sum);
            }
        }
    }

    /// Strict priority: no packet leaves while a more urgent queue has one.
    #[test]
    fn strict_priority_is_never_inverted(
        scheduler in prop::sample::select(vec![
            (r#""strict""#, 4),
            (r#"{ strict-over = { strict = 2, rest = "dwrr", quantum = "1500B" } }"#, 2),
            (r#"{ strict-over = { strict = 1, rest = "wrr", quantum = "1500B" } }"#, 1),
        ]),
        steps in steps(),
    ) {
        let (scheduler, strict) = scheduler;
        let mut driver = Driver::new(&config(4, scheduler, r#""none""#));
        for (tag, step) in steps.into_iter().enumerate() {
            match step {
                Step::Offer { queue, size } => driver.offer(packet(queue, size, tag as u64)),
                Step::Wait(span) => driver.now += span,
                Step::Transmit => {
                    let Some(departure) = driver.next() else { continue };
                    for urgent in 0..departure.queue.min(strict) {
                        prop_assert_eq!(driver.port.queue_packets(urgent), 0);
                    }
                }
            }
        }
    }
}

/// Equal packets and equal quanta: the order is a plain rotation.
#[test]
fn equal_queues_take_turns() {
    for scheduler in [
        r#"{ wrr = { quantum = "1500B" } }"#,
        r#"{ dwrr = { quantum = "1500B" } }"#,
        "{ wfq = { weight = 1 } }",
    ] {
        let departures = backlogged(&config(3, scheduler, r#""none""#), &[MTU], 9);
        let order: Vec<_> = departures.iter().map(|&(queue, _)| queue).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2], "{scheduler}");
    }
}

/// A packet larger than the whole quantum goes alone in its visit instead of blocking the port.
#[test]
fn wrr_sends_an_oversized_packet_alone() {
    let config = config(2, r#"{ wrr = { quantum = "1000B" } }"#, r#""none""#);
    let departures = backlogged(&config, &[MTU], 6);
    let order: Vec<_> = departures.iter().map(|&(queue, _)| queue).collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1]);
}

/// DWRR with quanta below an MTU still serves, after as many rounds as it takes.
#[test]
fn dwrr_saves_up_for_a_large_packet() {
    let quantum = r#"{ dwrr = { quantum = ["500B", "1000B"] } }"#;
    let departures = backlogged(&config(2, quantum, r#""none""#), &[MTU], 300);
    let first = departures.iter().filter(|&&(queue, _)| queue == 0).count();
    assert_eq!(first, 100, "one third of the bytes");
}
