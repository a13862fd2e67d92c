use super::*;
use crate::packet::Descriptor;
use crate::port::marker::tests::{PACKET, port, queues, seen};
use crate::port::queues::Stored;
use crate::port::{Pool, PortConfig};
use crate::units::{Length, Packets, Rate};

const MTU_TIME: Time = Time::from_ns(1200);

fn k65() -> MqEcnConfig {
    MqEcnConfig::new(Threshold::Length(Length::Packets(Packets::new(65))))
}

fn k32() -> MqEcnConfig {
    MqEcnConfig::new(Threshold::Length(Length::Bytes(Bytes::new(32_000))))
}

fn marker(config: &MqEcnConfig) -> Tested {
    Tested::new(config, &port(&[1500; 8]))
}

/// A marker with the queues of its port.
struct Tested {
    mq: MqEcn,
    queues: Queues,
}

impl Tested {
    fn new(config: &MqEcnConfig, port: &PortContext<'_>) -> Self {
        let mq = MqEcn::new(config, port).unwrap();
        let queues = queues(&mq, port);
        Self { mq, queues }
    }

    fn threshold(&self, queue: usize) -> Option<f64> {
        self.mq.threshold(queue, &self.queues)
    }

    fn decide(&mut self, seen: Seen) -> Option<MarkReason> {
        self.mq.decide(seen, &self.queues)
    }
}

#[test]
fn equation_5_by_hand() {
    let mut mq = marker(&k65());
    assert_eq!(mq.threshold(0), Some(97_500.0), "no sample yet: K");
    // Eight queues of 1500 B take 9.6 us a round at 10 Gbps: quantum / T_round is C / 8.
    mq.mq.smoothed = 9_600_000.0;
    assert_eq!(mq.threshold(0), Some(8.125 * 1500.0));
    // 12,187.5 B: eight packets (12,000 B) pass, nine (13,500 B) do not.
    assert_eq!(mq.decide(seen(0, 12_000)), None);
    assert_eq!(mq.decide(seen(0, 13_500)), Some(MarkReason::Queue));
    // A round shorter than the queue's own quantum: capped at C.
    mq.mq.smoothed = 600_000.0;
    assert_eq!(mq.threshold(0), Some(97_500.0));
}

#[test]
fn equation_5_takes_the_shaped_rate_and_the_quantum_on_the_wire() {
    // 1 Gbps shaped to 500 Mbps with Ethernet framing. A quantum of 1,500 B takes 1,538 B of
    // the wire, 24.608 us. Rounds of one active queue leave K, rounds of two half of it.
    for (accounting, quantum) in [("packet", 1500), ("wire", 1538)] {
        let config: PortConfig = toml::from_str(&format!(
            r#"
            queues = 4
            buffer = {{ shared = {{ size = "96KB" }} }}
            scheduler = {{ dwrr = {{ quantum = "{quantum}B" }} }}
            marker = {{ scheme = {{ mq-ecn = {{ threshold = "32KB" }} }} }}
            shaper = {{ rate = "500Mbps", bucket = "2500B" }}
            framing = "ethernet"
            accounting = "{accounting}"
            "#
        ))
        .unwrap();
        let weights = [quantum; 4];
        let shaped = PortContext {
            rate: Rate::from_mbps(500),
            wire_ratio: config.wire_ratio(),
            ..port(&weights)
        };
        let mut mq = Tested::new(&k32(), &shaped);
        for (round, expected) in [(24_608_000.0, 32_000.0), (49_216_000.0, 16_000.0)] {
            mq.mq.smoothed = round;
            let threshold = mq.threshold(0).unwrap();
            assert!(
                (threshold - expected).abs() < 1e-6,
                "{accounting}: {threshold}"
            );
        }
        // T_idle is the time of 1,500 B at 500 Mbps.
        assert_eq!(mq.mq.t_idle, Time::from_us(24));
    }
}

