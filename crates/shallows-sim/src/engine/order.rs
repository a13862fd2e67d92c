//! The total order of events.
//!
//! Events are ordered by time, then by class, then by the identity of what they concern:
//!
//! | class | what | identity |
//! |---|---|---|
//! | 0 | an egress port is ready to send again | link |
//! | 1 | a packet arrives | link |
//! | 2 | a timer of a sender, then of a receiver | connection |
//! | 3 | a flow starts or stops | flow |
//! | 4 | the scenario acts: a link goes down, a probe samples | number |
//!
//! No two events share all three. A link delivers one packet at a time because every packet takes
//! time on the wire, a port has one ready event and a connection one timer an end. So the order
//! does not depend on how events came into the queue, and with it no result depends on the number
//! of threads. At one instant a port first sends and then receives: what leaves makes room for what
//! comes.

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

    pub(crate) fn flow(flow: u32) -> Self {
        Self::new(3, u64::from(flow))
    }

    pub(crate) fn action(number: u32) -> Self {
        Self::new(4, u64::from(number))
    }

    fn new(class: u64, identity: u64) -> Self {
        Self(class << 40 | identity)
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
            Key::flow(0),
            Key::flow(last),
            Key::action(0),
        ];
        assert!(order.is_sorted_by(|a, b| a < b));
    }
}
