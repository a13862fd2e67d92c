//! A timing wheel of two levels, and a heap for what lies beyond.
//!
//! Time is cut into slots and every 2^10 slots make a *turn*. The events of this turn and of the
//! next lie in chunks, those of a slot in a list of chunks. Each of the turns after that has one
//! list, whose events go to their slots when the turn before begins. What does not fit there either,
//! such as a timer that has been backed off, waits in a heap.
//!
//! When the time of a slot has come, all of its events are looked at before the first one happens.
//! Most slots need not be sorted, because nothing that happens at a port can matter at another one
//! within the slot, see [`Collision`].

mod chunk;
mod event;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::{iter, mem};

use shallows_core::units::Time;

use chunk::{CHUNK, Chunk, List};
use event::Entry;

pub(crate) use event::{Collision, Event};

/// A slot spans 2^15 ps, about 33 ns: some twenty events of a busy fabric of 144 hosts.
const SLOT_BITS: u32 = 15;
/// The time that a slot spans.
pub(crate) const SLOT: Time = Time::from_ps(1 << SLOT_BITS);
/// Events of a slot above which it is crowded.
const CROWDED: usize = 128;
/// Slots of a turn: together 33.6 us, more than an idle hop of a datacenter takes.
const TURN_BITS: u32 = 10;
/// Slots of two turns.
const SLOTS: usize = 2 << TURN_BITS;
const WORDS: usize = SLOTS / 64;
const _: () = assert!(WORDS == 32, "each word has a bit of `occupied_words`");
/// Turns that have a list: together 34 ms.
const TURNS: usize = 1 << 10;

