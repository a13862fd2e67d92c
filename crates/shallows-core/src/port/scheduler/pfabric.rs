//! pFabric's switch (Alizadeh et al., SIGCOMM 2013, §4.1), the baseline of QJUMP §6.4.
//!
//! A packet's priority is the number of bytes its flow has left, smaller first. The port sends the
//! earliest packet *of the flow* that owns the most urgent packet, so that a flow is not reordered
//! by its own shrinking remainder. When the buffer is full, the least urgent packet goes: the
//! arriving one if no queued one is less urgent. Buffers are tiny (24 packets in QJUMP's
//! comparison), so both look at every packet, as the paper proposes for hardware.
//!
//! QJUMP's published simulation runs on the same queue with its levels as priorities:
//! [`Urgency::Level`].

use super::{Discipline, RoundObserver, Service};
use crate::packet::Packet;
use crate::port::QueueSet;
use crate::port::queues::{Backlog, Queues, Store};
use crate::units::Time;

/// The only queue of a pFabric port.
const QUEUE: usize = 0;

/// The most urgent packet first.
#[derive(Clone, Copy, Debug)]
pub struct Pfabric {
    /// Measure of a packet's urgency.
    pub urgency: Urgency,
}

/// Measure of a packet's urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Few bytes that its flow has left.
    Remaining,
    /// A low DSCP. What leaves its flow nothing to send, such as an ACK, is as urgent as DSCP 0.
    Level,
}

impl Urgency {
    /// Less is more urgent.
    fn rank<P: Packet>(self, packet: &P) -> u64 {
        match self {
            Self::Remaining => packet.remaining(),
            Self::Level if packet.remaining() == 0 => 0,
            Self::Level => u64::from(packet.dscp()),
        }
    }
}

impl Discipline for Pfabric {
    #[inline(never)]
    fn select<P: Packet>(
        &mut self,
        _now: Time,
        ready: QueueSet,
        Backlog { queues, store }: Backlog<'_, P>,
        _rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        ready.lowest()?;
        let most_urgent = queues
            .iter(QUEUE, store)
            .map(|s| s.packet)
            .min_by_key(|packet| self.urgency.rank(packet))?;
        let earliest = queues
            .iter(QUEUE, store)
            .position(|s| s.packet.flow() == most_urgent.flow())?;
        // The choice is put at the head, where every scheduler's choice is taken from.
        queues.promote(QUEUE, earliest, store);
        Some(QUEUE)
    }

    #[inline]
    fn passed(
        &mut self,
        _service: Service,
        _queues: &mut Queues,
        _rounds: &mut impl RoundObserver,
    ) {
    }

    fn evicts(&self) -> bool {
        true
    }

    /// The least urgent packet, if it is less urgent than the arriving one; of equals the latest,
    /// so that older packets stay.
    fn victim<P: Packet>(&self, arriving: &P, queues: &Queues, store: &Store<P>) -> Option<usize> {
        queues
            .iter(QUEUE, store)
            .map(|s| self.urgency.rank(&s.packet))
            .enumerate()
            .max_by_key(|&(_, rank)| rank)
            .filter(|&(_, rank)| rank > self.urgency.rank(arriving))
            .map(|(position, _)| position)
    }
}
