//! Completion times worked out by hand, to the picosecond.

use shallows_core::port::{BufferConfig, PerIndex, PortConfig};
use shallows_core::units::{Bytes, Time};
use shallows_model::workload::{Barrier, FlowSpec};
use shallows_model::{Completion, FlowId, LinkId};

use crate::world::{LEAF_SPINE, Run, World, endless, flow};

/// 1500 B at 10 Gbps.
const DATA: Time = Time::from_ns(1200);
/// 40 B at 10 Gbps.
const ACK: Time = Time::from_ns(32);

const TRANSPORT: &str = "initial-window = 16\nrto = { initial = \"5ms\", minimum = \"5ms\" }";

/// There and back over four links: 4 x 1.2 + 40.8 + 4 x 0.032 + 40.8 us.
const ACROSS: Time = Time::from_ps(86_528_000);
/// There and back over two links: 2 x 1.2 + 40.4 + 2 x 0.032 + 40.4 us.
const WITHIN: Time = Time::from_ps(83_264_000);

fn idle(src: u32, dst: u32, packets: u64) -> Time {
    let flows = vec![flow(Time::from_us(7), src, dst, packets)];
    World::new(LEAF_SPINE, TRANSPORT, flows).fcts()[0].expect("an idle fabric delivers")
}

fn small_buffer(size: &str) -> PortConfig {
    PortConfig::fifo(BufferConfig::Shared {
        size: size.parse().expect("the test's buffer is sound"),
    })
}

#[test]
fn one_packet_takes_what_the_authors_simulator_takes() {
    assert_eq!(idle(0, 143, 1), ACROSS);
    assert_eq!(idle(0, 11, 1), WITHIN);
}

/// Data waits at its destination, the ACK at the source.
#[test]
fn each_host_may_take_a_time_of_its_own() {
    let delays: Vec<_> = (0..144).map(Time::from_us).collect();
    let world = World {
        host_delay: PerIndex::Each(delays),
        ..World::new(LEAF_SPINE, TRANSPORT, vec![flow(Time::ZERO, 3, 143, 1)])
    };
    assert_eq!(world.fcts(), [Some(ACROSS + Time::from_us(143 + 3))]);
}

#[test]
fn a_flow_within_the_initial_window_is_one_burst() {
    for packets in 1..=16 {
        assert_eq!(idle(0, 143, packets), ACROSS + DATA * (packets - 1));
        assert_eq!(idle(0, 11, packets), WITHIN + DATA * (packets - 1));
    }
}

/// 16, then 32, then 64 packets a round trip: each ACK lets two go, faster than the link takes
/// them, so a round's packets leave back to back from the first ACK of the round before.
#[test]
fn slow_start_doubles_every_round() {
    let rounds = [(16, 1), (48, 2), (112, 3)];
    for (packets, round) in rounds {
        let last_round = 8 * (1 << round);
        let expected = ACROSS * round + DATA * (last_round - 1);
        assert_eq!(idle(0, 143, packets), expected, "{packets} packets");
        // One packet more waits for the first ACK of that round.
        assert_eq!(idle(0, 143, packets + 1), ACROSS * (round + 1));
    }
}

#[test]
fn the_receive_window_limits_a_round() {
    let transport = "initial-window = 4\nreceive-window = 4";
    let flows = vec![flow(Time::ZERO, 0, 143, 12)];
    let fct = World::new(LEAF_SPINE, transport, flows).fcts()[0];
    // Three rounds of four; each ACK lets one packet go at once.
    assert_eq!(fct, Some(ACROSS * 3 + DATA * 3));
}

