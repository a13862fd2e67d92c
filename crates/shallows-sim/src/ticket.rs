//! The part of a packet that ports and gates see.

use shallows_core::packet::{Ecn, Packet};

use crate::ids::ConnectionId;
use crate::packet::Envelope;

/// A packet as ports and gates see it. It stands for the packet in their queues, while the packet
/// stays in the arena.
///
/// Three words and not ten fields: compilers copy a struct field by field, and a hop copies a ticket
/// twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticket {
    /// The number of the packet, and above it where its next link stands in the table of paths.
    way: u64,
    /// The connection, and above it the bytes that the flow has left with this packet, as far as 32
    /// bits go.
    flow: u64,
    /// See [`Header`].
    header: u64,
}

/// The fields of a ticket's third word, from the lowest bits up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header {
    /// Bytes with headers: 16 bits.
    pub(crate) size: u16,
    /// 8 bits.
    pub(crate) dscp: u8,
    /// 8 bits.
    pub(crate) ecn: Ecn,
}

const DSCP: u32 = 16;
const ECN: u32 = 24;
const HIGH: u32 = 32;

impl Ticket {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "by value its fields are packed into a register and taken apart again"
    )]
    #[inline]
    pub(crate) fn new(
        connection: ConnectionId,
        route: u32,
        remaining: u32,
        header: &Header,
    ) -> Self {
        Self {
            way: u64::from(route) << HIGH,
            flow: u64::from(remaining) << HIGH | u64::from(connection.0),
            header: u64::from(header.size)
                | u64::from(header.dscp) << DSCP
                | (header.ecn as u64) << ECN,
        }
    }

    /// The same header on another connection, at the first link of its path.
    pub(crate) fn redirected(self, connection: ConnectionId, route: u32) -> Self {
        let above = u64::from(u32::MAX) << HIGH;
        Self {
            way: u64::from(route) << HIGH | self.way & !above,
            flow: self.flow & above | u64::from(connection.0),
            ..self
        }
    }

    /// A gate's view of a full segment before it is sent.
    pub(crate) fn full_segment(envelope: Envelope, segment: u32) -> Self {
        let header = Header {
            size: segment as u16 + envelope.header,
            dscp: envelope.dscp,
            ..Header::default()
        };
        Self::new(envelope.connection, 0, 0, &header)
    }

    /// The same ticket for the packet with this number.
    #[inline]
    pub(crate) fn numbered(self, number: u32) -> Self {
        Self {
            way: self.way >> HIGH << HIGH | u64::from(number),
            ..self
        }
    }

    /// The number of the packet.
    #[inline]
    pub(crate) fn packet(&self) -> u32 {
        self.way as u32
    }

    /// Index of its next link in the table of paths.
    #[inline]
    pub(crate) fn route(&self) -> u32 {
        (self.way >> HIGH) as u32
    }

    /// Takes the packet to the next link of its path.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.way += 1 << HIGH;
    }

    /// The connection.
    #[inline]
    pub(crate) fn connection(&self) -> ConnectionId {
        ConnectionId(self.flow as u32)
    }
}

impl Packet for Ticket {
    #[inline]
    fn size(&self) -> u32 {
        self.header as u32 & 0xffff
    }

    #[inline]
    fn flow(&self) -> u64 {
        u64::from(self.connection().0)
    }

    #[inline]
    fn dscp(&self) -> u8 {
        (self.header >> DSCP) as u8
    }

    #[inline]
    fn set_dscp(&mut self, dscp: u8) {
        self.header = self.header & !(0xff << DSCP) | u64::from(dscp) << DSCP;
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match self.header >> ECN & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.header |= (Ecn::Ce as u64) << ECN;
    }

    #[inline]
    fn remaining(&self) -> u64 {
        self.flow >> HIGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_changes_without_the_others() {
        let header = Header {
            size: u16::MAX,
            dscp: 46,
            ecn: Ecn::Ect0,
        };
        let mut ticket = Ticket::new(ConnectionId(u32::MAX), 7, 3, &header).numbered(u32::MAX);
        ticket.advance();
        ticket.set_dscp(u8::MAX);
        ticket.mark_ce();
        assert_eq!((ticket.packet(), ticket.route()), (u32::MAX, 8));
        assert_eq!((ticket.connection().0, ticket.remaining()), (u32::MAX, 3));
        assert_eq!(ticket.size(), 0xffff);
        assert_eq!((ticket.dscp(), ticket.ecn()), (u8::MAX, Ecn::Ce));
        ticket = ticket.numbered(5);
        assert_eq!((ticket.packet(), ticket.route()), (5, 8));
        ticket.set_dscp(1);
        assert_eq!((ticket.dscp(), ticket.size()), (1, 0xffff));
    }

    #[test]
    fn every_codepoint_is_kept() {
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            let header = Header {
                ecn,
                ..Header::default()
            };
            assert_eq!(Ticket::new(ConnectionId(0), 0, 0, &header).ecn(), ecn);
        }
    }
}
