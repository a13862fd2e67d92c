//! Links that lose packets, go down and come back, and packets that are watched on their way.

use std::collections::{BTreeMap, BTreeSet};

use shallows_core::units::Time;
use shallows_model::routing::{LinkState, RoutingConfig};
use shallows_model::topology::Node;
use shallows_model::{Fault, LinkChange, LinkId};
use shallows_sim::{Content, Observation, Watch};

use crate::world::{LEAF_SPINE, World, flow};

const TRANSPORT: &str = r#"
initial-window = 16
rto = { initial = "5ms", minimum = "5ms" }
controller = { dctcp = { initial-alpha = 0.0 } }
"#;

fn world(packets: u64) -> World {
    World::new(
        LEAF_SPINE,
        TRANSPORT,
        vec![flow(Time::ZERO, 0, 143, packets)],
    )
}

fn faulty(loss: f64, corruption: f64, threads: u32) -> World {
    let fault = Fault { loss, corruption };
    World {
        faults: BTreeMap::from([(LinkId(0), fault), (LinkId(1), fault)]),
        threads,
        ..world(2_000)
    }
}

#[test]
fn a_lossy_link_loses_its_share_and_tcp_repairs_it() {
    let mut run = faulty(0.01, 0.01, 1).start();
    run.finish_lossy();
    // 2,000 segments and some again on one link, their ACKs on the other.
    let lost = run.lost_on(LinkId(0)) + run.lost_on(LinkId(1));
    assert!(
        (40..160).contains(&lost),
        "{lost} packets lost of about 4,000"
    );
    assert_eq!(run.lost_on(LinkId(2)), 0);
    assert!(run.flows().all(|(_, outcome)| outcome.fct.is_some()));
    let outcome = run.flows().next().unwrap().1;
    assert!(outcome.retransmits > 0);
    // The same packets are lost on any number of threads.
    let mut parallel = faulty(0.01, 0.01, 3).start();
    parallel.finish_lossy();
    assert_eq!(parallel.flows().next().unwrap().1, outcome);
    assert_eq!(parallel.lost_on(LinkId(0)), run.lost_on(LinkId(0)));
}

/// All links but one from the first leaf up to the spines go down at 5 ms.
fn leave_one_way(routing: RoutingConfig) {
    let mut world = world(20_000);
    world.routing = routing;
    let fabric = world.topology.build().unwrap();
    let ups: Vec<LinkId> = fabric
        .links()
        .numbered()
        .filter(|(_, link)| link.from == Node::Switch(0) && matches!(link.to, Node::Switch(_)))
        .map(|(number, _)| number)
        .collect();
    let down = |&link: &LinkId| LinkChange {
        at: Time::from_ms(5),
        link,
        state: LinkState::Down,
    };
    world.changes = ups[1..].iter().map(down).collect();
    let mut run = world.start();
    run.finish_lossy();
    let port = run.port(ups[0]);
    assert!(
        port.queued(0).packets > 10_000,
        "the way that was left took over"
    );
    let outcome = run.flows().next().unwrap().1;
    // 20,000 packets take 24 ms; the loss costs no more than a timeout and a slow start.
    assert!(outcome.fct.is_some_and(|fct| fct < Time::from_ms(33)));
}

#[test]
fn a_link_that_goes_down_is_left_for_another() {
    leave_one_way(RoutingConfig::Ecmp);
}

#[test]
fn sprayed_packets_leave_a_link_that_goes_down() {
    leave_one_way(RoutingConfig::Spray);
}

#[test]
fn a_host_that_is_cut_off_waits_for_its_link() {
    let mut world = world(1_000);
    let change = |ms, state| LinkChange {
        at: Time::from_ms(ms),
        link: LinkId(0),
        state,
    };
    world.changes = vec![change(1, LinkState::Down), change(40, LinkState::Up)];
    let mut run = world.start();
    run.finish_lossy();
    let outcome = run.flows().next().unwrap().1;
    assert!(outcome.timeouts >= 2);
    assert!(outcome.fct.is_some_and(|fct| fct > Time::from_ms(40)));
}

#[test]
fn what_is_watched_is_what_happens() {
    let mut world = world(3);
    world.watch = Watch {
        rtt: true,
        sojourn: BTreeSet::from([LinkId(0)]),
        captured: BTreeSet::from([LinkId(0), LinkId(1)]),
        drops: false,
    };
    let mut run = world.run();
    let seen = run.take_observations();
    let rtts: Vec<_> = seen
        .iter()
        .filter_map(|seen| match seen {
            Observation::Rtt { rtt, .. } => Some(*rtt),
            _ => None,
        })
        .collect();
    // The second and the third segment wait for those before them.
    let idle = Time::from_ps(86_528_000);
    let data = Time::from_ns(1200);
    assert_eq!(rtts, [idle, idle + data, idle + data * 2]);
    let waits: Vec<_> = seen
        .iter()
        .filter_map(|seen| match seen {
            Observation::Sojourn { sojourn, .. } => Some(*sojourn),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [Time::ZERO, data, data * 2]);
    let packets: Vec<_> = seen
        .iter()
        .filter_map(|seen| match seen {
            Observation::Packet(packet) => Some(packet),
            _ => None,
        })
        .collect();
    let segments = packets.iter().filter(|packet| {
        matches!(packet.content, Content::Segment(_)) && (packet.src.0, packet.dst.0) == (0, 143)
    });
    let acks = packets.iter().filter(|packet| {
        matches!(packet.content, Content::Ack(_)) && (packet.src.0, packet.dst.0) == (143, 0)
    });
    assert_eq!((segments.count(), acks.count()), (3, 3));
    assert_eq!(packets[0].time, data, "when its last bit is on the link");
}
