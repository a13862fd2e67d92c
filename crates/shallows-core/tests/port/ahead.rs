//! A port that looks ahead against the same port asked packet by packet.

use proptest::prelude::*;
use shallows_core::packet::{Descriptor, Ecn};
use shallows_core::port::{
    DropReason, EgressPort, Forward, MarkReason, Pool, PortConfig, Transmit,
};
use shallows_core::units::{Rate, Time};

use super::driver::packet;

const CONFIGS: [&str; 4] = [
    r#"
    buffer = { shared = { size = "20KB" } }
    scheduler = "fifo"
    marker = { scheme = { per-queue = { threshold = "4pkts" } } }
    "#,
    r#"
    buffer = "unlimited"
    scheduler = "fifo"
    framing = "ethernet"
    accounting = "wire"
    marker = { scheme = { per-port = { threshold = "7001B" } }, not-ect = "drop" }
    "#,
    r#"
    buffer = { per-queue = { limit = "9KB" } }
    scheduler = "fifo"
    framing = "ethernet"
    "#,
    // This one cannot look ahead, and goes on as before.
    r#"
    buffer = { shared = { size = "20KB" } }
    scheduler = "fifo"
    marker = { scheme = { per-queue = { threshold = "4pkts" } }, point = "dequeue" }
    "#,
];

/// All departures of a port that is asked whenever its link is free, with their times.
fn by_asking(
    port: &mut EgressPort<Descriptor>,
    arrivals: &[(Time, Descriptor)],
) -> Vec<(Descriptor, Time, Time)> {
    let mut pool = Pool::unlimited();
    let mut departures = Vec::new();
    let mut send_until =
        |port: &mut EgressPort<Descriptor>, pool: &mut Pool<Descriptor>, end: Time| {
            while port.packets() > 0 && port.busy_until() <= end {
                let at = port.busy_until();
                if let Transmit::Packet(departure) = port.transmit(at, pool) {
                    departures.push((departure.packet, departure.finish, departure.sojourn));
                }
            }
        };
    let mut sent_at_once = Vec::new();
    for &(now, mut packet) in arrivals {
        send_until(port, &mut pool, now);
        if let Forward::Sent(passage) = port.forward(now, &mut packet, &mut pool) {
            sent_at_once.push((packet, passage.finish, passage.sojourn));
        }
        port.take_dropped().for_each(drop);
    }
    send_until(port, &mut pool, Time::MAX);
    departures.extend(sent_at_once);
    departures.sort_by_key(|departure| departure.1);
    departures
}

fn looking_ahead(
    port: &mut EgressPort<Descriptor>,
    arrivals: &[(Time, Descriptor)],
) -> Vec<(Descriptor, Time, Time)> {
    let mut pool = Pool::unlimited();
    port.look_ahead();
    let forwarded = arrivals.iter().filter_map(|&(now, mut packet)| {
        let outcome = port.forward(now, &mut packet, &mut pool);
        port.take_dropped().for_each(drop);
        match outcome {
            Forward::Sent(passage) => Some((packet, passage.finish, passage.sojourn)),
            Forward::Queued => panic!("a port that looks ahead sends at once"),
            Forward::Dropped(_) => None,
        }
    });
    forwarded.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn departures_are_those_of_a_port_that_is_asked(
        config in 0..3usize,
        mbps in prop::sample::select(vec![10_000, 995, 7]),
        steps in prop::collection::vec((0..2_000u64, 40..1501u32, any::<bool>()), 1..200),
    ) {
        let config: PortConfig = toml::from_str(CONFIGS[config]).unwrap();
        let port = || EgressPort::new(Rate::from_mbps(mbps), &config, 1, 1).unwrap();
        let mut now = Time::ZERO;
        let arrivals: Vec<_> = (0..)
            .zip(steps)
            .map(|(tag, (wait, size, ect))| {
                // On a grid, so that packets come at the very time at which another leaves.
                now += Time::from_ns(wait * 10_000 / mbps);
                let ecn = if ect { Ecn::Ect0 } else { Ecn::NotEct };
                (now, Descriptor { ecn, ..packet(0, size, tag) })
            })
            .collect();
        let (mut asked, mut ahead) = (port(), port());
        let expected = by_asking(&mut asked, &arrivals);
        prop_assert_eq!(looking_ahead(&mut ahead, &arrivals), expected);
        ahead.settle(Time::MAX);
        prop_assert_eq!(ahead.bytes(), asked.bytes());
        prop_assert_eq!(ahead.packets(), 0);
        prop_assert_eq!(ahead.queued(0), asked.queued(0));
        prop_assert_eq!(ahead.counters(0), asked.counters(0));
    }
}

#[test]
fn lengths_follow_the_clock() {
    let config: PortConfig = toml::from_str(CONFIGS[0]).unwrap();
    let mut port = EgressPort::new(Rate::from_gbps(10), &config, 1, 1).unwrap();
    port.look_ahead();
    let mut pool = Pool::unlimited();
    for tag in 0..14 {
        port.forward(Time::ZERO, &mut packet(0, 1500, tag), &mut pool);
    }
    // One is on the wire, 13 wait. The sixth and later ones made five or more, above four.
    assert_eq!((port.packets(), port.bytes().get()), (13, 13 * 1500));
    assert_eq!(port.counters(0).marks(MarkReason::Queue), 9);
    assert_eq!(port.counters(0).drops(DropReason::PortFull).packets, 0);
    assert!(matches!(
        port.forward(Time::ZERO, &mut packet(0, 1500, 14), &mut pool),
        Forward::Dropped(DropReason::PortFull)
    ));
    port.settle(Time::from_ns(1199));
    assert_eq!(port.packets(), 13);
    port.settle(Time::from_ns(1200));
    assert_eq!(
        port.packets(),
        12,
        "the second is on the wire from 1.2 us on"
    );
    assert_eq!(port.busy_until(), Time::from_ns(14 * 1200));
}

#[test]
fn a_port_that_cannot_look_ahead_does_not() {
    let config: PortConfig = toml::from_str(CONFIGS[3]).unwrap();
    let mut port = EgressPort::new(Rate::from_gbps(10), &config, 1, 1).unwrap();
    port.look_ahead();
    let mut pool = Pool::unlimited();
    port.forward(Time::ZERO, &mut packet(0, 1500, 0), &mut pool);
    let second = port.forward(Time::ZERO, &mut packet(0, 1500, 1), &mut pool);
    assert!(matches!(second, Forward::Queued));
}
