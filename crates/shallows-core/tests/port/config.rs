//! Ports as people write them, and what they hear when they write them wrong.

use proptest::prelude::*;
use shallows_core::packet::Descriptor;
use shallows_core::port::{BufferConfig, EgressPort, PortConfig, SchedulerConfig, SchemeConfig};

use crate::driver::RATE;

/// One of everything that a port can be configured with.
const EXAMPLES: [&str; 20] = [
    r#"buffer = "unlimited"
    scheduler = "fifo""#,
    r#"queues = 8
    classifier = { dscp-map = { map = [7, 6, 5, 4, 3, 2, 1, 0], other = 7 } }
    buffer = { shared = { size = "300KB" } }
    scheduler = "strict"
    marker = { scheme = { per-port = { threshold = { rtt = "85.2us", lambda = 0.6 } } } }"#,
    r#"queues = 4
    classifier = "flow-hash"
    buffer = { per-queue = { limit = "96KB" } }
    scheduler = { wrr = { quantum = "1500B" } }
    marker = { scheme = { per-queue-minimum = { threshold = "32KB" } } }"#,
    r#"queues = 2
    buffer = { dynamic = { alpha = 0.5 } }
    scheduler = { dwrr = { quantum = ["1500B", "3KB"] } }
    marker = { scheme = { per-pool = { threshold = "65pkts" } } }"#,
    r#"queues = 4
    framing = "ethernet"
    accounting = "wire"
    buffer = { shared = { size = "96KB" } }
    scheduler = { dwrr = { quantum = "1538B" } }
    shaper = { rate = "995Mbps", bucket = "2.5KB" }
    marker = { scheme = { mq-ecn = { threshold = "32KB", t-idle = "12us" } } }"#,
    r#"queues = 2
    framing = { header = 4, minimum = 64, gap = 20 }
    buffer = "unlimited"
    scheduler = { wfq = { weight = [1, 3] } }
    marker = { scheme = { mq-ecn = { threshold = "65pkts", beta = 0.5 } } }"#,
    r#"queues = 3
    buffer = "unlimited"
    scheduler = { strict-over = { strict = 1, rest = "wrr", quantum = "1500B" } }
    marker = { scheme = { mq-ecn = { threshold = "65pkts", update = { interval = "7.2us" } } } }"#,
    r#"queues = 2
    buffer = "unlimited"
    scheduler = { dwrr = { quantum = "1500B" } }
    marker = { scheme = { mq-ecn = { threshold = "65pkts", ramp = { k-min = "5pkts", p-max = 0.1 } } } }"#,
    r#"queues = 8
    classifier = { size-class = { small = 2, medium = 3, large = 3, t-small = 2, t-large = 7 } }
    buffer = { shared = { size = "200pkts" } }
    scheduler = { wrr = { quantum = ["6KB", "6KB", "3KB", "3KB", "3KB", "1500B", "1500B", "1500B"] } }
    marker = { scheme = { ml-ecn = { threshold = "65pkts", levels = 4 } } }"#,
    r#"buffer = "unlimited"
    scheduler = "fifo"
    marker = { not-ect = "drop", scheme = { red = { min = "40pkts", max = "80pkts", max-probability = 0.1, gentle = true, spread = true, average = { ewma = 0.002 } } } }"#,
    r#"buffer = "unlimited"
    scheduler = "fifo"
    marker = { scheme = { tcn = { sojourn = "78us" } } }"#,
    r#"queues = 2
    buffer = "unlimited"
    scheduler = { wfq = { weight = 1 } }
    marker = { scheme = { pmsb = { port = "16pkts", queue = ["2pkts", "3pkts"] } } }"#,
    r#"buffer = "unlimited"
    scheduler = "fifo"
    marker = { scheme = { cedm = { enqueue = "20pkts", dequeue = "10pkts", rule = "either" } } }"#,
    r#"buffer = "unlimited"
    scheduler = "fifo"
    marker = { scheme = { a-ecn = { threshold = "65pkts", interval = 50, step = "2pkts" } } }"#,
    r#"buffer = "unlimited"
    scheduler = "fifo"
    marker = { scheme = { mm-ecn = { threshold = "65pkts", random = 0.25 } } }"#,
    r#"buffer = "unlimited"
    scheduler = "fifo"
    marker = { scheme = { demepro = { threshold = "65pkts" } } }"#,
    r#"buffer = "unlimited"
    scheduler = "fifo"
    marker = { scheme = { ecn-star = { threshold = "84pkts" } } }"#,
    r#"packet = "9KB"
    buffer = { shared = { size = "24pkts" } }
    scheduler = "pfabric""#,
    r#"queues = 2
    buffer = "unlimited"
    scheduler = "strict"
    marker = { point = "dequeue", scheme = { per-queue = { threshold = ["1pkt", "2pkts"] } }, measure = { unit = "packets", subject = "excluded", in-service = "included" } }"#,
    r#"buffer = "unlimited"
    scheduler = "fifo"
    marker = { scheme = "none" }"#,
];

fn build(toml: &str) -> Result<EgressPort<Descriptor>, String> {
    let config: PortConfig = toml::from_str(toml).map_err(|e| e.message().to_owned())?;
    EgressPort::new(RATE, &config, 1, 1).map_err(|e| e.to_string())
}

