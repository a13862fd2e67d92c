//! Runs of candidates and of the scenario as it is, with the metrics of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use shallows_core::registry::Registry;
use shallows_results::interval::Interval;
use shallows_run::examples::read_text;
use shallows_run::scenario::{Scenario, Setting};
use shallows_run::{Diagnostic, Failure};

use super::goal::{Goal, Keep};
use super::knob::Knob;
use super::search::{Candidate, Compare, Score};
use crate::executor::{Executor, Job};
use crate::measured;
use crate::metric::Metric;
use crate::slurm::{Cluster, Submission};
use crate::study::axis::{Axis, Point};
use crate::study::unfinished::Unfinished;

/// A scenario, or one with some of its keys set, that candidates are tried in.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) label: String,
    scenario: PathBuf,
    /// Text of the scenario as it was at the start: one search compares runs of one scenario.
    text: Arc<str>,
    set: Vec<Setting>,
}

impl Case {
    /// The scenario with settings on top of the case's own.
    fn read(&self, on_top: Vec<Setting>, registry: &Registry) -> Result<Scenario, Diagnostic> {
        let settings = [self.set.clone(), on_top].concat();
        Scenario::of_file((&self.scenario, &self.text), &settings, registry)
    }

    /// The scenario as it is.
    pub(super) fn as_it_is(&self, registry: &Registry) -> Result<Scenario, Diagnostic> {
        self.read(Vec::new(), registry)
    }
}

/// A run: a candidate, or the scenario as it is, in a case with a seed.
type Key = (Option<Candidate>, usize, u64);

/// Measurements of a run.
#[derive(Clone, Debug)]
struct Measurements {
    /// The goal and the constrained metrics.
    metrics: Vec<f64>,
    unfinished: Unfinished,
}

/// The part of a run that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The run failed.
    Run,
    /// The run does not have all metrics.
    Metric,
}

/// Every run so far.
pub(super) struct Trials<'a> {
    pub(super) goal: &'a Goal,
    pub(super) keeps: &'a [Keep],
    pub(super) knobs: &'a [Knob],
    pub(super) cases: &'a [Case],
    /// Cases that the search takes, from the first; the others are held out.
    pub(super) searched: usize,
    pub(super) executor: Executor<'a>,
    /// The cluster that makes the runs, and the directory of its files.
    pub(super) cluster: Option<(&'a Cluster, PathBuf)>,
    /// Schemes of other crates that scenarios may name.
    pub(super) registry: &'a Registry,
    values: BTreeMap<Key, Result<Measurements, Missing>>,
    /// Rounds of comparisons so far.
    rounds: usize,
}

/// A candidate compared with the scenario as it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Standing {
    /// Ratio of the goal, a mean over the cases, seed by seed; geometric over the seeds.
    pub(super) goal: Interval,
    /// Ratio of each constrained metric; absent where it is a ratio to zero.
    pub(super) keeps: Vec<Option<Interval>>,
    /// Share by which each constraint is broken in the case where it is broken most.
    pub(super) violations: Vec<f64>,
}

impl Standing {
    pub(super) fn violation(&self) -> f64 {
        self.violations.iter().copied().fold(0.0, f64::max)
    }
}

