//! The matrix: schedulers x markers x controllers x fabrics x workloads x applications x faults x
//! probes, drawn at random. Whatever a scenario has, its run ends, gives the same results on any
//! number of threads, by events and in layers, and in any format, and its sums agree.
//!
//! CI runs a few hundred cases. For as many as a time allows:
//!
//! ```sh
//! SHALLOWS_MATRIX_MINUTES=60 cargo test --release -p shallows-run --test matrix -- --ignored --nocapture
//! ```

mod draw;

use std::env;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use shallows_core::units::Time;
use shallows_model::workload::FlowSpec;
use shallows_results::{Format, RunRecord};
use shallows_run::{Diagnostic, Interrupt, RunPlan, Scenario, drive};
use shallows_sim::{EngineChoice, FlowOutcome, PauseStats};

use draw::Case;

/// A case that computes for longer is stuck.
const MOST_CPU_TIME: Duration = Duration::from_secs(120);

/// A case that takes longer waits for something that never comes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(1800);

/// From one look at the CPU time to the next.
const LOOK: Duration = Duration::from_secs(1);

/// The CPU time of this process until now.
fn cpu_time() -> Duration {
    let used = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let [user, system] = [used.user_time(), used.system_time()]
        .map(|time| Duration::from_micros(time.num_microseconds() as u64));
    user + system
}

/// Cases of a seed, without end.
fn cases(seed: u64) -> impl Iterator<Item = Case> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = draw::case();
    std::iter::from_fn(move || Some(strategy.new_tree(&mut runner).ok()?.current()))
}

/// Checks a case on a thread of its own, so that one that hangs is told.
fn check_in_time(number: u64, case: Case) {
    let text = case.text.clone();
    let (done, result) = mpsc::channel();
    let worker = thread::spawn(move || {
        check(&case);
        done.send(()).ok();
    });
    let (start, computed) = (Instant::now(), cpu_time());
    loop {
        match result.recv_timeout(LOOK) {
            Ok(()) => return,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let is_stuck = cpu_time() > computed + MOST_CPU_TIME || start.elapsed() > DEADLINE;
                assert!(!is_stuck, "case {number} hangs:\n{text}");
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                assert!(worker.join().is_ok(), "case {number} failed:\n{text}");
                return;
            }
        }
    }
}

fn check(case: &Case) {
    let scenario = Scenario::from_str(&case.text).unwrap_or_else(|error| panic!("{error}"));
    let plan = scenario.build().unwrap_or_else(|error| panic!("{error}"));
    let automatic = simulate(&plan, EngineChoice::Automatic, 1);
    let (alone, end) = automatic.unwrap_or_else(|error| panic!("{error}"));
    for threads in [1, 2, 4] {
        let by_events = simulate(&plan, EngineChoice::Events, threads);
        let (together, other_end) = by_events.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(together, alone, "by events on {threads} threads");
        assert_eq!(
            other_end, end,
            "packets and pauses of links, on {threads} threads"
        );
    }
    for threads in [1, 2, 4] {
        // Refused where the scenario does not fit.
        if let Ok((in_layers, other_end)) = simulate(&plan, EngineChoice::Layers, threads) {
            assert_eq!(in_layers, alone, "in layers on {threads} threads");
            assert_eq!(
                other_end, end,
                "packets and pauses of links, in layers on {threads}"
            );
        }
    }
    for (number, (flow, outcome)) in alone.iter().enumerate() {
        check_flow(case, number, flow, outcome);
    }
    let ran = |(flow, _): &(FlowSpec, _)| scenario.config.until.is_none_or(|end| flow.start < end);
    // A run in which nothing happened is refused.
    if alone.iter().any(ran) {
        check_record(case, &scenario);
    }
}

/// Number of packets that were put on links, and the pauses of each link.
type Links = (u64, Vec<PauseStats>);

/// What becomes of all flows and links.
fn simulate(
    plan: &RunPlan,
    engine: EngineChoice,
    threads: u32,
) -> Result<(Vec<(FlowSpec, FlowOutcome)>, Links), Diagnostic> {
    let mut simulation = plan.simulation_on(engine, threads)?;
    drive(&mut simulation, plan.until, &mut [], Interrupt::Never)
        .unwrap_or_else(|error| panic!("{error:?}"));
    let flows = simulation.flows().map(|(flow, outcome)| (*flow, outcome));
    let pauses = plan.fabric.links().ids();
    let pauses = pauses.map(|link| simulation.pauses(link)).collect();
    let links = (simulation.progress().packet_hops, pauses);
    Ok((flows.collect(), links))
}

/// A flow that starts later may still be under way at the end of the run: sparse arrivals go on for
/// long.
const LAST_START: Time = Time::from_secs(1);

