//! The result of a search: a sentence, a table and files.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use serde_json::{Value, json};
use shallows_results::frame::{Cells, Frame};
use shallows_results::interval::Interval;
use shallows_results::write_text;
use shallows_run::{BUILD_ID, Failure};

use super::goal::Keep;
use super::search::{Candidate, Pool};
use super::trials::{Standing, Trials};
use super::{Outcome, Request};
use crate::table::aligned;

/// Candidates that are shown where none is better than the scenario as it is.
const SHOWN: usize = 5;

/// The choice in one case, over the seeds of the search or over others.
pub(super) struct Row {
    /// Number of the case.
    pub(super) number: usize,
    pub(super) case: String,
    pub(super) seeds: &'static str,
    pub(super) standing: Option<Standing>,
}

/// A candidate with its standing over the seeds that it has.
pub(super) struct Tried<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) seeds: usize,
    pub(super) standing: Standing,
}

pub(super) struct Report<'a> {
    pub(super) request: &'a Request,
    pub(super) trials: &'a Trials<'a>,
    pub(super) chosen: Option<&'a Candidate>,
    pub(super) tried: Vec<Tried<'a>>,
    pub(super) rows: Vec<Row>,
}

pub(super) fn report(
    request: &Request,
    trials: &Trials<'_>,
    pool: &Pool,
    chosen: Option<&Candidate>,
    runs: usize,
) -> Result<Outcome, Failure> {
    let tried = pool.iter().filter_map(|(candidate, &seeds)| {
        let standing = trials.standing(candidate, 0..trials.searched, 1..=seeds as u64)?;
        Some(Tried {
            candidate,
            seeds,
            standing,
        })
    });
    let report = Report {
        request,
        trials,
        chosen,
        tried: tried.collect(),
        rows: rows(trials, chosen, request.seeds.max(1)),
    };
    let points = trials.knobs.iter().map(|knob| knob.points().len());
    let grid = points.product::<usize>() * trials.searched * request.seeds as usize;
    let sentence = report.sentence()?;
    let notes = report.notes();
    let front = report.front();
    let set = chosen.map_or_else(Vec::new, |chosen| trials.assignments(chosen));
    let json = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build": BUILD_ID,
        "sentence": sentence,
        "notes": notes,
        "set": set,
        "runs": runs,
        "grid": grid,
        "seeds": request.seeds,
        "comparisons": report.rows.iter().map(|row| report.row_json(row)).collect::<Vec<_>>(),
        "front": front.iter().map(|of| report.tried_json(of)).collect::<Vec<_>>(),
    });
    let mut files = vec![
        request.out.join("candidates.parquet"),
        request.out.join("tune.json"),
    ];
    report.candidates().write(&files[0])?;
    write_text(&files[1], &format!("{json:#}\n"))?;
    if let Some((figure, words)) = report.figure(&front) {
        files.extend(figure.write(&request.out, &figure.name, &request.look.applied(words))?);
    }
    Ok(Outcome {
        sentence,
        notes,
        table: report.table(),
        set,
        runs,
        grid,
        files,
        json,
    })
}

/// The choice in every case: over the seeds of the search, and over those held out.
fn rows(trials: &Trials<'_>, chosen: Option<&Candidate>, seeds: u64) -> Vec<Row> {
    let Some(chosen) = chosen else {
        return Vec::new();
    };
    let row = |case: usize, of: RangeInclusive<u64>, name| Row {
        number: case,
        case: trials.cases[case].label.clone(),
        seeds: name,
        standing: trials.standing(chosen, case..case + 1, of),
    };
    let searched = (0..trials.searched).map(|case| row(case, 1..=seeds, "of the search"));
    let held_out = (0..trials.cases.len()).map(|case| {
        let name = if case < trials.searched {
            "held out"
        } else {
            "held out, as is the scenario"
        };
        row(case, seeds + 1..=2 * seeds, name)
    });
    searched.chain(held_out).collect()
}

/// `falls by 31% (27 to 35)`, or `rises by`.
pub(super) fn change(ratio: Interval) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let (mean, low, high) = (percent(ratio.mean), percent(ratio.low), percent(ratio.high));
    let (verb, mean, low, high) = if mean < 0.0 {
        ("falls", -mean, -high, -low)
    } else {
        ("rises", mean, low, high)
    };
    let mean = rounded(mean);
    match ratio.count {
        1 => format!("{verb} by {mean}%"),
        _ => format!("{verb} by {mean}% ({} to {})", rounded(low), rounded(high)),
    }
}