#[test]
fn a_short_last_segment_and_the_receivers_view() {
    // 1460 + 100 B: the second packet has 140 B, 112 ns, and catches up behind the first.
    let mut spec = flow(Time::ZERO, 0, 11, 1);
    spec.bytes += 100;
    let world = World::new(LEAF_SPINE, TRANSPORT, vec![spec]);
    let small = Time::from_ns(112);
    // Last bit at the leaf 20.2 us after 1.312 us; then right behind the first packet.
    let arrival = DATA * 2 + Time::from_us(40) + Time::from_ns(400) + small;
    let back = ACK * 2 + Time::from_us(40) + Time::from_ns(400);
    assert_eq!(world.clone().fcts()[0], Some(arrival + back));
    let receiver = World {
        completion: Completion::Receiver,
        ..world
    };
    assert_eq!(receiver.fcts()[0], Some(arrival));
}

#[test]
fn a_handshake_takes_a_round_trip_of_headers() {
    let transport = format!("{TRANSPORT}\nhandshake = true");
    let fct = World::new(LEAF_SPINE, &transport, vec![flow(Time::ZERO, 0, 143, 1)]).fcts()[0];
    // SYN and SYN-ACK are 40 B each: 8 x 0.032 + 2 x 40.8 us.
    let headers = ACK * 8 + Time::from_ps(81_600_000);
    assert_eq!(fct, Some(headers + ACROSS));
}

/// Two bursts of eight meet at the receiver's link and take turns in it: FIFO by arrival, at one
/// instant by the number of the link. The later one's last packet has all 15 others before it.
#[test]
fn two_flows_share_a_link() {
    let flows = vec![flow(Time::ZERO, 0, 2, 8), flow(Time::ZERO, 1, 2, 8)];
    let fcts = World::new(LEAF_SPINE, TRANSPORT, flows).fcts();
    assert_eq!(fcts[0], Some(WITHIN + DATA * 14));
    assert_eq!(fcts[1], Some(WITHIN + DATA * 15));
}

/// A buffer of four packets at the bottleneck: eight senders' single packets arrive at once, one
/// goes on the wire, four wait, three are lost and come again after the timeout.
#[test]
fn lost_packets_come_again_after_the_timeout() {
    let flows = (0..8).map(|src| flow(Time::ZERO, src, 11, 1)).collect();
    let world = World {
        switches: small_buffer("4pkts"),
        ..World::new(LEAF_SPINE, TRANSPORT, flows)
    };
    let simulation = world.run();
    let fcts: Vec<_> = simulation
        .flows()
        .map(|(_, outcome)| outcome.fct.unwrap())
        .collect();
    let timeout = Time::from_ms(5);
    for (position, &fct) in fcts.iter().enumerate() {
        let expected = match position as u64 {
            early @ 0..5 => WITHIN + DATA * early,
            late => timeout + WITHIN + DATA * (late - 5),
        };
        assert_eq!(fct, expected, "flow {position}");
    }
    let timeouts: u32 = simulation
        .flows()
        .map(|(_, outcome)| outcome.timeouts)
        .sum();
    assert_eq!(timeouts, 3);
}

/// Two rounds of incast: the second starts when the last flow of the first has its ACK.
#[test]
fn a_barrier_holds_the_next_round_back() {
    let mut flows: Vec<_> = (0..4).map(|src| flow(Time::ZERO, src, 11, 1)).collect();
    flows.extend((0..4).map(|src| flow(FlowSpec::AT_BARRIER, src, 11, 1)));
    let mut world = World::new(LEAF_SPINE, TRANSPORT, flows);
    world.workload.barriers = vec![Barrier {
        waits_for: [0, 1, 2, 3].map(FlowId).to_vec(),
        releases: [4, 5, 6, 7].map(FlowId).to_vec(),
        pause: Time::from_us(10),
    }];
    let simulation = world.run();
    let first_round = WITHIN + DATA * 3;
    for (number, (_, outcome)) in simulation.flows().enumerate() {
        let position = number as u64 % 4;
        let start = if number < 4 {
            Time::ZERO
        } else {
            first_round + Time::from_us(10)
        };
        assert_eq!(outcome.start, start);
        assert_eq!(outcome.fct, Some(WITHIN + DATA * position));
    }
}