/// One port for each scheduler, marker and buffer that there is.
fn one_of_each() -> Vec<String> {
    let port = |scheduler: &str, marker: &str, buffer: &str| {
        let queues = if ["fifo", "pfabric", "push-out"]
            .iter()
            .any(|name| scheduler.contains(name))
        {
            1
        } else {
            8
        };
        let classifier = if queues == 8 {
            "{ size-class = { small = 2, medium = 3, large = 3, t-small = 2, t-large = 7 } }"
        } else {
            r#""dscp""#
        };
        format!(
            "queues = {queues}\nclassifier = {classifier}\nbuffer = {buffer}\nscheduler = {scheduler}\nmarker = {{ scheme = {marker} }}"
        )
    };
    let (none, unlimited) = (r#""none""#, r#""unlimited""#);
    let dwrr = r#"{ dwrr = { quantum = "1500B" } }"#;
    let schedulers = SchedulerConfig::EXAMPLES.map(|(_, example)| port(example, none, unlimited));
    let markers = SchemeConfig::EXAMPLES.map(|(_, example)| port(dwrr, example, unlimited));
    let buffers = BufferConfig::EXAMPLES.map(|(_, example)| port(dwrr, none, example));
    schedulers
        .into_iter()
        .chain(markers)
        .chain(buffers)
        .collect()
}

#[test]
fn every_example_builds_and_prints_back() {
    let examples = EXAMPLES.map(str::to_owned).into_iter().chain(one_of_each());
    for example in examples {
        let example = example.as_str();
        build(example).unwrap_or_else(|error| panic!("{error} in\n{example}"));
        let config: PortConfig = toml::from_str(example).unwrap();
        let printed = toml::to_string(&config).unwrap();
        assert_eq!(
            toml::from_str::<PortConfig>(&printed).unwrap(),
            config,
            "{printed}"
        );
    }
}

#[test]
fn mistakes_are_named() {
    let fifo = "buffer = \"unlimited\"\nscheduler = \"fifo\"\n";
    let dwrr = "buffer = \"unlimited\"\nscheduler = { dwrr = { quantum = \"1500B\" } }\n";
    let cases = [
        (format!("queues = 0\n{fifo}"), "a port has 1 to 64 queues, not 0"),
        (format!("queues = 65\n{fifo}"), "a port has 1 to 64 queues, not 65"),
        (
            format!("queues = 8\n{fifo}"),
            "fifo works on one queue, the port has 8: set queues = 1 or another scheduler",
        ),
        (
            format!("{fifo}marker = {{ scheme = {{ mq-ecn = {{ threshold = \"65pkts\" }} }} }}"),
            "mq-ecn follows the rounds of wrr or dwrr, or the weights of wfq: choose one of them, or strict-over",
        ),
        (
            format!("queues = 2\n{dwrr}marker = {{ scheme = {{ ml-ecn = {{ threshold = \"65pkts\" }} }} }}"),
            "ml-ecn marks by size class: set classifier = { size-class = { ... } }",
        ),
        (
            format!("{dwrr}marker = {{ scheme = {{ mq-ecn = {{ threshold = \"65pkts\", beta = 1.0 }} }} }}"),
            "beta must be between 0 and 1",
        ),
        (
            "queues = 3\nbuffer = \"unlimited\"\nscheduler = { dwrr = { quantum = [\"1500B\", \"1500B\"] } }".into(),
            "2 values given for quantum, 3 needed",
        ),
        (
            "buffer = \"unlimited\"\nscheduler = { dwrr = { quantum = \"0B\" } }".into(),
            "quantum must not be zero",
        ),
        (
            "buffer = { shared = { size = \"1KB\" } }\nscheduler = \"fifo\"".into(),
            "a buffer of 1KB does not hold one packet of 1500B",
        ),
        (
            "queues = 2\nbuffer = \"unlimited\"\nscheduler = { strict-over = { strict = 2, rest = \"wrr\", quantum = \"1500B\" } }".into(),
            "strict = 2 must leave at least one of 2 queues for the round robin and be at least 1",
        ),
        (
            format!("{fifo}marker = {{ scheme = {{ per-queue = {{ threshold = \"65 KiloBytes\" }} }} }}"),
            "\"65 KiloBytes\" is not a length: unknown unit \"KiloBytes\", use pkts, B, KB, MB, GB, TB, KiB, MiB or GiB",
        ),
        (
            format!("{fifo}shaper = {{ rate = \"1Gbps\", bucket = \"2MB\" }}"),
            "bucket must be at most 1MB",
        ),
    ];
    for (toml, message) in cases {
        assert_eq!(build(&toml).unwrap_err(), message, "{toml}");
    }
}

#[test]
fn unknown_names_come_with_the_known_ones() {
    let error = build("buffer = \"unlimited\"\nscheduler = { dwr = { quantum = \"1500B\" } }");
    let message = error.unwrap_err();
    assert!(
        message.starts_with("unknown scheduler `dwr`, expected one of `fifo`"),
        "{message}"
    );
    let error = build("bufer = \"unlimited\"\nscheduler = \"fifo\"");
    assert!(
        error
            .unwrap_err()
            .starts_with("unknown field `bufer`, expected one of")
    );
}

#[test]
fn a_scheme_is_one_name() {
    let two = "scheduler = { wrr = { quantum = \"1500B\" }, dwrr = { quantum = \"1500B\" } }";
    let error = build(&format!("buffer = \"unlimited\"\n{two}")).unwrap_err();
    assert_eq!(error, "more than one is chosen here; keep one of them");
    let none = build("buffer = \"unlimited\"\nscheduler = {}").unwrap_err();
    assert_eq!(none, "nothing is chosen here; name one");
}

proptest! {
    /// No text makes the reader or the port panic.
    #[test]
    fn damaged_configurations_are_refused_or_built(
        example in prop::sample::select(EXAMPLES.as_slice()),
        at in any::<prop::sample::Index>(),
        with in "[ -~]{0,4}",
    ) {
        let at = at.index(example.len());
        let damaged = format!("{}{with}{}", &example[..at], &example[at + 1..]);
        let _ = build(&damaged);
    }
}
