use proptest::prelude::*;

use super::*;
use crate::units::Bytes;

fn read(text: &str) -> UdpConfig {
    let config: UdpConfig = toml::from_str(text).expect("the text is a stream of datagrams");
    config.validate().unwrap();
    config
}

fn problem(text: &str) -> String {
    let config: UdpConfig = toml::from_str(text).expect("the text is a stream of datagrams");
    config.validate().unwrap_err().to_string()
}

/// Everything that there is to send now, with nothing leaving the host.
fn burst(sender: &mut Sender, now: Time) -> Vec<Datagram> {
    std::iter::from_fn(|| sender.poll_packet(now)).collect()
}

/// The packets of one message.
fn message(sender: &mut Sender, now: Time) -> Vec<Datagram> {
    let mut packets = Vec::new();
    while !packets.last().is_some_and(Datagram::is_last) {
        let packet = sender.poll_packet(now).expect("there is a message to send");
        sender.departs(now, packet.size);
        packets.push(packet);
    }
    packets
}

#[test]
fn defaults_are_valid_and_survive_a_round_trip() {
    assert_eq!(read(""), UdpConfig::default());
    for text in [
        "",
        "send = { constant = { rate = \"1Gbps\" } }",
        "send = { saturating = { size = \"100B\" } }",
        "send = { message = {} }",
        "send = { message = { size = \"10KB\", interval = \"1ms\" } }",
        "jitter = \"50us\"",
    ] {
        let config = read(text);
        assert_eq!(read(&toml::to_string(&config).unwrap()), config, "{text}");
    }
}

#[test]
fn what_cannot_work_is_refused() {
    assert_eq!(
        problem("send = { message = { size = \"64KiB\" } }"),
        "a message of 65.536KB is more than UDP can carry; send.*.size is at most 65507B"
    );
    assert_eq!(
        problem("send = { saturating = { size = \"0B\" } }"),
        "a message of 0B carries nothing; send.*.size must be at least 1B"
    );
    assert_eq!(
        problem("mtu = 68"),
        "an mtu of 68 bytes is not in 576 to 65535"
    );
    assert_eq!(
        problem("send-buffer = \"0B\""),
        "send-buffer must be more than 0B"
    );
    assert_eq!(
        problem("send = { message = { interval = \"0s\" } }"),
        "send.message.interval must be more than 0s; leave it out to send back to back"
    );
    assert_eq!(
        problem("reassembly = { timeout = \"0s\" }"),
        "reassembly.timeout must be more than 0s"
    );
    let error = toml::from_str::<UdpConfig>("send = { constant = { rat = \"1Gbps\" } }");
    let error = error.unwrap_err();
    assert!(
        error.message().contains("available keys: rate, size"),
        "{error}"
    );
}

#[test]
fn fragments_by_hand() {
    let cut = |size: u64, mtu: u32| {
        let config = read(&format!(
            "send = {{ message = {{ size = \"{size}B\" }} }}\nmtu = {mtu}"
        ));
        let packets = message(&mut Sender::new(&config, Time::ZERO), Time::ZERO);
        let last = packets.last().unwrap();
        (
            packets.len(),
            packets[0].size,
            packets[0].len,
            last.size,
            last.len,
        )
    };
    assert_eq!(cut(1_472, 1500), (1, 1500, 1472, 1500, 1472));
    // One byte more: the first fragment has the UDP header, the last a byte behind an IP header.
    assert_eq!(cut(1_473, 1500), (2, 1500, 1472, 21, 1));
    // 65,515 bytes are 44 times 1,480 and 395 more.
    assert_eq!(cut(65_507, 1500), (45, 1500, 1472, 415, 395));
    // 1,479 bytes after the header are cut to 184 times 8.
    assert_eq!(cut(2_000, 1499), (2, 1492, 1464, 556, 536));
    assert_eq!(cut(65_507, 576), (119, 572, 544, 399, 379));
}

#[test]
fn a_constant_rate_is_exact_to_the_picosecond() {
    // 1472 bytes at 3 Gbps take 3,925,333 1/3 ps.
    let config = read("send = { constant = { rate = \"3Gbps\", size = \"1472B\" } }");
    let start = Time::from_us(5);
    let mut sender = Sender::new(&config, start);
    assert_eq!(sender.poll_packet(Time::ZERO), None);
    let mut times = Vec::new();
    for _ in 0..4 {
        let now = sender.deadline().unwrap();
        let packet = sender.poll_packet(now).unwrap();
        assert_eq!((packet.sent_at, packet.size), (now, 1500));
        assert_eq!(sender.poll_packet(now), None);
        sender.departs(now, packet.size);
        times.push((now - start).ps());
    }
    assert_eq!(times, [0, 3_925_334, 7_850_667, 11_776_000]);
}

