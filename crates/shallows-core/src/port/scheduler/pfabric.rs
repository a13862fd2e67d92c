//! pFabric's switch (Alizadeh et al., SIGCOMM 2013, §4.1), the baseline of QJUMP §6.4.
//!
//! A packet's priority is the number of bytes its flow has left, smaller first. The port sends the
//! earliest packet *of the flow* that owns the most urgent packet, so that a flow is not reordered
//! by its own shrinking remainder. When the buffer is full, the least urgent packet goes: the
//! arriving one if no queued one is less urgent. Buffers are tiny (24 packets in QJUMP's
//! comparison), so the paper lets hardware look at every packet. Here that happens only where the
//! most urgent one is not known from before.
//!
//! QJUMP's published simulation runs on the same queue with its levels as priorities
//! (`Urgency::Level`).

use super::{Discipline, RoundObserver, Service};
use crate::packet::Packet;
use crate::port::QueueSet;
use crate::port::queues::{Backlog, Queues, Store};
use crate::units::Time;

/// The only queue of a pFabric port.
const QUEUE: usize = 0;

/// The most urgent packet first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pfabric {
    urgency: Urgency,
    /// No queued packet has a lower rank.
    floor: u64,
    /// The flow of the earliest packet of this rank, if that packet is known.
    owner: Option<u64>,
    /// The rank of the packet that was selected.
    selected: u64,
}

/// Measure of a packet's urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
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

impl Pfabric {
    /// A scheduler of an empty queue.
    pub(super) fn new(urgency: Urgency) -> Self {
        Self {
            urgency,
            floor: u64::MAX,
            owner: None,
            selected: 0,
        }
    }

    /// The flow of the earliest of the most urgent packets.
    fn find_owner<P: Packet>(&mut self, queues: &Queues, store: &Store<P>) -> Option<u64> {
        let mut most_urgent: Option<(u64, u64)> = None;
        for stored in queues.iter(QUEUE, store) {
            let rank = self.urgency.rank(&stored.packet);
            if most_urgent.is_none_or(|(least, _)| rank < least) {
                most_urgent = Some((rank, stored.packet.flow()));
            }
            if rank == self.floor {
                break;
            }
        }
        let (rank, flow) = most_urgent?;
        self.floor = rank;
        Some(flow)
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
        let owner = self.owner.or_else(|| self.find_owner(queues, store))?;
        self.owner = Some(owner);
        // The choice is put at the head, where every scheduler's choice is taken from.
        queues.promote_first(QUEUE, store, |packet| {
            self.selected = self.urgency.rank(packet);
            packet.flow() == owner
        });
        Some(QUEUE)
    }

    #[inline]
    fn stored<P: Packet>(&mut self, packet: &P) {
        let rank = self.urgency.rank(packet);
        if rank < self.floor {
            self.floor = rank;
            self.owner = Some(packet.flow());
        }
    }

    #[inline]
    fn sent(&mut self, service: Service, _queues: &mut Queues, _rounds: &mut impl RoundObserver) {
        if service.emptied {
            self.floor = u64::MAX;
        }
        if service.emptied || self.selected == self.floor {
            self.owner = None;
        }
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
    fn victim<P: Packet>(
        &mut self,
        arriving: &P,
        queues: &Queues,
        store: &Store<P>,
    ) -> Option<usize> {
        // It may be the earliest of the most urgent packets, if all are as urgent.
        self.owner = None;
        queues
            .iter(QUEUE, store)
            .map(|s| self.urgency.rank(&s.packet))
            .enumerate()
            .max_by_key(|&(_, rank)| rank)
            .filter(|&(_, rank)| rank > self.urgency.rank(arriving))
            .map(|(position, _)| position)
    }
}
