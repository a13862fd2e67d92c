//! Scenarios with mistakes: never a panic, and always an error that names the file and, but for
//! what is missing altogether, the line.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{RngSeed, TestRunner};
use shallows_core::units::Time;

use super::{Scenario, Setting};

const SCENARIOS: [&str; 4] = [
    include_str!("../../scenarios/quickstart.toml"),
    include_str!("../../scenarios/dumbbell.toml"),
    include_str!("../../scenarios/incast.toml"),
    r#"
        seed = 7
        until = "1ms"
        completion = "receiver"
        routing = "spray"
        [topology.custom]
        hosts = 4
        switches = ["a", "b"]
        links = [
            { between = ["h0", "a"], rate = "10Gbps", delay = "1us" },
            { between = ["h1", "a"], rate = "10Gbps", delay = "1us" },
            { between = ["h2", "b"], rate = "10Gbps", delay = "1us" },
            { between = ["h3", "b"], rate = "10Gbps", delay = "1us" },
            { between = ["a", "b"], rate = "25Gbps", delay = "1us" },
        ]
        [ports]
        pool = "1MB"
        host-delay = "1us"
        host = "as-switch"
        [ports.switch]
        queues = 3
        classifier = { dscp-map = { map = [2, 1, 0] } }
        buffer = { dynamic = { alpha = 0.5 } }
        scheduler = { strict-over = { strict = 1, rest = "dwrr", quantum = "1500B" } }
        shaper = { rate = "9Gbps", bucket = "3KB" }
        marker = { point = "dequeue", scheme = { red = { min = "5KB", max = "9KB", max-probability = 0.5 } } }
        [[ports.special]]
        links = ["a->h0", "b<->*"]
        port = { queues = 2, buffer = { shared = { size = "9KB" } }, scheduler = "strict" }
        [[links]]
        link = "a<->b"
        loss = 0.1
        corruption = 0.5
        down = "50us"
        up = "90us"
        [probes]
        rtt = true
        sojourn = "all"
        capture = ["h*->a"]
        queues = { links = "*->h1", interval = "10us" }
        throughput = { links = "all", interval = "10us" }
        flows = { flows = [0, 1], interval = "10us" }
        [transport]
        delayed-ack = { every = 2, timeout = "500us" }
        rto = { initial = "5ms", minimum = "5ms" }
        controller = { ear = { t = "50us" } }
        [report]
        small-max = "10KB"
        [[workload]]
        flows = [{ src = 0, dst = "h3", size = "20KB", start = "3us" }]
        [[workload]]
        long-lived = [{ src = 1, dst = 2, stop = "500us" }]
        [[workload]]
        all-to-all = { size = { by-service = ["1KB", { cdf = "cache" }] }, services = { weighted = [1, 2] } }
    "#,
];

/// Tokens that a typing error puts in.
const SLIPS: [&str; 34] = [
    "",
    "0",
    "1",
    "-1",
    "0.0",
    "1e30",
    "1e-30",
    "nan",
    "inf",
    "9223372036854775807",
    "18446744073709551615",
    "true",
    "\"\"",
    "\"0B\"",
    "\"0Gbps\"",
    "\"1bps\"",
    "\"18446744Tbps\"",
    "\"0s\"",
    "\"1ps\"",
    "\"18446744s\"",
    "\"1pkt\"",
    "\"18446744073709551615B\"",
    "\"1e30KB\"",
    "\"h\u{e9}\u{301}\"",
    "{}",
    "[]",
    "[[]]",
    "{ fifo = {} }",
    "\"dctcp\"",
    "\"strict\"",
    "[",
    "\n",
    "=",
    "\u{feff}",
];

/// A scenario with a few tokens deleted, doubled, exchanged or, most often, a value altered.
fn mutant() -> impl Strategy<Value = String> {
    let slip = select(SLIPS.to_vec());
    let change = (0..7u8, any::<Index>(), any::<Index>(), slip);
    let changes = prop::collection::vec(change, 1..4);
    (select(SCENARIOS.to_vec()), changes).prop_map(|(text, changes)| {
        let mut tokens = tokens(text);
        for (kind, at, other, slip) in changes {
            let values: Vec<usize> = (0..tokens.len())
                .filter(|&at| tokens[at].starts_with(|c: char| c == '"' || c.is_ascii_digit()))
                .collect();
            let (any, other) = (at.index(tokens.len()), other.index(tokens.len()));
            match kind {
                0 => drop(tokens.remove(any)),
                1 => tokens.insert(any, tokens[any]),
                2 => tokens.swap(any, other),
                3 => tokens[any] = slip,
                _ if values.is_empty() => {}
                _ => tokens[values[at.index(values.len())]] = slip,
            }
        }
        tokens.concat()
    })
}