/// `+0.8% (-0.2 to +1.8)`.
pub(super) fn signed(ratio: Interval) -> String {
    let percent = |ratio: f64| {
        let text = format!("{:+.1}", 100.0 * (ratio - 1.0));
        if text == "-0.0" {
            "+0.0".to_owned()
        } else {
            text
        }
    };
    let mean = percent(ratio.mean);
    match ratio.count {
        1 => format!("{mean}%"),
        _ => format!(
            "{mean}% ({} to {})",
            percent(ratio.low),
            percent(ratio.high)
        ),
    }
}

fn rounded(percent: f64) -> String {
    let text = if percent.abs() < 10.0 {
        format!("{percent:.1}")
    } else {
        format!("{percent:.0}")
    };
    if text == "-0.0" {
        "0.0".to_owned()
    } else {
        text
    }
}

impl Report<'_> {
    pub(super) fn is_chosen(&self, of: &Tried<'_>) -> bool {
        Some(of.candidate) == self.chosen
    }

    pub(super) fn over_held_out_seeds(&self) -> Option<Standing> {
        let seeds = self.request.seeds.max(1);
        let trials = self.trials;
        trials.standing(self.chosen?, 0..trials.searched, seeds + 1..=2 * seeds)
    }

    fn sentence(&self) -> Result<String, Failure> {
        let trials = self.trials;
        let goal = &trials.goal.metric.name;
        let Some(chosen) = self.chosen else {
            let bounds: Vec<String> = trials.keeps.iter().map(Keep::shown).collect();
            let within = match &bounds[..] {
                [] => String::new(),
                bounds => format!(" within {}", bounds.join(" and ")),
            };
            let tried = self.tried.len();
            return Ok(format!(
                "keep the scenario as it is: none of {tried} candidates{within} has a better {goal}"
            ));
        };
        let mut sentence = String::new();
        for (knob, &point) in trials.knobs.iter().zip(chosen) {
            if !sentence.is_empty() {
                sentence += ", ";
            }
            let (name, value) = (&knob.axis.name, &knob.points()[point].label);
            let _ = write!(sentence, "{name} = {value}");
            if let Some(before) = self.present(knob.key.as_deref())? {
                let _ = write!(sentence, " instead of {before}");
            }
        }
        let Some(standing) = self.over_held_out_seeds() else {
            return Ok(sentence + ": the runs with held-out seeds cannot all be compared");
        };
        let _ = write!(sentence, ": {goal} {}", change(standing.goal));
        for (keep, ratio) in trials.keeps.iter().zip(&standing.keeps) {
            let name = &keep.metric.name;
            let ratio = ratio.map_or_else(|| "has no ratio".to_owned(), signed);
            let _ = write!(sentence, ", {name} {ratio}");
        }
        Ok(sentence)
    }

    /// The value that a key has in the first scenario, if all scenarios agree.
    fn present(&self, key: Option<&str>) -> Result<Option<String>, Failure> {
        let Some(key) = key else {
            return Ok(None);
        };
        let mut found: Option<String> = None;
        for case in &self.trials.cases[..self.trials.searched] {
            let scenario = case.as_it_is(self.trials.registry)?;
            let (text, _) = scenario.config.resolved()?;
            let table: toml::Table = text.parse().map_err(anyhow::Error::from)?;
            let value = lookup(toml::Value::Table(table), key);
            let value = value.filter(|value| !value.is_table()).map(|value| {
                let text = value.as_str().map(str::to_owned);
                text.unwrap_or_else(|| value.to_string())
            });
            match (value, &found) {
                (None, _) => return Ok(None),
                (Some(value), Some(before)) if value != *before => return Ok(None),
                (value, _) => found = value,
            }
        }
        Ok(found)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        let keeps = self.trials.keeps.iter().map(|keep| &*keep.metric.name);
        [&*self.trials.goal.metric.name]
            .into_iter()
            .chain(keeps)
            .collect()
    }

    /// The choice in every case, or the best candidates if none was chosen.
    fn table(&self) -> String {
        let names = self.names().into_iter().map(str::to_owned);
        let cells = |standing: Option<&Standing>| -> Vec<String> {
            let Some(standing) = standing else {
                return vec!["-".to_owned(); self.names().len()];
            };
            let kept = standing.keeps.iter().copied();
            let all = [Some(standing.goal)].into_iter().chain(kept);
            all.map(|of| of.map_or_else(|| "-".to_owned(), signed))
                .collect()
        };
        let head = match self.chosen {
            Some(_) => ["scenario", "seeds"],
            None => ["candidate", "seeds"],
        };
        let head = head.map(str::to_owned);
        let mut table: Vec<Vec<String>> = vec![head.into_iter().chain(names).collect()];
        let mut add = |row: [String; 2], standing: Option<&Standing>| {
            table.push(row.into_iter().chain(cells(standing)).collect());
        };
        for row in &self.rows {
            let place = [row.case.clone(), row.seeds.to_owned()];
            add(place, row.standing.as_ref());
        }
        if self.chosen.is_none() {
            for of in self.best() {
                let label = [self.trials.label(of.candidate), of.seeds.to_string()];
                add(label, Some(&of.standing));
            }
        }
        aligned(&table, 2)
    }

    /// The first candidates by constraints and goal.
    fn best(&self) -> Vec<&Tried<'_>> {
        let cost = |of: &Tried<'_>| self.trials.goal.cost(of.standing.goal.mean);
        let mut best: Vec<&Tried<'_>> = self.tried.iter().collect();
        best.sort_by(|a, b| {
            let violation = a.standing.violation().total_cmp(&b.standing.violation());
            violation.then(cost(a).total_cmp(&cost(b)))
        });
        best.truncate(SHOWN);
        best
    }

    fn row_json(&self, row: &Row) -> Value {
        json!({ "scenario": row.case, "seeds": row.seeds, "ratios": self.ratios(row.standing.as_ref()) })
    }

    fn tried_json(&self, of: &Tried<'_>) -> Value {
        json!({
            "label": self.trials.label(of.candidate),
            "set": self.trials.assignments(of.candidate),
            "seeds": of.seeds,
            "ratios": self.ratios(Some(&of.standing)),
        })
    }

    fn ratios(&self, standing: Option<&Standing>) -> Value {
        let ratios = standing.map(|of| [Some(of.goal)].into_iter().chain(of.keeps.iter().copied()));
        let ratios = ratios.into_iter().flatten();
        let entries = self.names().into_iter().zip(ratios);
        entries
            .map(|(name, ratio)| (name.to_owned(), json!(ratio)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// Every candidate that was tried.
    fn candidates(&self) -> Frame {
        let mut frame = Frame::default();
        for (index, knob) in self.trials.knobs.iter().enumerate() {
            let of = |tried: &Tried<'_>| knob.points()[tried.candidate[index]].label.clone();
            frame.add(
                &knob.axis.name,
                Cells::Texts(self.tried.iter().map(of).collect()),
            );
        }
        let seeds = self
            .tried
            .iter()
            .map(|of| i64::try_from(of.seeds).unwrap_or(i64::MAX));
        frame.add("seeds", Cells::Integers(seeds.collect()));
        for (index, name) in self.names().into_iter().enumerate() {
            let ratio = |of: &Tried<'_>| match index {
                0 => Some(of.standing.goal),
                keep => of.standing.keeps[keep - 1],
            };
            for (end, value) in [
                ("mean", (|of: Interval| of.mean) as fn(Interval) -> f64),
                ("low", |of| of.low),
                ("high", |of| of.high),
            ] {
                let column = format!("{name}.{end}");
                if frame.column(&column).is_none() {
                    let values = self.tried.iter().map(|of| ratio(of).map(value));
                    frame.add(column, Cells::Reals(values.collect()));
                }
            }
        }
        frame
    }
}

/// The value at a dotted key.
fn lookup(value: toml::Value, key: &str) -> Option<toml::Value> {
    key.split('.').try_fold(value, |inside, part| match inside {
        toml::Value::Table(mut table) => table.remove(part),
        toml::Value::Array(mut items) => {
            let index = part
                .parse::<usize>()
                .ok()
                .filter(|index| *index < items.len())?;
            Some(items.swap_remove(index))
        }
        _ => None,
    })
}
