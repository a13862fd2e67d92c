//! Known losses, and when exactly each is repaired.

use shallows_core::tcp::{Recovery, TcpConfig};
use shallows_core::units::Time;

use crate::driver::{Fate, Pair, plain, us};

fn with(recovery: Recovery) -> TcpConfig {
    TcpConfig {
        recovery,
        ..plain()
    }
}

fn numbers(range: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    range.collect()
}

#[test]
fn one_loss_is_repaired_in_a_round_trip_by_either_scheme() {
    // Ten segments, the first is lost. The third of nine duplicate ACKs halves the window to 5 and
    // sends it again; the next two bring what flies down to 5, and the last four release a new
    // segment each.
    for recovery in [Recovery::Sack, Recovery::NewReno] {
        let mut pair = Pair::new(&with(recovery)).dropping([0]);
        pair.write(20_000);
        assert_eq!(pair.finish(), us(400), "{recovery:?}");
        assert_eq!(
            pair.rounds(1_000),
            [
                (us(0), numbers(0..=9)),
                (us(100), vec![0, 10, 11, 12, 13]),
                (us(200), numbers(14..=18)),
                (us(300), vec![19]),
            ],
            "{recovery:?}"
        );
        let stats = pair.sender.stats();
        assert_eq!((stats.retransmits, stats.fast_recoveries), (1, 1));
        assert_eq!(stats.timeouts, 0);
        assert_eq!(pair.sender.ssthresh_bytes(), 5_000.0);
    }
}

#[test]
fn selective_acks_repair_two_losses_in_one_round_trip() {
    let mut pair = Pair::new(&with(Recovery::Sack)).dropping([0, 2]);
    pair.write(20_000);
    assert_eq!(pair.finish(), us(400));
    assert_eq!(
        pair.rounds(1_000),
        [
            (us(0), numbers(0..=9)),
            (us(100), vec![0, 2, 10, 11, 12]),
            (us(200), numbers(13..=17)),
            (us(300), numbers(18..=19)),
        ]
    );
}

#[test]
fn new_reno_repairs_one_loss_a_round_trip() {
    let mut pair = Pair::new(&with(Recovery::NewReno)).dropping([0, 2]);
    pair.write(20_000);
    assert_eq!(pair.finish(), us(400));
    assert_eq!(
        pair.rounds(1_000),
        [
            (us(0), numbers(0..=9)),
            (us(100), vec![0, 10, 11, 12]),
            // The partial ACK of 2 segments deflates 13 to 12, then three more duplicates come.
            (us(200), vec![2, 13, 14, 15, 16]),
            (us(300), numbers(17..=19)),
        ]
    );
    assert_eq!(pair.sender.stats().fast_recoveries, 1);
}

#[test]
fn limited_transmit_makes_a_small_window_find_its_loss() {
    // Three segments in flight give two duplicate ACKs only. Without limited transmit that means a
    // timeout; with it each releases a segment, whose ACK is the third duplicate.
    let finish = |limited_transmit| {
        let config = TcpConfig {
            initial_window: 3,
            limited_transmit,
            ..plain()
        };
        let mut pair = Pair::new(&config).dropping([0]);
        pair.write(5_000);
        (pair.finish(), pair.sender.stats().timeouts)
    };
    // 100: two duplicates release 3 and 4; 200: their duplicates send 0 again; 300: all is there.
    assert_eq!(finish(true), (us(300), 0));
    // The timer runs since 0; 0 again at 10 ms; at 10.1 ms ACK 3, and 3 and 4 go out.
    assert_eq!(finish(false), (us(10_200), 1));
}

#[test]
fn a_lost_tail_waits_for_the_timer() {
    let mut pair = Pair::new(&plain()).dropping([9]);
    pair.write(10_000);
    // The timer was started anew by the ACK of the ninth segment at 100 us: 5 ms later.
    assert_eq!(pair.finish(), us(5_200));
    assert_eq!(pair.sender.stats().timeouts, 1);
    assert_eq!(pair.sender.stats().retransmits, 1);
}

#[test]
fn the_rescue_retransmission_saves_a_tail_behind_a_loss() {
    // The first and the last of ten are lost. At 200 us the ACK of 9 segments is partial, and
    // nothing is left to send but the tail (RFC 6675 §4 NextSeg rule 4).
    let mut pair = Pair::new(&with(Recovery::Sack)).dropping([0, 9]);
    pair.write(10_000);
    assert_eq!(pair.finish(), us(200));
    assert_eq!(
        pair.rounds(1_000),
        [(us(0), numbers(0..=9)), (us(100), vec![0, 9])]
    );
}

#[test]
fn full_tcp_has_no_rescue() {
    // As above, but what is behind the last selective ACK waits for the timer, which the partial
    // ACK at 200 us has started anew.
    let mut pair = Pair::new(&with(Recovery::FullTcp)).dropping([0, 9]);
    pair.write(10_000);
    assert_eq!(pair.finish(), us(5_300));
    assert_eq!(pair.sender.stats().timeouts, 1);
}

