//! Agreement with the simulator of a paper's authors, flow by flow.
//!
//! `data/validation/mq-ecn/flows.csv` has 5,000 flows of MQ-ECN's simulations at 50% load with their
//! completion times in the authors' own ns-2 code, for three marking schemes. Here the same flows
//! run through ours. A single run would say little about tails: which small flow meets which large
//! one decides its timeouts, and a nanosecond decides that. So each scheme runs several times with
//! every start moved by up to a microsecond, and the spread of those runs is part of the answer.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;
use shallows_core::units::Time;
use shallows_model::workload::{FlowSpec, Workload, list};
use shallows_results::figure::{Axis, Curve, Extent, Figure, Origin, Panel, Plot, Point};
use shallows_run::examples::Example;
use shallows_run::{Failure, Options, Scenario, Setting, Simulated, World as _};

/// The flows and what the authors' simulator made of them.
const FLOWS: &str = include_str!("../data/validation/mq-ecn/flows.csv");
/// The example with the fabric and the transport of the authors' simulator.
const SCENARIO: &str = "mq-ecn-as-simulated";

/// Starts are moved by less than this.
const JITTER: Time = Time::from_ns(1000);

/// The authors' bins: small below 100 KiB, large above 10 MiB.
const SMALL: u64 = 100 * 1024;
const LARGE: u64 = 10 * 1024 * 1024;
/// A small flow that takes longer has waited for a retransmission timeout, the least of which this
/// is, in microseconds.
const TIMEOUT: f64 = 5_000.0;

/// A marking scheme that both simulators have.
struct Reference {
    label: &'static str,
    column: &'static str,
    marker: Option<&'static str>,
    /// Timeouts in the authors' run.
    timeouts: u32,
}

const REFERENCES: [Reference; 3] = [
    Reference {
        label: "Standard threshold",
        column: "standard_us",
        marker: Some("ports.switch.marker.scheme={ per-queue = { threshold = '65pkts' } }"),
        timeouts: 157,
    },
    Reference {
        label: "MQ-ECN",
        column: "mq_ecn_us",
        marker: None,
        timeouts: 20,
    },
    Reference {
        label: "Minimum threshold",
        column: "minimum_us",
        marker: Some("ports.switch.marker.scheme={ per-queue = { threshold = '8.125pkts' } }"),
        timeouts: 0,
    },
];

/// Both simulators' results, scheme by scheme.
#[derive(Debug, Serialize)]
pub struct Validation {
    /// The schemes, in the order of the paper.
    pub schemes: Vec<SchemeAgreement>,
}

/// One scheme in both simulators.
#[derive(Debug, Serialize)]
pub struct SchemeAgreement {
    /// Its name.
    pub label: &'static str,
    /// The authors' run.
    pub theirs: Outcome,
    /// Ours, the first with the starts as they are.
    pub ours: Vec<Outcome>,
    /// Completion times of each flow in microseconds: theirs, and ours of the first run.
    #[serde(skip)]
    pub flows: Vec<(f64, f64)>,
}

/// Result of a run: completion times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Mean of all flows.
    pub all: f64,
    /// Mean of small flows.
    pub small: f64,
    /// The authors' 99th percentile of small flows, `sorted[99n/100]`.
    pub small_p99: f64,
    /// Mean of medium flows.
    pub medium: f64,
    /// Mean of large flows.
    pub large: f64,
    /// Small flows that waited for a timeout.
    pub waited: u32,
    /// Timeouts of all flows.
    pub timeouts: u32,
}

/// Runs MQ-ECN's flows `runs` times for each scheme. `progress` hears the number of runs done.
pub fn mq_ecn(
    runs: u32,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(u32),
) -> Result<Validation, Failure> {
    let mut done = 0;
    let mut schemes = Vec::new();
    for reference in &REFERENCES {
        let settings: Vec<Setting> = reference.marker.map(Setting::new).into_iter().collect();
        let example = Example::find(SCENARIO).context("no such example")?;
        let scenario = Scenario::parse(Path::new(SCENARIO), example.text, &settings)?;
        let hosts = scenario.fabric()?.hosts();
        let flows = list::parse(FLOWS, hosts).context("data/validation/mq-ecn/flows.csv")?;
        let theirs = column(reference.column)?;
        let sizes: Vec<u64> = flows.iter().map(|flow| flow.bytes).collect();
        let mut agreement = SchemeAgreement {
            label: reference.label,
            theirs: Outcome::of(&sizes, &theirs, reference.timeouts),
            ours: Vec::new(),
            flows: Vec::new(),
        };
        for run in 0..runs {
            let (fcts, timeouts) = simulate(&scenario, moved(&flows, run), interrupted)?;
            agreement.ours.push(Outcome::of(&sizes, &fcts, timeouts));
            if run == 0 {
                agreement.flows = theirs.iter().copied().zip(fcts).collect();
            }
            done += 1;
            progress(done);
        }
        schemes.push(agreement);
    }
    Ok(Validation { schemes })
}

