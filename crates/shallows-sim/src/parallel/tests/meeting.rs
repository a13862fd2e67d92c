//! Meetings of parts that run in windows.

use super::super::meeting::{Meeting, Member, Windowed, run_alone};
use super::explored::{self, Checked, HASTY_SLEEP, NONE, ONE_SET, explore, find};
use super::*;
use shuttle::scheduler::{PctScheduler, RandomScheduler};

/// A player who looks at the balls of the others at the end of each window, which is as long as a
/// flight, and has three stages.
#[derive(Debug)]
struct Punctual {
    player: Player,
    /// The window.
    at: Time,
    until: Time,
    /// Balls that the others have thrown in it.
    received: Vec<Ball>,
}

impl Windowed for Punctual {
    type Mail = Bag;

    fn stages(&self) -> usize {
        3
    }

    fn begin_window(&mut self, end: Time) -> bool {
        self.until = self.at.saturating_add(FLIGHT).min(end);
        self.at < end
    }

    fn run_stage(&mut self, stage: usize) -> u64 {
        if stage == 0 {
            let next = self.player.next_time();
            assert!(next.is_none_or(|next| next >= self.at), "a ball was missed");
            return self.player.run(self.until, u64::MAX);
        }
        if stage == 2 {
            let received = self.received.drain(..).map(Reverse);
            self.player.balls.extend(received);
        }
        0
    }

    fn quiet_until(&self, events: u64) -> Time {
        if events > 0 {
            return Time::ZERO;
        }
        self.player.next_time().unwrap_or(Time::MAX)
    }

    fn end_window(&mut self, earliest: Time) {
        self.at = self.until.max(earliest);
    }

    fn receive(&mut self, mail: &mut Bag) {
        for ball in mail.0.drain(..) {
            let thrown = ball.arrival - FLIGHT - Time::from_ps(u64::from(ball.throws) + 1);
            assert!(thrown < self.until, "a ball came early");
            self.received.push(ball);
        }
    }

    fn outbox(&mut self) -> &mut [Bag] {
        &mut self.player.outbox
    }
}

fn punctual(count: usize, throws: u32) -> Vec<Punctual> {
    let punctual = |player| Punctual {
        player,
        at: Time::ZERO,
        until: Time::ZERO,
        received: Vec::new(),
    };
    players(count, throws).into_iter().map(punctual).collect()
}

fn step<P: Platform>(part: &mut Punctual, meeting: &Meeting<P, Bag>, limit: Limit) -> Outcome {
    let member = Member {
        number: part.player.number,
        part,
        meeting,
        limit,
        worthwhile: 0,
    };
    member.run()
}

fn check(parts: Vec<Punctual>, throws: u32) {
    let expected = caught_alone(parts.len(), throws);
    let players = parts.into_iter().map(|part| part.player);
    assert_eq!(caught(players.collect()), expected);
}

/// A run on as many threads as there are players, in pieces of `events` events.
fn play<const MUTANT: usize>(count: usize, throws: u32, events: u64) {
    let mut parts = punctual(count, throws);
    let meeting = Meeting::<Checked<MUTANT>, Bag>::new(count);
    for end in [Time::from_ps(30), Time::MAX] {
        let limit = Limit { end, events };
        let step = |part: &mut Punctual| step(part, &meeting, limit);
        explored::play_out(&mut parts, step, || meeting.is_empty());
    }
    check(parts, throws);
}

#[test]
fn parts_that_meet_in_one_piece() {
    explore(RandomScheduler::new(200), || play::<NONE>(2, 3, u64::MAX));
    explore(RandomScheduler::new(100), || play::<NONE>(3, 3, u64::MAX));
}

#[test]
fn parts_that_meet_in_pieces() {
    explore(RandomScheduler::new(200), || play::<NONE>(2, 2, 2));
    explore(PctScheduler::new(3, 200), || play::<NONE>(3, 2, 3));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_lost_wakeup_at_a_meeting_is_found() {
    explore(RandomScheduler::new(10_000), || {
        play::<HASTY_SLEEP>(2, 2, u64::MAX);
    });
}

#[test]
fn mail_of_the_next_meeting_is_found() {
    find("a ball came early", || play::<ONE_SET>(2, 6, u64::MAX));
}

#[test]
fn one_thread_runs_all_parts() {
    for events in [1, 5, u64::MAX] {
        let mut parts = punctual(3, 20);
        let limit = Limit {
            end: Time::MAX,
            events,
        };
        while run_alone(&mut parts, limit).0 == Outcome::Stopped {}
        check(parts, 20);
    }
}

/// More threads than cores on one CPU, in many small pieces.
#[test]
fn threads_that_share_a_processor_meet() {
    share_a_processor();
    let count = 3 + thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut parts = punctual(count, 50);
    let meeting = Meeting::<Interrupted, Bag>::new(count);
    let limit = Limit {
        end: Time::MAX,
        events: 20,
    };
    let step = |part: &mut Punctual| step(part, &meeting, limit);
    play_out(&mut parts, step, || meeting.is_empty());
    check(parts, 50);
}
