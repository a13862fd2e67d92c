use std::collections::VecDeque;

use super::*;
use crate::application::Action;
use crate::host::gate::Release;
use crate::packet::Descriptor;

/// Holds all packets until an epoch ends, then lets one out; has room for two.
#[derive(Debug)]
struct Turnstile {
    epoch: Time,
    free: Time,
    held: VecDeque<(Descriptor, Option<u32>)>,
}

impl Turnstile {
    fn new(epoch: u64) -> Self {
        let epoch = Time::from_us(epoch);
        Self {
            epoch,
            free: epoch,
            held: VecDeque::new(),
        }
    }
}

impl Gate<Descriptor> for Turnstile {
    fn offer(&mut self, _: Time, packet: Descriptor, to: Option<u32>) -> Verdict {
        if self.held.len() == 2 {
            return Verdict::Drop(Refusal::Full);
        }
        self.held.push_back((packet, to));
        Verdict::Held
    }

    fn release(&mut self, now: Time) -> Release<Descriptor> {
        if self.held.is_empty() {
            return Release::Idle;
        }
        if now < self.free {
            return Release::At(self.free);
        }
        self.free = now + self.epoch;
        let (packet, to) = self.held.pop_front().unwrap();
        Release::Packet { packet, to }
    }

    fn has_room(&self, _: &Descriptor) -> bool {
        self.held.len() < 2
    }
}

fn packet(tag: u64) -> Descriptor {
    Descriptor {
        size: 1500,
        tag,
        ..Descriptor::default()
    }
}

fn steps(
    host: &mut HostStack<Descriptor>,
    now: Time,
    mut turn: Turn<Descriptor>,
) -> Vec<Step<Descriptor>> {
    std::iter::from_fn(|| host.step(now, &mut turn)).collect()
}

fn offered(host: &mut HostStack<Descriptor>, us: u64, tag: u64) -> Vec<Step<Descriptor>> {
    let now = Time::from_us(us);
    let turn = host.offer(now, packet(tag), Some(7));
    steps(host, now, turn)
}

fn timed_out(host: &mut HostStack<Descriptor>, us: u64) -> Vec<Step<Descriptor>> {
    let now = Time::from_us(us);
    let turn = host.handle_timeout(now);
    steps(host, now, turn)
}

fn wake(us: u64) -> Step<Descriptor> {
    Step::Wake(Time::from_us(us))
}

#[test]
fn gates_in_a_row_share_one_timer() {
    let mut host = HostStack::default();
    host.add_gate(Box::new(Turnstile::new(10)));
    host.add_gate(Box::new(Turnstile::new(15)));
    assert_eq!(offered(&mut host, 0, 1), [wake(10)]);
    assert_eq!(offered(&mut host, 1, 2), [], "the timer is set");
    assert_eq!(timed_out(&mut host, 5), [], "not due");
    // The first gate hands packet 1 to the second, which holds it until 15 us.
    assert_eq!(timed_out(&mut host, 10), [wake(15)]);
    assert_eq!(timed_out(&mut host, 15), [Step::Send(packet(1)), wake(20)]);
    assert_eq!(timed_out(&mut host, 20), [wake(30)]);
    assert_eq!(timed_out(&mut host, 30), [Step::Send(packet(2))]);
}

#[test]
fn what_is_due_when_the_timer_expires_leaves_in_its_order() {
    let mut host = HostStack::default();
    host.add_gate(Box::new(Turnstile::new(10)));
    assert_eq!(offered(&mut host, 0, 1), [wake(10)]);
    // The packet comes before the timeout of the same instant, and must not overtake it.
    assert_eq!(offered(&mut host, 10, 2), []);
    assert_eq!(timed_out(&mut host, 10), [Step::Send(packet(1)), wake(20)]);
}

#[test]
fn drops_are_counted_by_reason() {
    let mut host = HostStack::default();
    host.add_gate(Box::new(Turnstile::new(10)));
    for tag in 0..2 {
        offered(&mut host, 0, tag);
    }
    let reason = Refusal::Full;
    let packet = packet(2);
    assert_eq!(offered(&mut host, 0, 2), [Step::Drop { packet, reason }]);
    let counts = Refusal::ALL.map(|reason| host.dropped(reason));
    assert_eq!(counts, [0, 0, 1]);
    assert!(
        host.gate::<Turnstile>()
            .is_some_and(|of| of.held.len() == 2)
    );
}

