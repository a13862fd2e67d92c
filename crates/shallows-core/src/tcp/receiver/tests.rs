use super::*;

const ARRIVAL: Time = Time::from_us(150);

fn receiver(text: &str) -> Receiver {
    let config: TcpConfig = toml::from_str(text).expect("the text is a transport");
    Receiver::new(&config)
}

/// Segment number `number` of 1000 bytes, sent at 100 us.
fn segment(number: u64) -> Segment {
    Segment {
        seq: number * 1_000,
        sent_at: Time::from_us(100),
        len: 1_000,
        syn: false,
        retransmission: false,
        cwr: false,
        ect: true,
    }
}

fn take(receiver: &mut Receiver, segment: &Segment, ecn: Ecn) -> Vec<Ack> {
    receiver.on_segment(ARRIVAL, segment, ecn).collect()
}

/// ACK number and echo of each answer.
fn brief(acks: &[Ack]) -> Vec<(u64, bool)> {
    acks.iter().map(|ack| (ack.ack, ack.ece)).collect()
}

fn blocks(ack: &Ack) -> Vec<(u64, u64)> {
    ack.sack.blocks(ack.ack).collect()
}

#[test]
fn an_ack_tells_when_its_segment_was_sent_and_how_long_it_took() {
    let acks = take(&mut receiver(""), &segment(0), Ecn::Ect0);
    assert_eq!(
        acks,
        [Ack {
            kind: AckKind::Ack,
            ack: 1_000,
            echo: Time::from_us(100),
            one_way_delay: Time::from_us(50),
            sack: SackBlocks::default(),
            ece: false,
            syn: false,
            ect: false,
        }]
    );
}

#[test]
fn the_newest_range_is_reported_first() {
    let mut receiver = receiver("");
    let mut report = |number| {
        let acks = take(&mut receiver, &segment(number), Ecn::Ect0);
        assert_eq!(acks[0].ack, 0);
        blocks(&acks[0])
    };
    assert_eq!(report(2), [(2_000, 3_000)]);
    assert_eq!(report(4), [(4_000, 5_000), (2_000, 3_000)]);
    assert_eq!(report(6), [(6_000, 7_000), (4_000, 5_000), (2_000, 3_000)]);
    assert_eq!(report(8), [(8_000, 9_000), (6_000, 7_000), (4_000, 5_000)]);
    // 3 joins the ranges of 2 and 4.
    assert_eq!(report(3), [(2_000, 5_000), (8_000, 9_000), (6_000, 7_000)]);
}

#[test]
fn a_filled_gap_is_acknowledged_in_one_leap() {
    let mut receiver = receiver("");
    for number in [1, 2, 4] {
        take(&mut receiver, &segment(number), Ecn::Ect0);
    }
    assert_eq!(receiver.out_of_order(), 3_000);
    let acks = take(&mut receiver, &segment(0), Ecn::Ect0);
    assert_eq!(acks[0].ack, 3_000);
    assert_eq!(blocks(&acks[0]), [(4_000, 5_000)]);
    // What came before is answered, and counted.
    let acks = take(&mut receiver, &segment(1), Ecn::Ect0);
    assert_eq!(acks[0].ack, 3_000);
    assert_eq!(receiver.duplicate_bytes(), 1_000);
}

#[test]
fn without_selective_acks_nothing_is_reported() {
    let mut receiver = receiver("recovery = \"new-reno\"");
    let acks = take(&mut receiver, &segment(2), Ecn::Ect0);
    assert!(acks[0].sack.is_empty());
}

#[test]
fn the_precise_echo_follows_each_segment() {
    let mut receiver = receiver("");
    let mut echo = |number, ecn| take(&mut receiver, &segment(number), ecn)[0].ece;
    assert!(!echo(0, Ecn::Ect0));
    assert!(echo(1, Ecn::Ce));
    assert!(echo(2, Ecn::Ce));
    assert!(!echo(3, Ecn::Ect0));
    assert_eq!(receiver.ce_segments(), 2);
}

