//! The program against the core's tagger, on the segments of the core's sender: losses and
//! retransmissions, flows one after the other, sequence numbers that wrap.

use std::collections::VecDeque;

use shallows_core::host::stage::{StageCount, StageTagger, StagesConfig, StagesTable};
use shallows_core::packet::Ecn;
use shallows_core::tcp::{Receiver, Sender, TcpConfig};
use shallows_core::units::{Bytes, Time};

use crate::StageTags;

const SEGMENT: u32 = 1_000;
/// Sizes of the flows of one connection.
const FLOWS: [u64; 6] = [500, 120_000, 30_000, 1, 400_000, 70_500];
/// The first sequence numbers, short of the end of their range.
const SENDER: u32 = u32::MAX - 200_000;
const PEER: u32 = u32::MAX - 3;
/// Bytes of a request.
const REQUEST: u32 = 9;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// ECT(0).
const ECT: u8 = 0b10;

fn tagger(count: StageCount, acks: Vec<u8>) -> StageTagger {
    let thresholds = vec![Bytes::new(20_000), Bytes::new(60_000), Bytes::new(100_000)];
    let table = StagesTable {
        thresholds,
        count,
        acks,
    };
    StageTagger::try_from(StagesConfig::Table(table)).unwrap()
}

/// An Ethernet frame of the connection with `payload` bytes of data.
fn frame(from_sender: bool, flags: u8, seq: u32, ack: u32, payload: u32) -> Vec<u8> {
    let (near, far) = ([10, 83, 0, 1, 0x1c, 0x0f], [10, 83, 0, 2, 0x9c, 0x40]);
    let (from, to) = if from_sender {
        (near, far)
    } else {
        (far, near)
    };
    let mut ip = vec![0x45, ECT];
    ip.extend((40 + payload as u16).to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(&from[..4]);
    ip.extend(&to[..4]);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![2; 12];
    frame.extend([8, 0]);
    frame.extend(ip);
    frame.extend(&from[4..]);
    frame.extend(&to[4..]);
    frame.extend(seq.to_be_bytes());
    frame.extend(ack.to_be_bytes());
    frame.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
    frame.resize(frame.len() + payload as usize, 0);
    frame
}

/// Of an IPv4 header; zero over a whole one.
fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|of| u32::from(of[0]) << 8 | u32::from(of[1]));
    let sum: u32 = words.sum();
    !((sum & 0xFFFF) + (sum >> 16)) as u16
}

/// The tag that the program writes, with all else as it was.
fn tag(tags: &StageTags, frame: &[u8]) -> u8 {
    let (_, after) = tags.object().programs()[0].run(&[], frame, 1).unwrap();
    assert_eq!(
        checksum(&after[14..34]),
        0,
        "the checksum is that of the header"
    );
    assert_eq!(after[15] & 0b11, ECT, "the ECN field is left alone");
    assert_eq!((&after[..15], &after[34..]), (&frame[..15], &frame[34..]));
    after[15] >> 2
}

/// Flows of a connection over a path that loses every 23rd segment: every segment's sequence
/// number, length, and the first byte of its flow.
fn segments() -> Vec<(u64, u32, u64)> {
    let config = TcpConfig {
        segment: SEGMENT,
        handshake: false,
        ..TcpConfig::default()
    };
    let (mut sender, mut receiver) = (Sender::new(&config), Receiver::new(&config));
    let (mut now, mut flight, mut all) = (Time::ZERO, VecDeque::new(), Vec::new());
    for size in FLOWS {
        let first = sender.written();
        sender.write(now, size);
        while !sender.is_done() {
            while let Some(segment) = sender.poll_segment(now) {
                all.push((segment.seq, segment.len, first));
                if all.len() % 23 != 0 {
                    flight.push_back(segment);
                }
            }
            now += Time::from_us(10);
            if let Some(segment) = flight.pop_front() {
                for ack in receiver.on_segment(now, &segment, Ecn::Ect0) {
                    sender.on_ack(now, &ack);
                }
            } else {
                now = now.max(sender.deadline().expect("something is outstanding"));
                sender.on_deadline(now);
            }
        }
    }
    all
}

