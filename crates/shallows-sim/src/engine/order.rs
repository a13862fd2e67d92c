//! The total order of events.
//!
//! Events are ordered by time, then by class, then by the identity of what they concern:
//!
//! | class | what | identity |
//! |---|---|---|
//! | 0 | an egress port is ready to send again | link |
//! | 1 | a packet arrives | link |
//! | 2 | a timer of a sender, then of a receiver | connection |
//! | 3 | a flow starts | flow |
//! | 4 | a flow has nothing more to send | flow |
//!
//! No two events share all three. A link delivers one packet at a time because every packet takes
//! time on the wire, a port has one ready event and a connection one timer an end. So the order
//! does not depend on how events came into the queue, and with it no result depends on the number
//! of threads. At one instant a port first sends and then receives: what leaves makes room for what
//! comes.

/// Bits below the class: a connection's identity has one more than 32.
const CLASS_SHIFT: u32 = 40;

/// What kind of event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    PortReady,
    Arrival,
    SenderTimer,
    ReceiverTimer,
    Start,
    Stop,
}

/// Class and identity of an event, ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    pub(crate) fn port_ready(link: u32) -> Self {
        Self::new(0, u64::from(link))
    }

    pub(crate) fn arrival(link: u32) -> Self {
        Self::new(1, u64::from(link))
    }

    pub(crate) fn sender_timer(connection: u32) -> Self {
        Self::new(2, 2 * u64::from(connection))
    }

    pub(crate) fn receiver_timer(connection: u32) -> Self {
        Self::new(2, 2 * u64::from(connection) + 1)
    }

    pub(crate) fn start(flow: u32) -> Self {
        Self::new(3, u64::from(flow))
    }

    pub(crate) fn stop(flow: u32) -> Self {
        Self::new(4, u64::from(flow))
    }

    fn new(class: u64, identity: u64) -> Self {
        Self(class << CLASS_SHIFT | identity)
    }

    #[inline]
    pub(crate) fn class(self) -> Class {
        match self.0 >> CLASS_SHIFT {
            0 => Class::PortReady,
            1 => Class::Arrival,
            2 if self.0 & 1 == 0 => Class::SenderTimer,
            2 => Class::ReceiverTimer,
            3 => Class::Start,
            _ => Class::Stop,
        }
    }

    /// The link, connection or flow that it concerns.
    #[inline]
    pub(crate) fn identity(self) -> u32 {
        let identity = self.0 & ((1 << CLASS_SHIFT) - 1);
        match self.0 >> CLASS_SHIFT {
            2 => (identity / 2) as u32,
            _ => identity as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_before_identities() {
        let last = u32::MAX;
        let order = [
            Key::port_ready(0),
            Key::port_ready(last),
            Key::arrival(0),
            Key::arrival(last),
            Key::sender_timer(0),
            Key::receiver_timer(0),
            Key::sender_timer(1),
            Key::receiver_timer(last),
            Key::start(0),
            Key::start(last),
            Key::stop(0),
        ];
        assert!(order.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn keys_can_be_read_back() {
        let last = u32::MAX;
        let keys = [
            (Key::port_ready(last), Class::PortReady),
            (Key::arrival(last), Class::Arrival),
            (Key::sender_timer(last), Class::SenderTimer),
            (Key::receiver_timer(last), Class::ReceiverTimer),
            (Key::start(last), Class::Start),
            (Key::stop(last), Class::Stop),
        ];
        for (key, class) in keys {
            assert_eq!((key.class(), key.identity()), (class, last));
        }
    }
}
