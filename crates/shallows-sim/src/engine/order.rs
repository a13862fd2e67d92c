//! The total order of events.
//!
//! Events are ordered by time, then by class, then by the identity of what they concern:
//!
//! | class | what | identity |
//! |---|---|---|
//! | 0 | an egress port sends a packet that waited | its link |
//! | 1 | a packet arrives | the link |
//! | 2 | a timer of a host, for its gates | the port of its NIC |
//! | 3 | a timer of a sender | connection |
//! | 4 | a timer of a receiver | connection |
//! | 5 | a flow starts | flow |
//! | 6 | a flow has nothing more to send | flow |
//! | 7 | a frame arrives where links can be paused | the link |
//!
//! No two events share all three. A link delivers one packet at a time because every packet takes
//! time on the wire, a port has one ready event, and hosts and the ends of connections ignore all
//! timers but the last that they have set. So the order
//! does not depend on how events came into the queue, and with it no result depends on the number
//! of threads. At one instant a port first sends and then receives: what leaves makes room for what
//! comes.
//!
//! Nobody can tell in which order two events come that are less than a slot of the
//! [wheel](super::Wheel) apart and concern different ports, where every link takes longer than that.
//! So the wheel only keeps those of one port in order, which is what makes a run cheap. It keeps all
//! in crowded slots, which are sorted faster than looked through, and where it could be told: where
//! ports share memory, where links are short, where somebody watches, and for all but the first two
//! classes.

use shallows_model::{FlowId, LinkId};

use crate::ids::{ConnectionId, PortId};

/// Bits of an identity: room for 500 million links or connections.
const IDENTITY_BITS: u32 = 29;

/// The classes of most events.
const PORT_READY: u32 = 0;
const ARRIVAL: u32 = 1;

/// Kind of event, and what it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    PortReady(PortId),
    Arrival(LinkId),
    HostTimer(PortId),
    SenderTimer(ConnectionId),
    ReceiverTimer(ConnectionId),
    Start(FlowId),
    Stop(FlowId),
    Frame(LinkId),
}

/// Class and identity of an event, ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u32);

impl Key {
    #[inline]
    pub(crate) fn new(occasion: Occasion) -> Self {
        let (class, identity) = match occasion {
            Occasion::PortReady(port) => (PORT_READY, port.0),
            Occasion::Arrival(link) => (ARRIVAL, link.0),
            Occasion::HostTimer(nic) => (2, nic.0),
            Occasion::SenderTimer(connection) => (3, connection.0),
            Occasion::ReceiverTimer(connection) => (4, connection.0),
            Occasion::Start(flow) => (5, flow.0),
            Occasion::Stop(flow) => (6, flow.0),
            Occasion::Frame(link) => (7, link.0),
        };
        debug_assert!(identity >> IDENTITY_BITS == 0);
        Self(class << IDENTITY_BITS | identity)
    }

    /// A number that is ordered like the key.
    #[inline]
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) fn occasion(self) -> Occasion {
        let identity = self.0 & ((1 << IDENTITY_BITS) - 1);
        match self.0 >> IDENTITY_BITS {
            PORT_READY => Occasion::PortReady(PortId(identity)),
            ARRIVAL => Occasion::Arrival(LinkId(identity)),
            2 => Occasion::HostTimer(PortId(identity)),
            3 => Occasion::SenderTimer(ConnectionId(identity)),
            4 => Occasion::ReceiverTimer(ConnectionId(identity)),
            5 => Occasion::Start(FlowId(identity)),
            6 => Occasion::Stop(FlowId(identity)),
            _ => Occasion::Frame(LinkId(identity)),
        }
    }

    /// Returns whether a packet arrives; cheaper than to find out all.
    #[inline]
    pub(crate) fn is_arrival(self) -> bool {
        self.0 >> IDENTITY_BITS == ARRIVAL
    }

    /// Returns whether a port is ready.
    #[inline]
    pub(crate) fn is_port_ready(self) -> bool {
        self.0 >> IDENTITY_BITS == PORT_READY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: u32 = (1 << IDENTITY_BITS) - 1;

    fn occasions(identity: u32) -> [Occasion; 8] {
        [
            Occasion::PortReady(PortId(identity)),
            Occasion::Arrival(LinkId(identity)),
            Occasion::HostTimer(PortId(identity)),
            Occasion::SenderTimer(ConnectionId(identity)),
            Occasion::ReceiverTimer(ConnectionId(identity)),
            Occasion::Start(FlowId(identity)),
            Occasion::Stop(FlowId(identity)),
            Occasion::Frame(LinkId(identity)),
        ]
    }

    #[test]
    fn classes_come_before_identities() {
        let [first, middle, last] = [0, 7, LAST].map(|of| occasions(of).map(Key::new));
        let keys = (0..8).flat_map(|class| [first[class], middle[class], last[class]]);
        assert!(keys.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn keys_can_be_read_back() {
        for (class, occasion) in occasions(LAST).into_iter().enumerate() {
            let key = Key::new(occasion);
            assert_eq!(key.occasion(), occasion);
            assert_eq!(
                (key.is_port_ready(), key.is_arrival()),
                (class == 0, class == 1)
            );
        }
    }
}
