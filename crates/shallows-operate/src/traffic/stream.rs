//! From packets to conversations.

use std::collections::BTreeMap;

use super::packet::{FiveTuple, Header};
use super::pcap::Captured;
use super::{Conversation, Traffic};

/// A message on its way in one direction of a connection.
#[derive(Clone, Copy, Debug)]
struct Open {
    conversation: Conversation,
    /// Sequence number of the first byte, and bytes from there to the furthest one seen.
    first: u32,
    furthest: u32,
    /// Interface on which the first packet was seen; a packet may be captured at several.
    interface: u32,
}

/// Joins the packets of a capture. A conversation ends when nothing was sent for `idle`
/// nanoseconds, when the other side answers with data, or with a SYN.
pub(super) fn conversations(packets: &[Captured<'_>], idle: u64) -> Traffic {
    let mut open: BTreeMap<FiveTuple, Open> = BTreeMap::new();
    let mut done: Vec<Conversation> = Vec::new();
    let mut ignored = 0_u64;
    for packet in packets {
        let Some(header) = Header::new(packet.link, packet.bytes) else {
            ignored += 1;
            continue;
        };
        let tuple = header.tuple;
        if header.tcp.is_some_and(|tcp| tcp.is_syn) {
            done.extend(open.remove(&tuple).map(|of| of.conversation));
        }
        if header.payload == 0 {
            continue;
        }
        match open.get_mut(&tuple) {
            Some(of) if of.interface != packet.interface => {}
            Some(of) if packet.at.saturating_sub(of.conversation.end) <= idle => {
                of.extend(&header, packet.at);
            }
            _ => {
                let new = Open::new(&header, packet);
                done.extend(open.insert(tuple, new).map(|of| of.conversation));
                // Data in this direction answers, so that the message of the other one is complete.
                let reversed = tuple.reversed();
                done.extend(open.remove(&reversed).map(|of| of.conversation));
            }
        }
    }
    done.extend(open.into_values().map(|of| of.conversation));
    let mut traffic = Traffic::new(done);
    if ignored > 0 {
        traffic.notes.push(format!(
            "{ignored} packets are neither TCP nor UDP, or later fragments, and are left out"
        ));
    }
    traffic
}

impl Open {
    fn new(header: &Header<'_>, packet: &Captured<'_>) -> Self {
        let first = header.tcp.map_or(0, |tcp| tcp.sequence);
        Self {
            conversation: Conversation {
                start: packet.at,
                end: packet.at,
                tuple: header.tuple,
                dscp: header.dscp,
                bytes: u64::from(header.payload),
            },
            first,
            furthest: header.payload,
            interface: packet.interface,
        }
    }

    fn extend(&mut self, header: &Header<'_>, at: u64) {
        let of = &mut self.conversation;
        of.end = of.end.max(at);
        let Some(tcp) = header.tcp else {
            of.bytes += u64::from(header.payload);
            return;
        };
        // Bytes count once, however often they are sent; numbers wrap at 2^32.
        let end = tcp
            .sequence
            .wrapping_sub(self.first)
            .wrapping_add(header.payload);
        let beyond = end.wrapping_sub(self.furthest);
        if beyond < 1 << 31 {
            of.bytes += u64::from(beyond);
            self.furthest = end;
        }
    }
}
