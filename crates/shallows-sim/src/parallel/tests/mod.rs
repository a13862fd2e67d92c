//! The exchange between parts, explored by a model checker and worn down by real threads.

mod meeting;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use shallows_core::units::Time;

use super::exchange::{self, Exchange};
use super::platform::{Lock, Mutant, Platform, Std, Word};
use super::worker::{Limit, Outcome, Part, Worker};

/// Shortest flight of a ball from one player to another.
const FLIGHT: Time = Time::from_ps(10);

/// A part that plays with balls: what arrives is thrown on to the next player, a little later each
/// time, until it has been thrown often enough.
#[derive(Debug)]
struct Player {
    number: usize,
    balls: BinaryHeap<Reverse<Ball>>,
    outbox: Vec<Bag>,
    now: Time,
    caught: Vec<Ball>,
}

/// A ball, when it arrives, and how often it is still to be thrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ball {
    arrival: Time,
    throws: u32,
}

#[derive(Debug, Default)]
struct Bag(Vec<Ball>);

impl exchange::Mail for Bag {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn append_to(&mut self, other: &mut Self) {
        other.0.append(&mut self.0);
    }

    fn earliest(&self) -> Option<Time> {
        self.0.iter().map(|ball| ball.arrival).min()
    }
}

impl Part for Player {
    type Mail = Bag;

    const BATCH: u64 = 2;
    const WORTHWHILE: u64 = 0;

    fn run(&mut self, end: Time, most: u64) -> u64 {
        let mut count = 0;
        while count < most
            && let Some(&Reverse(ball)) = self.balls.peek()
            && ball.arrival < end
        {
            self.balls.pop();
            assert!(ball.arrival >= self.now, "a ball was missed");
            self.now = ball.arrival;
            self.caught.push(ball);
            count += 1;
            if ball.throws > 0 {
                let to = (self.number + ball.throws as usize) % self.outbox.len();
                let thrown = Ball {
                    arrival: ball.arrival + FLIGHT + Time::from_ps(u64::from(ball.throws)),
                    throws: ball.throws - 1,
                };
                if to == self.number {
                    self.balls.push(Reverse(thrown));
                } else {
                    self.outbox[to].0.push(thrown);
                }
            }
        }
        count
    }

    fn next_time(&self) -> Option<Time> {
        self.balls.peek().map(|Reverse(ball)| ball.arrival)
    }

    fn clock(&self) -> Time {
        self.now
    }

    fn receive(&mut self, mail: &mut Bag) {
        self.balls.extend(mail.0.drain(..).map(Reverse));
    }

    fn outbox(&mut self) -> &mut [Bag] {
        &mut self.outbox
    }
}

/// Players with some balls, which come early or when nothing has happened for long.
fn players(count: usize, throws: u32) -> Vec<Player> {
    let player = |number| Player {
        number,
        balls: [3, 11, 12, 500]
            .map(|at| Ball {
                arrival: Time::from_ps(at + number as u64),
                throws: throws + number as u32,
            })
            .map(Reverse)
            .into(),
        outbox: (0..count).map(|_| Bag::default()).collect(),
        now: Time::ZERO,
        caught: Vec::new(),
    };
    (0..count).map(player).collect()
}

fn exchange<P: Platform>(players: &[Player]) -> Exchange<P, Bag> {
    Exchange::new(&vec![vec![FLIGHT; players.len()]; players.len()])
}

fn step<P: Platform>(
    player: &mut Player,
    exchange: &Exchange<P, Bag>,
    end: Time,
    events: u64,
) -> Outcome {
    let worker = Worker {
        number: player.number,
        part: player,
        exchange,
        limit: Limit { end, events },
    };
    worker.run()
}

/// Balls that each player catches, in order, if one plays after the other.
fn caught_alone(count: usize, throws: u32) -> Vec<Vec<Ball>> {
    let mut players = players(count, throws);
    while let Some(end) = players.iter().filter_map(Part::next_time).min() {
        for at in 0..count {
            players[at].run(end + Time::from_ps(1), u64::MAX);
            for to in 0..count {
                let balls = std::mem::take(&mut players[at].outbox[to].0);
                players[to].balls.extend(balls.into_iter().map(Reverse));
            }
        }
    }
    players.into_iter().map(|player| player.caught).collect()
}

fn caught(players: Vec<Player>) -> Vec<Vec<Ball>> {
    let caught = players.into_iter().map(|player| player.caught);
    let sorted = caught.map(|mut balls| {
        balls.sort();
        balls
    });
    sorted.collect()
}

