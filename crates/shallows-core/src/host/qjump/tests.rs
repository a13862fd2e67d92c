use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::tally::Tally;
use crate::units::{Bytes, Rate, Time};

fn network(hosts: u32, packet: &str, rate: &str, processing: &str) -> Network {
    Network {
        hosts,
        packet: packet.parse().unwrap(),
        rate: rate.parse().unwrap(),
        processing: processing.parse().unwrap(),
    }
}

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

fn level(index: u8) -> Level {
    Level::new(index).unwrap()
}

#[test]
fn a_thousand_hosts_are_bounded_by_500_us() {
    let network = network(1000, "256B", "10Gbps", "4us");
    assert_eq!(network.worst_case_delay(), time("208.8us"));
    assert_eq!(network.network_epoch(Phase::Synchronized), time("208.8us"));
    assert_eq!(network.network_epoch(Phase::Mesochronous), time("413.6us"));
    // §3.2: "less than 5Mb/s per host"; 2048 bits / 413.6 us, rounded down.
    assert_eq!(
        network.guaranteed_rate(Phase::Mesochronous),
        Rate::from_bps(4_951_644)
    );
    // §3.2: with f = 2, 500 of the 1,000 hosts are assumed to send.
    assert_eq!(network.assumed_senders(2.0).to_bits(), 500_f64.to_bits());
    assert_eq!(network.validate(), Ok(()));
}

#[test]
fn without_processing_delay_the_guaranteed_rate_is_r_over_2n() {
    let network = network(1000, "256B", "10Gbps", "0");
    assert_eq!(network.worst_case_delay(), time("204.8us"));
    assert_eq!(network.network_epoch(Phase::Mesochronous), time("409.6us"));
    assert_eq!(
        network.guaranteed_rate(Phase::Mesochronous),
        Rate::from_mbps(5)
    );
    assert_eq!(
        network.guaranteed_rate(Phase::Synchronized),
        Rate::from_mbps(10)
    );
}

#[test]
fn memcached_at_half_the_link_has_factor_6() {
    let network = network(12, "256B", "10Gbps", "0");
    let half = Rate::from_gbps(5);
    assert_eq!(network.factor_for_rate(half).to_bits(), 6_f64.to_bits());
    assert_eq!(network.rate_for_factor(6.0), half);
    assert_eq!(network.bytes_per_epoch(6.0), Bytes::new(1536));
    // The limiter gives that rate only where epochs are not doubled.
    assert_eq!(network.level_rate(6.0, Phase::Synchronized), half);
    assert_eq!(
        network.level_rate(6.0, Phase::Mesochronous),
        half.scaled(1, 2)
    );
}

#[test]
fn epochs_of_the_figures() {
    // Fig. 11: 60 guests, three switches of 4 us.
    assert_eq!(
        network(60, "256B", "10Gbps", "12us").worst_case_delay(),
        time("24.288us")
    );
    // Fig. 9: P = 9 kB and n = 144.
    assert_eq!(
        network(144, "9KB", "10Gbps", "0").worst_case_delay(),
        time("1.0368ms")
    );
}

#[test]
fn delays_round_up_and_rates_round_down() {
    let network = network(1, "1B", "3Gbps", "0");
    assert_eq!(network.worst_case_delay(), Time::from_ps(2667));
    // 16 bits / 5334 ps is less than 3 Gbps.
    assert_eq!(
        network.guaranteed_rate(Phase::Mesochronous),
        Rate::from_bps(1_499_812_523)
    );
    assert_eq!(network.bytes_per_epoch(2.9), Bytes::new(2));
}

#[test]
fn senseless_networks_are_refused() {
    let good = network(144, "9KB", "10Gbps", "0");
    assert_eq!(
        Network { hosts: 0, ..good }.validate(),
        Err(NetworkError::NoHosts)
    );
    assert_eq!(
        Network {
            packet: Bytes::ZERO,
            ..good
        }
        .validate(),
        Err(NetworkError::EmptyPacket)
    );
    assert_eq!(
        network(1_000_000, "1TB", "1bps", "0")
            .validate()
            .unwrap_err()
            .to_string(),
        "1000000 packets of 1TB at 1bps take longer than time can count"
    );
}

fn config(epoch: &str, levels: &[u64]) -> LimiterConfig {
    LimiterConfig {
        epoch: time(epoch),
        levels: levels.iter().copied().map(Bytes::new).collect(),
        ..LimiterConfig::default()
    }
}

