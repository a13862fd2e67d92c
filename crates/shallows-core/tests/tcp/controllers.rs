//! Marks on a path, and what each controller makes of them.

use shallows_core::tcp::congestion::{DctcpConfig, DelayDctcpConfig};
use shallows_core::tcp::{ControllerConfig, EcnEcho, MarkedGrowth, TcpConfig};
use shallows_core::units::Time;

use crate::driver::{Fate, Pair, plain, us};

fn dctcp(initial_alpha: f64) -> TcpConfig {
    TcpConfig {
        controller: ControllerConfig::Dctcp(DctcpConfig {
            g: 1.0 / 16.0,
            initial_alpha,
        }),
        ..plain()
    }
}

fn until_acked(pair: &mut Pair, bytes: u64) {
    while pair.sender.acked() < bytes {
        assert!(pair.step());
    }
}

fn run_until(pair: &mut Pair, time: Time) {
    while pair.now <= time && pair.step() {}
}

#[test]
fn alpha_for_a_known_pattern_of_marks() {
    // Segments 0-9 at 0, 10-29 at 100 us; 10-19 are marked.
    let mut pair = Pair::new(&dctcp(0.0)).marking(10..20);
    pair.write(1_000_000);
    until_acked(&mut pair, 10_000);
    assert_eq!(pair.sender.alpha(), Some(0.0));
    // The window from 1 to 10 ends with the ACK of segment 10, the first mark: F = 1/10. It cuts
    // the window of 20 once for all of this round.
    until_acked(&mut pair, 11_000);
    let first = 0.1 / 16.0;
    assert_eq!(pair.sender.alpha(), Some(first));
    assert_eq!(pair.sender.cwnd_bytes(), 20_000.0 * (1.0 - first / 2.0));
    until_acked(&mut pair, 30_000);
    assert_eq!(pair.sender.stats().marked_acks, 10);
    assert_eq!(pair.sender.stats().reductions, 1);
    assert_eq!(pair.sender.alpha(), Some(first));
    // The next window is that of 11 to 30: 9 marks among 20.
    until_acked(&mut pair, 31_000);
    let second = first * (15.0 / 16.0) + (9.0 / 20.0) / 16.0;
    assert_eq!(pair.sender.alpha(), Some(second));
}

#[test]
fn with_every_segment_marked_dctcp_halves_each_round_trip() {
    let mut pair = Pair::new(&dctcp(1.0)).marking(0..10_000);
    pair.write(100_000);
    run_until(&mut pair, us(100));
    assert_eq!(pair.sender.cwnd_bytes(), 5_000.0);
    run_until(&mut pair, us(200));
    assert_eq!(pair.sender.cwnd_bytes(), 2_500.0);
    run_until(&mut pair, us(300));
    assert_eq!(pair.sender.cwnd_bytes(), 1_250.0);
    pair.finish();
    assert_eq!(pair.sender.cwnd_bytes(), 1_000.0);
    assert_eq!(pair.receiver.ce_segments(), 100);
}

#[test]
fn a_window_may_grow_within_a_burst_of_marks_as_in_ns_2() {
    let config = TcpConfig {
        marked_growth: MarkedGrowth::InBursts,
        ..dctcp(1.0)
    };
    let mut pair = Pair::new(&config).marking(0..10_000);
    pair.write(100_000);
    // The first of ten marked ACKs cuts 10 to 5, nine more add their 1/cwnd.
    run_until(&mut pair, us(100));
    let grown = (0..9).fold(5_000.0, |cwnd, _| cwnd + 1_000.0 * 1_000.0 / cwnd);
    assert_eq!(pair.sender.cwnd_bytes(), grown);
}

#[test]
fn late_acks_grow_no_window_even_in_bursts() {
    let config = TcpConfig {
        controller: ControllerConfig::Ear(DelayDctcpConfig::default()),
        marked_growth: MarkedGrowth::InBursts,
        ..plain()
    };
    let mut pair = Pair::new(&config);
    let late = |index| (index, Fate::Late(us(200)));
    pair.segment_fates.extend((1..100).map(late));
    pair.write(100_000);
    // The first ACK makes 10 segments 11 and alpha 15/16; the first late one cuts them by 15/32, and
    // the eight after it change nothing.
    run_until(&mut pair, us(300));
    assert_eq!(pair.sender.cwnd_bytes(), 11_000.0 * 17.0 / 32.0);
}

