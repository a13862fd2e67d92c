use super::*;
use crate::engine::{Key, Occasion};
use crate::ids::PortId;
use crate::paths::Hop;
use proptest::prelude::*;
use shallows_model::{FlowId, Id as _, LinkId};

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

fn event(time: Time, key: Key, packet: u32) -> Event {
    Event {
        time,
        key,
        packet,
        hop: Hop::to(PortId(0)),
    }
}

fn pop(wheel: &mut Wheel, end: Time) -> Option<Event> {
    if let Some(event) = wheel.pop_before(end) {
        return Some(event);
    }
    wheel
        .next_slot(end, |_, _| Collision::Ordered)
        .then(|| wheel.pop_before(end))?
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The wheel gives what a binary heap gives.
    #[test]
    fn agrees_with_a_heap(steps in steps()) {
        let mut wheel = Wheel::new();
        let mut heap = BinaryHeap::new();
        let mut now = Time::ZERO;
        let pop_both = |wheel: &mut Wheel, heap: &mut BinaryHeap<_>, now: &mut Time| {
            let expected = heap.pop().map(|Reverse(event)| event);
            prop_assert_eq!(wheel.next_time(), expected.map(|event: Event| event.time));
            let got = pop(wheel, Time::MAX);
            if let Some(event) = got {
                *now = event.time;
            }
            prop_assert_eq!(got, expected);
            Ok(())
        };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push { after, link } => {
                    let time = now + Time::from_ps(after);
                    // Identities are unique at an instant, as the order demands.
                    let key = Key::new(Occasion::Arrival(LinkId(link * 1000 + number as u32)));
                    let event = event(time, key, number as u32);
                    wheel.push(event);
                    heap.push(Reverse(event));
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
    Key::new(Occasion::Start(FlowId(flow)))
}

/// The flow that a key starts.
fn flow(key: Key) -> u32 {
    match key.occasion() {
        Occasion::Start(FlowId(flow)) => flow,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_end_holds_events_back() {
    let mut wheel = Wheel::new();
    let first = event(Time::from_us(5), start(1), 7);
    wheel.push(first);
    assert_eq!(pop(&mut wheel, Time::from_us(5)), None);
    assert_eq!(pop(&mut wheel, Time::from_ps(5_000_001)), Some(first));
    assert_eq!(pop(&mut wheel, Time::MAX), None);
}

#[test]
fn an_event_may_be_added_before_the_next_one_seen() {
    let mut wheel = Wheel::new();
    wheel.push(event(Time::from_us(9), start(1), 0));
    assert_eq!(pop(&mut wheel, Time::from_us(1)), None);
    wheel.push(event(Time::from_us(3), start(2), 0));
    let order: Vec<_> = iter::from_fn(|| pop(&mut wheel, Time::MAX))
        .map(|event| flow(event.key))
        .collect();
    assert_eq!(order, [2, 1]);
}

proptest! {
    /// The events of a slot are all shown, and those of a port come in their order.
    #[test]
    fn ports_keep_their_order(events in prop::collection::vec((0..1u64 << SLOT_BITS, 0..6u32), 1..60)) {
        let mut wheel = Wheel::new();
        for (number, &(ps, port)) in (0..).zip(&events) {
            let time = Time::from_us(1) + Time::from_ps(ps);
            wheel.push(Event { hop: Hop::to(PortId(port)), ..event(time, start(number), 0) });
        }
        let (mut met, mut shown) = ([(u64::MAX, 0); 6], 0);
        let mut last = [None; 6];
        loop {
            while let Some(event) = wheel.pop_before(Time::MAX) {
                prop_assert!(last[event.hop.id().index()].replace(event) < Some(event));
                shown -= 1;
            }
            let more = wheel.next_slot(Time::MAX, |event, (slot, at)| {
                shown += 1;
                match mem::replace(&mut met[event.hop.id().index()], (slot, at)) {
                    (last, before) if last == slot => Collision::Again(before),
                    _ => Collision::First,
                }
            });
            if !more {
                break;
            }
        }
        prop_assert_eq!(shown, 0);
    }

    /// An end within a slot holds back what comes after it, however late it is known.
    #[test]
    fn an_end_may_come_in_the_middle_of_a_slot(
        events in prop::collection::vec(0..1u64 << SLOT_BITS, 1..30),
        taken in 0..30usize,
        end in 0..1u64 << SLOT_BITS,
    ) {
        let mut wheel = Wheel::new();
        let at = |ps| start_of(7) + Time::from_ps(ps);
        for (number, &ps) in (0..).zip(&events) {
            wheel.push(event(at(ps), start(number), 0));
        }
        wheel.next_slot(Time::MAX, |_, _| Collision::First);
        for _ in 0..taken {
            wheel.pop_before(Time::MAX);
        }
        wheel.hold(at(end));
        while wheel.pop_before(at(end)).is_some() {}
        prop_assert!(wheel.next_time().is_none_or(|time| time >= at(end)));
    }
}

#[test]
fn a_number_of_another_slot_does_no_harm() {
    let mut wheel = Wheel::new();
    for number in [2, 0, 1] {
        wheel.push(event(Time::from_us(1), start(number), 0));
    }
    wheel.next_slot(Time::MAX, |_, _| Collision::Again(1_000));
    let order = iter::from_fn(|| wheel.pop_before(Time::MAX)).map(|event| flow(event.key));
    assert_eq!(order.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_crowded_slot_is_sorted_unseen() {
    let mut wheel = Wheel::new();
    let numbers = 0..=CROWDED as u32;
    for number in numbers.clone().rev() {
        wheel.push(event(Time::from_us(1), start(number), 0));
    }
    wheel.next_slot(Time::MAX, |_, _| panic!("no port needs to be looked at"));
    let order = iter::from_fn(|| wheel.pop_before(Time::MAX)).map(|event| flow(event.key));
    assert!(order.eq(numbers));
}

#[test]
fn chunks_are_used_again() {
    let mut wheel = Wheel::new();
    for round in 1..100 {
        for number in 0..20 {
            wheel.push(event(Time::from_us(round), start(number), 0));
        }
        while pop(&mut wheel, Time::MAX).is_some() {}
    }
    assert_eq!(wheel.chunks.len(), 3);
}