#[test]
fn equation_6_by_hand() {
    let mut mq = marker(&k65());
    // beta = 0.75: 0 -> 0.25 x 9.6 us = 2.4 us -> 0.75 x 2.4 + 2.4 = 4.2 us.
    mq.mq.round_ended(MTU_TIME, 0, Time::from_ns(9600));
    assert_eq!(mq.mq.smoothed, 2_400_000.0);
    mq.mq.round_ended(MTU_TIME, 1, Time::from_ns(9600));
    assert_eq!(mq.mq.smoothed, 4_200_000.0);
}

#[test]
fn idle_decay_by_hand() {
    let mut mq = marker(&k65());
    mq.mq.round_ended(MTU_TIME, 0, Time::from_ns(9600));
    mq.mq.idle_ended(Time::from_ns(1199));
    assert_eq!(mq.mq.smoothed, 2_400_000.0, "less than T_idle");
    mq.mq.idle_ended(Time::from_ns(1200));
    assert_eq!(mq.mq.smoothed, 1_800_000.0, "T_idle to the picosecond");
    mq.mq.smoothed = 2_400_000.0;
    // 3.7 us are three whole T_idle: 2.4 us x 0.75^3 = 1.0125 us.
    mq.mq.idle_ended(Time::from_ns(3700));
    assert_eq!(mq.mq.smoothed, 1_012_500.0);
    mq.mq.idle_ended(Time::from_ms(1));
    assert_eq!(mq.mq.smoothed, 0.0);
    assert_eq!(mq.threshold(0), Some(97_500.0));
}

#[test]
fn idle_time_from_the_start_of_a_transmission_by_hand() {
    let mut mq = marker(&MqEcnConfig {
        idle_from: IdleFrom::TransmissionStart,
        ..k65()
    });
    mq.mq.round_ended(MTU_TIME, 0, Time::from_ns(9600));
    let service = Service {
        queue: 0,
        size: PACKET,
        now: Time::ZERO,
        finish: MTU_TIME,
        emptied: true,
    };
    mq.mq.served(service, &mq.queues);
    // The next packet comes right after the last bit: 1.2 us since the packet was taken.
    mq.mq.idle_ended(Time::ZERO);
    assert_eq!(mq.mq.smoothed, 1_800_000.0);
    // Told again without a transmission between, only new time counts.
    mq.mq.idle_ended(Time::ZERO);
    assert_eq!(mq.mq.smoothed, 1_800_000.0);
}

#[test]
fn thresholds_follow_quanta() {
    let mut mq = Tested::new(&k65(), &port(&[1500, 3000, 4500]));
    // All three backlogged: 9000 B a round, 7.2 us.
    mq.mq.smoothed = 7_200_000.0;
    let k: Vec<_> = (0..3).map(|q| mq.threshold(q).unwrap()).collect();
    assert_eq!(k, [97_500.0 / 6.0, 97_500.0 / 3.0, 97_500.0 / 2.0]);
}

#[test]
fn interval_variant_averages_between_updates() {
    let mut mq = marker(&MqEcnConfig {
        update: RoundUpdate::Interval(Time::from_ns(7200)),
        ..k65()
    });
    mq.mq
        .round_ended(Time::from_ns(2400), 0, Time::from_ns(2000));
    mq.mq
        .round_ended(Time::from_ns(4800), 1, Time::from_ns(4000));
    assert_eq!(mq.mq.smoothed, 0.0);
    // Mean of 2, 4 and 6 us is 4 us; a quarter of it enters.
    mq.mq
        .round_ended(Time::from_ns(7200), 2, Time::from_ns(6000));
    assert_eq!(mq.mq.smoothed, 1_000_000.0);
    // The next update is due at 14.4 us, whatever happens before.
    mq.mq
        .round_ended(Time::from_ns(14_399), 3, Time::from_ns(8000));
    assert_eq!(mq.mq.smoothed, 1_000_000.0);
    mq.mq
        .round_ended(Time::from_ns(14_400), 3, Time::from_ns(8000));
    assert_eq!(mq.mq.smoothed, 750_000.0 + 2_000_000.0);
}

