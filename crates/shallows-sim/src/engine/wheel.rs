//! A timing wheel of two levels, and a heap for what lies beyond.
//!
//! Events are nodes of one arena, and a node is also the home of the packet that its event is
//! about, from the host that sends it to the host that takes it: an event is set by writing its
//! time and linking its node into the slot of that time, and no packet is ever copied.
//!
//! Time is cut into slots and every 2^14 slots make a *turn*. The slots of this turn and of the
//! next have a list each; a slot is sorted when its time has come. Each of the turns after that has
//! one list, whose events go to their slots when the turn before begins. What does not fit there
//! either, such as a timer that has been backed off, waits in a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::{hint, iter, mem};

use shallows_core::units::Time;

use super::{Class, Key};

/// A slot spans 2^11 ps, about 2 ns: an event or two of a busy fabric of hundreds of hosts.
const SLOT_BITS: u32 = 11;
/// Slots of a turn: together 33.6 us, more than an idle hop of a datacenter takes.
const TURN_BITS: u32 = 14;
/// Slots of two turns.
const SLOTS: usize = 2 << TURN_BITS;
const WORDS: usize = SLOTS / 64;
/// Turns that have a list: together 34 ms.
const TURNS: usize = 1 << 10;

/// No node.
const NIL: u32 = u32::MAX;

/// An event and what it is about; with the simulator's packets it fills a cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Node<T> {
    time: Time,
    key: Key,
    next: u32,
    item: T,
}

/// Time, key and node of an event as one number, which is ordered like them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    #[inline]
    fn new(time: Time, key: Key, index: u32) -> Self {
        Self(u128::from(time.ps()) << 64 | u128::from(key.bits()) << 32 | u128::from(index))
    }

    #[inline]
    fn time(self) -> Time {
        Time::from_ps((self.0 >> 64) as u64)
    }

    #[inline]
    fn key(self) -> Key {
        Key::from_bits((self.0 >> 32) as u32)
    }

    #[inline]
    fn index(self) -> u32 {
        self.0 as u32
    }
}

/// A queue of events ordered by time and key.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    nodes: Vec<Node<T>>,
    free: u32,
    slots: Box<[u32; SLOTS]>,
    /// One bit for each slot that is not empty, and one for each word of those.
    occupied: Box<[u64; WORDS]>,
    occupied_words: [u64; WORDS / 64],
    /// Absolute number of the slot that is being emptied.
    now_slot: u64,
    /// The first slot after the next turn.
    slots_end: u64,
    /// The events of the slot that is being emptied, last first.
    current: Vec<Entry>,
    turns: Box<[u32; TURNS]>,
    /// Events in `turns`.
    in_turns: usize,
    beyond: BinaryHeap<Reverse<Entry>>,
}

