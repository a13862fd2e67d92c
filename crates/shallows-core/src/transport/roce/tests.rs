use super::super::{Receiver, ReceivingEnd as _, Sender, SendingEnd as _};
use crate::packet::Ecn;
use crate::tcp::{AckKind, Segment, TcpConfig};
use crate::units::{Rate, Time};

const NS: fn(u64) -> Time = Time::from_ns;
const US: fn(u64) -> Time = Time::from_us;

/// Packets of 1,000 bytes with their headers, which a NIC of 8 Gbps sends in 1 us.
fn config(controller: &str) -> TcpConfig {
    let text = format!("segment = 900\nheader = 100\ncontroller = {controller}");
    let config: TcpConfig = toml::from_str(&text).unwrap();
    config.validate().unwrap();
    config
}

fn ends(controller: &str) -> (Sender, Receiver) {
    let config = config(controller);
    let sender = Sender::new(&config, Rate::from_gbps(8));
    (sender, Receiver::new(&config))
}

/// Polls a packet that must be there at `now` and leaves the NIC 1 us later.
fn send(sender: &mut Sender, now: Time) -> Segment {
    let segment = sender.poll_packet(now).expect("a packet may go");
    assert_eq!(sender.poll_packet(now), None, "one packet is in the NIC");
    sender.departs(now, now + US(1));
    segment
}

/// Lets a packet arrive, and its answers at once.
fn answer(
    (sender, receiver): (&mut Sender, &mut Receiver),
    now: Time,
    segment: &Segment,
    ecn: Ecn,
) -> Vec<AckKind> {
    let acks: Vec<_> = receiver.handle_packet(now, segment, ecn).collect();
    for ack in &acks {
        sender.handle_packet(now, ack);
    }
    acks.iter().map(|ack| ack.kind).collect()
}

#[test]
fn packets_leave_at_line_rate_before_any_notification() {
    let (mut sender, _) = ends("'dcqcn'");
    assert_eq!(sender.deadline(), None);
    sender.write(US(5), 2_000);
    assert_eq!(sender.deadline(), Some(Time::ZERO));
    let first = send(&mut sender, US(5));
    assert_eq!((first.seq, first.len, first.ect), (0, 900, true));
    // 1,000 bytes at 8 Gbps.
    assert_eq!(sender.deadline(), Some(US(6)));
    assert_eq!(sender.poll_packet(NS(5_999)), None);
    assert_eq!(send(&mut sender, US(6)).seq, 900);
    assert_eq!(send(&mut sender, US(7)).len, 200);
    // All sent: the timeout remains, 10 ms after the first packet.
    assert_eq!(sender.deadline(), Some(US(10_005)));
}

#[test]
fn a_packet_waits_for_the_one_before_to_leave_the_nic() {
    let (mut sender, _) = ends("'dcqcn'");
    sender.write(Time::ZERO, 2_000);
    sender.poll_packet(Time::ZERO).unwrap();
    // Paused: neither the time nor the pace lets another go.
    assert_eq!(sender.poll_packet(US(40)), None);
    assert_eq!(sender.deadline(), Some(Time::from_ms(10)));
    sender.departs(US(45), US(50));
    assert_eq!(sender.deadline(), Some(US(50)));
    assert_eq!(sender.poll_packet(US(49)), None);
    assert!(sender.poll_packet(US(50)).is_some());
}

#[test]
fn a_notification_halves_the_rate_and_defers_the_next_packet() {
    let (mut sender, mut receiver) = ends("'dcqcn'");
    sender.write(Time::ZERO, 9_000);
    let segment = send(&mut sender, Time::ZERO);
    let kinds = answer((&mut sender, &mut receiver), NS(500), &segment, Ecn::Ce);
    assert_eq!(kinds, [AckKind::Cnp, AckKind::Ack]);
    assert_eq!(sender.acked(), 900);
    // 4 Gbps: 2 us a packet.
    assert_eq!(sender.deadline(), Some(US(2)));
    assert_eq!(sender.poll_packet(NS(1_999)), None);
    send(&mut sender, US(2));
    assert_eq!(sender.stats().marked_acks, 1);
    assert_eq!(sender.stats().reductions, 1);
    assert_eq!(sender.alpha(), Some(1.0));
}