impl<'a> Trials<'a> {
    pub(super) fn new(
        goal: &'a Goal,
        keeps: &'a [Keep],
        knobs: &'a [Knob],
        (cases, searched): (&'a [Case], usize),
        executor: Executor<'a>,
        cluster: Option<(&'a Cluster, PathBuf)>,
        registry: &'a Registry,
    ) -> Self {
        Self {
            goal,
            keeps,
            knobs,
            cases,
            searched,
            executor,
            cluster,
            registry,
            values: BTreeMap::new(),
            rounds: 0,
        }
    }

    fn metrics(&self) -> impl Iterator<Item = &'a Metric> {
        let keeps = self.keeps.iter().map(|keep| &keep.metric.metric);
        [&self.goal.metric.metric].into_iter().chain(keeps)
    }

    /// Number of runs so far.
    pub(super) fn runs(&self) -> usize {
        self.values.len()
    }

    fn settings(&self, candidate: Option<&Candidate>, seed: u64) -> Vec<Setting> {
        let mut settings = Vec::new();
        for (knob, &point) in self.knobs.iter().zip(candidate.into_iter().flatten()) {
            settings.extend(knob.points()[point].set.iter().map(|assignment| Setting {
                shown: format!("{}: {assignment}", knob.place),
                assignment: assignment.clone(),
            }));
        }
        settings.push(Setting::new(format!("seed={seed}")));
        settings
    }

    /// Tries every value of every knob in every case, without a run.
    pub(super) fn check(&self) -> Result<(), Failure> {
        for case in self.cases {
            let read = |candidate: Option<&Candidate>| -> Result<(), Failure> {
                let settings = self.settings(candidate, 1);
                case.read(settings, self.registry)?.build()?;
                Ok(())
            };
            read(None)?;
            for (index, knob) in self.knobs.iter().enumerate() {
                for point in 0..knob.points().len() {
                    let mut candidate = vec![0; self.knobs.len()];
                    candidate[index] = point;
                    read(Some(&candidate))?;
                }
            }
        }
        Ok(())
    }

    /// Makes what is missing of the runs of candidates and of the scenario as it is, all of which
    /// have to have the metrics.
    pub(super) fn make(
        &mut self,
        candidates: &[Candidate],
        cases: std::ops::Range<usize>,
        seeds: std::ops::RangeInclusive<u64>,
    ) -> Result<(), Failure> {
        self.make_possible(candidates, cases, seeds)?;
        let without = self.values.iter().find_map(|(key, of)| match (key, of) {
            ((None, case, seed), Err(problem)) => Some((*case, *seed, *problem)),
            _ => None,
        });
        match without {
            None => Ok(()),
            Some(without) => Err(self.without_value(without)),
        }
    }

    /// Makes what is missing of the runs; some may fail or lack a metric. At the end of a search,
    /// its report says which.
    pub(super) fn make_possible(
        &mut self,
        candidates: &[Candidate],
        cases: std::ops::Range<usize>,
        seeds: std::ops::RangeInclusive<u64>,
    ) -> Result<(), Failure> {
        let all = [None]
            .into_iter()
            .chain(candidates.iter().cloned().map(Some));
        let mut jobs: Vec<(Key, Job)> = Vec::new();
        let keep = if self.metrics().all(Metric::is_in_summary) {
            measured::Keep::Summary
        } else {
            measured::Keep::All
        };
        for candidate in all {
            for case in cases.clone() {
                for seed in seeds.clone() {
                    let key = (candidate.clone(), case, seed);
                    if self.values.contains_key(&key) {
                        continue;
                    }
                    let of = &self.cases[case];
                    let settings = self.settings(candidate.as_ref(), seed);
                    let scenario = of.read(settings, self.registry)?;
                    jobs.push((key, Job::new(scenario, keep)?));
                }
            }
        }
        let wanted: Vec<&Job> = jobs.iter().map(|(_, job)| job).collect();
        if let Some((cluster, directory)) = &self.cluster {
            let submission = Submission {
                directory: directory.clone(),
                store: self.executor.store,
            };
            submission.submit(&wanted, cluster)?;
            let Executor {
                interrupted,
                observer,
                ..
            } = self.executor;
            submission.wait(&wanted, interrupted, observer)?;
        }
        let finished = self.executor.run(&wanted)?;
        for (key, job) in jobs {
            let run = finished.runs.get(&job.key);
            let measured = run.ok_or(Missing::Run).and_then(|run| {
                let metrics: Option<Vec<f64>> = self.metrics().map(|of| of.of(run)).collect();
                Ok(Measurements {
                    metrics: metrics.ok_or(Missing::Metric)?,
                    unfinished: Unfinished::of(&run.summary),
                })
            });
            self.values.insert(key, measured);
        }
        Ok(())
    }

    fn without_value(&self, (case, seed, missing): (usize, u64, Missing)) -> Failure {
        let label = &self.cases[case].label;
        if missing == Missing::Run {
            return anyhow!("{label} fails with seed {seed} as it is").into();
        }
        let names = self.keeps.iter().map(|keep| &*keep.metric.name);
        let names: Vec<&str> = [&*self.goal.metric.name].into_iter().chain(names).collect();
        let names = names.join(", ");
        Diagnostic::new(format!(
            "the run of {label} with seed {seed} does not have all of: {names}"
        ))
        .into()
    }

    /// The values of a metric by seed, for a candidate and for the scenario as it is.
    fn pairs(
        &self,
        candidate: &Candidate,
        metric: usize,
        case: usize,
        seeds: std::ops::RangeInclusive<u64>,
    ) -> Option<Vec<(f64, f64)>> {
        let value = |candidate: Option<Candidate>, seed| {
            let of = self.values.get(&(candidate, case, seed))?.as_ref().ok()?;
            of.metrics.get(metric).copied()
        };
        seeds
            .map(|seed| Some((value(Some(candidate.clone()), seed)?, value(None, seed)?)))
            .collect()
    }

    /// Runs of a case with some seeds that failed or lack a metric: of the scenario as it is, or of
    /// a candidate.
    pub(super) fn missing(
        &self,
        candidate: Option<&Candidate>,
        case: usize,
        seeds: std::ops::RangeInclusive<u64>,
    ) -> Vec<(u64, Missing)> {
        let missing = |seed| {
            let run = self.values.get(&(candidate.cloned(), case, seed))?;
            Some((seed, *run.as_ref().err()?))
        };
        seeds.filter_map(missing).collect()
    }

    /// Unfinished flows of the scenario as it is, and of a candidate in the same cases with the same
    /// seeds.
    pub(super) fn unfinished(&self, candidate: Option<&Candidate>) -> [Unfinished; 2] {
        let of = |key: &Key| Some(self.values.get(key)?.as_ref().ok()?.unfinished);
        let baselines = self.values.keys().filter(|(of, _, _)| of.is_none());
        let pairs = baselines.filter_map(|baseline| {
            let (_, case, seed) = *baseline;
            let chosen = match candidate {
                None => Unfinished::default(),
                Some(_) => of(&(candidate.cloned(), case, seed))?,
            };
            Some((of(baseline)?, chosen))
        });
        let (baseline, chosen): (Vec<Unfinished>, Vec<Unfinished>) = pairs.unzip();
        [baseline, chosen].map(|all| all.into_iter().sum())
    }

    /// A candidate compared with the scenario as it is; nothing if a run failed.
    pub(super) fn standing(
        &self,
        candidate: &Candidate,
        cases: std::ops::Range<usize>,
        seeds: std::ops::RangeInclusive<u64>,
    ) -> Option<Standing> {
        let over_cases = |metric: usize| -> Option<Vec<f64>> {
            let mut sums: Vec<f64> = Vec::new();
            for case in cases.clone() {
                let pairs = self.pairs(candidate, metric, case, seeds.clone())?;
                sums.resize(pairs.len(), 0.0);
                for (sum, (of, to)) in sums.iter_mut().zip(pairs) {
                    *sum += ratio(of, to);
                }
            }
            let count = cases.len() as f64;
            Some(sums.into_iter().map(|sum| sum / count).collect())
        };
        let goal = interval(&over_cases(0)?)?;
        let mut keeps = Vec::new();
        let mut violations = Vec::new();
        for (metric, keep) in (1..).zip(self.keeps) {
            keeps.push(interval(&over_cases(metric)?));
            let mut worst = 0.0_f64;
            for case in cases.clone() {
                let pairs = self.pairs(candidate, metric, case, seeds.clone())?;
                let ratios: Vec<f64> = pairs.iter().map(|(of, to)| ratio(*of, *to)).collect();
                let ratio = interval(&ratios).map_or(f64::INFINITY, |of| of.mean);
                let value = pairs.iter().map(|(of, _)| of).sum::<f64>() / pairs.len() as f64;
                let violation = keep.violation(ratio, value);
                worst = worst.max(violation);
            }
            violations.push(worst);
        }
        Some(Standing {
            goal,
            keeps,
            violations,
        })
    }

    /// The settings of a candidate, as `--set` takes them.
    pub(super) fn assignments(&self, candidate: &Candidate) -> Vec<String> {
        let points = self.knobs.iter().zip(candidate);
        points
            .flat_map(|(knob, &point)| knob.points()[point].set.clone())
            .collect()
    }

    /// Names and values of a candidate, such as `threshold = 28pkts`.
    pub(super) fn label(&self, candidate: &Candidate) -> String {
        let points = self.knobs.iter().zip(candidate);
        let labels: Vec<String> = points
            .map(|(knob, &point)| format!("{} = {}", knob.axis.name, knob.points()[point].label))
            .collect();
        labels.join(", ")
    }
}

/// The geometric mean of ratios and its interval, which is never below zero; the arithmetic one where
/// a ratio is zero.
fn interval(ratios: &[f64]) -> Option<Interval> {
    if ratios.contains(&0.0) {
        return Interval::of(ratios);
    }
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let of = Interval::of(&logarithms)?;
    Some(Interval {
        mean: of.mean.exp(),
        low: of.low.exp(),
        high: of.high.exp(),
        count: of.count,
    })
}

/// A value over the one of the scenario as it is; nothing over nothing is no change.
fn ratio(of: f64, to: f64) -> f64 {
    if of == 0.0 && to == 0.0 { 1.0 } else { of / to }
}

impl Compare for Trials<'_> {
    fn compare(&mut self, candidates: &[Candidate], seeds: usize) -> Result<(), Failure> {
        self.rounds += 1;
        let before = self.runs();
        self.make(candidates, 0..self.searched, 1..=seeds as u64)?;
        let (round, runs) = (self.rounds, self.runs() - before);
        let count = match candidates.len() {
            1 => "1 candidate".to_owned(),
            count => format!("{count} candidates"),
        };
        let words = format!("round {round}: {count} over {seeds} seeds, {runs} runs");
        self.executor.observer.note(&words);
        Ok(())
    }