/// An endless flow has its time, and no more is sent after it.
#[test]
fn an_endless_flow_stops() {
    let transport = format!("{TRANSPORT}\nreceive-window = 100");
    let world = World::new(LEAF_SPINE, &transport, vec![endless(0, 11)]);
    let at = Time::from_ms(2);
    let simulation = world.stopping(at).run();
    assert_eq!(simulation.flows().next().unwrap().1.fct, Some(at));
    // What was on its way arrives, and a last timer of 5 ms finds nothing to do.
    assert!(simulation.progress().now <= at + Time::from_ms(5));
    // A hundred packets a round trip of WITHIN and a queue, two links each way.
    assert!(simulation.progress().packet_hops < 100 * 4 * 26);
}

/// A burst of ten at 10 Gbps meets an uplink of 1 Gbps and a buffer of eight: one packet is on the
/// wire, eight wait, the tenth is lost.
///
/// Each of the nine others reaches the receiver 12 us after the one before, the first after 2.2 +
/// 12 + 102.2 us, and its ACK takes 102.384 us. The first three ACKs, from 218.784 us on, release
/// two packets each, the rest of the flow, which cross the uplink back to back. They are beyond the
/// gap, so the third of them, 2.2 + 36 + 102.2 + 102.384 us later, brings the third duplicate ACK
/// and with it the lost packet.
#[test]
fn a_known_drop_is_repaired_on_the_third_duplicate() {
    let dumbbell = r#"dumbbell = { left = 1, right = 1, rate = "10Gbps", delay = "1us", uplink-rate = "1Gbps", uplink-delay = "100us" }"#;
    let to_receiver = Time::from_ns(2_200 + 12_000 + 102_200);
    let back = Time::from_ns(102_384);
    let third_duplicate = to_receiver + back + to_receiver + Time::from_us(24) + back;
    for recovery in ["sack", "new-reno"] {
        let transport = format!("initial-window = 10\nrecovery = \"{recovery}\"");
        let world = World {
            switches: small_buffer("8pkts"),
            ..World::new(dumbbell, &transport, vec![flow(Time::ZERO, 0, 1, 16)])
        };
        let run = world.run();
        let (_, outcome) = run.flows().next().unwrap();
        assert_eq!(outcome.fct, Some(third_duplicate + to_receiver + back));
        assert_eq!(outcome.fct, Some(Time::from_ps(680_352_000)));
        assert_eq!(outcome.timeouts, 0);
        // With selective ACKs the last packet goes out once more, as a rescue (RFC 6675 §4).
        assert_eq!(outcome.retransmits, 1 + u32::from(recovery == "sack"));
        // The uplink's port is the first after the two hosts' cables.
        assert_eq!(run.port(LinkId(4)).counters(0).all_drops().packets, 1);
    }
}

/// A packet that never fits into the switch, which is made for smaller ones, is sent again after 5, 10, 20 and 40 ms, and from then
/// on every 60 ms, the maximum.
#[test]
fn timeouts_double_up_to_the_maximum() {
    let transport = r#"
        initial-window = 1
        receive-window = 1
        rto = { initial = "5ms", minimum = "5ms", maximum = "60ms" }
    "#;
    let switches = PortConfig {
        packet: Bytes::new(1000),
        ..small_buffer("1pkt")
    };
    let world = World {
        switches,
        ..World::new(LEAF_SPINE, transport, vec![endless(0, 11)])
    };
    let mut run = world.stopping(Time::from_ms(250)).start();
    let arrival = DATA + Time::from_ns(20_200);
    // Host 11 receives from link 23.
    let lost = |run: &Run| run.port(LinkId(23)).counters(0).all_drops().packets;
    for (count, sent) in (0..).zip([0, 5, 15, 35, 75, 135, 195]) {
        let at = Time::from_ms(sent) + arrival;
        run.until(at);
        assert_eq!(lost(&run), count, "before {at}");
        run.until(at + Time::from_ps(1));
        assert_eq!(lost(&run), count + 1, "at {at}");
    }
    run.finish();
    let (_, outcome) = run.flows().next().unwrap();
    assert_eq!((outcome.retransmits, outcome.timeouts), (6, 6));
}
