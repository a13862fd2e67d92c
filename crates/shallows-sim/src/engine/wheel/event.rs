//! Events, in full and packed.

use std::cmp::Ordering;

use shallows_core::units::Time;

use super::SLOT_BITS;
use crate::engine::Key;
use crate::ids::PortId;
use crate::paths::Hop;

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) time: Time,
    pub(crate) key: Key,
    /// The packet that it is about, and where that goes next, if anywhere.
    pub(crate) packet: u32,
    pub(crate) hop: Hop<PortId>,
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time, self.key).cmp(&(other.time, other.key))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An event of a slot: its time within the slot, key, packet and port, as one number that is
/// ordered like events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry(pub(super) u128);

impl Entry {
    #[inline]
    pub(super) fn new(event: Event) -> Self {
        let rank = (event.time.ps() % (1 << SLOT_BITS)) << 32 | u64::from(event.key.bits());
        let about = u64::from(event.packet) << 32 | u64::from(event.hop.bits());
        Self(u128::from(rank) << 64 | u128::from(about))
    }

    /// Time within the slot and key.
    #[inline]
    pub(super) fn rank(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The port, whether the packet goes on there or has arrived.
    pub(super) fn port(self) -> PortId {
        Hop::from_bits(self.0 as u32).id()
    }

    /// The event, in a slot that begins at `start`.
    #[inline]
    pub(super) fn event(self, start: Time) -> Event {
        Event {
            time: start + Time::from_ps(self.rank() >> 32),
            key: Key::from_bits(self.rank() as u32),
            packet: (self.0 >> 32) as u32,
            hop: Hop::from_bits(self.0 as u32),
        }
    }
}

/// Collision of an event with others of its slot at its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collision {
    /// It is the first of its slot there, and may come before or after all others.
    First,
    /// It has to keep its place among those of its slot at this port, of which the last one shown
    /// has this number.
    Again(u32),
    /// It has to keep its place among all of its slot.
    Ordered,
}
