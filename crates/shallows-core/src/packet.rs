//! Properties of a packet that mechanisms may use.
//!
//! The simulator and the live switch carry different packets through the same port, so the port is
//! generic over [`Packet`]: a small plain value that it copies in and out. A live switch keeps the
//! frame itself elsewhere and lets the value hold its index.

/// The ECN field of an IP header (RFC 3168 §5), with its codepoint as value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand ECN.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, codepoint 1.
    Ect1 = 0b01,
    /// ECN-capable transport, codepoint 0: what TCP and DCTCP send.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

/// The view of a packet that classifiers, markers and schedulers decide on.
pub trait Packet: Copy {
    /// Length in bytes, before the framing that a port adds (see [`Framing`]).
    ///
    /// [`Framing`]: crate::port::Framing
    fn size(&self) -> u32;

    /// The flow that the packet belongs to: the same number for every packet of one direction.
    fn flow(&self) -> u64;

    /// The DSCP field: a service, a QJUMP level, or ML-ECN's stage tag.
    fn dscp(&self) -> u8;

    /// Sets the DSCP field.
    fn set_dscp(&mut self, dscp: u8);

    /// The ECN field.
    fn ecn(&self) -> Ecn;

    /// Sets the ECN field to [`Ecn::Ce`]. Called on ECN-capable packets only.
    fn mark_ce(&mut self);

    /// Bytes that the flow has still to deliver: pFabric's priority. Zero where nobody tracks it.
    fn remaining(&self) -> u64 {
        0
    }

    /// The virtual machines that the packet goes from and to, numbered by the driver: XCo's V2V flow.
    /// Zeros where hosts have none.
    fn machines(&self) -> (u8, u8) {
        (0, 0)
    }
}

/// A plain [`Packet`] for tests, benches and drivers that keep the payload elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Descriptor {
    /// See [`Packet::size`].
    pub size: u32,
    /// See [`Packet::flow`].
    pub flow: u64,
    /// See [`Packet::dscp`].
    pub dscp: u8,
    /// See [`Packet::ecn`].
    pub ecn: Ecn,
    /// See [`Packet::remaining`].
    pub remaining: u64,
    /// See [`Packet::machines`].
    pub machines: (u8, u8),
    /// Whatever the driver needs to find the payload again, such as a frame's index.
    pub tag: u64,
}

impl Packet for Descriptor {
    fn size(&self) -> u32 {
        self.size
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }

    fn remaining(&self) -> u64 {
        self.remaining
    }

    fn machines(&self) -> (u8, u8) {
        self.machines
    }
}
