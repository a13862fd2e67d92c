//! Summaries of hand-made runs: every figure worked out by hand, the table to the character.

mod common;

use std::time::Duration;

use common::{finished, unfinished};
use shallows_core::units::{Bytes, Time};
use shallows_results::ResultsError;
use shallows_results::compare::compare;
use shallows_results::record::{Completeness, FlowRecord};
use shallows_results::size_class::{ClassCounts, SizeClasses};
use shallows_results::statistics::PercentileRule;
use shallows_results::summary::{ReasonCounts, RunFacts, Summary, Utilisation, World};

/// Three small flows, one medium, one large and one that did not finish; one of the small ones had
/// a timeout.
fn records() -> Vec<FlowRecord> {
    let us = Time::from_us;
    let mut late = finished(2, Time::from_ms(2), 1_460, us(5_173), us(80));
    (late.timeouts, late.retransmits) = (1, 2);
    let mut medium = finished(4, Time::ZERO, 1_000_000, us(4_000), us(1_000));
    medium.retransmits = 3;
    vec![
        finished(1, Time::from_ms(1), 1_460, us(80), us(80)),
        late,
        finished(3, Time::from_ms(3), 100_000, us(300), us(200)),
        medium,
        finished(5, Time::from_ms(10), 20_000_000, us(40_000), us(20_000)),
        unfinished(6, Time::from_ms(45), 100),
    ]
}

fn facts() -> RunFacts {
    RunFacts {
        world: World::Simulated,
        simulated: Time::from_ms(50),
        packet_hops: 115_216,
        events: 120_345,
        engine: None,
        wall: Some(Duration::from_millis(12)),
        marks: vec![ReasonCounts {
            reason: "queue".to_owned(),
            counts: ClassCounts {
                small: 12,
                medium: 345,
                large: 6_789,
                other: 0,
            },
        }],
        drops: vec![
            ReasonCounts {
                reason: "port full".to_owned(),
                counts: ClassCounts {
                    small: 2,
                    medium: 3,
                    ..ClassCounts::default()
                },
            },
            ReasonCounts {
                reason: "evicted".to_owned(),
                counts: ClassCounts::default(),
            },
        ],
        over_limit: Vec::new(),
        latencies: Vec::new(),
        levels: Vec::new(),
        longest_wait: Some(Time::from_us(123)),
        utilisation: vec![
            Utilisation {
                links: "host to leaf".to_owned(),
                count: 144,
                mean: 0.5,
                min: 0.25,
                max: 0.87654,
                pauses: None,
            },
            Utilisation {
                links: "leaf to spine".to_owned(),
                count: 144,
                mean: 0.125,
                min: 0.0,
                max: 1.0,
                pauses: None,
            },
        ],
        loads: Vec::new(),
        measured: None,
        fct_definition: "from a flow's start to its sender's last ACK".to_owned(),
    }
}

fn summary(records: &[FlowRecord], completeness: Completeness) -> Summary {
    let classes = SizeClasses::default();
    let rule = PercentileRule::NearestRank;
    Summary::new(records, completeness, classes, rule, facts()).unwrap()
}

#[test]
fn every_figure_by_hand() {
    let summary = summary(&records(), Completeness::Complete);
    let small = &summary.classes.small;
    assert_eq!(
        (small.flows, small.unfinished, small.finished_bytes),
        (4, 1, 102_920)
    );
    let fct = small.fct.unwrap();
    assert_eq!(fct.mean, Time::from_us(1_851));
    assert_eq!(fct.p50, Time::from_us(300));
    assert_eq!(
        [fct.p95, fct.p99, fct.p99_9, fct.max],
        [Time::from_us(5_173); 4]
    );
    let slowdown = small.slowdown.unwrap();
    assert_eq!(slowdown.p50, 1.5);
    assert_eq!(slowdown.mean, (1.0 + 1.5 + 64.662_5) / 3.0);
    // From the medium flow's start at 0 to the large flow's finish at 50 ms.
    assert_eq!(small.throughput_bps, Some(102_920 * 8 * 20));
    let of = |bytes: u64| Some(bytes * 8 * 20);
    assert_eq!(summary.classes.medium.throughput_bps, of(1_000_000));
    assert_eq!(summary.classes.large.throughput_bps, of(20_000_000));
    assert_eq!(summary.classes.all.throughput_bps, of(21_102_920));
    assert_eq!(summary.classes.all.flows, 6);
    assert_eq!(summary.timeouts.small, 1);
    assert_eq!(
        (summary.retransmits.small, summary.retransmits.medium),
        (2, 3)
    );
}

