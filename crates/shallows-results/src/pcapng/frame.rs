//! The headers of a simulated packet as bytes.

use etherparse::{
    EtherType, Ethernet2Header, IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, TcpHeader,
    TcpOptionElement, TcpOptions, UdpHeader,
};
use shallows_core::host::udp::Datagram;
use shallows_core::packet::Ecn;
use shallows_core::tcp::{Ack, Segment};
use shallows_core::units::{Bytes, Time};

use super::{Content, Packet, RoceKind, RocePacket};

/// The first of the ports that nothing is registered for, so that Wireshark takes no payload for a
/// protocol. There are 2^14 of them.
const DYNAMIC_PORTS: u16 = 49_152;
/// Registered for RoCEv2.
const ROCE_PORT: u16 = 4791;
/// IP and TCP headers with a timestamp option, and bytes that align it.
const WITH_TIMESTAMPS: u32 = 20 + 20 + 12;
/// Payload is not kept, and all zeros as far as checksums go.
static PAYLOAD: [u8; u16::MAX as usize] = [0; u16::MAX as usize];

/// The receive window as TCP headers tell it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    value: u16,
    /// Of RFC 7323 §2, told in the SYN.
    scale: u8,
}

impl Window {
    pub(super) fn new(bytes: Bytes) -> Self {
        const LARGEST_SCALE: u8 = 14;
        let fits = |scale: &u8| u16::try_from(bytes.get() >> scale).is_ok();
        let scale = (0..LARGEST_SCALE).find(fits).unwrap_or(LARGEST_SCALE);
        Self {
            value: u16::try_from(bytes.get() >> scale).unwrap_or(u16::MAX),
            scale,
        }
    }
}

/// A frame without its payload; one is used for packet after packet.
#[derive(Debug, Default)]
pub(super) struct Frame {
    bytes: Vec<u8>,
    original_len: u32,
}

impl Frame {
    /// As long as headers can be.
    pub(super) const MAX_LEN: usize =
        Ethernet2Header::LEN + Ipv4Header::MIN_LEN + TcpHeader::MAX_LEN;

    /// Captured bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Length on the link, without check sequence.
    pub(super) fn original_len(&self) -> u32 {
        self.original_len
    }

    pub(super) fn fill(&mut self, packet: &Packet, window: Window) {
        self.bytes.clear();
        match &packet.content {
            Content::Segment(segment) => {
                let tcp = segment_header(packet, segment, window);
                self.tcp(packet, tcp, segment.len, hash(segment.seq, segment.sent_at));
            }
            Content::Ack(ack) => {
                let tcp = ack_header(packet, ack, window);
                self.tcp(packet, tcp, 0, hash(ack.ack, ack.echo));
            }
            Content::Roce(roce) => self.roce(packet, *roce),
            Content::Datagram { datagram, message } => self.udp(packet, datagram, *message),
        }
    }

    fn tcp(&mut self, packet: &Packet, mut tcp: TcpHeader, len: u32, identification: u16) {
        let payload = &PAYLOAD[..(len as usize).min(PAYLOAD.len())];
        let (source, destination) = (address(packet.src), address(packet.dst));
        let checksum = tcp.calc_checksum_ipv4_raw(source, destination, payload);
        tcp.checksum = checksum.unwrap_or(0);
        let ip = Ipv4Header {
            identification,
            dont_fragment: true,
            protocol: IpNumber::TCP,
            ..ip_header(packet, tcp.header_len() as u32 + len)
        };
        self.link_and_network(packet, ip);
        self.bytes.extend_from_slice(&tcp.to_bytes());
    }

