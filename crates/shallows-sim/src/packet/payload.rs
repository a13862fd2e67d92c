//! Payloads: the part of a packet that its receiver reads.

use shallows_core::tcp::{Ack, AckKind, SackBlocks, Segment};
use shallows_core::units::Time;
use shallows_model::FlowId;

/// The part of a packet that its receiver reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload {
    /// Data of a reliable transport.
    Data {
        flags: SegmentFlags,
        /// Bytes of data.
        len: u16,
        flow: FlowId,
        /// First byte.
        seq: u64,
        sent_at: Time,
    },
    /// An ACK, a NAK or a CNP.
    Ack {
        flags: AckFlags,
        one_way_delay: Delay,
        /// The next byte that it asks for.
        ack: u64,
        /// Send time of the segment that it answers.
        echo: Time,
    },
    /// An ACK with a [`Selective`] part.
    SelectiveAck {
        flags: AckFlags,
        /// Place of that part.
        place: u32,
        ack: u64,
        echo: Time,
    },
    /// A datagram of a UDP flow or an application.
    Datagram {
        /// Bytes of data.
        len: u16,
        fragment: u16,
        fragments: u16,
        message: u64,
        sent_at: Time,
    },
    /// A message of a control agent.
    Control {
        /// Bytes of the message.
        len: u16,
        /// Place of the message.
        place: u32,
        sent_at: Time,
    },
}

/// Flags of a segment, bit by bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFlags(u8);

impl SegmentFlags {
    pub(super) const SYN: u8 = 1;
    pub(super) const RETRANSMISSION: u8 = 2;
    pub(super) const CWR: u8 = 4;

    #[inline]
    pub(super) fn of(segment: &Segment) -> Self {
        Self(
            flag(segment.syn, Self::SYN)
                | flag(segment.retransmission, Self::RETRANSMISSION)
                | flag(segment.cwr, Self::CWR),
        )
    }

    #[inline]
    pub(super) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// Flags and kind of an ACK, bit by bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckFlags(u8);

impl AckFlags {
    pub(super) const SYN: u8 = 1;
    pub(super) const ECE: u8 = 2;
    /// The lower of two bits for the kind.
    const KIND: u32 = 2;

    #[inline]
    pub(super) fn of(ack: &Ack) -> Self {
        Self(flag(ack.syn, Self::SYN) | flag(ack.ece, Self::ECE) | (ack.kind as u8) << Self::KIND)
    }

    #[inline]
    pub(super) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    pub(super) fn kind(self) -> AckKind {
        match self.0 >> Self::KIND {
            0 => AckKind::Ack,
            kind => rare_kind(kind),
        }
    }
}

#[inline]
fn flag(condition: bool, flag: u8) -> u8 {
    if condition { flag } else { 0 }
}

/// The kind of an ACK that TCP does not have.
#[cold]
fn rare_kind(kind: u8) -> AckKind {
    const NAK: u8 = AckKind::Nak as u8;
    if kind == NAK {
        AckKind::Nak
    } else {
        AckKind::Cnp
    }
}

/// A time of less than 2^48 ps, which is 281 s. ACKs put longer ones aside with their [`Selective`]
/// part.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
pub(crate) struct Delay {
    low: u32,
    high: u16,
}

impl Delay {
    /// The delay, if it is not too long.
    #[inline]
    pub(crate) fn new(delay: Time) -> Option<Self> {
        let ps = delay.ps();
        (ps >> 48 == 0).then_some(Self {
            low: ps as u32,
            high: (ps >> 32) as u16,
        })
    }

    #[inline]
    pub(super) fn time(self) -> Time {
        Time::from_ps(u64::from(self.low) | u64::from(self.high) << 32)
    }
}

/// Fields of an ACK beyond its payload; rare, so kept aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selective {
    pub(crate) sack: SackBlocks,
    pub(crate) one_way_delay: Time,
}