const TABLE: &str = "                           ---- flow completion time ----   slowdown
class   flows  unfinished   mean     p50  p95  p99  p99.9   mean  p99  throughput
                              ms      ms   ms   ms     ms                    Mbps
all         6           1  9.911   4.000    -    -      -  14.63    -        3376
small       4           1  1.851  0.3000    -    -      -  22.39    -       16.47
medium      1           0  4.000   4.000    -    -      -  4.000    -       160.0
large       1           0  40.00   40.00    -    -      -  2.000    -        3200

               all  small  medium  large
marks        7,146     12     345  6,789
  queue      7,146     12     345  6,789
drops            5      2       3      0
  port full      5      2       3      0
timeouts         1      1       0      0
retransmits      5      2       3      0

utilisation    links    mean     min      max
host to leaf     144  50.00%  25.00%   87.65%
leaf to spine    144  12.50%   0.00%  100.00%

50.00 ms of virtual time, 115,216 packet-hops, 120,345 events, 0.01 s on the wall
";

#[test]
fn the_table_to_the_character() {
    let text = summary(&records(), Completeness::Complete).to_string();
    assert_eq!(text, TABLE, "\n{text}");
}

#[test]
fn a_live_run_had_no_virtual_time() {
    let mut live = summary(&records(), Completeness::Complete);
    live.facts.world = World::Live;
    let line = "\nlive: 50.00 ms of real time, 115,216 packet-hops, 0.01 s on the wall\n";
    assert!(live.to_string().contains(line), "{live}");
    assert!(live.to_json().contains("\"world\": \"live\""));
}

/// A percentile that is simply the largest of few values is not shown.
#[test]
fn percentiles_need_enough_flows() {
    let flow = |id| {
        let fct = Time::from_us(100 + id);
        finished(id, Time::ZERO, 1_000, fct, Time::from_us(10))
    };
    let shown = |flows: u64| {
        let flows: Vec<FlowRecord> = (1..=flows).map(flow).collect();
        let text = summary(&flows, Completeness::Complete).to_string();
        let row = text.lines().find(|line| line.starts_with("small")).unwrap();
        let cells: Vec<String> = row.split_whitespace().map(str::to_owned).collect();
        cells[5..8].to_vec()
    };
    assert_eq!(shown(19), ["-", "-", "-"]);
    assert_eq!(shown(20), ["119.0", "-", "-"]);
    assert_eq!(shown(100), ["195.0", "199.0", "-"]);
    assert_eq!(shown(1_000), ["1050", "1090", "1099"]);
}

#[test]
fn a_partial_run_says_so_first() {
    let text = summary(&records(), Completeness::Partial).to_string();
    let (first, rest) = text.split_once("\n\n").unwrap();
    assert_eq!(
        first,
        "PARTIAL: interrupted at 50ms; later flows are missing"
    );
    assert_eq!(rest, TABLE);
}

#[test]
fn an_empty_result_is_an_error() {
    let classes = SizeClasses::default();
    let rule = PercentileRule::NearestRank;
    let error = Summary::new(
        Vec::<FlowRecord>::new(),
        Completeness::Complete,
        classes,
        rule,
        facts(),
    )
    .unwrap_err();
    assert!(matches!(error, ResultsError::EmptyResult), "{error}");
}

#[test]
fn flows_that_never_end_have_no_completion_times() {
    let summary = summary(&[unfinished(1, Time::ZERO, 1)], Completeness::Complete);
    let small = &summary.classes.small;
    assert_eq!(
        (small.fct, small.slowdown, small.throughput_bps),
        (None, None, None)
    );
    let row = summary.to_string();
    let row = row.lines().find(|line| line.starts_with("small")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, [&["small", "1", "1"][..], &["-"; 8]].concat());
}

