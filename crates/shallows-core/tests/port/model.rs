//! The port against a [reference](crate::reference) that is slow and obviously right: random
//! operations must give the same outcome, the same departures, marks and thresholds, step by step.

use proptest::prelude::*;
use shallows_core::port::{Forward, Offer, Pool, PortConfig, QueueSet, Transmit};
use shallows_core::units::{Bytes, Time};

use crate::driver::{Driver, packet};
use crate::reference::{Marker, POOL, QUEUES, Reference, setups};

#[derive(Clone, Debug)]
enum Operation {
    Offer {
        queue: usize,
        size: u32,
    },
    /// An offer that is sent at once if the port is empty and its link free.
    Forward {
        queue: usize,
        size: u32,
    },
    Transmit,
    Wait(u64),
    Pause(usize),
    Resume(usize),
    /// Another port of the switch takes or frees pool memory.
    Others(u64),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        12 => (0..QUEUES, prop_oneof![Just(1500), 40..=1500u32])
            .prop_map(|(queue, size)| Operation::Offer { queue, size }),
        4 => (0..QUEUES, 40..=1500u32)
            .prop_map(|(queue, size)| Operation::Forward { queue, size }),
        10 => Just(Operation::Transmit),
        2 => (0..6_000_000u64).prop_map(Operation::Wait),
        1 => (0..QUEUES).prop_map(Operation::Pause),
        2 => (0..QUEUES).prop_map(Operation::Resume),
        1 => (0..5_000u64).prop_map(Operation::Others),
    ];
    prop::collection::vec(operation, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_port_does_what_the_reference_does(setup in setups(), operations in operations()) {
        let mut driver = Driver::new(&setup.config());
        driver.pool = Pool::new(Bytes::new(POOL));
        // A port that stands for the rest of the switch, so that the pool is really shared.
        let mut rest = Driver::new(&PortConfig::fifo(shallows_core::port::BufferConfig::Unlimited));
        let mut reference = Reference::new(setup);
        for (tag, operation) in operations.into_iter().enumerate() {
            let others = rest.port.bytes().get();
            match operation {
                Operation::Offer { queue, size } => {
                    let packet = packet(queue, size, tag as u64);
                    let outcome = driver.port.offer(driver.now, packet, &mut driver.pool);
                    prop_assert_eq!(outcome, reference.offer(driver.now, packet, others));
                    let dropped = driver.port.take_dropped().map(|(p, _)| p).collect::<Vec<_>>();
                    let expected = if outcome == Offer::Queued { vec![] } else { vec![packet] };
                    prop_assert_eq!(dropped, expected);
                }
                Operation::Forward { queue, size } => {
                    let mut packet = packet(queue, size, tag as u64);
                    let silent = reference.total() == 0 && driver.now >= reference.busy_until;
                    let offered = reference.offer(driver.now, packet, others);
                    let outcome = driver.port.forward(driver.now, &mut packet, &mut driver.pool);
                    driver.port.take_dropped().for_each(drop);
                    let sent = match offered {
                        Offer::Queued if silent => reference.transmit(driver.now, others),
                        _ => Ok(None),
                    };
                    match (outcome, offered, sent) {
                        (Forward::Dropped(is), Offer::Dropped(expected), _) => {
                            prop_assert_eq!(is, expected);
                        }
                        (Forward::Sent(is), Offer::Queued, Ok(Some(expected))) => {
                            prop_assert_eq!((packet, is.finish), expected);
                        }
                        (Forward::Queued, Offer::Queued, Ok(None) | Err(_)) => {}
                        (is, offered, sent) => {
                            prop_assert!(false, "{is:?}, not {offered:?} and {sent:?}");
                        }
                    }
                }
                Operation::Transmit => {
                    let outcome = driver.port.transmit(driver.now, &mut driver.pool);
                    let expected = reference.transmit(driver.now, others);
                    match (outcome, expected) {
                        (Transmit::Packet(is), Ok(Some(expected))) => {
                            prop_assert_eq!((is.packet, is.finish), expected);
                        }
                        (Transmit::Wait(is), Err(expected)) => {
                            prop_assert_eq!(is, expected);
                            driver.now = is;
                        }
                        (Transmit::Idle, Ok(None)) => {}
                        (is, expected) => prop_assert!(false, "{is:?}, not {expected:?}"),
                    }
                }
                Operation::Wait(span) => driver.now += Time::from_ps(span),
                Operation::Pause(queue) => {
                    driver.port.pause(QueueSet::one(queue));
                    reference.pause(queue);
                }
                Operation::Resume(queue) => {
                    driver.port.resume(driver.now, QueueSet::one(queue));
                    reference.resume(driver.now, queue);
                }
                Operation::Others(size) => {
                    let free = driver.pool.free().get();
                    if others > 0 {
                        rest.port.transmit(rest.port.busy_until(), &mut driver.pool);
                    } else if size > 0 && size <= free {
                        let packet = packet(0, size as u32, 0);
                        rest.port.offer(Time::ZERO, packet, &mut driver.pool);
                    }
                }
            }
            for queue in 0..QUEUES {
                prop_assert_eq!(driver.port.queue_bytes(queue).get(), reference.bytes(queue));
                if setup.marker == Marker::MqEcn {
                    let is = driver.port.threshold(queue).unwrap();
                    let expected = reference.threshold(queue);
                    prop_assert!((is / expected - 1.0).abs() < 1e-9, "{} not {}", is, expected);
                }
            }
            let total = reference.total() + rest.port.bytes().get();
            prop_assert_eq!(driver.pool.used().get(), total);
        }
    }
}
