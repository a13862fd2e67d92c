use shallows_core::units::Bytes;
use shallows_run::scenario::Report;

use super::outcome::Flow;
use super::*;

fn report() -> Report {
    Report {
        small_max: Bytes::new(102_399),
        medium_max: Bytes::new(10_485_760),
        ..Report::default()
    }
}

/// Flows of (bytes, completion time, timeouts).
fn outcome(flows: &[(u64, f64, u32)]) -> Outcome {
    let flows = flows.iter().map(|&(bytes, fct, timeouts)| Flow {
        bytes,
        fct,
        timeouts,
    });
    Outcome::of(flows, &report(), Some(5_000.0))
}

#[test]
fn outcomes_by_hand() {
    let flows = [
        (1_460, 10.0, 0),
        (102_400, 20.0, 1),
        (10_485_760, 40.0, 0),
        (10_485_761, 90.0, 2),
    ];
    assert_eq!(
        outcome(&flows),
        Outcome {
            all: 40.0,
            small: 10.0,
            small_p99: 10.0,
            medium: 30.0,
            large: 90.0,
            waited: Some(0),
            timeouts: 3,
        }
    );
    let late = [1_460, 1_460, 102_400, 10_485_761].map(|bytes| (bytes, 5_001.0, 1));
    assert_eq!(outcome(&late).waited, Some(2));
}

#[test]
fn rows_by_hand() {
    let flows = |fct: f64| [1_460, 102_400, 10_485_761].map(|bytes| (bytes, fct, 0));
    let theirs = outcome(&flows(100.0));
    let ours = [104.5, 95.0, 110.0].map(|fct| outcome(&flows(fct)));
    let rows = rows(&theirs, &ours);
    let mean = rows[0];
    assert_eq!((mean.least, mean.ours, mean.most), (95.0, 104.5, 110.0));
    assert_eq!((mean.goal, mean.is_met()), (Some(0.05), Some(true)));
    assert_eq!(rows[5].is_met(), None, "counts are not judged");

    let far = super::rows(&theirs, &[outcome(&flows(106.0))]);
    let verdicts: Vec<Option<bool>> = far.iter().map(Row::is_met).collect();
    let [mean, tail] = [Some(false), Some(true)];
    assert_eq!(verdicts, [mean, mean, tail, mean, mean, None, None]);
}

#[test]
fn flows_agree_by_hand() {
    let outcome = outcome(&[(1_460, 1.0, 0), (102_400, 1.0, 0), (10_485_761, 1.0, 0)]);
    let scheme = SchemeAgreement {
        label: "",
        theirs: outcome,
        ours: vec![outcome],
        rows: Vec::new(),
        flows: vec![
            (100.0, 100.009),
            (100.0, 99.0),
            (100.0, 104.0),
            (100.0, 200.0),
        ],
    };
    assert_eq!(scheme.same_at_first(), 1);
    assert_eq!((scheme.within(0.01), scheme.within(0.05)), (50.0, 75.0));
}

#[test]
fn run_0_has_the_starts_of_the_list_and_others_less_than_a_microsecond_more() {
    for simulator in &SIMULATORS {
        let scenario = simulator.scenario(&simulator.references[0], 0).unwrap();
        let flows = simulator.flows(&scenario).unwrap();
        let unmoved = moved(&flows, 0);
        assert!(unmoved.iter().map(|(_, flow)| flow).eq(&flows));
        for (place, flow) in moved(&flows, 1) {
            let by = flow.start - flows[place].start;
            assert!(by < JITTER);
        }
    }
}

/// The columns are by line, the flows by start.
#[test]
fn the_lists_are_in_the_order_of_their_starts() {
    for simulator in &SIMULATORS {
        let starts = simulator.flows.lines().skip(1);
        let starts: Vec<f64> = starts
            .map(|line| line.split(',').next().unwrap().parse().unwrap())
            .collect();
        assert!(starts.is_sorted(), "{}", simulator.name);
    }
}

/// Mean overall, mean and 99th percentile of small flows of the authors' runs: MQ-ECN's as its
/// scripts print them, the others computed from the output.
type Printed = (f64, f64, f64);

#[test]
fn the_authors_means_are_those_of_their_run() {
    let printed: [(&str, &[Printed]); 3] = [
        (
            "mq-ecn",
            &[
                (3625.6, 240.8, 1535.9),
                (3578.9, 190.0, 823.4),
                (3737.0, 155.9, 468.3),
            ],
        ),
        (
            "ear",
            &[
                (16266.7, 412.7, 2261.0),
                (15975.0, 397.8, 2856.7),
                (15874.7, 402.5, 2817.6),
            ],
        ),
        ("qjump", &[(12644.4, 42.3, 89.7), (12413.4, 101.1, 419.2)]),
    ];
    for (name, schemes) in printed {
        let simulator = Simulator::find(name).unwrap();
        for (reference, &(all, small, p99)) in simulator.references.iter().zip(schemes) {
            let outcome = simulator.theirs(reference).unwrap();
            assert!((outcome.all - all).abs() < 0.06, "{outcome:?}");
            assert!((outcome.small - small).abs() < 0.06, "{outcome:?}");
            assert!((outcome.small_p99 - p99).abs() < 0.06, "{outcome:?}");
        }
    }
}

/// The first hundred flows alone. Those that ended in the authors' run before the next one began
/// know nothing of it.
#[test]
fn the_first_flows_take_what_they_take_in_the_authors_runs() {
    const FIRST: usize = 100;
    let schemes = SIMULATORS.iter().flat_map(|simulator| {
        let references = simulator.references.iter();
        references.map(move |reference| (simulator, reference))
    });
    for (simulator, reference) in schemes {
        let scenario = simulator.scenario(reference, 0).unwrap();
        let flows = simulator.flows(&scenario).unwrap();
        let next = flows[FIRST].start.as_secs_f64() * 1e6;
        let first = moved(&flows[..FIRST], 0);
        let ours = simulate(&scenario, first, &AtomicBool::new(false)).unwrap();
        let theirs = simulator.column(reference).unwrap();
        let pairs = flows.iter().zip(theirs).zip(ours.fcts);
        let alone: Vec<(f64, f64)> = pairs
            .filter_map(|((flow, theirs), ours)| Some((flow, theirs?, ours)))
            .filter(|(flow, theirs, _)| flow.start.as_secs_f64() * 1e6 + theirs < next)
            .map(|(_, theirs, ours)| (theirs, ours))
            .collect();
        let close = alone
            .iter()
            .filter(|(theirs, ours)| (ours - theirs).abs() < 0.05 * theirs);
        let (close, all) = (close.count(), alone.len());
        let label = reference.label;
        println!(
            "{}: {close} of {all} are within 5% ({label})",
            simulator.name
        );
        assert!(all >= 20, "{label}: {all} flows are too few");
        assert!(2 * close >= all, "{label}: {close} of {all}");
    }
}
