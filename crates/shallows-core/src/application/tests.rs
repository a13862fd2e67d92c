use std::collections::BTreeMap;

use super::*;

/// A perfect network with a delay of 10 us, that loses what `loses` says.
struct Driver {
    plan: Plan,
    /// Messages under way: arrival, number, member, connection, message.
    under_way: BTreeMap<(Time, u64), (u32, u32, Message)>,
    wakes: Vec<Option<Time>>,
    count: u64,
    loses: fn(u64) -> bool,
    opened: Vec<u32>,
}

const DELAY: Time = Time::from_us(10);

impl Driver {
    fn new(text: &str, clients: u32, servers: u32) -> Self {
        let config: ApplicationConfig = toml::from_str(text).unwrap();
        let members = Members { clients, servers };
        let plan = config.plan(members, Span::default()).unwrap();
        Self {
            wakes: vec![Some(Time::ZERO); plan.parts.len()],
            plan,
            under_way: BTreeMap::new(),
            count: 0,
            loses: |_| false,
            opened: Vec::new(),
        }
    }

    fn poll(&mut self, now: Time, member: usize) {
        loop {
            match self.plan.parts[member].poll(now) {
                Action::Open { connection } => self.opened.push(connection),
                Action::Send {
                    connection,
                    message,
                } => {
                    let Connection { from, to, .. } = self.plan.connections[connection as usize];
                    let other = if member as u32 == from { to } else { from };
                    self.count += 1;
                    if !(self.loses)(self.count) {
                        let key = (now + DELAY, self.count);
                        self.under_way.insert(key, (other, connection, message));
                    }
                }
                Action::Broadcast {
                    first,
                    count,
                    message,
                } => {
                    self.count += 1;
                    for connection in first..first + count {
                        let to = self.plan.connections[connection as usize].to;
                        // One packet on the wire, and a copy for each.
                        let key = (now + DELAY, self.count << 32 | u64::from(connection));
                        self.under_way.insert(key, (to, connection, message));
                    }
                }
                Action::Wait(at) => {
                    assert!(at > now, "it would be asked for ever");
                    self.wakes[member] = Some(at);
                    return;
                }
                Action::Idle => {
                    self.wakes[member] = None;
                    return;
                }
            }
        }
    }

    /// Runs before `end`; the samples of each member in microseconds.
    fn run(&mut self, end: Time) -> Vec<Vec<(&'static str, u64, u64)>> {
        loop {
            let message = self.under_way.keys().next().map(|key| key.0);
            let wake = self.wakes.iter().flatten().min().copied();
            let Some(now) = [message, wake].into_iter().flatten().min() else {
                break;
            };
            if now >= end {
                break;
            }
            if message == Some(now) {
                let (_, (member, connection, message)) = self.under_way.pop_first().unwrap();
                self.plan.parts[member as usize].delivered(now, connection, message);
                self.poll(now, member as usize);
            } else {
                let member = self.wakes.iter().position(|&wake| wake == Some(now));
                self.poll(now, member.unwrap());
            }
        }
        let micros = |time: Time| time.ps() / 1_000_000;
        let samples = |part: &mut Box<dyn Application>| {
            let samples = part.take_samples();
            let sample =
                |sample: Sample| (sample.name, micros(sample.start), micros(sample.latency));
            samples.into_iter().map(sample).collect()
        };
        self.plan.parts.iter_mut().map(samples).collect()
    }
}

#[test]
fn ping_sees_the_round_trip_of_each_server() {
    let mut driver = Driver::new("ping = { interval = '1ms', count = 2 }", 1, 2);
    let samples = driver.run(Time::from_ms(10));
    let ping = |start| ("ping", start, 20);
    assert_eq!(samples[0], [ping(0), ping(0), ping(1000), ping(1000)]);
}

