//! The finished runs of a study: values, means and what is written of them.

use std::sync::Arc;

use shallows_results::compare::figures_of;
use shallows_results::frame::{Cells, Frame};
use shallows_results::interval::Interval;

use super::config::NamedMetric;
use super::study::Study;
use crate::executor::Job;
use crate::measured::Measured;
use crate::metric::Metric;

/// Metrics of a study that names none.
const USUAL: [&str; 7] = [
    "all.mean",
    "small.p99",
    "large.mean",
    "timeouts",
    "drops",
    "marks",
    "rtt.mean",
];

/// Runs in the order of the study's jobs; those that failed are missing.
#[derive(Debug)]
pub(super) struct Results<'s> {
    pub(super) study: &'s Study,
    keys: Vec<String>,
    runs: Vec<Option<Arc<Measured>>>,
    /// Shown metrics, with the values of all runs.
    pub(super) shown: Vec<(NamedMetric, Vec<Option<f64>>)>,
}

/// A combination beside the one that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    pub(super) value: Option<Interval>,
    /// Over the value compared with, seed by seed: equal seeds have equal flows.
    pub(super) ratio: Option<Interval>,
}

impl<'s> Results<'s> {
    pub(super) fn new(study: &'s Study, jobs: &[Job], runs: Vec<Option<Arc<Measured>>>) -> Self {
        let mut results = Self {
            study,
            keys: jobs.iter().map(|job| job.key.clone()).collect(),
            runs,
            shown: Vec::new(),
        };
        results.shown = match &study.metrics[..] {
            [] => {
                let usual = USUAL.map(|name| NamedMetric {
                    name: name.to_owned(),
                    metric: Metric::try_from(name.to_owned()).expect("it is one of ours"),
                });
                // Zeros tell nothing, such as the drops of an unlimited buffer.
                let of = |metric: NamedMetric| {
                    let values = results.values(&metric.metric);
                    let tells = values.iter().flatten().any(|&value| value != 0.0);
                    tells.then_some((metric, values))
                };
                usual.into_iter().filter_map(of).collect()
            }
            metrics => {
                let of = |metric: &NamedMetric| (metric.clone(), results.values(&metric.metric));
                metrics.iter().map(of).collect()
            }
        };
        results
    }

    /// A metric of every run.
    pub(super) fn values(&self, metric: &Metric) -> Vec<Option<f64>> {
        let runs = self.runs.iter();
        runs.map(|run| metric.of(run.as_ref()?)).collect()
    }

