//! From a study file, or from `--vary`, to runs.

use std::path::{Path, PathBuf};

use shallows_core::registry::Registry;
use shallows_run::examples::Example;
use shallows_run::scenario::{Document, Scenario, Setting};
use shallows_run::{Diagnostic, Failure};

use super::axis::{Axis, Point};
use super::config::{FigureConfig, NamedMetric, Seeds, StudyConfig, sets_seed, shown};
use crate::executor::Job;
use crate::measured::Keep;
use crate::metric::Metric;

/// Most runs of a study: their scenarios and rows, 18 KB each, have to fit into memory.
const MOST_RUNS: usize = 100_000;

/// A scenario, what is varied in it, and what is wanted of the runs.
#[derive(Debug)]
pub struct Study {
    /// Name of its results.
    pub name: String,
    pub(super) title: String,
    pub(super) scenario: PathBuf,
    /// Settings of all runs.
    set: Vec<Setting>,
    pub(super) axes: Vec<Axis>,
    /// Place of each point of each axis in the file.
    places: Vec<Vec<String>>,
    pub(super) seeds: Vec<u64>,
    keep: Keep,
    /// Empty if the study does not say.
    pub(super) metrics: Vec<NamedMetric>,
    /// Empty if the study does not say.
    pub(super) figures: Vec<FigureConfig>,
    /// As it was written.
    pub(super) text: String,
    /// Schemes of other crates that scenarios may name.
    registry: Registry,
}

/// Settings of a command on top of a study.
#[derive(Clone, Debug, Default)]
pub struct OnTop {
    /// Settings of all runs.
    pub set: Vec<Setting>,
    /// Number of seeds, from 1 on.
    pub seeds: Option<u64>,
    /// Schemes of other crates that scenarios may name.
    pub registry: Registry,
}

impl Study {
    /// Reads a study file, or one that is built in by its name.
    pub fn read(path: &Path, on_top: &OnTop) -> Result<Self, Failure> {
        let document: Document<StudyConfig> = Document::read(path)?;
        let config = &document.content;
        let mut axes: Vec<Axis> = Vec::new();
        let mut places = Vec::new();
        for (index, axis) in config.axis.iter().enumerate() {
            let at = format!("axis.{index}");
            let built = Axis::new(axis);
            let built = built
                .map_err(|error| document.error(&format!("{at}.{}", error.key), error.problem))?;
            if axes.iter().any(|earlier| earlier.name == built.name) {
                let problem = format!("two axes are called {:?}; give one a name", built.name);
                return Err(document.error(&at, problem).into());
            }
            let place = |point: usize| match axis.point.is_empty() {
                true => document.place(&format!("{at}.values")),
                false => document.place(&format!("{at}.point.{point}")),
            };
            places.push((0..built.points.len()).map(place).collect());
            axes.push(built);
        }
        let seeds = match on_top.seeds {
            Some(count) => Seeds::Count(count)
                .list(MOST_RUNS)
                .map_err(|problem| Diagnostic::new(format!("--seeds: {problem}")))?,
            None => (config.seeds.list(MOST_RUNS))
                .map_err(|problem| document.error("seeds", problem))?,
        };
        if let Some(index) = config.set.iter().position(|one| sets_seed(one)) {
            let problem = "the seeds of a study are those of `seeds`; write seeds = [7]";
            return Err(document.error(&format!("set.{index}"), problem).into());
        }
        if let Some(setting) = on_top.set.iter().find(|one| sets_seed(&one.assignment)) {
            let problem = format!(
                "{}: the seeds of a study are those of `seeds`, or from 1 to N with --seeds N",
                setting.shown
            );
            return Err(Diagnostic::new(problem).into());
        }
        for (index, metric) in config.metrics.iter().enumerate() {
            check_metric(
                &document,
                config.keep,
                &format!("metrics.{index}"),
                &metric.metric,
            )?;
        }
        check_figures(&document, &axes)?;
        let of_file = config
            .set
            .iter()
            .enumerate()
            .map(|(index, assignment)| Setting {
                shown: format!("{}: {assignment}", document.place(&format!("set.{index}"))),
                assignment: assignment.clone(),
            });
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let study = Self {
            name: config.name.clone().unwrap_or_else(|| stem.into_owned()),
            title: config.title.clone(),
            scenario: scenario_of(path, &config.scenario),
            set: of_file.chain(on_top.set.iter().cloned()).collect(),
            axes,
            places,
            seeds,
            keep: config.keep,
            metrics: config.metrics.clone(),
            figures: config.figure.clone(),
            text: document.text().to_owned(),
            registry: on_top.registry.clone(),
        };
        let is_plain = |c: char| !c.is_control() && !['/', '\\', ':'].contains(&c);
        if study.name.is_empty() || study.name.starts_with('.') || !study.name.chars().all(is_plain)
        {
            let problem = format!("{:?} is not a valid name of a directory of results", study.name);
            return Err(document.error("name", problem).into());
        }
        if study.combinations().saturating_mul(study.seeds.len()) > MOST_RUNS {
            let problem = format!("axes and seeds make more than {MOST_RUNS} runs");
            return Err(document.error("axis", problem).into());
        }
        Ok(study)
    }

