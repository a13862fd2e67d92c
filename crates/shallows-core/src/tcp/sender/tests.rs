use super::super::{AckKind, SackBlocks};
use super::*;

const SEGMENT: u64 = 1_000;

fn sender(text: &str) -> Sender {
    let text = format!(
        r#"
        segment = {SEGMENT}
        rto = {{ initial = "10ms", minimum = "5ms" }}
        {text}
        "#
    );
    let config: TcpConfig = toml::from_str(&text).expect("the text is a transport");
    config.validate().expect("it is possible");
    Sender::new(&config)
}

fn us(us: u64) -> Time {
    Time::from_us(us)
}

/// Polls until there is nothing more; gives the number of each segment.
fn send(sender: &mut Sender, now: Time) -> Vec<u64> {
    std::iter::from_fn(|| sender.poll_segment(now))
        .map(|segment| segment.seq / SEGMENT)
        .collect()
}

/// The ACK of all segments below `number`, which reports those from one number to another.
fn ack(number: u64, sacked: &[(u64, u64)]) -> Ack {
    let mut sack = SackBlocks::default();
    for &(start, end) in sacked {
        sack.push(number * SEGMENT, (start * SEGMENT, end * SEGMENT));
    }
    Ack {
        kind: AckKind::Ack,
        ack: number * SEGMENT,
        echo: Time::ZERO,
        one_way_delay: Time::ZERO,
        sack,
        ece: false,
        syn: false,
        ect: false,
    }
}

fn marked(number: u64) -> Ack {
    Ack {
        ece: true,
        ..ack(number, &[])
    }
}

#[test]
fn a_sender_stays_small() {
    assert!(size_of::<Sender>() <= 432);
}

#[test]
fn limited_transmit_sends_new_data_for_two_duplicates() {
    let mut sender = sender("initial-window = 4");
    sender.write(us(0), 100 * SEGMENT);
    assert_eq!(send(&mut sender, us(0)), [0, 1, 2, 3]);
    sender.on_ack(us(100), &ack(0, &[(1, 2)]));
    assert_eq!(send(&mut sender, us(100)), [4]);
    sender.on_ack(us(101), &ack(0, &[(1, 3)]));
    assert_eq!(send(&mut sender, us(101)), [5]);
    // The third starts recovery, with half of the window of 4 and not of the 6 in flight.
    sender.on_ack(us(102), &ack(0, &[(1, 4)]));
    assert_eq!(send(&mut sender, us(102)), [0]);
    assert_eq!(sender.ssthresh_bytes(), 2_000.0);
}