/// Total number of runs of [`mq_ecn`].
pub fn runs_in_all(runs: u32) -> u32 {
    runs * REFERENCES.len() as u32
}

/// Completion times in microseconds by the order of the flows, and the timeouts.
fn simulate(
    scenario: &Scenario,
    flows: Vec<(usize, FlowSpec)>,
    interrupted: &AtomicBool,
) -> Result<(Vec<f64>, u32), Failure> {
    let (places, flows): (Vec<usize>, Vec<FlowSpec>) = flows.into_iter().unzip();
    let workload = Workload {
        flows,
        ..Workload::default()
    };
    let plan = scenario.build_with(scenario.fabric()?, workload)?;
    let options = Options {
        interrupted: interrupted.into(),
        ..Options::default()
    };
    let record = Simulated.admit(plan)?.run(&options, &mut [])?.record;
    let mut fcts = vec![f64::NAN; places.len()];
    for flow in &record.flows {
        let fct = flow.fct.ok_or(Failure::Interrupted)?;
        fcts[places[flow.id as usize]] = fct.as_secs_f64() * 1e6;
    }
    let timeouts = record.flows.iter().map(|flow| flow.timeouts).sum();
    Ok((fcts, timeouts))
}

/// The flows in the order of their starts, each with its place in the list; moved but for run 0.
fn moved(flows: &[FlowSpec], run: u32) -> Vec<(usize, FlowSpec)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(run));
    let mut moved: Vec<(usize, FlowSpec)> = flows.iter().copied().enumerate().collect();
    if run > 0 {
        for (_, flow) in &mut moved {
            flow.start += Time::from_ps(random.next_u64() % JITTER.ps());
        }
        moved.sort_by_key(|(_, flow)| flow.start);
    }
    moved
}

/// A column of the authors' results, by the order of the flows.
fn column(name: &str) -> Result<Vec<f64>, Failure> {
    let mut lines = FLOWS.lines();
    let header = lines.next().unwrap_or_default();
    let place = header.split(',').position(|column| column == name);
    let place = place.with_context(|| format!("flows.csv has no column {name}"))?;
    let read = |line: &str| -> anyhow::Result<f64> {
        let field = line.split(',').nth(place).unwrap_or_default();
        field.parse().with_context(|| format!("{name}: {field:?}"))
    };
    Ok(lines.map(read).collect::<anyhow::Result<_>>()?)
}

