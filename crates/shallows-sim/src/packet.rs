//! Packets of the simulated world: a header, which ports and gates see, and a payload.

mod payload;

use shallows_core::host::udp::Datagram;
use shallows_core::packet::{Ecn, Packet as _};
use shallows_core::tcp::{Ack, SackBlocks, Segment};
use shallows_core::units::Time;
use shallows_model::FlowId;

use crate::ids::ConnectionId;
use crate::ticket::{Header, Ticket};

use payload::{AckFlags, SegmentFlags};

pub(crate) use payload::{Delay, Payload, Selective};

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Its header: path, connection, size, DSCP and ECN.
    pub(crate) ticket: Ticket,
    pub(crate) payload: Payload,
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

impl Envelope {
    /// The header of a packet of this size.
    #[inline]
    fn ticket(self, remaining: u32, size: u16, ect: bool) -> Ticket {
        Ticket::new(
            self.connection,
            self.route,
            remaining,
            &Header {
                size,
                dscp: self.dscp,
                ecn: if ect { Ecn::Ect0 } else { Ecn::NotEct },
            },
        )
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
        let remaining = remaining.min(u64::from(u32::MAX)) as u32;
        let size = segment.len as u16 + envelope.header;
        Self {
            ticket: envelope.ticket(remaining, size, segment.ect),
            payload: Payload::Data {
                flags: SegmentFlags::of(segment),
                len: segment.len as u16,
                flow,
                seq: segment.seq,
                sent_at: segment.sent_at,
            },
        }
    }

    /// An ACK with this delay, which is as urgent as a packet can be.
    #[inline]
    pub(crate) fn ack(envelope: Envelope, ack: &Ack, one_way_delay: Delay) -> Self {
        Self {
            ticket: envelope.ticket(0, envelope.header, ack.ect),
            payload: Payload::Ack {
                flags: AckFlags::of(ack),
                one_way_delay,
                ack: ack.ack,
                echo: ack.echo,
            },
        }
    }

    /// An ACK whose [`Selective`] part is at `place`.
    pub(crate) fn selective_ack(envelope: Envelope, ack: &Ack, place: u32) -> Self {
        Self {
            ticket: envelope.ticket(0, envelope.header, ack.ect),
            payload: Payload::SelectiveAck {
                flags: AckFlags::of(ack),
                place,
                ack: ack.ack,
                echo: ack.echo,
            },
        }
    }

    /// A datagram of the envelope's connection, of which nobody knows how much there is to come.
    pub(crate) fn datagram(envelope: Envelope, datagram: &Datagram) -> Self {
        Self {
            ticket: envelope.ticket(u32::MAX, datagram.size as u16, datagram.ect),
            payload: Payload::Datagram {
                len: datagram.len as u16,
                fragment: datagram.fragment,
                fragments: datagram.fragments,
                message: datagram.message,
                sent_at: datagram.sent_at,
            },
        }
    }