    /// A scenario with some keys varied, as `--vary KEY=A,B,C` says, each with the seeds from 1 to
    /// `on_top.seeds`, or else with the scenario's own.
    pub fn vary(
        scenario: &Path,
        vary: &[String],
        on_top: &OnTop,
        metrics: &[String],
    ) -> Result<Self, Failure> {
        let OnTop {
            set,
            seeds,
            registry,
        } = on_top;
        let wrong = |problem: String| Failure::Scenario(Diagnostic::new(problem));
        let seeds = match *seeds {
            None => vec![Scenario::read_with(scenario, set, registry)?.config.seed],
            Some(_) if set.iter().any(|one| sets_seed(&one.assignment)) => {
                return Err(wrong(
                    "--seeds N are from 1 to N; leave out the seed".to_owned(),
                ));
            }
            Some(count) => {
                let seeds = Seeds::Count(count).list(MOST_RUNS);
                seeds.map_err(|problem| wrong(format!("--seeds: {problem}")))?
            }
        };
        let mut axes: Vec<Axis> = Vec::new();
        for one in vary {
            let mut axis = axis_of("--vary", one).map_err(wrong)?;
            if axes.iter().any(|earlier| earlier.name == axis.name) {
                let key = one.split('=').next().unwrap_or(one);
                key.trim().clone_into(&mut axis.name);
            }
            if axes.iter().any(|earlier| earlier.name == axis.name) {
                return Err(wrong(format!("--vary {one}: the key is varied twice")));
            }
            axes.push(axis);
        }
        let metrics = metrics
            .iter()
            .map(|name| NamedMetric::try_from(name.clone()));
        let metrics: Result<Vec<NamedMetric>, String> = metrics.collect();
        let stem = scenario.file_stem().unwrap_or_default().to_string_lossy();
        // Another `--vary` does not replace its results.
        let varied: Vec<&str> = axes.iter().map(|axis| &*axis.name).collect();
        let is_plain = |c: char| c.is_alphanumeric() || ['-', '_', '.'].contains(&c);
        let varied = varied.join("-").replace(|c| !is_plain(c), "-");
        let study = Self {
            name: format!("{stem}-vary-{varied}"),
            title: String::new(),
            scenario: scenario.to_owned(),
            set: set.clone(),
            places: axes
                .iter()
                .zip(vary)
                .map(|(axis, one)| vec![format!("--vary {one}"); axis.points.len()])
                .collect(),
            axes,
            seeds,
            keep: Keep::All,
            metrics: metrics.map_err(wrong)?,
            figures: Vec::new(),
            text: String::new(),
            registry: registry.clone(),
        };
        if study.combinations().saturating_mul(study.seeds.len()) > MOST_RUNS {
            return Err(wrong(format!("--vary: more than {MOST_RUNS} runs")));
        }
        Ok(study)
    }

    /// Number of combinations of the axes' points.
    pub(super) fn combinations(&self) -> usize {
        let lengths = self.axes.iter().map(|axis| axis.points.len());
        lengths.fold(1, usize::saturating_mul)
    }

    /// The number of a combination; the last axis varies fastest.
    pub(super) fn combination(&self, points: &[usize]) -> usize {
        let axes = self.axes.iter().zip(points);
        axes.fold(0, |number, (axis, point)| {
            number * axis.points.len() + point
        })
    }

