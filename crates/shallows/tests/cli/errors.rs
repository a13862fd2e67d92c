//! Scenarios that cannot be run: refused before any work, with the place and what to write.

mod workload;
mod xco;

use shallows_testing::skip;
use snapbox::{IntoData, str};

use crate::{TINY, directory, shallows, with_tiny, write};

/// Runs the tiny scenario with `from` replaced by `to`.
fn refused(from: &str, to: &str, message: impl IntoData) {
    assert!(TINY.contains(from), "{from} is not in the scenario");
    let directory = directory();
    write(&directory, "tiny.toml", &TINY.replace(from, to));
    let assert = shallows(&directory).args(["run", "tiny.toml"]).assert();
    assert.code(2).stdout_eq("").stderr_eq(message);
    assert!(!directory.path().join("out").exists(), "work was begun");
}

#[test]
fn typing_mistake_in_a_key() {
    refused(
        "queues = 2",
        "quees = 2",
        str![[r#"
error: unknown key "quees", did you mean "queues"?
 --> tiny.toml:9:1
  |
9 | quees = 2
  | ^^^^^
  = expected one of queues, packet, classifier, buffer, scheduler, marker, shaper, framing, accounting

"#]],
    );
}

#[test]
fn wrong_unit() {
    refused(
        "\"10Gbps\"",
        "\"10GB\"",
        str![[r#"
error: "10GB" is not a rate: unknown unit "GB", use bps, Kbps, Mbps, Gbps or Tbps
 --> tiny.toml:5:8
  |
5 | rate = "10GB"
  |        ^^^^^^

"#]],
    );
}

#[test]
fn number_without_a_unit() {
    refused(
        "\"1us\"",
        "1",
        str![[r#"
error: expected a time with a unit such as "10us", got 1
 --> tiny.toml:6:9
  |
6 | delay = 1
  |         ^

"#]],
    );
    refused(
        "\"20pkts\"",
        "20",
        str![[r#"
error: invalid type: integer `20`, expected a text or a table
  --> tiny.toml:12:46
   |
12 | marker = { scheme = { mq-ecn = { threshold = 20 } } }
   |                                              ^^
   = a number with a unit is a text, such as "300KB" or "65pkts"

"#]],
    );
}

#[test]
fn unknown_scheduler() {
    refused(
        "{ dwrr",
        "{ dwr",
        str![[r#"
error: unknown name "dwr", did you mean "dwrr"?
  --> tiny.toml:11:15
   |
11 | scheduler = { dwr = { quantum = "1500B" } }
   |               ^^^
   = expected one of fifo, strict, wrr, dwrr, wfq, strict-over, pfabric, push-out

"#]],
    );
}

#[test]
fn scheduler_without_its_parameters() {
    refused(
        "{ dwrr = { quantum = \"1500B\" } }",
        "\"dwrr\"",
        str![[r#"
error: this has parameters, and none are given
  --> tiny.toml:11:13
   |
11 | scheduler = "dwrr"
   |             ^^^^^^
   = write a table such as { name = { parameter = value } }

"#]],
    );
}

#[test]
fn unknown_parameter_of_a_scheduler() {
    refused(
        "quantum",
        "quantm",
        str![[r#"
error: unknown key "quantm", did you mean "quantum"?
  --> tiny.toml:11:24
   |
11 | scheduler = { dwrr = { quantm = "1500B" } }
   |                        ^^^^^^
   = expected quantum

"#]],
    );
}

#[test]
fn missing_key() {
    refused(
        "buffer = { shared = { size = \"100KB\" } }\n",
        "",
        str![[r#"
error: missing key "buffer"
 --> tiny.toml:8:1
  |
8 | [ports.switch]
  | ^^^^^^^^^^^^^^
  = add buffer = ... to this table

"#]],
    );
}

#[test]
fn two_of_a_kind() {
    refused(
        "{ shared = { size = \"100KB\" } }",
        "{ shared = { size = \"100KB\" }, dynamic = { alpha = 1.0 } }",
        str![[r#"
error: more than one is chosen here
  --> tiny.toml:10:10
   |
10 | buffer = { shared = { size = "100KB" }, dynamic = { alpha = 1.0 } }
   |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   = keep one of the keys of this table

"#]],
    );
}

#[test]
fn not_toml() {
    refused(
        "seed = 7",
        "seed = ",
        str![[r#"
error: string values must be quoted, expected literal string
 --> tiny.toml:1:8
  |
1 | seed = 
  |        ^

"#]],
    );
}

#[test]
fn fraction_for_a_count() {
    refused(
        "hosts = 4",
        "hosts = 4.5",
        str![[r#"
error: invalid type: floating point `4.5`, expected a whole number
 --> tiny.toml:4:9
  |
4 | hosts = 4.5
  |         ^^^

"#]],
    );
}

#[test]
fn marker_that_its_scheduler_does_not_fit() {
    refused(
        "{ dwrr = { quantum = \"1500B\" } }",
        "\"strict\"",
        str![[r#"
error: mq-ecn follows the rounds of wrr or dwrr, or the weights of wfq: choose one of them, or strict-over
  --> tiny.toml:12:23
   |
12 | marker = { scheme = { mq-ecn = { threshold = "20pkts" } } }
   |                       ^^^^^^

"#]],
    );
}

#[test]
fn no_hosts() {
    refused(
        "hosts = 4",
        "hosts = 0",
        str![[r#"
error: hosts must not be zero
 --> tiny.toml:4:1
  |
4 | hosts = 0
  | ^^^^^

"#]],
    );
}

#[test]
fn load_below_zero() {
    refused(
        "load = 0.5",
        "load = -1.0",
        str![[r#"
error: load is -1, it must be a positive number
  --> tiny.toml:15:1
   |
15 | load = -1.0
   | ^^^^

"#]],
    );
}

#[test]
fn distribution_that_nobody_has() {
    refused(
        "size = \"30KB\"",
        "size = { cdf = \"web-serch\" }",
        str![[r#"
error: there is no distribution "web-serch"; did you mean "web-search"?
  --> tiny.toml:16:10
   |
16 | size = { cdf = "web-serch" }
   |          ^^^

"#]],
    );
}

#[test]
fn buffer_below_a_packet() {
    refused(
        "\"100KB\"",
        "\"1KB\"",
        str![[r#"
error: a buffer of 1KB does not hold one packet of 1500B
  --> tiny.toml:10:1
   |
10 | buffer = { shared = { size = "1KB" } }
   | ^^^^^^

"#]],
    );
}

#[test]
fn initial_window_above_the_receive_window() {
    refused(
        "[topology",
        "[transport]\nreceive-window = 4\n\n[topology",
        str![[r#"
error: initial-window is 10 segments, more than the receive-window of 4
 --> tiny.toml:4:1
  |
4 | receive-window = 4
  | ^^^^^^^^^^^^^^

"#]],
    );
}

#[test]
fn size_classes_that_do_not_grow() {
    refused(
        "[topology",
        "[report]\nsmall-max = \"1GB\"\n\n[topology",
        str![[r#"
error: size classes must grow: small-max is 1GB and medium-max 10MB; write for example small-max = "100KB" and medium-max = "10MB"
 --> tiny.toml:4:1
  |
4 | small-max = "1GB"
  | ^^^^^^^^^

"#]],
    );
}

#[test]
fn scheme_that_nobody_has() {
    refused(
        "{ mq-ecn = { threshold",
        "{ mine = { threshold",
        str![[r#"
error: unknown name "mine"
  --> tiny.toml:12:23
   |
12 | marker = { scheme = { mine = { threshold = "20pkts" } } }
   |                       ^^^^
   = expected one of none, [..]; a marker of your own needs a program of your own, as examples/my-marker is

"#]],
    );
}

#[test]
fn stages_that_are_no_list() {
    refused(
        "[topology",
        "[hosts]\nstages = \"20KB\"\n\n[topology",
        str![[r#"
error: stages are a list of sizes such as ["20KB", "1MB"], or a table with thresholds
 --> tiny.toml:4:10
  |
4 | stages = "20KB"
  |          ^^^^^^

"#]],
    );
}

#[test]
fn missing_file() {
    let directory = with_tiny();
    let assert = shallows(&directory).args(["run", "tinny.toml"]).assert();
    assert.code(2).stderr_eq(str![[r#"
error: cannot read tinny.toml: there is no such file
  = did you mean tiny.toml?

"#]]);
    let assert = shallows(&directory)
        .args(["run", "nowhere/x.toml"])
        .assert();
    assert.code(2).stderr_eq(str![[r#"
error: cannot read nowhere/x.toml: there is no such file
  = there is no directory nowhere

"#]]);
}

#[test]
fn bad_command_line() {
    let assert = shallows(&directory()).args(["run"]).assert();
    assert.code(2);
    let assert = shallows(&directory())
        .args(["run", "x", "--format", "xls"])
        .assert();
    assert.code(2);
}

#[test]
fn more_than_the_machine_has_room_for() {
    let Ok(meminfo) = std::fs::read_to_string("/proc/meminfo") else {
        skip!("there is no /proc/meminfo");
    };
    let line = meminfo
        .lines()
        .find(|line| line.starts_with("MemAvailable:"));
    let kib: u64 = line
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    // They take 330 bytes each.
    let flows = kib * 1024 / 275;
    if flows > 100_000_000 {
        skip!("this machine has room for as many flows as are possible");
    }
    let directory = with_tiny();
    let setting = format!("workload.poisson.flows={flows}");
    let run = ["run", "tiny.toml", "--set", &setting];
    let assert = shallows(&directory).args(run).assert();
    assert.code(2).stdout_eq("").stderr_eq(str![[r#"
error: the run would take [..] GB of memory (0.0 GB for the fabric, [..] GB for flows) and [..] GB are available
 --> [..]
  = use fewer flows, or a machine with more memory

"#]]);
}

#[test]
fn a_table_where_a_list_belongs_says_how_to_write_it() {
    refused(
        "[workload.poisson]",
        "[workload.long-lived]",
        str![[r#"
error: this is one table where a list of tables belongs
  --> tiny.toml:14:1
   |
14 | [workload.long-lived]
   | ^^^^^^^^^^^^^^^^^^^^^
   = write its header with two brackets, as in [[workload.long-lived]]

"#]],
    );
}
