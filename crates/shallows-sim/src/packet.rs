//! Packets of the simulated world.

use shallows_core::host::udp::Datagram;
use shallows_core::packet::{Ecn, Packet as _};
use shallows_core::tcp::{Ack, AckKind, SackBlocks, Segment};
use shallows_core::units::Time;
use shallows_model::FlowId;

use crate::ids::ConnectionId;
use crate::ticket::{Header, Ticket};

/// A packet on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// First byte of data, or the next byte that an ACK asks for; in a datagram the message.
    seq: u64,
    /// Send time of the segment; in an ACK the echoed time.
    sent_at: Time,
    /// Data: the flow that it is of; datagrams have their fragment and the number of fragments
    /// above it, 16 bits each; control messages have the place of their bytes. ACK: one-way delay in ps, or with [`Flags::SACK`] the place of
    /// the selective ACK.
    extra: u64,
    pub(crate) ticket: Ticket,
}

/// Kind of packet, bit by bit.
struct Flags;

impl Flags {
    const ACK: u8 = 1;
    const SYN: u8 = 2;
    const RETRANSMISSION: u8 = 4;
    const CWR: u8 = 8;
    const ECE: u8 = 16;
    const SACK: u8 = 32;
    const DATAGRAM: u8 = 64;
    const CONTROL: u8 = 128;
    /// The lower of two bits for the kind of an ACK, which is no retransmission and has no CWR.
    const KIND: u32 = 2;

    fn set(condition: bool, flag: u8) -> u8 {
        if condition { flag } else { 0 }
    }
}

/// Connection, addresses and route of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) connection: ConnectionId,
    pub(crate) route: u32,
    pub(crate) dscp: u8,
    pub(crate) header: u16,
}

/// Bytes of a packet, without and with headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) len: u16,
    pub(crate) size: u16,
}

/// Fields of an ACK beyond its header; rare, so kept aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selective {
    pub(crate) sack: SackBlocks,
    pub(crate) one_way_delay: Time,
}

impl Envelope {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "see `Ticket::new`")]
    #[inline]
    fn ticket(self, remaining: u32, header: &Header) -> Ticket {
        Ticket::new(self.connection, self.route, remaining, header)
    }
}

impl Packet {
    /// A segment of `flow`, which has `remaining` bytes to go.
    #[inline]
    pub(crate) fn data(
        envelope: Envelope,
        segment: &Segment,
        flow: FlowId,
        remaining: u64,
    ) -> Self {
        let flags = Flags::set(segment.syn, Flags::SYN)
            | Flags::set(segment.retransmission, Flags::RETRANSMISSION)
            | Flags::set(segment.cwr, Flags::CWR);
        Self {
            seq: segment.seq,
            sent_at: segment.sent_at,
            extra: u64::from(flow.0),
            ticket: envelope.ticket(
                remaining.min(u64::from(u32::MAX)) as u32,
                &Header {
                    size: segment.len as u16 + envelope.header,
                    dscp: envelope.dscp,
                    ecn: if segment.ect { Ecn::Ect0 } else { Ecn::NotEct },
                    len: segment.len as u16,
                    flags,
                },
            ),
        }
    }

    /// An ACK, which is as urgent as a packet can be; `selective` is where its [`Selective`] part
    /// was put, if it has one.
    #[inline]
    pub(crate) fn ack(envelope: Envelope, ack: &Ack, selective: Option<u32>) -> Self {
        let flags = Flags::ACK
            | Flags::set(ack.syn, Flags::SYN)
            | Flags::set(ack.ece, Flags::ECE)
            | Flags::set(selective.is_some(), Flags::SACK)
            | (ack.kind as u8) << Flags::KIND;
        Self {
            seq: ack.ack,
            sent_at: ack.echo,
            extra: selective.map_or(ack.one_way_delay.ps(), u64::from),
            ticket: envelope.ticket(
                0,
                &Header {
                    size: envelope.header,
                    dscp: envelope.dscp,
                    ecn: if ack.ect { Ecn::Ect0 } else { Ecn::NotEct },
                    len: 0,
                    flags,
                },
            ),
        }
    }

    /// A datagram of `flow`, of which nobody knows how much there is to come.
    pub(crate) fn datagram(envelope: Envelope, datagram: &Datagram, flow: FlowId) -> Self {
        let (fragment, fragments) = (u64::from(datagram.fragment), u64::from(datagram.fragments));
        Self {
            seq: datagram.message,
            sent_at: datagram.sent_at,
            extra: u64::from(flow.0) | fragment << 32 | fragments << 48,
            ticket: envelope.ticket(
                u32::MAX,
                &Header {
                    size: datagram.size as u16,
                    dscp: envelope.dscp,
                    ecn: if datagram.ect { Ecn::Ect0 } else { Ecn::NotEct },
                    len: datagram.len as u16,
                    flags: Flags::DATAGRAM,
                },
            ),
        }
    }

    /// A control message in one packet, with its bytes at `place`.
    pub(crate) fn control(
        connection: ConnectionId,
        route: u32,
        dscp: u8,
        place: u32,
        length: Length,
        now: Time,
    ) -> Self {
        let Length { len, size } = length;
        Self {
            seq: 0,
            sent_at: now,
            extra: u64::from(place) | 1 << 48,
            ticket: Ticket::new(
                connection,
                route,
                0,
                &Header {
                    size,
                    dscp,
                    ecn: Ecn::NotEct,
                    len,
                    flags: Flags::CONTROL,
                },
            ),
        }
    }