#[test]
fn a_rising_rate_lets_a_waiting_packet_go_earlier() {
    // The timer comes each 10 us; after the cut to 1 Mbps a packet would wait for 8 ms.
    let config = "{ dcqcn = { t = '10us', f = 100, minimum-rate = '1Mbps' } }";
    let (mut sender, mut receiver) = ends(config);
    sender.write(Time::ZERO, 9_000);
    let segment = send(&mut sender, Time::ZERO);
    for _ in 0..20 {
        let mut again = Receiver::new(&self::config(config));
        answer((&mut sender, &mut again), NS(500), &segment, Ecn::Ce);
    }
    answer((&mut sender, &mut receiver), NS(500), &segment, Ecn::NotEct);
    // The target is the rate before the last cut, which changed nothing: 1 Mbps.
    assert_eq!(sender.deadline(), Some(NS(10_500)));
    sender.on_deadline(NS(10_500));
    assert_eq!(sender.poll_packet(NS(10_500)), None);
    assert_eq!(sender.deadline(), Some(NS(20_500)));
}

#[test]
fn the_time_in_the_nic_counts_for_the_rate() {
    let (mut sender, mut receiver) = ends("'dcqcn'");
    sender.write(Time::ZERO, 9_000);
    let segment = send(&mut sender, Time::ZERO);
    answer((&mut sender, &mut receiver), US(1), &segment, Ecn::Ce);
    // 4 Gbps after the cut. The second packet is held in the NIC for three ticks of 55 us: 6, 7 and
    // 7.5 Gbps, so that only the NIC defers the third.
    sender.poll_packet(US(2)).expect("a packet may go");
    sender.departs(US(180), US(181));
    assert_eq!(sender.deadline(), Some(US(181)));
    assert!(sender.poll_packet(US(181)).is_some());
}

#[test]
fn a_gap_is_answered_once_and_the_sender_goes_back() {
    let (mut sender, mut receiver) = ends("'timely'");
    sender.write(Time::ZERO, 4_500);
    let segments: Vec<_> = (0..5).map(|at| send(&mut sender, US(at))).collect();
    assert!(segments.iter().all(|segment| !segment.ect));
    let mut arrive = |index: usize, at| {
        let ends = (&mut sender, &mut receiver);
        answer(ends, US(at), &segments[index], Ecn::NotEct)
    };
    assert_eq!(arrive(0, 10), [AckKind::Ack]);
    // The second is lost.
    assert_eq!(arrive(2, 12), [AckKind::Nak]);
    assert_eq!(arrive(3, 13), []);
    assert_eq!(receiver.received(), 900);
    assert_eq!(sender.stats().fast_recoveries, 1);
    for (at, seq) in [(20, 900), (21, 1_800), (22, 2_700), (23, 3_600)] {
        let segment = send(&mut sender, US(at));
        assert!(segment.retransmission);
        assert_eq!(segment.seq, seq);
        let ends = (&mut sender, &mut receiver);
        assert_eq!(
            answer(ends, US(at + 10), &segment, Ecn::NotEct),
            [AckKind::Ack]
        );
    }
    // The last of the first round arrives late, and is acknowledged again.
    let ends = (&mut sender, &mut receiver);
    assert_eq!(
        answer(ends, US(50), &segments[4], Ecn::NotEct),
        [AckKind::Ack]
    );
    assert!(sender.is_done());
    assert_eq!(sender.deadline(), None);
    assert_eq!(sender.stats().retransmits, 4);
}

#[test]
fn a_lost_tail_waits_for_the_timeout() {
    let (mut sender, mut receiver) = ends("'dcqcn'");
    sender.write(Time::ZERO, 1_800);
    let first = send(&mut sender, Time::ZERO);
    send(&mut sender, US(1));
    answer((&mut sender, &mut receiver), US(10), &first, Ecn::NotEct);
    // At least 10 ms from the ACK on.
    assert_eq!(sender.deadline(), Some(US(10_010)));
    sender.on_deadline(US(10_009));
    assert_eq!(sender.poll_packet(US(10_009)), None);
    sender.on_deadline(US(10_010));
    assert_eq!(send(&mut sender, US(10_010)).seq, 900);
    assert_eq!(sender.stats().timeouts, 1);
    // The next is twice as far.
    assert_eq!(sender.deadline(), Some(US(30_010)));
}

#[test]
fn marks_are_notified_at_the_end_of_their_time() {
    let (mut sender, mut receiver) = ends("'dcqcn'");
    sender.write(Time::ZERO, 9_000);
    for (at, kinds) in [
        (0, vec![AckKind::Cnp, AckKind::Ack]),
        (10, vec![AckKind::Ack]),
    ] {
        let segment = send(&mut sender, US(at));
        let acks = receiver.handle_packet(US(at), &segment, Ecn::Ce);
        assert_eq!(acks.map(|ack| ack.kind).collect::<Vec<_>>(), kinds);
    }
    assert_eq!(receiver.deadline(), Some(US(50)));
    assert_eq!(receiver.on_deadline(US(49)), None);
    let notification = receiver.on_deadline(US(50)).unwrap();
    assert_eq!((notification.kind, notification.ack), (AckKind::Cnp, 1_800));
    assert_eq!(receiver.deadline(), None);
}
