use std::time::Duration;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;

fn time(text: &str) -> Time {
    text.parse().expect(text)
}

fn rate(text: &str) -> Rate {
    text.parse().expect(text)
}

fn bytes(text: &str) -> Bytes {
    text.parse().expect(text)
}

fn length(text: &str) -> Length {
    text.parse().expect(text)
}

fn error<T: std::str::FromStr<Err = UnitError>>(text: &str) -> String {
    match text.parse::<T>() {
        Ok(_) => panic!("{text:?} parsed"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn times_parse_exactly() {
    assert_eq!(time("85.2us"), Time::from_ns(85_200));
    assert_eq!(time("85.2 \u{b5}s"), Time::from_ns(85_200));
    assert_eq!(time("85.2\u{3bc}s"), Time::from_ns(85_200));
    assert_eq!(time("0.001ns"), Time::from_ps(1));
    assert_eq!(time("1.5min"), Time::from_secs(90));
    assert_eq!(time("10ms"), Time::from_ms(10));
    assert_eq!(time("0"), Time::ZERO);
    assert_eq!(time("18446744073709551615ps"), Time::MAX);
    assert_eq!(time("0.00000000000005min"), Time::from_ps(3));
    assert_eq!(
        time("0.10000000000000000000000000000000000000000000s"),
        Time::from_ms(100)
    );
}

#[test]
fn times_print_in_the_largest_unit() {
    for text in [
        "85.2us",
        "1.5ms",
        "800ps",
        "0s",
        "90s",
        "1.000000000001s",
        "24.288us",
    ] {
        assert_eq!(time(text).to_string(), text);
    }
    assert_eq!(format!("{:>8}", Time::from_us(3)), "     3us");
}

#[test]
fn time_errors_say_what_to_write() {
    let units = "ps, ns, us, ms, s or min";
    assert_eq!(
        error::<Time>("5"),
        format!(r#""5" is not a time: the unit is missing, use {units}"#)
    );
    assert_eq!(
        error::<Time>("5 sec"),
        format!(r#""5 sec" is not a time: unknown unit "sec", use {units}"#)
    );
    assert_eq!(
        error::<Time>("0.0001ps"),
        r#""0.0001ps" is not a time: it is not a whole number of picoseconds"#
    );
    assert_eq!(
        error::<Time>("-1us"),
        r#""-1us" is not a time: it is negative"#
    );
    assert_eq!(
        error::<Time>("999999999s"),
        r#""999999999s" is not a time: it is too large"#
    );
    for text in ["", "us", ".5us", "5.us", "+5us", " 5us"] {
        assert!(error::<Time>(text).ends_with(r#"write a number and a unit such as "10us""#));
    }
}

#[test]
fn time_arithmetic() {
    let mut t = Time::from_us(3) + Time::from_ns(500);
    t -= Time::from_us(1);
    t += Time::from_ns(500);
    assert_eq!(t, Time::from_us(3));
    assert_eq!(t * 2 / 3, Time::from_us(2));
    assert_eq!(t / Time::from_us(2), 1);
    assert_eq!(t % Time::from_us(2), Time::from_us(1));
    assert_eq!(t.saturating_sub(Time::MAX), Time::ZERO);
    assert_eq!(t.saturating_add(Time::MAX), Time::MAX);
    assert_eq!(t.checked_add(Time::MAX), None);
    assert_eq!(t.checked_add(t), Some(Time::from_us(6)));
    assert_eq!([t, t].into_iter().sum::<Time>(), t * 2);
    // What the clock cannot hold is later than anything, and not early again.
    assert_eq!(t + Time::MAX, Time::MAX);
    assert_eq!(t * u64::MAX, Time::MAX);
    t += Time::MAX;
    assert_eq!(t, Time::MAX);
    t = Time::from_us(3);
    assert!((t.as_secs_f64() - 3e-6).abs() < 1e-18);
}

#[test]
fn durations_are_times_in_whole_nanoseconds() {
    let micros = Duration::from_nanos(2_500);
    assert_eq!(Time::from_duration(micros), Time::from_ns(2_500));
    assert_eq!(Time::from_ps(2_500_999).to_duration(), micros);
    let year = Duration::from_secs(365 * 24 * 3600);
    assert_eq!(Time::from_duration(year), Time::MAX);
}

#[test]
fn rates_parse_in_bits() {
    for text in [
        "10Gbps",
        "10 Gbps",
        "10gbps",
        "10Gb/s",
        "10Gbit/s",
        "0.01Tbps",
        "10000Mbps",
    ] {
        assert_eq!(rate(text), Rate::from_gbps(10), "{text}");
    }
    assert_eq!(rate("7bps"), Rate::from_bps(7));
    assert_eq!(rate("64kbps"), Rate::from_kbps(64));
}

#[test]
fn rates_print_in_the_largest_unit() {
    for text in ["10Gbps", "995Mbps", "1.5Gbps", "7bps", "2.000001Tbps"] {
        assert_eq!(rate(text).to_string(), text);
    }
}

#[test]
fn rate_errors_say_what_to_write() {
    let units = "bps, Kbps, Mbps, Gbps or Tbps";
    assert_eq!(
        error::<Rate>("10Gpbs"),
        format!(r#""10Gpbs" is not a rate: unknown unit "Gpbs", use {units}"#)
    );
    for text in ["10GBps", "10GB/s", "10Bps"] {
        let hint = "a capital B means bytes and a rate counts bits";
        assert_eq!(
            error::<Rate>(text),
            format!("{text:?} is not a rate: {hint}, use {units}")
        );
    }
    for text in ["0Gbps", "0", "0.0bps"] {
        assert_eq!(
            error::<Rate>(text),
            format!("{text:?} is not a rate: it is zero")
        );
    }
    assert!(error::<Rate>("0.5bps").ends_with("not a whole number of bits per second"));
}

#[test]
fn transmission_times_worked_by_hand() {
    let ps = |rate: &str, size| self::rate(rate).transmission_time(Bytes::new(size)).ps();
    assert_eq!(ps("10Gbps", 1500), 1_200_000);
    assert_eq!(ps("3Gbps", 1500), 4_000_000);
    assert_eq!(ps("3Gbps", 1), 2_667);
    // 12,304 bits / 995 Mbps = 12.365829145... us.
    assert_eq!(ps("995Mbps", 1538), 12_365_830);
    // 8e18 bits take 8e8 s, more than the 213 days that fit.
    assert_eq!(ps("10Gbps", 1_000_000_000_000_000_000), u64::MAX);
    assert_eq!(ps("10Gbps", 1_000_000_000_000), 800_000_000_000_000);
    assert_eq!(
        Rate::from_bps(0).transmission_time(Bytes::new(1)),
        Time::MAX
    );
}

#[test]
fn bytes_in_a_span_round_down() {
    assert_eq!(
        rate("10Gbps").bytes_in(Time::from_ps(1_199_999)),
        Bytes::new(1499)
    );
    assert_eq!(
        rate("10Gbps").bytes_in(Time::from_ps(1_200_000)),
        Bytes::new(1500)
    );
    assert_eq!(rate("1Tbps").bytes_in(Time::from_secs(10)), bytes("1.25TB"));
}

#[test]
fn rates_of_bytes_per_span_round_down() {
    let per_packet = |span| Rate::from_bytes_per(Bytes::new(1500), span);
    assert_eq!(per_packet(Time::from_ns(1200)), rate("10Gbps"));
    assert_eq!(per_packet(Time::from_secs(7)), rate("1714bps"));
}

#[test]
fn scaled_rates_round_down() {
    assert_eq!(rate("1Gbps").scaled(995, 1000), rate("995Mbps"));
    assert_eq!(rate("10bps").scaled(2, 3), rate("6bps"));
    assert_eq!(
        rate("10Tbps").scaled(u64::MAX - 1, u64::MAX),
        Rate::from_bps(9_999_999_999_999)
    );
}

#[test]
fn back_to_back_packets_do_not_drift() {
    let mut clock = TransmissionClock::new(rate("3Gbps"));
    let spans = [0; 4].map(|_| clock.advance(Bytes::new(1)).ps());
    // Ends after 2666.67, 5333.33, 8000 and 10666.67 ps, each rounded up.
    assert_eq!(spans, [2667, 2667, 2666, 2667]);
    clock.restart();
    assert_eq!(clock.advance(Bytes::new(1)).ps(), 2667);
    assert_eq!(clock.rate(), rate("3Gbps"));
}

#[test]
fn sizes_parse_in_bytes() {
    assert_eq!(bytes("2.5KB"), Bytes::new(2500));
    assert_eq!(bytes("300kB"), Bytes::from_kb(300));
    assert_eq!(bytes("64KiB"), Bytes::new(65_536));
    assert_eq!(bytes("1.5 MiB"), Bytes::new(3 << 19));
    assert_eq!(bytes("0.000000000931322574615478515625GiB"), Bytes::new(1));
    assert_eq!(bytes("0"), Bytes::ZERO);
}

#[test]
fn sizes_print_in_decimal_units() {
    for text in [
        "0B", "999B", "1KB", "1500B", "2.5KB", "300KB", "65.536KB", "1.25TB",
    ] {
        assert_eq!(bytes(text).to_string(), text);
    }
}

#[test]
fn size_errors_say_what_to_write() {
    let units = "B, KB, MB, GB, TB, KiB, MiB or GiB";
    assert_eq!(
        error::<Bytes>("300"),
        format!(r#""300" is not a size: the unit is missing, use {units}"#)
    );
    assert_eq!(
        error::<Bytes>("300Kb"),
        format!(r#""300Kb" is not a size: a lowercase b means bits, use {units}"#)
    );
    assert_eq!(
        error::<Bytes>("1.0005KB"),
        r#""1.0005KB" is not a size: it is not a whole number of bytes"#
    );
}

#[test]
fn size_arithmetic() {
    let mut b = Bytes::new(1500) * 2 + Bytes::new(40);
    b -= Bytes::new(20);
    b += Bytes::new(10);
    assert_eq!((b - Bytes::new(30)).get(), 3000);
    assert_eq!(b / Bytes::new(1500), 2);
    assert_eq!(Bytes::new(1).saturating_sub(b), Bytes::ZERO);
    assert_eq!([b, b].into_iter().sum::<Bytes>(), b * 2);
}

#[test]
fn lengths_are_bytes_or_packets() {
    let packet = Bytes::new(1500);
    for text in ["65pkts", "65 packets", "65pkt", "65packet"] {
        assert_eq!(length(text), Length::Packets(Packets::new(65)));
    }
    assert_eq!(
        length("65pkts").in_bytes(packet).to_bits(),
        97_500_f64.to_bits()
    );
    assert_eq!(
        length("8.125pkts").in_bytes(packet).to_bits(),
        12_187.5_f64.to_bits()
    );
    assert_eq!(length("8.125pkts").whole_bytes(packet), Bytes::new(12_187));
    assert_eq!(
        length("300KB").in_bytes(packet).to_bits(),
        300_000_f64.to_bits()
    );
    assert_eq!(length("300KB").whole_bytes(packet), Bytes::from_kb(300));
    assert_eq!(length("0"), Length::Bytes(Bytes::ZERO));
    for text in ["65pkts", "1pkt", "0.5pkts", "8.125pkts", "300KB"] {
        assert_eq!(length(text).to_string(), text);
    }
    assert_eq!(
        error::<Length>("65pks"),
        "\"65pks\" is not a length: unknown unit \"pks\", \
         use pkts, B, KB, MB, GB, TB, KiB, MiB or GiB"
    );
    assert!(error::<Length>("0.0000001pkts").ends_with("whole number of millionths of a packet"));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Port {
    rate: Rate,
    delay: Time,
    buffer: Bytes,
    threshold: Length,
}

#[test]
fn toml_holds_units_as_text() {
    let text =
        "rate = \"10Gbps\"\ndelay = \"20.2us\"\nbuffer = \"300KB\"\nthreshold = \"65pkts\"\n";
    let port: Port = toml::from_str(text).unwrap();
    assert_eq!(port.rate, Rate::from_gbps(10));
    assert_eq!(toml::to_string(&port).unwrap(), text);
}

#[test]
fn toml_errors_name_the_quantity() {
    let message = |line: &str| {
        let key = line.split_once(' ').unwrap().0;
        let good = [
            "rate = \"1bps\"",
            "delay = \"0\"",
            "buffer = \"0\"",
            "threshold = \"0\"",
            line,
        ];
        let keep = |l: &&str| *l == line || !l.starts_with(key);
        let text = good.into_iter().filter(keep).collect::<Vec<_>>().join("\n");
        toml::from_str::<Port>(&text)
            .unwrap_err()
            .message()
            .to_owned()
    };
    assert_eq!(
        message("buffer = 300"),
        "expected a size with a unit such as \"300KB\", got 300"
    );
    assert_eq!(
        message("delay = 1.5"),
        "expected a time with a unit such as \"10us\", got 1.5"
    );
    assert!(message("delay = true").ends_with("expected a time with a unit such as \"10us\""));
    assert_eq!(
        message("rate = \"0bps\""),
        "\"0bps\" is not a rate: it is zero"
    );
}

/// Lengths of every magnitude: uniform numbers alone are nearly all huge.
fn magnitudes() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(n, shift)| n >> shift)
}

fn packet_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..10_000_u64, 1 => 0..200_000_000_u64]
}

proptest! {
    #[test]
    fn printed_units_parse_back(n in magnitudes()) {
        prop_assert_eq!(time(&Time::from_ps(n).to_string()), Time::from_ps(n));
        prop_assert_eq!(bytes(&Bytes::new(n).to_string()), Bytes::new(n));
        prop_assert_eq!(rate(&Rate::from_bps(n.max(1)).to_string()), Rate::from_bps(n.max(1)));
        let packets = Length::Packets(Packets::from_millionths(n));
        prop_assert_eq!(length(&packets.to_string()), packets);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|-?[0-9. ]{0,30}[KMGkmgµu]?(i?[bB](ps|/s)?|s|pkts)?") {
        let _ = text.parse::<Time>();
        let _ = text.parse::<Rate>();
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Packets>();
        let _ = text.parse::<Length>();
    }

    #[test]
    fn spans_add_up_to_the_transmission_time(
        bps in prop_oneof![
            1_000_000..20_000_000_000_000_u64,
            prop::sample::select(vec![10_000_000_000, 995_000_000, 3_000_000_000, 8_000_000_000_001]),
        ],
        sizes in prop::collection::vec(packet_bytes(), 1..100),
    ) {
        let rate = Rate::from_bps(bps);
        let mut clock = TransmissionClock::new(rate);
        let (mut sent, mut elapsed) = (Bytes::ZERO, Time::ZERO);
        for size in sizes {
            sent += Bytes::new(size);
            elapsed += clock.advance(Bytes::new(size));
            prop_assert_eq!(elapsed, rate.transmission_time(sent));
        }
        clock.restart();
        prop_assert_eq!(clock.advance(sent), rate.transmission_time(sent));
    }

    #[test]
    fn transmission_time_is_the_least_that_suffices(
        bps in 1..10_000_000_000_000_u64,
        n in 1..1_000_000_000_u64,
    ) {
        let (rate, bytes) = (Rate::from_bps(bps), Bytes::new(n));
        let span = rate.transmission_time(bytes);
        prop_assume!(span < Time::MAX);
        prop_assert!(rate.bytes_in(span) >= bytes);
        prop_assert!(rate.bytes_in(span - Time::from_ps(1)) < bytes);
    }
}
