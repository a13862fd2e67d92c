//! Packet storage of one port: any number of FIFO queues over one slab.
//!
//! Queues are singly linked lists through a slab that all of them share, so a port holds as much
//! memory as its fullest moment needed and nothing is allocated in steady state.

use super::QueueSet;
use crate::packet::Packet;
use crate::tally::Tally;
use crate::units::Time;

/// End of a list, and "no slot".
const NIL: u32 = u32::MAX;

/// A packet in store, with what was known when it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<P> {
    pub(crate) packet: P,
    /// When it was offered, for sojourn times.
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

#[derive(Clone, Copy, Debug)]
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
}

const EMPTY: Queue = Queue {
    head: NIL,
    tail: NIL,
    packets: 0,
    head_size: 0,
    bytes: 0,
    pushed_bytes: 0,
    pushed_packets: 0,
};

/// The queues of one port and how much they hold.
#[derive(Clone, Debug)]
pub(crate) struct Queues<P> {
    slots: Vec<Slot<P>>,
    free: u32,
    queues: Vec<Queue>,
    backlogged: QueueSet,
    bytes: u64,
}

impl<P: Packet> Queues<P> {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: NIL,
            queues: vec![EMPTY; count],
            backlogged: QueueSet::EMPTY,
            bytes: 0,
        }
    }

    /// Number of queues.
    pub(crate) fn count(&self) -> usize {
        self.queues.len()
    }

    /// Bytes in all queues.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets in all queues.
    pub(crate) fn packets(&self) -> u32 {
        self.queues.iter().map(|queue| queue.packets).sum()
    }

    #[inline]
    pub(crate) fn queue_bytes(&self, queue: usize) -> u64 {
        self.queues[queue].bytes
    }

    #[inline]
    pub(crate) fn queue_packets(&self, queue: usize) -> u32 {
        self.queues[queue].packets
    }

    /// What was ever put into a queue.
    pub(crate) fn pushed(&self, queue: usize) -> Tally {
        Tally {
            packets: self.queues[queue].pushed_packets,
            bytes: self.queues[queue].pushed_bytes,
        }
    }

    /// The queues that hold at least one packet.
    #[inline]
    pub(crate) fn backlogged(&self) -> QueueSet {
        self.backlogged
    }

    /// Size of the packet at the head of a backlogged queue.
    #[inline]
    pub(crate) fn head_size(&self, queue: usize) -> u32 {
        self.queues[queue].head_size
    }

    /// What is at the head of a queue.
    pub(crate) fn head(&self, queue: usize) -> Option<&Stored<P>> {
        let head = self.queues[queue].head;
        (self.queues[queue].packets > 0).then(|| &self.slots[head as usize].stored)
    }

    /// The packet at the head of a queue.
    pub(crate) fn head_mut(&mut self, queue: usize) -> Option<&mut P> {
        let head = self.queues[queue].head;
        (self.queues[queue].packets > 0).then(|| &mut self.slots[head as usize].stored.packet)
    }

    /// What is at the tail of a backlogged queue.
    pub(crate) fn tail_mut(&mut self, queue: usize) -> &mut Stored<P> {
        let tail = self.queues[queue].tail;
        &mut self.slots[tail as usize].stored
    }

    /// Puts a packet at the tail; true if the queue was empty.
    #[inline(always)]
    pub(crate) fn push(&mut self, queue: usize, stored: Stored<P>) -> bool {
        let index = self.store(stored);
        let list = &mut self.queues[queue];
        let first = list.packets == 0;
        if first {
            list.head = index;
            list.head_size = stored.size;
            self.backlogged.insert(queue);
        } else {
            self.slots[list.tail as usize].next = index;
        }
        list.tail = index;
        list.packets += 1;
        list.bytes += u64::from(stored.size);
        list.pushed_bytes += u64::from(stored.size);
        list.pushed_packets += 1;
        self.bytes += u64::from(stored.size);
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
    pub(crate) fn pop(&mut self, queue: usize) -> Stored<P> {
        let list = &mut self.queues[queue];
        let index = list.head;
        let slot = &mut self.slots[index as usize];
        let stored = slot.stored;
        list.head = slot.next;
        slot.next = self.free;
        self.free = index;
        list.packets -= 1;
        list.bytes -= u64::from(stored.size);
        self.bytes -= u64::from(stored.size);
        if list.packets == 0 {
            self.backlogged.remove(queue);
        } else {
            list.head_size = self.slots[list.head as usize].stored.size;
        }
        stored
    }

    /// The packets of a queue in order of arrival.
    pub(crate) fn iter(&self, queue: usize) -> impl Iterator<Item = &Stored<P>> {
        let mut at = self.queues[queue].head;
        (0..self.queues[queue].packets).map(move |_| {
            let slot = &self.slots[at as usize];
            at = slot.next;
            &slot.stored
        })
    }

    /// Moves the packet at `position` of a queue to its head.
    pub(crate) fn promote(&mut self, queue: usize, position: usize) {
        if position == 0 {
            return;
        }
        let index = self.unlink(queue, position);
        let list = &mut self.queues[queue];
        self.slots[index as usize].next = list.head;
        list.head = index;
        list.head_size = self.slots[index as usize].stored.size;
    }

    /// Takes the packet at `position` of a queue.
    pub(crate) fn remove(&mut self, queue: usize, position: usize) -> Stored<P> {
        self.promote(queue, position);
        self.pop(queue)
    }

    /// Cuts the packet at `position > 0` out of its list; counters stay as they are.
    fn unlink(&mut self, queue: usize, position: usize) -> u32 {
        let list = &mut self.queues[queue];
        let mut before = list.head;
        for _ in 1..position {
            before = self.slots[before as usize].next;
        }
        let index = self.slots[before as usize].next;
        self.slots[before as usize].next = self.slots[index as usize].next;
        if list.tail == index {
            list.tail = before;
        }
        index
    }

    #[inline(always)]
    fn store(&mut self, stored: Stored<P>) -> u32 {
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

#[cfg(test)]
mod tests {
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

    fn tags(queues: &Queues<Descriptor>, queue: usize) -> Vec<u64> {
        queues.iter(queue).map(|s| s.packet.tag).collect()
    }

    #[test]
    fn queues_share_slots_and_keep_order() {
        let mut queues = Queues::new(2);
        for tag in 0..6 {
            queues.push(tag as usize % 2, stored(tag, 100));
        }
        assert_eq!(queues.pop(0).packet.tag, 0);
        queues.push(1, stored(6, 50));
        assert_eq!(queues.slots.len(), 6, "the freed slot is used again");
        assert_eq!(tags(&queues, 0), [2, 4]);
        assert_eq!(tags(&queues, 1), [1, 3, 5, 6]);
        assert_eq!((queues.bytes(), queues.packets()), (550, 6));
        assert_eq!(queues.queue_bytes(1), 350);
    }

    #[test]
    fn removal_from_any_position_keeps_the_list_whole() {
        for position in 0..4 {
            let mut queues = Queues::new(1);
            for tag in 0..4 {
                queues.push(0, stored(tag, 10 + tag as u32));
            }
            assert_eq!(queues.remove(0, position).packet.tag, position as u64);
            queues.push(0, stored(9, 1));
            let expected: Vec<_> = (0..4)
                .filter(|&t| t != position as u64)
                .chain([9])
                .collect();
            assert_eq!(tags(&queues, 0), expected);
            assert_eq!(queues.head_size(0), if position == 0 { 11 } else { 10 });
        }
    }

    #[test]
    fn promotion_changes_only_the_order() {
        let mut queues = Queues::new(1);
        for tag in 0..4 {
            queues.push(0, stored(tag, 10 + tag as u32));
        }
        queues.promote(0, 3);
        assert_eq!(tags(&queues, 0), [3, 0, 1, 2]);
        assert_eq!(queues.head_size(0), 13);
        queues.push(0, stored(4, 1));
        assert_eq!(tags(&queues, 0), [3, 0, 1, 2, 4]);
    }
}
