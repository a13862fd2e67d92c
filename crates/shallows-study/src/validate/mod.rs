//! Agreement with the simulators that papers' authors published, flow by flow.
//!
//! `data/validation/<name>/flows.csv` has flows of a published simulation with their completion
//! times in the authors' own ns-2 code. Here the same flows run through ours. A single run would
//! say little about tails: which small flow meets which large one decides its timeouts, and a
//! nanosecond decides that. So each scheme runs several times with every start moved by up to a
//! microsecond, and the spread of those runs is part of the answer.

mod outcome;
mod show;
mod simulators;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;
use shallows_core::units::Time;
use shallows_model::workload::{FlowSpec, Workload, list};
use shallows_run::examples::Example;
use shallows_run::{Failure, Options, Scenario, Setting, Simulated, World as _};

pub use self::outcome::{Outcome, Row};
use self::outcome::{Sample, rows};
use self::simulators::{Paths, Reference};
pub use self::simulators::{SIMULATORS, Simulator};

/// Starts are moved by less than this.
const JITTER: Time = Time::from_ns(1000);

/// Both simulators' results, scheme by scheme.
#[derive(Debug, Serialize)]
pub struct Validation {
    /// Name of the published simulator.
    pub simulator: &'static str,
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
    /// The comparison, measure by measure, with the goals.
    pub rows: Vec<Row>,
    /// Completion times of each flow in microseconds: theirs, and ours of the first run.
    #[serde(skip)]
    pub flows: Vec<(f64, f64)>,
}

impl Simulator {
    /// Runs its flows `runs` times for each scheme. `progress` is called after each run.
    pub fn validate(
        &'static self,
        runs: u32,
        interrupted: &AtomicBool,
        progress: &mut dyn FnMut(),
    ) -> Result<Validation, Failure> {
        let schemes = self.references.iter().map(|reference| {
            let mut agreement = SchemeAgreement {
                label: reference.label,
                theirs: self.theirs(reference)?,
                ours: Vec::new(),
                rows: Vec::new(),
                flows: Vec::new(),
            };
            for run in 0..runs {
                let sample = self.run(reference, run, interrupted)?;
                if run == 0 {
                    let pairs = self.column(reference)?.into_iter().zip(&sample.fcts);
                    let finished = pairs.filter_map(|(theirs, &ours)| Some((theirs?, ours)));
                    agreement.flows = finished.collect();
                }
                agreement.ours.push(self.outcome(reference, &sample)?);
                progress();
            }
            agreement.rows = rows(&agreement.theirs, &agreement.ours);
            Ok(agreement)
        });
        let schemes = schemes.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Validation {
            simulator: self.name,
            schemes,
        })
    }

    /// Number of runs in [`Simulator::validate`].
    pub fn runs_in_all(&self, runs: u32) -> u32 {
        runs * self.references.len() as u32
    }

    /// Our scenario of a scheme. Where paths are drawn, each run draws its own.
    fn scenario(&self, reference: &Reference, run: u32) -> Result<Scenario, Failure> {
        let example = Example::find(self.scenario).context("no such example")?;
        let settings = reference.settings.iter().copied();
        let mut settings: Vec<Setting> = settings.map(Setting::new).collect();
        if self.paths == Paths::Drawn {
            settings.push(Setting::new(format!("seed={}", run + 1)));
        }
        Ok(Scenario::parse(
            Path::new(self.scenario),
            example.text,
            &settings,
        )?)
    }

    /// The flows in the order of their starts, as the list has them.
    fn flows(&self, scenario: &Scenario) -> Result<Vec<FlowSpec>, Failure> {
        let hosts = scenario.fabric()?.hosts();
        Ok(list::parse(self.flows, hosts).with_context(|| self.file())?)
    }

    /// The authors' results for a scheme.
    fn theirs(&self, reference: &Reference) -> Result<Outcome, Failure> {
        let column = self.column(reference)?;
        let fcts = column.iter().map(|fct| fct.unwrap_or(f64::NAN)).collect();
        let mut outcome = self.outcome(reference, &Sample::without_timeouts(fcts))?;
        outcome.timeouts = reference.timeouts;
        Ok(outcome)
    }

    /// Means and tails of the flows that finished in the authors' run.
    fn outcome(&self, reference: &Reference, sample: &Sample) -> Result<Outcome, Failure> {
        let scenario = self.scenario(reference, 0)?;
        let report = &scenario.config.report;
        let column = self.column(reference)?;
        let flows = self.flows(&scenario)?;
        let finished = sample
            .of(&flows)
            .zip(column)
            .filter_map(|(flow, theirs)| theirs.map(|_| flow));
        Ok(Outcome::of(finished, report, self.timeout))
    }

    /// One run of ours.
    fn run(
        &self,
        reference: &Reference,
        run: u32,
        interrupted: &AtomicBool,
    ) -> Result<Sample, Failure> {
        let scenario = self.scenario(reference, run)?;
        let flows = moved(&self.flows(&scenario)?, run);
        simulate(&scenario, flows, interrupted)
    }

    /// The authors' completion times in microseconds, by the order of the flows.
    fn column(&self, reference: &Reference) -> Result<Vec<Option<f64>>, Failure> {
        let name = reference.column;
        let mut lines = self.flows.lines();
        let header = lines.next().unwrap_or_default();
        let place = header.split(',').position(|column| column == name);
        let place = place.with_context(|| format!("{} has no column {name}", self.file()))?;
        let read = |line: &str| -> anyhow::Result<Option<f64>> {
            let field = line.split(',').nth(place).unwrap_or_default();
            if field.is_empty() {
                return Ok(None);
            }
            let fct = field
                .parse()
                .with_context(|| format!("{name}: {field:?}"))?;
            Ok(Some(fct))
        };
        Ok(lines.map(read).collect::<anyhow::Result<_>>()?)
    }
}

/// Completion times and timeouts by the order of the list.
fn simulate(
    scenario: &Scenario,
    flows: Vec<(usize, FlowSpec)>,
    interrupted: &AtomicBool,
) -> Result<Sample, Failure> {
    let (places, flows): (Vec<usize>, Vec<FlowSpec>) = flows.into_iter().unzip();
    let workload = Workload {
        flows: flows.into(),
        ..Workload::default()
    };
    let plan = scenario.build_with(scenario.fabric()?, workload)?;
    let options = Options {
        interrupted: interrupted.into(),
        ..Options::default()
    };
    let record = Simulated.admit(plan)?.run(&options, &mut [])?.record;
    let mut sample = Sample::without_timeouts(vec![f64::NAN; places.len()]);
    for flow in &record.flows {
        let fct = flow.fct.ok_or(Failure::Interrupted)?;
        let place = places[flow.id as usize];
        sample.fcts[place] = fct.as_secs_f64() * 1e6;
        sample.timeouts[place] = flow.timeouts;
    }
    Ok(sample)
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

#[cfg(test)]
mod tests;
