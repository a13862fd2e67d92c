//! Stage tags of real TCP connections.

use std::io::{self, Read as _};

use nix::net::if_::if_nametoindex;
use shallows_bpf::{Controller, StageTags};
use shallows_core::host::stage::StageTagger;
use shallows_core::units::Bytes;
use socket2::{Domain, Protocol, Socket, Type};

use crate::lab::{End, Lab, Switch, within};

/// `ETH_P_ALL`, in network order.
const ALL_FRAMES: i32 = 0x0300;
const CLIENT: [u8; 4] = [10, 99, 1, 2];

/// What arrives from the client: DSCP, sequence number and bytes of data; of a SYN nothing but that.
fn parse(frame: &[u8]) -> Option<(u8, u32, u32, bool)> {
    let packet = frame.get(14..)?;
    if packet.first()? >> 4 != 4 || packet.get(9)? != &6 || packet.get(12..16)? != CLIENT {
        return None;
    }
    let header = usize::from(packet[0] & 0xF) * 4;
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let tcp = packet.get(header..)?;
    let seq = u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?);
    let data = total - header - usize::from(tcp.get(12)? >> 4) * 4;
    Some((packet[1] >> 2, seq, data as u32, tcp.get(13)? & 2 != 0))
}

/// One flow after the other over a kept connection, each answered by its receiver: every segment
/// has the stage that the core's tagger gives it.
#[test]
fn segments_of_real_connections_have_the_stages_of_the_core() {
    let Some(lab) = Lab::with(Controller::Dctcp, Switch::Slow) else {
        return;
    };
    let thresholds = [20_000, 60_000, 150_000].map(Bytes::new).to_vec();
    let tagger = StageTagger::new(thresholds).unwrap();
    let mut tags = StageTags::load(&tagger).unwrap();
    within(lab.namespace(End::Client).0, || {
        tags.attach(if_nametoindex("port0").unwrap()).unwrap();
    });
    let mut sniffer = within(lab.namespace(End::Server).0, || {
        let protocol = Some(Protocol::from(ALL_FRAMES));
        Socket::new(Domain::PACKET, Type::RAW, protocol).unwrap()
    });
    sniffer.set_recv_buffer_size(8 << 20).unwrap();
    sniffer.set_nonblocking(true).unwrap();

    let flows = [100, 250_000, 20_000, 1, 300_000, 70_000];
    let mut pair = lab.connect("reno");
    for bytes in flows {
        pair.transfer(bytes);
    }
    let mut begins: Vec<u64> = vec![0];
    begins.extend(flows.iter().scan(0, |sum, &bytes| {
        *sum += bytes as u64;
        Some(*sum)
    }));

    let (mut first, mut reached, mut seen, mut buffer) = (None, 0, [0; 5], vec![0; 1 << 16]);
    loop {
        let length = match sniffer.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            length => length.unwrap(),
        };
        let Some((dscp, seq, data, is_syn)) = parse(&buffer[..length]) else {
            continue;
        };
        if is_syn {
            first = Some(seq.wrapping_add(1));
        }
        if data == 0 {
            assert_eq!(dscp, 1, "a SYN or an ACK");
            continue;
        }
        let offset = seq.wrapping_sub(first.expect("a SYN comes first"));
        reached = reached.max(u64::from(offset));
        let begin = begins.iter().rfind(|&&begin| begin <= reached).unwrap();
        let expected = tagger.stage(Bytes::new(reached - begin));
        assert_eq!(dscp, expected, "{} B into its flow", reached - begin);
        seen[usize::from(dscp)] += data;
    }
    println!("bytes by stage: {seen:?}");
    assert!(seen.iter().sum::<u32>() >= flows.iter().sum::<usize>() as u32);
    assert!(seen[1..].iter().all(|&bytes| bytes > 20_000), "{seen:?}");
    drop(tags);
    // Without the tagger packets are as before.
    pair.transfer(1_000);
    let mut untagged = Vec::new();
    while let Ok(length) = sniffer.read(&mut buffer) {
        untagged.extend(
            parse(&buffer[..length])
                .filter(|of| of.2 > 0)
                .map(|of| of.0),
        );
    }
    assert!(
        !untagged.is_empty() && untagged.iter().all(|&dscp| dscp == 0),
        "{untagged:?}"
    );
}
