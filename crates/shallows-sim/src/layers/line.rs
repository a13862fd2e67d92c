//! Packets on a link, and the order in which those of several links reach a port.

use shallows_core::units::Time;

use crate::packet::Ticket;

/// A packet on a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transit {
    /// When it is at the far end.
    pub(crate) time: Time,
    pub(crate) ticket: Ticket,
}

/// The packets on a link in the order of their arrival: times strictly increase.
#[derive(Debug, Default)]
pub(crate) struct Line {
    packets: Vec<Transit>,
    /// The first packets have left the line: those before the current window.
    gone: usize,
    /// The first packets have been shown to their next ports, or handed to their host.
    shown: usize,
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

    /// The packet at a position in the current window.
    #[inline(always)]
    pub(super) fn at(&self, position: usize) -> &Transit {
        &self.packets[self.gone + position]
    }

    /// The packets that have not been shown.
    #[inline(always)]
    pub(super) fn coming(&self) -> &[Transit] {
        &self.packets[self.shown..]
    }

    /// Number of packets shown in the current window.
    #[inline]
    pub(super) fn shown(&self) -> usize {
        self.shown - self.gone
    }

    /// The first `count` packets of the current window have been shown.
    #[inline]
    pub(super) fn show(&mut self, count: usize) {
        self.shown = self.gone + count;
    }

    /// When the first packet arrives that has not been shown; the greatest time if there is none.
    #[inline(always)]
    pub(crate) fn next(&self) -> Time {
        self.packets
            .get(self.shown)
            .map_or(Time::MAX, |packet| packet.time)
    }

    /// Takes the first packet that has not been shown.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Ticket> {
        let packet = self.packets.get(self.shown)?;
        self.shown += 1;
        Some(packet.ticket)
    }

    /// The packets that were shown have left the line.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.shown >= WORTH_MOVING && 2 * self.shown >= self.packets.len() {
            self.packets.drain(..self.shown);
            self.shown = 0;
        }
        self.gone = self.shown;
    }
}

/// Runs that are merged one by one; more are sorted from scratch.
const FEW_RUNS: u32 = 4;

/// Sorts keys that are most often one or two sorted runs.
#[inline]
pub(super) fn sort(keys: &mut [u64], scratch: &mut Vec<u64>) {
    let mut sorted = run(keys);
    for _ in 1..FEW_RUNS {
        if sorted == keys.len() {
            return;
        }
        let end = sorted + run(&keys[sorted..]);
        merge(&mut keys[..end], sorted, scratch);
        sorted = end;
    }
    if sorted < keys.len() {
        keys.sort_unstable();
    }
}

/// Length of the sorted run that keys begin with.
#[inline]
fn run(keys: &[u64]) -> usize {
    let descent = keys.windows(2).position(|pair| pair[1] < pair[0]);
    descent.map_or(keys.len(), |at| at + 1)
}

/// Merges two sorted runs, of which the second begins at `middle`, from their ends.
#[inline]
fn merge(keys: &mut [u64], middle: usize, scratch: &mut Vec<u64>) {
    scratch.clear();
    scratch.extend_from_slice(&keys[middle..]);
    let (mut left, mut to) = (middle, keys.len());
    while let Some(&key) = scratch.last() {
        to -= 1;
        if left > 0 && keys[left - 1] > key {
            left -= 1;
            keys[to] = keys[left];
        } else {
            keys[to] = key;
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
            let mut keys: Vec<u64> = Vec::new();
            for mut run in runs {
                run.sort_unstable();
                keys.extend(run);
            }
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort(&mut keys, &mut Vec::new());
            prop_assert_eq!(keys, expected);
        }
    }

    #[test]
    fn positions_count_from_the_window() {
        let mut line = Line::default();
        let ticket = |packet| {
            let mut ticket = Ticket::default();
            ticket.packet = packet;
            ticket
        };
        for at in 0..40 {
            line.push(Time::from_ns(u64::from(at)), ticket(at));
        }
        line.show(35);
        line.tidy();
        assert_eq!(line.len(), 5, "what has left is forgotten");
        assert_eq!(line.next(), Time::from_ns(35));
        line.show(2);
        assert_eq!(line.at(1).ticket.packet, 36);
        assert_eq!(line.coming().len(), 3);
        line.tidy();
        assert_eq!(line.at(0).ticket.packet, 37);
        assert_eq!(line.pop().map(|ticket| ticket.packet), Some(37));
    }
}
