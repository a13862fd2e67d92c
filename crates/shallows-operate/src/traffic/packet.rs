//! Headers of a packet: Ethernet with VLAN tags, IPv4 and IPv6, TCP and UDP.

use std::net::IpAddr;

use super::bytes::Reader;
use super::pcap::Link;

/// Addresses, ports and protocol of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiveTuple {
    /// Sender.
    pub src: IpAddr,
    /// Receiver.
    pub dst: IpAddr,
    /// Port of the sender; 0 where the protocol has none.
    pub src_port: u16,
    /// Port of the receiver.
    pub dst_port: u16,
    /// Protocol number: 6 is TCP, 17 is UDP.
    pub protocol: u8,
}

impl FiveTuple {
    /// The other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
            protocol: self.protocol,
        }
    }
}

/// Fields of a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) tuple: FiveTuple,
    pub(super) dscp: u8,
    /// Bytes after the transport header, by the lengths in the headers.
    pub(super) payload: u32,
    pub(super) tcp: Option<Tcp>,
    /// The payload as far as it was captured.
    pub(super) content: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tcp {
    pub(super) sequence: u32,
    pub(super) is_syn: bool,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl<'a> Header<'a> {
    pub(super) fn new(link: Link, bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let kind = match link {
            Link::Ethernet => {
                reader.take(12)?;
                let mut kind = reader.u16()?;
                while matches!(kind, 0x8100 | 0x88a8) {
                    reader.take(2)?;
                    kind = reader.u16()?;
                }
                kind
            }
            Link::Cooked => {
                reader.take(14)?;
                reader.u16()?
            }
            Link::Cooked2 => {
                let kind = reader.u16()?;
                reader.take(18)?;
                kind
            }
            Link::Ip => match reader.0.first()? >> 4 {
                4 => 0x0800,
                _ => 0x86dd,
            },
            Link::Other => return None,
        };
        match kind {
            0x0800 => ipv4(reader),
            0x86dd => ipv6(reader),
            _ => None,
        }
    }
}

fn ipv4(mut reader: Reader<'_>) -> Option<Header<'_>> {
    let first = reader.u8()?;
    let header = usize::from(first & 0xf) * 4;
    let tos = reader.u8()?;
    let total = usize::from(reader.u16()?);
    reader.take(2)?;
    let fragment = reader.u16()?;
    reader.take(1)?;
    let protocol = reader.u8()?;
    reader.take(2)?;
    let (src, dst) = (reader.array::<4>()?, reader.array::<4>()?);
    reader.take(header.checked_sub(20)?)?;
    // Later fragments have no ports.
    if first >> 4 != 4 || fragment & 0x1fff != 0 {
        return None;
    }
    let length = total.checked_sub(header)?;
    transport(reader, length, (src.into(), dst.into()), tos >> 2, protocol)
}

fn ipv6(mut reader: Reader<'_>) -> Option<Header<'_>> {
    let first = reader.u32()?;
    let length = usize::from(reader.u16()?);
    let protocol = reader.u8()?;
    reader.take(1)?;
    let (src, dst) = (reader.array::<16>()?, reader.array::<16>()?);
    let dscp = (first >> 22 & 0x3f) as u8;
    if first >> 28 != 6 {
        return None;
    }
    transport(reader, length, (src.into(), dst.into()), dscp, protocol)
}

fn transport(
    mut reader: Reader<'_>,
    length: usize,
    (src, dst): (IpAddr, IpAddr),
    dscp: u8,
    protocol: u8,
) -> Option<Header<'_>> {
    let (src_port, dst_port) = match protocol {
        TCP | UDP => (reader.u16()?, reader.u16()?),
        _ => return None,
    };
    let (header, tcp) = if protocol == TCP {
        let sequence = reader.u32()?;
        reader.take(4)?;
        let (offset, flags) = (reader.u8()?, reader.u8()?);
        let header = usize::from(offset >> 4) * 4;
        let is_syn = flags & 2 != 0;
        // The capture may end within the options.
        let rest = header.checked_sub(14)?.min(reader.len());
        reader.take(rest)?;
        (header, Some(Tcp { sequence, is_syn }))
    } else {
        reader.take(4)?;
        (8, None)
    };
    let payload = length.checked_sub(header)?;
    Some(Header {
        tuple: FiveTuple {
            src,
            dst,
            src_port,
            dst_port,
            protocol,
        },
        dscp,
        payload: u32::try_from(payload).ok()?,
        tcp,
        content: &reader.0[..payload.min(reader.len())],
    })
}