#[test]
fn a_million_flows_of_seconds_still_fit_100_columns() {
    let flow = finished(
        1,
        Time::ZERO,
        50_000_000,
        Time::from_ms(9_876),
        Time::from_ms(40),
    );
    let summary = summary(&vec![flow; 1_000_000], Completeness::Complete);
    let text = summary.to_string();
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn packets_of_no_flow_get_a_column() {
    let mut facts = facts();
    facts.drops[1].counts.other = 7;
    let classes = SizeClasses::default();
    let rule = PercentileRule::Index;
    let partial = Completeness::Complete;
    let summary = Summary::new(records(), partial, classes, rule, facts).unwrap();
    let text = summary.to_string();
    assert!(text.contains("medium  large  other\n"), "{text}");
    let definitions = summary.definitions();
    assert!(
        definitions.contains("p99: sorted[99n/100] of n finished flows, counted from 0\n"),
        "{definitions}"
    );
}

#[test]
fn json_has_numbers_in_the_units_of_their_names_and_no_wall_time() {
    let summary = summary(&records(), Completeness::Partial);
    let json: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
    assert_eq!(json["partial"], true);
    assert_eq!(json["simulated_s"], 0.05);
    assert_eq!(json["classes"]["small"]["fct_us"]["p50"], 300.0);
    assert_eq!(json["classes"]["all"]["throughput_bps"], 3_376_467_200_u64);
    assert_eq!(json["drops"][0]["reason"], "port full");
    assert_eq!(json["drops"][0]["medium"], 3);
    assert_eq!(json["size_classes"]["small_max"], "100KB");
    assert_eq!(json["percentile_rule"], "nearest-rank");
    assert_eq!(json.get("wall"), None);
}

#[test]
fn json_reads_back_the_same_but_for_the_wall_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("summary.json");
    let mut summary = summary(&records(), Completeness::Partial);
    summary.write_json(&path).unwrap();
    let read = Summary::read_json(&path).unwrap();
    summary.facts.wall = None;
    assert_eq!(read, summary);
    assert_eq!(read.to_json(), std::fs::read_to_string(&path).unwrap());
}

#[test]
fn the_order_of_records_does_not_matter() {
    let forward = records();
    let backward: Vec<FlowRecord> = forward.iter().rev().copied().collect();
    assert_eq!(
        summary(&forward, Completeness::Complete),
        summary(&backward, Completeness::Complete)
    );
}

#[test]
fn the_authors_bins_move_a_flow_of_100_kib() {
    let flow = finished(
        1,
        Time::ZERO,
        Bytes::new(102_400).get(),
        Time::from_us(100),
        Time::from_us(90),
    );
    let classes = SizeClasses::MQ_ECN_AS_SIMULATED;
    let rule = PercentileRule::Index;
    let of = Summary::new([flow], Completeness::Complete, classes, rule, facts()).unwrap();
    assert_eq!((of.classes.small.flows, of.classes.medium.flows), (0, 1));
}

#[test]
fn differences_are_relative_to_the_first_run() {
    let first = summary(&records(), Completeness::Complete);
    let mut slower = records();
    for record in &mut slower {
        record.fct = record.fct.map(|fct| fct * 2);
    }
    slower[3].timeouts = 1;
    let second = summary(&slower, Completeness::Complete);
    let differences = compare(&first, &second);
    let find = |class: &str, metric: &str| {
        let found = differences
            .iter()
            .find(|row| row.class == class && row.metric == metric);
        found.unwrap().relative
    };
    assert_eq!(find("all", "flows"), Some(0.0));
    assert_eq!(find("small", "fct_us.mean"), Some(1.0));
    assert_eq!(find("large", "slowdown.p99"), Some(1.0));
    assert_eq!(find("all", "timeouts"), Some(1.0));
    assert_eq!(find("medium", "timeouts"), None);
    assert_eq!(find("large", "drops"), Some(0.0));
    assert!(differences.iter().all(|row| row.class != "other"));
    let same = compare(&first, &first);
    assert!(same.iter().all(|row| row.relative == Some(0.0)));
}

#[test]
fn a_figure_that_only_one_run_has_is_shown_without_a_ratio() {
    let first = summary(&records(), Completeness::Complete);
    let second = summary(&[unfinished(1, Time::ZERO, 1)], Completeness::Complete);
    let differences = compare(&first, &second);
    let row = differences
        .iter()
        .find(|row| row.class == "large" && row.metric == "fct_us.p99")
        .unwrap();
    assert_eq!(
        (row.first, row.second, row.relative),
        (Some(40_000.0), None, None)
    );
}
