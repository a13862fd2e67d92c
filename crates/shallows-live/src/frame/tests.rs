use proptest::prelude::*;
use shallows_core::packet::Packet;

use super::*;

/// A TCP segment without data: 02..01 to 02..02, 10.0.0.1:1000 to 10.0.0.2:80, ECT(0), DSCP 5.
fn tcp_v4() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    let mut ip = vec![
        0x45, 0x16, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    let checksum = !sum(&ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(ip);
    frame.extend([0x03, 0xe8, 0, 80]);
    frame.extend([0; 16]);
    frame
}

/// UDP over IPv6 with traffic class `class`.
fn udp_v6(class: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
    frame.extend([0x60 | class >> 4, class << 4 | 0x5, 0, 0, 0, 8, 17, 64]);
    frame.extend([0xfd; 16]);
    frame.extend([0xfe; 16]);
    frame.extend([0x03, 0xe8, 0, 53, 0, 8, 0, 0]);
    frame
}

fn tagged(frame: &[u8], tci: u16) -> Vec<u8> {
    let mut tagged = frame[..12].to_vec();
    tagged.extend([0x81, 0x00]);
    tagged.extend(tci.to_be_bytes());
    tagged.extend(&frame[12..]);
    tagged
}

/// The ones' complement sum of a header; all ones if its checksum is right.
fn sum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn parse(frame: &[u8]) -> Header {
    Header::parse(frame).expect("it has a header")
}

#[test]
fn ipv4_by_hand() {
    let header = parse(&tcp_v4());
    assert_eq!(header.destination.to_string(), "02:00:00:00:00:02");
    assert_eq!(header.source, "02:00:00:00:00:01".parse().unwrap());
    assert_eq!(header.network, Network::Ipv4(14));
    assert_eq!((header.dscp, header.ecn, header.pcp), (5, Ecn::Ect0, None));
}

#[test]
fn ipv6_by_hand() {
    // DSCP 46 and ECT(1).
    let header = parse(&udp_v6(46 << 2 | 1));
    assert_eq!(header.network, Network::Ipv6(14));
    assert_eq!((header.dscp, header.ecn), (46, Ecn::Ect1));
}

#[test]
fn tags_are_looked_through() {
    let once = tagged(&tcp_v4(), 0xa001);
    let header = parse(&once);
    assert_eq!((header.pcp, header.dscp), (Some(5), 5));
    assert_eq!(header.network, Network::Ipv4(18));
    assert_eq!(
        header.flow,
        parse(&tcp_v4()).flow,
        "a tag does not make another flow"
    );
    let twice = tagged(&once, 0x6002);
    assert_eq!(
        (parse(&twice).pcp, parse(&twice).network),
        (Some(3), Network::Ipv4(22))
    );
    let thrice = tagged(&twice, 0);
    assert_eq!(parse(&thrice).network, Network::Malformed(Malformed::Tags));
}

#[test]
fn what_is_wrong_has_a_name() {
    let broken = |change: fn(&mut Vec<u8>)| {
        let mut frame = tcp_v4();
        change(&mut frame);
        match parse(&frame).network {
            Network::Malformed(problem) => problem,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(broken(|f| f.truncate(33)), Malformed::Truncated);
    assert_eq!(broken(|f| f[14] = 0x65), Malformed::Version);
    assert_eq!(broken(|f| f[14] = 0x44), Malformed::HeaderLength);
    assert_eq!(broken(|f| f[17] = 19), Malformed::TotalLength);
    assert_eq!(broken(|f| f[17] = 41), Malformed::TotalLength);
    assert_eq!(Header::parse(&tcp_v4()[..13]), None);
    let mut padded = tcp_v4();
    padded.extend([0; 6]);
    assert_eq!(
        parse(&padded).network,
        Network::Ipv4(14),
        "padding is no error"
    );
}

#[test]
fn flows_are_told_apart_by_direction_and_port_but_not_by_fragment() {
    let original = parse(&tcp_v4()).flow;
    let mut other_port = tcp_v4();
    other_port[35] ^= 1;
    assert_ne!(parse(&other_port).flow, original);
    let mut back = tcp_v4();
    back[26..34].rotate_left(4);
    back[34..38].rotate_left(2);
    assert_ne!(parse(&back).flow, original);
    let fragment = |port: u8, offset: u8| {
        let mut frame = tcp_v4();
        (frame[20], frame[21], frame[35]) = (0x20, offset, port);
        parse(&frame).flow
    };
    assert_eq!(fragment(1, 0), fragment(2, 185));
}

#[test]
fn marking_keeps_the_checksum_right() {
    let mut frame = tcp_v4();
    assert_eq!(sum(&frame[14..34]), 0xffff);
    mark_ce(&mut frame);
    assert_eq!(parse(&frame).ecn, Ecn::Ce);
    assert_eq!(parse(&frame).dscp, 5);
    assert_eq!(sum(&frame[14..34]), 0xffff);
    let mut v6 = udp_v6(0x02);
    mark_ce(&mut v6);
    assert_eq!(v6[15], 0x35, "the flow label is not touched");
    let arp = [0; 42];
    let mut marked = arp;
    mark_ce(&mut marked);
    assert_eq!(marked, arp);
}

#[test]
fn a_handle_has_the_size_of_its_ip_packet() {
    let frame = Frame::new(3, 1514, &parse(&tcp_v4()));
    assert_eq!(
        (frame.size(), frame.dscp(), frame.ecn()),
        (1500, 5, Ecn::Ect0)
    );
}

#[test]
fn a_store_gives_slots_back_and_has_a_limit() {
    let mut store = FrameStore::new(4, 2);
    let first = store.insert(&[1, 2], &[3]).unwrap();
    let second = store.duplicate(first, 3).unwrap();
    assert_eq!(store.bytes(second, 3), [1, 2, 3]);
    assert_eq!(store.insert(&[0], &[]), None);
    store.remove(first);
    assert_eq!(store.insert(&[9; 5], &[]), None, "it is too long");
    assert_eq!(store.insert(&[9], &[]), Some(first));
    assert_eq!(store.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_header_sums_up_after_marking(
        fields in prop::array::uniform20(any::<u8>()), options in 0usize..=10
    ) {
        let mut header = fields.to_vec();
        header.extend(vec![0xab; options * 4]);
        header[0] = 0x45 + options as u8;
        let total = header.len() as u16;
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[10..12].fill(0);
        let checksum = !sum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00]);
        frame.extend(&header);
        mark_ce(&mut frame);
        prop_assert_eq!(parse(&frame).ecn, Ecn::Ce);
        prop_assert_eq!(sum(&frame[14..]), 0xffff);
    }
}

#[test]
fn noise_is_never_fatal() {
    noise(1, 3_000_000);
}

#[test]
#[ignore = "takes as long as it is told to"]
fn fuzz_for_long_frames() {
    shallows_testing::fuzz("frames", |seed| noise(seed, 1_000_000));
}

/// Frames of noise, and good frames with noise in them: nothing panics, and marking changes nothing
/// but the ECN field and the checksum. Answers with their number.
fn noise(seed: u64, count: u64) -> u64 {
    // Zero would stay zero.
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let seeds = [
        tcp_v4(),
        udp_v6(2),
        tagged(&tcp_v4(), 0x2001),
        tagged(&udp_v6(2), 0xe001),
        vec![0xff; 60],
    ];
    for _ in 0..count {
        let mut frame = seeds[(random() % 5) as usize].clone();
        frame.truncate((random() % 90) as usize);
        for _ in 0..random() % 4 {
            let at = random() as usize % frame.len().max(1);
            if let Some(byte) = frame.get_mut(at) {
                *byte = random() as u8;
            }
        }
        let before = frame.clone();
        mark_ce(&mut frame);
        let Some(header) = Header::parse(&frame) else {
            assert!(frame.len() < ETHERNET_HEADER);
            continue;
        };
        let changed: Vec<usize> = (0..frame.len())
            .filter(|&at| before[at] != frame[at])
            .collect();
        let allowed = match header.network {
            Network::Ipv4(at) => vec![at + 1, at + 10, at + 11],
            Network::Ipv6(at) => vec![at + 1],
            _ => vec![],
        };
        assert!(changed.iter().all(|at| allowed.contains(at)), "{before:?}");
    }
    count
}
