use proptest::prelude::*;

use super::*;
use crate::host::gate::{Gate, Release, Verdict};
use crate::host::qjump::QjumpGate;
use crate::packet::Descriptor;

const EPOCH: Time = Time::from_us(10);
const LEVELS: [u64; 3] = [256, 10_000, 1_000_000];
/// 200 epochs.
const SETTLE: Time = Time::from_ms(2);

fn limits(excess: Excess) -> LimiterConfig {
    LimiterConfig {
        epoch: EPOCH,
        levels: LEVELS.map(Bytes::new).to_vec(),
        excess,
        ..LimiterConfig::default()
    }
}

fn config(control: ControlConnections) -> AutomaticConfig {
    AutomaticConfig {
        patience: 8,
        settle: SETTLE,
        control,
    }
}

fn levels(control: ControlConnections) -> AutomaticLevels {
    config(control).build(&limits(Excess::Hold), None).unwrap()
}

fn state(levels: &AutomaticLevels, application: u32) -> ApplicationLevel {
    let mut applications = levels.applications();
    applications
        .find(|of| of.application == application)
        .unwrap()
}

/// Sends a packet of `bytes` every `interval` us from one connection; gives the level at the end.
fn send(levels: &mut AutomaticLevels, us: std::ops::Range<u64>, interval: usize, bytes: u32) -> u8 {
    let mut level = None;
    for at in us.step_by(interval) {
        level = Some(levels.assign(Time::from_us(at), 1, 0, bytes).level);
    }
    level.unwrap()
}

#[test]
fn an_application_comes_to_the_level_of_its_throughput() {
    let together = || levels(ControlConnections::Together);
    // 128 B in 20 us are a quarter of the top level; the time to settle is 2 ms.
    let mut light = together();
    assert_eq!(send(&mut light, 0..2000, 20, 128), 2);
    assert_eq!(send(&mut light, 2000..2020, 20, 128), 0);
    assert_eq!(state(&light, 1).settled, Time::from_us(2000));
    // 1000 B in 2 us are half of the second level.
    let mut medium = together();
    assert_eq!(send(&mut medium, 0..10_000, 2, 1000), 1);
    assert_eq!(state(&medium, 1).changes, 1);
    // 1500 B in 1 us exceed it by half.
    let mut heavy = together();
    assert_eq!(send(&mut heavy, 0..10_000, 1, 1500), 2);
    assert_eq!(state(&heavy, 1).changes, 0);
}

#[test]
fn an_application_that_exceeds_its_level_leaves_it_at_once() {
    let mut levels = levels(ControlConnections::Together);
    assert_eq!(send(&mut levels, 0..2020, 20, 128), 0);
    // Eight epochs of 256 B may wait, of which 128 B do already.
    for sent in 1..=15 {
        let assigned = levels.assign(Time::from_us(2001), 1, 0, 128);
        assert_eq!(
            (assigned.level, assigned.lowered),
            (0, false),
            "packet {sent}"
        );
    }
    let last = levels.assign(Time::from_us(2001), 1, 0, 128);
    assert_eq!((last.level, last.lowered), (1, true));
}

#[test]
fn a_packet_that_never_fits_its_level_lowers_its_application() {
    let mut levels = levels(ControlConnections::Together);
    assert_eq!(send(&mut levels, 0..2020, 20, 128), 0);
    assert_eq!(levels.assign(Time::from_us(2100), 1, 0, 257).level, 1);
}

#[test]
fn silence_is_no_restraint() {
    let mut levels = levels(ControlConnections::Together);
    // Bursts of 150 KB with 9 ms of silence between them, four times what it takes to settle.
    for burst in 0..100 {
        let at = Time::from_ms(10 * burst);
        for _ in 0..100 {
            assert_eq!(levels.assign(at, 1, 0, 1500).level, 2);
        }
    }
}

