//! pFabric's switch (Alizadeh et al., SIGCOMM 2013, §4.1), the baseline of QJUMP §6.4.
//!
//! A packet's priority is the number of bytes its flow has left, smaller first. The port sends the
//! earliest packet *of the flow* that owns the most urgent packet, so that a flow is not reordered
//! by its own shrinking remainder. When the buffer is full, the least urgent packet goes: the
//! arriving one if no queued one is less urgent. Buffers are tiny (24 packets in QJUMP's
//! comparison), so the paper lets hardware look at every packet. But a buffer of bytes has room for
//! hundreds of probes of one byte. So what is looked at lies together here, apart from the packets,
//! and it is looked at only where the most urgent packet is not known from before.
//!
//! QJUMP's published simulation runs on the same queue with its levels as priorities
//! (`Urgency::Level`).

use std::collections::VecDeque;

use super::{Discipline, RoundObserver, Service};
use crate::packet::Packet;
use crate::port::QueueSet;
use crate::port::queues::{Backlog, Queues};
use crate::units::Time;

/// The only queue of a pFabric port.
const QUEUE: usize = 0;

/// The most urgent packet first.
#[derive(Clone, Debug)]
pub(crate) struct Pfabric {
    urgency: Urgency,
    /// No queued packet has a lower rank.
    floor: u64,
    /// The flow of the earliest packet of this rank, if that packet is known.
    owner: Option<u64>,
    /// The queued packets in their order.
    waiting: VecDeque<Waiting>,
}

/// A queued packet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    rank: u64,
    flow: u64,
    /// Place in the store.
    slot: u32,
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
            waiting: VecDeque::new(),
        }
    }

    /// The flow of the earliest of the most urgent packets.
    fn find_owner(&mut self) -> Option<u64> {
        let mut most_urgent = *self.waiting.front()?;
        for waiting in &self.waiting {
            if waiting.rank < most_urgent.rank {
                most_urgent = *waiting;
            }
            if most_urgent.rank == self.floor {
                break;
            }
        }
        self.floor = most_urgent.rank;
        Some(most_urgent.flow)
    }

    /// Moves a packet to the head of the queue, where every scheduler's choice is taken from.
    fn promote<P: Packet>(&mut self, position: usize, Backlog { queues, store }: Backlog<'_, P>) {
        let before = position.checked_sub(1).and_then(|at| self.waiting.get(at));
        if let Some(before) = before {
            queues.promote_after(QUEUE, before.slot, store);
            if let Some(promoted) = self.waiting.remove(position) {
                self.waiting.push_front(promoted);
            }
        }
    }
}

impl Discipline for Pfabric {
    #[inline(never)]
    fn select<P: Packet>(
        &mut self,
        _now: Time,
        ready: QueueSet,
        backlog: Backlog<'_, P>,
        _rounds: &mut impl RoundObserver,
    ) -> Option<usize> {
        ready.lowest()?;
        let owner = self.owner.or_else(|| self.find_owner())?;
        self.owner = Some(owner);
        let is_owners = |waiting: &Waiting| waiting.flow == owner;
        let position = self.waiting.iter().position(is_owners)?;
        self.promote(position, backlog);
        Some(QUEUE)
    }

    #[inline]
    fn stored<P: Packet>(&mut self, packet: &P, slot: u32) {
        let waiting = Waiting {
            rank: self.urgency.rank(packet),
            flow: packet.flow(),
            slot,
        };
        if waiting.rank < self.floor {
            self.floor = waiting.rank;
            self.owner = Some(waiting.flow);
        }
        self.waiting.push_back(waiting);
    }

    #[inline]
    fn sent(&mut self, service: Service, _queues: &mut Queues, _rounds: &mut impl RoundObserver) {
        let sent = self.waiting.pop_front();
        if service.emptied {
            self.floor = u64::MAX;
        }
        if service.emptied || sent.is_some_and(|sent| sent.rank == self.floor) {
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
    fn give_up<P: Packet>(&mut self, arriving: &P, backlog: Backlog<'_, P>) -> bool {
        let ranks = self.waiting.iter().map(|waiting| waiting.rank).enumerate();
        let Some((position, rank)) = ranks.max_by_key(|&(_, rank)| rank) else {
            return false;
        };
        if rank <= self.urgency.rank(arriving) {
            return false;
        }
        // All packets are as urgent, and the earliest of them may be the one that goes.
        if rank == self.floor {
            self.owner = None;
        }
        self.promote(position, backlog);
        self.waiting.pop_front();
        true
    }
}
