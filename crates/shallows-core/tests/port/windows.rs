//! A port that is run window by window against the reference, which takes one packet after the
//! other.

use proptest::prelude::*;
use shallows_core::packet::Descriptor;
use shallows_core::port::{Offer, Pool};
use shallows_core::units::{Bytes, Time};

use crate::driver::{Driver, packet};
use crate::reference::{Marker, POOL, QUEUES, Reference, setups};

/// A packet that arrives so long after the one before.
type Arrival = (u64, usize, u32);

/// Packets as fast as the link can take them or slower, and now and then an idle time.
fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![
        4 => Just(0),
        10 => 0..1_500_000u64,
        3 => 0..3_000_000u64,
        1 => 0..40_000_000u64,
    ];
    let size = prop_oneof![Just(1500), Just(40), 40..=1500u32];
    prop::collection::vec((gap, 0..QUEUES, size), 1..300)
}

/// The reference as a driver of windows sees it.
struct Expected {
    reference: Reference,
    /// When it sends next; the greatest time if it holds nothing.
    due: Time,
    departed: Vec<(Descriptor, Time)>,
    dropped: Vec<Descriptor>,
}

impl Expected {
    /// Sends what is due by `end`, or before it.
    fn send(&mut self, is_due: impl Fn(Time) -> bool) {
        while self.due < Time::MAX && is_due(self.due) {
            self.due = match self.reference.transmit(self.due, 0) {
                Ok(Some((packet, finish))) => {
                    self.departed.push((packet, finish));
                    if self.reference.total() > 0 {
                        finish
                    } else {
                        Time::MAX
                    }
                }
                Ok(None) => Time::MAX,
                Err(at) => at,
            };
        }
    }

    fn take(&mut self, now: Time, packet: Descriptor) {
        self.send(|due| due <= now);
        let is_silent = self.reference.total() == 0 && now >= self.reference.busy_until;
        if self.reference.offer(now, packet, 0) != Offer::Queued {
            self.dropped.push(packet);
        } else if is_silent {
            self.due = now;
            self.send(|due| due == now);
        } else if self.due == Time::MAX {
            self.due = self.reference.busy_until.max(now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn windows_do_what_the_reference_does(
        setup in setups(),
        arrivals in arrivals(),
        window in 1_000_000..30_000_000u64,
        is_limited in any::<bool>(),
    ) {
        let mut driver = Driver::new(&setup.config());
        let mut expected = Expected {
            reference: Reference::new(setup),
            due: Time::MAX,
            departed: Vec::new(),
            dropped: Vec::new(),
        };
        // A port with queues of common kinds is plain if nothing limits its pool.
        expected.reference.pool = if is_limited { POOL } else { u64::MAX };
        driver.pool = Pool::new(Bytes::new(expected.reference.pool));
        let (mut departed, mut dropped) = (Vec::new(), Vec::new());
        let (mut now, mut due) = (0, Time::MAX);
        let timed = arrivals.into_iter().zip(0..).map(|((gap, queue, size), tag)| {
            now += gap;
            (Time::from_ps(now), packet(queue, size, tag))
        });
        let timed: Vec<_> = timed.collect();
        let mut rest = &timed[..];
        let mut end = Time::ZERO;
        while !rest.is_empty() || due < Time::MAX {
            end += Time::from_ps(window);
            let (now, later) = rest.split_at(rest.partition_point(|(time, _)| *time < end));
            rest = later;
            let mut arriving = now.to_vec();
            let arriving = arriving.iter_mut().map(|(time, packet)| (*time, packet));
            let depart = |finish, packet: &_| departed.push((*packet, finish));
            driver.port.run(&mut due, arriving, end, &mut driver.pool, depart);
            dropped.extend(driver.port.take_dropped().map(|(packet, _)| packet));
            for &(time, packet) in now {
                expected.take(time, packet);
            }
            expected.send(|due| due < end);
            prop_assert_eq!(&departed, &expected.departed);
            prop_assert_eq!(&dropped, &expected.dropped);
            for queue in 0..QUEUES {
                let bytes = driver.port.queue_bytes(queue).get();
                prop_assert_eq!(bytes, expected.reference.bytes(queue));
                if setup.marker == Marker::MqEcn {
                    let is = driver.port.threshold(queue).unwrap();
                    let expected = expected.reference.threshold(queue);
                    prop_assert!((is / expected - 1.0).abs() < 1e-9, "{} not {}", is, expected);
                }
            }
            prop_assert_eq!(driver.pool.used().get(), expected.reference.total());
        }
        prop_assert_eq!(departed.len() + dropped.len(), timed.len());
    }
}
