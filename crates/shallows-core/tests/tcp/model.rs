//! Random loss, reordering, duplication and marks: everything arrives, once and in order.

use std::collections::BTreeSet;

use proptest::prelude::*;
use shallows_core::packet::Ecn;
use shallows_core::tcp::{
    AckCount, AfterIdle, DelayedAck, Growth, MarkedGrowth, Recovery, Segment, TcpConfig,
};
use shallows_core::units::Time;

use crate::driver::{Fate, Pair, us};

/// Small segments, so that the set of all bytes is small.
const SEGMENT: u64 = 10;

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Deliver),
        2 => Just(Fate::Drop),
        1 => Just(Fate::Mark),
        1 => (0..400_u64).prop_map(|late| Fate::Late(us(late))),
        1 => (0..400_u64).prop_map(|late| Fate::Twice(us(late))),
    ]
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let controllers = vec![
        "reno",
        "cubic",
        "dctcp",
        "ecn-star",
        "delay-dctcp",
        "ear",
        "dx",
        "pfabric",
    ];
    (
        prop::sample::select(controllers),
        prop::sample::select(vec![Recovery::Sack, Recovery::NewReno, Recovery::FullTcp]),
        prop::option::of(2..4_u32),
        (1..12_u32, 12..40_u32),
        any::<[bool; 5]>(),
        prop::sample::select(vec![1, 3, 1_000_000]),
        prop::sample::select(vec![
            AfterIdle::Keep,
            AfterIdle::Restart,
            AfterIdle::InitialWindow,
        ]),
    )
        .prop_map(
            |(controller, recovery, every, windows, switches, thresh, after_idle)| {
                let [handshake, limited_transmit, bursts, ect_acks, whole] = switches;
                let text = format!(
                    r#"
                segment = {SEGMENT}
                rto = {{ initial = "1ms", minimum = "300us", maximum = "8ms" }}
                controller = "{controller}"
                "#
                );
                TcpConfig {
                    recovery,
                    delayed_ack: every.map(|every| DelayedAck {
                        every,
                        timeout: us(200),
                        count: AckCount::default(),
                    }),
                    initial_window: windows.0,
                    receive_window: windows.1,
                    handshake,
                    limited_transmit,
                    ect_acks,
                    growth: if whole && !["cubic", "dx"].contains(&controller) {
                        Growth::WholeSegments
                    } else {
                        Growth::Fractions
                    },
                    marked_growth: if bursts {
                        MarkedGrowth::InBursts
                    } else {
                        MarkedGrowth::Never
                    },
                    duplicate_acks: thresh,
                    after_idle,
                    ..toml::from_str(&text).expect("the text is a transport")
                }
            },
        )
}

/// What must hold whatever happens.
struct Watch {
    config: TcpConfig,
    written: u64,
    seen_segments: usize,
    highest_sent: u64,
    acked: u64,
    received: u64,
}

impl Watch {
    fn check(&mut self, pair: &Pair) -> Result<(), TestCaseError> {
        let segment = f64::from(self.config.segment);
        prop_assert!(pair.sender.cwnd_bytes() >= segment);
        prop_assert!(
            pair.sender.acked() >= self.acked,
            "acknowledged bytes went back"
        );
        prop_assert!(
            pair.receiver.received() >= self.received,
            "received bytes went back"
        );
        prop_assert!(pair.sender.acked() <= pair.receiver.received());
        prop_assert!(pair.receiver.received() <= self.written);
        self.acked = pair.sender.acked();
        self.received = pair.receiver.received();
        let outstanding = self.highest_sent > self.acked;
        prop_assert!(!outstanding || pair.sender.deadline().is_some(), "no timer");
        self.check_sent(pair)
    }

    /// New data follows on what was sent before, and fits the windows.
    fn check_sent(&mut self, pair: &Pair) -> Result<(), TestCaseError> {
        let receive_window = u64::from(self.config.receive_window) * SEGMENT;
        let mut new_data = false;
        for (_, sent) in &pair.sent[self.seen_segments..] {
            prop_assert!(sent.seq <= self.highest_sent);
            prop_assert!(sent.end() <= self.written);
            prop_assert!(sent.syn || (1..=self.config.segment).contains(&sent.len));
            prop_assert!(sent.seq >= self.acked, "sent what was acknowledged");
            prop_assert!(
                sent.end() <= self.acked + receive_window,
                "beyond the receive window"
            );
            if !sent.syn {
                prop_assert_eq!(sent.retransmission, sent.seq < self.highest_sent);
                new_data |= !sent.retransmission;
            }
            self.highest_sent = self.highest_sent.max(sent.end());
        }
        self.seen_segments = pair.sent.len();
        // Inflation lets NewReno send more than the window; limited transmit two segments.
        if new_data && self.config.recovery == Recovery::Sack {
            let most = pair.sender.cwnd_bytes() + 2.0 * SEGMENT as f64;
            prop_assert!(pair.sender.in_flight() as f64 <= most);
        }
        Ok(())
    }
}

