//! A study on the terminal.

use std::fmt::Write as _;

use shallows_results::interval::Interval;

use super::results::Shown;
use crate::study::unfinished;
use crate::table::{aligned, difference, rough, short};

impl Shown<'_> {
    /// One row a combination: its points, and each metric with its difference to the first point of
    /// the first axis. After the means come half-widths of 95% confidence intervals over seeds.
    pub(super) fn table(&self) -> String {
        let study = self.study;
        let axes = study.axes.iter().map(|axis| axis.name.clone());
        let compares = study.axes.first().is_some_and(|axis| axis.points.len() > 1);
        let metrics = self.shown.iter().flat_map(|(metric, _)| {
            let unit = match metric.metric.unit() {
                "" => metric.name.clone(),
                unit => format!("{} {unit}", metric.name),
            };
            [Some(unit), compares.then(String::new)]
                .into_iter()
                .flatten()
        });
        let mut rows: Vec<Vec<String>> = vec![axes.chain(metrics).collect()];
        for combination in 0..study.combinations() {
            let points = study.axes.iter().zip(study.points(combination));
            let mut row: Vec<String> = points
                .map(|(axis, point)| axis.points[point].label.clone())
                .collect();
            let is_first = study.points(combination).first() == Some(&0);
            for (_, values) in &self.shown {
                let compared = self.compared(values, combination);
                row.push(compared.value.map_or_else(|| "-".to_owned(), with_half));
                if compares {
                    let ratio = compared.ratio.filter(|_| !is_first);
                    row.push(ratio.map_or_else(String::new, difference));
                }
            }
            rows.push(row);
        }
        aligned(&rows, study.axes.len())
    }

    /// Explains the baseline and the seeds of the columns.
    pub(super) fn legend(&self) -> String {
        let study = self.study;
        let mut text = String::new();
        if let Some(axis) = study.axes.first().filter(|axis| axis.points.len() > 1) {
            let (name, first) = (&axis.name, &axis.points[0].label);
            let _ = writeln!(
                text,
                "percentages: relative to {name} = {first}, same seeds"
            );
        }
        let all = study.seeds.len();
        let counts = self.shown.iter().flat_map(|(_, values)| {
            let points = 0..study.combinations();
            points.filter_map(|point| Some(self.compared(values, point).value?.count))
        });
        let (fewest, most) = counts.fold((all, 0), |(fewest, most), count| {
            (fewest.min(count), most.max(count))
        });
        if most > 1 {
            let seeds = match (fewest, most) {
                _ if fewest == all => format!("{all} seeds"),
                (fewest, most) if fewest == most => format!("{most} of {all} seeds"),
                (fewest, most) => format!("{fewest} to {most} of {all} seeds"),
            };
            let _ = writeln!(text, "±: half of the 95% confidence interval over {seeds}");
        }
        for (metric, values) in &self.shown {
            if values.iter().flatten().next().is_none() {
                let needs = match metric.metric.needs() {
                    "" => String::new(),
                    needs => format!(", which needs {needs}"),
                };
                let _ = writeln!(text, "-: no run has {}{needs}", metric.name);
            }
        }
        if let Some(line) = unfinished::by_point(&self.results) {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

fn with_half(of: Interval) -> String {
    match of.count {
        1 => short(of.mean),
        _ => format!("{} ±{}", short(of.mean), rough(of.half())),
    }
}