/// A queue of events ordered by time and key.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// Events of the current slot; the first `done` have been taken.
    current: Vec<Entry>,
    done: usize,
    /// The position from which `current` is sorted, so that an event can be inserted.
    sorted_from: usize,
    /// Absolute number of the current slot.
    now_slot: u64,
    /// The first slot after the next turn.
    slots_end: u64,
    slots: Box<[List; SLOTS]>,
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    /// One bit for each slot that is not empty.
    occupied: Box<[u64; WORDS]>,
    /// One bit for each word of `occupied` that is not zero.
    occupied_words: u32,
    turns: Box<[Vec<Event>; TURNS]>,
    /// Events in `turns`.
    in_turns: usize,
    beyond: BinaryHeap<Reverse<Event>>,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            current: Vec::new(),
            done: 0,
            sorted_from: 0,
            now_slot: 0,
            slots_end: SLOTS as u64,
            slots: filled(List::EMPTY),
            chunks: Vec::new(),
            free: Vec::new(),
            occupied: filled(0),
            occupied_words: 0,
            turns: filled(Vec::new()),
            in_turns: 0,
            beyond: BinaryHeap::new(),
        }
    }

    /// Adds an event. Its time must not be before that of the last event taken.
    // All that is rare is in tail calls of a few scalars, so that the rest saves no registers.
    #[inline]
    pub(crate) fn push(&mut self, event: Event) {
        let (slot, entry) = (slot_of(event.time), Entry::new(event));
        if slot <= self.now_slot || slot >= self.slots_end {
            return self.push_elsewhere(slot, entry);
        }
        let place = slot as usize % SLOTS;
        let list = self.slots[place];
        if list.len() == CHUNK as usize {
            return self.push_into_new_chunk(place, list, entry);
        }
        self.slots[place] = List(list.0 + 1);
        self.chunks[list.chunk()].0[list.len()] = entry;
    }

    /// Adds an event to a slot that is empty or whose first chunk is full, in a chunk before those of
    /// `list`.
    #[inline(never)]
    fn push_into_new_chunk(&mut self, place: usize, list: List, entry: Entry) {
        let word = place / 64 % WORDS;
        self.occupied[word] |= 1 << (place % 64);
        self.occupied_words |= 1 << word;
        let number = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk([Entry(0); CHUNK as usize + 1]));
            (self.chunks.len() - 1) as u32
        });
        let chunk = &mut self.chunks[number as usize].0;
        chunk[CHUNK as usize] = Entry(u128::from(list.0));
        chunk[0] = entry;
        self.slots[place % SLOTS] = List(number * (CHUNK + 1) + 1);
    }

    /// Takes the next event of the current slot, if there is one before `end`; that must not be
    /// earlier than what [`next_slot`](Self::next_slot) or [`hold`](Self::hold) were told.
    #[inline]
    pub(crate) fn pop_before(&mut self, end: Time) -> Option<Event> {
        let event = self.current.get(self.done)?.event(start_of(self.now_slot));
        if event.time >= end {
            return None;
        }
        self.done += 1;
        Some(event)
    }

    /// Prepares for an end that may lie within the current slot.
    pub(crate) fn hold(&mut self, end: Time) {
        if slot_of(end) <= self.now_slot && self.done < self.sorted_from {
            self.current[self.done..].sort_unstable();
            self.sorted_from = 0;
        }
    }

    /// Start of the current slot.
    pub(crate) fn slot_start(&self) -> Time {
        start_of(self.now_slot)
    }

    /// Time of the next event.
    pub(crate) fn next_time(&self) -> Option<Time> {
        let start = start_of(self.now_slot);
        if let Some(first) = self.current[self.done..].iter().min() {
            return Some(first.event(start).time);
        }
        let slot = self.next_occupied();
        if slot != u64::MAX {
            let entries = self.entries(self.slots[slot as usize % SLOTS]);
            return entries.min().map(|entry| entry.event(start_of(slot)).time);
        }
        let turn = self.next_turn();
        if turn != u64::MAX {
            let events = self.turns[turn as usize % TURNS].iter();
            return events.map(|event| event.time).min();
        }
        self.beyond.peek().map(|Reverse(event)| event.time)
    }

    /// The events of a list.
    fn entries(&self, list: List) -> impl Iterator<Item = &Entry> {
        let some = |list| (list != List::EMPTY).then_some(list);
        let parts = iter::successors(some(list), move |list| some(self.rest(*list)));
        parts.flat_map(|list| &self.chunks[list.chunk()].0[..list.len()])
    }

    /// A list that is not empty, without its first chunk.
    #[inline]
    fn rest(&self, list: List) -> List {
        List(self.chunks[list.chunk()].0[CHUNK as usize].0 as u32)
    }

    /// Adds an event to the current slot, to a later turn, or to those beyond all turns.
    #[inline(never)]
    fn push_elsewhere(&mut self, slot: u64, entry: Entry) {
        debug_assert!(slot >= self.now_slot);
        let turn = slot >> TURN_BITS;
        let event = entry.event(start_of(slot));
        if slot == self.now_slot {
            let from = self.done.max(self.sorted_from);
            let coming = &self.current[from..];
            let at = from + coming.partition_point(|other| *other < entry);
            self.current.insert(at, entry);
        } else if turn < (self.now_slot >> TURN_BITS) + TURNS as u64 {
            self.turns[turn as usize % TURNS].push(event);
            self.in_turns += 1;
        } else {
            self.beyond.push(Reverse(event));
        }
    }

    /// Advances to the next slot with events, once all of this one are taken; false if there is none
    /// that begins before `end`. `collide` is shown its events with the numbers of their slot and their
    /// own in it, and says how they have to be ordered.
    #[inline]
    pub(crate) fn next_slot(
        &mut self,
        end: Time,
        mut collide: impl FnMut(Event, (u64, u32)) -> Collision,
    ) -> bool {
        let last = slot_of(end);
        if self.done < self.current.len() || self.advance(last).is_none() {
            return false;
        }
        let (slot, start) = (self.now_slot, start_of(self.now_slot));
        let place = slot as usize % SLOTS;
        let word = &mut self.occupied[place / 64];
        *word &= !(1 << (place % 64));
        self.occupied_words &= !(u32::from(*word == 0) << (place / 64));
        let mut list = mem::replace(&mut self.slots[place], List::EMPTY);
        self.done = 0;
        self.current.clear();
        while list != List::EMPTY {
            let len = self.current.len() + list.len();
            let chunk = &self.chunks[list.chunk()].0;
            // A whole chunk is copied faster than some of it.
            self.current.extend_from_slice(chunk);
            self.current.truncate(len);
            self.free.push(list.chunk() as u32);
            list = self.rest(list);
        }
        // Only a part of the last slot may be asked for, and to sort a crowded one is faster than to
        // look at the ports of all of its events.
        let mut in_order = slot == last || self.current.len() > CROWDED;
        let shown = if in_order { 0 } else { self.current.len() };
        for at in 0..shown {
            match collide(self.current[at].event(start), (slot, at as u32)) {
                Collision::First => {}
                Collision::Again(before) => self.put_in_place(at, before as usize),
                Collision::Ordered => in_order = true,
            }
        }
        self.sorted_from = self.current.len();
        if in_order {
            self.current.sort_unstable();
            self.sorted_from = 0;
        }
        true
    }

    /// Orders an event among those that concern the same port, up to the one `before` it. Ports know
    /// slots by 32 bits: after minutes of simulated time `before` may be of a slot long past.
    #[inline]
    fn put_in_place(&mut self, mut at: usize, before: usize) {
        let port = self.current[at].port();
        for other in (0..at.min(before + 1)).rev() {
            if self.current[other].port() == port {
                if self.current[other] < self.current[at] {
                    return;
                }
                self.current.swap(at, other);
                at = other;
            }
        }
    }

    /// Advances to the next slot with events, if there is one up to `last`.
    #[inline]
    fn advance(&mut self, last: u64) -> Option<()> {
        let next = self.next_occupied();
        if next >> TURN_BITS != self.now_slot >> TURN_BITS {
            return self.advance_turn(next, last);
        }
        if next > last {
            return None;
        }
        self.now_slot = next;
        Some(())
    }

    /// The same, where the turn changes: `next` is in the next turn, or the greatest number if that
    /// has no events.
    #[cold]
    fn advance_turn(&mut self, mut next: u64, last: u64) -> Option<()> {
        if next == u64::MAX {
            let beyond = self.beyond.peek().map(|Reverse(event)| slot_of(event.time));
            let beyond = beyond.map_or(u64::MAX, |slot| slot >> TURN_BITS);
            let turn = self.next_turn().min(beyond);
            if turn > last >> TURN_BITS {
                return None;
            }
            // To the end of the turn before it, so that it is the next.
            self.enter((turn << TURN_BITS) - 1);
            next = self.next_occupied();
        }
        if next > last {
            return None;
        }
        self.enter(next);
        Some(())
    }

    /// Advances to a slot of another turn.
    fn enter(&mut self, slot: u64) {
        self.now_slot = slot;
        let turn = slot >> TURN_BITS;
        self.slots_end = (turn + 2) << TURN_BITS;
        let last_listed = (turn + TURNS as u64) << TURN_BITS;
        while let Some(&Reverse(event)) = self.beyond.peek()
            && slot_of(event.time) < last_listed
        {
            self.beyond.pop();
            self.push(event);
        }
        let next_turn = (turn + 1) as usize % TURNS;
        let events = mem::take(&mut self.turns[next_turn]);
        self.in_turns -= events.len();
        for event in events {
            self.push(event);
        }
    }

    /// The next turn that has a list with events, or the greatest number.
    fn next_turn(&self) -> u64 {
        if self.in_turns == 0 {
            return u64::MAX;
        }
        let now = self.now_slot >> TURN_BITS;
        let turns = now + 2..now + TURNS as u64;
        let occupied = |turn: &u64| !self.turns[*turn as usize % TURNS].is_empty();
        turns.into_iter().find(occupied).unwrap_or(u64::MAX)
    }

    /// The next slot with events on the wheel, in cyclic order, or the greatest number.
    #[inline]
    fn next_occupied(&self) -> u64 {
        let from = self.now_slot + 1;
        let at = from as usize % SLOTS;
        let bits = self.occupied[at / 64] >> (at % 64);
        if bits != 0 {
            return from + u64::from(bits.trailing_zeros());
        }
        self.next_occupied_word(from)
    }

    /// The same, if the word of `from` has none from there on.
    #[inline]
    fn next_occupied_word(&self, from: u64) -> u64 {
        if self.occupied_words == 0 {
            return u64::MAX;
        }
        let after = from / 64 + 1;
        let turned = self
            .occupied_words
            .rotate_right(after as u32 % WORDS as u32);
        let word = after + u64::from(turned.trailing_zeros());
        let bits = self.occupied[word as usize % WORDS];
        word * 64 + u64::from(bits.trailing_zeros())
    }
}

/// An array that is never on the stack.
#[expect(
    clippy::unnecessary_box_returns,
    reason = "it is too large for the stack"
)]
fn filled<T: Clone, const N: usize>(value: T) -> Box<[T; N]> {
    let slice = vec![value; N].into_boxed_slice();
    slice
        .try_into()
        .unwrap_or_else(|_| unreachable!("it has this length"))
}

fn slot_of(time: Time) -> u64 {
    time.ps() >> SLOT_BITS
}

fn start_of(slot: u64) -> Time {
    Time::from_ps(slot << SLOT_BITS)
}
