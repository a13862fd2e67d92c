//! The total order of events.
//!
//! Events are ordered by time, then by class, then by the identity of what they concern:
//!
//! | class | what | identity |
//! |---|---|---|
//! | 0 | an egress port is asked for what it has sent | its link |
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
//! comes. It may be asked for what it sent later than that, but always before it receives and
//! before the other end does, so nobody can tell.
//!
//! Nobody can tell either in which order two events come that are less than a slot of the
//! [wheel](super::Wheel) apart and concern different ports, where every link takes longer than that.
//! So the wheel only keeps those of one port in order, which is what makes a run cheap. It keeps all
//! where it could be told: where ports share memory, where links are short, where somebody watches,
//! and for all but the first two classes.

/// Bits of an identity: room for 500 million links or connections.
const IDENTITY_BITS: u32 = 29;

/// Kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    PortReady,
    Arrival,
    HostTimer,
    SenderTimer,
    ReceiverTimer,
    Start,
    Stop,
    Frame,
}

/// Class and identity of an event, ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u32);

impl Key {
    pub(crate) fn new(class: Class, identity: u32) -> Self {
        debug_assert!(identity >> IDENTITY_BITS == 0);
        Self((class as u32) << IDENTITY_BITS | identity)
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
    pub(crate) fn class(self) -> Class {
        match self.0 >> IDENTITY_BITS {
            0 => Class::PortReady,
            1 => Class::Arrival,
            2 => Class::HostTimer,
            3 => Class::SenderTimer,
            4 => Class::ReceiverTimer,
            5 => Class::Start,
            6 => Class::Stop,
            _ => Class::Frame,
        }
    }

    /// Returns whether it is of this class; cheaper than to find out which.
    #[inline]
    pub(crate) fn is(self, class: Class) -> bool {
        self.0 >> IDENTITY_BITS == class as u32
    }

    /// The link, port, connection or flow that it concerns.
    #[inline]
    pub(crate) fn identity(self) -> u32 {
        self.0 & ((1 << IDENTITY_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: [Class; 8] = [
        Class::PortReady,
        Class::Arrival,
        Class::HostTimer,
        Class::SenderTimer,
        Class::ReceiverTimer,
        Class::Start,
        Class::Stop,
        Class::Frame,
    ];
    const LAST: u32 = (1 << IDENTITY_BITS) - 1;

    #[test]
    fn classes_come_before_identities() {
        let keys = CLASSES.map(|class| [0, 7, LAST].map(|identity| Key::new(class, identity)));
        assert!(keys.as_flattened().is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn keys_can_be_read_back() {
        for class in CLASSES {
            let key = Key::new(class, LAST);
            assert_eq!((key.class(), key.identity()), (class, LAST));
            assert_eq!(
                CLASSES.map(|other| key.is(other)),
                CLASSES.map(|other| class == other)
            );
        }
    }
}
