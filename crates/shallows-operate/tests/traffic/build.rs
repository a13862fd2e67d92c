//! Sources as exporters and captures write them.

/// A packet of TCP or UDP.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) us: u64,
    pub(crate) src: [u8; 4],
    pub(crate) dst: [u8; 4],
    pub(crate) ports: (u16, u16),
    pub(crate) dscp: u8,
    /// Flags of TCP with the sequence number; UDP if absent.
    pub(crate) tcp: Option<(u8, u32)>,
    pub(crate) payload: u16,
}

pub(crate) const DATA: u8 = 0x10;
pub(crate) const SYN: u8 = 0x02;

/// Ethernet and all headers; payload itself is not captured.
pub(crate) fn frame(packet: &Packet) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend([0x08, 0x00]);
    let transport = if packet.tcp.is_some() { 20 } else { 8 };
    let total = 20 + transport + packet.payload;
    bytes.extend([0x45, packet.dscp << 2]);
    bytes.extend(total.to_be_bytes());
    bytes.extend([
        0,
        0,
        0,
        0,
        64,
        if packet.tcp.is_some() { 6 } else { 17 },
        0,
        0,
    ]);
    bytes.extend(packet.src);
    bytes.extend(packet.dst);
    bytes.extend(packet.ports.0.to_be_bytes());
    bytes.extend(packet.ports.1.to_be_bytes());
    if let Some((flags, sequence)) = packet.tcp {
        bytes.extend(sequence.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    } else {
        bytes.extend((8 + packet.payload).to_be_bytes());
        bytes.extend([0, 0]);
    }
    bytes
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    let padded = body.len().next_multiple_of(4);
    let length = 12 + padded as u32;
    bytes.extend(length.to_le_bytes());
    bytes.extend(body);
    bytes.resize(8 + padded, 0);
    bytes.extend(length.to_le_bytes());
    bytes
}

