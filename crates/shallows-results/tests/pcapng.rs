//! Captures: the bytes by hand, and what Wireshark's own reader makes of them.

use std::path::Path;
use std::process::Command;

use shallows_core::host::udp::{Sender as UdpSender, UdpConfig};
use shallows_core::packet::Ecn;
use shallows_core::tcp::{Ack, AckKind, Receiver, SackBlocks, Segment, TcpConfig};
use shallows_core::units::{Bytes, Rate, Time};
use shallows_results::pcapng::{Capture, Content, Interface, Packet, RocePacket};
use shallows_testing::{missing_program, skipped};

fn links() -> [Interface; 2] {
    [("leaf0 to spine1", 10), ("h1 to leaf0", 40)].map(|(name, gbps)| Interface {
        name: name.to_owned(),
        rate: Rate::from_gbps(gbps),
    })
}

fn segment(seq: u64, len: u32, sent_us: u64) -> Segment {
    Segment {
        seq,
        sent_at: Time::from_us(sent_us),
        len,
        syn: false,
        retransmission: false,
        cwr: false,
        ect: true,
    }
}

/// Data of flow 20,000 from host 0 to host 299, with a header of `header` bytes.
fn data(segment: Segment, header: u32, ecn: Ecn) -> Packet {
    Packet {
        src: 0,
        dst: 299,
        flow: 20_000,
        size: segment.len + header,
        dscp: 5,
        ecn,
        content: Content::Segment(segment),
    }
}

fn answer(ack: Ack, header: u32) -> Packet {
    Packet {
        src: 299,
        dst: 0,
        flow: 20_000,
        size: header,
        dscp: 5,
        ecn: Ecn::NotEct,
        content: Content::Ack(ack),
    }
}

fn ack(ack: u64, echo_us: u64) -> Ack {
    Ack {
        kind: AckKind::Ack,
        ack,
        echo: Time::from_us(echo_us),
        one_way_delay: Time::from_us(10),
        sack: SackBlocks::default(),
        ece: false,
        syn: false,
        ect: false,
    }
}

/// An ACK with three SACK blocks, as a receiver makes it.
fn selective_ack() -> Ack {
    let mut receiver = Receiver::new(&TcpConfig::default());
    let arrived = [1_000, 3_000, 5_000].map(|seq| segment(seq, 1_000, 40));
    let answers = arrived
        .iter()
        .flat_map(|segment| receiver.on_segment(Time::from_us(50), segment, Ecn::Ect0));
    answers.last().unwrap()
}

/// A connection with everything that TCP's header can say here.
fn connection() -> Vec<(Time, usize, Packet)> {
    let syn = Segment {
        syn: true,
        ect: false,
        ..segment(0, 0, 0)
    };
    let reduced = Segment {
        cwr: true,
        ..segment(1_460, 1_460, 40)
    };
    // Past 2^32 bytes, where numbers begin anew.
    let wrapped = segment((1 << 32) + 7, 100, 60);
    let echo = Ack {
        ece: true,
        ..ack(1_460, 20)
    };
    let granted = Ack {
        syn: true,
        ..ack(0, 0)
    };
    let packets = [
        (0, data(syn, 40, Ecn::NotEct)),
        (1, answer(granted, 40)),
        (0, data(segment(0, 1_460, 20), 40, Ecn::Ce)),
        (1, answer(echo, 40)),
        (0, data(reduced, 52, Ecn::Ect0)),
        (1, answer(selective_ack(), 52)),
        (0, data(wrapped, 52, Ecn::Ect1)),
    ];
    let timed = (0_u64..).zip(packets);
    timed
        .map(|(n, (link, packet))| (Time::from_ps(n * 1_234_567_890_123), link, packet))
        .collect()
}

fn messages() -> Vec<(Time, usize, Packet)> {
    let text = "send = { message = { size = \"3KB\" } }\nsend-buffer = \"1MB\"";
    let config: UdpConfig = toml::from_str(text).unwrap();
    let mut sender = UdpSender::new(&config, Time::ZERO);
    let datagrams = (0..6).map(|_| sender.poll_packet(Time::ZERO).unwrap());
    let packets = datagrams.map(|datagram| Packet {
        src: 7,
        dst: 70_000,
        flow: 3,
        size: datagram.size,
        dscp: 0,
        ecn: Ecn::NotEct,
        content: Content::Datagram {
            datagram,
            message: Bytes::from_kb(3),
        },
    });
    packets
        .map(|packet| (Time::from_ms(1), 0, packet))
        .collect()
}

