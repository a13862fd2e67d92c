//! Segments and ACKs that sender and receiver exchange.

use crate::units::Time;

/// A SYN or a segment of data. On the wire it has `len` bytes and one header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the bits of a header"
)]
pub struct Segment {
    /// Number of the first byte of data.
    pub seq: u64,
    /// Send time: the timestamp option (RFC 7323), which the receiver echoes.
    pub sent_at: Time,
    /// Bytes of data; none in a SYN.
    pub len: u32,
    /// Asks for the connection.
    pub syn: bool,
    /// Data that was sent before. No such bit is on the wire; it is for those who count.
    pub retransmission: bool,
    /// Congestion window reduced (RFC 3168 §6.1.2).
    pub cwr: bool,
    /// ECN-capable: may be marked.
    pub ect: bool,
}

impl Segment {
    /// The number after that of the last byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// An acknowledgement. On the wire it has one header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Kind of answer; TCP has one.
    pub kind: AckKind,
    /// The next byte that the receiver expects.
    pub ack: u64,
    /// Send time of the segment that this answers; with delayed ACKs the first one (RFC 7323 §4.3).
    pub echo: Time,
    /// From sending to arrival of the segment that made the receiver answer. The clocks of both
    /// ends agree here; users take the difference to the least, as hosts with an offset would.
    pub one_way_delay: Time,
    /// Ranges received beyond `ack`.
    pub sack: SackBlocks,
    /// ECN-Echo.
    pub ece: bool,
    /// Grants the connection.
    pub syn: bool,
    /// ECN-capable: may be marked.
    pub ect: bool,
}

/// The message of an [`Ack`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AckKind {
    /// All bytes before `ack` have arrived.
    #[default]
    Ack,
    /// The same, and a later packet has arrived before the one that begins with `ack`.
    Nak,
    /// Congestion notification packet: marked packets arrive.
    Cnp,
}

/// Up to three ranges of bytes beyond the cumulative ACK, the one that changed last first
/// (RFC 2018 §4; three fit beside timestamps).
///
/// Kept relative to the ACK, in half the space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks([Block; SackBlocks::MOST]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Block {
    offset: u32,
    len: u32,
}

impl SackBlocks {
    /// As many as one ACK can carry.
    pub const MOST: usize = 3;

    /// Returns whether there is no block.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0[0].len == 0
    }

    /// First byte and the number after the last byte of each block of an ACK with this `ack`.
    pub fn blocks(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> {
        self.0.into_iter().take_while(|b| b.len > 0).map(move |b| {
            let start = ack + u64::from(b.offset);
            (start, start + u64::from(b.len))
        })
    }

    /// Adds a block to those of an ACK with this `ack`, unless it is there or there is no room.
    pub(crate) fn push(&mut self, ack: u64, (start, end): (u64, u64)) {
        let block = Block {
            offset: (start - ack) as u32,
            len: (end - start) as u32,
        };
        for slot in &mut self.0 {
            if slot.len == 0 {
                *slot = block;
            }
            if *slot == block {
                return;
            }
        }
    }
}

/// Immediate answer of a receiver: up to two ACKs, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Nothing yet: the ACK is delayed.
    None,
    /// One.
    One(Ack),
    /// The delayed ACK with the ECN state before, and one with the new state (RFC 8257 §3.2).
    Two(Ack, Ack),
}

/// Takes the first.
impl Iterator for Acks {
    type Item = Ack;

    #[inline]
    fn next(&mut self) -> Option<Ack> {
        let (first, rest) = match *self {
            Self::None => return None,
            Self::One(ack) => (ack, Self::None),
            Self::Two(first, second) => (first, Self::One(second)),
        };
        *self = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_in_order_and_once() {
        let mut sack = SackBlocks::default();
        assert!(sack.is_empty());
        for block in [
            (5_000, 6_000),
            (3_000, 3_500),
            (5_000, 6_000),
            (9_000, 9_001),
            (8_000, 8_001),
        ] {
            sack.push(1_000, block);
        }
        assert!(!sack.is_empty());
        let blocks: Vec<_> = sack.blocks(1_000).collect();
        assert_eq!(blocks, [(5_000, 6_000), (3_000, 3_500), (9_000, 9_001)]);
    }

    #[test]
    fn headers_stay_small() {
        assert!(size_of::<Segment>() <= 24);
        assert!(size_of::<Ack>() <= 56);
    }
}
