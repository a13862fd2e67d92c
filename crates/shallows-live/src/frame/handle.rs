use shallows_core::packet::{Ecn, Packet};

use super::{ETHERNET_HEADER, Header, Mac};

/// A frame as the egress port sees it: its bytes stay in a [`FrameStore`](super::FrameStore).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Slot of its bytes.
    pub slot: u32,
    /// Length of the frame, without check sequence.
    pub length: u32,
    /// Class for the classifier: DSCP, or the priority of a VLAN tag.
    pub class: u8,
    /// True if its bytes have still to be marked.
    pub marked: bool,
    /// The host that it goes to, if its sender wants to know when it leaves.
    pub stream: Option<u8>,
    /// The device that it came in by, and the station that it goes to: see [`Packet::machines`].
    pub machines: (u8, u8),
    ecn: Ecn,
    flow: u64,
}

/// V2V flows of a source to one host have at most this many queues, by a hash of their stations, so
/// that a guest which makes stations up makes no more.
const STATIONS: u8 = 64;

impl Frame {
    /// The frame of `length` bytes in `slot` with this header, classified by its DSCP.
    pub fn new(slot: u32, length: u32, header: &Header) -> Self {
        Self {
            slot,
            length,
            class: header.dscp,
            marked: false,
            stream: None,
            machines: (0, station(header.destination)),
            ecn: header.ecn,
            flow: header.flow,
        }
    }

    /// The same frame, copied to another slot.
    #[must_use]
    pub fn at(self, slot: u32) -> Self {
        Self { slot, ..self }
    }
}

/// The number of a station, less than [`STATIONS`]. Addresses of virtual machines end differently.
fn station(of: Mac) -> u8 {
    let [.., before, last] = of.0;
    (last ^ before.rotate_left(3)) % STATIONS
}

impl Packet for Frame {
    /// Without the Ethernet header, as for simulated packets: the port's framing adds it again.
    #[inline]
    fn size(&self) -> u32 {
        self.length - ETHERNET_HEADER as u32
    }

    #[inline]
    fn flow(&self) -> u64 {
        self.flow
    }

    #[inline]
    fn dscp(&self) -> u8 {
        self.class
    }

    #[inline]
    fn set_dscp(&mut self, dscp: u8) {
        self.class = dscp;
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    #[inline]
    fn machines(&self) -> (u8, u8) {
        self.machines
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
        self.marked = true;
    }
}