fn capture(path: &Path, packets: &[(Time, usize, Packet)]) {
    let window = TcpConfig::default().receive_window;
    let mut capture =
        Capture::create(path, &links(), Bytes::new(u64::from(window) * 1_460)).unwrap();
    for (time, link, packet) in packets {
        capture.write(*time, *link, packet).unwrap();
    }
    capture.finish().unwrap();
}

/// What tshark prints, or `None` with a reason if there is none on this machine.
fn tshark(path: &Path, arguments: &[&str]) -> Option<String> {
    if let Some(reason) = missing_program(&["tshark"]) {
        skipped(&reason);
        return None;
    }
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(arguments);
    for preference in [
        "ip.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
        "tcp.relative_sequence_numbers:FALSE",
    ] {
        command.args(["-o", preference]);
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The fields of every packet, separated by spaces; those with several values have commas.
fn fields(path: &Path, names: &[&str]) -> Option<Vec<String>> {
    let mut arguments = vec!["-T", "fields", "-E", "separator= "];
    for name in names {
        arguments.extend(["-e", name]);
    }
    let text = tshark(path, &arguments)?;
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn wireshark_finds_nothing_wrong() {
    let directory = tempfile::tempdir().unwrap();
    for (name, packets) in [("tcp", connection()), ("udp", messages())] {
        let path = directory.path().join(name).with_extension("pcapng");
        capture(&path, &packets);
        let count = |filter: &str| {
            let lines = tshark(&path, &["-Y", filter])?;
            Some(lines.lines().count())
        };
        let Some(all) = count("frame") else { return };
        assert_eq!(all, packets.len());
        assert_eq!(count("ip.checksum.status == 1"), Some(all), "{name}");
        let bad = "_ws.malformed || _ws.expert.severity == 8388608 || tcp.checksum.status == 0";
        assert_eq!(count(bad), Some(0), "{name}");
        // Packets without payload are there as a whole, so that their checksums can be tested.
        let checked = if name == "tcp" { 4 } else { 0 };
        assert_eq!(count("tcp.checksum.status == 1"), Some(checked));
    }
}

#[test]
fn wireshark_reads_roce_as_it_was() {
    let roce = |content: RocePacket, size| Packet {
        src: 1,
        dst: 2,
        flow: 9,
        size,
        dscp: 3,
        ecn: Ecn::Ect0,
        content: Content::Roce(content),
    };
    let nak = Ack {
        kind: AckKind::Nak,
        ..ack(3_000, 0)
    };
    let cnp = Ack {
        kind: AckKind::Cnp,
        ..nak
    };
    let packets = [
        roce(RocePacket::data(&segment(2_000, 1_000, 0), 1_000), 1_044),
        roce(RocePacket::answer(&ack(3_000, 0), 1_000), 48),
        roce(RocePacket::answer(&nak, 1_000), 48),
        roce(RocePacket::answer(&cnp, 1_000), 44),
    ];
    let packets = packets.map(|packet| (Time::from_ms(1), 0, packet));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("roce.pcapng");
    capture(&path, &packets);
    let headers = [
        "frame.len",
        "udp.dstport",
        "infiniband.bth.opcode",
        "infiniband.bth.destqp",
        "infiniband.bth.psn",
        "infiniband.aeth.syndrome",
    ];
    let Some(frames) = fields(&path, &headers) else {
        return;
    };
    assert_eq!(
        frames,
        [
            "1058 4791 1 0x000009 2 ",
            "62 4791 17 0x000009 2 0",
            "62 4791 17 0x000009 3 96",
            "58 4791 129 0x000009 0 ",
        ]
    );
}

/// Fields of the packets of the TCP connection.
fn tcp_fields(names: &[&str]) -> Option<Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tcp.pcapng");
    capture(&path, &connection());
    fields(&path, names)
}

#[test]
fn wireshark_reads_times_and_lengths_as_they_were() {
    let names = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "frame.cap_len",
    ];
    let Some(frames) = tcp_fields(&names) else {
        return;
    };
    assert_eq!(
        frames,
        [
            "0.000000000 leaf0 to spine1 62 62",
            "1.234567890 h1 to leaf0 62 62",
            "2.469135780 leaf0 to spine1 1514 54",
            "3.703703670 h1 to leaf0 54 54",
            "4.938271560 leaf0 to spine1 1526 66",
            "6.172839450 h1 to leaf0 94 94",
            "7.407407340 leaf0 to spine1 166 66",
        ]
    );
}

#[test]
fn wireshark_reads_addresses_as_they_were() {
    let names = ["ip.src", "ip.dst", "eth.src", "tcp.srcport", "tcp.dstport"];
    let Some(addresses) = tcp_fields(&names) else {
        return;
    };
    assert_eq!(
        addresses[..2],
        [
            "10.0.0.1 10.0.1.44 02:00:00:00:00:01 52768 49153",
            "10.0.1.44 10.0.0.1 02:00:00:00:01:2c 49153 52768",
        ]
    );
}

#[test]
fn wireshark_reads_tcp_as_it_was() {
    let names = [
        "ip.dsfield.dscp",
        "ip.dsfield.ecn",
        "tcp.seq",
        "tcp.ack",
        "tcp.len",
        "tcp.flags",
    ];
    let Some(headers) = tcp_fields(&names) else {
        return;
    };
    assert_eq!(
        headers,
        [
            "5 0 0 0 0 0x0002",
            "5 0 0 1 0 0x0012",
            "5 3 1 1 1460 0x0010",
            "5 0 1 1461 0 0x0050",
            "5 2 1461 1 1460 0x0090",
            "5 0 1 1 0 0x0010",
            "5 1 8 1 100 0x0010",
        ]
    );
}

#[test]
fn wireshark_reads_options_of_tcp_as_they_were() {
    let names = [
        "tcp.options.timestamp.tsval",
        "tcp.options.timestamp.tsecr",
        "tcp.options.sack_le",
        "tcp.options.sack_re",
        "tcp.options.wscale.shift",
        "tcp.window_size",
    ];
    let Some(options) = tcp_fields(&names) else {
        return;
    };
    // 2^20 segments of 1460 bytes are 2^14 times 93,440, more than the field can tell.
    assert_eq!(
        options,
        [
            "    14 65535",
            "    14 65535",
            "     1073725440",
            "     1073725440",
            "40 0    1073725440",
            "50 40 5001,3001,1001 6001,4001,2001  1073725440",
            "60 0    1073725440",
        ]
    );
}

#[test]
fn wireshark_reads_fragments_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("udp.pcapng");
    capture(&path, &messages());
    let names = [
        "ip.dst",
        "ip.id",
        "ip.len",
        "ip.flags.mf",
        "ip.frag_offset",
        "udp.length",
    ];
    let Some(packets) = fields(&path, &names) else {
        return;
    };
    assert_eq!(
        packets,
        [
            "10.1.17.113 0x0000 1500 1 0 3008",
            "10.1.17.113 0x0000 1500 1 185 ",
            "10.1.17.113 0x0000 68 0 370 ",
            "10.1.17.113 0x0001 1500 1 0 3008",
            "10.1.17.113 0x0001 1500 1 185 ",
            "10.1.17.113 0x0001 68 0 370 ",
        ]
    );
}