    /// The points of a combination, one for each axis.
    pub(super) fn points(&self, combination: usize) -> Vec<usize> {
        let mut rest = combination;
        let mut points = Vec::new();
        for axis in self.axes.iter().rev() {
            points.push(rest % axis.points.len());
            rest /= axis.points.len();
        }
        points.reverse();
        points
    }

    /// Every run: combination by combination, each with all seeds.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, Failure> {
        let mut jobs = Vec::new();
        for combination in 0..self.combinations() {
            for seed in &self.seeds {
                let settings = self.settings(combination, *seed);
                let scenario = Scenario::read_with(&self.scenario, &settings, &self.registry)?;
                jobs.push(Job::new(scenario, None, self.keep)?);
            }
        }
        Ok(jobs)
    }

    /// Tries every point of every axis, without running it, so that mistakes come to light before
    /// any work.
    pub(crate) fn check(&self, jobs: &[Job]) -> Result<(), Failure> {
        for (index, axis) in self.axes.iter().enumerate() {
            for point in 0..axis.points.len() {
                let mut points = vec![0; self.axes.len()];
                points[index] = point;
                let job = &jobs[self.combination(&points) * self.seeds.len()];
                job.scenario
                    .build()
                    .map_err(|error| self.at_point(error, axis, point))?;
            }
        }
        Ok(())
    }

    /// An error of a scenario, with the point of the study that it is about.
    fn at_point(&self, error: Diagnostic, axis: &Axis, point: usize) -> Diagnostic {
        if self.places.is_empty() || axis.points.len() < 2 {
            return error;
        }
        let (label, name) = (&axis.points[point].label, &axis.name);
        error.about(&format!("point {label:?} of axis {name}"))
    }

    /// In the order in which they are applied: a later one wins.
    fn settings(&self, combination: usize, seed: u64) -> Vec<Setting> {
        let points = self.points(combination);
        let axes = self.axes.iter().zip(&self.places).zip(points);
        let varied = axes.flat_map(|((axis, places), point)| {
            let (Point { set, .. }, place) = (&axis.points[point], &places[point]);
            set.iter().map(move |assignment| Setting {
                shown: format!("{place}: {assignment}"),
                assignment: assignment.clone(),
            })
        });
        let seed = Setting::new(format!("seed={seed}"));
        self.set
            .iter()
            .cloned()
            .chain(varied)
            .chain([seed])
            .collect()
    }
}

/// The scenario that a study names: relative to its file, and for a study that is built in one that
/// is built in too.
fn scenario_of(study: &Path, named: &Path) -> PathBuf {
    match Example::at(study) {
        Some(_) => named
            .with_extension("")
            .file_name()
            .unwrap_or_default()
            .into(),
        None => study.parent().unwrap_or(Path::new("")).join(named),
    }
}

/// The axis that `--vary KEY=A,B,C`, or an option like it, describes.
pub(crate) fn axis_of(option: &str, vary: &str) -> Result<Axis, String> {
    let Some((key, values)) = vary.split_once('=') else {
        return Err(format!(
            "{option} {vary}: write KEY=A,B,C such as workload.poisson.load=0.3,0.6,0.9"
        ));
    };
    let key = key.trim();
    let values: Vec<toml::Value> = split(values).into_iter().map(value).collect();
    let config = super::config::AxisConfig {
        key: Some(key.to_owned()),
        values,
        ..Default::default()
    };
    Axis::new(&config).map_err(|error| format!("{option} {vary}: {}", error.problem))
}