/// One interface with times in microseconds.
pub(crate) fn pcapng(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    let mut bytes = block(0x0a0d_0d0a, &section);
    // Ethernet, no limit, and if_tsresol = 6.
    bytes.extend(block(
        1,
        &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0],
    ));
    for (us, frame) in frames {
        let mut body = vec![0; 4];
        body.extend(((us >> 32) as u32).to_le_bytes());
        body.extend((*us as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend(frame);
        bytes.extend(block(6, &body));
    }
    bytes
}

/// The older format, big-endian, with nanoseconds.
pub(crate) fn pcap(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = 0xa1b2_3c4d_u32.to_be_bytes().to_vec();
    bytes.extend([
        0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 1,
    ]);
    for (us, frame) in frames {
        bytes.extend(((us / 1_000_000) as u32).to_be_bytes());
        bytes.extend(((us % 1_000_000 * 1_000) as u32).to_be_bytes());
        bytes.extend((frame.len() as u32).to_be_bytes());
        bytes.extend((frame.len() as u32).to_be_bytes());
        bytes.extend(frame);
    }
    bytes
}

pub(crate) fn capture(packets: &[Packet]) -> Vec<(u64, Vec<u8>)> {
    packets.iter().map(|of| (of.us, frame(of))).collect()
}

/// A flow of an exporter: start in ms, addresses, port of the receiver, TOS, bytes and packets.
pub(crate) type Record = (u32, [u8; 4], [u8; 4], u16, u8, u32, u32);

fn set(id: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend((4 + body.len() as u16).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn numbers(values: &[u16]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect()
}

/// A message of IPFIX whose options say that one packet in `sampling` was taken.
pub(crate) fn ipfix(records: &[Record], sampling: Option<u32>) -> Vec<u8> {
    let mut sets = set(
        2,
        &numbers(&[256, 8, 152, 8, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 1, 4, 2, 4]),
    );
    sets.extend(set(2, &numbers(&[258, 2, 0x8001, 2, 0, 1, 5, 1])));
    if let Some(sampling) = sampling {
        sets.extend(set(3, &numbers(&[257, 3, 1, 149, 4, 305, 4, 306, 4])));
        let mut option = vec![0, 0, 0, 7];
        option.extend(1_u32.to_be_bytes());
        option.extend((sampling - 1).to_be_bytes());
        sets.extend(set(257, &option));
    }
    for (ms, src, dst, port, _, bytes, packets) in records {
        let mut record = u64::from(*ms).to_be_bytes().to_vec();
        record.extend(src);
        record.extend(dst);
        record.extend(40_000_u16.to_be_bytes());
        record.extend(port.to_be_bytes());
        record.push(6);
        record.extend(bytes.to_be_bytes());
        record.extend(packets.to_be_bytes());
        sets.extend(set(256, &record));
    }
    let mut message = numbers(&[10, 16 + sets.len() as u16]);
    message.extend([0; 12]);
    message.extend(sets);
    message
}

/// A message of NetFlow v9 from an exporter that has been up for 10 s at 1000 s.
pub(crate) fn v9(records: &[Record]) -> Vec<u8> {
    let mut body = Vec::new();
    for (ms, src, dst, port, tos, bytes, packets) in records {
        body.extend(ms.to_be_bytes());
        body.extend(src);
        body.extend(dst);
        body.extend(port.to_be_bytes());
        body.extend([17, *tos]);
        body.extend(bytes.to_be_bytes());
        body.extend(packets.to_be_bytes());
    }
    let mut message = numbers(&[9, 1 + records.len() as u16]);
    message.extend(10_000_u32.to_be_bytes());
    message.extend(1_000_u32.to_be_bytes());
    message.extend([0; 8]);
    message.extend(set(
        0,
        &numbers(&[300, 8, 22, 4, 8, 4, 12, 4, 11, 2, 4, 1, 5, 1, 1, 4, 2, 4]),
    ));
    message.extend(set(300, &body));
    message
}

/// A datagram of sFlow v5 with a sample of each packet.
pub(crate) fn sflow(packets: &[Packet], rate: u32) -> Vec<u8> {
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|of| of.to_be_bytes()).collect() };
    let mut bytes = words(&[5, 1, 0x0a00_00fe, 0, 1, 5_000, packets.len() as u32 + 1]);
    // Counters, which are passed over.
    bytes.extend(words(&[2, 8, 1, 1]));
    for packet in packets {
        let mut header = frame(packet);
        let kept = header.len() as u32;
        header.resize(header.len().next_multiple_of(4), 0);
        let record = words(&[1, 16 + header.len() as u32, 1, 1500, 4, kept]);
        let mut sample = words(&[1, 1, rate, rate, 0, 1, 2, 1]);
        sample.extend(record);
        sample.extend(header);
        bytes.extend(words(&[1, sample.len() as u32]));
        bytes.extend(sample);
    }
    bytes
}

pub(crate) const CONN_LOG: &str = "#separator \\x09\n#path\tconn\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tservice\tduration\torig_bytes\tresp_bytes\tconn_state\n\
1000.000001\tC1\t10.0.0.1\t40000\t10.0.0.2\t11211\ttcp\t-\t0.5\t120\t64000\tSF\n\
1000.5\tC2\t10.0.0.2\t40001\t10.0.0.3\t443\ttcp\tssl\t-\t-\t-\tS0\n\
1001.25\tC3\t10.0.0.3\t5353\t10.0.0.1\t53\tudp\tdns\t0.1\t40\t0\tSF\n";

pub(crate) const CONN_JSON: &str = "{\"ts\":1000.000001,\"id.orig_h\":\"10.0.0.1\",\"id.orig_p\":40000,\"id.resp_h\":\"10.0.0.2\",\"id.resp_p\":11211,\"proto\":\"tcp\",\"orig_bytes\":120,\"resp_bytes\":64000}\n";

pub(crate) const SS_LOG: &str = "1000.0\n\
ESTAB 0 0 10.0.0.1:5201 10.0.0.2:40000\n\t cubic wscale:7,7 rto:204 bytes_sent:5000 bytes_acked:5000 bytes_received:37 segs_out:10\n\
1000.5\n\
ESTAB 0 0 10.0.0.1:5201 10.0.0.2:40000\n\t cubic bytes_sent:9000 bytes_acked:9000 bytes_received:37\n\
ESTAB 0 0 [::ffff:10.0.0.1]:22 [::ffff:10.0.0.3]:50000\n\t cubic bytes_acked:300 bytes_received:200\n";