#[test]
fn a_change_of_marking_splits_a_delayed_ack() {
    let mut receiver = receiver("delayed-ack = { every = 4, timeout = \"1ms\" }");
    assert_eq!(take(&mut receiver, &segment(0), Ecn::Ect0), []);
    assert_eq!(take(&mut receiver, &segment(1), Ecn::Ect0), []);
    // The two unmarked ones first, without the echo, then the marked one with it.
    let acks = take(&mut receiver, &segment(2), Ecn::Ce);
    assert_eq!(brief(&acks), [(2_000, false), (3_000, true)]);
    // Marked ones may wait together, and a change with none waiting needs one ACK.
    assert_eq!(take(&mut receiver, &segment(3), Ecn::Ce), []);
    let acks = take(&mut receiver, &segment(4), Ecn::Ect0);
    assert_eq!(brief(&acks), [(4_000, true), (5_000, false)]);
    let acks = take(&mut receiver, &segment(5), Ecn::Ce);
    assert_eq!(brief(&acks), [(6_000, true)]);
    assert_eq!(receiver.deadline(), None);
}

#[test]
fn a_change_out_of_order_splits_it_too() {
    let mut receiver = receiver("delayed-ack = { every = 4, timeout = \"1ms\" }");
    assert_eq!(take(&mut receiver, &segment(0), Ecn::Ect0), []);
    let acks = take(&mut receiver, &segment(2), Ecn::Ce);
    assert_eq!(brief(&acks), [(1_000, false), (1_000, true)]);
}

#[test]
fn the_classic_echo_stays_until_cwr() {
    let mut receiver = receiver("controller = \"ecn-star\"");
    let reduced = |number| Segment {
        cwr: true,
        ..segment(number)
    };
    let mut echo = |segment: &Segment, ecn| take(&mut receiver, segment, ecn)[0].ece;
    assert!(!echo(&segment(0), Ecn::Ect0));
    assert!(echo(&segment(1), Ecn::Ce));
    assert!(echo(&segment(2), Ecn::Ect0));
    assert!(!echo(&reduced(3), Ecn::Ect0));
    assert!(!echo(&segment(4), Ecn::Ect0));
    assert!(echo(&reduced(5), Ecn::Ce));
}

#[test]
fn a_delayed_ack_echoes_its_first_segment() {
    let mut receiver = receiver("delayed-ack = { every = 2, timeout = \"1ms\" }");
    assert_eq!(take(&mut receiver, &segment(0), Ecn::Ect0), []);
    assert_eq!(receiver.deadline(), Some(Time::from_us(1_150)));
    let later = Segment {
        sent_at: Time::from_us(120),
        ..segment(1)
    };
    let acks = take(&mut receiver, &later, Ecn::Ect0);
    assert_eq!(acks[0].echo, Time::from_us(100));
    assert_eq!(acks[0].one_way_delay, Time::from_us(30));
    assert_eq!(receiver.deadline(), None);
}

#[test]
fn the_timer_sends_what_waits_and_not_before() {
    let mut receiver = receiver("delayed-ack = { every = 2, timeout = \"1ms\" }");
    assert_eq!(receiver.on_deadline(Time::from_secs(1)), None);
    take(&mut receiver, &segment(0), Ecn::Ect0);
    assert_eq!(receiver.on_deadline(Time::from_us(1_149)), None);
    let ack = receiver.on_deadline(Time::from_us(1_150));
    assert_eq!(ack.map(|ack| ack.ack), Some(1_000));
    assert_eq!(receiver.on_deadline(Time::from_us(1_150)), None);
}

#[test]
fn the_ack_of_a_short_last_segment_waits_where_full_ones_count() {
    let mut receiver = receiver(
        "segment = 1000\ndelayed-ack = { every = 1, timeout = \"6us\", count = \"full-segments\" }",
    );
    let full = take(&mut receiver, &segment(0), Ecn::Ect0);
    assert_eq!(brief(&full), [(1_000, false)]);
    let short = |number, len| Segment {
        len,
        ..segment(number)
    };
    assert_eq!(take(&mut receiver, &short(1, 300), Ecn::Ect0), []);
    let due = receiver.deadline().unwrap();
    let ack = receiver.on_deadline(due);
    assert_eq!(ack.map(|ack| ack.ack), Some(1_300));
    // A mark is told at once.
    let next = Segment {
        seq: 1_300,
        ..short(1, 300)
    };
    let acks = take(&mut receiver, &next, Ecn::Ce);
    assert_eq!(brief(&acks), [(1_600, true)]);
}

#[test]
fn each_syn_is_granted() {
    let mut receiver = receiver("handshake = true");
    let syn = Segment {
        len: 0,
        syn: true,
        ect: false,
        ..segment(0)
    };
    for _ in 0..2 {
        let acks = take(&mut receiver, &syn, Ecn::NotEct);
        assert!(acks[0].syn);
        assert_eq!(acks[0].ack, 0);
    }
}