#[test]
fn full_tcp_repairs_once_until_an_ack_beyond() {
    // Segments 0 and 10 are lost, 10 being the first that the recovery of 0 has released. The ACK of
    // 0 to 9 ends that recovery without being beyond it, so three duplicates of it do not count.
    let timeouts = |recovery| {
        let mut pair = Pair::new(&with(recovery)).dropping([0, 11]);
        pair.write(20_000);
        pair.finish();
        assert_eq!(
            pair.rounds(1_000)[1],
            (us(100), vec![0, 10, 11, 12, 13]),
            "{recovery:?}"
        );
        pair.sender.stats().timeouts
    };
    assert_eq!(timeouts(Recovery::Sack), 0);
    assert_eq!(timeouts(Recovery::FullTcp), 1);
}

#[test]
fn full_tcp_takes_what_was_lost_for_on_its_way() {
    // Six of ten are lost. RFC 6675 knows after three duplicates that nothing but the fourth flies;
    // FullTcp takes 7, 6 and no fewer to be on their way, more than its window of 5, and sends
    // nothing but the first until that is answered.
    let repaired = |recovery| {
        let mut pair = Pair::new(&with(recovery)).dropping([0, 1, 2, 3, 4, 5]);
        pair.write(10_000);
        pair.finish();
        assert_eq!(pair.sender.stats().timeouts, 0);
        pair.rounds(1_000)[1].1.clone()
    };
    assert_eq!(repaired(Recovery::FullTcp), [0]);
    assert_eq!(repaired(Recovery::Sack), numbers(0..=4));
}

#[test]
fn timeouts_double_until_an_answer() {
    let mut pair = Pair::new(&plain()).dropping([0, 1, 2]);
    pair.write(1_000);
    assert_eq!(pair.finish(), us(70_100));
    let times: Vec<_> = pair.sent.iter().map(|(at, _)| *at).collect();
    let ms = Time::from_ms;
    assert_eq!(times, [ms(0), ms(10), ms(30), ms(70)]);
    assert_eq!(pair.sender.stats().timeouts, 3);
    assert_eq!(pair.sender.rto(), ms(5));
}

#[test]
fn timeouts_stop_doubling_at_the_maximum() {
    let mut config = plain();
    config.rto.maximum = Time::from_ms(20);
    let mut pair = Pair::new(&config).dropping([0, 1, 2, 3]);
    pair.write(1_000);
    assert_eq!(pair.finish(), us(70_100));
    let times: Vec<_> = pair.sent.iter().map(|(at, _)| *at).collect();
    let ms = Time::from_ms;
    assert_eq!(times, [ms(0), ms(10), ms(30), ms(50), ms(70)]);
}

#[test]
fn after_a_timeout_all_is_sent_again_slowly() {
    // Everything in flight is lost. 1, 2, 4 and the rest in slow start up to ssthresh = 5.
    let mut pair = Pair::new(&plain()).dropping(0..10);
    pair.write(10_000);
    assert_eq!(pair.finish(), us(10_400));
    assert_eq!(
        pair.rounds(1_000)[1..],
        [
            (us(10_000), vec![0]),
            (us(10_100), numbers(1..=2)),
            (us(10_200), numbers(3..=6)),
            (us(10_300), numbers(7..=9)),
        ]
    );
    assert_eq!(pair.sender.stats().retransmits, 10);
    assert_eq!(pair.sender.ssthresh_bytes(), 5_000.0);
}

#[test]
fn after_a_timeout_what_arrived_is_not_sent_again() {
    // 0, 4 and 8 are lost, and fast retransmit is off. The ACK of 0 at 10.1 ms reports 5-7 and 9
    // and leads to 4; the next ACK leads to 8.
    let config = TcpConfig {
        duplicate_acks: 1_000,
        ..plain()
    };
    let mut pair = Pair::new(&config).dropping([0, 4, 8]);
    pair.write(10_000);
    assert_eq!(pair.finish(), us(10_200));
    assert_eq!(
        pair.rounds(1_000)[1..],
        [(us(10_000), vec![0]), (us(10_100), vec![4, 8])]
    );
    assert_eq!(pair.receiver.duplicate_bytes(), 0);
}

#[test]
fn a_retransmission_that_is_lost_waits_for_the_timer() {
    // 0 is lost twice; the timer was started anew by the fast retransmit at 100 us and runs for
    // the 10 ms of before the first round-trip time. The rescue retransmission goes to 9, which the
    // sender cannot know to be still on its way.
    let mut pair = Pair::new(&with(Recovery::Sack)).dropping([0, 10]);
    pair.write(10_000);
    assert_eq!(pair.finish(), us(10_200));
    assert_eq!(
        pair.rounds(1_000)[1..],
        [(us(100), vec![0, 9]), (us(10_100), vec![0])]
    );
}

#[test]
fn reordering_of_two_places_is_no_loss() {
    let mut pair = Pair::new(&plain());
    pair.segment_fates.insert(0, Fate::Late(us(1)));
    pair.write(3_000);
    assert_eq!(pair.finish(), us(101));
    assert_eq!(pair.sender.stats().retransmits, 0);
}