#[test]
fn lifts_that_do_not_last_become_rare() {
    let mut levels = levels(ControlConnections::Together);
    let (mut lifts, mut before) = (0, 2);
    // Packets of 100 B, and a burst as soon as it has got a higher level.
    for step in 0..50_000 {
        let now = Time::from_us(20 * step);
        let level = levels.assign(now, 1, 0, 100).level;
        if level < before {
            lifts += 1;
            for _ in 0..1000 {
                levels.assign(now, 1, 0, 1500);
            }
        }
        before = levels.level(1, 0);
    }
    // After 2, 4, 8, ... 128 ms, and then every 128 ms: 254 ms and 746 ms of the second.
    assert_eq!(lifts, 7 + 5);
}

#[test]
fn a_control_connection_has_a_level_of_its_own() {
    let run = |control| {
        let mut levels = levels(control);
        for at in 0..10_000 {
            levels.assign(Time::from_us(at), 1, 7, 1500);
            if at % 50 == 0 {
                levels.assign(Time::from_us(at), 1, 8, 100);
            }
        }
        [levels.level(1, 7), levels.level(1, 8)]
    };
    assert_eq!(run(ControlConnections::Apart), [2, 0]);
    assert_eq!(run(ControlConnections::Together), [2, 2]);
}

#[test]
fn many_small_connections_are_one_large_application() {
    let mut levels = levels(ControlConnections::Apart);
    // 12 Gbps over 1000 connections, each with 150 B in 100 us.
    let mut served = [0_u64; 3];
    for packet in 0..1_000_000_u64 {
        let now = Time::from_ns(100 * packet);
        let level = levels.assign(now, 1, packet % 1000, 150).level;
        served[usize::from(level)] += 150;
    }
    let epochs = 10_000;
    assert!(served[0] < epochs * LEVELS[0] / 10, "{served:?}");
    assert!(served[1] < epochs * LEVELS[1] / 10, "{served:?}");
    assert_eq!(levels.level(1, 3), 2);
}

#[test]
fn the_heaviest_leaves_a_level_that_is_full() {
    let mut levels = levels(ControlConnections::Together);
    // 60 B, 100 B and 150 B an epoch fit one by one but not together.
    for at in (0..20_000).step_by(10) {
        for (application, bytes) in [(1, 60), (2, 100), (3, 150)] {
            levels.assign(Time::from_us(at), application, 0, bytes);
        }
    }
    assert_eq!([1, 2, 3].map(|of| levels.level(of, 0)), [0, 0, 1]);
}

#[test]
fn packets_that_wait_follow_their_application() {
    let automatic = levels(ControlConnections::Together);
    let gate = QjumpGate::new(&limits(Excess::Hold), Time::ZERO, None).unwrap();
    let mut gate = gate.with_automatic_levels(automatic);
    let mut offer = |at: Time, size, tag| {
        let mut packet = Descriptor {
            size,
            dscp: 1,
            tag,
            ..Descriptor::default()
        };
        gate.label(at, &mut packet);
        (gate.offer(at, packet, Some(7)), packet.dscp)
    };
    for at in (0..=2000).step_by(20) {
        let level = if at < 2000 { 2 } else { 0 };
        assert_eq!(offer(Time::from_us(at), 128, 0), (Verdict::Pass, level));
    }
    let now = Time::from_us(2001);
    assert_eq!(offer(now, 200, 1), (Verdict::Held, 0));
    assert_eq!(offer(now, 200, 2), (Verdict::Held, 0));
    // Too large for the top level: those before it come along, and go first.
    assert_eq!(offer(now, 1500, 3), (Verdict::Held, 1));
    for tag in 1..=3 {
        let Release::Packet {
            packet,
            to: Some(7),
        } = gate.release(now)
        else {
            panic!("packet {tag} may leave");
        };
        assert_eq!((packet.tag, packet.dscp), (tag, 1));
    }
    assert_eq!(gate.release(now), Release::Idle);
}

#[test]
fn what_cannot_be_chosen_by_is_refused() {
    let with = |levels: &[u64]| LimiterConfig {
        levels: levels.iter().copied().map(Bytes::new).collect(),
        ..limits(Excess::Hold)
    };
    let config = config(ControlConnections::Apart);
    let refused = |limits: &LimiterConfig, hold| config.build(limits, hold).unwrap_err();
    let error = refused(&with(&[256, 256, 1000]), None);
    assert_eq!(error, AutomaticError::NotIncreasing(1));
    let error = refused(&with(&[256, 1000, 10_000]), Some(Bytes::new(7999)));
    assert!(matches!(error, AutomaticError::HoldLimit { level: 1, .. }));
    let impatient = AutomaticConfig {
        patience: 0,
        ..config
    };
    let error = impatient.build(&with(&[1]), None).unwrap_err();
    assert_eq!(error, AutomaticError::NoPatience);
}