#[test]
fn a_closed_loop_thinks_and_an_open_one_does_not_wait() {
    let closed = "requests = { count = 3, get-share = 1, pace = { closed = { think = '5us' } } }";
    let samples = Driver::new(closed, 1, 1).run(Time::from_ms(1));
    assert_eq!(
        samples[0],
        [("get", 0, 20), ("get", 25, 20), ("get", 50, 20)]
    );
    let open = "requests = { count = 3, get-share = 0, pace = { open = { interval = '5us' } } }";
    let samples = Driver::new(open, 1, 1).run(Time::from_ms(1));
    assert_eq!(
        samples[0],
        [("set", 0, 20), ("set", 5, 20), ("set", 10, 20)]
    );
    let both = "requests = { count = 1000, get-share = 0.9 }";
    let samples = Driver::new(both, 1, 1).run(Time::from_ms(100));
    let gets = samples[0].iter().filter(|sample| sample.0 == "get").count();
    // Three standard deviations are 28.
    assert!((872..=928).contains(&gets), "{gets}");
}

#[test]
fn outstanding_requests_are_that_many() {
    let text = "requests = { count = 6, get-share = 1, pace = { closed = { outstanding = 3 } } }";
    let samples = Driver::new(text, 1, 1).run(Time::from_ms(1));
    let starts: Vec<_> = samples[0].iter().map(|sample| sample.1).collect();
    assert_eq!(starts, [0, 0, 0, 20, 20, 20]);
}

#[test]
fn requests_keep_to_their_connections() {
    let text =
        "requests = { get-share = 1, connections = 2, pace = { closed = { outstanding = 3 } } }";
    let mut driver = Driver::new(text, 1, 2);
    driver.poll(Time::ZERO, 0);
    // Connections 0 and 1 lead to the first server, 2 and 3 to the second, in turn.
    let used: Vec<_> = driver.under_way.values().map(|sent| sent.1).collect();
    assert_eq!(used, [0, 2, 1]);
    let refused: ApplicationConfig =
        toml::from_str("requests = { connections = 2, pace = { closed = { outstanding = 1 } } }")
            .unwrap();
    let members = Members {
        clients: 1,
        servers: 1,
    };
    let refused = refused.plan(members, Span::default()).unwrap_err();
    let said = "2 connections to a server are more than the 1 requests that may wait at once";
    assert!(refused.to_string().starts_with(said), "{refused}");
}

#[test]
fn a_query_waits_for_all_and_a_block_is_cut_for_all() {
    let query = "partition-aggregate = { count = 2, think = '30us' }";
    let samples = Driver::new(query, 1, 5).run(Time::from_ms(1));
    assert_eq!(samples[0], [("query", 0, 20), ("query", 50, 20)]);
    let mut driver = Driver::new("striped-read = { block = '11B', count = 1 }", 1, 4);
    driver.poll(Time::ZERO, 0);
    let parts: Vec<_> = driver.under_way.values().map(|sent| sent.2.reply).collect();
    assert_eq!(parts, [3, 3, 3, 2]);
    assert_eq!(driver.run(Time::from_ms(1))[0], [("block", 0, 20)]);
}

#[test]
fn nobody_leaves_a_barrier_before_the_last_has_come() {
    let mut driver = Driver::new("barrier = { count = 2, think = '7us' }", 4, 0);
    // The last comes when it hears of the first.
    driver.wakes[3] = None;
    let samples = driver.run(Time::from_ms(1));
    assert_eq!(samples[0], [("barrier", 0, 20), ("barrier", 27, 10)]);
    // It has heard of the others when it comes, and is ahead of them by a delay.
    assert_eq!(samples[3], [("barrier", 10, 0), ("barrier", 17, 20)]);
}

#[test]
fn a_shuffle_goes_in_waves() {
    let text = "shuffle = { size = '1MB', parallel = 2, count = 1 }";
    let samples = Driver::new(text, 4, 0).run(Time::from_ms(1));
    let transfer = |start| ("transfer", start, 20);
    for member in &samples {
        let expected = [transfer(0), transfer(0), transfer(20), ("shuffle", 0, 40)];
        assert_eq!(member[..], expected);
    }
}

