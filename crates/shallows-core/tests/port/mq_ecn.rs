//! MQ-ECN does what §3.2.2 says, at a saturated port and when queues come and go.

use proptest::prelude::*;
use shallows_core::packet::{Descriptor, Ecn};
use shallows_core::port::DropReason;
use shallows_core::port::marker::NotEct;
use shallows_core::units::Time;

use crate::driver::{Driver, config, packet};

const K: f64 = 97_500.0;
const QUEUES: usize = 8;

const SCHEDULERS: [&str; 2] = [
    r#"{ dwrr = { quantum = "1500B" } }"#,
    r#"{ wrr = { quantum = "1500B" } }"#,
];

fn port(scheduler: &str) -> Driver {
    Driver::new(&config(
        QUEUES,
        scheduler,
        r#"{ mq-ecn = { threshold = "65pkts" } }"#,
    ))
}

/// Keeps the queues `0..active` backlogged for `rounds` rounds of full packets.
fn saturate(driver: &mut Driver, active: usize, rounds: usize) {
    for queue in 0..active {
        while driver.port.queue_packets(queue) < 3 {
            driver.offer(packet(queue, 1500, 0));
        }
    }
    for _ in 0..rounds * active {
        let departure = driver.next().expect("queues are backlogged");
        if departure.queue < active {
            driver.offer(packet(departure.queue, 1500, 0));
        }
    }
}

fn drain(driver: &mut Driver) {
    while driver.next().is_some() {}
    driver.now = driver.port.busy_until();
}

fn assert_near(threshold: f64, ideal: f64, tolerance: f64, what: &str) {
    let error = (threshold / ideal - 1.0).abs();
    assert!(
        error <= tolerance,
        "{what}: {threshold:.1} B, not {ideal:.1} B"
    );
}

#[test]
fn thresholds_settle_at_k_over_n_within_a_few_rounds() {
    for scheduler in SCHEDULERS {
        for active in 1..=QUEUES {
            let mut driver = port(scheduler);
            // A round gives one sample for each active queue; 0.75^16 = 1% of the start is left.
            saturate(&mut driver, active, 16_usize.div_ceil(active) + 1);
            for queue in 0..active {
                let threshold = driver.port.threshold(queue).unwrap();
                let what = format!("{scheduler}, {active} active");
                assert_near(threshold, K / active as f64, 0.02, &what);
            }
        }
    }
}

#[test]
fn thresholds_recover_when_queues_go_idle() {
    for scheduler in SCHEDULERS {
        let mut driver = port(scheduler);
        saturate(&mut driver, 8, 10);
        assert_near(driver.port.threshold(0).unwrap(), K / 8.0, 0.01, scheduler);
        // Six of eight fall silent: their last packets drain, then two share the link.
        saturate(&mut driver, 2, 30);
        assert_near(driver.port.threshold(0).unwrap(), K / 2.0, 0.01, scheduler);
        saturate(&mut driver, 8, 10);
        assert_near(driver.port.threshold(0).unwrap(), K / 8.0, 0.01, scheduler);
        // The whole port falls silent for 40 T_idle: T_round is 9.6 us x 0.75^40, under 1 ns.
        drain(&mut driver);
        driver.now += Time::from_ns(1200) * 40;
        driver.offer(packet(0, 1500, 0));
        assert_eq!(driver.port.threshold(0), Some(K), "{scheduler}");
    }
}

