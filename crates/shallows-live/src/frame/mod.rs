//! Ethernet frames, as far as a switch looks into them.
//!
//! [`Header::parse`] reads what classification, marking and forwarding need and nothing else. It
//! never fails on what follows the two addresses: a frame that is not IP, or is broken IP, is
//! forwarded like any other, cannot be marked and is counted.

mod handle;
mod ip;
mod store;

pub use handle::Frame;
pub use store::FrameStore;

use shallows_core::packet::Ecn;

/// Length of the header that every frame begins with, without tags.
pub const ETHERNET_HEADER: usize = 14;

/// Most VLAN tags that are looked through (802.1ad allows two).
const MOST_TAGS: usize = 2;

const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Returns whether it names a group of stations: broadcast or multicast.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Returns whether a bridge must keep it to one link (802.1D, 01-80-C2-00-00-0X): pause frames,
    /// spanning tree, LLDP.
    pub fn is_link_local(self) -> bool {
        self.0[..5] == [0x01, 0x80, 0xc2, 0x00, 0x00] && self.0[5] < 0x10
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl std::str::FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no Ethernet address: write it as 02:00:00:00:00:01");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2);
            *byte = part
                .and_then(|part| u8::from_str_radix(part, 16).ok())
                .ok_or_else(wrong)?;
        }
        match parts.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(wrong()),
        }
    }
}

/// Network header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4, its header at this offset.
    Ipv4(usize),
    /// IPv6, its header at this offset.
    Ipv6(usize),
    /// Anything else, such as ARP.
    Other,
    /// It says it is IP, and is not.
    Malformed(Malformed),
}

/// A problem of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Malformed {
    /// The frame ends before the header does.
    Truncated,
    /// The version is not what the frame's type says.
    Version,
    /// IPv4: the header is shorter than 20 bytes.
    HeaderLength,
    /// The packet says that it is longer than the frame, or shorter than its header.
    TotalLength,
    /// More VLAN tags than are looked through.
    Tags,
}

impl Malformed {
    /// Every kind, in the order of the counters.
    pub const ALL: [Self; 5] = [
        Self::Truncated,
        Self::Version,
        Self::HeaderLength,
        Self::TotalLength,
        Self::Tags,
    ];

    /// The kind in a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Version => "version",
            Self::HeaderLength => "header length",
            Self::TotalLength => "total length",
            Self::Tags => "too many tags",
        }
    }
}

/// The switch's view of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Destination address.
    pub destination: Mac,
    /// Source address.
    pub source: Mac,
    /// The priority of its outermost VLAN tag, if it has one.
    pub pcp: Option<u8>,
    /// Network header.
    pub network: Network,
    /// The DSCP field; zero if it is not IP.
    pub dscp: u8,
    /// The ECN field; `NotEct` if it is not IP.
    pub ecn: Ecn,
    /// A hash of addresses, protocol and TCP or UDP ports: the same for all frames of one direction
    /// of a flow.
    pub flow: u64,
}

impl Header {
    /// Reads the header; `None` if the frame does not even hold two addresses and a type.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let addresses = frame.first_chunk::<12>()?;
        let mac = |at: usize| Mac(std::array::from_fn(|i| addresses[at + i]));
        let mut header = Self {
            destination: mac(0),
            source: mac(6),
            pcp: None,
            network: Network::Other,
            dscp: 0,
            ecn: Ecn::NotEct,
            flow: 0,
        };
        let mut offset = 12;
        let mut tags = 0;
        let kind = loop {
            let kind = word(frame, offset);
            offset += 2;
            match kind {
                Some(VLAN | SERVICE_VLAN) if tags == MOST_TAGS => {
                    header.network = Network::Malformed(Malformed::Tags);
                    break 0;
                }
                Some(VLAN | SERVICE_VLAN) => {
                    if let Some(tci) = word(frame, offset) {
                        header.pcp.get_or_insert((tci >> 13) as u8);
                    }
                    offset += 2;
                    tags += 1;
                }
                Some(kind) => break kind,
                None if tags == 0 => return None,
                None => {
                    header.network = Network::Malformed(Malformed::Truncated);
                    break 0;
                }
            }
        };
        let packet = frame.get(offset..).unwrap_or_default();
        let facts = match kind {
            IPV4 => Some((Network::Ipv4(offset), ip::v4(packet))),
            IPV6 => Some((Network::Ipv6(offset), ip::v6(packet))),
            _ => None,
        };
        match facts {
            Some((network, Ok(facts))) => {
                header.network = network;
                header.dscp = facts.traffic_class >> 2;
                header.ecn = ecn(facts.traffic_class);
                header.flow = facts.flow;
            }
            Some((_, Err(problem))) => header.network = Network::Malformed(problem),
            None => header.flow = ip::hash(addresses),
        }
        Some(header)
    }
}

/// Sets the ECN field of an IP frame to CE and repairs the IPv4 header checksum. Frames that are
/// not IP stay as they are.
pub fn mark_ce(frame: &mut [u8]) {
    match Header::parse(frame).map(|header| header.network) {
        Some(Network::Ipv4(offset)) => ip::mark_v4(&mut frame[offset..]),
        Some(Network::Ipv6(offset)) => ip::mark_v6(&mut frame[offset..]),
        _ => {}
    }
}

fn ecn(traffic_class: u8) -> Ecn {
    match traffic_class & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// The big-endian word at `at`.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*pair))
}

#[cfg(test)]
mod tests;