#[test]
fn a_saturating_sender_fills_its_buffer_and_no_more() {
    let config = read("send-buffer = \"4KB\"");
    let mut sender = Sender::new(&config, Time::ZERO);
    assert_eq!(sender.deadline(), Some(Time::ZERO));
    // 3,000 bytes leave room, 4,500 do not.
    assert_eq!(burst(&mut sender, Time::ZERO).len(), 3);
    assert_eq!((sender.in_host(), sender.deadline()), (4_500, None));
    sender.departs(Time::from_us(12), 1500);
    assert_eq!(sender.deadline(), Some(Time::from_us(12)));
    assert_eq!(burst(&mut sender, Time::from_us(11)), []);
    let more = burst(&mut sender, Time::from_us(12));
    assert_eq!(more.len(), 1);
    assert_eq!((more[0].message, more[0].sent_at), (3, Time::from_us(12)));
    sender.stop();
    sender.departs(Time::from_us(24), 1500);
    assert_eq!(
        (sender.deadline(), sender.poll_packet(Time::from_us(24))),
        (None, None)
    );
    assert_eq!(sender.stats().datagrams.bytes, 6_000);
}

#[test]
fn messages_due_while_the_buffer_is_full_are_refused_and_the_period_is_kept() {
    let config =
        read("send = { message = { size = \"3KB\", interval = \"10us\" } }\nsend-buffer = \"3KB\"");
    let mut sender = Sender::new(&config, Time::ZERO);
    assert_eq!(burst(&mut sender, Time::ZERO).len(), 3);
    assert_eq!(sender.poll_packet(Time::from_us(10)), None);
    assert_eq!(sender.deadline(), Some(Time::from_us(20)));
    assert_eq!((sender.stats().messages, sender.stats().refused), (1, 1));
    sender.departs(Time::from_us(12), 1500);
    let second = burst(&mut sender, Time::from_us(20));
    assert_eq!((second.len(), second[0].message), (3, 1));
}

#[test]
fn a_stop_lets_the_current_message_end() {
    let config = read("send = { message = { size = \"3KB\" } }");
    let mut sender = Sender::new(&config, Time::ZERO);
    sender.poll_packet(Time::ZERO).unwrap();
    sender.stop();
    assert_eq!(burst(&mut sender, Time::ZERO).len(), 2);
}

#[test]
fn one_lost_fragment_loses_the_message() {
    let config = read("send = { message = { size = \"64KB\" } }");
    let mut sender = Sender::new(&config, Time::ZERO);
    let mut receiver = Receiver::new(&config);
    let now = Time::from_us(600);
    let mut delivered = Vec::new();
    for number in 0..3 {
        let packets = message(&mut sender, Time::from_us(100));
        // The second message lacks its 30th fragment.
        let arriving = packets.iter().filter(|p| number != 1 || p.fragment != 29);
        delivered.extend(arriving.filter_map(|packet| receiver.handle_packet(now, packet)));
    }
    let numbers: Vec<u64> = delivered.iter().map(|delivery| delivery.message).collect();
    assert_eq!(numbers, [0, 2]);
    assert_eq!(delivered[0].delay, Time::from_us(500));
    let stats = receiver.stats();
    assert_eq!(
        (stats.delivered.packets, stats.delivered.bytes),
        (2, 128_000)
    );
    // 44 fragments a message: 98% of the link's bytes came, and two thirds of the messages.
    assert_eq!(stats.datagrams.packets, 3 * 44 - 1);
    assert_eq!((receiver.waiting(), receiver.lost()), (1, 0));
}

#[test]
fn a_message_is_given_up_after_its_time_or_for_memory() {
    let config = read(
        "send = { message = { size = \"3KB\" } }\n\
         reassembly = { timeout = \"1ms\", memory = \"6KB\" }",
    );
    let mut sender = Sender::new(&config, Time::ZERO);
    let mut receiver = Receiver::new(&config);
    let firsts: Vec<Datagram> = (0..4)
        .map(|_| message(&mut sender, Time::ZERO)[0])
        .collect();
    receiver.handle_packet(Time::ZERO, &firsts[0]);
    receiver.handle_packet(Time::from_us(500), &firsts[1]);
    // Two fit: the oldest goes.
    receiver.handle_packet(Time::from_us(600), &firsts[2]);
    assert_eq!((receiver.stats().evicted, receiver.waiting()), (1, 2));
    // At 1.5 ms the second one's time is over.
    receiver.handle_packet(Time::from_us(1_500), &firsts[3]);
    let stats = receiver.stats();
    assert_eq!(
        (stats.evicted, stats.expired, receiver.waiting()),
        (1, 1, 2)
    );
    assert_eq!(receiver.lost(), 2);
}

/// Send times, in microseconds, of messages whose packets leave the host at once.
fn departures(text: &str, seed: u64) -> Vec<f64> {
    let config = read(text);
    let coin = crate::random::Coin::new(seed, 0);
    let mut sender = Sender::new(&config, Time::ZERO).with_jitter(&config, coin);
    let mut now = Time::ZERO;
    let mut times = Vec::new();
    while times.len() < 100 {
        if let Some(packet) = sender.poll_packet(now) {
            sender.departs(now, packet.size);
            times.push(now.as_secs_f64() * 1e6);
        } else {
            now = sender.deadline().expect("it goes on").max(now);
        }
    }
    times
}