fn check_flow(case: &Case, number: usize, flow: &FlowSpec, outcome: &FlowOutcome) {
    if case.finishes && flow.start < LAST_START {
        assert!(
            outcome.fct.is_some(),
            "flow {number} never ends: {flow:?} {outcome:?}"
        );
    }
    if case.is_balanced && outcome.fct.is_some() {
        let gone = outcome.received + outcome.drops;
        // A SYN that is dropped has no data.
        let is_balanced = outcome.sent == gone || (outcome.drops > 0 && outcome.sent <= gone);
        assert!(is_balanced, "segments of flow {number}: {outcome:?}");
    }
}

/// The record in both formats, value by value, and its sums.
fn check_record(case: &Case, scenario: &Scenario) {
    let directory = tempfile::tempdir().expect("there is room for a small run");
    let record = |name: &str, format| {
        let out = directory.path().join(name);
        let runner = scenario.runner().threads(2).flows_on_disk();
        let finished = runner.output(&out).format(format).run();
        finished.unwrap_or_else(|error| panic!("{error:?}"));
        RunRecord::open(&out).unwrap_or_else(|error| panic!("{error}"))
    };
    let (csv, parquet) = (
        record("csv", Format::Csv),
        record("parquet", Format::Parquet),
    );
    assert_eq!(csv.flows, parquet.flows);
    assert_eq!(csv.summary, parquet.summary);
    assert_eq!(
        (&csv.ports, &csv.operations),
        (&parquet.ports, &parquet.operations)
    );
    let names = tables(directory.path(), "csv");
    assert_eq!(names, tables(directory.path(), "parquet"));
    for name in names {
        // As text, where a number that is none equals itself.
        let table = |record: &RunRecord| {
            let table = record
                .table(&name)
                .unwrap_or_else(|error| panic!("{error}"));
            table
                .filter(|table| table.rows() > 0)
                .map(|table| format!("{table:?}"))
        };
        assert_eq!(table(&csv), table(&parquet), "{name}");
    }
    check_sums(case, &parquet);
}

/// The tables of a run that are in either format, without extension.
fn tables(directory: &Path, format: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory.join(format)).expect("the run has a directory");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let tables = paths.filter(|path| path.extension().is_some_and(|found| found == format));
    let mut names: Vec<String> = tables
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| !["flows", "ports", "operations"].contains(&name.as_str()))
        .collect();
    names.sort();
    names
}

fn check_sums(case: &Case, record: &RunRecord) {
    let summary = record.summary.as_ref().expect("a run has a summary");
    let sum = |count: &dyn Fn(&shallows_results::record::FlowRecord) -> u32| -> u64 {
        record.flows.iter().map(|flow| u64::from(count(flow))).sum()
    };
    assert_eq!(summary.timeouts.total(), sum(&|flow| flow.timeouts));
    assert_eq!(summary.retransmits.total(), sum(&|flow| flow.retransmits));
    let all = &summary.classes;
    let classes = [&all.small, &all.medium, &all.large];
    assert_eq!(
        all.all.flows,
        classes.iter().map(|class| class.flows).sum::<u64>()
    );
    assert_eq!(all.all.flows, record.flows.len() as u64);
    let marks: u64 = summary.facts.marks.iter().map(|of| of.counts.total()).sum();
    assert!(
        sum(&|flow| flow.marks) <= marks,
        "more marks arrived than were made"
    );
    let drops: u64 = summary.facts.drops.iter().map(|of| of.counts.total()).sum();
    assert!(sum(&|flow| flow.dropped.unwrap_or(0)) <= drops);
    for flow in &record.flows {
        if let Some(fct) = flow.fct.filter(|_| case.ideal_is_least) {
            // The clock of a link rounds to a picosecond at each of a few hops.
            let least = flow.ideal_fct.saturating_sub(Time::from_ps(10));
            assert!(fct >= least, "{flow:?} is faster than light");
        }
    }
}

#[test]
fn every_combination_holds() {
    for (number, case) in (0..).zip(cases(1).take(150)) {
        check_in_time(number, case);
    }
}

/// As many cases as `SHALLOWS_MATRIX_MINUTES` allow, from `SHALLOWS_MATRIX_SEED`.
#[test]
#[ignore = "as long as one wants; see the head of this file"]
fn every_combination_holds_for_long() {
    let number =
        |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().expect(name));
    let minutes = number("SHALLOWS_MATRIX_MINUTES", 10);
    let seed = number("SHALLOWS_MATRIX_SEED", 2);
    let (start, mut done) = (Instant::now(), 0);
    for (case_number, case) in (0..).zip(cases(seed)) {
        if start.elapsed() >= Duration::from_secs(60 * minutes) {
            break;
        }
        check_in_time(case_number, case);
        done += 1;
        if done % 1000 == 0 {
            let rate = f64::from(done) * 60.0 / start.elapsed().as_secs_f64();
            println!("{done} cases, {rate:.0} a minute");
        }
    }
    let rate = f64::from(done) * 60.0 / start.elapsed().as_secs_f64();
    println!("{done} cases of seed {seed} hold, {rate:.0} a minute");
}