    /// A control message in one packet, with its bytes at `place`.
    pub(crate) fn control(envelope: Envelope, length: Length, place: u32, now: Time) -> Self {
        Self {
            ticket: envelope.ticket(0, length.size, false),
            payload: Payload::Control {
                len: length.len,
                place,
                sent_at: now,
            },
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
        self.with_ticket(self.ticket.redirected(connection, route))
    }

    /// The same packet with another ticket.
    #[inline]
    pub(crate) fn with_ticket(self, ticket: Ticket) -> Self {
        Self { ticket, ..self }
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
    pub(crate) fn is_ack(&self) -> bool {
        matches!(
            self.payload,
            Payload::Ack { .. } | Payload::SelectiveAck { .. }
        )
    }

    #[inline]
    pub(crate) fn is_control(&self) -> bool {
        matches!(self.payload, Payload::Control { .. })
    }

    /// The flow to whose account a lost packet goes, if it is not an ACK.
    pub(crate) fn account(&self) -> Option<FlowId> {
        match self.payload {
            Payload::Data { flow, .. } => Some(flow),
            Payload::Ack { .. } | Payload::SelectiveAck { .. } => None,
            Payload::Datagram { .. } | Payload::Control { .. } => {
                Some(self.connection().in_place_of_flow())
            }
        }
    }

    /// The same packet with what is aside of it at another place, if it has such a part.
    pub(crate) fn with_place(mut self, new: u32) -> Self {
        if let Payload::SelectiveAck { place, .. } | Payload::Control { place, .. } =
            &mut self.payload
        {
            *place = new;
        }
        self
    }

    #[inline]
    fn is_ect(&self) -> bool {
        self.ecn() != Ecn::NotEct
    }

    /// The segment that it carries and the flow of it, if it carries data.
    #[inline]
    pub(crate) fn to_segment(self) -> Option<(FlowId, Segment)> {
        let Payload::Data {
            flags,
            len,
            flow,
            seq,
            sent_at,
        } = self.payload
        else {
            return None;
        };
        let segment = Segment {
            seq,
            sent_at,
            len: u32::from(len),
            syn: flags.has(SegmentFlags::SYN),
            retransmission: flags.has(SegmentFlags::RETRANSMISSION),
            cwr: flags.has(SegmentFlags::CWR),
            ect: self.is_ect(),
        };
        Some((flow, segment))
    }

    /// The ACK that it carries, if it carries one; `aside` has the parts that are kept aside.
    #[inline]
    pub(crate) fn to_ack(self, aside: impl FnOnce(u32) -> Selective) -> Option<Ack> {
        let (flags, ack, echo, part) = match self.payload {
            Payload::Ack {
                flags,
                one_way_delay,
                ack,
                echo,
            } => {
                let part = Selective {
                    sack: SackBlocks::default(),
                    one_way_delay: one_way_delay.time(),
                };
                (flags, ack, echo, part)
            }
            Payload::SelectiveAck {
                flags,
                place,
                ack,
                echo,
            } => (flags, ack, echo, aside(place)),
            Payload::Data { .. } | Payload::Datagram { .. } | Payload::Control { .. } => {
                return None;
            }
        };
        Some(Ack {
            kind: flags.kind(),
            ack,
            echo,
            one_way_delay: part.one_way_delay,
            sack: part.sack,
            ece: flags.has(AckFlags::ECE),
            syn: flags.has(AckFlags::SYN),
            ect: self.is_ect(),
        })
    }

    /// The datagram that it is, if it is one; control messages are datagrams too.
    pub(crate) fn to_datagram(self) -> Option<Datagram> {
        let (len, fragment, fragments, message, sent_at) = match self.payload {
            Payload::Datagram {
                len,
                fragment,
                fragments,
                message,
                sent_at,
            } => (len, fragment, fragments, message, sent_at),
            Payload::Control { len, sent_at, .. } => (len, 0, 1, 0, sent_at),
            Payload::Data { .. } | Payload::Ack { .. } | Payload::SelectiveAck { .. } => {
                return None;
            }
        };
        Some(Datagram {
            message,
            sent_at,
            size: self.size(),
            len: u32::from(len),
            fragment,
            fragments,
            ect: self.is_ect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use shallows_core::tcp::AckKind;

    use super::*;

    const ENVELOPE: Envelope = Envelope {
        connection: ConnectionId(7),
        route: 3,
        dscp: 46,
        header: 40,
    };

    #[test]
    fn packets_stay_small() {
        assert_eq!(size_of::<Packet>(), 48);
        assert_eq!(size_of::<Ticket>(), 24);
        assert_eq!(size_of::<Payload>(), 24);
    }

    #[test]
    fn segments_can_be_read_back() {
        for bits in 0..16 {
            let segment = Segment {
                seq: u64::MAX - 1,
                sent_at: Time::MAX,
                len: 1460,
                syn: bits & 1 != 0,
                retransmission: bits & 2 != 0,
                cwr: bits & 4 != 0,
                ect: bits & 8 != 0,
            };
            let packet = Packet::data(ENVELOPE, &segment, FlowId(9), u64::MAX);
            assert_eq!(packet.to_segment(), Some((FlowId(9), segment)));
            assert_eq!(
                (packet.size(), packet.remaining()),
                (1500, u64::from(u32::MAX))
            );
            assert_eq!(packet.account(), Some(FlowId(9)));
            assert!(packet.to_datagram().is_none() && !packet.is_ack());
        }
    }

    #[test]
    fn acks_can_be_read_back() {
        let nothing = |_| -> Selective { panic!("nothing is aside") };
        for kind in [AckKind::Ack, AckKind::Nak, AckKind::Cnp] {
            for bits in 0..8 {
                let ack = Ack {
                    kind,
                    ack: u64::MAX,
                    echo: Time::from_ps(u64::MAX - 3),
                    one_way_delay: Time::from_ps((1 << 48) - 1),
                    sack: SackBlocks::default(),
                    ece: bits & 1 != 0,
                    syn: bits & 2 != 0,
                    ect: bits & 4 != 0,
                };
                let delay = Delay::new(ack.one_way_delay).unwrap();
                let packet = Packet::ack(ENVELOPE, &ack, delay);
                assert_eq!(packet.to_ack(nothing), Some(ack));
                assert_eq!((packet.size(), packet.account()), (40, None));
                let packet = Packet::selective_ack(ENVELOPE, &ack, 5).with_place(6);
                let aside = |place| {
                    assert_eq!(place, 6);
                    Selective {
                        sack: ack.sack,
                        one_way_delay: ack.one_way_delay,
                    }
                };
                assert_eq!(packet.to_ack(aside), Some(ack));
            }
        }
        assert!(Delay::new(Time::from_ps(1 << 48)).is_none());
    }

    #[test]
    fn datagrams_can_be_read_back_and_copied() {
        let datagram = Datagram {
            message: u64::MAX,
            sent_at: Time::from_us(3),
            size: 1500,
            len: 1472,
            fragment: 3,
            fragments: u16::MAX,
            ect: true,
        };
        let packet = Packet::datagram(ENVELOPE, &datagram).copied(ConnectionId(8), 2);
        assert_eq!(packet.to_datagram(), Some(datagram));
        assert_eq!(packet.account(), Some(FlowId(8)));
        let length = Length { len: 5, size: 33 };
        let control = Packet::control(ENVELOPE, length, 1, Time::from_us(3)).with_place(2);
        assert!(matches!(control.payload, Payload::Control { place: 2, .. }));
        let sent = control.to_datagram().unwrap();
        assert_eq!((sent.len, sent.size, sent.fragments), (5, 33, 1));
    }
}