#[test]
fn senseless_limits_are_refused() {
    let message = |epoch, levels: &[u64]| {
        Limiter::new(&config(epoch, levels), Time::ZERO)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(message("0", &[1]), "an epoch must last longer than 0s");
    assert_eq!(message("1us", &[]), "a host has 1 to 8 levels, not 0");
    assert_eq!(message("1us", &[1; 9]), "a host has 1 to 8 levels, not 9");
    assert_eq!(message("1us", &[1, 0]), "level 1 may send nothing");
    assert_eq!(Level::new(8), None);
}

#[test]
fn toml_defaults_to_the_paper() {
    let config: LimiterConfig =
        toml::from_str("epoch = \"100us\"\nlevels = [\"128KB\", \"128B\"]").unwrap();
    assert_eq!(config, self::config("100us", &[128_000, 128]));
    let module = LimiterConfig {
        clock: EpochClock::Reanchored,
        ..config
    };
    let text = toml::to_string(&module).unwrap();
    assert!(text.contains("clock = \"reanchored\"\n"), "{text}");
    assert_eq!(toml::from_str::<LimiterConfig>(&text).unwrap(), module);
}

#[test]
fn a_level_sends_its_bytes_once_per_epoch() {
    let mut limiter = Limiter::new(&config("10us", &[300]), time("5us")).unwrap();
    let mut admit = |at: &str, bytes| limiter.admit(time(at), level(0), bytes);
    // Before the first epoch nothing may be sent.
    assert_eq!(admit("4us", 1), Admission::Drop);
    assert_eq!(admit("5us", 200), Admission::Pass);
    assert_eq!(admit("6us", 101), Admission::Drop);
    assert_eq!(admit("7us", 100), Admission::Pass);
    assert_eq!(admit("14.999999us", 1), Admission::Drop);
    // The epoch is half-open: its end is the beginning of the next.
    assert_eq!(admit("15us", 300), Admission::Pass);
    // After idle epochs there is one refill, and the grid stays where it was.
    assert_eq!(admit("71us", 300), Admission::Pass);
    assert_eq!(admit("71us", 1), Admission::Drop);
    assert_eq!(admit("75us", 300), Admission::Pass);
    // More than the allotment never passes.
    assert_eq!(admit("85us", 301), Admission::Drop);
    let &LevelCounters {
        passed,
        dropped,
        held,
    } = limiter.counters(level(0));
    assert_eq!(
        passed,
        Tally {
            packets: 5,
            bytes: 1200
        }
    );
    assert_eq!(
        dropped,
        Tally {
            packets: 5,
            bytes: 405
        }
    );
    assert_eq!(held, Tally::default());
}

#[test]
fn reanchored_epochs_begin_with_a_packet() {
    let config = LimiterConfig {
        clock: EpochClock::Reanchored,
        ..config("10us", &[300])
    };
    let mut limiter = Limiter::new(&config, Time::ZERO).unwrap();
    let mut admit = |at: &str| limiter.admit(time(at), level(0), 300);
    assert_eq!(admit("4us"), Admission::Pass);
    assert_eq!(admit("13us"), Admission::Drop);
    assert_eq!(admit("14us"), Admission::Pass);
    assert_eq!(admit("71us"), Admission::Pass);
    assert_eq!(admit("80us"), Admission::Drop);
    assert_eq!(admit("81us"), Admission::Pass);
}

#[test]
fn held_packets_wait_for_the_next_epoch() {
    let config = LimiterConfig {
        excess: Excess::Hold,
        ..config("10us", &[300])
    };
    let mut limiter = Limiter::new(&config, Time::ZERO).unwrap();
    assert_eq!(limiter.admit(time("3us"), level(0), 200), Admission::Pass);
    assert_eq!(
        limiter.admit(time("4us"), level(0), 200),
        Admission::HoldUntil(time("10us"))
    );
    assert_eq!(limiter.admit(time("5us"), level(0), 301), Admission::Drop);
    // A level that is not configured has no epoch to wait for.
    assert_eq!(limiter.admit(time("5us"), level(7), 1), Admission::Drop);
    assert_eq!(
        limiter.counters(level(0)).held,
        Tally {
            packets: 1,
            bytes: 200
        }
    );
}

#[test]
fn the_end_of_time_does_not_overflow() {
    for clock in [EpochClock::Grid, EpochClock::Reanchored] {
        let config = LimiterConfig {
            clock,
            ..config("10us", &[300])
        };
        let mut limiter = Limiter::new(&config, Time::ZERO).unwrap();
        let late = Time::MAX - Time::from_ps(1);
        assert_eq!(limiter.admit(late, level(0), 300), Admission::Pass);
        assert_eq!(limiter.admit(late, level(0), 300), Admission::Drop);
    }
}

const EPOCH: Time = Time::from_ns(100);
const ALLOTMENTS: [u64; 3] = [64, 1500, 9000];

#[derive(Debug, Clone)]
struct Offer {
    wait: Time,
    level: u8,
    bytes: u32,
}

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    // Bursts, packets on the very edge of an epoch, and long idle times.
    let wait = prop_oneof![
        4 => Just(Time::ZERO),
        4 => (0..60_000_u64).prop_map(Time::from_ps),
        2 => (0..3_u64).prop_map(|n| EPOCH * n),
        1 => (0..10_000_000_u64).prop_map(Time::from_ps),
    ];
    // Level 3 is not configured.
    let offer = (
        wait,
        0..4_u8,
        prop_oneof![0..100_u32, 0..2000_u32, 0..10_000_u32],
    )
        .prop_map(|(wait, level, bytes)| Offer { wait, level, bytes });
    prop::collection::vec(offer, 0..300)
}