    fn udp(&mut self, packet: &Packet, datagram: &Datagram, message: Bytes) {
        let length = message.get() as u32 + UdpHeader::LEN as u32;
        let carried = datagram.size.saturating_sub(Ipv4Header::MIN_LEN as u32);
        let offset = if datagram.is_last() {
            length.saturating_sub(carried)
        } else {
            u32::from(datagram.fragment) * carried
        };
        let ip = Ipv4Header {
            identification: datagram.message as u16,
            dont_fragment: datagram.fragments == 1,
            more_fragments: !datagram.is_last(),
            fragment_offset: IpFragOffset::try_new((offset / 8) as u16).unwrap_or_default(),
            protocol: IpNumber::UDP,
            ..ip_header(packet, carried)
        };
        self.link_and_network(packet, ip);
        if datagram.fragment == 0 {
            let (source_port, destination_port) = ports(packet.flow);
            let udp = UdpHeader {
                source_port,
                destination_port,
                length: length as u16,
                // RFC 768: none was made.
                checksum: 0,
            };
            self.bytes.extend_from_slice(&udp.to_bytes());
        }
    }

    /// UDP, the base transport header and in ACKs the extended one (InfiniBand architecture
    /// specification, annex A17, §9.2 and §9.3). The flow is the number of the queue pair.
    fn roce(&mut self, packet: &Packet, roce: RocePacket) {
        let (opcode, syndrome) = match roce.kind {
            // "Send middle" of a reliable connection: messages have no ends here.
            RoceKind::Data => (0x01, None),
            RoceKind::Ack => (0x11, Some(0)),
            // A sequence error.
            RoceKind::Nak => (0x11, Some(0x60)),
            RoceKind::Cnp => (0x81, None),
        };
        let carried = packet.size.saturating_sub(Ipv4Header::MIN_LEN as u32);
        let ip = Ipv4Header {
            identification: roce.number as u16,
            dont_fragment: true,
            protocol: IpNumber::UDP,
            ..ip_header(packet, carried)
        };
        self.link_and_network(packet, ip);
        let udp = UdpHeader {
            // It tells flows apart for ECMP.
            source_port: DYNAMIC_PORTS | packet.flow as u16 & 0x3fff,
            destination_port: ROCE_PORT,
            length: u16::try_from(carried).unwrap_or(u16::MAX),
            checksum: 0,
        };
        self.bytes.extend_from_slice(&udp.to_bytes());
        self.bytes.extend_from_slice(&[opcode, 0, 0xff, 0xff]);
        self.bytes
            .extend_from_slice(&(packet.flow & 0xff_ffff).to_be_bytes());
        self.bytes
            .extend_from_slice(&(roce.number & 0xff_ffff).to_be_bytes());
        if let Some(syndrome) = syndrome {
            self.bytes.extend_from_slice(&[syndrome, 0, 0, 0]);
        }
    }

    fn link_and_network(&mut self, packet: &Packet, mut ip: Ipv4Header) {
        let ethernet = Ethernet2Header {
            source: mac(packet.src),
            destination: mac(packet.dst),
            ether_type: EtherType::IPV4,
        };
        ip.header_checksum = ip.calc_header_checksum();
        self.bytes.extend_from_slice(&ethernet.to_bytes());
        self.bytes.extend_from_slice(&ip.to_bytes());
        let packet_len = packet.size.max(u32::from(ip.total_len));
        self.original_len = Ethernet2Header::LEN as u32 + packet_len;
    }
}

fn segment_header(packet: &Packet, segment: &Segment, window: Window) -> TcpHeader {
    let (source, destination) = ports(packet.flow);
    let own_number = number(segment.seq).wrapping_sub(u32::from(segment.syn));
    let mut tcp = TcpHeader::new(source, destination, own_number, window.value);
    tcp.syn = segment.syn;
    tcp.cwr = segment.cwr;
    tcp.ack = !segment.syn;
    // The other end sends nothing but its SYN.
    tcp.acknowledgment_number = u32::from(tcp.ack);
    let stamps = has_timestamps(packet, segment.len).then(|| (stamp(segment.sent_at), 0));
    tcp.options = options(segment.syn.then_some(window.scale), stamps, &[]);
    tcp
}