    /// The same packet with this number on its ticket.
    #[inline]
    pub(crate) fn numbered(mut self, number: u32) -> Self {
        self.ticket = self.ticket.numbered(number);
        self
    }

    /// A copy of a datagram for another connection, at the first link of its path.
    pub(crate) fn copied(self, connection: ConnectionId, route: u32) -> Self {
        Self {
            extra: self.extra & !u64::from(u32::MAX) | u64::from(connection.0),
            ticket: self.ticket.redirected(connection, route),
            ..self
        }
    }

    /// The same packet with another ticket.
    #[inline]
    pub(crate) fn with_ticket(self, ticket: Ticket) -> Self {
        Self { ticket, ..self }
    }

    #[inline]
    fn has(&self, flag: u8) -> bool {
        self.ticket.flags() & flag != 0
    }

    #[inline]
    pub(crate) fn is_control(&self) -> bool {
        self.has(Flags::CONTROL)
    }

    /// Index of a control message's bytes.
    pub(crate) fn payload(&self) -> u32 {
        self.extra as u32
    }

    /// The same control message, with its bytes at another place.
    pub(crate) fn with_payload(self, place: u32) -> Self {
        Self {
            extra: self.extra & !u64::from(u32::MAX) | u64::from(place),
            ..self
        }
    }

    /// The connection.
    #[inline]
    pub(crate) fn connection(&self) -> ConnectionId {
        self.ticket.connection()
    }

    /// Bytes with headers.
    #[inline]
    pub(crate) fn size(&self) -> u32 {
        self.ticket.size()
    }

    #[inline]
    pub(crate) fn dscp(&self) -> u8 {
        self.ticket.dscp()
    }

    #[inline]
    pub(crate) fn ecn(&self) -> Ecn {
        self.ticket.ecn()
    }

    /// Bytes that the flow has left with this packet, as far as the field goes.
    #[inline]
    pub(crate) fn remaining(&self) -> u64 {
        self.ticket.remaining()
    }

    #[inline]
    pub(crate) fn is_datagram(&self) -> bool {
        self.has(Flags::DATAGRAM)
    }

    pub(crate) fn to_datagram(self) -> Datagram {
        Datagram {
            message: self.seq,
            sent_at: self.sent_at,
            size: self.size(),
            len: u32::from(self.ticket.len()),
            fragment: (self.extra >> 32) as u16,
            fragments: (self.extra >> 48) as u16,
            ect: self.ecn() != Ecn::NotEct,
        }
    }

    /// Returns whether it is a packet with data of a reliable transport.
    #[inline]
    pub(crate) fn is_data(&self) -> bool {
        !self.has(Flags::ACK | Flags::DATAGRAM | Flags::CONTROL)
    }

    #[inline]
    pub(crate) fn is_ack(&self) -> bool {
        self.has(Flags::ACK)
    }

    /// The flow of a data packet.
    #[inline]
    pub(crate) fn flow(&self) -> FlowId {
        FlowId(self.extra as u32)
    }

    /// The flow to whose account a lost packet goes, if it is not an ACK.
    pub(crate) fn account(&self) -> Option<FlowId> {
        match self {
            _ if self.is_ack() => None,
            _ if self.is_control() => Some(self.connection().in_place_of_flow()),
            _ => Some(self.flow()),
        }
    }

    /// Index of the selective part of an ACK.
    #[inline]
    pub(crate) fn selective(&self) -> Option<u32> {
        self.has(Flags::SACK).then_some(self.extra as u32)
    }

    /// The same packet, with its selective part at another place.
    pub(crate) fn with_selective(self, place: u32) -> Self {
        Self {
            extra: u64::from(place),
            ..self
        }
    }

    #[inline]
    pub(crate) fn to_segment(self) -> Segment {
        Segment {
            seq: self.seq,
            sent_at: self.sent_at,
            len: u32::from(self.ticket.len()),
            syn: self.has(Flags::SYN),
            retransmission: self.has(Flags::RETRANSMISSION),
            cwr: self.has(Flags::CWR),
            ect: self.ecn() != Ecn::NotEct,
        }
    }

    #[inline]
    pub(crate) fn to_ack(self, selective: Option<Selective>) -> Ack {
        let (sack, one_way_delay) = match selective {
            Some(part) => (part.sack, part.one_way_delay),
            None => (SackBlocks::default(), Time::from_ps(self.extra)),
        };
        Ack {
            kind: match self.ticket.flags() >> Flags::KIND & 3 {
                0 => AckKind::Ack,
                kind => rare_kind(kind),
            },
            ack: self.seq,
            echo: self.sent_at,
            one_way_delay,
            sack,
            ece: self.has(Flags::ECE),
            syn: self.has(Flags::SYN),
            ect: self.ecn() != Ecn::NotEct,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_stay_small() {
        assert_eq!(size_of::<Packet>(), 48);
        assert_eq!(size_of::<Ticket>(), 24);
    }
}