fn clocks() -> impl Strategy<Value = EpochClock> {
    prop_oneof![Just(EpochClock::Grid), Just(EpochClock::Reanchored)]
}

fn excesses() -> impl Strategy<Value = Excess> {
    prop_oneof![Just(Excess::Drop), Just(Excess::Hold)]
}

/// The beginning of the epoch of `now`, where the epoch of the packet before began at `last`.
fn epoch_begin(clock: EpochClock, start: Time, last: Option<Time>, now: Time) -> Time {
    match (clock, last) {
        (EpochClock::Grid, _) => start + EPOCH * ((now - start) / EPOCH),
        (EpochClock::Reanchored, Some(last)) if now < last + EPOCH => last,
        (EpochClock::Reanchored, _) => now,
    }
}

/// One level by definition: remembers the epoch and all it has sent in it.
struct NaiveLevel {
    allotment: u64,
    epoch: Option<Time>,
    sent: Vec<u32>,
}

impl NaiveLevel {
    fn new(allotment: u64) -> Self {
        Self {
            allotment,
            epoch: None,
            sent: Vec::new(),
        }
    }

    fn admit(&mut self, now: Time, bytes: u32, config: &LimiterConfig, start: Time) -> Admission {
        let begin = epoch_begin(config.clock, start, self.epoch, now);
        if self.epoch != Some(begin) {
            self.epoch = Some(begin);
            self.sent.clear();
        }
        let sent: u64 = self.sent.iter().copied().map(u64::from).sum();
        if sent + u64::from(bytes) <= self.allotment {
            self.sent.push(bytes);
            Admission::Pass
        } else if config.excess == Excess::Hold && u64::from(bytes) <= self.allotment {
            Admission::HoldUntil(begin + EPOCH)
        } else {
            Admission::Drop
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_a_naive_model(
        clock in clocks(),
        excess in excesses(),
        start in (0..1_000_000_u64).prop_map(Time::from_ps),
        offers in offers(),
    ) {
        let config = LimiterConfig { excess, clock, ..config("100ns", &ALLOTMENTS) };
        let mut limiter = Limiter::new(&config, start).unwrap();
        let mut model = [64, 1500, 9000, 0].map(NaiveLevel::new);
        let mut now = start;
        let mut offered = Tally::default();
        for offer in offers {
            now += offer.wait;
            let expected = model[usize::from(offer.level)].admit(now, offer.bytes, &config, start);
            prop_assert_eq!(limiter.admit(now, level(offer.level), offer.bytes), expected);
            offered.packets += 1;
            offered.bytes += u64::from(offer.bytes);
        }
        let mut answered = Tally::default();
        for index in 0..4 {
            let &LevelCounters { passed, dropped, held } = limiter.counters(level(index));
            answered.packets += passed.packets + dropped.packets + held.packets;
            answered.bytes += passed.bytes + dropped.bytes + held.bytes;
        }
        prop_assert_eq!(answered, offered);
    }

    #[test]
    fn no_epoch_passes_more_than_its_bytes(clock in clocks(), offers in offers()) {
        let config = LimiterConfig { clock, ..config("100ns", &ALLOTMENTS) };
        let mut limiter = Limiter::new(&config, Time::ZERO).unwrap();
        let mut epochs = [None; 4];
        let mut passed = HashMap::<_, u64>::new();
        let mut now = Time::ZERO;
        for Offer { wait, level, bytes } in offers {
            now += wait;
            let begin = epoch_begin(clock, Time::ZERO, epochs[usize::from(level)], now);
            epochs[usize::from(level)] = Some(begin);
            if limiter.admit(now, self::level(level), bytes) == Admission::Pass {
                *passed.entry((level, begin)).or_default() += u64::from(bytes);
            }
        }
        for ((level, _), bytes) in passed {
            prop_assert!(bytes <= ALLOTMENTS.get(usize::from(level)).copied().unwrap_or(0));
        }
    }

    /// The case for which eq. 2 doubles the epoch: the end of one epoch and the beginning of the
    /// next.
    #[test]
    fn any_span_of_one_epoch_passes_at_most_two_allotments(clock in clocks(), offers in offers()) {
        let config = LimiterConfig { clock, ..config("100ns", &ALLOTMENTS) };
        let mut limiter = Limiter::new(&config, Time::ZERO).unwrap();
        let mut passed: [Vec<(Time, u64)>; 3] = Default::default();
        let mut now = Time::ZERO;
        for offer in offers.into_iter().filter(|offer| offer.level < 3) {
            now += offer.wait;
            if limiter.admit(now, level(offer.level), offer.bytes) == Admission::Pass {
                passed[usize::from(offer.level)].push((now, u64::from(offer.bytes)));
            }
        }
        for (passed, allotment) in passed.iter().zip(ALLOTMENTS) {
            for &(from, _) in passed {
                let span = passed.iter().filter(|(at, _)| (from..from + EPOCH).contains(at));
                prop_assert!(span.map(|(_, bytes)| bytes).sum::<u64>() <= 2 * allotment);
            }
        }
    }

    #[test]
    fn idle_time_grants_one_epoch(
        clock in clocks(),
        idle in (0..1_000_000_000_u64).prop_map(Time::from_ps),
        sizes in prop::collection::vec(1..1500_u32, 1..50),
    ) {
        let config = LimiterConfig { clock, ..config("100ns", &ALLOTMENTS) };
        let mut limiter = Limiter::new(&config, Time::ZERO).unwrap();
        limiter.admit(Time::ZERO, level(1), 1);
        let now = EPOCH + idle;
        let passes = sizes.iter().filter(|&&n| limiter.admit(now, level(1), n) == Admission::Pass);
        prop_assert!(passes.copied().map(u64::from).sum::<u64>() <= 1500);
    }

    #[test]
    fn held_packets_pass_when_told(clock in clocks(), offers in offers()) {
        let config = LimiterConfig { clock, excess: Excess::Hold, ..config("100ns", &ALLOTMENTS) };
        let mut limiter = Limiter::new(&config, Time::ZERO).unwrap();
        let mut now = Time::ZERO;
        for Offer { wait, level, bytes } in offers {
            now += wait;
            let level = self::level(level);
            if let Admission::HoldUntil(later) = limiter.admit(now, level, bytes) {
                prop_assert!(later > now);
                prop_assert_eq!(limiter.clone().admit(later, level, bytes), Admission::Pass);
                let too_early = limiter.clone().admit(later - Time::from_ps(1), level, bytes);
                prop_assert_eq!(too_early, Admission::HoldUntil(later));
            }
        }
    }

    #[test]
    fn levels_are_independent(clock in clocks(), excess in excesses(), offers in offers()) {
        let config = LimiterConfig { excess, clock, ..config("100ns", &ALLOTMENTS) };
        let mut together = Limiter::new(&config, Time::ZERO).unwrap();
        let mut alone = [(); 4].map(|()| together.clone());
        let mut now = Time::ZERO;
        for Offer { wait, level, bytes } in offers {
            now += wait;
            prop_assert_eq!(
                together.admit(now, self::level(level), bytes),
                alone[usize::from(level)].admit(now, self::level(level), bytes)
            );
        }
    }
}