mod explored {
    use super::*;
    use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
    use shuttle::sync as shuttled;
    use shuttle::{Config, Runner};

    /// Threads whose every step a model checker schedules, with a [`Mutant`] by its number.
    #[derive(Debug)]
    pub(super) struct Checked<const MUTANT: usize>;

    pub(super) const NONE: usize = 0;
    const LATE_STOP: usize = 1;
    pub(super) const HASTY_SLEEP: usize = 2;
    const EARLY_CLOCK: usize = 3;
    pub(super) const ONE_SET: usize = 4;

    impl<const MUTANT: usize> Platform for Checked<MUTANT> {
        type Word = shuttled::atomic::AtomicU64;
        type Lock<T: Debug + Send> = shuttled::Mutex<T>;
        type Thread = shuttle::thread::Thread;

        const SPINS: u32 = 1;
        const LONG_SPINS: u32 = 1;
        const MUTANT: Option<Mutant> = match MUTANT {
            LATE_STOP => Some(Mutant::LateStop),
            HASTY_SLEEP => Some(Mutant::HastySleep),
            EARLY_CLOCK => Some(Mutant::EarlyClock),
            ONE_SET => Some(Mutant::OneSet),
            _ => None,
        };

        fn current() -> Self::Thread {
            shuttle::thread::current()
        }

        fn park() {
            shuttle::thread::park();
        }

        fn unpark(thread: &Self::Thread) {
            thread.unpark();
        }

        fn fence() {
            shuttled::atomic::fence(Ordering::SeqCst);
        }

        fn spin() {
            shuttle::hint::spin_loop();
        }
    }

    impl Word for shuttled::atomic::AtomicU64 {
        fn new(value: u64) -> Self {
            Self::new(value)
        }

        fn load(&self, ordering: Ordering) -> u64 {
            self.load(ordering)
        }

        fn store(&self, value: u64, ordering: Ordering) {
            self.store(value, ordering);
        }
    }

    impl<T: Debug + Send> Lock<T> for shuttled::Mutex<T> {
        fn new(value: T) -> Self {
            Self::new(value)
        }

        fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
            act(&mut self.lock().expect("nobody panics with a lock"))
        }
    }

    /// Steps every part on a thread of its own, again and again until all have finished.
    pub(super) fn play_out<Q: Send>(
        parts: &mut [Q],
        step: impl Fn(&mut Q) -> Outcome + Sync,
        is_empty: impl Fn() -> bool,
    ) {
        finish(is_empty, || {
            shuttle::thread::scope(|scope| {
                let threads: Vec<_> = parts
                    .iter_mut()
                    .map(|part| scope.spawn(|| step(part)))
                    .collect();
                let ends = threads
                    .into_iter()
                    .map(shuttle::thread::ScopedJoinHandle::join);
                ends.collect::<Result<_, _>>().expect("no part panics")
            })
        });
    }

    /// A run on as many threads as there are players, in pieces of `events` events.
    fn play<const MUTANT: usize>(count: usize, throws: u32, events: u64) {
        let mut players = players(count, throws);
        let exchange = exchange::<Checked<MUTANT>>(&players);
        for end in [Time::from_ps(30), Time::MAX] {
            let step = |player: &mut Player| step(player, &exchange, end, events);
            play_out(&mut players, step, || exchange.is_empty());
        }
        let alone = caught_alone(count, throws);
        assert_eq!(caught(players), alone);
    }

    pub(super) fn explore(
        scheduler: impl Scheduler + 'static,
        play: impl Fn() + Send + Sync + 'static,
    ) {
        let mut config = Config::new();
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(play);
    }

    #[test]
    fn two_parts_in_pieces() {
        explore(RandomScheduler::new(300), || play::<NONE>(2, 2, 2));
        explore(PctScheduler::new(3, 300), || play::<NONE>(2, 2, 2));
    }

    #[test]
    fn three_parts_in_one_piece() {
        explore(RandomScheduler::new(150), || play::<NONE>(3, 3, u64::MAX));
    }

    #[test]
    fn three_parts_in_pieces() {
        explore(RandomScheduler::new(150), || play::<NONE>(3, 2, 3));
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn a_decision_read_late_is_found() {
        explore(RandomScheduler::new(10_000), || play::<LATE_STOP>(2, 2, 1));
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn a_lost_wakeup_is_found() {
        explore(RandomScheduler::new(10_000), || {
            play::<HASTY_SLEEP>(2, 2, 1);
        });
    }

    /// Explores until a part panics: with `expected`, or because another one has. Whether the part
    /// with the defect or one that waits is heard first is up to the schedule.
    pub(super) fn find(expected: &str, play: fn()) {
        let found = std::panic::catch_unwind(|| explore(RandomScheduler::new(10_000), play));
        let panic = found.unwrap_err();
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let is_expected =
            |text: &str| text.contains(expected) || text.contains("another part has panicked");
        assert!(text.is_some_and(is_expected), "{text:?}");
    }

    #[test]
    fn a_clock_before_its_mail_is_found() {
        find("a ball was missed", || play::<EARLY_CLOCK>(2, 1, 2));
    }
}

/// Threads that lose their processor whenever it hurts.
#[derive(Debug)]
struct Interrupted;

/// A lock that its thread takes and leaves slowly.
#[derive(Debug)]
struct SlowLock<T>(std::sync::Mutex<T>);

/// A number that its thread reads and writes slowly.
#[derive(Debug)]
struct SlowWord(AtomicU64);

impl Platform for Interrupted {
    type Word = SlowWord;
    type Lock<T: Debug + Send> = SlowLock<T>;
    type Thread = thread::Thread;

    const SPINS: u32 = 2;
    const LONG_SPINS: u32 = 2;

    fn current() -> thread::Thread {
        Std::current()
    }

    fn park() {
        interrupt();
        Std::park();
        interrupt();
    }

    fn unpark(thread: &thread::Thread) {
        interrupt();
        Std::unpark(thread);
    }

    fn fence() {
        Std::fence();
        interrupt();
    }

    fn spin() {
        interrupt();
    }
}

/// Gives the processor away every few times.
fn interrupt() {
    thread_local!(static CALLS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
    let calls = CALLS
        .get()
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223);
    CALLS.set(calls);
    if calls >> 30 == 0 {
        thread::yield_now();
    }
}

impl Word for SlowWord {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self, ordering: Ordering) -> u64 {
        interrupt();
        self.0.load(ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        interrupt();
        self.0.store(value, ordering);
    }
}

impl<T: Debug + Send> Lock<T> for SlowLock<T> {
    fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        interrupt();
        let result = self.0.with(act);
        interrupt();
        result
    }
}

/// Runs pieces until all parts have finished, which agree on that, with no mail between pieces.
fn finish(is_empty: impl Fn() -> bool, mut piece: impl FnMut() -> Vec<Outcome>) {
    loop {
        let outcomes = piece();
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
        assert!(is_empty(), "no mail is left between parts");
        if outcomes[0] == Outcome::Finished {
            break;
        }
    }
}

/// Steps every part on a real thread of its own, again and again until all have finished.
fn play_out<Q: Send>(
    parts: &mut [Q],
    step: impl Fn(&mut Q) -> Outcome + Sync,
    is_empty: impl Fn() -> bool,
) {
    finish(is_empty, || {
        thread::scope(|scope| {
            let threads: Vec<_> = parts
                .iter_mut()
                .map(|part| scope.spawn(|| step(part)))
                .collect();
            let ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
            ends.map(|end| end.expect("no part panics")).collect()
        })
    });
}

/// Leaves one CPU to the calling thread and those that it starts.
fn share_a_processor() {
    #[cfg(target_os = "linux")]
    {
        use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
        use nix::unistd::Pid;
        let this = Pid::from_raw(0);
        let allowed = sched_getaffinity(this).expect("a thread may ask where it runs");
        let first = (0..CpuSet::count()).find(|&cpu| allowed.is_set(cpu) == Ok(true));
        let mut one = CpuSet::new();
        one.set(first.expect("it runs somewhere"))
            .expect("the number is small");
        sched_setaffinity(this, &one).expect("fewer are always allowed");
    }
}

/// More threads than cores on one CPU, in many small pieces.
#[test]
fn threads_that_share_a_processor_come_to_an_end() {
    share_a_processor();
    let count = 3 + 2 * thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut players = players(count, 50);
    let exchange = exchange::<Interrupted>(&players);
    let step = |player: &mut Player| step(player, &exchange, Time::MAX, 20);
    play_out(&mut players, step, || exchange.is_empty());
    assert_eq!(caught(players), caught_alone(count, 50));
}