#[test]
fn blocks_by_hand() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tcp.pcapng");
    capture(&path, &connection()[..1]);
    let bytes = std::fs::read(&path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(8)), (0x0a0d_0d0a, 0x1a2b_3c4d));
    let mut at = 0;
    let mut kinds = Vec::new();
    while at < bytes.len() {
        let length = word(at + 4);
        assert_eq!((length % 4, word(at + length as usize - 4)), (0, length));
        kinds.push(word(at));
        at += length as usize;
    }
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6]);
    let speed = bytes.windows(12).any(|window| {
        window[..4] == [8, 0, 8, 0] && window[4..] == 40_000_000_000_u64.to_le_bytes()
    });
    assert!(speed, "the second interface has a speed");
}

#[test]
fn equal_input_gives_equal_bytes_and_only_a_finished_file_has_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tcp.pcapng");
    let unfinished = Capture::create(&path, &links(), Bytes::new(1)).unwrap();
    assert!(!path.exists());
    drop(unfinished);
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
    capture(&path, &connection());
    let first = std::fs::read(&path).unwrap();
    capture(&path, &connection());
    assert!(std::fs::read(&path).unwrap() == first);
}

#[test]
#[should_panic(expected = "no interface 2")]
fn a_link_that_is_not_captured_is_a_mistake() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tcp.pcapng");
    let mut capture = Capture::create(&path, &links(), Bytes::new(1)).unwrap();
    let _ = capture.write(Time::ZERO, 2, &connection()[0].2);
}