fn run(
    config: &TcpConfig,
    writes: &[(u64, u64)],
    segment_fates: &[Fate],
    ack_fates: &[Fate],
) -> Result<Pair, TestCaseError> {
    let mut pair = Pair::new(config);
    pair.segment_fates = segment_fates.iter().copied().enumerate().collect();
    pair.ack_fates = ack_fates.iter().copied().enumerate().collect();
    let mut watch = Watch {
        config: config.clone(),
        written: 0,
        seen_segments: 0,
        highest_sent: 0,
        acked: 0,
        received: 0,
    };
    for &(bytes, pause) in writes {
        watch.written += bytes;
        pair.write(bytes);
        watch.check(&pair)?;
        let resume = pair.now + us(pause);
        let mut steps = 0;
        while !pair.sender.is_done() || pair.now < resume {
            if !pair.step() {
                prop_assert!(pair.sender.is_done(), "stalled");
                pair.now = resume;
                break;
            }
            watch.check(&pair)?;
            steps += 1;
            prop_assert!(steps < 100_000, "no end");
        }
    }
    prop_assert_eq!(pair.receiver.received(), watch.written);
    Ok(pair)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn everything_arrives_whatever_happens(
        config in config(),
        writes in prop::collection::vec((1..600_u64, 0..3_000_u64), 1..4),
        segment_fates in prop::collection::vec(fate(), 0..120),
        ack_fates in prop::collection::vec(fate(), 0..120),
    ) {
        let pair = run(&config, &writes, &segment_fates, &ack_fates)?;
        let again = run(&config, &writes, &segment_fates, &ack_fates)?;
        prop_assert_eq!(&pair.sent, &again.sent);
        prop_assert_eq!(&pair.acks, &again.acks);
        prop_assert_eq!(pair.sender.stats(), again.sender.stats());
        let stats = pair.sender.stats();
        let repeated = pair.sent.iter().filter(|(_, s)| s.retransmission && !s.syn).count();
        prop_assert_eq!(stats.retransmits, repeated as u64);
    }

    #[test]
    fn a_receiver_holds_just_what_arrived(
        segments in prop::collection::vec((0..40_u64, 1..30_u32), 1..80),
    ) {
        let config = TcpConfig::default();
        let mut pair = Pair::new(&config);
        let mut arrived = BTreeSet::new();
        for (start, len) in segments {
            let segment = Segment {
                seq: start * 7,
                sent_at: Time::ZERO,
                len,
                syn: false,
                retransmission: false,
                cwr: false,
                ect: true,
            };
            arrived.extend(segment.seq..segment.end());
            let acks = pair.receiver.on_segment(Time::ZERO, &segment, Ecn::Ect0);
            let expected = (0..1_000).find(|n| !arrived.contains(n)).expect("it is finite");
            prop_assert_eq!(pair.receiver.received(), expected);
            prop_assert_eq!(pair.receiver.out_of_order(), arrived.range(expected..).count() as u64);
            for ack in acks {
                prop_assert_eq!(ack.ack, expected);
                for (start, end) in ack.sack.blocks(ack.ack) {
                    prop_assert!(start > expected);
                    prop_assert!((start..end).all(|n| arrived.contains(&n)));
                    prop_assert!(!arrived.contains(&(start - 1)) && !arrived.contains(&end));
                }
                // The first block is the one that just changed.
                if segment.seq > expected {
                    let first = ack.sack.blocks(ack.ack).next().expect("there is a gap");
                    prop_assert!(first.0 <= segment.seq && segment.end() <= first.1);
                }
            }
        }
    }

    #[test]
    fn without_loss_nothing_is_sent_twice_or_beyond_the_window(
        config in config(),
        bytes in 1..3_000_u64,
        marks in prop::collection::vec(any::<bool>(), 0..200),
    ) {
        let fates = marks.iter().map(|&marked| if marked { Fate::Mark } else { Fate::Deliver });
        let mut pair = Pair::new(&config);
        pair.segment_fates = fates.enumerate().collect();
        pair.write(bytes);
        let mut sent = pair.sent.len();
        while !pair.sender.is_done() {
            prop_assert!(pair.step(), "stalled");
            if pair.sent.len() > sent {
                prop_assert!(pair.sender.in_flight() as f64 <= pair.sender.cwnd_bytes());
                sent = pair.sent.len();
            }
        }
        prop_assert_eq!(pair.sender.stats().retransmits, 0);
        prop_assert_eq!(pair.sender.stats().bytes_sent, bytes);
    }
}