/// Words, quoted texts, and every other character by itself; comments are left out.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let end = match first {
                '#' => {
                    tokens.push("\n");
                    break;
                }
                '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                first if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                first => first.len_utf8(),
            };
            let (token, after) = rest.split_at(end);
            tokens.push(token);
            rest = after;
        }
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Reads, builds and begins a scenario.
fn check(text: &str) -> Result<(), TestCaseError> {
    let path = Path::new("fuzz.toml");
    let scenario = match Scenario::parse(path, text, &[]) {
        Ok(scenario) => scenario,
        Err(error) => return check_error(&error.to_string(), text),
    };
    if takes_long(text) {
        return Ok(());
    }
    let simulation = scenario.build().and_then(|plan| plan.simulation(1));
    match simulation {
        Ok(mut simulation) => {
            simulation.run(END, 2_000);
            Ok(())
        }
        Err(error) => check_error(&error.to_string(), text),
    }
}

/// The end that the driver gives a run without one.
const END: Time = Time::from_secs(200 * 24 * 3600);

/// Returns whether there may be flows or hosts by the million, which is sound; more than that is refused.
fn takes_long(text: &str) -> bool {
    tokens(text).iter().any(|token| {
        (5..10).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn check_error(error: &str, text: &str) -> Result<(), TestCaseError> {
    let place = error
        .lines()
        .find_map(|line| line.trim().strip_prefix("--> fuzz.toml"));
    let Some(place) = place else {
        return Err(TestCaseError::fail(format!("no place in {error}")));
    };
    // Nothing follows the name where the whole file is meant.
    let mut numbers = place.split(':').skip(1).map(str::parse::<usize>);
    if let Some(line) = numbers.next() {
        let lines = text.split('\n').count();
        prop_assert!(
            line.is_ok_and(|line| (1..=lines).contains(&line)),
            "{error}"
        );
        prop_assert!(
            numbers.next().is_some_and(|column| column.is_ok()),
            "{error}"
        );
    }
    Ok(())
}

#[test]
#[ignore = "takes as long as it is told to"]
fn fuzz_for_long_scenarios() {
    shallows_testing::fuzz("scenarios", |seed| {
        let config = ProptestConfig {
            rng_seed: RngSeed::Fixed(seed),
            failure_persistence: None,
            ..ProptestConfig::with_cases(1_000)
        };
        let cases = u64::from(config.cases);
        let tried = TestRunner::new(config).run(&mutant(), |text| check(&text));
        tried.unwrap_or_else(|error| panic!("{error}"));
        cases
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(2_000)
    })]

    #[test]
    fn any_bytes(bytes: Vec<u8>) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn anything_like_toml(text in "[a-z0-9\"'\\[\\]{}=.,#\n\r\t -]{0,80}") {
        check(&text)?;
    }

    #[test]
    fn mistakes(text in mutant()) {
        check(&text)?;
    }

    #[test]
    fn files_cut_short(text in select(SCENARIOS.to_vec()), end in any::<Index>()) {
        let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        check(&text[..boundaries[end.index(boundaries.len())]])?;
    }
}

#[test]
fn the_scenarios_are_sound() {
    for text in SCENARIOS {
        assert!(Scenario::parse(Path::new("fuzz.toml"), text, &[]).is_ok());
        assert!(Scenario::parse(Path::new("fuzz.toml"), &tokens(text).concat(), &[]).is_ok());
    }
}

/// A packet that takes 25 minutes, and a timer that sends it again each picosecond: the queue of the
/// NIC lasts longer than the clock.
#[test]
fn time_does_not_wrap() {
    for (port, rto) in [
        ("scheduler = \"fifo\", framing = \"ethernet\"", "1ps"),
        (
            "scheduler = \"fifo\", shaper = { rate = \"1bps\", bucket = \"1B\" }",
            "1ps",
        ),
        (
            "scheduler = { dwrr = { quantum = \"1500B\" } }, queues = 2",
            "3600s",
        ),
    ] {
        let text = format!(
            r#"
            until = "17280000s"
            topology.star = {{ hosts = 4, rate = "8bps", delay = "60s" }}
            ports = {{ host = "as-switch", switch = {{ buffer = "unlimited", {port} }} }}
            [transport]
            controller = "cubic"
            ecn = "off"
            initial-window = 1000
            rto = {{ initial = "{rto}", minimum = "{rto}", maximum = "{rto}", granularity = "0s" }}
            [workload]
            long-lived = [{{ src = "2-3", dst = 1, count = 20 }}]
            "#
        );
        let scenario = Scenario::parse(Path::new("slow.toml"), &text, &[]).unwrap();
        let plan = scenario.build().unwrap();
        let mut simulation = plan.simulation(1).unwrap();
        let mut last = Time::ZERO;
        for _ in 0..50 {
            simulation.run(END, 10_000);
            let now = simulation.progress().now;
            assert!(last <= now && now <= END, "{last} then {now}");
            last = now;
        }
    }
}

#[test]
fn nesting_has_an_end() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
    ] {
        check(&text).expect("it is refused");
    }
}