#[test]
fn jitter_delays_messages_at_random() {
    let periodic =
        "send = { message = { size = \"1KB\", interval = \"100us\" } }\njitter = \"40us\"";
    let times = departures(periodic, 1);
    for (number, time) in times.iter().enumerate() {
        let late = time - 100.0 * number as f64;
        assert!(
            (0.0..40.0).contains(&late),
            "message {number} is {late} us late"
        );
    }
    assert_eq!(times, departures(periodic, 1));
    assert_ne!(times, departures(periodic, 2));
    // Back to back a delay comes after every message: 20 us in the mean.
    let last = departures(
        "send = { message = { size = \"1KB\" } }\njitter = \"40us\"",
        1,
    )[99];
    assert!((1_600.0..2_400.0).contains(&last), "{last}");
}

#[test]
fn what_never_came_is_lost_once_later_messages_are_there() {
    let config = read("");
    let mut sender = Sender::new(&config, Time::ZERO);
    let mut receiver = Receiver::new(&config);
    let packets: Vec<Datagram> = (0..5)
        .flat_map(|_| message(&mut sender, Time::ZERO))
        .collect();
    for index in [0, 3] {
        receiver.handle_packet(Time::ZERO, &packets[index]);
    }
    assert_eq!(receiver.lost(), 2);
    // One was only late.
    receiver.handle_packet(Time::ZERO, &packets[1]);
    assert_eq!(receiver.lost(), 1);
}

proptest! {
    #[test]
    fn fragments_carry_the_message_within_the_mtu(
        size in 1..=MAX_MESSAGE,
        mtu in MIN_MTU..=65_535_u32,
    ) {
        let mut config = UdpConfig { mtu, ..UdpConfig::default() };
        config.send = Pattern::Message { size: Bytes::new(size), interval: None };
        config.validate().unwrap();
        let packets = message(&mut Sender::new(&config, Time::ZERO), Time::ZERO);
        prop_assert_eq!(packets.iter().map(|p| u64::from(p.len)).sum::<u64>(), size);
        let headers = packets.len() as u64 * u64::from(IP_HEADER) + u64::from(UDP_HEADER);
        let sizes: u64 = packets.iter().map(|p| u64::from(p.size)).sum();
        prop_assert_eq!(sizes, size + headers);
        for (index, packet) in packets.iter().enumerate() {
            prop_assert_eq!(usize::from(packet.fragment), index);
            prop_assert!(packet.size <= mtu);
            prop_assert!(packet.is_last() || (packet.size - IP_HEADER).is_multiple_of(8));
        }
    }

    #[test]
    fn exactly_the_messages_without_loss_are_delivered_in_any_order(
        (packets, lost) in (1..8_usize, 1..40_000_u64).prop_flat_map(|(count, size)| {
            let config = UdpConfig {
                send: Pattern::Message { size: Bytes::new(size), interval: None },
                ..UdpConfig::default()
            };
            let mut sender = Sender::new(&config, Time::ZERO);
            let packets: Vec<Datagram> =
                (0..count).flat_map(|_| message(&mut sender, Time::ZERO)).collect();
            let losses = prop::collection::vec(prop::bool::weighted(0.03), packets.len());
            (Just(packets).prop_shuffle(), losses)
        }),
    ) {
        let mut receiver = Receiver::new(&UdpConfig::default());
        let mut damaged: Vec<u64> = Vec::new();
        let mut delivered: Vec<u64> = Vec::new();
        for (packet, lost) in packets.iter().zip(lost) {
            if lost {
                damaged.push(packet.message);
            } else {
                delivered.extend(receiver.handle_packet(Time::ZERO, packet).map(|d| d.message));
            }
        }
        let sent = packets.iter().map(|p| p.message).max().unwrap() + 1;
        let mut expected: Vec<u64> = (0..sent).filter(|n| !damaged.contains(n)).collect();
        delivered.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(delivered, expected);
    }
}

/// A burst of 4000 B is three messages of 1472 B; the second waits for room.
#[test]
fn bursts_are_as_fast_as_there_is_room() {
    let config = read(
        "send-buffer = \"1500B\"
        send = { burst = { bytes = \"4000B\", interval = \"1ms\" } }",
    );
    let mut sender = Sender::new(&config, Time::ZERO);
    for start in [0, 1000, 2000].map(Time::from_us) {
        assert_eq!(sender.deadline().map(|at| at.max(start)), Some(start));
        for number in 0..3 {
            let now = start + Time::from_us(12) * number;
            assert_eq!(burst(&mut sender, now).len(), 1, "{now}");
            if number < 2 {
                assert_eq!(sender.deadline(), None, "there is no room");
            }
            sender.departs(now + Time::from_us(12), 1500);
        }
        assert_eq!(burst(&mut sender, start + Time::from_us(40)), []);
    }
    assert_eq!(sender.stats().messages, 9);
    assert_eq!(sender.stats().refused, 0);
    let text = |text: &str| problem(&format!("send = {{ burst = {{ {text} }} }}"));
    assert_eq!(
        text("bytes = \"0B\", interval = \"1s\""),
        "send.burst.bytes must be more than 0B"
    );
    assert_eq!(
        text("bytes = \"1B\", interval = \"0s\""),
        "send.burst.interval must be more than 0s"
    );
}
