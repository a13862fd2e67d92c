//! The queues of the V2V flows to one destination host (Fig. 11): one per pair of virtual machines,
//! served by deficit round robin.
//!
//! The paper has a queue for each V2V flow and leaves open how those of one slot share it. Here the
//! virtual machines of a host have equal shares in bytes, whatever number of flows each has, and so
//! have the flows of one machine.

use std::collections::VecDeque;

use crate::packet::Packet;

/// Bytes that a virtual machine may send before the next one: a full packet.
const QUANTUM: u64 = 1500;

/// Held packets by V2V flow.
#[derive(Debug)]
pub(super) struct V2vQueues<P> {
    flows: Vec<Flow<P>>,
    /// Flows with packets. The first one's deficit covers its first packet, which is the next to
    /// leave.
    active: VecDeque<usize>,
}

#[derive(Debug)]
struct Flow<P> {
    /// The virtual machines that it leads from and to.
    machines: (u8, u8),
    packets: VecDeque<P>,
    bytes: u64,
    deficit: u64,
}

impl<P> Default for V2vQueues<P> {
    fn default() -> Self {
        Self {
            flows: Vec::new(),
            active: VecDeque::new(),
        }
    }
}

impl<P: Packet> V2vQueues<P> {
    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// The packet that [`pop`](Self::pop) gives.
    pub(super) fn head(&self) -> Option<&P> {
        let &first = self.active.front()?;
        self.flows[first].packets.front()
    }

    /// Queues a packet unless its source machine then had more than `limit` bytes here.
    pub(super) fn push(&mut self, packet: P, limit: u64) -> bool {
        let (machines, size) = (packet.machines(), u64::from(packet.size()));
        let own = self.active.iter().map(|&flow| &self.flows[flow]);
        let own = own.filter(|flow| flow.machines.0 == machines.0);
        if own.map(|flow| flow.bytes).sum::<u64>() + size > limit {
            return false;
        }
        let known = self.flows.iter().position(|flow| flow.machines == machines);
        let place = known.unwrap_or_else(|| {
            self.flows.push(Flow {
                machines,
                packets: VecDeque::new(),
                bytes: 0,
                deficit: 0,
            });
            self.flows.len() - 1
        });
        let flow = &mut self.flows[place];
        flow.packets.push_back(packet);
        flow.bytes += size;
        if flow.packets.len() == 1 {
            self.active.push_back(place);
            if self.active.len() == 1 {
                self.begin_turn();
            }
            self.settle();
        }
        true
    }

    pub(super) fn pop(&mut self) -> Option<P> {
        let &first = self.active.front()?;
        let flow = &mut self.flows[first];
        let packet = flow.packets.pop_front()?;
        let size = u64::from(packet.size());
        flow.bytes -= size;
        flow.deficit -= size;
        if flow.packets.is_empty() {
            flow.deficit = 0;
            self.active.pop_front();
            self.begin_turn();
        }
        self.settle();
        Some(packet)
    }

    /// Ends the turns of flows that have used up their deficit, until the first one may send.
    fn settle(&mut self) {
        while let Some(&first) = self.active.front() {
            let flow = &self.flows[first];
            let head = flow.packets.front().map_or(0, Packet::size);
            if flow.deficit >= u64::from(head) {
                return;
            }
            self.active.rotate_left(1);
            self.begin_turn();
        }
    }

    /// Gives the first flow its part of the quantum of its virtual machine.
    fn begin_turn(&mut self) {
        let Some(&first) = self.active.front() else {
            return;
        };
        let source = self.flows[first].machines.0;
        let own = self.active.iter();
        let own = own.filter(|&&other| self.flows[other].machines.0 == source);
        let share = (QUANTUM / own.count() as u64).max(1);
        self.flows[first].deficit += share;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::packet::Descriptor;

    fn packet(machines: (u8, u8), size: u32) -> Descriptor {
        Descriptor {
            size,
            machines,
            ..Descriptor::default()
        }
    }

    /// Bytes by V2V flow of the first packets that leave, until `total` have.
    fn share(queues: &mut V2vQueues<Descriptor>, total: u64) -> BTreeMap<(u8, u8), u64> {
        let mut sent: BTreeMap<(u8, u8), u64> = BTreeMap::new();
        while sent.values().sum::<u64>() < total {
            assert!(queues.head().is_some());
            let head = queues.head().copied();
            let packet = queues.pop().unwrap();
            assert_eq!(head, Some(packet), "the head is what leaves");
            *sent.entry(packet.machines).or_default() += u64::from(packet.size);
        }
        sent
    }

    #[test]
    fn machines_share_a_slot_by_bytes_whatever_they_queue() {
        let mut queues = V2vQueues::default();
        // Machine 1 floods with full packets before machine 2 sends small ones.
        for _ in 0..1000 {
            assert!(queues.push(packet((1, 1), 1500), u64::MAX));
        }
        for _ in 0..10_000 {
            assert!(queues.push(packet((2, 1), 100), u64::MAX));
        }
        let sent = share(&mut queues, 600_000);
        let difference = sent[&(1, 1)].abs_diff(sent[&(2, 1)]);
        assert!(difference <= 2 * QUANTUM, "{sent:?}");
    }

    #[test]
    fn more_flows_are_no_larger_share() {
        let mut queues = V2vQueues::default();
        for _ in 0..1000 {
            for machines in [(1, 1), (1, 2), (1, 3), (2, 1)] {
                assert!(queues.push(packet(machines, 1000), u64::MAX));
            }
        }
        let sent = share(&mut queues, 900_000);
        let of_first = sent[&(1, 1)] + sent[&(1, 2)] + sent[&(1, 3)];
        assert!(of_first.abs_diff(sent[&(2, 1)]) <= 4 * QUANTUM, "{sent:?}");
        let most = sent[&(1, 1)].max(sent[&(1, 2)]).max(sent[&(1, 3)]);
        assert!(3 * most <= of_first + 6 * QUANTUM, "{sent:?}");
    }

    #[test]
    fn a_machine_fills_its_own_room_only() {
        let mut queues = V2vQueues::default();
        assert!(queues.push(packet((1, 1), 600), 1000));
        assert!(!queues.push(packet((1, 2), 600), 1000), "the same machine");
        assert!(queues.push(packet((2, 1), 600), 1000));
        assert_eq!(queues.pop().map(|of| of.machines), Some((1, 1)));
        assert!(queues.push(packet((1, 2), 600), 1000));
    }

    #[test]
    fn one_flow_is_a_fifo() {
        let mut queues = V2vQueues::default();
        for size in 1..2000 {
            assert!(queues.push(packet((0, 0), size), u64::MAX));
        }
        for size in 1..2000 {
            assert_eq!(queues.pop().map(|of| of.size), Some(size));
        }
        assert!(queues.is_empty() && queues.pop().is_none());
    }
}