#[test]
fn samples_from_before_an_idle_time_decay_with_the_rest() {
    let mut mq = marker(&MqEcnConfig {
        update: RoundUpdate::Interval(Time::from_ns(7200)),
        ..k65()
    });
    mq.mq
        .round_ended(Time::from_ns(2400), 0, Time::from_ns(4000));
    // A quarter of 4 us enters, and decays for two T_idle: 1 us x 0.75^2.
    mq.mq.idle_ended(Time::from_ns(2400));
    assert_eq!(mq.mq.smoothed, 562_500.0);
    // The first sample after it is all that the next update sees: 0.75 x 0.5625 + 0.25 x 2 us.
    mq.mq
        .round_ended(Time::from_ns(7200), 0, Time::from_ns(2000));
    assert_eq!(mq.mq.smoothed, 921_875.0);
}

#[test]
fn strict_queues_keep_the_standard_threshold() {
    let mut strict = port(&[1500; 8]);
    strict.strict = QueueSet::first(1);
    let mut mq = Tested::new(&k65(), &strict);
    for _ in 0..100 {
        mq.mq.round_ended(MTU_TIME, 1, Time::from_ns(8400));
    }
    assert_eq!(mq.threshold(0), Some(97_500.0));
    let lower = mq.threshold(1).unwrap();
    assert!((lower - 97_500.0 / 7.0).abs() < 1e-6, "{lower}");
}

#[test]
fn ramp_scales_both_thresholds() {
    let mut mq = marker(&MqEcnConfig {
        ramp: Some(Ramp {
            k_min: Threshold::Length(Length::Bytes(Bytes::new(19_500))),
            p_max: 0.5,
        }),
        ..k65()
    });
    // Half of the standard thresholds: K_min 9,750 B and K_max 48,750 B.
    mq.mq.smoothed = 2_400_000.0;
    assert_eq!(mq.decide(seen(0, 9_750)), None);
    assert_eq!(mq.decide(seen(0, 48_751)), Some(MarkReason::Queue));
    // Half way up the ramp: p = 0.5 x 0.5.
    let marked = (0..40_000)
        .filter(|_| mq.decide(seen(0, 29_250)).is_some())
        .count();
    assert!((9_740..=10_260).contains(&marked), "{marked}");
}

#[test]
fn wfq_divides_by_the_smoothed_backlogged_weight() {
    let mut fair = port(&[1, 1, 2, 4]);
    fair.sharing = Sharing::Weights;
    let mut mq = Tested::new(&k65(), &fair);
    let service = |queue| Service {
        queue,
        size: PACKET,
        now: Time::ZERO,
        finish: MTU_TIME,
        emptied: false,
    };
    let mut pool = Pool::unlimited();
    for queue in [1, 2] {
        let stored = Stored {
            packet: Descriptor::default(),
            arrived: Time::ZERO,
            size: PACKET,
            noted: false,
        };
        mq.queues.push(queue, stored, &mut pool);
    }
    // w_sum: 0.25 x 3 = 0.75 caps the share at 1; then it converges to 3.
    mq.mq.served(service(1), &mq.queues);
    assert_eq!(mq.threshold(1), Some(97_500.0));
    for _ in 0..200 {
        mq.mq.served(service(1), &mq.queues);
    }
    let third = mq.threshold(1).unwrap();
    assert!((third - 97_500.0 / 3.0).abs() < 1e-6, "{third}");
    // The last packet of queue 1 leaves: it was backlogged until now, and is not from then on.
    mq.queues.pop(1, &mut pool);
    mq.mq.served(service(1), &mq.queues);
    assert!((mq.threshold(1).unwrap() - third).abs() < 1e-6);
    for _ in 0..200 {
        mq.mq.served(service(2), &mq.queues);
    }
    let all = mq.threshold(2).unwrap();
    assert!((all - 97_500.0).abs() < 1e-6, "{all}");
    // 3.7 us are three whole T_idle: w_sum 2 x 0.75^3, as T_round would.
    mq.mq.smoothed = 2.0;
    mq.mq.idle_ended(Time::from_ns(3700));
    assert_eq!(mq.mq.smoothed, 0.84375);
}