    fn score(&self, candidate: &Candidate, seeds: usize) -> Score {
        match self.standing(candidate, 0..self.searched, 1..=seeds as u64) {
            Some(of) => Score {
                violation: of.violation(),
                cost: self.goal.cost(of.goal.mean),
            },
            None => Score::FAILED,
        }
    }
}

/// The cases of scenarios, crossed with the values of `--across`, and those that are held out: other
/// scenarios, and these at other values of a key.
pub(super) fn cases(
    scenarios: &[PathBuf],
    across: &[Axis],
    (held_out, held_out_at): (&[PathBuf], &[Axis]),
    set: &[Setting],
) -> Result<(Vec<Case>, usize), Diagnostic> {
    let stem = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    let of = |scenario: &PathBuf| -> Result<Case, Diagnostic> {
        Ok(Case {
            label: stem(scenario),
            scenario: scenario.clone(),
            text: read_text(scenario)?.into(),
            set: set.to_vec(),
        })
    };
    let mut cases: Vec<Case> = scenarios.iter().map(of).collect::<Result<_, _>>()?;
    for axis in across {
        cases = at_all("--across", &cases, axis);
    }
    let searched = cases.len();
    for axis in held_out_at {
        let elsewhere = at_all("--held-out-at", &cases[..searched], axis);
        cases.extend(elsewhere);
    }
    for scenario in held_out {
        cases.push(of(scenario)?);
    }
    let mut labels = BTreeSet::new();
    if let Some(twice) = cases.iter().find(|case| !labels.insert(&case.label)) {
        let problem = format!("two scenarios are called {}", twice.label);
        return Err(Diagnostic::new(problem));
    }
    Ok((cases, searched))
}

/// Each case at each point of an axis.
fn at_all(option: &str, cases: &[Case], axis: &Axis) -> Vec<Case> {
    let at = |case: &Case, point: &Point| {
        let mut case = case.clone();
        let _ = write!(case.label, ", {} = {}", axis.name, point.label);
        case.set.extend(point.set.iter().map(|assignment| Setting {
            shown: format!("{option} {assignment}"),
            assignment: assignment.clone(),
        }));
        case
    };
    let points = |case| axis.points.iter().map(move |point| at(case, point));
    cases.iter().flat_map(points).collect()
}