fn ack_header(packet: &Packet, ack: &Ack, window: Window) -> TcpHeader {
    let (destination, source) = ports(packet.flow);
    let own_number = u32::from(!ack.syn);
    let mut tcp = TcpHeader::new(source, destination, own_number, window.value);
    tcp.ack = true;
    tcp.acknowledgment_number = number(ack.ack);
    tcp.syn = ack.syn;
    tcp.ece = ack.ece;
    let sent_at = ack.echo.saturating_add(ack.one_way_delay);
    let stamps = has_timestamps(packet, 0).then(|| (stamp(sent_at), stamp(ack.echo)));
    let blocks = ack.sack.blocks(ack.ack);
    let blocks: Vec<(u32, u32)> = blocks
        .map(|(from, to)| (number(from), number(to)))
        .collect();
    tcp.options = options(ack.syn.then_some(window.scale), stamps, &blocks);
    tcp
}

/// At most 3 + 2 + 12 + 28 bytes less what excludes each other: a SYN has no blocks.
fn options(scale: Option<u8>, stamps: Option<(u32, u32)>, blocks: &[(u32, u32)]) -> TcpOptions {
    use TcpOptionElement::{
        Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, Timestamp, WindowScale,
    };
    let mut elements = Vec::new();
    if let Some(scale) = scale {
        elements.extend([WindowScale(scale), Noop]);
        elements.extend([SelectiveAcknowledgementPermitted, Noop, Noop]);
    }
    if let Some((value, echo)) = stamps {
        elements.extend([Noop, Noop, Timestamp(value, echo)]);
    }
    if let [first, rest @ ..] = blocks {
        let rest = [0, 1, 2].map(|index| rest.get(index).copied());
        elements.extend([Noop, Noop, SelectiveAcknowledgement(*first, rest)]);
    }
    TcpOptions::try_from_elements(&elements).expect("three blocks fit beside timestamps")
}

fn ip_header(packet: &Packet, payload: u32) -> Ipv4Header {
    Ipv4Header {
        dscp: IpDscp::try_new(packet.dscp & IpDscp::MAX_U8).unwrap_or_default(),
        ecn: match packet.ecn {
            Ecn::NotEct => IpEcn::NotEct,
            Ecn::Ect0 => IpEcn::Ect0,
            Ecn::Ect1 => IpEcn::Ect1,
            Ecn::Ce => IpEcn::CongestionExperienced,
        },
        total_len: u16::try_from(Ipv4Header::MIN_LEN as u32 + payload).unwrap_or(u16::MAX),
        time_to_live: 64,
        source: address(packet.src),
        destination: address(packet.dst),
        ..Ipv4Header::default()
    }
}

/// Returns whether the simulated header is large enough for them.
fn has_timestamps(packet: &Packet, len: u32) -> bool {
    packet.size >= len + WITH_TIMESTAMPS
}

/// The sequence number of a byte.
fn number(byte: u64) -> u32 {
    (byte as u32).wrapping_add(1)
}

fn stamp(time: Time) -> u32 {
    (time.ps() / 1_000_000) as u32
}

/// The same wherever a packet is seen, and nearly always another for the next one.
fn hash(number: u64, time: Time) -> u16 {
    let mixed = (number ^ time.ps().rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 48) as u16
}

/// From the flow's source to its destination.
fn ports(flow: u32) -> (u16, u16) {
    let port = |bits: u32| DYNAMIC_PORTS + (bits & 0x3fff) as u16;
    (port(flow), port(flow >> 14))
}

fn address(host: u32) -> [u8; 4] {
    let [_, x, y, z] = (host + 1).to_be_bytes();
    [10, x, y, z]
}

fn mac(host: u32) -> [u8; 6] {
    let [w, x, y, z] = (host + 1).to_be_bytes();
    [2, 0, w, x, y, z]
}