#[test]
fn thresholds_follow_unequal_quanta() {
    for kind in ["dwrr", "wrr"] {
        let scheduler = format!(r#"{{ {kind} = {{ quantum = ["1500B", "3000B", "4500B"] }} }}"#);
        let marker = r#"{ mq-ecn = { threshold = "65pkts" } }"#;
        let mut driver = Driver::new(&config(3, &scheduler, marker));
        for queue in 0..3 {
            for _ in 0..10 {
                driver.offer(packet(queue, 1500, 0));
            }
        }
        for _ in 0..120 {
            let departure = driver.next().expect("queues are backlogged");
            driver.offer(packet(departure.queue, 1500, 0));
        }
        for (queue, share) in [6.0, 3.0, 2.0].into_iter().enumerate() {
            assert_near(driver.port.threshold(queue).unwrap(), K / share, 0.01, kind);
        }
    }
}

#[test]
fn the_interval_variant_settles_too() {
    let marker = r#"{ mq-ecn = { threshold = "65pkts", update = { interval = "7.2us" } } }"#;
    let mut driver = Driver::new(&config(QUEUES, SCHEDULERS[0], marker));
    // One update in 7.2 us: 20 of them take 15 rounds of eight packets.
    saturate(&mut driver, 8, 30);
    assert_near(driver.port.threshold(0).unwrap(), K / 8.0, 0.01, "interval");
}

#[test]
fn wfq_divides_by_the_backlogged_weight() {
    let marker = r#"{ mq-ecn = { threshold = "65pkts" } }"#;
    let mut driver = Driver::new(&config(QUEUES, "{ wfq = { weight = 1 } }", marker));
    for active in [3, 8, 1] {
        saturate(&mut driver, active, 60);
        let what = format!("wfq, {active} active");
        assert_near(
            driver.port.threshold(0).unwrap(),
            K / active as f64,
            0.01,
            &what,
        );
    }
}

/// A packet that is dropped because it cannot be marked never was in its queue, which stays empty
/// and must not count as backlogged.
#[test]
fn a_queue_whose_only_packet_was_dropped_is_not_backlogged() {
    let mut config = config(
        3,
        "{ wfq = { weight = 1 } }",
        r#"{ mq-ecn = { threshold = "1pkt" } }"#,
    );
    config.marker.not_ect = NotEct::Drop;
    let mut driver = Driver::new(&config);
    saturate(&mut driver, 2, 60);
    assert_near(driver.port.threshold(2).unwrap(), 750.0, 0.01, "two busy");
    let unmarkable = Descriptor {
        ecn: Ecn::NotEct,
        ..packet(2, 1500, 0)
    };
    driver.offer(unmarkable);
    assert_eq!(driver.port.counters(2).drops(DropReason::NotEct).packets, 1);
    saturate(&mut driver, 2, 60);
    assert_near(driver.port.threshold(2).unwrap(), 750.0, 0.01, "still two");
}

/// The two observations of §2 that MQ-ECN answers, at the port alone: the sum of all thresholds
/// is K when all queues are busy, and one busy queue has all of K.
#[test]
fn the_sum_of_thresholds_is_k() {
    for active in 1..=QUEUES {
        let mut driver = port(SCHEDULERS[0]);
        saturate(&mut driver, active, 40);
        let sum: f64 = (0..active).map(|q| driver.port.threshold(q).unwrap()).sum();
        assert_near(sum, K, 0.001, "sum");
    }
}

proptest! {
    /// Whatever happens, 0 < K_i <= C x RTT x lambda.
    #[test]
    fn thresholds_stay_in_range(
        scheduler in prop::sample::select(vec![
            r#"{ dwrr = { quantum = ["1500B", "3000B", "1500B", "9000B"] } }"#,
            r#"{ wrr = { quantum = "1500B" } }"#,
            "{ wfq = { weight = [1, 2, 3, 4] } }",
            r#"{ strict-over = { strict = 1, rest = "dwrr", quantum = "1500B" } }"#,
        ]),
        steps in prop::collection::vec((0..4usize, 40..=1500u32, 0..8u8, 0..3_000_000u64), 1..200),
    ) {
        let marker = r#"{ mq-ecn = { threshold = "65pkts" } }"#;
        let mut driver = Driver::new(&config(4, scheduler, marker));
        for (queue, size, action, gap) in steps {
            match action {
                0..=3 => driver.offer(packet(queue, size, 0)),
                4..=6 => { driver.next(); }
                _ => driver.now += Time::from_ps(gap),
            }
            for queue in 0..4 {
                let threshold = driver.port.threshold(queue).unwrap();
                prop_assert!(threshold > 0.0 && threshold <= K, "{}", threshold);
            }
        }
    }
}