fn compare(count: StageCount) {
    if let Err(reason) = crate::check() {
        shallows_testing::skip!("{reason}");
    }
    let tagger = tagger(count, Vec::new());
    let tags = StageTags::load(&tagger).unwrap();
    let mut heard = PEER.wrapping_add(1);
    let syn = frame(true, SYN | ACK, SENDER, heard, 0);
    assert_eq!(tag(&tags, &syn), 1);
    let (mut flow, mut reached, mut again) = (None, 0, 0);
    let mut stages = [0; 5];
    for (number, (seq, len, first)) in segments().into_iter().enumerate() {
        if flow != Some(first) {
            flow = Some(first);
            reached = first;
            heard = heard.wrapping_add(REQUEST);
        }
        again += u32::from(seq < reached);
        reached = reached.max(seq);
        let sent = match count {
            StageCount::Flow => reached - first,
            StageCount::Connection => seq,
        };
        let expected = tagger.stage(Bytes::new(sent));
        let seq = SENDER.wrapping_add(1).wrapping_add(seq as u32);
        let found = tag(&tags, &frame(true, ACK, seq, heard, len));
        assert_eq!(
            found, expected,
            "segment {number}, {sent} B after the first"
        );
        stages[usize::from(found)] += 1;
    }
    assert!(again > 20, "{again} retransmissions");
    assert!(
        stages[1..].iter().all(|&packets| packets > 20),
        "{stages:?}"
    );
}

#[test]
fn a_flow_has_the_stages_of_the_simulated_one() {
    compare(StageCount::Flow);
}

#[test]
fn a_connection_has_the_stages_of_the_simulated_one() {
    compare(StageCount::Connection);
}

#[test]
fn acks_have_the_tags_of_the_simulated_ones() {
    if let Err(reason) = crate::check() {
        shallows_testing::skip!("{reason}");
    }
    for acks in [Vec::new(), vec![1, 3, 5, 63]] {
        let tagger = tagger(StageCount::Connection, acks);
        let tags = StageTags::load(&tagger).unwrap();
        tag(&tags, &frame(false, SYN, PEER, 0, 0));
        for acked in (0..200_000).step_by(1_000) {
            let ack = SENDER.wrapping_add(1).wrapping_add(acked);
            let found = tag(&tags, &frame(false, ACK, PEER.wrapping_add(1), ack, 0));
            assert_eq!(found, tagger.of_ack(Bytes::new(acked.into())), "{acked} B");
        }
    }
}

/// A new connection between the same ports counts from its own beginning.
#[test]
fn a_syn_begins_anew() {
    if let Err(reason) = crate::check() {
        shallows_testing::skip!("{reason}");
    }
    let tags = StageTags::load(&tagger(StageCount::Flow, Vec::new())).unwrap();
    let data = |seq| frame(true, ACK, seq, PEER, SEGMENT);
    for (first, last) in [(7, 1), (9_000_000, 1)] {
        tag(&tags, &frame(true, SYN, first, 0, 0));
        assert_eq!(tag(&tags, &data(first + 1)), last);
        assert_eq!(tag(&tags, &data(first + 1 + 100_000)), 4);
    }
}

#[test]
fn only_tcp_and_icmp_over_ipv4_are_tagged() {
    if let Err(reason) = crate::check() {
        shallows_testing::skip!("{reason}");
    }
    let tags = StageTags::load(&tagger(StageCount::Flow, Vec::new())).unwrap();
    let program = &tags.object().programs()[0];
    let tcp = frame(true, ACK, 1, 1, 100);
    let with = |at: usize, value: u8| {
        let mut frame = tcp.clone();
        frame[at] = value;
        frame
    };
    assert_eq!(program.run(&[], &with(23, 1), 1).unwrap().1[15] >> 2, 1);
    for other in [with(23, 17), with(12, 0x86), with(20, 0x20), with(14, 0x44)] {
        assert_eq!(program.run(&[], &other, 1).unwrap().1, other);
    }
}
