//! Scenarios that cannot be run: refused before any work, with the place and what to write.

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
fn what_contradicts_itself_points_at_what_it_names() {
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
fn load_in_percent() {
    refused(
        "load = 0.5",
        "load = 60",
        str![[r#"
error: load is 60, it must be a positive number, at most 2 (a share of the capacity: write 0.6 for 60%)
  --> tiny.toml:15:1
   |
15 | load = 60
   | ^^^^

"#]],
    );
}

#[test]
fn two_workloads_that_are_not_a_list() {
    refused(
        "[workload.poisson]",
        "[[workload.long-lived]]\nsrc = 0\ndst = 1\n\n[workload.poisson]",
        str![[r#"
error: poisson is a second workload in this table: write several as a list, each under [[workload]], such as poisson = { ... }
  --> tiny.toml:14:3
   |
14 | [[workload.long-lived]]
   |   ^^^^^^^^

"#]],
    );
}

#[test]
fn two_sizes_of_a_workload() {
    refused(
        "size = \"30KB\"",
        "size = { cdf = \"web-search\", uniform = { from = \"1KB\", to = \"2KB\" } }",
        str![[r#"
error: [..]
  --> tiny.toml:16:8
...
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
fn flows_without_an_end() {
    let workload = TINY.split_once("[workload").unwrap().1;
    let long_lived = ".long-lived]]\nsrc = 0\ndst = 1\n";
    refused(
        &format!("[workload{workload}"),
        &format!("[[workload{long_lived}"),
        str![[r#"
error: some flows never stop, so the run would not end
  --> tiny.toml:14:3
   |
14 | [[workload.long-lived]]
   |   ^^^^^^^^
   = set until = "100ms" at the top of the file, or give a stop

"#]],
    );
}

#[test]
fn xco_without_an_end() {
    refused(
        "[topology",
        "[hosts.xco]\nslot = \"1ms\"\n\n[topology",
        str![[r#"
error: hosts keep reporting to the controller, so the run would not end
 --> tiny.toml:3:8
  |
3 | [hosts.xco]
  |        ^^^
  = set until = "1s" at the top of the file, or use --until

"#]],
    );
}

#[test]
fn xco_with_its_controller_nowhere() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\ncontroller = 99\n\n[topology",
        str![[r#"
error: the controller is at host 99, the fabric has hosts 0 to 3
 --> tiny.toml:6:1
  |
6 | controller = 99
  | ^^^^^^^^^^

"#]],
    );
}

#[test]
fn xco_with_hosts_that_leave_between_two_reports() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\nprotocol = { silence = \"300ms\" }\n\n[topology",
        str![[r#"
error: silence of 300ms must be at least four times keepalive, which is 100ms
 --> tiny.toml:6:14
  |
6 | protocol = { silence = "300ms" }
  |              ^^^^^^^

"#]],
    );
}

#[test]
fn xco_on_demand_with_thresholds_the_wrong_way_round() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\non-demand = { leave = 90 }\n\n[topology",
        str![[r#"
error: leave of 90% must be below enter, which is 80%
 --> tiny.toml:6:15
  |
6 | on-demand = { leave = 90 }
  |               ^^^^^

"#]],
    );
}

#[test]
fn xco_with_a_hierarchy_and_a_standby() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\nstandby = true\nhierarchy = { pod-hosts = 2 }\n\n[topology",
        str![[r#"
error: a hierarchy has controllers of its own, out of band and without standby: leave out standby
 --> tiny.toml:6:1
  |
6 | standby = true
  | ^^^^^^^

"#]],
    );
}

#[test]
fn xco_with_slots_that_nobody_hears_of_in_time() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\ndelay = \"1ms\"\n\n[topology",
        str![[r#"
error: a slot of 2ms ends before a host receives it: messages take 1ms each way
 --> tiny.toml:6:1
  |
6 | delay = "1ms"
  | ^^^^^

"#]],
    );
}

#[test]
fn xco_with_an_outage_of_no_controller() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\noutages = [{ controller = 1, crash = \"5ms\" }]\n\n[topology",
        str![[r#"
error: outage of controller 1, their numbers end at 0; 1 is the standby, which standby = true adds
 --> tiny.toml:6:1
  |
6 | outages = [{ controller = 1, crash = "5ms" }]
  | ^^^^^^^

"#]],
    );
}

#[test]
fn xco_with_a_weight_of_nobody() {
    refused(
        "[topology",
        "until = \"1s\"\n\n[hosts.xco]\nweights = [{ host = 99, weight = 4 }]\n\n[topology",
        str![[r#"
error: host 99 has a weight, the fabric has hosts 0 to 3
 --> tiny.toml:6:1
  |
6 | weights = [{ host = 99, weight = 4 }]
  | ^^^^^^^

"#]],
    );
}

#[test]
fn no_workload() {
    let workload = TINY.split_once("[workload").unwrap().1;
    refused(
        &format!("[workload{workload}"),
        "",
        str![[r#"
error: there is no workload, and no flows are given
 --> tiny.toml
  = add [workload.poisson] or another one, or use --flows FILE.csv

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
fn bad_list_of_flows() {
    let directory = with_tiny();
    write(
        &directory,
        "flows.csv",
        "start_s,src,dst,bytes,service\n0.1,0,9,1460,0\n",
    );
    let run = ["run", "tiny.toml", "--flows"];
    let assert = shallows(&directory).args(run).arg("flows.csv").assert();
    assert.code(2).stderr_eq(str![[r#"
error: [..]/flows.csv: line 2: dst is 9, the fabric has hosts 0 to 3
 --> --flows flows.csv

"#]]);
    let assert = shallows(&directory).args(run).arg("none.csv").assert();
    assert.code(2).stderr_eq(str![[r#"
error: [..]/none.csv: there is no such file
 --> --flows none.csv

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