    /// Values of one combination, one for each seed.
    fn of_combination<'v>(
        &self,
        values: &'v [Option<f64>],
        combination: usize,
    ) -> &'v [Option<f64>] {
        let seeds = self.study.seeds.len();
        &values[combination * seeds..][..seeds]
    }

    /// The mean of a combination over the seeds whose runs have a value.
    pub(super) fn mean(&self, values: &[Option<f64>], combination: usize) -> Option<Interval> {
        let values = self.of_combination(values, combination).iter();
        let values: Vec<f64> = values.copied().flatten().collect();
        Interval::of(&values)
    }

    /// The mean over seeds of one combination's value over another's.
    pub(super) fn ratio(&self, values: &[Option<f64>], of: usize, to: usize) -> Option<Interval> {
        let [of, to] = [of, to].map(|combination| self.of_combination(values, combination));
        let pairs = of.iter().zip(to);
        let ratios: Vec<f64> = pairs
            .filter_map(|(of, to)| Some((*of)? / (*to).filter(|&to| to != 0.0)?))
            .collect();
        Interval::of(&ratios)
    }

    /// A combination beside the one with the first point of the first axis.
    pub(super) fn compared(&self, values: &[Option<f64>], combination: usize) -> Compared {
        let mut points = self.study.points(combination);
        if let Some(first) = points.first_mut() {
            *first = 0;
        }
        let first = self.study.combination(&points);
        Compared {
            value: self.mean(values, combination),
            ratio: self.ratio(values, combination, first),
        }
    }

    /// Every run with its axis values, its seed, its key in the store, its summary and the metrics
    /// that were asked for.
    pub(super) fn runs(&self) -> Frame {
        let seeds = &self.study.seeds;
        let of_run = |run: usize| (run / seeds.len(), seeds[run % seeds.len()]);
        let rows: Vec<usize> = (0..self.runs.len())
            .filter(|&run| self.runs[run].is_some())
            .collect();
        let mut frame = Frame::default();
        self.add_axes(&mut frame, rows.iter().map(|&run| of_run(run).0));
        let number = |run: &usize| i64::try_from(of_run(*run).1).unwrap_or(i64::MAX);
        frame.add("seed", Cells::Integers(rows.iter().map(number).collect()));
        let keys = rows.iter().map(|&run| self.keys[run].clone());
        frame.add("run", Cells::Texts(keys.collect()));
        let summaries: Vec<Vec<(String, Option<f64>)>> = rows
            .iter()
            .filter_map(|&run| Some(figures_of(&self.runs[run].as_ref()?.summary)))
            .collect();
        if let Some(first) = summaries.first() {
            for (column, (name, _)) in first.iter().enumerate() {
                if frame.column(name).is_none() {
                    let values = summaries.iter().map(|summary| summary[column].1);
                    frame.add(name, Cells::Reals(values.collect()));
                }
            }
        }
        for (metric, values) in &self.shown {
            if frame.column(&metric.name).is_none() {
                let values = rows.iter().map(|&run| values[run]);
                frame.add(&metric.name, Cells::Reals(values.collect()));
            }
        }
        frame
    }

    /// Every combination and metric: mean, 95% confidence interval, and the ratio to the first
    /// point of the first axis.
    pub(super) fn points(&self) -> Frame {
        let combinations = self.study.combinations();
        let rows = || (0..combinations).flat_map(|one| self.shown.iter().map(move |of| (one, of)));
        let mut frame = Frame::default();
        self.add_axes(&mut frame, rows().map(|(combination, _)| combination));
        let names = rows().map(|(_, (metric, _))| metric.name.clone());
        frame.add("metric", Cells::Texts(names.collect()));
        let compared: Vec<Compared> = rows()
            .map(|(combination, (_, values))| self.compared(values, combination))
            .collect();
        let count = |of: &Compared| {
            of.value
                .map_or(0, |value| i64::try_from(value.count).unwrap_or(i64::MAX))
        };
        frame.add(
            "seeds",
            Cells::Integers(compared.iter().map(count).collect()),
        );
        let ends = |interval: Option<Interval>| {
            interval.map_or([None; 3], |of| [of.mean, of.low, of.high].map(Some))
        };
        for (prefix, of) in [
            (
                "",
                (|one: &Compared| one.value) as fn(&Compared) -> Option<Interval>,
            ),
            ("ratio_", |one: &Compared| one.ratio),
        ] {
            for (index, name) in ["mean", "low", "high"].into_iter().enumerate() {
                let values = compared.iter().map(|one| ends(of(one))[index]);
                frame.add(format!("{prefix}{name}"), Cells::Reals(values.collect()));
            }
        }
        frame
    }

    fn add_axes(&self, frame: &mut Frame, combinations: impl Iterator<Item = usize>) {
        let points: Vec<Vec<usize>> = combinations.map(|one| self.study.points(one)).collect();
        for (index, axis) in self.study.axes.iter().enumerate() {
            let of = |points: &Vec<usize>| &axis.points[points[index]];
            let plain = axis
                .points
                .iter()
                .all(|point| point.label.parse::<f64>().is_ok());
            let cells = if plain && axis.is_numeric() {
                Cells::Reals(points.iter().map(|points| of(points).number).collect())
            } else {
                Cells::Texts(
                    points
                        .iter()
                        .map(|points| of(points).label.clone())
                        .collect(),
                )
            };
            frame.add(&axis.name, cells);
        }
    }
}
