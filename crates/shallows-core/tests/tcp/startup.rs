//! Windows from the start of a connection, its handshake, its idle times and its delayed ACKs.

use shallows_core::tcp::{AckCount, AfterIdle, DelayedAck, TcpConfig};
use shallows_core::units::Time;

use crate::driver::{Fate, Pair, plain, us};

fn counts(pair: &Pair) -> Vec<(Time, usize)> {
    let rounds = pair.rounds(1_000).into_iter();
    rounds.map(|(at, numbers)| (at, numbers.len())).collect()
}

#[test]
fn slow_start_doubles_each_round_trip() {
    let mut pair = Pair::new(&plain());
    pair.write(150_000);
    assert_eq!(pair.finish(), us(400));
    assert_eq!(
        counts(&pair),
        [(us(0), 10), (us(100), 20), (us(200), 40), (us(300), 80)]
    );
    assert_eq!(pair.sender.srtt(), Some(us(100)));
    assert_eq!(pair.sender.stats().retransmits, 0);
}

#[test]
fn the_last_segment_is_as_long_as_what_is_left() {
    let mut pair = Pair::new(&plain());
    pair.write(2_001);
    assert_eq!(pair.finish(), us(100));
    let lengths: Vec<_> = pair.sent.iter().map(|(_, segment)| segment.len).collect();
    assert_eq!(lengths, [1_000, 1_000, 1]);
    assert_eq!(pair.receiver.received(), 2_001);
}

#[test]
fn the_receive_window_bounds_each_round() {
    let config = TcpConfig {
        receive_window: 16,
        ..plain()
    };
    let mut pair = Pair::new(&config);
    pair.write(58_000);
    assert_eq!(pair.finish(), us(400));
    assert_eq!(
        counts(&pair),
        [(us(0), 10), (us(100), 16), (us(200), 16), (us(300), 16)]
    );
    assert_eq!(pair.sender.cwnd_bytes(), 16_000.0);
}

#[test]
fn a_handshake_takes_a_round_trip() {
    let config = TcpConfig {
        handshake: true,
        ..plain()
    };
    let mut pair = Pair::new(&config);
    assert_eq!(pair.sender.poll_segment(us(0)), None);
    pair.write(12_000);
    assert_eq!(pair.finish(), us(300));
    assert!(pair.sent[0].1.syn && pair.sent[0].1.len == 0);
    assert_eq!(counts(&pair), [(us(0), 1), (us(100), 10), (us(200), 2)]);
    assert_eq!(pair.sender.stats().segments_sent, 12);
}

#[test]
fn a_lost_syn_costs_a_timeout_and_the_initial_window() {
    let config = TcpConfig {
        handshake: true,
        ..plain()
    };
    let mut pair = Pair::new(&config).dropping([0]);
    pair.write(3_000);
    assert_eq!(pair.finish(), us(10_300));
    assert_eq!(
        counts(&pair),
        [
            (us(0), 1),
            (us(10_000), 1),
            (us(10_100), 1),
            (us(10_200), 2)
        ]
    );
    assert_eq!(pair.sender.stats().timeouts, 1);
}

#[test]
fn a_lost_syn_ack_is_repeated_for_a_repeated_syn() {
    let config = TcpConfig {
        handshake: true,
        ..plain()
    };
    let mut pair = Pair::new(&config);
    pair.ack_fates.insert(0, Fate::Drop);
    pair.write(1_000);
    assert_eq!(pair.finish(), us(10_200));
    assert_eq!(pair.acks.iter().filter(|(_, ack)| ack.syn).count(), 2);
}

#[test]
fn delayed_acks_come_every_other_segment_or_with_the_timer() {
    let config = TcpConfig {
        delayed_ack: Some(DelayedAck {
            every: 2,
            timeout: us(500),
            count: AckCount::default(),
        }),
        ..plain()
    };
    let mut pair = Pair::new(&config);
    pair.write(3_000);
    assert_eq!(pair.finish(), us(600));
    let acks: Vec<_> = pair.acks.iter().map(|(at, ack)| (*at, ack.ack)).collect();
    assert_eq!(acks, [(us(50), 2_000), (us(550), 3_000)]);
    // Two segments in one ACK grow the window by two.
    assert_eq!(pair.sender.cwnd_bytes(), 13_000.0);
}

#[test]
fn a_segment_out_of_order_is_answered_at_once() {
    let config = TcpConfig {
        delayed_ack: Some(DelayedAck {
            every: 2,
            timeout: us(500),
            count: AckCount::default(),
        }),
        ..plain()
    };
    let mut pair = Pair::new(&config);
    pair.segment_fates.insert(1, Fate::Late(us(10)));
    pair.write(3_000);
    assert_eq!(pair.finish(), us(110));
    let acks: Vec<_> = pair.acks.iter().map(|(at, ack)| (*at, ack.ack)).collect();
    assert_eq!(acks, [(us(50), 1_000), (us(60), 3_000)]);
}

/// The windows of a second flow after 30 segments, which left a window of 40, and an idle time.
fn after_idle(rule: AfterIdle, idle: Time) -> f64 {
    let config = TcpConfig {
        after_idle: rule,
        ..plain()
    };
    let mut pair = Pair::new(&config);
    pair.write(30_000);
    assert_eq!(pair.finish(), us(200));
    assert_eq!(pair.sender.cwnd_bytes(), 40_000.0);
    // The last segment was sent at 100 us; the timeout is 5 ms.
    pair.rest_until(us(100) + idle);
    pair.write(100_000);
    pair.sender.cwnd_bytes()
}

#[test]
fn idle_time_beyond_the_timeout_restarts_the_window() {
    assert_eq!(after_idle(AfterIdle::Restart, Time::from_ms(5)), 40_000.0);
    assert_eq!(after_idle(AfterIdle::Restart, us(5_001)), 10_000.0);
    assert_eq!(after_idle(AfterIdle::InitialWindow, us(5_001)), 10_000.0);
    assert_eq!(after_idle(AfterIdle::Keep, us(5_001)), 40_000.0);
}

#[test]
fn idle_time_raises_a_small_window_only_as_in_ns_2() {
    let small = |rule| {
        let config = TcpConfig {
            after_idle: rule,
            ..plain()
        };
        // One lost segment alone: a timeout leaves a window of 1, its ACK makes it 2.
        let mut pair = Pair::new(&config).dropping([0]);
        pair.write(1_000);
        pair.finish();
        assert_eq!(pair.sender.cwnd_bytes(), 2_000.0);
        pair.rest_until(Time::from_secs(1));
        pair.write(1_000);
        (pair.sender.cwnd_bytes(), pair.sender.ssthresh_bytes())
    };
    assert_eq!(small(AfterIdle::Restart), (2_000.0, 2_000.0));
    assert_eq!(small(AfterIdle::InitialWindow), (10_000.0, 2_000.0));
}
