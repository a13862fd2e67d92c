//! A timing wheel for the near future and a heap for what lies beyond.
//!
//! Events are nodes of one arena, linked into the slot of their time. Inserting is a few
//! instructions whatever the number of events; a slot is sorted when its time has come, and a slot
//! holds an event or two. What does not fit on the wheel, mostly retransmission timers, waits in a
//! heap and is moved when it comes into reach.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use shallows_core::units::Time;

use super::Key;

/// A slot spans 2^12 ps, about 4 ns: some packets of a busy fabric, a bit of a 10 Gbps frame.
const SLOT_BITS: u32 = 12;
/// Slots of the wheel: together 33.6 us, more than any hop of a datacenter takes.
const SLOTS: usize = 1 << 13;
const WORDS: usize = SLOTS / 64;

const NIL: u32 = u32::MAX;

/// An event; with the simulator's packets it fills a cache line.
#[derive(Clone, Debug)]
struct Node<P> {
    time: Time,
    key: Key,
    payload: P,
    next: u32,
}

/// A queue of events ordered by time and key. Arrivals carry a payload, the packet; all others say
/// everything with their key.
#[derive(Debug)]
pub(crate) struct Wheel<P> {
    nodes: Vec<Node<P>>,
    free: u32,
    slots: Box<[u32]>,
    /// One bit for each slot that is not empty, and one for each word of those.
    occupied: [u64; WORDS],
    occupied_words: [u64; WORDS / 64],
    /// Absolute number of the slot that is being emptied.
    now_slot: u64,
    /// The events of that slot, latest first.
    current: Vec<u32>,
    beyond: BinaryHeap<Reverse<(Time, Key, u32)>>,
    /// First slot of `beyond`, to look at it without touching the heap.
    beyond_slot: u64,
}

