//! Packets on links, as a pcapng file that Wireshark opens.
//!
//! Simulated packets have no bytes, so their headers are made up from what the transport knew:
//! Ethernet II, IPv4 and TCP, UDP or RoCEv2, with right checksums of IP and TCP. Payload is not stored; each packet has
//! its original length.
//!
//! | in the file | in the simulation |
//! |---|---|
//! | an interface with a name and a speed | a link |
//! | 10.0.0.1, 02:00:00:00:00:01 | host 0, and so on |
//! | ports from 49152 up | a flow; no two of the first 2^28 have the same pair |
//! | sequence number n + 1 | byte n: the SYN has number 0 |
//! | TCP timestamps, in microseconds | when the segment was sent, and its echo, if `header` has room for them (52 bytes) |
//! | SACK blocks | the same; a packet too short for them is longer in the file than it was |
//! | packet sequence number n of RoCE | the packet that begins with byte n x `segment` |
//! | IP identification | of a message's fragments the message; else a hash, the same on every link |
//!
//! Times are rounded down to nanoseconds, the finest that Wireshark shows.

mod block;
mod frame;

use std::io::Write;
use std::path::{Path, PathBuf};

use shallows_core::host::udp::Datagram;
use shallows_core::packet::Ecn;
use shallows_core::tcp::{Ack, AckKind, Segment};
use shallows_core::units::{Bytes, Rate, Time};

use crate::ResultsError;
use crate::file::{NewFile, write_named};
use frame::{Frame, Window};

/// A link that packets are captured on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name in Wireshark, such as "leaf0 to spine1".
    pub name: String,
    /// Rate of the link.
    pub rate: Rate,
}

/// A packet as a link carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The host that sent it. Of an ACK this is the flow's destination.
    pub src: u32,
    /// The host that it goes to.
    pub dst: u32,
    /// The number of its flow, the same in both directions.
    pub flow: u32,
    /// Bytes with IP and transport headers.
    pub size: u32,
    /// The DSCP field; six bits of it.
    pub dscp: u8,
    /// The ECN field as it was on this link.
    pub ecn: Ecn,
    /// Content of the packet.
    pub content: Content,
}

/// Content of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// TCP, from a flow's source.
    Segment(Segment),
    /// TCP, from a flow's destination.
    Ack(Ack),
    /// RoCEv2.
    Roce(RocePacket),
    /// UDP.
    Datagram {
        /// The packet.
        datagram: Datagram,
        /// Bytes of the whole message.
        message: Bytes,
    },
}

/// A packet of RoCEv2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RocePacket {
    /// Opcode.
    pub kind: RoceKind,
    /// Packet sequence number; 24 bits of it are on the wire.
    pub number: u32,
}

/// The kinds of packets of RoCEv2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoceKind {
    /// Data, from a flow's source.
    Data,
    /// Acknowledgement, from a flow's destination.
    Ack,
    /// Negative acknowledgement: packets are missing.
    Nak,
    /// Congestion notification.
    Cnp,
}

impl RocePacket {
    /// The packet of a segment, where full ones have this many bytes of data.
    pub fn data(segment: &Segment, full: u32) -> Self {
        Self {
            kind: RoceKind::Data,
            number: (segment.seq / u64::from(full.max(1))) as u32,
        }
    }

    /// The packet of an answer. An ACK names the last packet that arrived, a NAK the missing one.
    pub fn answer(ack: &Ack, full: u32) -> Self {
        let expected = ack.ack.div_ceil(u64::from(full.max(1))) as u32;
        let (kind, number) = match ack.kind {
            AckKind::Ack => (RoceKind::Ack, expected.wrapping_sub(1)),
            AckKind::Nak => (RoceKind::Nak, expected),
            AckKind::Cnp => (RoceKind::Cnp, 0),
        };
        Self { kind, number }
    }
}

/// A capture file in the making. It gets its name when it is [finished](Self::finish).
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    file: NewFile,
    interfaces: usize,
    window: Window,
    frame: Frame,
}

impl Capture {
    /// A capture on these links, of TCP that offers this receive window.
    pub fn create(
        path: &Path,
        interfaces: &[Interface],
        receive_window: Bytes,
    ) -> Result<Self, ResultsError> {
        let mut blocks = Vec::new();
        block::section_header(&mut blocks);
        for interface in interfaces {
            block::interface(&mut blocks, interface);
        }
        let file = write_named(path, || {
            let mut file = NewFile::create(path)?;
            file.write_all(&blocks)?;
            Ok(file)
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
            interfaces: interfaces.len(),
            window: Window::new(receive_window),
            frame: Frame::default(),
        })
    }

    /// Writes a packet that a link began to carry at `time`.
    ///
    /// # Panics
    /// If there is no such interface.
    pub fn write(
        &mut self,
        time: Time,
        interface: usize,
        packet: &Packet,
    ) -> Result<(), ResultsError> {
        assert!(interface < self.interfaces, "no interface {interface}");
        self.frame.fill(packet, self.window);
        write_named(&self.path, || {
            let interface = interface as u32;
            Ok(block::packet(&mut self.file, time, interface, &self.frame)?)
        })
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<(), ResultsError> {
        write_named(&self.path, || self.file.finish())
    }
}
