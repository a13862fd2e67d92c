//! Packets on a link, and the order in which those of several links reach a port.

use std::mem;

use shallows_core::units::Time;
use shallows_model::LinkId;

use crate::ticket::Ticket;

/// A packet on a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transit {
    /// Arrival at the far end.
    pub(crate) time: Time,
    pub(crate) ticket: Ticket,
}

/// The packets on a link in the order of their arrival: times strictly increase.
#[derive(Debug, Default)]
pub(crate) struct Line {
    packets: Vec<Transit>,
    /// The first packets have left the line.
    taken: usize,
}

/// Packets that have left a line before it is worth moving the others.
const WORTH_MOVING: usize = 32;

impl Line {
    #[inline(always)]
    pub(crate) fn push(&mut self, time: Time, ticket: Ticket) {
        self.packets.push(Transit { time, ticket });
    }

    /// Number of packets that the line holds, with those that have left it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// The packets on the line.
    #[inline(always)]
    pub(super) fn packets(&self) -> &[Transit] {
        &self.packets[self.taken..]
    }

    /// Arrival of the first packet; the greatest time if there is none.
    #[inline(always)]
    pub(crate) fn next(&self) -> Time {
        self.packets
            .get(self.taken)
            .map_or(Time::MAX, |packet| packet.time)
    }

    /// Gives the line memory that another has left, if it has none.
    #[inline]
    pub(super) fn borrow(&mut self, spare: &mut Vec<Vec<Transit>>) {
        if self.packets.capacity() == 0 {
            self.packets = spare.pop().unwrap_or_default();
        }
    }

    /// Leaves the memory of an empty line to others.
    #[inline]
    pub(super) fn leave(&mut self, spare: &mut Vec<Vec<Transit>>) {
        let mut packets = mem::take(&mut self.packets);
        packets.clear();
        self.taken = 0;
        if packets.capacity() > 0 {
            spare.push(packets);
        }
    }

    /// Takes the first packet. [`take`](Self::take) frees its place.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Ticket> {
        let packet = self.packets.get(self.taken)?;
        self.taken += 1;
        Some(packet.ticket)
    }

    /// Takes the first `count` packets.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken >= WORTH_MOVING && 2 * self.taken >= self.packets.len() {
            self.packets.drain(..self.taken);
            self.taken = 0;
        }
    }
}

/// A packet at its next port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arriving {
    /// The time since the window began in picoseconds, and below it the link: the order in which a
    /// port takes packets.
    order: u64,
    pub(crate) ticket: Ticket,
}

impl Arriving {
    #[inline(always)]
    pub(super) fn new(since: Time, link: LinkId, ticket: Ticket) -> Self {
        Self {
            order: since.ps() << 32 | u64::from(link.0),
            ticket,
        }
    }

    /// A packet at the NIC of its host, where packets come in their order.
    #[inline(always)]
    pub(super) fn at_nic(since: Time, ticket: Ticket) -> Self {
        Self::new(since, LinkId(0), ticket)
    }

    /// The time since the window began.
    #[inline(always)]
    pub(crate) fn since(&self) -> Time {
        Time::from_ps(self.order >> 32)
    }
}

/// Runs that are merged one by one; more are sorted from scratch.
const FEW_RUNS: u32 = 4;

/// Sorts packets that are most often one or two sorted runs.
#[inline]
pub(super) fn sort(packets: &mut [Arriving], scratch: &mut Vec<Arriving>) {
    let mut sorted = run(packets);
    for _ in 1..FEW_RUNS {
        if sorted == packets.len() {
            return;
        }
        let end = sorted + run(&packets[sorted..]);
        merge(&mut packets[..end], sorted, scratch);
        sorted = end;
    }
    if sorted < packets.len() {
        packets.sort_unstable_by_key(|packet| packet.order);
    }
}

/// Length of the sorted run that packets begin with.
#[inline]
fn run(packets: &[Arriving]) -> usize {
    let mut last = 0;
    let is_descent = |packet: &Arriving| mem::replace(&mut last, packet.order) > packet.order;
    packets.iter().position(is_descent).unwrap_or(packets.len())
}

/// Merges two sorted runs, of which the second begins at `middle`, from their ends.
#[inline]
fn merge(packets: &mut [Arriving], middle: usize, scratch: &mut Vec<Arriving>) {
    scratch.clear();
    scratch.extend_from_slice(&packets[middle..]);
    let (mut left, mut to) = (middle, packets.len());
    while let Some(last) = scratch.last() {
        to -= 1;
        if left > 0 && packets[left - 1].order > last.order {
            left -= 1;
            packets[to] = packets[left];
        } else {
            packets[to] = *last;
            scratch.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_number_of_runs_is_sorted(runs in prop::collection::vec(prop::collection::vec(0..999u64, 0..20), 0..8)) {
            let mut packets = Vec::new();
            for (mut run, link) in runs.into_iter().zip(0..) {
                run.sort_unstable();
                let at = |since| Arriving::new(Time::from_ps(since), LinkId(link), Ticket::default());
                packets.extend(run.into_iter().map(at));
            }
            let order = |packets: &[Arriving]| -> Vec<u64> {
                packets.iter().map(|packet| packet.order).collect()
            };
            let mut expected = order(&packets);
            expected.sort_unstable();
            sort(&mut packets, &mut Vec::new());
            prop_assert_eq!(order(&packets), expected);
        }
    }

    #[test]
    fn what_has_left_a_line_is_forgotten() {
        let mut line = Line::default();
        for at in 0..40 {
            line.push(Time::from_ns(u64::from(at)), Ticket::default().numbered(at));
        }
        line.take(35);
        assert_eq!(line.len(), 5);
        assert_eq!(line.next(), Time::from_ns(35));
        line.take(2);
        assert_eq!(
            (line.len(), line.packets().len()),
            (5, 3),
            "it is not worth moving them"
        );
        assert_eq!(line.packets()[0].ticket.packet(), 37);
        assert_eq!(line.pop().map(|ticket| ticket.packet()), Some(37));
        assert_eq!(line.next(), Time::from_ns(38));
    }

    #[test]
    fn an_empty_line_leaves_its_memory_to_the_next() {
        let (mut spare, mut first, mut second) = (Vec::new(), Line::default(), Line::default());
        first.push(Time::ZERO, Ticket::default());
        let memory = first.packets.as_ptr();
        first.take(1);
        first.leave(&mut spare);
        assert_eq!((first.len(), first.next()), (0, Time::MAX));
        second.borrow(&mut spare);
        assert!(spare.is_empty() && second.packets().is_empty());
        second.push(Time::ZERO, Ticket::default());
        assert_eq!(second.packets.as_ptr(), memory);
    }
}
