//! Options that change a scenario.

use snapbox::{IntoData, str};

use crate::{read_text, shallows, with_tiny, write};

/// Runs the tiny scenario with options and shows what was run.
fn resolved(options: &[&str]) -> String {
    let directory = with_tiny();
    let run = ["run", "tiny.toml", "--out", "results"];
    let assert = shallows(&directory).args(run).args(options).assert();
    assert.success();
    read_text(&directory, "results/scenario.toml")
}

fn refused(options: &[&str], message: impl IntoData) {
    let directory = with_tiny();
    let run = ["run", "tiny.toml"];
    let assert = shallows(&directory).args(run).args(options).assert();
    assert.code(2).stderr_eq(message);
}

#[test]
fn keys_are_set_by_path() {
    let text = resolved(&["--set", "ports.switch.queues=4", "--set", "seed=9"]);
    assert!(text.contains("\nseed = 9\n"), "{text}");
    assert!(text.contains("[ports.switch]\nqueues = 4\n"), "{text}");
}

#[test]
fn another_scheme_replaces_the_first() {
    let threshold = "ports.switch.marker.scheme.per-queue.threshold=\"32KB\"";
    let text = resolved(&["--set", threshold]);
    assert!(
        text.contains("[ports.switch.marker.scheme.per-queue]\nthreshold = \"32KB\"\n"),
        "{text}"
    );
    assert!(!text.contains("mq-ecn"), "{text}");
}

#[test]
fn quotes_are_not_needed() {
    let text = resolved(&["--set", "transport.rto.minimum=5ms"]);
    assert!(text.contains("\nminimum = \"5ms\"\n"), "{text}");
    let text = resolved(&["--set", "transport.controller=reno"]);
    assert!(text.contains("[transport.controller.reno]"), "{text}");
}

#[test]
fn seed_and_end_have_options_of_their_own() {
    let text = resolved(&["--seed", "18446744073709551615", "--until", "1ms"]);
    assert!(text.contains("\nseed = 18446744073709551615\n"), "{text}");
    assert!(text.contains("\nuntil = \"1ms\"\n"), "{text}");
}

#[test]
fn bad_settings_are_shown_as_they_were_written() {
    refused(
        &["--set", "ports.switch.quees=8"],
        str![[r#"
error: unknown key "quees", did you mean "queues"?
 --> --set ports.switch.quees=8
  = expected one of queues, packet, classifier, buffer, scheduler, marker, shaper, framing, accounting

"#]],
    );
    refused(
        &["--set", "ports.switch.scheduler=dwrrr"],
        str![[r#"
error: unknown name "dwrrr", did you mean "dwrr"?
 --> --set ports.switch.scheduler=dwrrr
  = expected one of fifo, strict, wrr, dwrr, wfq, strict-over, pfabric, push-out

"#]],
    );
    refused(
        &["--set", "ports.switch.marker.scheme.mq-ecn.threshold=32Kb"],
        str![[r#"
error: "32Kb" is not a length: a lowercase b means bits, use pkts, B, KB, MB, GB, TB, KiB, MiB or GiB
 --> --set ports.switch.marker.scheme.mq-ecn.threshold=32Kb

"#]],
    );
    refused(
        &["--set", "ports.switch.queues=0"],
        str![[r#"
error: a port has 1 to 64 queues, not 0
 --> --set ports.switch.queues=0

"#]],
    );
    refused(
        &["--set", "seed.x=1"],
        str![[r#"
error: seed is a number in the scenario, which has no keys: set seed as a whole
 --> --set seed.x=1

"#]],
    );
    refused(
        &["--set", "seed"],
        str![[r#"
error: a setting is KEY=VALUE, such as ports.switch.queues=4
 --> --set seed

"#]],
    );
    refused(
        &["--until", "5"],
        str![[r#"
error: "5" is not a time: the unit is missing, use ps, ns, us, ms, s or min
 --> --until 5

"#]],
    );
}

#[test]
fn flows_replace_the_workload() {
    let directory = with_tiny();
    write(
        &directory,
        "two.csv",
        "start_s,src,dst,bytes,service\n0.001,2,3,2920,1\n0,0,1,1460,0\n",
    );
    let run = ["run", "tiny.toml", "--flows", "two.csv", "--format", "csv"];
    shallows(&directory).args(run).assert().success();
    // 1.2 us + 1 us on each of two links, 32 ns + 1 us back; the second packet 1.2 us later.
    snapbox::assert_data_eq!(
        read_text(&directory, "out/tiny/flows.csv"),
        str![[r#"
id,start_s,src,dst,bytes,service,fct_us,ideal_fct_us,retransmits,timeouts,marks,finished,sent,dropped
0,0.000000000000,0,1,1460,0,6.464000,6.464000,0,0,0,true,1,0
1,0.001000000000,2,3,2920,1,7.664000,7.664000,0,0,0,true,2,0

"#]]
    );
}