impl Outcome {
    fn of(sizes: &[u64], fcts: &[f64], timeouts: u32) -> Self {
        let class = |wanted: fn(u64) -> bool| -> Vec<f64> {
            let flows = sizes.iter().zip(fcts);
            let wanted = flows.filter(|&(&bytes, _)| wanted(bytes));
            wanted.map(|(_, &fct)| fct).collect()
        };
        let mut small = class(|bytes| bytes < SMALL);
        small.sort_unstable_by(f64::total_cmp);
        Self {
            all: mean(fcts),
            small: mean(&small),
            small_p99: small[99 * small.len() / 100],
            medium: mean(&class(|bytes| (SMALL..=LARGE).contains(&bytes))),
            large: mean(&class(|bytes| bytes > LARGE)),
            waited: small.iter().filter(|&&fct| fct > TIMEOUT).count() as u32,
            timeouts,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Validation {
    /// Each flow in both simulators, a panel for each scheme.
    pub fn figure(&self) -> Figure {
        let panel = |scheme: &SchemeAgreement| Panel {
            title: scheme.label.to_owned(),
            x: Axis::new("FCT in the authors' ns-2 (us)", Extent::Data).logarithmic(),
            y: Axis::new("FCT in Shallows (us)", Extent::Data).logarithmic(),
            plot: Plot::Scatter(vec![Curve {
                origin: Origin::Simulated,
                label: "a flow".to_owned(),
                style: 0,
                points: scheme
                    .flows
                    .iter()
                    .map(|&(theirs, ours)| Point::new(theirs, ours))
                    .collect(),
            }]),
        };
        Figure {
            name: "validate-mq-ecn".to_owned(),
            alt: "Completion time of each flow in the authors' simulator and in Shallows"
                .to_owned(),
            panels: self.schemes.iter().map(panel).collect(),
        }
    }
}

impl Outcome {
    /// The rows of the table.
    fn rows(&self) -> [(&'static str, f64); 7] {
        [
            ("all, mean", self.all),
            ("small, mean", self.small),
            ("small, p99", self.small_p99),
            ("medium, mean", self.medium),
            ("large, mean", self.large),
            ("small, waited", f64::from(self.waited)),
            ("timeouts", f64::from(self.timeouts)),
        ]
    }
}

/// Flows of the start of a run, before the smallest difference has grown.
const FIRST: usize = 100;

impl SchemeAgreement {
    /// Percentage of the flows whose times agree in both simulators to within this fraction.
    fn within(&self, fraction: f64) -> f64 {
        let close = |&&(theirs, ours): &&(f64, f64)| (ours - theirs).abs() <= fraction * theirs;
        100.0 * self.flows.iter().filter(close).count() as f64 / self.flows.len() as f64
    }

    /// Number of first flows whose times agree to 10 ns.
    fn same_at_first(&self) -> usize {
        let first = self.flows.iter().take(FIRST);
        first
            .filter(|(theirs, ours)| (ours - theirs).abs() < 0.01)
            .count()
    }
}

impl Display for Validation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for scheme in &self.schemes {
            let runs = scheme.ours.len();
            writeln!(f, "{} ({runs} runs)", scheme.label)?;
            writeln!(
                f,
                "  {:<14}{:>12}{:>12}{:>9}   our runs from, to",
                "FCT in us", "authors", "ours", ""
            )?;
            for (row, (name, theirs)) in scheme.theirs.rows().into_iter().enumerate() {
                let ours = scheme.ours.iter().map(|outcome| outcome.rows()[row].1);
                let mut ours: Vec<f64> = ours.collect();
                ours.sort_unstable_by(f64::total_cmp);
                let median = ours[ours.len() / 2];
                let difference = match theirs {
                    0.0 => String::new(),
                    _ => format!("{:+.1}%", 100.0 * (median / theirs - 1.0)),
                };
                let (least, most) = (ours[0], ours[ours.len() - 1]);
                writeln!(
                    f,
                    "  {name:<14}{theirs:>12.1}{median:>12.1}{difference:>9}   {least:.1}, {most:.1}"
                )?;
            }
            writeln!(
                f,
                "  flow by flow: {} of the first {FIRST} the same to 10 ns; of all {:.0}% within 1%, {:.0}% within 5%",
                scheme.same_at_first(),
                scheme.within(0.01),
                scheme.within(0.05)
            )?;
        }
        writeln!(
            f,
            "ours is the median of the runs, which differ by at most 1 us in each flow's start"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_by_hand() {
        let sizes = [1_460, 102_400, 10_485_760, 10_485_761];
        let outcome = Outcome::of(&sizes, &[10.0, 20.0, 40.0, 90.0], 3);
        assert_eq!(
            outcome,
            Outcome {
                all: 40.0,
                small: 10.0,
                small_p99: 10.0,
                medium: 30.0,
                large: 90.0,
                waited: 0,
                timeouts: 3,
            }
        );
        let late = Outcome::of(&[1_460, 1_460, 102_400, 10_485_761], &[5_001.0; 4], 4);
        assert_eq!(late.waited, 2);
    }

    #[test]
    fn the_authors_means_are_those_of_their_run() {
        let flows = list::parse(FLOWS, 144).unwrap();
        let sizes: Vec<u64> = flows.iter().map(|flow| flow.bytes).collect();
        // Mean overall, mean and 99th percentile of small flows, as their scripts print them.
        let printed = [
            (3625.6, 240.8, 1535.9),
            (3578.9, 190.0, 823.4),
            (3737.0, 155.9, 468.3),
        ];
        for (reference, (all, small, p99)) in REFERENCES.iter().zip(printed) {
            let theirs = column(reference.column).unwrap();
            let outcome = Outcome::of(&sizes, &theirs, reference.timeouts);
            assert!((outcome.all - all).abs() < 0.06, "{outcome:?}");
            assert!((outcome.small - small).abs() < 0.06, "{outcome:?}");
            assert!((outcome.small_p99 - p99).abs() < 0.06, "{outcome:?}");
        }
    }

    #[test]
    fn flows_agree_by_hand() {
        let outcome = Outcome::of(&[1_460, 102_400, 10_485_761], &[1.0, 1.0, 1.0], 0);
        let scheme = SchemeAgreement {
            label: "",
            theirs: outcome,
            ours: vec![outcome],
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
        let flows = list::parse(FLOWS, 144).unwrap();
        let unmoved = moved(&flows, 0);
        assert!(unmoved.iter().map(|(_, flow)| flow).eq(&flows));
        for (place, flow) in moved(&flows, 1) {
            let by = flow.start - flows[place].start;
            assert!(by < JITTER);
        }
    }
}