#[test]
fn short_connections_are_opened_anew() {
    let text = "short-connections = { parallel = 2, count = 2, think = '5us' }";
    let mut driver = Driver::new(text, 1, 1);
    let samples = driver.run(Time::from_ms(1));
    let connection = |start| ("connection", start, 20);
    let expected = [connection(0), connection(0), connection(25), connection(25)];
    assert_eq!(samples[0], expected);
    assert_eq!(driver.opened, [0, 1, 0, 1]);
}

#[test]
fn a_transaction_survives_losses_by_time_outs() {
    let text = "two-phase-commit = { count = 1, timeout = '100us' }";
    assert_eq!(
        Driver::new(text, 1, 3).run(Time::from_ms(1))[0],
        [("commit", 0, 40)]
    );
    let mut driver = Driver::new(text, 1, 3);
    // The first message to the second server, which has to answer before anybody commits.
    driver.loses = |number| number == 2;
    let samples = driver.run(Time::from_ms(1));
    assert_eq!(samples[0], [("timeout", 0, 100), ("commit", 0, 140)]);
    // Three prepare, two vote; one more prepares and votes; three commit and say so.
    assert_eq!(driver.count, 13);
}

/// A phase costs one message of the coordinator and an answer of each of three servers.
#[test]
fn a_broadcast_is_one_message_to_all_servers() {
    let text = "two-phase-commit = { count = 2, fan-out = 'broadcast' }";
    let mut driver = Driver::new(text, 1, 3);
    assert_eq!(driver.plan.broadcasts.first(), Some(&(0..3)));
    let samples = driver.run(Time::from_ms(1));
    assert_eq!(samples[0], [("commit", 0, 40), ("commit", 40, 40)]);
    assert_eq!(driver.count, 2 * 2 * (1 + 3));
    let mut driver = Driver::new(&text.replace("broadcast", "unicast"), 1, 3);
    assert!(driver.plan.broadcasts.is_empty());
    driver.run(Time::from_ms(1));
    assert_eq!(driver.count, 2 * 2 * (3 + 3));
}

/// A server whose answer is lost is asked again by itself, after 10 ms.
#[test]
fn a_broadcast_is_repeated_for_those_that_have_not_answered() {
    let text = "two-phase-commit = { count = 1, fan-out = 'broadcast' }";
    let mut driver = Driver::new(text, 1, 3);
    driver.loses = |number| number == 2;
    let samples = driver.run(Time::from_ms(100));
    assert_eq!(samples[0], [("timeout", 0, 10_000), ("commit", 0, 10_040)]);
    assert_eq!(driver.count, 2 * (1 + 3) + 2);
}

/// Three messages of 4 us each: the last leaves at 12 us and is answered at 32 us.
#[test]
fn a_coordinator_takes_time_for_each_message() {
    let text = "two-phase-commit = { count = 1, send-time = '4us' }";
    let samples = Driver::new(text, 1, 3).run(Time::from_ms(1));
    assert_eq!(samples[0], [("commit", 0, 64)]);
    let text = "two-phase-commit = { count = 1, send-time = '4us', fan-out = 'broadcast' }";
    let samples = Driver::new(text, 1, 3).run(Time::from_ms(1));
    assert_eq!(samples[0], [("commit", 0, 48)]);
}

#[test]
fn senseless_applications_are_refused() {
    let problem = |text: &str, clients, servers| {
        let config: ApplicationConfig = toml::from_str(text).unwrap();
        let members = Members { clients, servers };
        config
            .plan(members, Span::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        problem("ping = { interval = '0s' }", 1, 1),
        "interval must not be zero"
    );
    assert_eq!(
        problem("ping = { interval = '1s' }", 1, 0),
        "ping needs clients and servers"
    );
    assert_eq!(
        problem("ping = { interval = '1s', size = '70KB' }", 1, 1),
        "size is 70KB, a datagram carries at most 65507B"
    );
    assert_eq!(
        problem("barrier = {}", 1, 0),
        "barrier needs at least 2 clients and no servers"
    );
    assert_eq!(
        problem("requests = { get-share = 1.5 }", 1, 1),
        "get-share is 1.5, it must be from 0 to 1"
    );
    assert_eq!(
        problem("shuffle = { size = '1B', parallel = 0 }", 2, 0),
        "parallel must not be zero"
    );
}
