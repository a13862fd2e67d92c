//! Traffic of real networks, read into workloads.

mod build;
mod fuzz;

use build::{DATA, Packet, Record, SYN};
use shallows_core::units::Rate;
use shallows_operate::traffic::{Format, HostMap, IDLE, ServiceMap, Traffic, Workload, read};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];

fn data(us: u64, sequence: u32, payload: u16) -> Packet {
    Packet {
        us,
        src: A,
        dst: B,
        ports: (40_000, 80),
        dscp: 26,
        tcp: Some((DATA, sequence)),
        payload,
    }
}

fn back(packet: Packet) -> Packet {
    Packet {
        src: packet.dst,
        dst: packet.src,
        ports: (packet.ports.1, packet.ports.0),
        ..packet
    }
}

fn traffic(bytes: &[u8]) -> Traffic {
    read(bytes, None, IDLE).expect("it can be read")
}

/// Start in nanoseconds, last byte of the sender's address, and bytes of every conversation.
fn seen(traffic: &Traffic) -> Vec<(u64, String, u64)> {
    let conversations = traffic.conversations.iter();
    conversations
        .map(|of| (of.start, of.tuple.src.to_string(), of.bytes))
        .collect()
}

fn workload(traffic: &Traffic) -> Workload {
    let hosts = HostMap::of_addresses(&traffic.conversations);
    Workload::new(traffic, &hosts, &ServiceMap::default()).expect("there are flows")
}

#[test]
fn bytes_that_are_sent_again_count_once() {
    let packets = [
        data(5, 100, 0),
        data(10, 100, 1000),
        data(20, 1100, 1000),
        data(30, 100, 1000),
        data(40, 2100, 500),
    ];
    for bytes in [
        build::pcapng(&build::capture(&packets)),
        build::pcap(&build::capture(&packets)),
    ] {
        let traffic = traffic(&bytes);
        assert_eq!(seen(&traffic), [(10_000, "10.0.0.1".to_owned(), 2500)]);
        assert_eq!(traffic.conversations[0].dscp, 26);
    }
}

#[test]
fn sequence_numbers_wrap() {
    let near = u32::MAX - 499;
    let packets = [data(1, near, 1000), data(2, 500, 1000), data(3, near, 1000)];
    let traffic = traffic(&build::pcapng(&build::capture(&packets)));
    assert_eq!(seen(&traffic)[0].2, 2000);
}

#[test]
fn silence_answers_and_syns_end_a_flow() {
    let mut packets = vec![data(1, 0, 100), back(data(2, 0, 900)), data(3, 100, 100)];
    packets.push(data(2_000_000, 200, 50));
    packets.push(Packet {
        tcp: Some((SYN, 9)),
        payload: 0,
        ..data(2_000_001, 9, 0)
    });
    packets.push(data(2_000_002, 10, 70));
    let traffic = traffic(&build::pcapng(&build::capture(&packets)));
    let bytes: Vec<u64> = seen(&traffic)
        .into_iter()
        .map(|(_, _, bytes)| bytes)
        .collect();
    assert_eq!(bytes, [100, 900, 100, 50, 70]);
}

const RECORDS: [Record; 3] = [
    (2_000, A, B, 11211, 26 << 2, 15_400, 11),
    (2_500, B, A, 40_000, 0, 520, 10),
    (3_000, B, A, 443, 0, 3_000, 2),
];

#[test]
fn records_of_ipfix_and_netflow_lose_their_headers() {
    let traffic = traffic(&build::ipfix(&RECORDS, None));
    // 11 packets with 40 bytes of headers; the second record only acknowledges.
    let expected = [
        (2_000_000_000, "10.0.0.1".to_owned(), 15_400 - 440),
        (3_000_000_000, "10.0.0.2".to_owned(), 3_000 - 80),
    ];
    assert_eq!(seen(&traffic), expected);
    assert_eq!(traffic.sampling, 1);
    let udp = read(&build::v9(&RECORDS), Some(Format::Netflow), IDLE).unwrap();
    // The exporter was up since 990 s; UDP has 28 bytes of headers.
    assert_eq!(
        seen(&udp)[0],
        (992_000_000_000, "10.0.0.1".to_owned(), 15_400 - 308)
    );
    assert_eq!(udp.conversations[0].dscp, 26);
}