#[test]
fn the_classic_echo_lasts_until_the_sender_has_reacted() {
    let config = TcpConfig {
        controller: ControllerConfig::EcnStar {},
        ..plain()
    };
    let mut pair = Pair::new(&config).marking([2]);
    pair.write(30_000);
    pair.finish();
    // The ACK of segment 2 is the first with the echo. It cuts the window of 12 to 6, and the echo
    // ends with the first new segment after that, which says so.
    let echoes: Vec<_> = pair.acks.iter().map(|(_, ack)| ack.ece).collect();
    assert_eq!(echoes.iter().position(|&ece| ece), Some(2));
    let cwr: Vec<_> = pair
        .sent
        .iter()
        .filter(|(_, s)| s.cwr)
        .map(|(_, s)| s.seq)
        .collect();
    assert_eq!(cwr.len(), 1);
    let reacted = (cwr[0] / 1_000) as usize;
    assert!(echoes[2..reacted].iter().all(|&ece| ece));
    assert!(!echoes[reacted..].iter().any(|&ece| ece));
    assert_eq!(pair.sender.stats().reductions, 1);
    assert_eq!(pair.sender.ssthresh_bytes(), 6_000.0);
}

#[test]
fn a_classic_loss_after_a_mark_does_not_cut_twice() {
    let config = TcpConfig {
        controller: ControllerConfig::EcnStar {},
        ecn: Some(EcnEcho::Precise),
        ..plain()
    };
    // Segment 0 is marked, 1 is lost: at 100 us one cut from 10 to 5, then three duplicates.
    let mut pair = Pair::new(&config).marking([0]).dropping([1]);
    pair.write(10_000);
    pair.finish();
    assert_eq!(pair.sender.stats().fast_recoveries, 1);
    assert_eq!(pair.sender.ssthresh_bytes(), 5_000.0);
}

#[test]
fn nothing_is_ecn_capable_without_ecn() {
    let mut pair = Pair::new(&plain()).marking(0..10);
    pair.write(10_000);
    pair.finish();
    assert!(pair.sent.iter().all(|(_, segment)| !segment.ect));
    assert_eq!(pair.receiver.ce_segments(), 0);
    let config = TcpConfig {
        ect_acks: true,
        ..dctcp(0.0)
    };
    let mut pair = Pair::new(&config);
    pair.write(10_000);
    pair.finish();
    assert!(pair.acks.iter().all(|(_, ack)| ack.ect));
}

#[test]
fn pfabric_probes_after_five_timeouts_until_it_hears_something() {
    let mut config: TcpConfig = toml::from_str(
        r#"
        segment = 1000
        initial-window = 12
        duplicate-acks = 1000000
        rto = { initial = "45us", minimum = "45us", maximum = "45us" }
        controller = "pfabric"
        "#,
    )
    .expect("the text is a transport");
    config.limited_transmit = false;
    let mut pair = Pair::new(&config).dropping(0..18);
    pair.write(12_000);
    pair.finish();
    // Twelve at 0; a whole segment again after each of four timeouts; then probes.
    let again: Vec<_> = pair.sent[12..20]
        .iter()
        .map(|(at, s)| (*at, s.len))
        .collect();
    assert_eq!(
        again,
        [
            (us(45), 1_000),
            (us(90), 1_000),
            (us(135), 1_000),
            (us(180), 1_000),
            (us(225), 1),
            (us(270), 1),
            (us(315), 1),
            (us(360), 1),
        ]
    );
    assert_eq!(pair.receiver.received(), 12_000);
}

#[test]
fn every_controller_fills_a_clean_path() {
    for name in ControllerConfig::names() {
        let config: TcpConfig =
            toml::from_str(&format!("controller = \"{name}\"")).expect("it is a controller");
        if config.is_paced() {
            continue; // It has no TCP.
        }
        let mut pair = Pair::new(&config);
        pair.write(1_000_000);
        pair.finish();
        assert_eq!(pair.sender.stats().retransmits, 0, "{name}");
        assert_eq!(pair.receiver.received(), 1_000_000, "{name}");
    }
}