impl<P: Copy + Default> Wheel<P> {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: NIL,
            slots: vec![NIL; SLOTS].into(),
            occupied: [0; WORDS],
            occupied_words: [0; WORDS / 64],
            now_slot: 0,
            current: Vec::new(),
            beyond: BinaryHeap::new(),
            beyond_slot: u64::MAX,
        }
    }

    /// Adds an event without payload. Its time must not be before that of the last event taken.
    #[inline]
    pub(crate) fn push(&mut self, time: Time, key: Key) {
        let index = self.vacant();
        self.insert(time, key, index);
    }

    /// Adds an event with a payload.
    #[inline]
    pub(crate) fn push_with(&mut self, time: Time, key: Key, payload: P) {
        let index = self.vacant();
        self.nodes[index as usize].payload = payload;
        self.insert(time, key, index);
    }

    /// Takes the next event if it is before `end`, with its payload or a stale one.
    #[inline]
    pub(crate) fn pop_before(&mut self, end: Time) -> Option<(Time, Key, P)> {
        if self.current.is_empty() && !self.advance() {
            return None;
        }
        let &index = self.current.last()?;
        let node = &mut self.nodes[index as usize];
        if node.time >= end {
            return None;
        }
        node.next = self.free;
        self.free = index;
        self.current.pop();
        Some((node.time, node.key, node.payload))
    }

    #[inline]
    fn vacant(&mut self) -> u32 {
        let index = self.free;
        if index == NIL {
            self.nodes.push(Node {
                time: Time::ZERO,
                key: Key::port_ready(0),
                payload: P::default(),
                next: NIL,
            });
            return (self.nodes.len() - 1) as u32;
        }
        self.free = self.nodes[index as usize].next;
        index
    }

    #[inline]
    fn insert(&mut self, time: Time, key: Key, index: u32) {
        let node = &mut self.nodes[index as usize];
        node.time = time;
        node.key = key;
        let slot = slot_of(time);
        let distance = slot.wrapping_sub(self.now_slot);
        // One comparison tells the wheel from the slot that is being emptied and from the rest.
        if distance.wrapping_sub(1) < SLOTS as u64 - 1 {
            self.link(slot, index);
        } else {
            self.insert_rarely(time, key, index);
        }
    }

    #[cold]
    fn insert_rarely(&mut self, time: Time, key: Key, index: u32) {
        let slot = slot_of(time);
        if slot <= self.now_slot {
            self.insert_current(index);
        } else {
            self.beyond.push(Reverse((time, key, index)));
            self.beyond_slot = self.beyond_slot.min(slot);
        }
    }

    #[inline]
    fn link(&mut self, slot: u64, index: u32) {
        let slot = slot as usize % SLOTS;
        self.nodes[index as usize].next = self.slots[slot];
        self.slots[slot] = index;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.occupied_words[slot / 64 / 64] |= 1 << (slot / 64 % 64);
    }

    /// Puts an event among those of the slot that is being emptied.
    #[inline]
    fn insert_current(&mut self, index: u32) {
        let mut at = self.current.len();
        self.current.push(index);
        while at > 0 && self.order(self.current[at - 1]) < self.order(index) {
            self.current[at] = self.current[at - 1];
            at -= 1;
        }
        self.current[at] = index;
    }

    #[inline]
    fn order(&self, index: u32) -> (Time, Key) {
        let node = &self.nodes[index as usize];
        (node.time, node.key)
    }

    /// Goes on to the next slot with events; false if there is none.
    fn advance(&mut self) -> bool {
        let next = self
            .next_occupied()
            .map_or(u64::MAX, |distance| self.now_slot + distance);
        let target = next.min(self.beyond_slot);
        if target == u64::MAX {
            return false;
        }
        self.now_slot = target;
        if self.beyond_slot < target + SLOTS as u64 {
            self.bring_in_reach();
        }
        let slot = target as usize % SLOTS;
        let mut index = self.slots[slot];
        self.slots[slot] = NIL;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.occupied_words[slot / 64 / 64] &= !(1 << (slot / 64 % 64));
        }
        while index != NIL {
            let next = self.nodes[index as usize].next;
            self.insert_current(index);
            index = next;
        }
        true
    }

    /// Moves what has come into reach from the heap onto the wheel.
    #[cold]
    fn bring_in_reach(&mut self) {
        let reach = self.now_slot + SLOTS as u64;
        while let Some(&Reverse((time, _, index))) = self.beyond.peek() {
            let slot = slot_of(time);
            if slot >= reach {
                self.beyond_slot = slot;
                return;
            }
            self.beyond.pop();
            if slot <= self.now_slot {
                self.insert_current(index);
            } else {
                self.link(slot, index);
            }
        }
        self.beyond_slot = u64::MAX;
    }

    /// Slots from `now_slot` to the next one with events, in cyclic order.
    #[inline]
    fn next_occupied(&self) -> Option<u64> {
        let from = (self.now_slot as usize + 1) % SLOTS;
        let (word, bit) = (from / 64, from % 64);
        let found = match self.occupied[word] & (u64::MAX << bit) {
            0 => self.next_occupied_word(word)?,
            bits => word * 64 + bits.trailing_zeros() as usize,
        };
        Some(((found + SLOTS - from) % SLOTS + 1) as u64)
    }

    /// First occupied slot in the words after `word`, in cyclic order; `word` itself comes last.
    fn next_occupied_word(&self, word: usize) -> Option<usize> {
        let mut at = (word + 1) % WORDS;
        for _ in 0..=self.occupied_words.len() {
            let bits = self.occupied_words[at / 64] & (u64::MAX << (at % 64));
            if bits != 0 {
                let word = at / 64 * 64 + bits.trailing_zeros() as usize;
                return Some(word * 64 + self.occupied[word].trailing_zeros() as usize);
            }
            at = (at / 64 + 1) * 64 % WORDS;
        }
        None
    }
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
        let after = prop_oneof![0..5_000u64, 0..40_000_000u64, 0..20_000_000_000u64];
        let step = prop_oneof![
            3 => (after, 0..50u32).prop_map(|(after, link)| Step::Push { after, link }),
            3 => Just(Step::Pop),
        ];
        prop::collection::vec(step, 1..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The wheel gives what a binary heap gives.
        #[test]
        fn agrees_with_a_heap(steps in steps()) {
            let mut wheel = Wheel::new();
            let mut heap = BinaryHeap::new();
            let mut now = Time::ZERO;
            let pop = |wheel: &mut Wheel<u64>, heap: &mut BinaryHeap<_>, now: &mut Time| {
                let expected = heap.pop().map(|Reverse((time, _, number))| (time, number));
                let got = wheel.pop_before(Time::MAX).map(|(time, _, number)| (time, number));
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
                        let key = Key::arrival(link * 1000 + number as u32);
                        wheel.push_with(time, key, number as u64);
                        heap.push(Reverse((time, key, number as u64)));
                    }
                    Step::Pop => pop(&mut wheel, &mut heap, &mut now)?,
                }
            }
            while !heap.is_empty() {
                pop(&mut wheel, &mut heap, &mut now)?;
            }
        }
    }

    #[test]
    fn an_end_holds_events_back() {
        let mut wheel = Wheel::<()>::new();
        wheel.push(Time::from_us(5), Key::start(1));
        assert_eq!(wheel.pop_before(Time::from_us(5)), None);
        let event = wheel.pop_before(Time::from_ps(5_000_001));
        assert_eq!(event, Some((Time::from_us(5), Key::start(1), ())));
        assert_eq!(wheel.pop_before(Time::MAX), None);
    }

    #[test]
    fn an_event_may_be_added_before_the_next_one_seen() {
        // A look at the next event moves the wheel on to its slot; one of now must still come
        // first.
        let mut wheel = Wheel::<()>::new();
        wheel.push(Time::from_us(9), Key::start(1));
        assert_eq!(wheel.pop_before(Time::from_us(1)), None);
        wheel.push(Time::from_us(3), Key::start(2));
        let order: Vec<_> = std::iter::from_fn(|| wheel.pop_before(Time::MAX))
            .map(|(_, key, ())| key.identity())
            .collect();
        assert_eq!(order, [2, 1]);
    }
}
