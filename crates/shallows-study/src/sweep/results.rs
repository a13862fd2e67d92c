//! The finished runs of a study as tables: every run, and every combination of points.

use std::sync::Arc;

use shallows_results::compare::figures_of;
use shallows_results::frame::{Cells, Frame};
use shallows_results::interval::Interval;

use crate::executor::Job;
use crate::measured::Measured;
use crate::metric::Metric;
use crate::study::Study;
use crate::study::config::NamedMetric;
use crate::study::results::{Results, mean, ratio};

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

/// The results of a study, with the values of its metrics.
#[derive(Debug)]
pub(super) struct Shown<'s> {
    pub(super) study: &'s Study,
    pub(super) results: Results<'s>,
    keys: Vec<String>,
    /// Metrics of the tables, with the values of all runs.
    pub(super) shown: Vec<(NamedMetric, Vec<Option<f64>>)>,
}

/// A combination beside the one that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    pub(super) value: Option<Interval>,
    /// Over the value compared with, seed by seed: equal seeds have equal flows.
    pub(super) ratio: Option<Interval>,
}

impl<'s> Shown<'s> {
    /// `runs` in the order of the study's jobs; those that failed are missing.
    pub(super) fn new(study: &'s Study, jobs: &[Job], runs: Vec<Option<Arc<Measured>>>) -> Self {
        let mut shown = Self {
            study,
            results: Results::new(study, runs),
            keys: jobs.iter().map(|job| job.key.clone()).collect(),
            shown: Vec::new(),
        };
        shown.shown = match &study.config.metrics[..] {
            [] => {
                let usual = USUAL.map(|name| NamedMetric {
                    name: name.to_owned(),
                    metric: Metric::try_from(name.to_owned()).expect("it is one of ours"),
                });
                // Zeros tell nothing, such as the drops of an unlimited buffer.
                let of = |metric: NamedMetric| {
                    let values = shown.values(&metric.metric);
                    let tells = values.iter().flatten().any(|&value| value != 0.0);
                    tells.then_some((metric, values))
                };
                usual.into_iter().filter_map(of).collect()
            }
            metrics => {
                let of = |metric: &NamedMetric| (metric.clone(), shown.values(&metric.metric));
                metrics.iter().map(of).collect()
            }
        };
        shown
    }

    /// A metric of every run.
    fn values(&self, metric: &Metric) -> Vec<Option<f64>> {
        let combinations = 0..self.study.combinations();
        combinations
            .flat_map(|one| self.results.exact(metric, one))
            .collect()
    }

    fn run(&self, run: usize) -> Option<&Measured> {
        let seeds = self.study.seeds.len();
        self.results.runs(run / seeds).get(run % seeds)?.as_deref()
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

    /// A combination beside the one with the first point of the first axis.
    pub(super) fn compared(&self, values: &[Option<f64>], combination: usize) -> Compared {
        let mut points = self.study.points(combination);
        if let Some(first) = points.first_mut() {
            *first = 0;
        }
        let first = self.study.combination(&points);
        Compared {
            value: mean(self.of_combination(values, combination)),
            ratio: ratio(
                self.of_combination(values, combination),
                self.of_combination(values, first),
            ),
        }
    }

    /// Every run with its axis values, its seed, its key in the store, its summary and the metrics
    /// that were asked for.
    pub(super) fn runs(&self) -> Frame {
        let seeds = &self.study.seeds;
        let of_run = |run: usize| (run / seeds.len(), seeds[run % seeds.len()]);
        let rows: Vec<usize> = (0..self.keys.len())
            .filter(|&run| self.run(run).is_some())
            .collect();
        let mut frame = Frame::default();
        self.add_axes(&mut frame, rows.iter().map(|&run| of_run(run).0));
        let number = |run: &usize| i64::try_from(of_run(*run).1).unwrap_or(i64::MAX);
        frame.add("seed", Cells::Integers(rows.iter().map(number).collect()));
        let keys = rows.iter().map(|&run| self.keys[run].clone());
        frame.add("run", Cells::Texts(keys.collect()));
        let summaries: Vec<Vec<(String, Option<f64>)>> = rows
            .iter()
            .filter_map(|&run| Some(figures_of(&self.run(run)?.summary)))
            .collect();
        // Some numbers of the summary have the names of metrics that count something else, such as
        // marks.small; the name stands for the metric here as in all tables.
        let is_metric = |name: &str| self.shown.iter().any(|(metric, _)| metric.name == name);
        if let Some(first) = summaries.first() {
            for (column, (name, _)) in first.iter().enumerate() {
                if frame.column(name).is_none() && !is_metric(name) {
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