/// A star of four hosts with fifty flows and one setting.
fn star_with(assignment: &str) -> Result<(), String> {
    let star = r#"
        [topology.star]
        hosts = 4
        rate = "10Gbps"
        delay = "1us"
        [ports.switch]
        buffer = "unlimited"
        scheduler = "fifo"
        [workload.poisson]
        load = 0.5
        size = "30KB"
        flows = 50
    "#;
    let setting = Setting {
        shown: format!("--set {assignment}"),
        assignment: assignment.to_owned(),
    };
    let begin = |scenario: Scenario| {
        let plan = scenario.build()?;
        plan.simulation(1)?.run(Time::from_ms(1), 1_000);
        Ok(())
    };
    let scenario = Scenario::parse(Path::new("star.toml"), star, &[setting]);
    scenario.and_then(begin).map_err(|error| error.to_string())
}

#[test]
fn large_numbers_are_run() {
    for assignment in [
        "topology.star.hosts=20000",
        "workload.poisson.flows=1000000",
        "seed=9223372036854775807",
        "until=18446744s",
    ] {
        assert_eq!(star_with(assignment), Ok(()), "{assignment}");
    }
}

#[test]
fn numbers_beyond_reason_are_refused() {
    for (assignment, problem) in [
        ("workload.poisson.flows=1e30", "expected a whole number"),
        (
            "workload.poisson.flows=1000000000000",
            "about 1.000e12 flows would take 110000 GB of memory; at most 100000000 are possible",
        ),
        (
            "topology.star.hosts=4000000000",
            "the fabric would have 8000000000 directed links and take 8000 GB of memory",
        ),
        ("topology.star.rate=0bps", "it is zero"),
        ("topology.star.delay=18446744s", "it can be at most 60s"),
        ("ports.host-delay=18446744s", "it can be at most 60s"),
        ("ports.pool=0B", "does not hold one packet"),
        (
            "ports.pause={ high = \"3KB\", low = \"3KB\" }",
            "low must be less than high",
        ),
        (
            "ports.host-delay=[\"1us\", \"2us\"]",
            "host-delay has 2 values, there are",
        ),
        (
            "hosts.jitter.mean=[\"1us\", \"2us\"]",
            "mean has 2 values, there are",
        ),
        ("hosts.jitter.mean=18446744s", "it can be at most 60s"),
        ("workload.poisson.load=nan", "it must be a positive number"),
        ("transport.header=4294967295", "more than 65535 together"),
        (
            "transport.rto.maximum=18446744s",
            "it must be at most 3600s",
        ),
        (
            "ports.switch.queues=1000000000000",
            "a port has 1 to 64 queues",
        ),
    ] {
        let error = star_with(assignment).expect_err(assignment);
        assert!(error.contains(problem), "{error}");
        assert!(error.contains(&format!("--set {assignment}")), "{error}");
    }
}

/// Streams have one receiver, and pauses follow packets that are never copied.
#[test]
fn broadcasts_need_datagrams_and_links_without_pauses() {
    let refusal = |pause: &str, protocol: &str| {
        let text = format!(
            "until = '1ms'
             topology.star = {{ hosts = 3, rate = '1Gbps', delay = '5us' }}
             ports.switch = {{ buffer = 'unlimited', scheduler = 'fifo' }}
             {pause}
             workload.flows = [{{ start = '0s', src = 0, dst = 1, size = '1MB' }}]
             [[application]]
             clients = 0
             servers = '1-2'
             run = {{ two-phase-commit = {{ fan-out = 'broadcast', protocol = '{protocol}' }} }}"
        );
        let scenario: Scenario = text.parse().unwrap();
        scenario.build().err().map(|refusal| refusal.to_string())
    };
    assert_eq!(refusal("", "datagram"), None);
    let stream = refusal("", "stream").unwrap();
    assert!(stream.contains("a stream has one receiver"), "{stream}");
    let pauses = refusal("ports.pause = { high = '30KB', low = '10KB' }", "datagram");
    let pauses = pauses.unwrap();
    assert!(pauses.contains("a broadcast is copied"), "{pauses}");
}
