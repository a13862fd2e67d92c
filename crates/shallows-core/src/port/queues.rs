//! Packet storage: any number of FIFO queues over one slab.
//!
//! Queues are singly linked lists through the slab of a [`Pool`], which all ports that are driven
//! with the pool share. So there is as much memory as the fullest moment of all needed, what was
//! used last is used next, and nothing is allocated in steady state.

use super::{Pool, QueueSet};
use crate::packet::Packet;
use crate::tally::Tally;
use crate::units::Time;

/// End of a list, and "no slot".
const NIL: u32 = u32::MAX;

/// A queued packet, with what was known when it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<P> {
    pub(crate) packet: P,
    /// Time of its offer, for sojourn times.
    pub(crate) arrived: Time,
    /// Bytes that buffer, marker and scheduler count for it.
    pub(crate) size: u32,
    /// The marker's note from the enqueue side, for schemes that decide on both sides (CEDM).
    pub(crate) noted: bool,
}

#[derive(Clone, Debug)]
struct Slot<P> {
    stored: Stored<P>,
    next: u32,
}

/// State of a queue that scheduler and marker need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    /// The marker's number for the queue, see
    /// [`Marking::queue_constant`](super::marker::Marking::queue_constant).
    pub(crate) constant: f64,
    /// Bytes a round, or weight.
    pub(crate) quantum: u32,
    /// Remaining credit, where it is carried over.
    pub(crate) deficit: u32,
    /// Time at which the queue was last served or became active: T_start of MQ-ECN §4.2.
    pub(crate) start: Time,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Queue {
    head: u32,
    tail: u32,
    packets: u32,
    /// Size of the head packet, kept here because every scheduler looks at it.
    head_size: u32,
    bytes: u64,
    /// Everything that was ever put in.
    pushed_bytes: u64,
    pushed_packets: u64,
    lane: Lane,
}

const EMPTY: Queue = Queue {
    head: NIL,
    tail: NIL,
    packets: 0,
    head_size: 0,
    bytes: 0,
    pushed_bytes: 0,
    pushed_packets: 0,
    lane: Lane {
        constant: 0.0,
        quantum: 0,
        deficit: 0,
        start: Time::ZERO,
    },
};

/// The queues of one port and how much they hold.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Queues {
    backlogged: QueueSet,
    bytes: u64,
    /// Largest number of bytes so far.
    peak: u64,
    queues: Box<[Queue]>,
}

/// The packets of any number of queues.
#[derive(Clone, Debug)]
pub(crate) struct Store<P> {
    slots: Vec<Slot<P>>,
    free: u32,
}

/// The queues of a port with their packets.
#[derive(Debug)]
pub(crate) struct Backlog<'a, P> {
    pub(crate) queues: &'a mut Queues,
    pub(crate) store: &'a mut Store<P>,
}

impl<P> Default for Store<P> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: NIL,
        }
    }
}

impl<P> Store<P> {
    #[inline(always)]
    fn put(&mut self, stored: Stored<P>) -> u32 {
        let slot = Slot { stored, next: NIL };
        if self.free == NIL {
            self.slots.push(slot);
            return (self.slots.len() - 1) as u32;
        }
        let index = self.free;
        let free = &mut self.slots[index as usize];
        self.free = free.next;
        *free = slot;
        index
    }
}