#[test]
fn limited_transmit_ends_when_the_gap_was_just_reordering() {
    let mut sender = sender("initial-window = 4");
    sender.write(us(0), 100 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_ack(us(100), &ack(0, &[(1, 2)]));
    assert_eq!(send(&mut sender, us(100)), [4]);
    // The window is 5 now, and 2, 3 and 4 are in flight.
    sender.on_ack(us(101), &ack(2, &[]));
    assert_eq!(send(&mut sender, us(101)), [5, 6]);
    assert_eq!(sender.in_flight(), 5 * SEGMENT);
}

#[test]
fn a_duplicate_without_news_does_not_count_with_selective_acks() {
    let mut sender = sender("");
    sender.write(us(0), 10 * SEGMENT);
    send(&mut sender, us(0));
    for _ in 0..5 {
        sender.on_ack(us(100), &ack(0, &[(1, 2)]));
    }
    assert_eq!(sender.stats().fast_recoveries, 0);
    // Two ranges more: three lie above the gap.
    sender.on_ack(us(100), &ack(0, &[(3, 4)]));
    sender.on_ack(us(100), &ack(0, &[(5, 6)]));
    assert_eq!(sender.stats().fast_recoveries, 1);
}

#[test]
fn enough_bytes_in_one_report_are_as_good_as_three_duplicates() {
    // RFC 6675 §5 step 2: two ACKs were lost, the third reports all.
    let mut sender = sender("");
    sender.write(us(0), 10 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_ack(us(100), &ack(0, &[(1, 4)]));
    assert_eq!(sender.stats().fast_recoveries, 1);
    assert_eq!(send(&mut sender, us(100)), [0]);
}

#[test]
fn pipe_counts_what_flies() {
    let mut sender = sender("initial-window = 10\nlimited-transmit = false");
    sender.write(us(0), 10 * SEGMENT);
    send(&mut sender, us(0));
    // 0 and 4 are missing: 0 is lost, 4 is not yet known to be (two segments above it).
    sender.on_ack(us(100), &ack(0, &[(1, 4), (5, 7)]));
    assert_eq!(send(&mut sender, us(100)), [0]);
    // In the pipe: 0 again, 4, 7, 8 and 9. The window is 5.
    assert_eq!(sender.in_flight(), 5 * SEGMENT);
    // Now 4 is lost and goes out again: 0, 4, 8, 9.
    sender.on_ack(us(101), &ack(0, &[(5, 8), (1, 4)]));
    assert_eq!(send(&mut sender, us(101))[0], 4);
}

#[test]
fn a_loss_while_duplicates_of_the_last_one_arrive_starts_no_second_recovery() {
    // RFC 6582 §4.1: after a timeout, duplicates of what was sent twice are no sign of loss.
    let mut sender = sender("recovery = \"new-reno\"\ninitial-window = 4");
    sender.write(us(0), 8 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_deadline(us(10_000));
    assert_eq!(send(&mut sender, us(10_000)), [0]);
    sender.on_ack(us(10_100), &ack(4, &[]));
    assert_eq!(send(&mut sender, us(10_100)), [4, 5]);
    for _ in 0..4 {
        sender.on_ack(us(10_150), &ack(4, &[]));
    }
    assert_eq!(sender.stats().fast_recoveries, 0);
    // Beyond that point they count again.
    sender.on_ack(us(10_200), &ack(5, &[]));
    send(&mut sender, us(10_200));
    for _ in 0..3 {
        sender.on_ack(us(10_300), &ack(5, &[]));
    }
    assert_eq!(sender.stats().fast_recoveries, 1);
}

#[test]
fn early_deadlines_change_nothing() {
    let mut sender = sender("");
    sender.on_deadline(us(1_000_000));
    sender.write(us(0), SEGMENT);
    send(&mut sender, us(0));
    assert_eq!(sender.deadline(), Some(us(10_000)));
    sender.on_deadline(us(9_999));
    assert_eq!(sender.stats().timeouts, 0);
    // A late call counts from its own time: the timeout doubles to 20 ms.
    sender.on_deadline(us(11_000));
    assert_eq!(sender.stats().timeouts, 1);
    assert_eq!(sender.deadline(), Some(us(31_000)));
}

#[test]
fn the_timer_restarts_with_new_data_acknowledged_and_stops_with_all() {
    let mut sender = sender("");
    sender.write(us(0), 3 * SEGMENT);
    send(&mut sender, us(0));
    let mut at = |now, number| {
        sender.on_ack(now, &ack(number, &[]));
        sender.deadline()
    };
    assert_eq!(at(us(100), 1), Some(us(5_100)));
    assert_eq!(at(us(150), 1), Some(us(5_100)));
    assert_eq!(at(us(200), 2), Some(us(5_200)));
    assert_eq!(at(us(300), 3), None);
}

#[test]
fn one_round_trip_time_a_window_is_taken() {
    let mut sender = sender("initial-window = 2");
    sender.write(us(0), 4 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_ack(us(80), &ack(1, &[]));
    assert_eq!(sender.srtt(), Some(us(80)));
    send(&mut sender, us(80));
    // The same window: no sample.
    sender.on_ack(us(160), &ack(2, &[]));
    assert_eq!(sender.srtt(), Some(us(80)));
    // The next one: 7/8 * 80 + 1/8 * 160.
    let echo = Ack {
        echo: us(80),
        ..ack(3, &[])
    };
    sender.on_ack(us(240), &echo);
    assert_eq!(sender.srtt(), Some(us(90)));
}

#[test]
fn a_repeated_timeout_keeps_the_threshold() {
    let mut sender = sender("initial-window = 8\ncontroller = \"reno\"");
    sender.write(us(0), 8 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_deadline(us(10_000));
    send(&mut sender, us(10_000));
    sender.on_deadline(us(30_000));
    assert_eq!(sender.ssthresh_bytes(), 4_000.0);
    assert_eq!(send(&mut sender, us(30_000)), [0]);
    assert_eq!(sender.stats().retransmits, 2);
}

#[test]
fn marks_cut_once_a_window_and_keep_it_from_growing() {
    let mut sender = sender("initial-window = 8\ncontroller = \"ecn-star\"");
    sender.write(us(0), 100 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_ack(us(100), &marked(1));
    assert_eq!(sender.cwnd_bytes(), 4_000.0);
    for number in 2..=8 {
        sender.on_ack(us(100), &marked(number));
    }
    assert_eq!(sender.cwnd_bytes(), 4_000.0);
    let sent: Vec<_> = std::iter::from_fn(|| sender.poll_segment(us(100))).collect();
    assert_eq!(
        sent.iter().map(|s| s.cwr).collect::<Vec<_>>(),
        [true, false, false, false]
    );
    // Only the ACK of something sent after the cut may cut again.
    sender.on_ack(us(200), &marked(9));
    assert_eq!(sender.cwnd_bytes(), 2_000.0);
    assert_eq!(sender.stats().reductions, 2);
    assert_eq!(sender.stats().marked_acks, 9);
}

#[test]
fn after_a_timeout_a_mark_cuts_at_once() {
    let mut sender = sender("initial-window = 8\ncontroller = \"ecn-star\"");
    sender.write(us(0), 100 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_deadline(us(10_000));
    send(&mut sender, us(10_000));
    sender.on_ack(us(10_100), &ack(1, &[]));
    sender.on_ack(us(10_101), &ack(2, &[]));
    sender.on_ack(us(10_102), &marked(3));
    assert_eq!(sender.ssthresh_bytes(), 2_000.0);
}

#[test]
fn retransmissions_are_marked_only_under_the_precise_echo() {
    for (controller, ect) in [("dctcp", true), ("ecn-star", false), ("reno", false)] {
        let mut sender = sender(&format!("controller = \"{controller}\""));
        sender.write(us(0), SEGMENT);
        let first = sender.poll_segment(us(0)).expect("there is data");
        assert_eq!(first.ect, controller != "reno");
        sender.on_deadline(us(10_000));
        let again = sender.poll_segment(us(10_000)).expect("it was lost");
        assert!(again.retransmission);
        assert_eq!(again.ect, ect, "{controller}");
    }
}

#[test]
fn acks_from_nowhere_are_ignored() {
    let mut sender = sender("");
    sender.on_ack(us(0), &ack(5, &[]));
    sender.write(us(0), SEGMENT);
    send(&mut sender, us(0));
    sender.on_ack(us(50), &ack(2, &[]));
    sender.on_ack(
        us(50),
        &Ack {
            syn: true,
            ..ack(1, &[])
        },
    );
    assert_eq!(sender.acked(), 0);
    sender.on_ack(us(100), &ack(1, &[]));
    assert!(sender.is_done());
}

#[test]
fn only_the_first_partial_ack_restarts_the_timer() {
    // RFC 6582 §3.2 step 3: with many losses the timer ends the slow repair.
    let mut sender = sender("recovery = \"new-reno\"");
    sender.write(us(0), 10 * SEGMENT);
    send(&mut sender, us(0));
    for _ in 0..3 {
        sender.on_ack(us(100), &ack(0, &[]));
    }
    assert_eq!(send(&mut sender, us(100)), [0]);
    assert_eq!(sender.deadline(), Some(us(10_100)));
    sender.on_ack(us(200), &ack(2, &[]));
    assert_eq!(send(&mut sender, us(200)), [2]);
    assert_eq!(sender.deadline(), Some(us(5_200)));
    sender.on_ack(us(300), &ack(4, &[]));
    assert_eq!(send(&mut sender, us(300)), [4]);
    assert_eq!(sender.deadline(), Some(us(5_200)));
}

#[test]
fn a_full_ack_leaves_no_room_for_a_burst() {
    // Nothing is in flight any more: the window is max(0, 1) + 1 segments, not the threshold of 5.
    let mut sender = sender("recovery = \"new-reno\"");
    sender.write(us(0), 10 * SEGMENT);
    send(&mut sender, us(0));
    for _ in 0..3 {
        sender.on_ack(us(100), &ack(0, &[]));
    }
    send(&mut sender, us(100));
    sender.on_ack(us(200), &ack(10, &[]));
    assert_eq!(sender.cwnd_bytes(), 2_000.0);
    assert_eq!(sender.ssthresh_bytes(), 5_000.0);
}

#[test]
fn a_timeout_after_progress_is_a_first_one() {
    let mut sender = sender("initial-window = 8\ncontroller = \"reno\"");
    sender.write(us(0), 100 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_deadline(us(10_000));
    assert_eq!(sender.ssthresh_bytes(), 4_000.0);
    send(&mut sender, us(10_000));
    // All was there; two new segments are in flight when the timer expires again.
    sender.on_ack(us(10_100), &ack(8, &[]));
    assert_eq!(send(&mut sender, us(10_100)), [8, 9]);
    let deadline = sender.deadline().expect("data is in flight");
    sender.on_deadline(deadline);
    assert_eq!(sender.ssthresh_bytes(), 2_000.0);
}

#[test]
fn a_timeout_in_fast_recovery_keeps_the_threshold() {
    for recovery in ["sack", "new-reno"] {
        let mut sender = sender(&format!(
            "recovery = \"{recovery}\"\ninitial-window = 10\ncontroller = \"reno\""
        ));
        sender.write(us(0), 100 * SEGMENT);
        send(&mut sender, us(0));
        // Segment 0 is lost; nine duplicates: limited transmit sends 10 and 11, the third halves the
        // window of 10 to 5, and with the others more new data goes out.
        for number in 1..10 {
            sender.on_ack(us(100), &ack(0, &[(1, number + 1)]));
            send(&mut sender, us(100));
        }
        assert_eq!(sender.stats().fast_recoveries, 1, "{recovery}");
        assert_eq!(sender.ssthresh_bytes(), 5_000.0, "{recovery}");
        // The retransmission is lost too. 14 segments are outstanding or more, half of which is
        // above the threshold.
        assert!(sender.max >= 14 * SEGMENT, "{recovery}: {}", sender.max);
        sender.on_deadline(us(20_000));
        assert_eq!(sender.stats().timeouts, 1);
        assert_eq!(sender.ssthresh_bytes(), 5_000.0, "{recovery}");
        assert_eq!(sender.cwnd_bytes(), 1_000.0, "{recovery}");
    }
}

#[test]
fn a_timeout_halves_the_window_and_not_what_was_outstanding_before_it() {
    // Of eight segments, only 0 comes through its retransmission: at the second timeout the window
    // is 2, and seven are without an ACK.
    let mut sender = sender("initial-window = 8\ncontroller = \"reno\"");
    sender.write(us(0), 8 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_deadline(us(10_000));
    assert_eq!(sender.ssthresh_bytes(), 4_000.0);
    send(&mut sender, us(10_000));
    sender.on_ack(us(10_100), &ack(1, &[]));
    assert_eq!(send(&mut sender, us(10_100)), [1, 2]);
    let deadline = sender.deadline().expect("data is in flight");
    sender.on_deadline(deadline);
    // The least threshold, two segments: not 3.5.
    assert_eq!(sender.ssthresh_bytes(), 2_000.0);
}

#[test]
fn a_timeout_forgets_what_was_reported_and_an_ack_what_it_covers() {
    let mut sender = sender("limited-transmit = false");
    sender.write(us(0), 4 * SEGMENT);
    send(&mut sender, us(0));
    sender.on_ack(us(100), &ack(0, &[(2, 3)]));
    sender.on_deadline(us(10_000));
    assert!(sender.sack.scoreboard.is_empty());
    assert_eq!(send(&mut sender, us(10_000)), [0]);
    // RFC 2018 §8: 2 is sent again, since nothing says any more that it is there.
    sender.on_ack(us(10_100), &ack(1, &[]));
    assert_eq!(send(&mut sender, us(10_100)), [1, 2]);
    sender.on_ack(us(10_200), &ack(1, &[(2, 3)]));
    assert!(!sender.sack.scoreboard.is_empty());
    sender.on_ack(us(10_200), &ack(3, &[]));
    assert!(sender.sack.scoreboard.is_empty());
}

#[test]
fn a_probe_is_one_byte_of_whatever_is_left() {
    let mut sender = sender("controller = { pfabric = { probe-after = 1 } }");
    sender.write(us(0), 300);
    send(&mut sender, us(0));
    sender.on_deadline(us(10_000));
    let probe = sender.poll_segment(us(10_000)).expect("a probe");
    assert_eq!((probe.seq, probe.len), (0, 1));
    assert_eq!(sender.poll_segment(us(10_000)), None);
}