#[test]
fn connections_that_waited_for_room_go_on_until_it_is_used_up() {
    let mut host = HostStack::default();
    host.add_gate(Box::new(Turnstile::new(10)));
    for tag in 0..2 {
        offered(&mut host, 0, tag);
    }
    for connection in [5, 6, 5] {
        assert!(!host.has_room(connection, &packet(2)));
    }
    let now = Time::from_us(10);
    let mut turn = host.handle_timeout(now);
    assert_eq!(host.step(now, &mut turn), Some(Step::Send(packet(0))));
    assert_eq!(host.step(now, &mut turn), Some(wake(20)));
    assert_eq!(host.step(now, &mut turn), Some(Step::Resume(5)));
    // Connection 5 sends one packet, in a turn of its own, and finds no room for the next.
    assert!(host.has_room(5, &packet(2)));
    assert_eq!(offered(&mut host, 10, 2), []);
    assert!(!host.has_room(5, &packet(3)));
    assert_eq!(host.step(now, &mut turn), None, "6 waits on, before 5");
    assert_eq!(
        timed_out(&mut host, 20)[2..],
        [Step::Resume(6), Step::Resume(5)]
    );
}

/// Answers each message with its bytes at once, and counts its timeouts at 30 us.
#[derive(Debug, Default)]
struct Echo {
    answers: VecDeque<(u32, Vec<u8>)>,
    timeouts: u32,
}

impl Agent for Echo {
    fn handle(&mut self, _: Time, from: u32, message: &[u8]) {
        self.answers.push_back((from, message.to_vec()));
    }

    fn transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> Option<u32> {
        let (to, message) = self.answers.pop_front()?;
        buffer.extend(message);
        Some(to)
    }

    fn timeout(&self) -> Option<Time> {
        (self.timeouts == 0).then_some(Time::from_us(30))
    }

    fn handle_timeout(&mut self, _: Time) {
        self.timeouts += 1;
    }
}

#[test]
fn agents_answer_and_wake_the_host() {
    let mut host: HostStack<Descriptor> = HostStack::default();
    host.add_agent(3, Box::<Echo>::default());
    let turn = host.start();
    assert_eq!(steps(&mut host, Time::ZERO, turn), [wake(0)]);
    assert_eq!(timed_out(&mut host, 0), [wake(30)]);
    let sent = |us, sequence, message: &[u8]| Step::Message {
        delivery: Delivery {
            at: Time::from_us(us),
            from: 3,
            sequence,
            to: 9,
        },
        message: message.to_vec(),
    };
    let now = Time::from_us(4);
    let turn = host.handle(now, 9, 3, b"ping");
    assert_eq!(steps(&mut host, now, turn), [sent(4, 1, b"ping")]);
    let turn = host.handle(now, 9, 4, b"nobody");
    assert_eq!(steps(&mut host, now, turn), []);
    // Messages under way are handled at their times, in their order.
    for (at, sequence, message) in [(8, 2, b"b"), (8, 1, b"a")] {
        let delivery = Delivery {
            at: Time::from_us(at),
            from: 9,
            sequence,
            to: 3,
        };
        let turn = host.post(delivery, message.to_vec().into());
        let alarm = [wake(8)];
        let alarm = if sequence == 2 { &alarm[..] } else { &[] };
        assert_eq!(steps(&mut host, now, turn), alarm);
    }
    let expected = [sent(8, 2, b"a"), sent(8, 3, b"b"), wake(30)];
    assert_eq!(timed_out(&mut host, 8), expected);
    assert_eq!(timed_out(&mut host, 30), []);
}

/// Sends a message every 10 us and one for each that it gets.
#[derive(Debug, Default)]
struct Ticker {
    next: Time,
    due: Vec<u64>,
}

impl Application for Ticker {
    fn poll(&mut self, now: Time) -> Action {
        if now >= self.next {
            self.next += Time::from_us(10);
            self.due.push(now.ps());
        }
        match self.due.pop() {
            Some(tag) => Action::Send {
                connection: 1,
                message: message(tag),
            },
            None => Action::Wait(self.next),
        }
    }

    fn delivered(&mut self, _: Time, _: u32, message: Message) {
        self.due.push(message.tag);
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        Vec::new()
    }
}

fn message(tag: u64) -> Message {
    Message {
        bytes: 100,
        kind: 0,
        tag,
        reply: 0,
    }
}

#[test]
fn applications_send_at_their_times_and_when_something_comes() {
    let seat = Seat {
        application: 2,
        member: 1,
    };
    let write = |tag| Step::Write {
        seat,
        connection: 1,
        message: message(tag),
    };
    let mut host = HostStack::default();
    host.add_member(seat, Box::<Ticker>::default());
    let turn = host.start();
    assert_eq!(steps(&mut host, Time::ZERO, turn), [wake(0)]);
    assert_eq!(timed_out(&mut host, 0), [write(0), wake(10)]);
    let now = Time::from_us(4);
    let turn = host.deliver(now, seat, 1, message(77));
    assert_eq!(steps(&mut host, now, turn), [write(77)], "the timer is set");
    let at_ten = Time::from_us(10).ps();
    assert_eq!(timed_out(&mut host, 10), [write(at_ten), wake(20)]);
}
