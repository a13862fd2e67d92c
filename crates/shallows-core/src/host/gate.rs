//! The contract between a host's transport and its NIC.
//!
//! A [`Gate`] decides when the packets of one host may enter its NIC. A
//! [`HostStack`](super::stack::HostStack) offers every packet that the transport sends, and asks for
//! held packets whenever the time comes that the gate named or a control message has reached it.
//! Gates can stand in a row: what one passes or releases, the stack offers to the next.

use crate::packet::Packet;
use crate::units::Time;

/// Holds back, drops or passes the packets of one host.
pub trait Gate<P: Packet> {
    /// Gives a packet the DSCP field that it leaves with, where that is the gate's to choose.
    ///
    /// Call it once for each packet, before [`offer`](Self::offer). A packet that was held may come
    /// back with another field.
    fn label(&mut self, now: Time, packet: &mut P) {
        let _ = (now, packet);
    }

    /// Decides about a packet for the host `to`, which is `None` if the driver does not know it: a
    /// gate that holds packets by destination passes such a packet.
    ///
    /// A held packet is the gate's until [`release`](Self::release) gives it back; call that
    /// afterwards to learn when.
    fn offer(&mut self, now: Time, packet: P, to: Option<u32>) -> Verdict;

    /// The next held packet that may leave at `now`, or when to ask again.
    ///
    /// Call it until it answers [`Release::At`] or [`Release::Idle`]. An earlier answer is void
    /// once a packet was offered or a control message was handled.
    fn release(&mut self, now: Time) -> Release<P>;

    /// Takes note of a packet of `size` bytes that the host has received from the host `from`.
    fn received(&mut self, now: Time, size: u32, from: u32) {
        let _ = (now, size, from);
    }

    /// Returns whether the gate would pass or hold this packet rather than drop it for want of room.
    ///
    /// A transport that can wait asks before it sends, and again after the gate has released
    /// something.
    fn has_room(&self, packet: &P) -> bool {
        let _ = packet;
        true
    }

    /// The longest time so far in which packets waited for a destination and none was sent to it,
    /// where the gate has queues by destination.
    fn longest_wait(&self, now: Time) -> Option<Time> {
        let _ = now;
        None
    }
}

/// A gate's decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it now.
    Pass,
    /// Discard it.
    Drop(Refusal),
    /// The gate keeps it.
    Held,
}

/// A packet that a gate releases, or the time of the next release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release<P> {
    /// Send this packet now and ask again.
    Packet {
        /// The packet.
        packet: P,
        /// The host that it goes to, as it was offered.
        to: Option<u32>,
    },
    /// Nothing before this time.
    At(Time),
    /// Nothing until a packet is offered or a message is handled.
    Idle,
}

/// The reason why a gate drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// Over the limit of its level or rate, where the excess is not held.
    OverLimit,
    /// Larger than what its level may ever send at once, or of a level that does not exist.
    NeverFits,
    /// The queue of held packets is full.
    Full,
}

impl Refusal {
    /// Every reason, in the order of counters.
    pub const ALL: [Self; 3] = [Self::OverLimit, Self::NeverFits, Self::Full];
}