#[test]
fn sampled_records_give_loads_and_no_flows() {
    let traffic = traffic(&build::ipfix(&RECORDS, Some(1000)));
    assert_eq!(traffic.sampling, 1000);
    let workload = workload(&traffic);
    assert_eq!(workload.flows[0].bytes, 1000 * (15_400 - 440));
    let problem = workload.whole_flows().unwrap_err().to_string();
    assert!(
        problem.starts_with("one packet in 1000 was sampled"),
        "{problem}"
    );
}

#[test]
fn samples_of_sflow_are_multiplied() {
    let packets = [data(0, 0, 1000), data(0, 1000, 1000)];
    let datagram = build::sflow(&packets, 512);
    let alone = traffic(&datagram);
    assert_eq!(
        seen(&alone),
        [(5_000_000_000, "10.0.0.1".to_owned(), 512 * 2000)]
    );
    assert_eq!(workload(&alone).flows[0].bytes, 512 * 2000);
    assert!(workload(&alone).whole_flows().is_err());
    // In a capture of the collector's datagrams, times are those of the capture.
    let mut frame = build::frame(&Packet {
        tcp: None,
        payload: datagram.len() as u16,
        ..data(0, 0, 0)
    });
    frame.extend(&datagram);
    let capture = build::pcapng(&[(7, frame)]);
    let captured = read(&capture, Some(Format::Sflow), IDLE).unwrap();
    assert_eq!(
        seen(&captured),
        [(7_000, "10.0.0.1".to_owned(), 512 * 2000)]
    );
}

#[test]
fn connections_of_zeek_have_two_directions() {
    let expected = [
        (1_000_000_001_000, "10.0.0.1".to_owned(), 120),
        (1_000_000_001_000, "10.0.0.2".to_owned(), 64_000),
    ];
    let tsv = traffic(build::CONN_LOG.as_bytes());
    assert_eq!(seen(&tsv)[..2], expected);
    assert_eq!(tsv.conversations.len(), 3);
    assert_eq!(tsv.notes.len(), 1);
    assert_eq!(seen(&traffic(build::CONN_JSON.as_bytes())), expected);
}

#[test]
fn snapshots_of_ss_count_what_came_between_them() {
    let log = traffic(build::SS_LOG.as_bytes());
    let expected = [
        (1_000_000_000_000, "10.0.0.1".to_owned(), 4000),
        (1_000_500_000_000, "10.0.0.1".to_owned(), 300),
        (1_000_500_000_000, "10.0.0.3".to_owned(), 200),
    ];
    assert_eq!(seen(&log), expected);
    let without_time = build::SS_LOG.split_once('\n').unwrap().1;
    let problem = read(without_time.as_bytes(), None, IDLE)
        .unwrap_err()
        .to_string();
    assert!(
        problem.contains("line 1: no line with the time"),
        "{problem}"
    );
}

#[test]
fn workloads_have_flows_sizes_and_loads() {
    let traffic = traffic(build::CONN_LOG.as_bytes());
    let hosts = HostMap::parse("10.0.0.1,4\n10.0.0.2,1\n").unwrap();
    let services = ServiceMap::parse("port,service\n11211,46\n").unwrap();
    let workload = Workload::new(&traffic, &hosts, &services).unwrap();
    assert_eq!(
        workload.flows_csv(),
        "start_s,src,dst,bytes,service\n0.000000000,1,4,64000,46\n0.000000000,4,1,120,46\n"
    );
    assert_eq!(
        workload.sizes_csv(46),
        "bytes,probability\n120,0\n120,0.5\n64000,1\n"
    );
    assert_eq!(workload.hosts, 5);
    assert!(
        workload
            .notes
            .iter()
            .any(|note| note.contains("not in the map of hosts"))
    );
    let mut whole = workload.clone();
    whole.duration = 1_000_000;
    // 64120 B in 1 ms at 5 hosts of 1 Gbps.
    assert!((whole.load(64_120, Rate::from_gbps(1)) - 0.102_592).abs() < 1e-9);
    let toml = whole.poisson_toml(Rate::from_gbps(1), None);
    assert!(
        toml.contains("load = 0.102592\nsize = { cdf = { file = \"sizes-46.csv\""),
        "{toml}"
    );
    let nobody = HostMap::parse("10.9.0.0/16,0\n").unwrap();
    assert!(Workload::new(&traffic, &nobody, &services).is_err());
}

#[test]
fn what_is_nothing_known_is_refused() {
    for bytes in [&b""[..], b"hello\n", b"\xff\xfe\x00", b"\x0a\x0d\x0d\x0a"] {
        assert!(read(bytes, None, IDLE).is_err());
    }
}