/// As `--set` reads it: TOML, or else a text.
fn value(text: &str) -> toml::Value {
    let parsed = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// The parts between commas that are in no brackets and no quotes.
fn split(values: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_u32, false);
    for (at, c) in values.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if depth == 0 && !quoted => {
                parts.push(values[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(values[start..].trim());
    parts
}

fn check_metric(
    document: &Document<StudyConfig>,
    keep: Keep,
    at: &str,
    metric: &Metric,
) -> Result<(), Diagnostic> {
    if keep == Keep::Summary && !metric.is_in_summary() {
        let problem = "this needs more than the summary of a run; write keep = \"all\"";
        return Err(document.error(at, problem));
    }
    Ok(())
}

/// Refuses names that lead nowhere.
fn check_figures(document: &Document<StudyConfig>, axes: &[Axis]) -> Result<(), Diagnostic> {
    let config = &document.content;
    let names: Vec<&str> = axes.iter().map(|axis| &*axis.name).collect();
    let axis = |at: String, name: &str| {
        let found = axes.iter().find(|axis| axis.name == name);
        found.ok_or_else(|| {
            let problem = format!("there is no axis {name:?}; there are: {}", names.join(", "));
            document.error(&at, problem)
        })
    };
    let point = |at: String, axis: &Axis, value: &toml::Value| {
        let label = shown(value);
        axis.find(&label).ok_or_else(|| {
            let points: Vec<&str> = axis.points.iter().map(|point| &*point.label).collect();
            let (name, points) = (&axis.name, points.join(", "));
            document.error(
                &at,
                format!("{name} has no point {label:?}; it has: {points}"),
            )
        })
    };
    for (number, figure) in config.figure.iter().enumerate() {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if figure.name.is_empty() || !figure.name.chars().all(is_plain) {
            let problem = format!("{:?} is no name for a file", figure.name);
            return Err(document.error(&format!("figure.{number}.name"), problem));
        }
        for (index, panel) in figure.panel.iter().enumerate() {
            let at = |key: &str| format!("figure.{number}.panel.{index}.{key}");
            check_metric(document, config.keep, &at("metric"), &panel.metric.metric)?;
            if let Some(x) = &panel.x {
                let x = axis(at("x"), x)?;
                if !x.is_numeric() {
                    let problem = format!(
                        "the points of {} are no numbers of one unit; leave x out and write \
                         curves = {0:?} for a row each",
                        x.name
                    );
                    return Err(document.error(&at("x"), problem));
                }
            }
            if panel.x.is_none() && panel.curves.is_none() {
                return Err(document.error(&at("title"), "the panel has neither x nor curves"));
            }
            if panel.x.is_some() && panel.x == panel.curves {
                return Err(document.error(&at("curves"), "this is the axis of x already"));
            }
            match (&panel.curves, &panel.normalise) {
                (Some(curves), normalise) => {
                    let curves = axis(at("curves"), curves)?;
                    if let Some(value) = normalise {
                        point(at("normalise"), curves, value)?;
                    }
                }
                (None, Some(_)) => {
                    let problem = "there are no curves, of which this would be one";
                    return Err(document.error(&at("normalise"), problem));
                }
                (None, None) => {}
            }
            for (name, value) in &panel.at {
                let key = at(&format!("at.{name}"));
                point(key.clone(), axis(key, name)?, value)?;
            }
            let shown = [&panel.x, &panel.curves].map(|name| name.as_deref().unwrap_or_default());
            let open = axes.iter().find(|axis| {
                let is_fixed = panel.at.contains_key(&axis.name);
                axis.points.len() > 1 && !is_fixed && !shown.contains(&&*axis.name)
            });
            if let Some(open) = open {
                let (name, first) = (&open.name, &open.points[0].label);
                let problem = format!(
                    "the panel does not say where it is on the axis {name}; \
                     add at = {{ {name} = {first:?} }}"
                );
                return Err(document.error(&at("metric"), problem));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_outside_of_brackets_and_quotes() {
        assert_eq!(split("1,2, 3"), ["1", "2", "3"]);
        assert_eq!(split("none,{ red = { low = 1, high = 2 } },[1,2]").len(), 3);
        assert_eq!(split("\"a,b\",c"), ["\"a,b\"", "c"]);
    }

    #[test]
    fn combinations_and_points_are_inverse() {
        let scenario = Path::new("x.toml");
        let vary = [
            "a.x=1,2,3".to_owned(),
            "b.x=p,q".to_owned(),
            "c=7".to_owned(),
        ];
        let on_top = OnTop {
            seeds: Some(1),
            ..OnTop::default()
        };
        let study = Study::vary(scenario, &vary, &on_top, &[]).unwrap();
        assert_eq!(study.axes[1].name, "b.x");
        assert_eq!(study.combinations(), 6);
        for combination in 0..6 {
            let points = study.points(combination);
            assert_eq!(study.combination(&points), combination);
        }
        assert_eq!(study.points(3), [1, 1, 0]);
        let settings = study.settings(3, 9);
        let settings: Vec<&str> = settings.iter().map(|one| &*one.assignment).collect();
        assert_eq!(settings, ["a.x=2", "b.x=\"q\"", "c=7", "seed=9"]);
    }
}