impl<T: Default> Wheel<T> {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: NIL,
            slots: filled(NIL),
            occupied: filled(0),
            occupied_words: [0; WORDS / 64],
            now_slot: 0,
            slots_end: SLOTS as u64,
            current: Vec::new(),
            turns: filled(NIL),
            in_turns: 0,
            beyond: BinaryHeap::new(),
        }
    }

    /// A node that no event uses.
    #[inline]
    pub(crate) fn claim(&mut self) -> u32 {
        let index = self.free;
        if index == NIL {
            return self.grow();
        }
        self.free = self.nodes[index as usize].next;
        index
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        self.nodes.push(Node {
            time: Time::ZERO,
            key: Key::new(Class::PortReady, 0),
            next: NIL,
            item: T::default(),
        });
        (self.nodes.len() - 1) as u32
    }

    /// Gives a node back that has no event.
    #[inline]
    pub(crate) fn release(&mut self, index: u32) {
        self.nodes[index as usize].next = self.free;
        self.free = index;
    }

    /// What a node holds.
    #[inline]
    pub(crate) fn item(&mut self, index: u32) -> &mut T {
        &mut self.nodes[index as usize].item
    }

    /// Gives a node an event. Its time must not be before that of the last event taken.
    #[inline]
    pub(crate) fn set(&mut self, index: u32, time: Time, key: Key) {
        let slot = slot_of(time);
        let node = &mut self.nodes[index as usize];
        node.time = time;
        node.key = key;
        if slot > self.now_slot && slot < self.slots_end {
            let slot = slot as usize % SLOTS;
            node.next = self.slots[slot];
            self.slots[slot] = index;
            self.occupied[slot / 64] |= 1 << (slot % 64);
            self.occupied_words[slot / 64 / 64] |= 1 << (slot / 64 % 64);
        } else {
            self.set_rarely(index, slot);
        }
    }

    /// Takes the next event if it is before `end`; its node has no event then.
    #[inline]
    pub(crate) fn pop_before(&mut self, end: Time) -> Option<(Time, Key, u32)> {
        if let Some(&entry) = self.current.last() {
            if entry.time() >= end {
                return None;
            }
            self.current.pop();
            return Some((entry.time(), entry.key(), entry.index()));
        }
        let index = self.advance(slot_of(end))?;
        let node = &self.nodes[index as usize];
        if node.next == NIL && node.time < end {
            return Some((node.time, node.key, index));
        }
        self.pop_sorted(index, end)
    }

    /// Takes the first of several events of the slot of now.
    #[inline(never)]
    fn pop_sorted(&mut self, index: u32, end: Time) -> Option<(Time, Key, u32)> {
        self.sort_in(index);
        let entry = self.current.pop_if(|entry| entry.time() < end)?;
        Some((entry.time(), entry.key(), entry.index()))
    }

    /// When the next event is.
    pub(crate) fn next_time(&self) -> Option<Time> {
        if let Some(first) = self.current.last() {
            return Some(first.time());
        }
        let in_slots = self.next_occupied();
        let head = match self.next_turn() {
            _ if in_slots != u64::MAX => self.slots[in_slots as usize % SLOTS],
            u64::MAX => NIL,
            turn => self.turns[turn as usize % TURNS],
        };
        let node = |index: u32| (index != NIL).then(|| &self.nodes[index as usize]);
        let listed = iter::successors(node(head), |of| node(of.next)).map(|of| of.time);
        let beyond = self.beyond.peek().map(|Reverse(entry)| entry.time());
        listed.chain(beyond).min()
    }

    #[inline(never)]
    fn set_rarely(&mut self, index: u32, slot: u64) {
        let turn = slot >> TURN_BITS;
        if slot <= self.now_slot {
            self.insert_current(index);
        } else if turn < (self.now_slot >> TURN_BITS) + TURNS as u64 {
            let head = &mut self.turns[turn as usize % TURNS];
            self.nodes[index as usize].next = mem::replace(head, index);
            self.in_turns += 1;
        } else {
            let node = &self.nodes[index as usize];
            self.beyond
                .push(Reverse(Entry::new(node.time, node.key, index)));
        }
    }

    /// Puts an event among those of the slot that is being emptied.
    fn insert_current(&mut self, index: u32) {
        let node = &self.nodes[index as usize];
        let entry = Entry::new(node.time, node.key, index);
        let at = self.current.partition_point(|&other| other > entry);
        self.current.insert(at, entry);
    }

    /// Makes the events of a list those of the slot that is being emptied.
    #[inline]
    fn sort_in(&mut self, mut index: u32) {
        while index != NIL {
            let node = &self.nodes[index as usize];
            self.current.push(Entry::new(node.time, node.key, index));
            index = node.next;
        }
        match self.current[..] {
            // Nearly always.
            [first, second] => {
                if first < second {
                    self.current.swap(0, 1);
                }
            }
            _ => self.current.sort_unstable_by(|a, b| b.cmp(a)),
        }
    }

    /// Goes on to the next slot with events, and takes their list; nothing if there are none up to
    /// `last`. Never further: what is added before the slot of now is sorted into a list, which
    /// must stay short.
    #[inline]
    fn advance(&mut self, last: u64) -> Option<u32> {
        let next = self.next_occupied();
        if next >> TURN_BITS != self.now_slot >> TURN_BITS {
            return self.advance_turn(next, last);
        }
        if next > last {
            return None;
        }
        self.now_slot = next;
        let taken = self.take_slot();
        self.read_ahead();
        Some(taken)
    }

    /// Looks at the event that comes next, so that its cache line is on its way while that of now is
    /// handled.
    #[inline]
    fn read_ahead(&self) {
        let from = self.now_slot as usize % SLOTS;
        let bits = self.occupied[from / 64] >> (from % 64);
        if bits != 0 {
            let head = self.slots[(from + bits.trailing_zeros() as usize) % SLOTS];
            if let Some(node) = self.nodes.get(head as usize) {
                hint::black_box(node.next);
            }
        }
    }

    /// The same, where the turn changes: `next` is in the next turn, or the greatest number if that
    /// has no events.
    #[cold]
    fn advance_turn(&mut self, mut next: u64, last: u64) -> Option<u32> {
        if next == u64::MAX {
            let beyond = self
                .beyond
                .peek()
                .map(|Reverse(entry)| slot_of(entry.time()));
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
        Some(self.take_slot())
    }

    /// Takes the events of the slot of now.
    #[inline]
    fn take_slot(&mut self) -> u32 {
        let slot = self.now_slot as usize % SLOTS;
        let word = &mut self.occupied[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.occupied_words[slot / 64 / 64] &= !(1 << (slot / 64 % 64));
        }
        mem::replace(&mut self.slots[slot], NIL)
    }

    /// Goes on to a slot of another turn.
    fn enter(&mut self, slot: u64) {
        self.now_slot = slot;
        let turn = slot >> TURN_BITS;
        self.slots_end = (turn + 2) << TURN_BITS;
        let last_listed = (turn + TURNS as u64) << TURN_BITS;
        while let Some(&Reverse(entry)) = self.beyond.peek()
            && slot_of(entry.time()) < last_listed
        {
            self.beyond.pop();
            self.set(entry.index(), entry.time(), entry.key());
        }
        let next_turn = (turn + 1) as usize % TURNS;
        let mut index = mem::replace(&mut self.turns[next_turn], NIL);
        while index != NIL {
            let node = &self.nodes[index as usize];
            let (time, key, next) = (node.time, node.key, node.next);
            self.in_turns -= 1;
            self.set(index, time, key);
            index = next;
        }
    }

    /// The next turn that has a list with events, or the greatest number.
    fn next_turn(&self) -> u64 {
        if self.in_turns == 0 {
            return u64::MAX;
        }
        let now = self.now_slot >> TURN_BITS;
        let turns = now + 2..now + TURNS as u64;
        let occupied = |turn: &u64| self.turns[*turn as usize % TURNS] != NIL;
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
    #[inline(never)]
    fn next_occupied_word(&self, from: u64) -> u64 {
        let first_word = from as usize % SLOTS / 64;
        let mut at = (first_word + 1) % WORDS;
        for _ in 0..=self.occupied_words.len() {
            let bits = self.occupied_words[at / 64] >> (at % 64);
            if bits != 0 {
                let word = at + bits.trailing_zeros() as usize;
                let slot = word * 64 + self.occupied[word].trailing_zeros() as usize;
                let distance = slot.wrapping_sub(from as usize) % SLOTS;
                return from + distance as u64;
            }
            at = (at / 64 + 1) * 64 % WORDS;
        }
        u64::MAX
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push { after: u64, link: u32 },
        Pop,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Spans inside a slot, across the wheel, and far beyond it.
        let after = prop_oneof![
            0..1_500u64,
            0..40_000_000u64,
            33_000_000..34_000_000u64,
            0..20_000_000_000u64
        ];
        let step = prop_oneof![
            3 => (after, 0..50u32).prop_map(|(after, link)| Step::Push { after, link }),
            3 => Just(Step::Pop),
        ];
        prop::collection::vec(step, 1..400)
    }

    fn push<T: Default>(wheel: &mut Wheel<T>, time: Time, key: Key, item: T) {
        let index = wheel.claim();
        *wheel.item(index) = item;
        wheel.set(index, time, key);
    }

    fn pop<T: Default + Copy>(wheel: &mut Wheel<T>, end: Time) -> Option<(Time, Key, T)> {
        let (time, key, index) = wheel.pop_before(end)?;
        let item = *wheel.item(index);
        wheel.release(index);
        Some((time, key, item))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The wheel gives what a binary heap gives.
        #[test]
        fn agrees_with_a_heap(steps in steps()) {
            let mut wheel = Wheel::new();
            let mut heap = BinaryHeap::new();
            let mut now = Time::ZERO;
            let pop_both = |wheel: &mut Wheel<u64>, heap: &mut BinaryHeap<_>, now: &mut Time| {
                let expected = heap.pop().map(|Reverse((time, _, number))| (time, number));
                prop_assert_eq!(wheel.next_time(), expected.map(|(time, _)| time));
                let got = pop(wheel, Time::MAX).map(|(time, _, number)| (time, number));
                if let Some((time, _)) = got {
                    *now = time;
                }
                prop_assert_eq!(got, expected);
                Ok(())
            };
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push { after, link } => {
                        let time = now + Time::from_ps(after);
                        // Identities are unique at an instant, as the order demands.
                        let key = Key::new(Class::Arrival, link * 1000 + number as u32);
                        push(&mut wheel, time, key, number as u64);
                        heap.push(Reverse((time, key, number as u64)));
                    }
                    Step::Pop => pop_both(&mut wheel, &mut heap, &mut now)?,
                }
            }
            while !heap.is_empty() {
                pop_both(&mut wheel, &mut heap, &mut now)?;
            }
        }
    }

    fn start(flow: u32) -> Key {
        Key::new(Class::Start, flow)
    }

    #[test]
    fn an_end_holds_events_back() {
        let mut wheel = Wheel::<()>::new();
        push(&mut wheel, Time::from_us(5), start(1), ());
        assert_eq!(pop(&mut wheel, Time::from_us(5)), None);
        let event = pop(&mut wheel, Time::from_ps(5_000_001));
        assert_eq!(event, Some((Time::from_us(5), start(1), ())));
        assert_eq!(pop(&mut wheel, Time::MAX), None);
    }

    #[test]
    fn an_event_may_be_added_before_the_next_one_seen() {
        let mut wheel = Wheel::<()>::new();
        push(&mut wheel, Time::from_us(9), start(1), ());
        assert_eq!(pop(&mut wheel, Time::from_us(1)), None);
        push(&mut wheel, Time::from_us(3), start(2), ());
        let order: Vec<_> = iter::from_fn(|| pop(&mut wheel, Time::MAX))
            .map(|(_, key, ())| key.identity())
            .collect();
        assert_eq!(order, [2, 1]);
    }

    #[test]
    fn nodes_are_used_again() {
        let mut wheel = Wheel::<()>::new();
        for round in 0..100 {
            push(&mut wheel, Time::from_us(round), start(1), ());
            pop(&mut wheel, Time::MAX);
        }
        assert_eq!(wheel.nodes.len(), 1);
    }
}
