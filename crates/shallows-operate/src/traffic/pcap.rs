//! Captures: pcapng, and the older pcap.

use super::TrafficError;

/// A captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Captured<'a> {
    /// Nanoseconds since the epoch of the capture's clock.
    pub(super) at: u64,
    /// Interface, in the order of the file.
    pub(super) interface: u32,
    pub(super) link: Link,
    /// The bytes that were kept of it.
    pub(super) bytes: &'a [u8],
}

/// Link type of an interface's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    /// An IP header without anything before it.
    Ip,
    /// `tcpdump -i any`: 16 bytes with the protocol at the end.
    Cooked,
    /// The newer of these, with 20 bytes and the protocol at the start.
    Cooked2,
    Other,
}

impl Link {
    fn new(number: u32) -> Self {
        match number {
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            _ => Self::Other,
        }
    }
}

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;

/// Option of an interface: the unit of its times.
const TIME_RESOLUTION: u16 = 9;

/// Returns whether these are the first bytes of a capture.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    let Some(first) = bytes.first_chunk::<4>() else {
        return false;
    };
    u32::from_be_bytes(*first) == SECTION || Order::of_pcap(*first).is_some()
}

/// All packets of a capture. A last packet that is cut off is left out, as after a killed tcpdump.
pub(super) fn packets(bytes: &[u8]) -> Result<Vec<Captured<'_>>, TrafficError> {
    let first = bytes.first_chunk::<4>();
    let first = first.ok_or_else(|| TrafficError::at(0, "the file is empty"))?;
    if let Some((order, unit)) = Order::of_pcap(*first) {
        return pcap(bytes, order, unit);
    }
    pcapng(bytes)
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    /// From pcap's magic number, with the nanoseconds of its fractions.
    fn of_pcap(first: [u8; 4]) -> Option<(Self, u64)> {
        match u32::from_be_bytes(first) {
            0xa1b2_c3d4 => Some((Self::Big, 1_000)),
            0xd4c3_b2a1 => Some((Self::Little, 1_000)),
            0xa1b2_3c4d => Some((Self::Big, 1)),
            0x4d3c_b2a1 => Some((Self::Little, 1)),
            _ => None,
        }
    }

    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = bytes.get(at..)?.first_chunk::<2>()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(*bytes),
            Self::Big => u16::from_be_bytes(*bytes),
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = bytes.get(at..)?.first_chunk::<4>()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(*bytes),
            Self::Big => u32::from_be_bytes(*bytes),
        })
    }
}

fn pcap(bytes: &[u8], order: Order, unit: u64) -> Result<Vec<Captured<'_>>, TrafficError> {
    let link = order.u32(bytes, 20);
    let link = link.ok_or_else(|| TrafficError::at(0, "the header of the capture is cut off"))?;
    let link = Link::new(link & 0x0fff_ffff);
    let mut packets = Vec::new();
    let mut at = 24;
    while let (Some(seconds), Some(fraction), Some(kept)) = (
        order.u32(bytes, at),
        order.u32(bytes, at + 4),
        order.u32(bytes, at + 8),
    ) {
        let start = at + 16;
        let Some(end) = start.checked_add(kept as usize) else {
            return Err(TrafficError::at(at, "a packet is longer than any file"));
        };
        let Some(content) = bytes.get(start..end) else {
            break;
        };
        packets.push(Captured {
            at: u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit,
            interface: 0,
            link,
            bytes: content,
        });
        at = end;
    }
    Ok(packets)
}

/// The clock and the link of an interface of a pcapng section.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Link,
    /// Ticks per second.
    ticks: u64,
}

fn pcapng(bytes: &[u8]) -> Result<Vec<Captured<'_>>, TrafficError> {
    let mut packets = Vec::new();
    let mut order = Order::Little;
    let mut interfaces: Vec<Interface> = Vec::new();
    // Interfaces of earlier sections.
    let mut before = 0;
    let mut at = 0;
    while bytes.len().saturating_sub(at) >= 12 {
        let is_section = Order::Big.u32(bytes, at) == Some(SECTION);
        if is_section {
            order = match Order::Big.u32(bytes, at + 8) {
                Some(0x1a2b_3c4d) => Order::Big,
                Some(0x4d3c_2b1a) => Order::Little,
                _ => return Err(TrafficError::at(at, "a section has no byte order")),
            };
            before += interfaces.len() as u32;
            interfaces.clear();
        }
        let (kind, length) = (order.u32(bytes, at), order.u32(bytes, at + 4));
        let (Some(kind), Some(length)) = (kind, length.map(|length| length as usize)) else {
            break;
        };
        if length < 12 || !length.is_multiple_of(4) {
            return Err(TrafficError::at(at, format!("a block has {length} bytes")));
        }
        let Some(block) = bytes.get(at..).and_then(|rest| rest.get(..length)) else {
            break;
        };
        let body = &block[8..length - 4];
        match kind {
            INTERFACE => interfaces.push(interface(body, order)),
            ENHANCED => packets.extend(enhanced(body, order, &interfaces, before)),
            SIMPLE => {
                return Err(TrafficError::at(
                    at,
                    "packets without times are of no use here",
                ));
            }
            _ => {}
        }
        at += length;
    }
    Ok(packets)
}

fn interface(body: &[u8], order: Order) -> Interface {
    let link = order
        .u16(body, 0)
        .map_or(Link::Other, |of| Link::new(of.into()));
    let mut ticks = 1_000_000;
    let mut at = 8;
    while let (Some(code), Some(length)) = (order.u16(body, at), order.u16(body, at + 2)) {
        let value = body
            .get(at + 4..)
            .and_then(|rest| rest.get(..length.into()));
        if let (TIME_RESOLUTION, Some(&[resolution])) = (code, value) {
            let exponent = u32::from(resolution & 0x7f);
            let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
            ticks = base.checked_pow(exponent).unwrap_or(u64::MAX);
        }
        at += 4 + usize::from(length).next_multiple_of(4);
    }
    Interface { link, ticks }
}

fn enhanced<'a>(
    body: &'a [u8],
    order: Order,
    interfaces: &[Interface],
    before: u32,
) -> Option<Captured<'a>> {
    let number = order.u32(body, 0)?;
    let interface = interfaces.get(number as usize)?;
    let time = u64::from(order.u32(body, 4)?) << 32 | u64::from(order.u32(body, 8)?);
    let kept = order.u32(body, 12)? as usize;
    let ns = u128::from(time) * 1_000_000_000 / u128::from(interface.ticks);
    Some(Captured {
        at: u64::try_from(ns).ok()?,
        interface: before.checked_add(number)?,
        link: interface.link,
        bytes: body.get(20..)?.get(..kept)?,
    })
}