/// Packets with the time since the one before in us.
fn traffic() -> impl Strategy<Value = Vec<(u64, u32, u64, u32)>> {
    let pause = prop_oneof![8 => 0..20_u64, 1 => 0..5000_u64];
    let size = prop_oneof![40..=256_u32, 40..=1500_u32];
    prop::collection::vec((pause, 0..3_u32, 0..20_u64, size), 1..3000)
}

proptest! {
    /// Whatever applications do and however many connections they open, they do not get more of a
    /// level than it has, but for what may wait there after each change of somebody's level.
    #[test]
    fn nobody_gains_by_bursts_or_connections(traffic in traffic()) {
        let mut levels = levels(ControlConnections::Apart);
        let mut now = Time::ZERO;
        let mut served = [0_u64; 3];
        for &(pause, application, connection, bytes) in &traffic {
            now += Time::from_us(pause);
            let level = levels.assign(now, application, connection, bytes).level;
            served[usize::from(level)] += u64::from(bytes);
        }
        let changes: u64 = levels.applications().map(|of| of.changes).sum();
        let epochs = now.ps() / EPOCH.ps() + 1;
        for (bytes, allotment) in served.into_iter().zip(LEVELS).take(2) {
            let most = allotment * (epochs + 8 * (changes + 1)) + 1500 * (changes + 1);
            prop_assert!(bytes <= most, "{bytes} of {most} with {changes} changes");
        }
    }

    /// The k-th lift to a level takes 2^(k - 1) times to settle, up to 64 of them; who keeps a level
    /// that long begins anew.
    #[test]
    fn levels_do_not_flap(traffic in traffic()) {
        let mut levels = levels(ControlConnections::Together);
        let mut now = Time::ZERO;
        let mut lifts = [[0_u64; 3]; 3];
        for &(pause, application, connection, bytes) in &traffic {
            now += Time::from_us(pause);
            let before = levels.level(application, connection);
            let level = levels.assign(now, application, connection, bytes).level;
            if level < before {
                lifts[application as usize][usize::from(level)] += 1;
            }
        }
        let settled = now.ps() / SETTLE.ps();
        let most = u64::from((settled + 1).ilog2()).min(7) + 8 * (settled / 64);
        for of_application in lifts {
            for lifts in of_application {
                prop_assert!(lifts <= most, "{lifts} lifts in {settled} times to settle");
            }
        }
    }

    /// A steady application comes to the highest level that holds its throughput, and stays there.
    #[test]
    fn steady_applications_settle(bytes in 40..=1500_u32, interval in 1..40_u64) {
        let mut levels = levels(ControlConnections::Apart);
        let in_epochs = u64::from(bytes) * EPOCH.ps();
        let per_epoch = in_epochs / Time::from_us(interval).ps();
        let fits = |&level: &usize| {
            let packets = LEVELS[level] / u64::from(bytes) * u64::from(bytes);
            in_epochs.div_ceil(Time::from_us(interval).ps()) <= packets
        };
        let exceeds = |&level: &usize| {
            per_epoch > LEVELS[level] + u64::from(bytes) || u64::from(bytes) > LEVELS[level]
        };
        for packet in 0..40_000 / interval {
            levels.assign(Time::from_us(interval * packet), 1, 0, bytes);
        }
        let of = state(&levels, 1);
        let level = usize::from(of.level);
        let best = (0..3).find(fits).unwrap();
        let worst = (0..3).find(|level| !exceeds(level)).unwrap();
        prop_assert!((worst..=best).contains(&level), "{level}, {worst} to {best}");
        if best == worst {
            prop_assert!(of.changes <= 1);
            prop_assert!(of.settled <= SETTLE + Time::from_us(interval));
        }
    }
}