impl Queues {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            backlogged: QueueSet::EMPTY,
            bytes: 0,
            peak: 0,
            queues: vec![EMPTY; count].into(),
        }
    }

    /// Number of queues.
    pub fn count(&self) -> usize {
        self.queues.len()
    }

    /// Bytes in all queues.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Largest number of bytes that all queues have held at once.
    pub fn peak_bytes(&self) -> u64 {
        self.peak
    }

    /// Packets in all queues.
    pub fn packets(&self) -> u32 {
        self.queues.iter().map(|queue| queue.packets).sum()
    }

    /// Bytes in a queue.
    #[inline]
    pub fn queue_bytes(&self, queue: usize) -> u64 {
        self.queues[queue].bytes
    }

    /// Bytes in a queue and in all queues, with a packet that is not in them.
    #[inline(always)]
    pub(crate) fn lengths_with(&self, queue: usize, size: u32) -> (u64, u64) {
        let size = u64::from(size);
        (self.queues[queue].bytes + size, self.bytes + size)
    }

    /// Packets in a queue.
    #[inline]
    pub fn queue_packets(&self, queue: usize) -> u32 {
        self.queues[queue].packets
    }

    /// Total ever put into a queue.
    pub(crate) fn pushed(&self, queue: usize) -> Tally {
        Tally {
            packets: self.queues[queue].pushed_packets,
            bytes: self.queues[queue].pushed_bytes,
        }
    }

    /// The queues that hold at least one packet.
    #[inline]
    pub fn backlogged(&self) -> QueueSet {
        self.backlogged
    }

    /// Round-robin state of a queue.
    #[inline]
    pub(crate) fn lane(&mut self, queue: usize) -> &mut Lane {
        &mut self.queues[queue].lane
    }

    /// Bytes that a queue may send in a round, or its weight.
    #[inline]
    pub fn quantum(&self, queue: usize) -> u32 {
        self.queues[queue].lane.quantum
    }

    /// The number that the marker has for a queue, see
    /// [`Marking::queue_constant`](super::marker::Marking::queue_constant).
    #[inline]
    pub fn constant(&self, queue: usize) -> f64 {
        self.queues[queue].lane.constant
    }

    /// Size of the packet at the head of a backlogged queue.
    #[inline]
    pub fn head_size(&self, queue: usize) -> u32 {
        self.queues[queue].head_size
    }

    /// Packet at the head of a queue.
    pub(crate) fn head<'a, P: Packet>(
        &self,
        queue: usize,
        pool: &'a Pool<P>,
    ) -> Option<&'a Stored<P>> {
        let head = self.queues[queue].head;
        (self.queues[queue].packets > 0).then(|| &pool.store.slots[head as usize].stored)
    }

    /// The packet at the head of a queue.
    pub(crate) fn head_mut<'a, P: Packet>(
        &self,
        queue: usize,
        pool: &'a mut Pool<P>,
    ) -> Option<&'a mut P> {
        let head = self.queues[queue].head;
        (self.queues[queue].packets > 0).then(|| &mut pool.store.slots[head as usize].stored.packet)
    }

    /// Packet at the tail of a backlogged queue.
    pub(crate) fn tail_mut<'a, P: Packet>(
        &self,
        queue: usize,
        pool: &'a mut Pool<P>,
    ) -> &'a mut Stored<P> {
        let tail = self.queues[queue].tail;
        &mut pool.store.slots[tail as usize].stored
    }

    /// Puts a packet at the tail; true if the queue was empty.
    #[inline(always)]
    pub(crate) fn push<P: Packet>(
        &mut self,
        queue: usize,
        stored: Stored<P>,
        pool: &mut Pool<P>,
    ) -> bool {
        pool.take(stored.size);
        let index = pool.store.put(stored);
        let list = &mut self.queues[queue];
        let first = list.packets == 0;
        if first {
            list.head = index;
            list.head_size = stored.size;
            self.backlogged.insert(queue);
        } else {
            pool.store.slots[list.tail as usize].next = index;
        }
        list.tail = index;
        list.packets += 1;
        list.bytes += u64::from(stored.size);
        list.pushed_bytes += u64::from(stored.size);
        list.pushed_packets += 1;
        self.bytes += u64::from(stored.size);
        self.peak = self.peak.max(self.bytes);
        first
    }

    /// Counts a packet that passed the queue without being stored.
    #[inline]
    pub(crate) fn count_pass(&mut self, queue: usize, size: u32) {
        let list = &mut self.queues[queue];
        list.pushed_bytes += u64::from(size);
        list.pushed_packets += 1;
    }

    /// Takes the head of a backlogged queue.
    #[inline(always)]
    pub(crate) fn pop<P: Packet>(&mut self, queue: usize, pool: &mut Pool<P>) -> Stored<P> {
        let list = &mut self.queues[queue];
        let index = list.head;
        let store = &mut pool.store;
        let slot = &mut store.slots[index as usize];
        let stored = slot.stored;
        list.head = slot.next;
        slot.next = store.free;
        store.free = index;
        list.packets -= 1;
        list.bytes -= u64::from(stored.size);
        self.bytes -= u64::from(stored.size);
        if list.packets == 0 {
            self.backlogged.remove(queue);
        } else {
            list.head_size = store.slots[list.head as usize].stored.size;
        }
        pool.release(stored.size);
        stored
    }

    /// Place in the store of the packet at the tail of a backlogged queue.
    #[inline(always)]
    pub(crate) fn tail(&self, queue: usize) -> u32 {
        self.queues[queue].tail
    }

    /// Moves the packet behind the one at `before` to the head of its queue.
    pub(crate) fn promote_after<P: Packet>(
        &mut self,
        queue: usize,
        before: u32,
        store: &mut Store<P>,
    ) {
        let list = &mut self.queues[queue];
        let slots = &mut store.slots;
        let index = slots[before as usize].next;
        slots[before as usize].next = slots[index as usize].next;
        if list.tail == index {
            list.tail = before;
        }
        slots[index as usize].next = list.head;
        list.head = index;
        list.head_size = slots[index as usize].stored.size;
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::packet::Descriptor;

    fn stored(tag: u64, size: u32) -> Stored<Descriptor> {
        Stored {
            packet: Descriptor {
                size,
                tag,
                ..Descriptor::default()
            },
            arrived: Time::ZERO,
            size,
            noted: false,
        }
    }

    fn tags(queues: &Queues, queue: usize, pool: &Pool<Descriptor>) -> Vec<u64> {
        let list = &queues.queues[queue];
        let slot = |at: u32| &pool.store.slots[at as usize];
        let slots = iter::successors(Some(list.head), |&at| Some(slot(at).next));
        slots
            .take(list.packets as usize)
            .map(|at| slot(at).stored.packet.tag)
            .collect()
    }

    #[test]
    fn queues_share_slots_and_keep_order() {
        let (mut queues, mut pool) = (Queues::new(2), Pool::unlimited());
        for tag in 0..6 {
            queues.push(tag as usize % 2, stored(tag, 100), &mut pool);
        }
        assert_eq!(queues.pop(0, &mut pool).packet.tag, 0);
        queues.push(1, stored(6, 50), &mut pool);
        assert_eq!(pool.store.slots.len(), 6, "the freed slot is used again");
        assert_eq!(tags(&queues, 0, &pool), [2, 4]);
        assert_eq!(tags(&queues, 1, &pool), [1, 3, 5, 6]);
        assert_eq!((queues.bytes(), queues.packets()), (550, 6));
        assert_eq!(queues.queue_bytes(1), 350);
    }

    #[test]
    fn promotion_changes_only_the_order() {
        for position in 1..4 {
            let (mut queues, mut pool) = (Queues::new(1), Pool::unlimited());
            let mut places = Vec::new();
            for tag in 0..4 {
                queues.push(0, stored(tag, 10 + tag as u32), &mut pool);
                places.push(queues.tail(0));
            }
            queues.promote_after(0, places[position - 1], &mut pool.store);
            queues.push(0, stored(9, 1), &mut pool);
            let promoted = position as u64;
            let others = (0..4).filter(|&tag| tag != promoted).chain([9]);
            let expected: Vec<_> = [promoted].into_iter().chain(others).collect();
            assert_eq!(tags(&queues, 0, &pool), expected);
            assert_eq!(queues.head_size(0), 10 + promoted as u32);
            assert_eq!(queues.pop(0, &mut pool).packet.tag, promoted);
            assert_eq!(tags(&queues, 0, &pool), expected[1..]);
        }
    }
}
